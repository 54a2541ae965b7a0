use std::sync::LazyLock;

use serde_json::json;

use super::*;
use crate::pack::settings::flatten;

fn catalogue() -> &'static Keys {
    static KEYS: LazyLock<Keys> =
        LazyLock::new(|| Keys::parse(include_str!("../../../templates/tidb/keys.yaml")).unwrap());
    &KEYS
}

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

/// All findings of settings.
fn findings(
    keys: &Keys,
    component: &str,
    at: &str,
    cpus: Option<u32>,
    settings: &Value,
) -> Vec<Finding> {
    let others = flatten(settings).unwrap();
    let version = version(at);
    let context = Context {
        version: &version,
        cpus,
        memory: Some(32 << 30),
        others: &others,
    };
    let each = others.iter();
    each.flat_map(|(key, value)| keys.check(component, key, value, &context))
        .collect()
}

/// `error: message (help)` of each finding.
fn said(component: &str, at: &str, cpus: Option<u32>, settings: &Value) -> Vec<String> {
    let found = findings(catalogue(), component, at, cpus, settings);
    found.iter().map(line).collect()
}

fn line(finding: &Finding) -> String {
    let word = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let help = finding.help.as_ref().map(|help| format!(" ({help})"));
    format!("{word}: {}{}", finding.message, help.unwrap_or_default())
}

fn severities(component: &str, at: &str, settings: &Value) -> Vec<Severity> {
    let found = findings(catalogue(), component, at, Some(16), settings);
    found.iter().map(|finding| finding.severity).collect()
}

/// What the published comparison of v5.4 with v6.1 sets for TiKV.
fn tikv() -> Value {
    json!({
        "storage.scheduler-worker-pool-size": 5,
        "raftstore": {"store-pool-size": 3, "apply-pool-size": 3},
        "rocksdb.max-background-jobs": 8,
        "raftdb": {"max-background-jobs": 4, "allow-concurrent-memtable-write": true},
        "server.grpc-concurrency": 6,
        "pessimistic-txn.pipelined": true,
        "readpool.unified": {"min-thread-count": 5, "max-thread-count": 20},
    })
}

/// The same for TiDB.
fn tidb() -> Value {
    json!({
        "log.level": "error",
        "performance": {"max-procs": 20, "run-auto-analyze": false},
        "prepared-plan-cache.enabled": true,
        "tikv-client.max-batch-wait-time": 2_000_000,
        "stmt-summary.max-stmt-count": 100,
    })
}

#[test]
fn the_tunables_of_5_4_fit_5_4() {
    assert_eq!(
        said("tikv", "v5.4.3", Some(16), &tikv()),
        Vec::<String>::new()
    );
    assert_eq!(
        said("tidb", "v5.4.3", Some(16), &tidb()),
        Vec::<String>::new()
    );
}

#[test]
fn every_trap_of_the_tunables_of_5_4_is_found_for_6_1() {
    assert_eq!(
        said("tikv", "v6.1.2", Some(16), &tikv()),
        [
            "warning: tikv v6.1.2 ignores `raftdb.allow-concurrent-memtable-write`: its raft log is in raft-engine",
            "warning: tikv v6.1.2 ignores `raftdb.max-background-jobs`: its raft log is in raft-engine",
            "error: `readpool.unified.max-thread-count` is 20, tikv v6.1.2 takes at most 16 (max(4, 16 CPUs)) and \
             refuses to start",
        ]
    );
    assert_eq!(
        said("tidb", "v6.1.2", Some(16), &tidb()),
        [
            "warning: `performance.run-auto-analyze` is no key of tidb v6.1.2: it is the variable \
             `tidb_enable_auto_analyze` since v6.1.0 (tidb takes it and does nothing with it)",
            "warning: `prepared-plan-cache.enabled` is no key of tidb v6.1.2: it is the variable \
             `tidb_enable_prepared_plan_cache` since v6.1.0 (tidb takes it and does nothing with it)",
            "warning: `stmt-summary.max-stmt-count` is no key of tidb v6.1.2: it is the variable \
             `tidb_stmt_summary_max_stmt_count` since v6.0.0 (tidb takes it and does nothing with it)",
        ]
    );
}

