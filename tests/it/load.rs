//! The native driver against real SQLite files: loading, every workload, the files it leaves.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use assay::load::{Done, LoadError, run};
use assay::measurement::{LoadResult, Phase};
use assay::plan::{Job, LoadRun, Progress, Target, Work};
use assay::spec::{Dataset, Distribution, Driver, Kind, Schema, Workload};
use indexmap::IndexMap;
use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::TempDir;

const RECORDS: u64 = 500;
const TABLE_SIZE: u64 = 400;

fn dataset(schema: Schema) -> Dataset {
    Dataset {
        driver: Driver::Native,
        schema: Some(schema),
        records: (schema == Schema::Ycsb).then_some(RECORDS),
        fields: (schema == Schema::Ycsb).then_some(4),
        field_length: (schema == Schema::Ycsb).then_some(20),
        tables: (schema == Schema::Sysbench).then_some(2),
        table_size: (schema == Schema::Sysbench).then_some(TABLE_SIZE),
        threads: None,
        then: Vec::new(),
        options: IndexMap::new(),
    }
}

fn workload(kind: Kind) -> Workload {
    Workload {
        name: None,
        driver: Driver::Native,
        workload: Some(kind),
        script: None,
        distribution: None,
        max_scan_length: None,
        range_size: None,
        skip_trx: None,
        options: IndexMap::new(),
    }
}

/// A folder with a database file and a folder for results.
struct Bed {
    folder: TempDir,
    pragmas: Vec<(String, String)>,
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pragma = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Self {
            folder,
            pragmas: vec![pragma("journal_mode", "wal"), pragma("synchronous", "off")],
        }
    }

    fn loaded(schema: Schema) -> Self {
        let bed = Self::new();
        bed.load(schema, 1).unwrap();
        bed
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("test.db")
    }

    fn output(&self) -> std::path::PathBuf {
        let output = self.folder.path().join("out");
        std::fs::create_dir_all(&output).unwrap();
        output
    }

    fn job(&self, work: Work, seed: u64) -> Job {
        Job {
            target: Target::Sqlite {
                path: self.path(),
                pragmas: self.pragmas.clone(),
            },
            work,
            seed,
        }
    }

    fn load(&self, schema: Schema, seed: u64) -> Result<Done, LoadError> {
        run(&self.job(Work::Load(dataset(schema)), seed), &mut |_| {})
    }

    fn order(&self, workload: Workload, threads: u32) -> LoadRun {
        LoadRun {
            dataset: dataset(workload.kind().schema()),
            workload,
            threads,
            rate: None,
            warmup: assay::units::Duration(Duration::from_millis(50)),
            duration: assay::units::Duration(Duration::from_millis(200)),
            output: self.output(),
        }
    }

    fn measure(&self, order: LoadRun) -> Result<LoadResult, LoadError> {
        run(&self.job(Work::Run(order), 2), &mut |_| {})?;
        Ok(read(&self.output()))
    }

    fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        let connection = Connection::open(self.path()).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| (0..columns).map(|n| row.get(n)).collect());
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    }

    fn number(&self, sql: &str) -> i64 {
        match self.rows(sql)[0][0] {
            Value::Integer(number) => number,
            ref other => panic!("{other:?}"),
        }
    }

    fn sql(&self, sql: &str) {
        let connection = Connection::open(self.path()).unwrap();
        connection.execute_batch(sql).unwrap();
    }
}

fn read(folder: &Path) -> LoadResult {
    let files: BTreeMap<String, Vec<u8>> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect();
    LoadResult::from_files(&files).unwrap()
}

fn names(result: &LoadResult) -> Vec<&str> {
    result.operations.iter().map(|o| o.name.as_str()).collect()
}

