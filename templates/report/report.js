// Draws the charts of a report from the numbers in #data. The tables do without it.
(() => {
"use strict";
const root = document.documentElement;
const fail = e => { root.dataset.error = String(e.message || e.reason || e); };
addEventListener("error", fail);
addEventListener("unhandledrejection", fail);

const data = JSON.parse(document.getElementById("data").textContent);
const THROUGHPUT = 0, P50 = 1, P95 = 2, P99 = 3;
const STYLES = 8;
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 2], [1, 2], [12, 4], [6, 2, 1, 2]];
// The same outlines as the symbols in the page.
const SHAPES = [
  "M5.5 0A5.5 5.5 0 1 1-5.5 0A5.5 5.5 0 1 1 5.5 0z", "M-5-5H5V5H-5z", "M0-6.5 6.2 4.8H-6.2z", "M0-7 7 0 0 7-7 0z",
  "M0 6.5 6.2-4.8H-6.2z", "M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2z", "M-6.5 0-3.2-5.6H3.2L6.5 0 3.2 5.6H-3.2z",
  "M-5.5-5.5 0-2 5.5-5.5 2 0 5.5 5.5 0 2-5.5 5.5-2 0z",
].map(d => new Path2D(d));
const SVG = "http://www.w3.org/2000/svg";

const make = (tag, props = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name in node && name !== "list") node[name] = value; else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
};

// Colours are read from the style sheet, so that themes and print have one source.
let colours = {};
const colour = name => colours[name] ||= getComputedStyle(root).getPropertyValue("--" + name).trim();
const ink = v => colour("v" + v % STYLES);
// Past eight variants colour and mark repeat; the dash moves on, so that no two are alike.
const dash = v => DASHES[(v + Math.floor(v / STYLES)) % STYLES];

// Numbers as the tables print them.
const digits = (value, places) => value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
const before = value => value > 0 ? Math.floor(Math.log10(value)) + 1 : 1;
const rate = value => digits(value, value >= 999.95 || value <= 0 ? 0 : Math.min(6, Math.max(0, 4 - before(value))));
const milli = us => { const ms = us / 1000; return digits(ms, ms >= 99.95 || ms <= 0 ? 0 : Math.min(3, Math.max(0, 3 - before(ms)))); };
const short = value => {
  if (value >= 1e6) return +(value / 1e6).toPrecision(4) + "M";
  if (value >= 1e4) return +(value / 1e3).toPrecision(4) + "k";
  return +value.toPrecision(6) + "";
};
const METRICS = [
  { name: "Throughput", unit: "op/s", hint: "higher is better", show: value => rate(value) + " op/s", scale: 1 },
  { name: "p50 latency", unit: "ms", hint: "lower is better", show: value => milli(value) + " ms", scale: 1e-3 },
  { name: "p95 latency", unit: "ms", hint: "lower is better", show: value => milli(value) + " ms", scale: 1e-3 },
  { name: "p99 latency", unit: "ms", hint: "lower is better", show: value => milli(value) + " ms", scale: 1e-3 },
];

// An axis: positions for values, and where its ticks stand. uPlot's own scales stay linear.
const linear = (low, high) => ({ to: v => v, range: [low, high], splits: null, label: v => short(+v.toPrecision(6)) });
function fromZero(values) {
  const high = Math.max(...values, 0);
  return linear(0, high > 0 ? high * 1.08 : 1);
}
function logarithmic(values) {
  const low = Math.log10(Math.min(...values) / 1.15), high = Math.log10(Math.max(...values) * 1.15);
  const splits = [];
  const steps = high - low > 2.4 ? [1] : high - low > 1.2 ? [1, 3] : [1, 2, 5];
  for (let power = Math.floor(low); power <= high; power++) {
    for (const step of steps) {
      const at = Math.log10(step) + power;
      if (at >= low && at <= high) splits.push(at);
    }
  }
  return { to: Math.log10, range: [low, high], splits, label: v => short(+Math.pow(10, v).toPrecision(3)), log: true };
}
// From zero, unless that would press some of the values flat.
function valueAxis(values) {
  const positive = values.filter(v => v > 0);
  const wide = positive.length === values.length && Math.max(...positive) / Math.min(...positive) > 15;
  return wide ? logarithmic(positive) : fromZero(values);
}
function sweepAxis(points) {
  const low = Math.min(...points), high = Math.max(...points);
  const log = low > 0 && high / low >= 6;
  const to = log ? Math.log2 : v => v;
  const margin = (to(high) - to(low)) * 0.07 || 1;
  return { to, range: [to(low) - margin, to(high) + margin], splits: points.map(to), label: v => short(log ? Math.round(Math.pow(2, v) * 100) / 100 : v), log };
}

