//! Stand-ins of TiDB's servers: they start, answer, keep, refuse and misbehave as they should.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use mysql_async::{OptsBuilder, SslOpts};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::support::lab::until;
use crate::support::mirror::{Mirror, write_programs};
use crate::support::skipped;

/// A folder with the programs of a version and the data of its servers.
struct Place {
    folder: TempDir,
    /// Of the URLs of PD.
    scheme: &'static str,
}

/// A server, which is ended with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Sends SIGTERM and waits for the end.
    fn stop(&mut self) -> Option<i32> {
        self.term();
        self.0.wait().unwrap().code()
    }

    fn term(&self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// The exit code of a server that ends by itself.
    fn ended(&mut self) -> Option<i32> {
        let mut status = None;
        until("a server to end", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }

    /// The processes that it has started.
    fn children(&self) -> Vec<u32> {
        let mut children = Vec::new();
        for task in fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap() {
            let list = fs::read_to_string(task.unwrap().path().join("children")).unwrap();
            children.extend(
                list.split_whitespace()
                    .map(|pid| pid.parse::<u32>().unwrap()),
            );
        }
        children
    }
}

/// The ports of a server: of clients and the other one.
#[derive(Clone, Copy)]
struct Ports(u16, u16);

impl Ports {
    fn free() -> Self {
        let port = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (one, other) = (port(), port());
        Self(
            one.local_addr().unwrap().port(),
            other.local_addr().unwrap().port(),
        )
    }

    fn address(self) -> String {
        format!("127.0.0.1:{}", self.0)
    }

    fn status(self) -> String {
        format!("127.0.0.1:{}", self.1)
    }
}

impl Place {
    fn new(version: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_programs(&folder.path().join("bin"), version, &json!({}));
        Self {
            folder,
            scheme: "http",
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes a server's config file, and `standin.toml` beside it.
    fn configure(&self, name: &str, config: &str, misbehaviour: &str) {
        let folder = self.path(&format!("{name}/conf"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("server.toml"), config).unwrap();
        fs::write(folder.join("standin.toml"), misbehaviour).unwrap();
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.path("bin").join(program));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn spawn(&self, program: &str, name: &str, words: &[String]) -> Server {
        let config = self.path(&format!("{name}/conf/server.toml"));
        if !config.exists() {
            self.configure(name, "", "");
        }
        let mut command = self.command(program);
        command.args(words);
        command.arg(format!("--config={}", config.display()));
        command.arg(format!(
            "--log-file={}",
            self.text(&format!("{name}/log/server.log"))
        ));
        Server(command.spawn().unwrap())
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}/log/server.log"))).unwrap_or_default()
    }

    /// Starts one of the PDs, of which the first leads.
    fn pd_of(&self, all: &[Ports], at: usize) -> Server {
        let members = all
            .iter()
            .enumerate()
            .map(|(n, ports)| format!("pd{n}={}://{}", self.scheme, ports.status()));
        let name = format!("pd{at}");
        let (Ports(client, peer), scheme) = (all[at], self.scheme);
        let words = [
            format!("--name={name}"),
            format!("--client-urls={scheme}://127.0.0.1:{client}"),
            format!("--advertise-client-urls={scheme}://127.0.0.1:{client}"),
            format!("--peer-urls={scheme}://127.0.0.1:{peer}"),
            format!("--advertise-peer-urls={scheme}://127.0.0.1:{peer}"),
            format!("--data-dir={}", self.text(&format!("{name}/data"))),
            format!(
                "--initial-cluster={}",
                members.collect::<Vec<_>>().join(",")
            ),
        ];
        self.spawn("pd-server", &name, &words)
    }

    fn pd(&self, ports: Ports) -> Server {
        self.pd_of(&[ports], 0)
    }

    fn tikv(&self, ports: Ports, pd: Ports) -> Server {
        let words = [
            ("--addr", ports.address()),
            ("--advertise-addr", ports.address()),
            ("--status-addr", ports.status()),
            ("--advertise-status-addr", ports.status()),
            ("--pd", pd.address()),
            ("--data-dir", self.text("tikv/data")),
        ];
        let words: Vec<String> = words
            .into_iter()
            .flat_map(|(flag, value)| [flag.to_owned(), value])
            .collect();
        self.spawn("tikv-server", "tikv", &words)
    }

    fn tidb(&self, ports: Ports, pd: Ports) -> Server {
        let words = [
            "-P".to_owned(),
            ports.0.to_string(),
            format!("--status={}", ports.1),
            "--host=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            "--store=tikv".to_owned(),
            "--initialize-insecure".to_owned(),
            format!("--path={}", pd.address()),
            format!("--log-slow-query={}", self.text("tidb_slow_query.log")),
        ];
        self.spawn("tidb-server", "tidb", &words)
    }

    /// `--config-check` of a config file.
    fn check(&self, program: &str, config: &str) -> Output {
        let file = self.path("check.toml");
        fs::write(&file, config).unwrap();
        let mut command = Command::new(self.path("bin").join(program));
        command
            .arg("--config-check")
            .arg(format!("--config={}", file.display()));
        if program == "tikv-server" {
            command
                .args(["--pd", "", "--data-dir"])
                .arg(self.path("none"));
        }
        command.output().unwrap()
    }
}

/// Asks over HTTP; `None` while nobody answers.
fn ask(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
}

fn get(address: &str, path: &str) -> Value {
    let (status, body) = ask(address, "GET", path, "").unwrap();
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// Waits until a path answers well.
fn answering(address: &str, path: &str) {
    until(&format!("{address}{path} to answer"), || {
        ask(address, "GET", path, "").is_some_and(|(status, _)| status == 200)
    });
}

/// Registers a store that does not exist, as a TiKV would; the first of them takes the place of the one with the rows.
fn pretend_store(pd: Ports, port: u16) {
    let store = json!({
        "address": format!("127.0.0.1:{port}"), "status_address": "127.0.0.1:2", "version": "5.4.3", "git_hash": "x",
        "deploy_path": "/x", "labels": {}, "start_timestamp": 1,
    });
    let (status, body) = ask(
        &pd.address(),
        "POST",
        "/stand-in/v1/store",
        &store.to_string(),
    )
    .unwrap();
    assert_eq!(status, 200, "{body}");
}

/// Rows of text that a statement gives over the port of a TiDB; the error is the server's.
fn sql(tidb: Ports, statement: &str) -> Result<Vec<Vec<String>>, mysql_async::Error> {
    sql_over(tidb, statement, None)
}

/// The same over TLS, if there are options for it.
fn sql_over(
    tidb: Ports,
    statement: &str,
    tls: Option<SslOpts>,
) -> Result<Vec<Vec<String>>, mysql_async::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = OptsBuilder::default()
            .ip_or_hostname("127.0.0.1")
            .tcp_port(tidb.0)
            .user(Some("root"))
            .ssl_opts(tls);
        let mut connection = mysql_async::Conn::new(options).await?;
        let rows: Vec<mysql_async::Row> = connection.query(statement).await?;
        connection.disconnect().await?;
        let row = |row: mysql_async::Row| row.unwrap().into_iter().map(text_of).collect();
        Ok(rows.into_iter().map(row).collect())
    })
}

fn text_of(value: mysql_async::Value) -> String {
    match value {
        mysql_async::Value::NULL => "NULL".to_owned(),
        mysql_async::Value::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
        other => other.as_sql(true),
    }
}

fn one(tidb: Ports, statement: &str) -> String {
    sql(tidb, statement).unwrap()[0][0].clone()
}

/// Makes a CA and a certificate of this machine in a folder.
fn write_certificates(folder: &Path) {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    let (mut params, key) = (
        CertificateParams::new(Vec::new()).unwrap(),
        KeyPair::generate().unwrap(),
    );
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(
        folder.join("ca.pem"),
        params.self_signed(&key).unwrap().pem(),
    )
    .unwrap();
    let issuer = Issuer::from_params(&params, key);
    let (own, own_key) = (
        CertificateParams::new(["127.0.0.1".to_owned()]).unwrap(),
        KeyPair::generate().unwrap(),
    );
    fs::write(
        folder.join("cert.pem"),
        own.signed_by(&own_key, &issuer).unwrap().pem(),
    )
    .unwrap();
    fs::write(folder.join("key.pem"), own_key.serialize_pem()).unwrap();
}

/// Runs sysbench against a TiDB.
fn sysbench(tidb: Ports, words: &[&str]) -> String {
    let mut command = Command::new("sysbench");
    command.args([
        "oltp_read_write",
        "--db-driver=mysql",
        "--mysql-host=127.0.0.1",
        "--mysql-user=root",
        "--mysql-db=test",
    ]);
    command.args([
        "--tables=2",
        "--table-size=100",
        "--threads=2",
        "--mysql-ignore-errors=1213,1020,1205",
    ]);
    command.arg(format!("--mysql-port={}", tidb.0)).args(words);
    let output = command.output().unwrap();
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    text
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Whether a program is missing that the rows need; then it says that the test is skipped.
fn missing() -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&paths)
        .chain([PathBuf::from("/usr/sbin")])
        .collect();
    let lacks = |name: &&&str| !folders.iter().any(|folder| folder.join(name).is_file());
    let missing = ["mariadbd", "mariadb-install-db", "sysbench"]
        .iter()
        .find(lacks);
    missing
        .inspect(|name| skipped(&format!("{name} is not installed")))
        .is_some()
}

