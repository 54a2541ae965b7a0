//! What the native driver itself costs: ns an operation against a database that does nothing, as time passed for each thread
//! and as CPU time. `cargo bench --bench load` prints the table of `docs/performance.md`.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the benchmark")]
#![expect(clippy::print_stdout, reason = "the table is for people")]

use std::time::Duration;

use assay::load::run;
use assay::measurement::LoadResult;
use assay::plan::{Job, LoadRun, Target, Work};
use assay::spec::{Dataset, Driver, Kind, Workload};
use assay::units;
use indexmap::IndexMap;

/// Measurements of each line; the median stands for them.
const TIMES: usize = 5;
const WARMUP: Duration = Duration::from_millis(200);
const WINDOW: Duration = Duration::from_millis(800);

/// How many statements an operation of each workload runs on average, BEGIN and COMMIT included.
fn statements(kind: Kind) -> f64 {
    match kind {
        Kind::YcsbA | Kind::YcsbB | Kind::YcsbC | Kind::YcsbD | Kind::YcsbE => 1.0,
        // Every other operation is a transaction of a read and an update.
        Kind::YcsbF => 2.5,
        Kind::OltpPointSelect
        | Kind::OltpUpdateIndex
        | Kind::OltpUpdateNonIndex
        | Kind::OltpInsert
        | Kind::OltpDelete => 1.0,
        Kind::OltpReadOnly => 16.0,
        Kind::OltpWriteOnly => 6.0,
        Kind::OltpReadWrite => 20.0,
    }
}

fn main() {
    println!(
        "| workload | statements | 1 thread | min - max | CPU | 2 threads | min - max | CPU | CPU per statement |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for kind in Kind::ALL {
        let statements = statements(kind);
        print!("| {kind} | {statements} |");
        let mut per_statement = 0.0;
        for threads in [1, 2] {
            let costs = [(); TIMES].map(|()| cost(kind, threads));
            let [min, median, max] = spread(costs.map(|(time, _)| time));
            let [_, cpu, _] = spread(costs.map(|(_, cpu)| cpu));
            print!(" {median:.0} | {min:.0} - {max:.0} | {cpu:.0} |");
            per_statement = cpu / statements;
        }
        println!(" {per_statement:.0} |");
    }
}

/// The least, the middle and the greatest.
fn spread(mut values: [f64; TIMES]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[0], values[TIMES / 2], values[TIMES - 1]]
}

/// What one operation takes of its thread's time, and of the CPUs' time, ns.
fn cost(kind: Kind, threads: u32) -> (f64, f64) {
    let output = tempfile::tempdir().unwrap();
    let order = LoadRun {
        workload: Workload {
            name: None,
            driver: Driver::Native,
            workload: Some(kind),
            script: None,
            distribution: None,
            max_scan_length: None,
            range_size: None,
            skip_trx: None,
            options: IndexMap::new(),
        },
        dataset: Dataset {
            driver: Driver::Native,
            schema: Some(kind.schema()),
            records: None,
            fields: None,
            field_length: None,
            tables: None,
            table_size: None,
            threads: None,
            then: Vec::new(),
            options: IndexMap::new(),
        },
        threads,
        rate: None,
        warmup: units::Duration(WARMUP),
        duration: units::Duration(WINDOW),
        output: output.path().to_owned(),
    };
    let job = Job {
        target: Target::Null,
        work: Work::Run(order),
        seed: 1,
    };
    run(&job, &mut |_| {}).unwrap();
    let files = std::fs::read_dir(output.path()).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read(path).unwrap())
    });
    let result = LoadResult::from_files(&files.collect()).unwrap();
    let operations = result.count() as f64;
    let time = result.window_s * f64::from(threads) * 1e9 / operations;
    let cpu = result.client_cpu_s.unwrap_or(f64::NAN) * 1e9 / operations;
    (time, cpu)
}