const charts = [];
let waiting = 0;
const settle = () => { if (waiting === 0) root.dataset.charts = "drawn"; };

// One chart: axes by uPlot, marks by `paint`, values read by pointer or arrow keys from `items`.
class Chart {
  constructor(figure, height, describe) {
    this.describe = describe;
    this.figure = figure;
    this.plot = make("div", { className: "plot", tabIndex: 0 });
    this.plot.setAttribute("role", "img");
    this.tip = make("div", { className: "tip", hidden: true });
    this.live = make("p", { className: "live" });
    this.live.setAttribute("aria-live", "polite");
    figure.append(this.plot, this.live);
    this.height = height;
    this.at = -1;
    this.build();
    this.plot.append(this.tip);
    this.plot.addEventListener("keydown", e => this.key(e));
    this.plot.addEventListener("blur", () => this.read(-1));
    this.plot.addEventListener("pointerleave", () => this.read(-1));
    charts.push(this);
  }
  build() {
    const view = this.view = this.describe();
    this.plot.setAttribute("aria-label", view.title + ". The arrow keys read the values.");
    const axis = (scale, side, title, size) => ({
      scale, side, label: title, labelSize: 20, labelGap: 0, labelFont: "12px system-ui, sans-serif", font: "12px system-ui, sans-serif",
      stroke: () => colour("soft"), grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false }, size, gap: 5,
      splits: () => this.view[scale].splits, values: (u, splits) => this.labels(u, scale, splits),
    });
    const axes = [axis("x", 2, view.xTitle, 30), axis("y", 3, null, (u, values) => 14 + 7 * Math.max(2, ...(values || []).map(v => String(v || "").length)))];
    if (!view.x.splits) { delete axes[0].splits; axes[0].space = 60; }
    if (!view.y.splits) { delete axes[1].splits; axes[1].space = 36; }
    waiting++;
    this.fresh = true;
    this.u = new uPlot({
      width: this.width(), height: this.height, legend: { show: false }, padding: [8, 10, 0, 0],
      cursor: { show: true, x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: { x: { time: false, range: () => this.view.x.range }, y: { range: () => this.view.y.range } },
      axes, series: [{}, { show: true, paths: () => null, points: { show: false } }],
      hooks: { draw: [u => this.draw(u)], setCursor: [u => this.point(u)] },
    }, [this.view.x.range, [null, null]], this.plot);
  }
  width() { return Math.max(240, Math.floor(this.figure.clientWidth)); }
  labels(u, scale, splits) {
    // Where labels would touch, every second or third stands.
    const axis = this.view[scale];
    if (scale !== "x" || !axis.splits || splits.length < 3) return splits.map(axis.label);
    let last = -Infinity;
    return splits.map(v => {
      const at = u.valToPos(v, "x"), text = axis.label(v);
      if (at - last < 9 + 7 * text.length) return null;
      last = at;
      return text;
    });
  }
  place(u, item) {
    return [u.valToPos(item.x, "x", true) + (item.shift || 0) * uPlot.pxRatio, u.valToPos(item.y, "y", true)];
  }
  draw(u) {
    const ctx = u.ctx, box = u.bbox, ratio = uPlot.pxRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.left - 6 * ratio, box.top - 8 * ratio, box.width + 12 * ratio, box.height + 12 * ratio);
    ctx.clip();
    for (const line of this.view.lines) this.stroke(u, ctx, line, ratio);
    for (const item of this.view.items) this.mark(u, ctx, item, ratio);
    for (const text of this.view.texts || []) this.write(u, ctx, text, ratio);
    if (this.at >= 0) this.ring(u, ctx, this.view.items[this.at], ratio);
    ctx.restore();
    if (this.fresh) { this.fresh = false; waiting--; settle(); }
  }
  stroke(u, ctx, line, ratio) {
    ctx.beginPath();
    line.points.forEach((p, n) => ctx[n ? "lineTo" : "moveTo"](...this.place(u, p)));
    ctx.strokeStyle = ink(line.variant);
    ctx.lineWidth = 1.75 * ratio;
    ctx.lineJoin = "round";
    ctx.setLineDash(dash(line.variant).map(n => n * ratio));
    ctx.stroke();
    ctx.setLineDash([]);
  }
  mark(u, ctx, item, ratio) {
    const [x, y] = this.place(u, item), size = ratio * (item.size || 0.62);
    ctx.save();
    ctx.translate(x, y);
    ctx.scale(size, size);
    ctx.fillStyle = ink(item.variant);
    ctx.strokeStyle = colour("page");
    ctx.lineWidth = 1.4;
    ctx.globalAlpha = 0.9;
    ctx.fill(SHAPES[item.variant % STYLES]);
    ctx.stroke(SHAPES[item.variant % STYLES]);
    ctx.restore();
  }
  write(u, ctx, text, ratio) {
    const [x, y] = this.place(u, text);
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.fillStyle = colour("soft");
    ctx.textAlign = "left";
    ctx.textBaseline = "bottom";
    ctx.fillText(text.text, x + 6 * ratio, y - 4 * ratio);
  }
  ring(u, ctx, item, ratio) {
    const [x, y] = this.place(u, item);
    ctx.beginPath();
    ctx.arc(x, y, 7 * ratio, 0, 7);
    ctx.strokeStyle = colour("text");
    ctx.lineWidth = 1.5 * ratio;
    ctx.stroke();
  }
  point(u) {
    const { left, top } = u.cursor;
    if (left == null || left < 0) return;
    let best = -1, least = 30 * 30;
    this.view.items.forEach((item, n) => {
      const dx = u.valToPos(item.x, "x") + (item.shift || 0) - left, dy = u.valToPos(item.y, "y") - top;
      if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = n; }
    });
    this.read(best);
  }
  key(e) {
    const n = this.view.items.length;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
    if (e.key === "Escape") this.read(-1);
    if (!step || !n) return;
    e.preventDefault();
    this.read(this.at < 0 ? (step > 0 ? 0 : n - 1) : (this.at + step + n) % n);
    this.live.textContent = this.view.items[this.at].text;
  }
  read(at) {
    if (at === this.at) return;
    this.at = at;
    this.tip.hidden = at < 0;
    if (at >= 0) {
      const item = this.view.items[at], u = this.u;
      this.tip.textContent = item.text;
      const left = u.over.offsetLeft + u.valToPos(item.x, "x"), top = u.over.offsetTop + u.valToPos(item.y, "y");
      const half = this.tip.offsetWidth / 2;
      this.tip.style.left = Math.min(Math.max(left, half), this.plot.clientWidth - half) + "px";
      this.tip.style.top = (top < this.tip.offsetHeight + 16 ? top + 14 : top - this.tip.offsetHeight - 14) + "px";
    }
    this.u.redraw(false);
  }
  refresh() {
    this.at = -1;
    this.tip.hidden = true;
    this.view = this.describe();
    this.plot.setAttribute("aria-label", this.view.title + ". The arrow keys read the values.");
    this.u.setData([this.view.x.range, [null, null]]);
  }
  resize() {
    const width = this.width();
    if (width !== this.u.width) this.u.setSize({ width, height: this.height });
  }
  drop() {
    this.u.destroy();
    charts.splice(charts.indexOf(this), 1);
  }
}

