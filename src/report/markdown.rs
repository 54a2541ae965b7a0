//! `report.md`: the tables as GitHub renders them, readable as text as well.

use super::grid::{self, Detail};
use super::number;
use super::rows::{Failure, Group, LONG, OverallRow, Rows, Variant, Weight, Workload};
use crate::artifacts::Status;
use crate::units::Bytes;

/// The rows as Markdown.
#[must_use]
pub(super) fn render(rows: &Rows) -> String {
    let mut page = Page(String::new());
    head(&mut page, rows);
    for workload in &rows.workloads {
        results(&mut page, rows, workload);
    }
    failures(&mut page, &rows.failures);
    configuration(&mut page, rows);
    environment(&mut page, rows);
    spec(&mut page, rows);
    page.0
}

struct Page(String);

impl Page {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn heading(&mut self, level: usize, text: &str) {
        self.line(&format!("\n{} {}\n", "#".repeat(level), escaped(text)));
    }

    /// A table; `words` says which columns hold words and stand left.
    fn table(&mut self, header: &[String], words: &[bool], rows: &[Vec<String>]) {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|c| escaped(c)).collect();
            format!("| {} |", cells.join(" | "))
        };
        self.line(&line(header));
        let rule: Vec<&str> = words
            .iter()
            .map(|w| if *w { "---" } else { "--:" })
            .collect();
        self.line(&format!("|{}|", rule.join("|")));
        for row in rows {
            self.line(&line(row));
        }
    }

    fn words(&mut self, header: &[&str], rows: &[Vec<String>]) {
        let header: Vec<String> = header.iter().map(|h| (*h).to_owned()).collect();
        self.table(&header, &vec![true; header.len()], rows);
    }

    /// A block of code that no run of backticks inside can end.
    fn code(&mut self, language: &str, text: &str) {
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        self.line(&format!("{fence}{language}\n{}\n{fence}", text.trim_end()));
    }
}

/// Text that Markdown, its tables and HTML inside it leave as it is.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '`' | '*' | '[' | ']' | '\\' | '#' | '~' | '_' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn head(page: &mut Page, rows: &Rows) {
    page.line(&format!("# {}\n", escaped(&rows.run.experiment)));
    if let Some(description) = &rows.run.description {
        page.line(&format!("{}\n", escaped(description)));
    }
    for fact in facts(rows) {
        page.line(&format!("- {}", escaped(&fact)));
    }
    page.line("");
    for note in &rows.notes {
        let word = match note.weight {
            Weight::Warning => "**Warning:**",
            Weight::Remark => "Note:",
        };
        page.line(&format!("> {word} {}\n>", escaped(&note.text)));
    }
    differences(page, rows);
}

/// The run in a few lines.
fn facts(rows: &Rows) -> Vec<String> {
    let (run, counts) = (&rows.run, rows.run.rounds);
    let duration = number::duration;
    let mut facts = vec![
        compared(rows),
        format!("Systems: {}", rows.systems().join(", ")),
        format!(
            "Run: {}, {}, assay {}",
            run.id,
            number::time(run.created),
            run.assay
        ),
        format!(
            "Rounds: {} planned, {} good, {} failed, {} invalid, {} skipped, {} pending",
            counts.planned,
            counts.ok,
            counts.failed,
            counts.invalid,
            counts.skipped,
            counts.pending
        ),
        format!(
            "Order: {}, restore {}, seed {}",
            run.order, run.restore, run.seed
        ),
        format!(
            "Time: {} estimated, {} spent",
            duration(run.estimated_s),
            duration(run.actual_s)
        ),
    ];
    facts.extend(run.disk.map(|disk| {
        let [estimated, used] = [disk.estimated_bytes, disk.actual_bytes].map(Bytes);
        format!("Disk: {estimated} estimated, {used} used")
    }));
    facts
}