#[test]
fn a_raft_log_that_is_kept_in_raftdb_is_tuned_there() {
    let settings = json!({"raft-engine.enable": false, "raftdb.max-background-jobs": 4});
    assert!(said("tikv", "v6.1.2", Some(16), &settings).is_empty());
    let settings = json!({"raft-engine.enable": true, "raftdb.max-background-jobs": 4});
    assert_eq!(said("tikv", "v5.4.3", Some(16), &settings).len(), 1);
    let settings = json!({"raft-engine": {"memory-limit": "1GB"}});
    assert!(said("tikv", "v6.1.2", Some(16), &settings).is_empty());
    let settings = json!({"raft-engine": {"target-file-size": "1GB"}});
    assert_eq!(said("tikv", "v5.4.3", Some(16), &settings).len(), 1);
}

#[test]
fn a_limit_over_cpus_is_judged_only_where_they_are_known() {
    let settings = json!({"readpool.unified": {"min-thread-count": 5, "max-thread-count": 20}});
    let cases = [
        ("v5.4.3", Some(4), 0),
        ("v6.0.0", Some(16), 1),
        ("v6.0.0", Some(20), 0),
        ("v6.1.7", Some(16), 1),
        ("v6.5.0", Some(16), 1),
        ("v6.5.1", Some(16), 0),
        ("v6.5.1", Some(1), 1),
        ("v6.6.0", Some(2), 0),
        ("v8.5.0", Some(16), 0),
        ("nightly", Some(1), 1),
        ("v6.1.2", None, 0),
    ];
    for (at, cpus, count) in cases {
        let found = said("tikv", at, cpus, &settings);
        assert_eq!(found.len(), count, "{at} on {cpus:?} CPUs: {found:?}");
    }
    let fixed = json!({"raftstore.store-max-batch-size": 20000});
    assert_eq!(
        said("tikv", "v6.1.2", None, &fixed),
        [
            "error: `raftstore.store-max-batch-size` is 20000, tikv v6.1.2 takes at most 10240 and refuses to start"
        ]
    );
    assert!(said("tikv", "v5.4.3", None, &fixed).is_empty());
}

#[test]
fn limits_hold_from_below_by_other_keys_and_by_memory() {
    let cases = [
        (
            json!({"readpool.unified": {"min-thread-count": 5, "max-thread-count": 4}}),
            "`readpool.unified.max-thread-count` is 4, tikv v6.1.2 takes at least 5 \
             (`readpool.unified.min-thread-count`) and refuses to start",
        ),
        (
            json!({"storage.scheduler-worker-pool-size": 0}),
            "`storage.scheduler-worker-pool-size` is 0, tikv v6.1.2 takes at least 1 and refuses to start",
        ),
        (
            json!({"raftstore.raft-entry-max-size": "4GB"}),
            "`raftstore.raft-entry-max-size` is 4GB, tikv v6.1.2 takes at most 3 GiB and refuses to start",
        ),
        (
            json!({"memory-usage-limit": "40GB"}),
            "`memory-usage-limit` is 40GB, tikv v6.1.2 takes at most 32 GiB (the memory) and refuses to start",
        ),
        (
            json!({"raftstore.store-pool-size": 200}),
            "`raftstore.store-pool-size` is 200, tikv v6.1.2 takes at most 160 (10 * 16 CPUs) and refuses to start",
        ),
    ];
    for (settings, message) in cases {
        assert_eq!(
            said("tikv", "v6.1.2", Some(16), &settings),
            [format!("error: {message}")]
        );
    }
}

