//! The stand-in of tidb-server: passes MySQL's protocol on to the first store, and answers itself what only TiDB has.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, sleep_until};

use crate::answers::{Answers, Facts, LONGEST, Needs, needs};
use crate::args::{Flag, Takes};
use crate::config::{Config, Settings, leaves, nested};
use crate::http::{self, Answer, Request};
use crate::misbehaviour::Misbehaviour;
use crate::mysql::{
    COM_QUERY, COM_STMT_PREPARE, Client, Packet, asks_for_tls, error_packet, greeting_as,
    without_tls,
};
use crate::process::{End, block_on, end, info, log, open_log, print, random, since_epoch};
use crate::release::Release;
use crate::tls::AnyStream;
use crate::{Failure, Start, sql, tls, variables};

pub(crate) const FLAGS: &[Flag] = &[
    Flag("V", Takes::Nothing, ""),
    Flag("config-check", Takes::Nothing, ""),
    Flag("config-strict", Takes::Nothing, ""),
    Flag("P", Takes::Value, ""),
    Flag("status", Takes::Value, ""),
    Flag("host", Takes::Value, ""),
    Flag("advertise-address", Takes::Value, ""),
    Flag("store", Takes::Value, ""),
    Flag("initialize-insecure", Takes::Nothing, "5.3.0"),
    Flag("path", Takes::Value, ""),
    Flag("log-slow-query", Takes::Value, ""),
    Flag("config", Takes::Value, ""),
    Flag("log-file", Takes::Value, ""),
    Flag("L", Takes::Value, ""),
];

/// How often a server tells PD of itself.
const TELL: Duration = Duration::from_secs(5);

struct Tidb {
    release: Release,
    misbehaviour: Misbehaviour,
    settings: Settings,
    /// What clients are shown that ask for TLS.
    tls: Option<Arc<rustls::ServerConfig>>,
    pds: Vec<String>,
    /// What PD hears of this server.
    told: Value,
    connections: AtomicUsize,
}

pub(crate) fn run(start: Start) -> Result<ExitCode, Failure> {
    let misbehaviour = Misbehaviour::of(&start)?;
    let config = Config::of(&start, &misbehaviour.ignore_config)?;
    for keys in [&config.removed, &config.unknown] {
        if !keys.is_empty() {
            crate::process::say(&config.tidb_message(keys));
        }
    }
    let strict = start.arguments.has("config-check") || start.arguments.has("config-strict");
    if strict && !config.unknown.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    if start.arguments.has("config-check") {
        print("config check successful");
        return Ok(ExitCode::SUCCESS);
    }
    if start.arguments.need("store")? != "tikv" {
        return Err("a stand-in takes no other store than tikv".into());
    }
    open_log(start.arguments.get("log-file"))?;
    if let Some(slow) = start.arguments.get("log-slow-query") {
        std::fs::File::options()
            .create(true)
            .append(true)
            .open(slow)?;
    }
    info(&format!(
        "Welcome to the stand-in of TiDB {}",
        start.release.version
    ));
    let tidb = Arc::new(Tidb::new(&start, misbehaviour, config)?);
    let outcome = block_on(serve(tidb, &start));
    outcome.inspect_err(|error| log("FATAL", &error.to_string()))
}

async fn serve(tidb: Arc<Tidb>, start: &Start) -> Result<ExitCode, Failure> {
    let ended = end(&tidb.misbehaviour);
    tokio::pin!(ended);
    let opened = tokio::select! {
        opened = open(&tidb, start) => opened,
        ended = &mut ended => return ended.map(|_| ExitCode::FAILURE),
    };
    opened?;
    info("stand-in of TiDB is ready to serve");
    match ended.await? {
        End::Asked => {
            // The port says that the process goes; its connections go with it.
            info("stand-in of TiDB has stopped");
            Ok(ExitCode::SUCCESS)
        }
        End::Told => Ok(ExitCode::FAILURE),
    }
}

/// Waits for the store, fills in what it lacks, and opens the ports.
async fn open(tidb: &Arc<Tidb>, start: &Start) -> Result<(), Failure> {
    while let Err(error) = tidb.bootstrap().await {
        log("WARN", &format!("the store is not ready: {error}"));
        sleep(Duration::from_secs(1)).await;
    }
    let from = Instant::now() + tidb.misbehaviour.answer_after();
    let flags = &start.arguments;
    let host = flags.get("host").unwrap_or("0.0.0.0");
    let clients = http::listen(&joined(host, flags.get("P").unwrap_or("4000"))).await?;
    let status = http::listen(&joined(host, flags.get("status").unwrap_or("10080"))).await?;
    tokio::spawn(accept(Arc::clone(tidb), clients, from));
    let asked = Arc::clone(tidb);
    let handler = move |request: Request| std::future::ready(asked.answer(&request));
    tokio::spawn(http::serve(status, from, handler));
    tidb.tell().await;
    let telling = Arc::clone(tidb);
    tokio::spawn(async move {
        loop {
            sleep(TELL).await;
            telling.tell().await;
        }
    });
    Ok(())
}