fn compared(rows: &Rows) -> String {
    let names = rows.variants.iter().map(|v| v.name.as_str());
    let others: Vec<&str> = names.filter(|n| *n != rows.baseline).collect();
    if others.is_empty() {
        format!("Variant: {}", rows.baseline)
    } else {
        let others = others.join(", ");
        format!(
            "Compared: {others} against {} (the baseline)",
            rows.baseline
        )
    }
}

fn differences(page: &mut Page, rows: &Rows) {
    if rows.differences.is_empty() {
        return;
    }
    page.heading(2, "Differences between the variants");
    let mut header = vec!["Setting"];
    header.extend(rows.variants.iter().map(|v| v.name.as_str()));
    let lines: Vec<Vec<String>> = rows
        .differences
        .iter()
        .map(|d| {
            let values = values(&d.values, &rows.variants);
            std::iter::once(d.setting.clone()).chain(values).collect()
        })
        .collect();
    page.words(&header, &lines);
}

/// The values of the variants, with words for those that are absent.
fn values<'a>(
    values: &'a [Option<String>],
    variants: &'a [Variant],
) -> impl Iterator<Item = String> + 'a {
    let shown = |(value, variant): (&Option<String>, &Variant)| {
        let value = value.as_deref();
        value.unwrap_or(variant.without_value()).to_owned()
    };
    values.iter().zip(variants).map(shown)
}

/// What differs in the effective configuration; folded when it is long.
fn configuration(page: &mut Page, rows: &Rows) {
    if rows.configuration.is_empty() {
        return;
    }
    page.heading(2, "Configuration: what differs");
    page.line(
        "As the processes themselves tell it, defaults included; of a component its first instance. Paths and addresses of the \
         deployments are left out.\n",
    );
    let mut header = vec!["Component", "Key"];
    header.extend(rows.variants.iter().map(|v| v.name.as_str()));
    header.push("Set by");
    let lines = rows.configuration.iter().map(|d| {
        let mut line = vec![d.component.clone(), d.key.clone()];
        line.extend(values(&d.values, &rows.variants));
        line.push(if d.asked { "the experiment" } else { "" }.to_owned());
        line
    });
    let lines: Vec<Vec<String>> = lines.collect();
    let is_long = lines.len() > LONG;
    if is_long {
        let summary = format!("{} keys", lines.len());
        page.line(&format!("<details>\n<summary>{summary}</summary>\n"));
    }
    page.words(&header, &lines);
    if is_long {
        page.line("\n</details>");
    }
}

fn results(page: &mut Page, rows: &Rows, workload: &Workload) {
    page.heading(2, &workload.name);
    let parameters: Vec<String> = workload
        .parameters
        .iter()
        .map(|(label, value)| format!("{label} {value}"))
        .collect();
    page.line(&format!("{}\n", escaped(&parameters.join(", "))));
    for row in workload
        .overall
        .iter()
        .filter(|r| rows.metrics.contains(&r.metric))
    {
        page.line(&format!("- {}", escaped(&overall(row))));
    }
    for group in &workload.groups {
        group_table(page, rows, group);
    }
}

/// `wal: p95 latency over 4 cells 0.437× (cells from 0.426× to 0.448×; 0 up, 4 down)`.
fn overall(row: &OverallRow) -> String {
    let all = &row.overall;
    let mark = if row.thin > 0 { "†" } else { "" };
    let ratio = format!("{}{mark}", number::ratio(all.ratio));
    let (variant, metric) = (&row.variant, super::metric::name(row.metric));
    let mut text = match all.cells {
        1 => format!("{variant}: {metric} in one cell {ratio}"),
        cells => format!(
            "{variant}: {metric} over {cells} cells {ratio} (cells from {} to {}; {} up, {} down)",
            number::ratio(all.min),
            number::ratio(all.max),
            all.up,
            all.down
        ),
    };
    if row.left_out > 0 {
        text.push_str(&format!(
            "; {} of {} cells left out, see how to read this",
            row.left_out,
            row.left_out + all.cells
        ));
    }
    text
}