#[test]
fn a_value_of_another_type_is_an_error() {
    let settings =
        json!({"readpool.unified.max-thread-count": "20", "storage.block-cache.capacity": "a lot"});
    assert_eq!(
        said("tikv", "v6.1.2", Some(32), &settings),
        [
            "error: `readpool.unified.max-thread-count` is \"20\", tikv v6.1.2 wants a whole number",
            "error: `storage.block-cache.capacity` is \"a lot\", tikv v6.1.2 wants a size, such as 512MB",
        ]
    );
}

/// The tables of what each version has: component, key, versions with it, versions without.
#[test]
fn a_key_is_there_in_the_versions_that_have_it() {
    let cases = [
        ("tidb", "performance.max-procs", "v4.0.0 v5.4.3 v8.5.0", ""),
        (
            "tidb",
            "tikv-client.max-batch-wait-time",
            "v4.0.0 v6.1.2 v8.2.0",
            "",
        ),
        (
            "tidb",
            "prepared-plan-cache.enabled",
            "v4.0.0 v6.0.0",
            "v6.1.0 v8.5.0",
        ),
        (
            "tidb",
            "stmt-summary.max-stmt-count",
            "v4.0.0 v5.4.3",
            "v6.0.0",
        ),
        ("tidb", "mem-quota-query", "v4.0.0 v6.0.0", "v6.1.0"),
        (
            "tidb",
            "performance.committer-concurrency",
            "v6.0.0",
            "v6.1.0",
        ),
        (
            "tidb",
            "performance.run-auto-analyze",
            "v4.0.0 v6.0.0",
            "v6.1.0",
        ),
        (
            "tidb",
            "performance.feedback-probability",
            "v6.1.2",
            "v6.2.0",
        ),
        (
            "tidb",
            "instance.tidb_slow_log_threshold",
            "v6.1.0 v8.5.0",
            "v6.0.0",
        ),
        ("tidb", "temp-dir", "v6.3.0 v8.5.0", "v6.1.2"),
        (
            "tidb",
            "initialize-sql-file",
            "v6.5.1 v6.6.0 v8.5.0",
            "v6.5.0",
        ),
        (
            "tidb",
            "performance.force-init-stats",
            "v6.5.7 v7.1.0",
            "v6.5.6 v6.6.0 v7.0.0",
        ),
        (
            "tidb",
            "performance.lite-init-stats",
            "v7.1.0",
            "v7.0.0 v6.5.7",
        ),
        (
            "tidb",
            "pessimistic-txn.pessimistic-auto-commit",
            "v6.0.0",
            "v5.4.3",
        ),
        ("tikv", "raftstore.cmd-batch", "v5.2.0 v8.5.0", "v5.1.0"),
        (
            "tikv",
            "readpool.unified.auto-adjust-pool-size",
            "v6.3.0",
            "v6.1.2",
        ),
        ("tikv", "server.enable-request-batch", "v4.0.0 v8.5.0", ""),
        ("tikv", "pessimistic-txn.in-memory", "v5.4.0", "v5.3.0"),
        ("tikv", "storage.flow-control.enable", "v5.2.0", "v5.1.0"),
        (
            "tikv",
            "storage.io-rate-limit.max-bytes-per-sec",
            "v5.1.0",
            "v5.0.0",
        ),
        ("tikv", "memory-usage-limit", "v5.1.0", "v5.0.0"),
        ("tikv", "storage.api-version", "v5.3.0 v6.1.0", "v5.2.0"),
        (
            "tikv",
            "storage.enable-async-apply-prewrite",
            "v5.0.0",
            "v4.0.0",
        ),
        ("tikv", "raft-engine.enable", "v5.0.0 v6.1.2", "v4.0.0"),
        (
            "tikv",
            "server.snap-io-max-bytes-per-sec",
            "v7.0.0",
            "v6.6.0",
        ),
        ("tikv", "log.level", "v5.4.0", "v5.3.0"),
        (
            "tikv",
            "storage.background-error-recovery-window",
            "v6.1.0",
            "v6.0.0",
        ),
        ("tikv", "storage.engine", "v6.6.0", "v6.5.0"),
        ("tikv", "resource-control.enabled", "v7.0.0", "v6.6.0"),
        (
            "tikv",
            "raftstore.max-apply-unpersisted-log-limit",
            "v8.1.0",
            "v7.6.0",
        ),
        (
            "pd",
            "schedule.hot-regions-write-interval",
            "v5.4.0",
            "v5.2.0",
        ),
    ];
    let keys = catalogue();
    for (component, key, with, without) in cases {
        for at in with.split_whitespace() {
            assert!(is_there(keys, component, key, at), "{component} {key} {at}");
        }
        for at in without.split_whitespace() {
            assert!(
                !is_there(keys, component, key, at),
                "{component} {key} {at}"
            );
        }
    }
}