#[test]
fn a_cluster_runs_sysbench_and_keeps_what_it_was_told() {
    if missing() {
        return;
    }
    let place = Place::new("v6.1.2");
    place.configure("pd0", "[replication]\nmax-replicas = 1\n", "");
    place.configure("tikv", "raftstore.store-pool-size = 3\n", "");
    let (pd, tikv, tidb) = (Ports::free(), Ports::free(), Ports::free());
    let mut servers = [place.pd(pd), place.tikv(tikv, pd), place.tidb(tidb, pd)];
    answering(&tidb.status(), "/status");
    assert_eq!(
        get(&tidb.status(), "/status")["version"],
        "5.7.25-TiDB-v6.1.2"
    );

    sysbench(tidb, &["prepare"]);
    let run = sysbench(tidb, &["--time=2", "run"]);
    assert!(run.contains("transactions:"), "{run}");
    sysbench(tidb, &["--time=1", "--db-ps-mode=disable", "run"]);
    let count = one(tidb, "SELECT COUNT(*) FROM test.sbtest1");
    assert_eq!(count, "100");
    what_only_tidb_has(tidb, tikv);

    // Everything goes in the order of a stop, the database below TiKV with it.
    let children = servers[1].children();
    assert_eq!(children.len(), 1);
    for server in servers.iter_mut().rev() {
        assert_eq!(server.stop(), Some(0));
    }
    assert!(!Path::new(&format!("/proc/{}", children[0])).exists());

    // A stand-in that is told to leaves a variable as it is.
    place.configure(
        "tidb",
        "",
        "ignore-variables = ['tidb_enable_async_commit']\n",
    );
    let mut servers = [place.pd(pd), place.tikv(tikv, pd), place.tidb(tidb, pd)];
    answering(&tidb.status(), "/status");
    assert_eq!(one(tidb, "SELECT COUNT(*) FROM test.sbtest1"), count);
    assert_eq!(one(tidb, "SELECT @@global.tidb_enable_1pc"), "0");
    sql(tidb, "SET GLOBAL tidb_enable_async_commit = OFF").unwrap();
    assert_eq!(one(tidb, "SELECT @@global.tidb_enable_async_commit"), "1");

    // The database does not outlive a TiKV that is killed.
    let child = servers[1].children()[0];
    servers[1].0.kill().unwrap();
    until("the database to go with its TiKV", || !running(child));
}

