//! How sysbench is told of the servers: arguments for what anyone may see, files for what nobody may.

use std::collections::{BTreeMap, BTreeSet};

use super::options::{Refusal, Series};
use crate::plan::{Address, Protocol, SqlTarget, Tls, ToolFile};

/// The file that the password stands in.
const CONFIG: &str = "sysbench.cnf";
/// The names of the certificates' files: 1.0 takes no others.
const CA: &str = "cacert.pem";
const CERTIFICATE: &str = "client-cert.pem";
const KEY: &str = "client-key.pem";
/// What sysbench reads of a line in a config file, with its end and what ends a text in C, bytes.
const LINE: usize = 256;

/// The arguments that connect.
pub(super) fn args(sql: &SqlTarget, series: Series) -> Result<Vec<String>, Refusal> {
    let mut args = Vec::new();
    if sql.password.is_some() {
        args.push(format!("--config-file={CONFIG}"));
    }
    let (driver, hosts, ports) = match sql.protocol {
        Protocol::Mysql => {
            let (hosts, ports) = lists(&sql.addresses)?;
            ("mysql", hosts, ports)
        }
        Protocol::Postgres => {
            let address = one(&sql.addresses)?;
            ("pgsql", address.host.clone(), address.port.to_string())
        }
    };
    args.push(format!("--db-driver={driver}"));
    args.push(format!("--{driver}-host={hosts}"));
    args.push(format!("--{driver}-port={ports}"));
    args.push(format!("--{driver}-user={}", sql.user));
    args.push(format!("--{driver}-db={}", sql.database));
    match sql.protocol {
        Protocol::Mysql => args.extend(mysql_tls(sql.tls.as_ref(), series)?),
        Protocol::Postgres if series == Series::New => {
            args.push(format!("--pgsql-sslmode={}", pgsql_mode(sql.tls.as_ref())));
        }
        Protocol::Postgres => {}
    }
    Ok(args)
}

/// Hosts and ports as MySQL's driver takes them: it connects to every port of every host.
fn lists(addresses: &[Address]) -> Result<(String, String), Refusal> {
    // As `localhost` the client library means its socket, whatever the port.
    let host = |a: &Address| match a.host.as_str() {
        "localhost" => "127.0.0.1".to_owned(),
        host => host.to_owned(),
    };
    let hosts: BTreeSet<String> = addresses.iter().map(host).collect();
    let ports: BTreeSet<u16> = addresses.iter().map(|a| a.port).collect();
    let in_order = |mut all: Vec<String>| {
        let mut seen = BTreeSet::new();
        all.retain(|one| seen.insert(one.clone()));
        all.join(",")
    };
    match (hosts.len(), ports.len()) {
        (0, _) => Err(Refusal::NoAddress),
        (1, _) | (_, 1) => Ok((
            in_order(addresses.iter().map(host).collect()),
            in_order(addresses.iter().map(|a| a.port.to_string()).collect()),
        )),
        _ => {
            let all: Vec<String> = addresses
                .iter()
                .map(|a| format!("`{}:{}`", a.host, a.port))
                .collect();
            Err(Refusal::Addresses(all.join(", ")))
        }
    }
}

fn one(addresses: &[Address]) -> Result<&Address, Refusal> {
    match addresses {
        [] => Err(Refusal::NoAddress),
        [address] => Ok(address),
        many => Err(Refusal::OneAddress(many.len())),
    }
}

fn mysql_tls(tls: Option<&Tls>, series: Series) -> Result<Vec<String>, Refusal> {
    let Some(tls) = tls else {
        return Ok(Vec::new());
    };
    let there = (&tls.ca, &tls.certificate, &tls.key);
    match (series, there) {
        // It takes the files of these names in the folder that it runs in.
        (Series::Old, (Some(_), Some(_), Some(_))) => Ok(vec!["--mysql-ssl=on".into()]),
        (Series::Old, _) => Err(Refusal::Tls(series)),
        (Series::New, (ca, certificate, key)) => {
            let mode = if ca.is_some() {
                "VERIFY_CA"
            } else {
                "REQUIRED"
            };
            let file = |option: &str, name: &str, text: &Option<String>| {
                text.as_ref()
                    .map(|_| format!("--mysql-ssl-{option}={name}"))
            };
            let files = [
                file("ca", CA, ca),
                file("cert", CERTIFICATE, certificate),
                file("key", KEY, key),
            ];
            let mode = format!("--mysql-ssl={mode}");
            Ok([mode]
                .into_iter()
                .chain(files.into_iter().flatten())
                .collect())
        }
    }
}

fn pgsql_mode(tls: Option<&Tls>) -> &'static str {
    match tls {
        None => "disable",
        Some(Tls { ca: None, .. }) => "require",
        Some(Tls { ca: Some(_), .. }) => "verify-ca",
    }
}

/// The variables that connections need: sysbench 1.0 has no options for TLS to PostgreSQL, but its client library reads these.
pub(super) fn env(sql: &SqlTarget) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    if sql.protocol == Protocol::Mysql {
        return env;
    }
    let tls = sql.tls.as_ref();
    let mut set = |name: &str, value: &str| env.insert(name.to_owned(), value.to_owned());
    set("PGSSLMODE", pgsql_mode(tls));
    let file = |text: fn(&Tls) -> &Option<String>| tls.and_then(|tls| text(tls).as_ref());
    if file(|tls| &tls.ca).is_some() {
        set("PGSSLROOTCERT", CA);
    }
    if file(|tls| &tls.certificate).is_some() {
        set("PGSSLCERT", CERTIFICATE);
    }
    if file(|tls| &tls.key).is_some() {
        set("PGSSLKEY", KEY);
    }
    env
}

