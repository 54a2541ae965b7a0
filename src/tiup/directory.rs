//! Where an instance lies: TiUP's rules for directories that are relative or not written.

/// The directories of a topology's `global`, as written.
#[derive(Clone, Copy)]
pub(super) struct Globals<'a> {
    pub(super) user: &'a str,
    pub(super) deploy: &'a str,
    pub(super) data: &'a str,
    /// Empty where it is not written.
    pub(super) log: &'a str,
}

/// The directories of an instance, all absolute.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directories {
    pub(super) deploy: String,
    pub(super) data: String,
    pub(super) log: String,
}

/// What an instance says itself.
#[derive(Clone, Copy, Default)]
pub(super) struct Own<'a> {
    pub(super) deploy: Option<&'a str>,
    pub(super) data: Option<&'a str>,
    pub(super) log: Option<&'a str>,
}

impl Globals<'_> {
    /// The directories of the instance that `name`, such as `tikv-20160`, stands for.
    pub(super) fn directories(&self, name: &str, own: Own<'_>) -> Directories {
        let deploy = match own.deploy {
            Some(own) => self.at_home(own),
            None => self.at_home(&join(self.deploy, name)),
        };
        let below = |own: Option<&str>, global: &str| match own {
            Some(own) => under(&deploy, own),
            None if global.starts_with('/') => join(global, name),
            None => under(&deploy, global),
        };
        let log = if self.log.is_empty() { "log" } else { self.log };
        Directories {
            data: below(own.data, self.data),
            log: below(own.log, log),
            deploy,
        }
    }

    /// The directories of the exporters, whose relative data lies deeper.
    pub(super) fn exporters(&self, name: &str, own: Own<'_>) -> Directories {
        let relative = join(self.data, name);
        let data = own.data.unwrap_or(&relative);
        // TiUP keeps the directory of logs with that of the programs in front, which may be relative.
        let deploy = own
            .deploy
            .map_or_else(|| join(self.deploy, name), str::to_owned);
        let log = own.log.unwrap_or("log");
        let log = match log.strip_prefix(&*deploy) {
            Some(below) if !log.starts_with('/') => below.trim_start_matches('/'),
            _ => log,
        };
        let own = Own {
            data: Some(data),
            log: Some(log),
            ..own
        };
        self.directories(name, own)
    }

    /// A directory that is relative to the home of the user.
    pub(super) fn at_home(&self, directory: &str) -> String {
        under(&format!("/home/{}", self.user), directory)
    }
}

/// A directory, or several separated by commas, taken from `base` where they are relative.
fn under(base: &str, directories: &str) -> String {
    let each = directories.split(',').map(|directory| {
        let directory = directory.trim();
        if directory.starts_with('/') {
            clean(directory)
        } else {
            join(base, directory)
        }
    });
    each.collect::<Vec<_>>().join(",")
}

fn join(base: &str, below: &str) -> String {
    clean(&format!("{base}/{below}"))
}

/// The path without `.`, `..` and doubled slashes.
pub(super) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELATIVE: Globals<'_> = Globals {
        user: "tidb",
        deploy: "deploy",
        data: "data",
        log: "",
    };

    const ABSOLUTE: Globals<'_> = Globals {
        user: "tidb",
        deploy: "/deploy",
        data: "/data/",
        log: "/log",
    };

    fn directories(globals: &Globals<'_>, own: Own<'_>) -> [String; 3] {
        let found = globals.directories("tikv-20160", own);
        [found.deploy, found.data, found.log]
    }

    #[test]
    fn relative_directories_are_those_of_the_users_home_and_of_the_instance() {
        let home = "/home/tidb/deploy/tikv-20160";
        let own = Own::default();
        assert_eq!(
            directories(&RELATIVE, own),
            [
                home.to_owned(),
                format!("{home}/data"),
                format!("{home}/log")
            ]
        );
        let own = Own {
            deploy: Some("kv/./1"),
            data: Some("/ssd1/kv, d2"),
            log: Some("../logs"),
        };
        assert_eq!(
            directories(&RELATIVE, own),
            [
                "/home/tidb/kv/1",
                "/ssd1/kv,/home/tidb/kv/1/d2",
                "/home/tidb/kv/logs"
            ]
        );
    }

    #[test]
    fn absolute_directories_hold_one_for_each_instance() {
        assert_eq!(
            directories(&ABSOLUTE, Own::default()),
            ["/deploy/tikv-20160", "/data/tikv-20160", "/log/tikv-20160"]
        );
        let own = Own {
            deploy: Some("/kv"),
            ..Own::default()
        };
        assert_eq!(
            directories(&ABSOLUTE, own),
            ["/kv", "/data/tikv-20160", "/log/tikv-20160"]
        );
    }

    #[test]
    fn exporters_log_beside_their_programs() {
        let found = ABSOLUTE.exporters("monitor-9100", Own::default());
        assert_eq!(
            [found.deploy, found.data, found.log],
            [
                "/deploy/monitor-9100",
                "/data/monitor-9100",
                "/deploy/monitor-9100/log"
            ]
        );
        let found = RELATIVE.exporters("monitor-9100", Own::default());
        assert_eq!(
            found.data,
            "/home/tidb/deploy/monitor-9100/data/monitor-9100"
        );
        let kept = Own {
            deploy: Some("deploy/monitor-9100"),
            data: Some("data/monitor-9100"),
            log: Some("deploy/monitor-9100/log"),
        };
        assert_eq!(RELATIVE.exporters("monitor-9100", kept), found);
    }
}