/// Whether a process runs; one that only waits for somebody to ask how it ended does not.
fn running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// What a TiDB of v6.1.2 answers, and MariaDB does not.
fn what_only_tidb_has(tidb: Ports, tikv: Ports) {
    assert_eq!(one(tidb, "SELECT VERSION()"), "5.7.25-TiDB-v6.1.2");
    assert!(
        one(tidb, "SELECT tidb_version()")
            .contains("Release Version: v6.1.2\nEdition: Community (stand-in for tests)")
    );
    sql(
        tidb,
        "SET GLOBAL tidb_enable_1pc = OFF, tidb_hashagg_final_concurrency = 1",
    )
    .unwrap();
    assert_eq!(one(tidb, "SELECT @@global.tidb_enable_1pc"), "0");
    let shown = sql(
        tidb,
        "SHOW GLOBAL VARIABLES LIKE 'tidb_hashagg_final_concurrency'",
    )
    .unwrap();
    assert_eq!(shown, [["tidb_hashagg_final_concurrency", "1"]]);
    for unknown in [
        "SET GLOBAL tidb_session_plan_cache_size = 1",
        "SELECT @@tidb_nothing",
    ] {
        let error = sql(tidb, unknown).unwrap_err();
        assert!(
            matches!(&error, mysql_async::Error::Server(error) if error.code == 1193),
            "{unknown}: {error}"
        );
    }
    let wrong = sql(tidb, "SET GLOBAL tidb_max_chunk_size = 'many'").unwrap_err();
    assert!(
        matches!(&wrong, mysql_async::Error::Server(error) if error.code == 1232),
        "{wrong}"
    );
    sql(tidb, "SET GLOBAL tidb_gc_enable = OFF").unwrap();
    assert_eq!(
        one(
            tidb,
            "SELECT VARIABLE_VALUE FROM mysql.tidb WHERE VARIABLE_NAME = 'tikv_gc_enable'"
        ),
        "false"
    );
    let types = sql(
        tidb,
        "SELECT type FROM INFORMATION_SCHEMA.CLUSTER_INFO AS c ORDER BY type",
    )
    .unwrap();
    assert_eq!(types, [["pd"], ["tidb"], ["tikv"]]);
    let pool = "type = 'tikv' AND name = 'raftstore.store-pool-size'";
    let shown = sql(tidb, &format!("SHOW CONFIG WHERE {pool}")).unwrap();
    assert_eq!(
        shown,
        [["tikv", &tikv.address(), "raftstore.store-pool-size", "3"]]
    );
    let key = "SELECT VALUE FROM information_schema.cluster_config WHERE `KEY` = 'replication.max-replicas'";
    assert_eq!(one(tidb, key), "1");
    assert_eq!(
        get(&tikv.status(), "/config")["raftstore"]["store-pool-size"],
        3
    );
    sql(tidb, "ANALYZE TABLE test.sbtest1").unwrap();
}