/// The files that connections need.
pub(super) fn files(sql: &SqlTarget) -> Result<Vec<ToolFile>, Refusal> {
    let mut files = Vec::new();
    if let Some(password) = &sql.password {
        let option = match sql.protocol {
            Protocol::Mysql => "mysql-password",
            Protocol::Postgres => "pgsql-password",
        };
        files.push(secret(CONFIG, config_line(option, password)?));
    }
    if let Some(tls) = &sql.tls {
        let texts = [
            (CA, &tls.ca),
            (CERTIFICATE, &tls.certificate),
            (KEY, &tls.key),
        ];
        for (name, text) in texts {
            files.extend(text.as_ref().map(|text| secret(name, text.clone())));
        }
    }
    Ok(files)
}

fn secret(name: &str, content: String) -> ToolFile {
    ToolFile {
        name: name.to_owned(),
        mode: 0o600,
        content,
        secret: true,
    }
}

/// A line of sysbench's config file (`read_config` in `sb_options.c`): a value may stand in quotes of either kind, and there is
/// no way to write one of its own kind inside of them; without quotes it ends at a space or comma.
fn config_line(option: &str, value: &str) -> Result<String, Refusal> {
    if value.contains(char::is_control) {
        return Err(Refusal::Password("with control characters"));
    }
    let bare = !value.contains([',', ' ']) && !value.starts_with(['\'', '"', '#']);
    let value = match (value.contains('\''), value.contains('"')) {
        (false, _) => format!("'{value}'"),
        (true, false) => format!("\"{value}\""),
        (true, true) if bare => value.to_owned(),
        (true, true) => {
            return Err(Refusal::Password(
                "with quotes of both kinds that has a space or comma, or begins with a quote or `#`",
            ));
        }
    };
    let line = format!("{option}={value}\n");
    if line.len() >= LINE {
        return Err(Refusal::Password("that long"));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: &str, port: u16) -> Address {
        Address {
            host: host.into(),
            port,
        }
    }

    fn sql(protocol: Protocol, addresses: Vec<Address>) -> SqlTarget {
        SqlTarget {
            protocol,
            addresses,
            user: "sbtest".into(),
            password: None,
            database: "bench".into(),
            tls: None,
        }
    }

    #[test]
    fn several_addresses_become_lists_where_every_pair_of_them_is_there() {
        let lists = |addresses: &[(&str, u16)]| {
            let all: Vec<Address> = addresses.iter().map(|(h, p)| address(h, *p)).collect();
            lists(&all)
        };
        let own = |hosts: &str, ports: &str| Ok((hosts.to_owned(), ports.to_owned()));
        assert_eq!(lists(&[("b", 4000), ("a", 4000)]), own("b,a", "4000"));
        assert_eq!(lists(&[("a", 4001), ("a", 4000)]), own("a", "4001,4000"));
        assert_eq!(lists(&[("localhost", 3306)]), own("127.0.0.1", "3306"));
        assert_eq!(lists(&[]), Err(Refusal::NoAddress));
        let error = lists(&[("a", 4000), ("b", 4001)]).unwrap_err().to_string();
        assert!(error.contains("not `a:4000`, `b:4001`"), "{error}");
    }

    #[test]
    fn postgresql_has_one_address() {
        let two = sql(
            Protocol::Postgres,
            vec![address("a", 5432), address("b", 5432)],
        );
        assert_eq!(args(&two, Series::Old), Err(Refusal::OneAddress(2)));
    }

    #[test]
    fn passwords_stand_in_a_private_file_and_in_no_argument() {
        for protocol in [Protocol::Mysql, Protocol::Postgres] {
            let mut target = sql(protocol, vec![address("a", 1)]);
            target.password = Some("5up3r s3cret".into());
            let files = files(&target).unwrap();
            assert_eq!((files[0].mode, files[0].secret), (0o600, true));
            assert!(files[0].content.ends_with("-password='5up3r s3cret'\n"));
            for series in Series::ALL {
                let args = args(&target, series).unwrap();
                assert_eq!(args[0], "--config-file=sysbench.cnf");
                assert!(!args.join(" ").contains("5up3r"));
            }
        }
    }

    #[test]
    fn passwords_are_quoted_as_the_config_file_wants_it() {
        let line = |value: &str| config_line("p", value);
        for (password, written) in [
            ("plain", "p='plain'\n"),
            ("a b,c#d=e", "p='a b,c#d=e'\n"),
            ("it's", "p=\"it's\"\n"),
            ("a'b\"c", "p=a'b\"c\n"),
            ("", "p=''\n"),
        ] {
            assert_eq!(line(password).unwrap(), written);
        }
        for bad in ["a'b\" c", "'\"", "a\nb", &"x".repeat(260)] {
            assert!(line(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tls_is_told_as_each_version_and_server_takes_it() {
        let mut target = sql(Protocol::Mysql, vec![address("a", 1)]);
        target.tls = Some(Tls {
            ca: Some("CA".into()),
            ..Tls::default()
        });
        assert_eq!(args(&target, Series::Old), Err(Refusal::Tls(Series::Old)));
        let new = args(&target, Series::New).unwrap();
        assert!(new.ends_with(&[
            "--mysql-ssl=VERIFY_CA".into(),
            "--mysql-ssl-ca=cacert.pem".into()
        ]));
        target.protocol = Protocol::Postgres;
        assert!(
            args(&target, Series::New)
                .unwrap()
                .contains(&"--pgsql-sslmode=verify-ca".into())
        );
        let env = env(&target);
        assert_eq!(
            (&*env["PGSSLMODE"], &*env["PGSSLROOTCERT"]),
            ("verify-ca", "cacert.pem")
        );
    }
}