const present = value => value !== null && value !== undefined;
const axisName = group => group.axis === "rate" ? "target rate, op/s" : "client threads";
const pointName = (group, x) => group.axis === "rate" ? rate(x) + " op/s wanted" : x === 1 ? "1 thread" : x + " threads";

// A metric along the sweep: a line through the values over all rounds, every round as a point.
function sweep(group, metric, hidden) {
  const { scale, show, name } = METRICS[metric];
  const values = group.cells.flatMap(c => c.v.flatMap(v => [v.s[metric], ...v.r.map(r => r[1][metric])])).filter(present).map(v => v * scale);
  const x = sweepAxis(group.cells.map(c => c.x)), y = valueAxis(values);
  const shown = data.variants.map((_, v) => v).filter(v => !hidden.has(v));
  const lines = [], items = [];
  shown.forEach((variant, n) => {
    // Points of different variants stand side by side rather than on each other.
    const shift = (n - (shown.length - 1) / 2) * Math.min(5, 18 / shown.length);
    const points = [];
    for (const cell of group.cells) {
      const { s, r } = cell.v[variant];
      if (!present(s[metric])) continue;
      points.push({ x: x.to(cell.x), y: y.to(s[metric] * scale), shift });
      for (const [repetition, own] of r) {
        if (!present(own[metric])) continue;
        items.push({ x: x.to(cell.x), y: y.to(own[metric] * scale), shift, variant,
          text: `${data.variants[variant]}, ${pointName(group, cell.x)}, round ${repetition}: ${show(own[metric])}` + (r.length > 1 ? `; all ${r.length} rounds: ${show(s[metric])}` : "") });
      }
    }
    lines.push({ variant, points });
  });
  return { title: `${name} against ${axisName(group)}`, xTitle: axisName(group) + (x.log ? " (log scale)" : ""), x, y, lines, items, log: y.log };
}