#[test]
fn a_cluster_with_certificates_speaks_tls() {
    if missing() {
        return;
    }
    // Somebody else in this process may have done so.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let place = Place {
        scheme: "https",
        ..Place::new("v5.4.3")
    };
    write_certificates(place.folder.path());
    let security = |keys: [&str; 3]| -> String {
        let files = ["ca.pem", "cert.pem", "key.pem"].map(|name| place.text(name));
        keys.iter()
            .zip(files)
            .map(|(key, file)| format!("security.{key} = '{file}'\n"))
            .collect()
    };
    place.configure(
        "pd0",
        &security(["cacert-path", "cert-path", "key-path"]),
        "",
    );
    place.configure("tikv", &security(["ca-path", "cert-path", "key-path"]), "");
    let of_clients = security(["ssl-ca", "ssl-cert", "ssl-key"]);
    let of_cluster = security(["cluster-ssl-ca", "cluster-ssl-cert", "cluster-ssl-key"]);
    place.configure("tidb", &(of_clients + &of_cluster), "");
    let (pd, tikv, tidb) = (Ports::free(), Ports::free(), Ports::free());
    let _servers = [place.pd(pd), place.tikv(tikv, pd), place.tidb(tidb, pd)];
    let tls = || Some(SslOpts::default().with_root_certs(vec![place.path("ca.pem").into()]));
    until("rows over TLS", || {
        sql_over(tidb, "SELECT 1", tls()).is_ok()
    });
    // As many bytes as fill several records.
    let long = "SELECT REPEAT('x', 100000), @@version";
    let rows = sql_over(tidb, long, tls()).unwrap();
    assert_eq!(
        (rows[0][0].len(), rows[0][1].as_str()),
        (100_000, "5.7.25-TiDB-v5.4.3")
    );
    assert_eq!(sql(tidb, long).unwrap(), rows);
    // Without a certificate nobody gets an answer of the cluster.
    for address in [pd.address(), tikv.status(), tidb.status()] {
        assert_eq!(ask(&address, "GET", "/pd/ping", ""), None);
    }
}