#[test]
fn ycsb_workloads_run_on_real_sqlite_without_errors() {
    for (kind, operations) in [
        (Kind::YcsbA, vec!["read", "update"]),
        (Kind::YcsbB, vec!["read", "update"]),
        (Kind::YcsbC, vec!["read"]),
        (Kind::YcsbD, vec!["insert", "read"]),
        (Kind::YcsbE, vec!["insert", "scan"]),
        (Kind::YcsbF, vec!["read", "read_modify_write"]),
    ] {
        let bed = Bed::loaded(Schema::Ycsb);
        let result = bed.measure(bed.order(workload(kind), 2)).unwrap();
        assert_eq!(names(&result), operations);
        assert_eq!(result.errors(), 0, "{kind:?}: {:?}", result.operations);
        for operation in &result.operations {
            assert!(operation.latency.count() > 0, "{kind:?} {}", operation.name);
        }
        let rows = bed.number("SELECT count(*) FROM usertable") as u64;
        let inserts = result.operations.iter().find(|o| o.name == "insert");
        match inserts {
            None => assert_eq!(rows, RECORDS),
            Some(inserts) => assert!(rows >= RECORDS + inserts.latency.count()),
        }
        let broken =
            "SELECT count(*) FROM usertable WHERE length(field0) <> 20 OR length(field3) <> 20";
        assert_eq!(bed.number(broken), 0);
    }
}

#[test]
fn oltp_workloads_run_on_real_sqlite_and_keep_their_invariants() {
    for kind in [
        Kind::OltpPointSelect,
        Kind::OltpReadOnly,
        Kind::OltpReadWrite,
        Kind::OltpWriteOnly,
        Kind::OltpUpdateIndex,
        Kind::OltpUpdateNonIndex,
        Kind::OltpInsert,
        Kind::OltpDelete,
    ] {
        let bed = Bed::loaded(Schema::Sysbench);
        let sum =
            "SELECT CAST((SELECT total(k) FROM sbtest1) + (SELECT total(k) FROM sbtest2) AS INT)";
        let before = bed.number(sum);
        let result = bed.measure(bed.order(workload(kind), 2)).unwrap();
        assert_eq!(names(&result), ["transaction"]);
        assert_eq!(result.errors(), 0, "{kind:?}: {:?}", result.operations);
        let done = result.count();
        assert!(done > 0, "{kind:?}");
        let count = "SELECT (SELECT count(*) FROM sbtest1) + (SELECT count(*) FROM sbtest2)";
        let rows = bed.number(count) as u64;
        let grown = bed.number(sum) - before;
        match kind {
            Kind::OltpInsert => assert!(rows >= 2 * TABLE_SIZE + done),
            Kind::OltpDelete => assert!(rows < 2 * TABLE_SIZE),
            Kind::OltpUpdateIndex => assert!(grown >= done as i64 && rows == 2 * TABLE_SIZE),
            Kind::OltpPointSelect | Kind::OltpReadOnly | Kind::OltpUpdateNonIndex => {
                assert_eq!((grown, rows), (0, 2 * TABLE_SIZE));
            }
            _ => assert_eq!(rows, 2 * TABLE_SIZE),
        }
        assert_eq!(
            bed.rows("PRAGMA integrity_check"),
            [[Value::Text("ok".into())]]
        );
    }
}

#[test]
fn the_same_seed_loads_the_same_rows_and_another_seed_other_rows() {
    for (schema, sql) in [
        (Schema::Ycsb, "SELECT * FROM usertable"),
        (
            Schema::Sysbench,
            "SELECT * FROM sbtest1 UNION ALL SELECT * FROM sbtest2",
        ),
    ] {
        let rows = |seed| {
            let bed = Bed::new();
            bed.load(schema, seed).unwrap();
            bed.rows(sql)
        };
        let first = rows(7);
        assert_eq!(first, rows(7));
        assert_ne!(first, rows(8));
    }
}

