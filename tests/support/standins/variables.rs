//! TiDB's own variables: which a version knows, their defaults, and the values that they take.

use crate::release::Release;

/// A variable: its name, the version that brought it (and a default of its own for later ones), and its default.
/// Of several lines on one name the last that holds counts.
const VARIABLES: &[(&str, &str, &str)] = &[
    ("tidb_allow_batch_cop", "", "1"),
    ("tidb_allow_mpp", "5.0", "ON"),
    ("tidb_analyze_version", "5.1", "1"),
    ("tidb_analyze_version", "5.3", "2"),
    ("tidb_auto_analyze_end_time", "", "23:59 +0000"),
    ("tidb_auto_analyze_ratio", "", "0.5"),
    ("tidb_auto_analyze_start_time", "", "00:00 +0000"),
    ("tidb_backoff_weight", "", "2"),
    ("tidb_build_stats_concurrency", "", "4"),
    ("tidb_checksum_table_concurrency", "", "4"),
    ("tidb_committer_concurrency", "6.1", "128"),
    ("tidb_constraint_check_in_place", "", "OFF"),
    ("tidb_constraint_check_in_place_pessimistic", "6.3", "ON"),
    ("tidb_cost_model_version", "6.2", "1"),
    ("tidb_cost_model_version", "6.5", "2"),
    ("tidb_ddl_enable_fast_reorg", "6.3", "OFF"),
    ("tidb_ddl_enable_fast_reorg", "6.5", "ON"),
    ("tidb_ddl_error_count_limit", "", "512"),
    ("tidb_ddl_reorg_batch_size", "", "256"),
    ("tidb_ddl_reorg_worker_cnt", "", "4"),
    ("tidb_disable_txn_auto_retry", "", "ON"),
    ("tidb_distsql_scan_concurrency", "", "15"),
    ("tidb_enable_1pc", "5.0", "ON"),
    ("tidb_enable_amend_pessimistic_txn", "4.0.7", "OFF"),
    ("tidb_enable_analyze_snapshot", "6.2", "OFF"),
    ("tidb_enable_async_commit", "5.0", "ON"),
    ("tidb_enable_auto_analyze", "6.1", "ON"),
    ("tidb_enable_chunk_rpc", "4.0", "ON"),
    ("tidb_enable_clustered_index", "5.0", "INT_ONLY"),
    ("tidb_enable_clustered_index", "6.5", "ON"),
    ("tidb_enable_collect_execution_info", "4.0", "ON"),
    ("tidb_enable_index_merge", "", "OFF"),
    ("tidb_enable_index_merge", "5.4", "ON"),
    ("tidb_enable_inl_join_inner_multi_pattern", "7.0", "OFF"),
    ("tidb_enable_instance_plan_cache", "8.4", "OFF"),
    ("tidb_enable_non_prepared_plan_cache", "6.6", "OFF"),
    ("tidb_enable_noop_functions", "4.0", "OFF"),
    ("tidb_enable_paging", "5.4", "OFF"),
    ("tidb_enable_paging", "6.2", "ON"),
    ("tidb_enable_parallel_apply", "5.0", "OFF"),
    ("tidb_enable_prepared_plan_cache", "6.1", "ON"),
    (
        "tidb_enable_prepared_plan_cache_memory_monitor",
        "6.4",
        "ON",
    ),
    ("tidb_enable_rate_limit_action", "", "ON"),
    ("tidb_enable_resource_control", "6.6", "OFF"),
    ("tidb_enable_resource_control", "7.0", "ON"),
    ("tidb_enable_slow_log", "", "ON"),
    ("tidb_enable_stmt_summary", "4.0", "ON"),
    ("tidb_enable_table_partition", "", "ON"),
    ("tidb_enable_telemetry", "4.0.2", "ON"),
    ("tidb_enable_telemetry", "6.6", "OFF"),
    ("tidb_enable_top_sql", "5.4", "OFF"),
    ("tidb_enable_vectorized_expression", "", "ON"),
    ("tidb_enable_window_function", "", "ON"),
    ("tidb_executor_concurrency", "5.0", "5"),
    ("tidb_expensive_query_time_threshold", "", "60"),
    ("tidb_gc_concurrency", "5.0", "-1"),
    ("tidb_gc_enable", "5.0", "ON"),
    ("tidb_gc_life_time", "5.0", "10m0s"),
    ("tidb_gc_run_interval", "5.0", "10m0s"),
    ("tidb_gc_scan_lock_mode", "5.0", "LEGACY"),
    ("tidb_general_log", "", "OFF"),
    ("tidb_guarantee_linearizability", "5.0", "ON"),
    ("tidb_hash_join_concurrency", "", "-1"),
    ("tidb_hashagg_final_concurrency", "", "4"),
    ("tidb_hashagg_final_concurrency", "5.0", "-1"),
    ("tidb_hashagg_partial_concurrency", "", "4"),
    ("tidb_hashagg_partial_concurrency", "5.0", "-1"),
    ("tidb_index_join_batch_size", "", "25000"),
    ("tidb_index_lookup_concurrency", "", "-1"),
    ("tidb_index_lookup_join_concurrency", "", "-1"),
    ("tidb_index_lookup_size", "", "20000"),
    ("tidb_index_serial_scan_concurrency", "", "1"),
    ("tidb_init_chunk_size", "", "32"),
    ("tidb_isolation_read_engines", "4.0", "tikv,tiflash,tidb"),
    ("tidb_max_chunk_size", "", "1024"),
    ("tidb_mem_oom_action", "6.1", "CANCEL"),
    ("tidb_mem_quota_query", "", "1073741824"),
    ("tidb_memory_usage_alarm_ratio", "5.1", "0.8"),
    ("tidb_metric_query_step", "4.0", "60"),
    ("tidb_multi_statement_mode", "4.0.11", "OFF"),
    ("tidb_opt_agg_push_down", "", "OFF"),
    ("tidb_opt_correlation_threshold", "", "0.9"),
    ("tidb_opt_insubq_to_join_and_agg", "", "ON"),
    ("tidb_pessimistic_txn_fair_locking", "7.0", "ON"),
    (
        "tidb_prefer_broadcast_join_by_exchange_data_size",
        "7.1",
        "OFF",
    ),
    ("tidb_prepared_plan_cache_memory_guard_ratio", "6.1", "0.1"),
    ("tidb_prepared_plan_cache_size", "6.1", "100"),
    ("tidb_projection_concurrency", "", "-1"),
    ("tidb_rc_read_check_ts", "6.0", "OFF"),
    ("tidb_rc_write_check_ts", "6.3", "OFF"),
    ("tidb_read_staleness", "5.4", "0"),
    ("tidb_replica_read", "4.0", "leader"),
    ("tidb_retry_limit", "", "10"),
    ("tidb_row_format_version", "", "2"),
    ("tidb_scatter_region", "", "OFF"),
    ("tidb_server_memory_limit", "6.4", "80%"),
    ("tidb_server_memory_limit_gc_trigger", "6.4", "70%"),
    ("tidb_session_plan_cache_size", "7.1", "100"),
    ("tidb_skip_utf8_check", "", "OFF"),
    ("tidb_slow_log_threshold", "", "300"),
    ("tidb_stats_load_sync_wait", "5.4", "0"),
    ("tidb_stats_load_sync_wait", "6.0", "100"),
    ("tidb_stmt_summary_history_size", "4.0", "24"),
    ("tidb_stmt_summary_max_sql_length", "4.0", "4096"),
    ("tidb_stmt_summary_max_stmt_count", "4.0", "3000"),
    ("tidb_stmt_summary_refresh_interval", "4.0", "1800"),
    ("tidb_store_limit", "4.0", "0"),
    ("tidb_streamagg_concurrency", "5.0", "1"),
    ("tidb_super_read_only", "5.3", "OFF"),
    ("tidb_sysdate_is_now", "6.0", "OFF"),
    ("tidb_tso_client_batch_max_wait_time", "5.3", "0"),
    ("tidb_txn_assertion_level", "6.0", "FAST"),
    ("tidb_txn_mode", "", "pessimistic"),
    ("tidb_wait_split_region_finish", "", "ON"),
    ("tidb_wait_split_region_timeout", "", "300"),
    ("tidb_window_concurrency", "4.0", "-1"),
];