#[test]
fn members_of_a_cluster_answer_through_its_leader() {
    let place = Place::new("v5.4.3");
    let all = [Ports::free(), Ports::free(), Ports::free()];
    let _servers = [
        place.pd_of(&all, 2),
        place.pd_of(&all, 1),
        place.pd_of(&all, 0),
    ];
    until("all members to be healthy", || {
        let health = ask(&all[2].address(), "GET", "/pd/api/v1/health", "")
            .filter(|(status, _)| *status == 200);
        health.is_some_and(|(_, body)| body.matches("\"health\":true").count() == 3)
    });
    for ports in all {
        assert_eq!(ask(&ports.address(), "GET", "/pd/ping", "").unwrap().0, 200);
        assert_eq!(get(&ports.address(), "/pd/api/v1/leader")["name"], "pd0");
    }
    let cluster = |ports: Ports| get(&ports.address(), "/pd/api/v1/cluster")["id"].clone();
    assert_eq!(cluster(all[0]), cluster(all[1]));
    let (status, body) = ask(&all[0].address(), "GET", "/pd/api/v1/stores", "").unwrap();
    assert_eq!((status, body.contains("not bootstrapped")), (500, true));
    // The ready endpoint came with v8.5.2.
    assert_eq!(
        ask(&all[0].address(), "GET", "/pd/api/v2/ready", "")
            .unwrap()
            .0,
        404
    );
}

#[test]
fn leaders_spread_after_a_start_unless_they_are_told_not_to() {
    let place = Place::new("v5.4.3");
    place.configure("pd0", "", "");
    let ports = Ports::free();
    let mut pd = place.pd(ports);
    answering(&ports.address(), "/pd/ping");
    (1..=3).for_each(|port| pretend_store(ports, port));
    let operators = || get(&ports.address(), "/pd/api/v1/operators");
    let first = || get(&ports.address(), "/pd/api/v1/store/1")["status"]["leader_count"].clone();
    until("leaders to be even", || {
        first() == 10 && operators() == json!([])
    });
    assert_eq!(
        get(&ports.address(), "/pd/api/v1/regions/check/miss-peer")["count"],
        0
    );
    assert_eq!(get(&ports.address(), "/pd/api/v1/stores")["count"], 3);
    pd.stop();

    place.configure("pd0", "", "never-balance = true");
    let _pd = place.pd(ports);
    answering(&ports.address(), "/pd/ping");
    for store in 1..=3 {
        let beat = json!({"store_id": store, "cluster_id": get(&ports.address(), "/pd/api/v1/cluster")["id"]});
        ask(
            &ports.address(),
            "POST",
            "/stand-in/v1/heartbeat",
            &beat.to_string(),
        )
        .unwrap();
    }
    assert_eq!(
        (first(), operators().as_array().unwrap().len()),
        (json!(30), 1)
    );
}

#[test]
fn a_pd_starts_slowly_dies_and_ignores_what_it_is_told_to() {
    let place = Place::new("v5.4.3");
    let ports = Ports::free();
    place.configure(
        "pd0",
        "[schedule]\nleader-schedule-limit = 9\nregion-schedule-limit = 7\n",
        "",
    );
    fs::write(
        place.path("pd0/conf/standin.toml"),
        "answer-after = 2\nignore-term = true\nignore-config = ['schedule.leader-schedule-limit']",
    )
    .unwrap();
    let began = Instant::now();
    let pd = place.pd(ports);
    until("the port to be open", || {
        TcpStream::connect(ports.address()).is_ok()
    });
    answering(&ports.address(), "/pd/ping");
    assert!(began.elapsed() >= Duration::from_secs(2));
    let schedule = get(&ports.address(), "/pd/api/v1/config/schedule");
    assert_eq!(
        (
            &schedule["leader-schedule-limit"],
            &schedule["region-schedule-limit"]
        ),
        (&json!(4), &json!(7))
    );
    pd.term();
    until("the signal to be noted", || {
        place.log("pd0").contains("stand-in ignores SIGTERM")
    });
    answering(&ports.address(), "/pd/ping");
    drop(pd);

    place.configure("pd0", "", "die-after = 1");
    assert_eq!(place.pd(ports).ended(), Some(1));
    assert!(place.log("pd0").contains("stand-in dies as it was told"));
    place.configure("pd0", "", "die-affter = 1");
    assert_eq!(place.pd(ports).ended(), Some(1));
}