#[test]
fn loading_makes_the_tables_of_ycsb_and_sysbench_and_says_how_far_it_is() {
    for (schema, total) in [(Schema::Ycsb, RECORDS), (Schema::Sysbench, 2 * TABLE_SIZE)] {
        let bed = Bed::new();
        let mut said = Vec::new();
        let job = bed.job(Work::Load(dataset(schema)), 1);
        let done = run(&job, &mut |progress| said.push(progress)).unwrap();
        assert!(matches!(done, Done::Loaded { rows, .. } if rows == total));
        let last = Progress::Loaded {
            rows: total,
            of: total,
        };
        assert_eq!(said.last(), Some(&last));
    }
}

#[test]
fn ycsb_keys_are_those_of_ycsb() {
    let bed = Bed::loaded(Schema::Ycsb);
    // The first key that YCSB loads with insertorder=hashed, as its users see it.
    let sql = "SELECT ycsb_key FROM usertable ORDER BY rowid LIMIT 1";
    assert_eq!(
        bed.rows(sql),
        [[Value::Text("user6284781860667377211".into())]]
    );
}

#[test]
fn sysbench_tables_have_their_shape() {
    let bed = Bed::loaded(Schema::Sysbench);
    for sql in [
        "SELECT count(*) FROM sbtest2 WHERE k NOT BETWEEN 1 AND 400",
        "SELECT count(*) FROM sbtest2 WHERE length(c) <> 119 OR length(pad) <> 59",
        "SELECT count(*) FROM sbtest2 WHERE typeof(id) <> 'integer' OR typeof(c) <> 'text'",
    ] {
        assert_eq!(bed.number(sql), 0, "{sql}");
    }
    assert_eq!(bed.number("SELECT max(id) - min(id) + 1 FROM sbtest2"), 400);
    let index = "SELECT count(*) FROM pragma_index_info('k_2') WHERE name = 'k'";
    assert_eq!(bed.number(index), 1);
}

#[test]
fn a_table_that_exists_is_not_loaded_again() {
    for (schema, table) in [(Schema::Ycsb, "usertable"), (Schema::Sysbench, "sbtest1")] {
        let bed = Bed::loaded(schema);
        let error = bed.load(schema, 1).unwrap_err();
        assert!(matches!(error, LoadError::Exists(name) if name == table));
    }
}

#[test]
fn a_dataset_that_is_not_there_is_refused_before_the_load() {
    let bed = Bed::new();
    let missing = bed
        .measure(bed.order(workload(Kind::YcsbC), 1))
        .unwrap_err();
    assert!(matches!(missing, LoadError::Connect(_)), "{missing:?}");

    let bed = Bed::loaded(Schema::Ycsb);
    let missing = bed
        .measure(bed.order(workload(Kind::OltpReadOnly), 1))
        .unwrap_err();
    assert!(matches!(missing, LoadError::Tables(_)), "{missing:?}");

    for (kind, grow) in [(Kind::YcsbC, 1), (Kind::OltpPointSelect, 100)] {
        let bed = Bed::loaded(kind.schema());
        let mut order = bed.order(workload(kind), 1);
        order.dataset.records = order.dataset.records.map(|n| n + grow);
        order.dataset.table_size = order.dataset.table_size.map(|n| n + grow);
        let small = bed.measure(order).unwrap_err();
        assert!(matches!(small, LoadError::Data(_)), "{small:?}");
    }
}

#[test]
fn workload_dataset_and_distribution_must_fit() {
    let bed = Bed::loaded(Schema::Ycsb);
    let mut wrong = bed.order(workload(Kind::YcsbA), 1);
    wrong.workload.distribution = Some(Distribution::Special);
    assert!(matches!(bed.measure(wrong), Err(LoadError::Job(_))));
    let mut wrong = bed.order(workload(Kind::OltpDelete), 1);
    wrong.dataset = dataset(Schema::Ycsb);
    assert!(matches!(bed.measure(wrong), Err(LoadError::Job(_))));
}