/// Names and defaults of the variables that a version knows.
pub(crate) fn known(release: &Release) -> impl Iterator<Item = (&'static str, &'static str)> {
    let here = VARIABLES
        .iter()
        .filter(|(_, since, _)| release.since(since))
        .map(|(name, _, default)| (*name, *default));
    let mut last: std::collections::BTreeMap<&str, &str> = std::collections::BTreeMap::new();
    last.extend(here);
    last.into_iter()
}

/// The default of a variable; `None` where the version does not know it.
pub(crate) fn default(release: &Release, name: &str) -> Option<&'static str> {
    known(release)
        .find(|(known, _)| *known == name)
        .map(|(_, default)| default)
}

/// A value as it is kept: switches become `ON` and `OFF`. The error is TiDB's.
pub(crate) fn normal(name: &str, default: &str, value: &str) -> Result<String, (u16, String)> {
    let wrong = || {
        (
            1231,
            format!("Variable '{name}' can't be set to the value of '{value}'"),
        )
    };
    // This one was a switch and took three values later.
    if name == "tidb_enable_clustered_index" && value.eq_ignore_ascii_case("INT_ONLY") {
        return Ok("INT_ONLY".to_owned());
    }
    if matches!(default, "ON" | "OFF" | "INT_ONLY") {
        return match value.to_ascii_uppercase().as_str() {
            "ON" | "1" | "TRUE" => Ok("ON".to_owned()),
            "OFF" | "0" | "FALSE" => Ok("OFF".to_owned()),
            _ => Err(wrong()),
        };
    }
    if default.parse::<i64>().is_ok() && value.parse::<i64>().is_err() {
        return Err((
            1232,
            format!("Incorrect argument type to variable '{name}'"),
        ));
    }
    Ok(value.to_owned())
}
