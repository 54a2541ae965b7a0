//! Users with rights, with some, and with none.

use super::user::User;
use crate::support::lab::{Lab, LabHost};

/// What a user is told whose work on a host is to be root's.
fn told(user: &User, host: &LabHost, login: &str, rule: &str) -> super::user::Said {
    host.run(&format!(
        "printf '%b' '{rule}' >/etc/sudoers.d/test && visudo -cqf /etc/sudoers.d/test"
    ));
    let pin = host.fingerprint();
    let more = format!(", user: {login}, become: true, host_key: \"{pin}\"");
    user.inventory(&[("db1", host, &more)]);
    let said = user.runs(&["hosts", "exec", "-i", "hosts.yaml", "--", "id", "-un"]);
    host.run("rm /etc/sudoers.d/test");
    said
}

#[test]
fn whoever_may_do_everything_with_sudo_works_as_root() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    let said = told(&user, &host, "assay", "");
    assert_eq!(said.code, Some(0), "{said:?}");
    said.names(&["db1", "root"]);
}

#[test]
fn whoever_becomes_another_user_works_as_that_one_although_homes_are_closed() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    host.run("chmod 700 /home/assay");
    let pin = host.fingerprint();
    let directory = user.directory();
    host.run(&format!("mkdir -p {directory} && chown guest {directory}"));
    let more = format!(", user: assay, become: guest, host_key: \"{pin}\"");
    user.inventory(&[("db1", &host, &more)]);
    let said = user.runs(&["hosts", "exec", "-i", "hosts.yaml", "--", "id", "-un"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    said.names(&["db1", "guest"]);
}

#[test]
fn each_refusal_of_sudo_has_a_text_and_a_hint_of_its_own() {
    let Some(lab) = Lab::shared() else { return };
    let host = lab.take_host();
    let user = User::new();
    let allow = "allow the user in `/etc/sudoers.d/`, or remove `become`";
    for (rule, words) in [
        (
            "",
            [
                "sudo does not allow it: Sorry, user guest may not run sudo on",
                allow,
            ],
        ),
        (
            "guest ALL=(ALL) NOPASSWD: /bin/true\\n",
            [
                "sudo does not allow it: the user may run other commands",
                allow,
            ],
        ),
        (
            "guest ALL=(ALL) NOPASSWD: ALL, !ALL\\n",
            [
                "sudo does not allow it: Sorry, user guest is not allowed to execute",
                allow,
            ],
        ),
        (
            "guest ALL=(ALL) ALL\\n",
            ["sudo wants a password there", "`NOPASSWD:` for the user"],
        ),
        (
            "Defaults:guest requiretty\\nguest ALL=(ALL) NOPASSWD: ALL\\n",
            [
                "sudo wants a terminal there",
                "remove `requiretty` for the user",
            ],
        ),
    ] {
        let said = told(&user, &host, "guest", rule);
        assert_eq!(said.code, Some(3), "{rule}: {said:?}");
        said.names(&["cannot connect to `db1`", words[0], "hint:", words[1]]);
        assert_eq!(said.errors.matches("hint:").count(), 1, "{said:?}");
    }
}