#[test]
fn a_job_that_nothing_can_come_of_is_refused() {
    let bed = Bed::loaded(Schema::Ycsb);
    let good = bed.order(workload(Kind::YcsbE), 1);
    let mut bad = vec![good; 5];
    bad[0].threads = 0;
    bad[1].rate = Some(f64::NAN);
    bad[2].rate = Some(0.0);
    bad[3].workload.max_scan_length = Some(0);
    bad[4].dataset.records = Some(0);
    for order in bad {
        let error = bed.measure(order).unwrap_err();
        assert!(matches!(error, LoadError::Job(_)), "{error:?}");
    }
}

#[test]
fn inserts_go_on_behind_those_of_an_earlier_run() {
    let bed = Bed::loaded(Schema::Ycsb);
    for _ in 0..3 {
        let result = bed.measure(bed.order(workload(Kind::YcsbD), 2)).unwrap();
        assert_eq!(result.errors(), 0, "{:?}", result.operations);
    }
}

#[test]
fn failures_are_counted_by_kind_and_are_no_throughput() {
    let bed = Bed::loaded(Schema::Ycsb);
    bed.sql("CREATE TRIGGER no BEFORE UPDATE ON usertable BEGIN SELECT raise(ABORT, 'no'); END");
    let result = bed.measure(bed.order(workload(Kind::YcsbA), 2)).unwrap();
    let update = &result.operations[1];
    assert_eq!(
        (update.name.as_str(), update.latency.count()),
        ("update", 0)
    );
    assert!(update.errors["constraint"] > 0 && update.errors.len() == 1);
    assert_eq!(result.count(), result.operations[0].latency.count());
    assert!(result.operations[0].errors.is_empty());
}

#[test]
fn a_failed_transaction_leaves_nothing_behind() {
    for (kind, table, what) in [
        (Kind::YcsbF, "usertable", "UPDATE"),
        (Kind::OltpReadWrite, "sbtest1", "INSERT"),
    ] {
        let bed = Bed::loaded(kind.schema());
        // FAIL, unlike ABORT, keeps what the statement changed before it failed: only a rollback undoes it.
        bed.sql(&format!(
            "CREATE TRIGGER no AFTER {what} ON {table} BEGIN SELECT raise(FAIL, 'no'); END"
        ));
        let rows = format!("SELECT * FROM {table}");
        let before = bed.rows(&rows);
        let mut order = bed.order(workload(kind), 2);
        order.dataset.tables = order.dataset.tables.map(|_| 1);
        let result = bed.measure(order).unwrap();
        assert!(result.errors() > 0);
        assert_eq!(bed.rows(&rows), before);
    }
}

#[test]
fn many_writers_wait_for_each_other_instead_of_failing() {
    let bed = Bed::loaded(Schema::Sysbench);
    let result = bed
        .measure(bed.order(workload(Kind::OltpReadWrite), 8))
        .unwrap();
    assert_eq!(result.errors(), 0, "{:?}", result.operations);
    assert_eq!(result.threads, 8);
}