fn is_there(keys: &Keys, component: &str, key: &str, at: &str) -> bool {
    let value = match keys.kind(component, key).unwrap() {
        Kind::Bool => json!(true),
        Kind::Int | Kind::Float => json!(1),
        Kind::Size => json!("1MB"),
        Kind::Duration => json!("1s"),
        Kind::String | Kind::Any => json!("x"),
        Kind::List => json!([]),
        Kind::Map => json!({"a": "b"}),
    };
    let found = findings(keys, component, at, Some(64), &json!({ key: value }));
    !found
        .iter()
        .any(|finding| finding.message.contains("is no key of"))
}

#[test]
fn a_key_with_a_new_name_is_found_under_either() {
    assert_eq!(
        said(
            "tikv",
            "v7.1.0",
            None,
            &json!({"server.snap-max-write-bytes-per-sec": "100MB"})
        ),
        [
            "warning: `server.snap-max-write-bytes-per-sec` is called `server.snap-io-max-bytes-per-sec` in tikv v7.1.0, \
             since v7.0.0 (the old name still works)"
        ]
    );
    assert_eq!(
        said(
            "tikv",
            "v6.1.2",
            None,
            &json!({"server.snap-io-max-bytes-per-sec": "100MB"})
        ),
        [
            "error: `server.snap-io-max-bytes-per-sec` is no key of tikv v6.1.2: it came with v7.0.0 \
             (it was called `server.snap-max-write-bytes-per-sec` before)"
        ]
    );
    let both = json!({"log-level": "info", "log.level": "error"});
    assert_eq!(
        said("tikv", "v6.1.2", None, &both),
        [
            "warning: `log-level` is called `log.level` in tikv v6.1.2, since v5.4.0 \
             (`log.level` is given too, and takes its place)"
        ]
    );
}

#[test]
fn an_unknown_key_is_an_error_with_the_likely_one() {
    assert_eq!(
        said(
            "tikv",
            "v6.1.2",
            None,
            &json!({"readpool.unified.max-threads-count": 8})
        ),
        [
            "error: `readpool.unified.max-threads-count` is no key of tikv v6.1.2 \
             (did you mean `readpool.unified.max-thread-count`?)"
        ]
    );
    assert_eq!(
        said("tidb", "v6.1.2", None, &json!({"preformance.max-procs": 8})),
        [
            "error: `preformance.max-procs` is no key of tidb v6.1.2 (did you mean `performance.max-procs`?)"
        ]
    );
    assert_eq!(
        said("pd", "v6.1.2", None, &json!({"schedule": 1})),
        ["error: `schedule` is a section of pd v6.1.2, not a key"]
    );
}