/// `host:port`, with brackets around an IPv6 address.
fn joined(host: &str, port: &str) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

async fn accept(tidb: Arc<Tidb>, listener: TcpListener, from: Instant) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let tidb = Arc::clone(&tidb);
        tokio::spawn(async move {
            sleep_until(from).await;
            tidb.connections.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = tidb.connection(client).await {
                log("WARN", &format!("connection: {error}"));
            }
            tidb.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

impl Tidb {
    fn new(start: &Start, misbehaviour: Misbehaviour, config: Config) -> Result<Self, Failure> {
        let flags = &start.arguments;
        let (port, status) = (
            flags.get("P").unwrap_or("4000"),
            flags.get("status").unwrap_or("10080"),
        );
        let address = flags
            .get("advertise-address")
            .or_else(|| flags.get("host"))
            .unwrap_or("127.0.0.1");
        let path = flags.need("path")?;
        let mut settings = config.settings;
        let secure = [
            "security.cluster-ssl-ca",
            "security.cluster-ssl-cert",
            "security.cluster-ssl-key",
        ];
        tls::use_in_cluster(&settings, secure)?;
        let tls = tls::for_clients(&settings)?;
        for (key, value) in [
            ("host", json!(flags.get("host").unwrap_or("0.0.0.0"))),
            ("advertise-address", json!(address)),
            ("port", json!(port.parse::<u16>()?)),
            ("status.status-port", json!(status.parse::<u16>()?)),
            ("store", json!("tikv")),
            ("path", json!(path)),
        ] {
            settings.insert(key.to_owned(), value);
        }
        let told = json!({
            "instance": joined(address, port), "status_address": joined(address, status), "ip": address,
            "version": start.release.bare(), "git_hash": start.release.git_hash, "start": since_epoch().as_secs(),
            "ddl_id": format!("{:016x}", random()), "port": port.parse::<u16>()?, "status_port": status.parse::<u16>()?,
        });
        Ok(Self {
            release: start.release.clone(),
            misbehaviour,
            settings,
            tls,
            pds: path
                .split(',')
                .map(|pd| http::address_of(pd).to_owned())
                .collect(),
            told,
            connections: AtomicUsize::new(0),
        })
    }

    /// Asks the first PD that answers.
    async fn ask_pd(&self, method: &str, target: &str, body: &str) -> Result<Value, Failure> {
        let mut last: Failure = "no PD is given".into();
        for pd in &self.pds {
            match http::ask_json(pd, method, target, body).await {
                Ok(answer) => return Ok(answer),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn tell(&self) {
        if let Err(error) = self
            .ask_pd("POST", "/stand-in/v1/tidb", &self.told.to_string())
            .await
        {
            log("WARN", &format!("cannot tell PD of this server: {error}"));
        }
    }

    /// A connection to the first store, which has the rows.
    async fn store(&self) -> Result<AnyStream, Failure> {
        let stores = self.ask_pd("GET", "/pd/api/v1/stores", "").await?;
        let stores = stores["stores"].as_array().ok_or("PD tells of no stores")?;
        let first = stores
            .iter()
            .map(|store| &store["store"])
            .min_by_key(|store| store["id"].as_u64());
        let address = first
            .and_then(|store| store["address"].as_str())
            .ok_or("PD tells of no stores")?;
        let stream = TcpStream::connect(address)
            .await
            .map_err(|error| format!("store {address}: {error}"))?;
        stream.set_nodelay(true)?;
        tls::connected(stream, address)
    }

    async fn client(&self) -> Result<Client<AnyStream>, Failure> {
        Client::connect(self.store().await?, sql::ACCOUNT).await
    }

    /// Fills in the variables and rows that the store does not have yet.
    async fn bootstrap(&self) -> Result<(), Failure> {
        let mut client = self.client().await?;
        let variables: Vec<String> = variables::known(&self.release)
            .map(|(name, default)| format!("('{name}', '{default}')"))
            .collect();
        client
            .query(&format!(
                "INSERT IGNORE INTO mysql.global_variables VALUES {}",
                variables.join(", ")
            ))
            .await?;
        let collation = if self.release.since("6.0") {
            "True"
        } else {
            "False"
        };
        let rows = [
            ("bootstrapped", "True"),
            ("tidb_server_version", "1"),
            ("new_collation_enabled", collation),
            ("tikv_gc_leader_uuid", "stand-in"),
            ("tikv_gc_enable", "true"),
            ("tikv_gc_run_interval", "10m0s"),
            ("tikv_gc_life_time", "10m0s"),
            ("tikv_gc_auto_concurrency", "true"),
            ("tikv_gc_mode", "distributed"),
        ];
        let rows: Vec<String> = rows
            .iter()
            .map(|(name, value)| format!("('{name}', '{value}', 'stand-in')"))
            .collect();
        client
            .query(&format!(
                "INSERT IGNORE INTO mysql.tidb VALUES {}",
                rows.join(", ")
            ))
            .await?;
        Ok(())
    }

    /// Carries one client until it or the store hangs up.
    async fn connection(&self, client: TcpStream) -> Result<(), Failure> {
        client.set_nodelay(true)?;
        let mut client: AnyStream = Box::new(client);
        let mut store = match self.store().await {
            Ok(store) => store,
            Err(error) => return self.turn_away(&mut client, &error).await,
        };
        let Some(greeting) = Packet::read(&mut store).await? else {
            return self
                .turn_away(&mut client, &"the store hung up".into())
                .await;
        };
        let body = greeting_as(&greeting.body, &self.release.mysql(), self.tls.is_some());
        let body = body.unwrap_or(greeting.body);
        Packet {
            sequence: greeting.sequence,
            body,
        }
        .write(&mut client)
        .await?;
        let Some(client) = self.log_in(client, &mut store).await? else {
            return Ok(());
        };
        let (from_client, mut to_client) = tokio::io::split(client);
        let (mut from_store, mut to_store) = tokio::io::split(store);
        tokio::select! {
            sent = self.forward(BufReader::new(from_client), &mut to_store) => sent?,
            received = tokio::io::copy(&mut from_store, &mut to_client) => drop(received?),
        }
        Ok(())
    }

    /// Carries the packets of a log-in and lays TLS over a client that asks for it; `None` where the store refuses it.
    async fn log_in(
        &self,
        mut client: AnyStream,
        store: &mut AnyStream,
    ) -> Result<Option<AnyStream>, Failure> {
        // The store hears nothing of TLS: its packets are one behind then.
        let mut behind = 0;
        let Some(mut packet) = Packet::read(&mut client).await? else {
            return Ok(None);
        };
        if let Some(config) = &self.tls
            && asks_for_tls(&packet.body)
        {
            client = tls::accepted_client(client, Arc::clone(config))?;
            let Some(mut second) = Packet::read(&mut client).await? else {
                return Ok(None);
            };
            without_tls(&mut second.body);
            packet = second;
            behind = 1;
        }
        loop {
            packet.sequence = packet.sequence.wrapping_sub(behind);
            packet.write(store).await?;
            let Some(mut answer) = Packet::read(store).await? else {
                return Ok(None);
            };
            answer.sequence = answer.sequence.wrapping_add(behind);
            answer.write(&mut client).await?;
            match answer.body.first() {
                Some(0) => return Ok(Some(client)),
                Some(0xff) => return Ok(None),
                _ => {}
            }
            let Some(more) = Packet::read(&mut client).await? else {
                return Ok(None);
            };
            packet = more;
        }
    }

    async fn turn_away(&self, client: &mut AnyStream, why: &Failure) -> Result<(), Failure> {
        let text = format!("Region is unavailable (stand-in: {why})");
        Ok(error_packet(0, 9005, &text).write(client).await?)
    }

    /// Passes packets on; a packet with number 0 starts a command.
    async fn forward<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &self,
        mut from: BufReader<R>,
        to: &mut W,
    ) -> Result<(), Failure> {
        while let Some(mut packet) = Packet::read(&mut from).await? {
            if packet.sequence == 0
                && let Some((&command @ (COM_QUERY | COM_STMT_PREPARE), text)) =
                    packet.body.split_first()
                && text.len() <= LONGEST
                && let Ok(text) = std::str::from_utf8(text)
                && let Some(needs) = needs(text)
            {
                let facts = self.facts(needs).await?;
                let answers = Answers {
                    release: &self.release,
                    ignored: &self.misbehaviour.ignore_variables,
                    facts: &facts,
                };
                let mut body = vec![command];
                body.extend(answers.translate(text).into_bytes());
                packet.body = body;
            }
            packet.write(to).await?;
        }
        Ok(())
    }

    async fn facts(&self, needs: Needs) -> Result<Facts, Failure> {
        let mut facts = Facts::default();
        if needs.variables {
            let rows = self
                .client()
                .await?
                .query("SELECT VARIABLE_NAME, VARIABLE_VALUE FROM mysql.global_variables")
                .await?;
            let pairs = rows
                .into_iter()
                .filter_map(|row| match <[_; 2]>::try_from(row) {
                    Ok([Some(name), Some(value)]) => Some((name, value)),
                    _ => None,
                });
            facts.variables = pairs
                .filter(|(name, _)| variables::default(&self.release, name).is_some())
                .collect();
        }
        if needs.info || needs.config {
            facts.info = self.instances().await?;
        }
        if needs.config {
            for instance in &facts.info {
                facts.config.extend(config_of(instance).await);
            }
        }
        Ok(facts)
    }

    /// The rows of `cluster_info`.
    async fn instances(&self) -> Result<Vec<Vec<String>>, Failure> {
        let mut rows = Vec::new();
        for tidb in self
            .ask_pd("POST", "/stand-in/v1/tidbs", "")
            .await?
            .as_array()
            .into_iter()
            .flatten()
        {
            let start = tidb["start"].as_u64().unwrap_or(0);
            rows.push(instance(
                "tidb",
                &tidb["instance"],
                &tidb["status_address"],
                &tidb["version"],
                &tidb["git_hash"],
                start,
            ));
        }
        for pd in self.ask_pd("GET", "/pd/api/v1/members", "").await?["members"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let address = http::address_of(pd["client_urls"][0].as_str().unwrap_or_default());
            let status = http::ask_json(address, "GET", "/pd/api/v1/status", "")
                .await
                .unwrap_or_default();
            let start = status["start_timestamp"].as_u64().unwrap_or(0);
            let address = json!(address);
            rows.push(instance(
                "pd",
                &address,
                &address,
                &pd["binary_version"],
                &pd["git_hash"],
                start,
            ));
        }
        for store in self.ask_pd("GET", "/pd/api/v1/stores", "").await?["stores"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let store = &store["store"];
            let start = store["start_timestamp"].as_u64().unwrap_or(0);
            rows.push(instance(
                "tikv",
                &store["address"],
                &store["status_address"],
                &store["version"],
                &store["git_hash"],
                start,
            ));
        }
        Ok(rows)
    }

    fn answer(&self, request: &Request) -> Answer {
        let connections = self.connections.load(Ordering::Relaxed);
        match request.path.as_str() {
            "/status" => Answer::json(&json!({
                "connections": connections, "version": self.release.mysql(), "git_hash": self.release.git_hash,
            })),
            "/info" => Answer::json(&self.info()),
            "/info/all" => Answer::json(&json!({
                "servers_num": 1, "owner_id": self.told["ddl_id"], "is_all_server_version_consistent": true,
                "all_servers_info": {(self.told["ddl_id"].as_str().unwrap_or_default()): self.info()},
            })),
            "/config" => Answer::json(&nested(&self.settings)),
            "/settings" => Answer::json(&nested(&self.settings)),
            "/metrics" => Answer::text(
                200,
                format!("# stand-in\ntidb_server_connections {connections}\n"),
            ),
            _ => Answer::not_found(),
        }
    }

    fn info(&self) -> Value {
        json!({
            "is_owner": true, "version": self.release.mysql(), "git_hash": self.release.git_hash,
            "ddl_id": self.told["ddl_id"], "ip": self.told["ip"], "listening_port": self.told["port"],
            "status_port": self.told["status_port"], "lease": self.settings.get("lease"), "start_timestamp": self.told["start"],
        })
    }
}

fn instance(
    kind: &str,
    address: &Value,
    status: &Value,
    version: &Value,
    git_hash: &Value,
    start: u64,
) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let began = jiff::Timestamp::from_second(start.cast_signed())
        .unwrap_or_default()
        .to_string();
    let uptime = format!("{}s", since_epoch().as_secs().saturating_sub(start));
    let version = text(version).trim_start_matches('v').to_owned();
    vec![
        kind.to_owned(),
        text(address),
        text(status),
        version,
        text(git_hash),
        began,
        uptime,
        "0".to_owned(),
    ]
}

/// The rows of `cluster_config` that a server tells of itself; none if it does not answer.
async fn config_of(instance: &[String]) -> Vec<Vec<String>> {
    let [kind, address, status, ..] = instance else {
        return Vec::new();
    };
    let path = if kind == "pd" {
        "/pd/api/v1/config"
    } else {
        "/config"
    };
    match http::ask_json(status, "GET", path, "").await {
        Ok(config) => leaves(&config)
            .into_iter()
            .map(|(key, value)| row(kind, address, key, &value))
            .collect(),
        Err(error) => {
            log("WARN", &format!("no configuration of {address}: {error}"));
            Vec::new()
        }
    }
}

fn row(kind: &str, address: &str, key: String, value: &Value) -> Vec<String> {
    let value = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    vec![kind.to_owned(), address.to_owned(), key, value]
}