fn group_table(page: &mut Page, rows: &Rows, group: &Group) {
    page.line("");
    if let Some(label) = &group.label {
        page.line(&format!("{}:\n", escaped(label)));
    }
    if rows.variants.len() > 1 {
        page.line(&format!("Ratios to {}:\n", escaped(&rows.baseline)));
    }
    let grid = grid::grid(rows, group, Detail::Ranges);
    page.table(&grid.header, &grid.words, &grid.rows);
}

fn failures(page: &mut Page, failures: &[Failure]) {
    page.heading(2, "Failed, invalid and skipped rounds");
    if failures.is_empty() {
        page.line("None.");
        return;
    }
    let lines: Vec<Vec<String>> = failures
        .iter()
        .map(|f| {
            let again = f.retried && f.status != Status::Skipped;
            let again = if again { ", tried again" } else { "" };
            vec![
                f.round.clone().unwrap_or_else(|| "preparation".into()),
                f.variant.clone(),
                f.attempt.map(|n| n.to_string()).unwrap_or_default(),
                format!("{}{again}", f.status.word()),
                f.reason.clone(),
            ]
        })
        .collect();
    page.words(&["Round", "Variant", "Attempt", "Status", "Reason"], &lines);
}

fn environment(page: &mut Page, rows: &Rows) {
    page.heading(2, "Environment");
    let facts: Vec<Vec<String>> = rows
        .hosts
        .iter()
        .flat_map(|h| {
            h.facts
                .iter()
                .map(|(label, value)| vec![h.name.clone(), label.clone(), value.clone()])
        })
        .collect();
    page.words(&["Host", "Fact", "Value"], &facts);
    page.line("");
    let programs: Vec<Vec<String>> = rows
        .programs
        .iter()
        .map(|p| {
            let text = |t: &Option<String>| t.clone().unwrap_or_default();
            vec![p.name.clone(), text(&p.version), text(&p.sha256)]
        })
        .collect();
    page.words(&["Program", "Version", "sha256"], &programs);
}

fn spec(page: &mut Page, rows: &Rows) {
    page.heading(2, "Run it again");
    if !rows.again.environment.is_empty() {
        page.line(&format!(
            "Set these environment variables first: {}.\n",
            escaped(&rows.again.environment.join(", "))
        ));
    }
    for (what, command) in &rows.again.commands {
        page.line(&format!("{}:\n", escaped(what)));
        page.code("sh", command);
        page.line("");
    }
    page.heading(2, "What was run");
    for change in &rows.spec.changes {
        page.line(&format!(
            "Changed on resume at {}; good rounds before it: {}.\n",
            number::time(change.at),
            change.rounds_before
        ));
        page.code("diff", &change.difference.join("\n"));
        page.line("");
    }
    page.code("yaml", &rows.spec.experiment);
    page.heading(2, "How to read this");
    page.line(
        "Latencies in ms. Throughput is successful operations that end in the window, mean of the good rounds. A latency is \
         read from the exact merge of the good rounds' histograms, operations in flight at the window's end included; \
         percentiles are never averaged. The range is that of the rounds' own values. A ratio is that of the geometric means \
         of paired rounds (same cell, same repetition), with the range of the pairs' ratios. It is not the quotient of the two \
         values: where rounds differ much, the two can disagree. Client CPUs is the CPU time of the driver's process over the \
         window; with SQLite that includes the database's own work.\n",
    );
    page.line(
        "† Fewer than ten requests lie beyond the percentile, in a ratio beyond that of one of its rounds, in a summary in one \
         of its cells: it says little.\n",
    );
    page.line(
        "‡ The quotient of the two values is on the other side of 1 than the ratio, or outside the pairs' range.\n",
    );
    page.line(
        "§ The target rate was not kept. A summary over cells of an open loop leaves out, for throughput, the cells where both \
         sides kept it, and, for latencies, those where one did not.",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(escaped("a|b\n<script>`x`"), r"a\|b &lt;script&gt;\`x\`");
        let mut page = Page(String::new());
        page.code("", "```\nend");
        assert_eq!(page.0, "````\n```\nend\n````\n");
    }
}
