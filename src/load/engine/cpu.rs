//! The CPU time of this process, of all its threads.

/// User and system time used so far, s, to the kernel's tick (10 ms); `None` where there is no `/proc`.
pub(super) fn used() -> Option<f64> {
    let ticks = ticks(&std::fs::read_to_string("/proc/self/stat").ok()?)?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Fields 14 and 15 of proc(5)'s stat. The command's name before them may hold spaces and parentheses.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut times = after_name.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_found_behind_any_name() {
        let stat = "17 (a) b (c) S 1 17 17 0 -1 4194560 900 0 3 0 250 31 0 0 20 0 4 0 100 0 0";
        assert_eq!(ticks(stat), Some(281));
        assert_eq!(ticks("17 (cut"), None);
    }
}