#[test]
fn a_version_beyond_the_catalogue_and_an_incomplete_component_are_not_refused() {
    assert_eq!(
        severities("tikv", "v9.0.0", &json!({"storage.shiny": 1})),
        [Severity::Warning]
    );
    assert_eq!(
        severities("tikv", "nightly", &json!({"storage.shiny": 1})),
        [Severity::Warning]
    );
    assert_eq!(
        severities("tikv", "v8.5.0", &json!({"storage.shiny": 1})),
        [Severity::Error]
    );
    assert_eq!(
        severities("tiflash", "v8.5.0", &json!({"profiles.shiny": 1})),
        []
    );
    assert_eq!(
        severities("mariadb", "v11.4.0", &json!({"anything": 1})),
        []
    );
}

#[test]
fn any_key_may_stand_where_keys_are_free_and_families_have_each_their_keys() {
    let settings = json!({
        "server.labels": {"zone": "z1", "host": "h1"},
        "rocksdb": {"defaultcf": {"block-size": "32KB"}, "writecf.block-size": "32KB", "titan": {}},
        "raftdb.defaultcf.block-size": "64KB",
    });
    assert_eq!(
        said("tikv", "v5.4.3", None, &settings),
        Vec::<String>::new()
    );
    assert_eq!(
        said(
            "tikv",
            "v5.4.3",
            None,
            &json!({"rocksdb.shinycf.block-size": "32KB"})
        )
        .len(),
        1
    );
    assert!(
        said(
            "pd",
            "v6.1.2",
            None,
            &json!({"schedule.schedulers": [{"type": "hot-region"}]})
        )
        .is_empty()
    );
}

#[test]
fn threads_that_leave_the_unified_pool_or_have_none_are_told() {
    let alone = json!({"readpool.storage.normal-concurrency": 10});
    assert_eq!(
        said("tikv", "v6.1.2", None, &alone),
        [
            "warning: `readpool.storage.normal-concurrency` of tikv v6.1.2: without \
             `readpool.storage.use-unified-pool`, it takes these reads out of the unified pool"
        ]
    );
    assert!(said("tikv", "v4.0.16", None, &alone).is_empty());
    let unified = json!({"readpool.storage": {"use-unified-pool": true, "normal-concurrency": 10}});
    assert_eq!(
        said("tikv", "v6.1.2", None, &unified),
        [
            "warning: tikv v6.1.2 ignores `readpool.storage.normal-concurrency`: these reads go to the unified pool"
        ]
    );
    let apart = json!({"readpool.storage": {"use-unified-pool": false, "normal-concurrency": 10}});
    assert!(said("tikv", "v6.1.2", None, &apart).is_empty());
}

#[test]
fn variables_are_known_by_version_and_scope() {
    let keys = catalogue();
    let said = |name: &str, at: &str| -> Vec<String> {
        let found = keys.check_variable(name, &version(at));
        found.iter().map(line).collect()
    };
    let published = [
        "tidb_hashagg_final_concurrency",
        "tidb_hashagg_partial_concurrency",
        "tidb_enable_async_commit",
        "tidb_enable_1pc",
        "tidb_guarantee_linearizability",
        "tidb_enable_clustered_index",
        "tidb_gc_enable",
        "TIDB_ENABLE_1PC",
        "sql_mode",
    ];
    for name in published {
        for at in ["v5.4.3", "v6.1.2", "v8.5.0"] {
            assert_eq!(said(name, at), Vec::<String>::new(), "{name} {at}");
        }
    }
    assert_eq!(
        said("tidb_prepared_plan_cache_size", "v5.4.3"),
        ["error: tidb v5.4.3 has no variable `tidb_prepared_plan_cache_size`: it came with v6.1.0"]
    );
    assert_eq!(
        said("tidb_enable_1pcs", "v6.1.2"),
        ["error: tidb v6.1.2 has no variable `tidb_enable_1pcs` (did you mean `tidb_enable_1pc`?)"]
    );
    assert_eq!(
        said("innodb_flush_log_at_trx_commit", "v6.1.2"),
        [
            "warning: tidb v6.1.2 takes the variable `innodb_flush_log_at_trx_commit` and does nothing with it"
        ]
    );
    assert_eq!(
        said("last_insert_id", "v6.1.2"),
        ["error: the variable `last_insert_id` of tidb is of a session; it cannot be set for all"]
    );
    assert_eq!(keys.scope("tidb_slow_log_threshold"), Some(Scope::Instance));
    assert_eq!(keys.scope("tidb_enable_1pc"), Some(Scope::Global));
    assert_eq!(keys.variable_kind("tidb_enable_1pc"), Some(Kind::Bool));
}