// Latency against throughput; a line joins the cells in the order of the sweep.
function curve(group, metric, hidden) {
  const { scale, show, name } = METRICS[metric];
  const all = group.cells.flatMap(c => c.v.flatMap(v => [v.s, ...v.r.map(r => r[1])])).filter(s => present(s[THROUGHPUT]) && present(s[metric]));
  const x = valueAxis(all.map(s => s[THROUGHPUT])), y = valueAxis(all.map(s => s[metric] * scale));
  const lines = [], items = [], texts = [];
  data.variants.forEach((label, variant) => {
    if (hidden.has(variant)) return;
    const points = [];
    for (const cell of group.cells) {
      const { s, r } = cell.v[variant];
      if (!present(s[metric])) continue;
      const at = own => ({ x: x.to(own[THROUGHPUT]), y: y.to(own[metric] * scale) });
      points.push(at(s));
      texts.push({ ...at(s), text: group.axis === "rate" ? "" : String(cell.x) });
      for (const [repetition, own] of r) {
        if (present(own[metric])) items.push({ ...at(own), variant, text: `${label}, ${pointName(group, cell.x)}, round ${repetition}: ${show(own[metric])} at ${rate(own[THROUGHPUT])} op/s` });
      }
    }
    lines.push({ variant, points });
  });
  return { title: `${name} against throughput`, xTitle: "throughput, op/s" + (x.log ? " (log scale)" : ""), x, y, lines, items, texts, log: y.log };
}

function figure(title, note) {
  const caption = make("figcaption", {}, title, make("small", {}, note));
  return make("figure", { className: "chart" }, caption);
}

function swatch(variant) {
  const svg = document.createElementNS(SVG, "svg"), line = document.createElementNS(SVG, "path"), mark = document.createElementNS(SVG, "use");
  svg.setAttribute("viewBox", "0 0 34 14");
  svg.setAttribute("class", "v" + variant % STYLES);
  svg.setAttribute("aria-hidden", "true");
  line.setAttribute("d", "M1 7H33");
  line.setAttribute("stroke-dasharray", dash(variant).join(" "));
  mark.setAttribute("href", "#m" + variant % STYLES);
  for (const [name, value] of Object.entries({ x: 11, y: 1, width: 12, height: 12 })) mark.setAttribute(name, value);
  svg.append(line, mark);
  return svg;
}

function legend(hidden, changed) {
  const bar = make("div", { className: "legend" });
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Variants shown");
  data.variants.forEach((name, variant) => {
    const button = make("button", { type: "button" }, swatch(variant), name);
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      const off = !hidden.delete(variant) && hidden.add(variant);
      button.setAttribute("aria-pressed", String(!off));
      changed();
    });
    bar.append(button);
  });
  bar.append(make("small", { className: "hint" }, "Every point is a round; lines join the values over all rounds."));
  return bar;
}

