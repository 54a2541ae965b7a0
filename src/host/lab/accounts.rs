//! The accounts of a host: the machine's own, with two more for trials of rights. Pure functions of the files' texts.

/// May do everything with `sudo`, without a password.
pub(super) const ADMIN: &str = "assay";
/// May do nothing with `sudo`.
pub(super) const GUEST: &str = "guest";
/// Where free numbers are looked for: above those that Debian gives, below those of `nobody`.
const NUMBERS: std::ops::Range<u32> = 39_000..39_100;

/// An account to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: &'static str,
    pub(super) number: u32,
}

/// Both accounts, with numbers that neither `passwd` nor `group` has.
pub(super) fn choose(passwd: &str, group: &str) -> Vec<Account> {
    let lines = || passwd.lines().chain(group.lines());
    let is_taken = |number: &u32| lines().any(|l| l.split(':').nth(2) == Some(&number.to_string()));
    let free = NUMBERS.filter(|number| !is_taken(number));
    let names = [ADMIN, GUEST].into_iter();
    names
        .zip(free)
        .map(|(name, number)| Account { name, number })
        .collect()
}

/// A file of lines that begin with a name, with these instead of those by the same names.
fn with(text: &str, accounts: &[Account], line: impl Fn(&Account) -> String) -> String {
    let name = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
    let is_other = |line: &&str| accounts.iter().all(|a| a.name != name(line));
    let kept = text.lines().filter(is_other).map(str::to_owned);
    let mut out = String::new();
    for line in kept.chain(accounts.iter().map(line)) {
        out.push_str(&line);
        out.push('\n');
    }
    out
}

pub(super) fn passwd(text: &str, accounts: &[Account]) -> String {
    with(text, accounts, |Account { name, number }| {
        format!("{name}:x:{number}:{number}::/home/{name}:/bin/bash")
    })
}

pub(super) fn group(text: &str, accounts: &[Account]) -> String {
    with(text, accounts, |Account { name, number }| {
        format!("{name}:x:{number}:")
    })
}

/// Nobody has a password: neither the machine's people, whose hashes stay where they are, nor the new ones.
pub(super) fn shadow(text: &str, accounts: &[Account]) -> String {
    let locked = text.lines().map(|line| {
        let mut fields: Vec<&str> = line.split(':').collect();
        if let Some(hash) = fields.get_mut(1) {
            *hash = "*";
        }
        fields.join(":") + "\n"
    });
    with(&locked.collect::<String>(), accounts, |account| {
        format!("{}:*:19000:0:99999:7:::", account.name)
    })
}

/// What `sudo` allows.
pub(super) fn sudoers() -> String {
    format!(
        "Defaults env_reset\n\
         Defaults secure_path=\"{}\"\n\
         root ALL=(ALL:ALL) ALL\n\
         {ADMIN} ALL=(ALL:ALL) NOPASSWD: ALL\n\
         @includedir /etc/sudoers.d\n",
        super::tool::PATH
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nguest:x:1000:1000::/home/g:/bin/sh\nx:x:39000:1::/:/bin/sh\n";

    #[test]
    fn two_accounts_are_added_with_numbers_that_nobody_has() {
        let accounts = choose(PASSWD, "y:x:39001:\n");
        let numbers: Vec<u32> = accounts.iter().map(|a| a.number).collect();
        assert_eq!(numbers, [39_002, 39_003]);
        assert_eq!(
            passwd(PASSWD, &accounts),
            "root:x:0:0:root:/root:/bin/bash\nx:x:39000:1::/:/bin/sh\n\
             assay:x:39002:39002::/home/assay:/bin/bash\nguest:x:39003:39003::/home/guest:/bin/bash\n"
        );
        assert!(group("", &accounts).contains("guest:x:39003:\n"));
    }

    #[test]
    fn no_hash_of_a_password_reaches_a_host() {
        let text = "root:$y$j9T$hash:19000:0:99999:7:::\nguest:$6$other:1::::::\n";
        let shadow = shadow(text, &choose("", ""));
        assert!(!shadow.contains('$'), "{shadow}");
        assert!(shadow.starts_with("root:*:19000:0:99999:7:::\n"));
        assert_eq!(shadow.matches("guest:").count(), 1);
    }
}