#[test]
fn a_run_whose_writes_all_fail_ends_at_its_time() {
    let mut bed = Bed::loaded(Schema::Ycsb);
    bed.pragmas.push(("busy_timeout".into(), "0".into()));
    let holder = Connection::open(bed.path()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let result = bed.measure(bed.order(workload(Kind::YcsbA), 2)).unwrap();
    let [read, update] = &result.operations[..] else {
        panic!()
    };
    assert!(update.errors["busy"] > 0 && update.latency.count() == 0);
    assert!(read.errors.is_empty() && read.latency.count() > 0);
}

#[test]
fn threads_that_wait_all_through_the_window_are_in_the_latencies() {
    let bed = Bed::loaded(Schema::Sysbench);
    let holder = Connection::open(bed.path()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut order = bed.order(workload(Kind::OltpInsert), 2);
    order.warmup = assay::units::Duration::default();
    // The lock is let go when the window's only second is over.
    let mut release = |progress| {
        if let Progress::Second { .. } = progress {
            holder.execute_batch("COMMIT").unwrap();
        }
    };
    run(&bed.job(Work::Run(order), 2), &mut release).unwrap();
    let result = read(&bed.output());
    assert_eq!((result.count(), result.late(), result.errors()), (0, 2, 0));
    assert_eq!(result.idle_threads, 2);
    assert_eq!(result.all().count(), 2);
}

#[test]
fn one_thread_can_have_the_file_to_itself() {
    let mut bed = Bed::loaded(Schema::Sysbench);
    let exclusive = ("locking_mode".into(), "exclusive".into());
    bed.pragmas.insert(0, exclusive);
    let result = bed
        .measure(bed.order(workload(Kind::OltpReadWrite), 1))
        .unwrap();
    assert!(result.errors() == 0 && result.count() > 0);
}

#[test]
fn a_full_disk_ends_the_run_and_is_named() {
    let mut bed = Bed::loaded(Schema::Sysbench);
    let pages = bed.number("PRAGMA page_count");
    bed.pragmas
        .push(("max_page_count".into(), pages.to_string()));
    let mut order = bed.order(workload(Kind::OltpInsert), 2);
    order.duration = assay::units::Duration::from_secs(3600);
    let error = bed.measure(order).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`transaction` failed in a way that ends the run (full)"
    );
}

#[test]
fn a_file_that_is_no_database_is_named_before_the_load() {
    let bed = Bed::new();
    std::fs::write(
        bed.path(),
        "no database at all, but long enough to be looked at".repeat(40),
    )
    .unwrap();
    let error = bed
        .measure(bed.order(workload(Kind::YcsbA), 1))
        .unwrap_err();
    assert!(matches!(error, LoadError::Connect(_)), "{error:?}");
}

#[test]
fn pragmas_are_set_in_order_and_refused_when_unknown() {
    let mut bed = Bed::loaded(Schema::Ycsb);
    bed.pragmas = vec![("jurnal_mode".into(), "wal".into())];
    let error = bed
        .measure(bed.order(workload(Kind::YcsbA), 1))
        .unwrap_err();
    let LoadError::Connect(failure) = error else {
        panic!("{error:?}")
    };
    assert_eq!(failure.message, "SQLite knows no pragma `jurnal_mode`");
}

#[test]
fn intervals_add_up_to_the_histograms() {
    let bed = Bed::loaded(Schema::Ycsb);
    let mut order = bed.order(workload(Kind::YcsbA), 2);
    order.duration = assay::units::Duration(Duration::from_millis(1100));
    let mut seconds = Vec::new();
    run(&bed.job(Work::Run(order), 3), &mut |p| seconds.push(p)).unwrap();
    let result = read(&bed.output());
    let sum = |name: &str| -> u64 {
        let mine = result.intervals.iter().filter(|i| i.operation == name);
        mine.filter(|i| i.phase == Phase::Measure)
            .map(|i| i.count)
            .sum()
    };
    for operation in &result.operations {
        assert_eq!(sum(&operation.name), operation.latency.count());
    }
    assert_eq!(sum("all"), result.count());
    // One second of warm-up, two of the window; each with a line for both operations and one for all.
    assert_eq!((seconds.len(), result.intervals.len()), (3, 9));
    assert!((result.window_s - 1.1).abs() < 1e-9);
    assert!(result.client_cpu_s.is_some());
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let bed = Bed::loaded(Schema::Sysbench);
    let mut order = bed.order(workload(Kind::OltpPointSelect), 3);
    order.rate = Some(500.0);
    order.duration = assay::units::Duration(Duration::from_millis(500));
    let result = bed.measure(order).unwrap();
    // 250 are due in the window. Up to 25 of the warm-up may be made up for in it, and on a busy machine some of the last come
    // too late.
    assert!((150..=276).contains(&result.count()), "{}", result.count());
    assert!(result.count() + result.late() + result.unstarted >= 250);
}