function drawGroup(holder) {
  const group = data.groups[holder.dataset.group];
  const any = group && group.cells.some(c => c.v.some(v => v.r.length));
  if (!any) {
    holder.append(make("p", { className: "hint" }, "There is no good round to draw yet."));
    return;
  }
  const hidden = new Set(), own = [];
  holder.append(legend(hidden, () => own.forEach(chart => chart.refresh())));
  const panels = make("div", { className: "panels" });
  holder.append(panels);
  const add = (box, describe) => { panels.append(box); own.push(new Chart(box, 240, describe)); };
  for (const metric of [THROUGHPUT, P50, P95, P99]) {
    const { name, unit, hint } = METRICS[metric];
    const log = sweep(group, metric, hidden).log ? ", log scale" : "";
    add(figure(name, `${unit}${log}, ${hint}`), () => sweep(group, metric, hidden));
  }
  let chosen = P95;
  const box = figure("Latency against throughput", "ms; lower and further right is better");
  box.classList.add("double");
  const select = make("select", {}, ...[P50, P95, P99].map(m => make("option", { value: String(m), selected: m === chosen }, METRICS[m].name.slice(0, 3))));
  select.setAttribute("aria-label", "Percentile");
  box.firstChild.append(select);
  const note = box.querySelector("small");
  add(box, () => {
    const view = curve(group, chosen, hidden);
    note.textContent = `ms${view.log ? ", log scale" : ""}; lower and further right is better`;
    return view;
  });
  const last = own.at(-1);
  // Another percentile may need another kind of axis, so this chart is built anew.
  select.addEventListener("change", () => { chosen = Number(select.value); last.u.destroy(); last.build(); last.plot.append(last.tip); });
}

// Second by second: chosen cell, chosen round, throughput above p99.
function timelines() {
  const panel = document.getElementById("timeline-panel"), holder = document.getElementById("timeline");
  if (!data.courses.length) {
    holder.append(make("p", { className: "hint" }, "No round has left a timeline."));
    return;
  }
  const key = course => course.at[0] + "." + course.at[1];
  const cells = new Map();
  for (const course of data.courses) cells.set(key(course), course.at);
  const cellName = ([g, c]) => {
    const group = data.groups[g];
    return [group.workload, group.label, pointName(group, group.cells[c].x)].filter(Boolean).join(", ");
  };
  const sorted = [...cells].sort((a, b) => a[1][0] - b[1][0] || a[1][1] - b[1][1]);
  const cell = make("select", {}, ...sorted.map(([value, at]) => make("option", { value }, cellName(at))));
  const round = make("select");
  const words = data.step > 1 ? `Each point stands for ${data.step} s: the mean rate and the highest p99 of a second.` : "Each point is one second.";
  const panels = make("div", { className: "panels" });
  holder.append(make("div", { className: "choose" }, make("label", {}, "Cell", cell), make("label", {}, "Round", round),
    ...data.variants.map((name, variant) => make("span", { className: "sample" }, swatch(variant), name))),
    make("p", { className: "hint" }, words + " The shaded part is warm-up, which no number counts. Drag to zoom, double-click to see all."), panels);
  let plots = [];
  const drawn = () => data.courses.filter(c => key(c) === cell.value && (round.value === "all" || round.value === c.at[2] + "." + c.k));
  const show = () => {
    plots.forEach(p => p.destroy());
    panels.replaceChildren();
    const courses = drawn();
    plots = [
      course(panels, courses, "Throughput", "op/s in each second", c => c.n, rate),
      course(panels, courses, "p99 latency", "ms in each second", c => c.p.map(v => present(v) ? v / 1000 : null), v => milli(v * 1000)),
    ];
  };
  const rounds = () => {
    const of = data.courses.filter(c => key(c) === cell.value).sort((a, b) => a.at[2] - b.at[2] || a.k - b.k);
    round.replaceChildren(make("option", { value: "all" }, "all"), ...of.map(c => make("option", { value: c.at[2] + "." + c.k }, `${data.variants[c.at[2]]}, round ${c.k}${c.ok ? "" : " (not good)"}`)));
  };
  cell.addEventListener("change", () => { rounds(); show(); });
  round.addEventListener("change", show);
  let begun = false;
  panel.addEventListener("toggle", () => {
    if (!panel.open || begun) return;
    begun = true;
    rounds();
    show();
  });
  addEventListener("resize", () => plots.forEach(p => p.setSize({ width: Math.max(240, panels.clientWidth), height: 220 })));
  repaint.push(() => plots.forEach(p => p.redraw(false)));
  const open = () => { if (location.hash === "#timelines") panel.open = true; };
  addEventListener("hashchange", open);
  open();
}