#[test]
fn what_changed_between_two_versions_is_told_with_what_settles_it() {
    let keys = catalogue();
    let changes = keys.changes(&version("v5.4.3"), &version("v6.1.2"));
    assert!(changes.is_sorted_by_key(|change| change.at.clone()));
    let settles = |change: &Change| {
        let key = change.key.clone().or_else(|| change.variable.clone());
        format!("{} {} -> {}", key.unwrap(), change.from, change.to)
    };
    let told: Vec<String> = changes.iter().map(settles).collect();
    let wanted = [
        "new_collations_enabled_on_first_bootstrap false -> true",
        "raft-engine.enable false -> true",
        "tidb_enable_prepared_plan_cache off -> on",
        "tidb_prepared_plan_cache_size 1000 -> 100",
    ];
    for change in wanted {
        assert!(
            told.iter().any(|one| one == change),
            "{change} in {told:#?}"
        );
    }
    assert!(
        keys.changes(&version("v6.1.2"), &version("v6.1.2"))
            .is_empty()
    );
    assert!(
        keys.changes(&version("v6.1.2"), &version("v5.4.3"))
            .is_empty()
    );
}

#[test]
fn every_key_of_the_catalogue_has_names_that_exist() {
    let keys = catalogue();
    for (role, component) in &keys.0.components {
        for (key, entry) in &component.keys {
            assert!(
                !component.is_section(key),
                "{role}: {key} is a key and a section"
            );
            let found = match &entry.instead {
                None => true,
                Some(catalogue::Instead::Key(key)) => component.keys.contains_key(key),
                Some(catalogue::Instead::Variable(name)) => keys.0.variables.contains_key(name),
            };
            assert!(found, "{role}: {key} names what is not there");
        }
    }
    for change in &keys.0.changes {
        let component = change
            .component
            .as_ref()
            .map(|role| &keys.0.components[role]);
        let key = change
            .key
            .as_ref()
            .map(|key| component.unwrap().keys.contains_key(key));
        let variable = change
            .variable
            .as_ref()
            .map(|name| keys.0.variables.contains_key(name));
        assert_eq!(key.or(variable), Some(true), "{change:?}");
    }
}

#[test]
fn a_wrong_catalogue_is_refused_with_its_line() {
    let with = |key: &str| {
        format!("covers: \">=4.0\"\ncomponents:\n  tikv:\n    keys:\n      a.b: {key}\n")
    };
    let cases = [
        ("{type: number}", "number"),
        ("{type: int, since: later}", "`later` is no version"),
        (
            "{type: int, versions: \"~6\"}",
            "`~6` is no range of versions",
        ),
        ("{type: int, limits: [{max: 4 +}]}", "limit"),
        ("{type: int, sinse: \"6.1\"}", "sinse"),
        ("{type: int, instead: tidb_x}", "neither"),
        (
            "{type: int, renamed: {to: c.d, at: \"6.1\"}}",
            "`c.d`, which is no key",
        ),
    ];
    for (key, part) in cases {
        let error = Keys::parse(&with(key)).unwrap_err();
        assert_eq!(error.line, Some(5), "{key}: {error}");
        assert!(error.to_string().contains(part), "{key}: {error}");
    }
    let group = with("{type: int}").replace("a.b", "\"<cf>.b\"");
    let error = Keys::parse(&group).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 5: tikv: the key `<cf>.b` names no group"
    );
}