#[test]
fn a_tikv_refuses_another_cluster_and_files_of_two_moments() {
    let place = Place::new("v5.4.3");
    place.configure(
        "tikv",
        "[storage]\nscheduler-worker-pool-size = 3\n",
        "never-idle = true\nignore-config = ['storage.scheduler-worker-pool-size']",
    );
    let (pd, tikv) = (Ports::free(), Ports::free());
    let mut first = place.pd(pd);
    answering(&pd.address(), "/pd/ping");
    // Another store comes first and would keep the rows.
    pretend_store(pd, 1);
    let mut server = place.tikv(tikv, pd);
    answering(&tikv.status(), "/status");
    assert_ne!(
        get(&tikv.status(), "/config")["storage"]["scheduler-worker-pool-size"],
        3
    );
    let busy = ask(&tikv.status(), "GET", "/metrics", "").unwrap().1;
    assert!(
        busy.contains("tikv_engine_pending_compaction_bytes{cf=\"default\",db=\"kv\"} 67108864"),
        "{busy}"
    );
    let mut twin = place.tikv(Ports::free(), pd);
    assert_eq!(twin.ended(), Some(1));
    assert!(
        place
            .log("tikv")
            .contains("maybe another instance is using this directory")
    );
    assert_eq!(server.stop(), Some(0));

    // Files as of a real data directory; without one of its tables it is no whole any more.
    let tables: Vec<PathBuf> = files(&place.path("tikv/data/db"), "sst");
    assert!(!tables.is_empty() && !files(&place.path("tikv/data/raft"), "log").is_empty());
    let kept = fs::read(&tables[0]).unwrap();
    fs::remove_file(&tables[0]).unwrap();
    assert_eq!(place.tikv(tikv, pd).ended(), Some(1));
    assert!(place.log("tikv").contains("Corruption"));
    fs::write(&tables[0], kept).unwrap();

    // A later version keeps the log of Raft elsewhere and takes the old one over.
    fs::remove_dir_all(place.path("bin")).unwrap();
    write_programs(&place.path("bin"), "v6.1.2", &json!({}));
    let mut later = place.tikv(tikv, pd);
    answering(&tikv.status(), "/status");
    assert!(!place.path("tikv/data/raft").exists());
    assert!(!files(&place.path("tikv/data/raft-engine"), "raftlog").is_empty());
    later.stop();

    first.stop();
    fs::remove_dir_all(place.path("pd0/data")).unwrap();
    let _second = place.pd(pd);
    answering(&pd.address(), "/pd/ping");
    assert_eq!(place.tikv(tikv, pd).ended(), Some(1));
    assert!(
        place.log("tikv").contains("cluster ID mismatch"),
        "{}",
        place.log("tikv")
    );
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

#[test]
fn wrong_flags_are_refused_and_right_ones_say_who_it_is() {
    let place = Place::new("v5.2.0");
    for (program, message, code) in [
        ("pd-server", "flag provided but not defined: -initialise", 2),
        (
            "tidb-server",
            "flag provided but not defined: -initialise",
            2,
        ),
        (
            "tikv-server",
            "error: Found argument '--initialise' which wasn't expected",
            1,
        ),
    ] {
        let output = Command::new(place.path("bin").join(program))
            .arg("--initialise")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert!(said(&output).contains(message), "{}", said(&output));
        let output = Command::new(place.path("bin").join(program))
            .arg("-V")
            .output()
            .unwrap();
        let text = said(&output);
        assert!(
            text.contains("stand-in for tests") && text.contains("5.2.0"),
            "{text}"
        );
    }
    // This one came with v5.3.
    let output = Command::new(place.path("bin/tidb-server"))
        .arg("--initialize-insecure")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn config_checks_go_by_the_version() {
    let (old, new) = (Place::new("v5.4.3"), Place::new("v6.1.2"));
    let fails = |place: &Place, program: &str, config: &str, message: &str| {
        let output = place.check(program, config);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(message), "{}", said(&output));
    };
    let passes = |place: &Place, program: &str, config: &str| {
        let output = place.check(program, config);
        assert!(
            output.status.success() && said(&output).contains("config check successful"),
            "{}",
            said(&output)
        );
        said(&output)
    };
    fails(
        &old,
        "tidb-server",
        "performance.max-prox = 1",
        "contained invalid configuration options: performance.max-prox;",
    );
    fails(
        &old,
        "tikv-server",
        "raftstore.pool = 1",
        "unknown configuration options: raftstore.pool",
    );
    fails(
        &old,
        "tikv-server",
        "raftstore.store-pool-size = 'x'",
        "invalid type",
    );
    // PD says so and goes on.
    let output = old.check("pd-server", "schedule.limit = 1");
    assert!(
        output.status.success()
            && said(&output).contains("Config contains undefined item: schedule.limit")
    );
    // Keys of the list of removed ones are a warning.
    passes(&old, "tidb-server", "prepared-plan-cache.enabled = true");
    let warned = passes(&new, "tidb-server", "prepared-plan-cache.enabled = true");
    assert!(warned.contains("prepared-plan-cache.enabled"), "{warned}");
    // No more threads than CPUs, for a while.
    let many = format!("readpool.unified.max-thread-count = {}", threads() + 4);
    passes(&old, "tikv-server", &many);
    fails(
        &new,
        "tikv-server",
        &many,
        "readpool.unified.max-thread-count should",
    );
}

fn threads() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

#[test]
fn a_mirror_names_its_packages_with_their_sums() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = Mirror::make(folder.path(), &["v5.4.3", "v6.1.2"]);
    let manifest = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(mirror.folder().join(name)).unwrap()).unwrap()
    };
    assert_eq!(
        manifest("timestamp.json")["signed"]["meta"]["/snapshot.json"]["length"],
        fs::read(folder.path().join("snapshot.json")).unwrap().len()
    );
    assert_eq!(
        manifest("snapshot.json")["signed"]["meta"]["/tikv.json"]["version"],
        1
    );
    assert_eq!(
        manifest("1.index.json")["signed"]["components"]["tikv"]["url"],
        "/tikv.json"
    );
    let platforms = manifest("1.tikv.json")["signed"]["platforms"].clone();
    let (_, versions) = platforms.as_object().unwrap().iter().next().unwrap();
    let package = fs::read(mirror.package("tikv", "v6.1.2")).unwrap();
    let sum: String = Sha256::digest(&package)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        (
            &versions["v6.1.2"]["hashes"]["sha256"],
            &versions["v6.1.2"]["length"]
        ),
        (&json!(sum), &json!(package.len()))
    );
    // What is in it is the program, which knows its version.
    unpack(
        &mirror.package("tikv", "v6.1.2"),
        &folder.path().join("bin"),
    );
    let output = Command::new(folder.path().join("bin/tikv-server"))
        .arg("-V")
        .output()
        .unwrap();
    assert!(
        said(&output).contains("Release Version:   6.1.2"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_package_may_misbehave_by_itself() {
    let place = Place::new("v5.4.3");
    let dies = json!({"pd-server": {"die-after": 1}});
    let mirror = Mirror::make_misbehaving(&place.path("mirror"), &[("v5.4.3", dies)]);
    unpack(&mirror.package("pd", "v5.4.3"), &place.path("bin"));
    place.configure("pd0", "", "");
    fs::remove_file(place.path("pd0/conf/standin.toml")).unwrap();
    assert_eq!(place.pd(Ports::free()).ended(), Some(1));
    assert!(place.log("pd0").contains("stand-in dies as it was told"));
}

fn unpack(package: &Path, into: &Path) {
    fs::create_dir_all(into).unwrap();
    let mut tar = Command::new("tar");
    assert!(
        tar.arg("-xzf")
            .arg(package)
            .arg("-C")
            .arg(into)
            .status()
            .unwrap()
            .success()
    );
}