function course(panels, courses, title, note, values, show) {
  const axis = valueAxis(courses.flatMap(c => values(c)).filter(present));
  const box = figure(title, note + (axis.log ? ", log scale" : "")), plot = make("div", { className: "plot" }), reading = make("p", { className: "reading" });
  box.append(plot, reading);
  panels.append(box);
  const first = Math.min(...courses.map(c => c.t)), last = Math.max(...courses.map(c => c.t + (c.n.length - 1) * data.step));
  // A point stands in the middle of what it covers.
  const half = data.step / 2, xs = [];
  for (let t = first; t <= last; t += data.step) xs.push(t);
  const columns = courses.map(c => {
    const column = new Array(xs.length).fill(null), offset = (c.t - first) / data.step;
    values(c).forEach((v, n) => { column[offset + n] = present(v) ? axis.to(v) : null; });
    return column;
  });
  const read = v => axis.log ? Math.pow(10, v) : v;
  const name = c => `${data.variants[c.at[2]]} ${c.k}`;
  waiting++;
  let fresh = true;
  return new uPlot({
    width: Math.max(240, panels.clientWidth), height: 220, legend: { show: false }, padding: [8, 10, 0, 0],
    cursor: { y: false, drag: { x: true, y: false }, points: { size: 5 } },
    scales: { x: { time: false, range: (u, low, high) => low === first && high === last ? [low - half, high + half] : [low, high] }, y: { range: () => axis.range } },
    axes: [
      { label: "seconds of the window", labelSize: 20, labelGap: 0, labelFont: "12px system-ui, sans-serif", font: "12px system-ui, sans-serif", stroke: () => colour("soft"), grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false }, size: 30,
        incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400] },
      { font: "12px system-ui, sans-serif", stroke: () => colour("soft"), grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false }, space: 36,
        ...(axis.splits ? { splits: () => axis.splits } : {}), values: (u, splits) => splits.map(axis.label), size: (u, labels) => 14 + 7 * Math.max(2, ...(labels || []).map(l => l.length)) },
    ],
    series: [{}, ...courses.map(c => ({ stroke: () => ink(c.at[2]), width: 1.5, dash: dash(c.at[2]), spanGaps: false, points: { show: xs.length < 40, size: 5, fill: () => colour("page") } }))],
    hooks: {
      drawClear: [u => {
        const left = u.valToPos(u.scales.x.min, "x", true), zero = Math.min(u.valToPos(-half, "x", true), u.bbox.left + u.bbox.width);
        if (zero <= left) return;
        u.ctx.fillStyle = colour("panel");
        u.ctx.fillRect(left, u.bbox.top, zero - left, u.bbox.height);
      }],
      draw: [() => { if (fresh) { fresh = false; waiting--; settle(); } }],
      setCursor: [u => {
        const at = u.cursor.idx;
        const told = at == null ? [] : courses.map((c, n) => [name(c), columns[n][at]]).filter(([, v]) => present(v)).map(([label, v]) => `${label}: ${show(read(v))}`);
        reading.textContent = told.length ? `second ${xs[at]}: ${told.join(" · ")}` : "";
      }],
    },
  }, [xs, ...columns], plot);
}

const repaint = [() => charts.forEach(chart => chart.u.redraw(false))];
const recolour = () => { colours = {}; repaint.forEach(paint => paint()); };

function themes() {
  const button = document.getElementById("theme"), order = ["system", "light", "dark"];
  const store = { get: () => { try { return localStorage.getItem("assay-theme"); } catch { return null; } }, set: v => { try { localStorage.setItem("assay-theme", v); } catch { /* a page without storage forgets */ } } };
  let theme = order.includes(store.get()) ? store.get() : "system";
  const apply = () => {
    if (theme === "system") delete root.dataset.theme; else root.dataset.theme = theme;
    button.textContent = "Theme: " + theme;
    recolour();
  };
  button.addEventListener("click", () => { theme = order[(order.indexOf(theme) + 1) % order.length]; store.set(theme); apply(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  apply();
}

// On paper every table of a readable length is open, and charts are dark on light.
function printing() {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details[data-print]:not([open])")].filter(d => d.querySelectorAll("tr").length <= 200);
    opened.forEach(d => { d.open = true; });
  });
  addEventListener("afterprint", () => { opened.forEach(d => { d.open = false; }); });
  matchMedia("print").addEventListener("change", recolour);
}

function copying() {
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("pre");
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
}

document.querySelectorAll(".charts").forEach(drawGroup);
timelines();
themes();
printing();
copying();
new ResizeObserver(() => charts.forEach(chart => chart.resize())).observe(document.querySelector("main"));
settle();
})();
