//! The stand-in of tikv-server. The first store of a cluster keeps a MariaDB in its data directory and hands its clients
//! on to it, on the port where the real one speaks gRPC.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, sleep_until};

use crate::args::{Flag, Takes};
use crate::config::{Config, Settings, below, leaves, nested, tikv_ranges};
use crate::engine::Engine;
use crate::http::{self, Answer, Request};
use crate::misbehaviour::Misbehaviour;
use crate::pd::deploy_path;
use crate::process::{End, block_on, end, info, log, open_log, print, since_epoch};
use crate::raft::RaftLog;
use crate::release::Release;
use crate::sql::{self, Sql};
use crate::{Failure, Start, tls};

pub(crate) const FLAGS: &[Flag] = &[
    Flag("V", Takes::Nothing, ""),
    Flag("version", Takes::Nothing, ""),
    Flag("config-check", Takes::Nothing, ""),
    Flag("addr", Takes::Value, ""),
    Flag("advertise-addr", Takes::Value, ""),
    Flag("status-addr", Takes::Value, ""),
    Flag("advertise-status-addr", Takes::Value, "4.0.1"),
    Flag("pd", Takes::Value, ""),
    Flag("data-dir", Takes::Value, ""),
    Flag("config", Takes::Value, ""),
    Flag("log-file", Takes::Value, ""),
    Flag("labels", Takes::Value, ""),
];

/// Heartbeats of a store; the real one's are 10 s apart.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// How long compaction goes on after a start.
const COMPACTION: Duration = Duration::from_secs(2);

/// What the status port tells.
struct Told {
    settings: Mutex<Settings>,
    misbehaviour: Misbehaviour,
    started: Instant,
    tables: Mutex<usize>,
}

/// The files in the data directory.
struct Data {
    path: PathBuf,
    engine: Engine,
    raft: RaftLog,
    /// Held for as long as the process lives.
    _lock: File,
}

pub(crate) fn run(start: Start) -> Result<ExitCode, Failure> {
    let misbehaviour = Misbehaviour::of(&start)?;
    let config = Config::of(&start, &misbehaviour.ignore_config)?;
    tikv_ranges(&merged(&config), &start.release)
        .map_err(|error| format!("invalid configuration: {error}"))?;
    if start.arguments.has("config-check") {
        return check(&config);
    }
    open_log(start.arguments.get("log-file"))?;
    info(&format!(
        "Welcome to the stand-in of TiKV {}",
        start.release.bare()
    ));
    if !config.unknown.is_empty() {
        log(
            "WARN",
            &format!(
                "unrecognized configuration options: {}",
                config.unknown.join(", ")
            ),
        );
    }
    let outcome = block_on(serve(&start, config, misbehaviour));
    outcome.inspect_err(|error| log("FATAL", &error.to_string()))
}

/// What was asked, over the defaults: also a key that the stand-in ignores is checked.
fn merged(config: &Config) -> Settings {
    let mut settings = config.settings.clone();
    settings.extend(config.asked.clone());
    settings
}

fn check(config: &Config) -> Result<ExitCode, Failure> {
    if config.unknown.is_empty() {
        print("config check successful");
        return Ok(ExitCode::SUCCESS);
    }
    Err(format!(
        "unknown configuration options: {}",
        config.unknown.join(", ")
    )
    .into())
}

async fn serve(
    start: &Start,
    config: Config,
    misbehaviour: Misbehaviour,
) -> Result<ExitCode, Failure> {
    let flags = &start.arguments;
    let mut settings = config.settings;
    tls::use_in_cluster(
        &settings,
        [
            "security.ca-path",
            "security.cert-path",
            "security.key-path",
        ],
    )?;
    settings.insert(
        "storage.data-dir".to_owned(),
        json!(flags.need("data-dir")?),
    );
    settings.insert("server.addr".to_owned(), json!(flags.need("addr")?));
    let mut data = Data::open(
        Path::new(flags.need("data-dir")?),
        &settings,
        &start.release,
    )?;
    let pds: Vec<String> = flags
        .need("pd")?
        .split(',')
        .map(|pd| http::address_of(pd).to_owned())
        .collect();
    let joined = join(&mut data, &pds, start, &settings).await?;
    data.write_last_config(&settings)?;
    let told = Arc::new(Told {
        settings: Mutex::new(settings),
        started: Instant::now(),
        tables: Mutex::new(data.engine.tables()),
        misbehaviour,
    });
    let mut database = match joined.first {
        true => Some(
            Sql::start(
                &data.path.join("db/sql"),
                &error_log(flags.get("log-file"), &data.path),
            )
            .await?,
        ),
        false => None,
    };
    listen(start, &told, database.as_ref()).await?;
    info(&format!(
        "stand-in of TiKV is ready to serve as store {}",
        joined.store
    ));
    let outcome = tokio::select! {
        outcome = end(&told.misbehaviour) => outcome,
        error = beat(&mut data, &pds, &joined, &told) => Err(error),
        error = watch(database.as_mut()) => Err(error),
    };
    if let Ok(End::Told) = outcome {
        return Ok(ExitCode::FAILURE);
    }
    if let Some(database) = database {
        database.stop().await?;
    }
    data.raft.close()?;
    info("stand-in of TiKV has stopped");
    outcome.map(|_| ExitCode::SUCCESS)
}

fn error_log(log_file: Option<&str>, data: &Path) -> PathBuf {
    match log_file {
        Some(log_file) => Path::new(log_file).with_file_name("tikv_stand_in_sql.log"),
        None => data.join("stand-in-sql.log"),
    }
}

/// What PD gave this store.
struct Joined {
    cluster: u64,
    store: u64,
    first: bool,
}

/// Joins the cluster of PD, which must be the one that the data directory is of. Waits until a PD answers.
async fn join(
    data: &mut Data,
    pds: &[String],
    start: &Start,
    settings: &Settings,
) -> Result<Joined, Failure> {
    let remote = loop {
        match ask_any(pds, "cluster-id", "{}").await {
            Ok(answer) => break answer["cluster_id"].as_u64().unwrap_or(0),
            Err(error) => log("WARN", &format!("failed to connect to PD: {error}")),
        }
        sleep(Duration::from_secs(1)).await;
    };
    if let Some(local) = data
        .engine
        .ident("cluster_id")
        .filter(|local| *local != remote)
    {
        return Err(format!(
            "cluster ID mismatch, local {local} != remote {remote}, you are trying to connect to another cluster, please \
             reconnect to the correct PD"
        )
        .into());
    }
    let known = data.engine.ident("store_id").unwrap_or(0);
    let told = ask_any(
        pds,
        "store",
        &description(start, settings, known).to_string(),
    )
    .await?;
    let store = told["store_id"].as_u64().unwrap_or(0);
    if known == 0 {
        data.engine.set_ident("cluster_id", remote)?;
        data.engine.set_ident("store_id", store)?;
    }
    Ok(Joined {
        cluster: remote,
        store,
        first: told["first"].as_bool().unwrap_or(false),
    })
}

fn description(start: &Start, settings: &Settings, id: u64) -> Value {
    let flags = &start.arguments;
    let address = flags
        .get("advertise-addr")
        .or_else(|| flags.get("addr"))
        .unwrap_or_default();
    let status = flags
        .get("advertise-status-addr")
        .or_else(|| flags.get("status-addr"))
        .unwrap_or_default();
    let labels = below(settings, "server.labels.").into_iter();
    let mut labels: BTreeMap<String, String> =
        labels.map(|(key, value)| (key, text(&value))).collect();
    let given = flags
        .get("labels")
        .unwrap_or_default()
        .split(',')
        .filter_map(|pair| pair.split_once('='));
    labels.extend(given.map(|(key, value)| (key.to_owned(), value.to_owned())));
    json!({
        "id": id, "address": address, "status_address": status, "version": start.release.bare(),
        "git_hash": start.release.git_hash, "deploy_path": deploy_path(), "labels": labels,
        "start_timestamp": since_epoch().as_secs(),
    })
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Asks the PDs one after the other; the last error counts.
async fn ask_any(pds: &[String], path: &str, body: &str) -> Result<Value, Failure> {
    let mut last: Failure = "no PD is given".into();
    for pd in pds {
        match http::ask_json(pd, "POST", &format!("/stand-in/v1/{path}"), body).await {
            Ok(answer) => return Ok(answer),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Opens the ports: clients of the first store reach its database, those of others are turned away.
async fn listen(start: &Start, told: &Arc<Told>, database: Option<&Sql>) -> Result<(), Failure> {
    let flags = &start.arguments;
    let from = Instant::now() + told.misbehaviour.answer_after();
    let clients = http::listen(flags.need("addr")?).await?;
    tokio::spawn(pass(
        clients,
        from,
        database.map(|database| database.socket().to_owned()),
    ));
    if let Some(status) = flags.get("status-addr") {
        let told = Arc::clone(told);
        let handler = move |request: Request| std::future::ready(told.answer(&request));
        tokio::spawn(http::serve(http::listen(status).await?, from, handler));
    }
    Ok(())
}

async fn pass(listener: TcpListener, from: Instant, socket: Option<String>) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let Some(socket) = socket.clone() else {
            continue;
        };
        tokio::spawn(async move {
            sleep_until(from).await;
            let _ = client.set_nodelay(true);
            if let Ok(mut client) = tls::accepted(client)
                && let Ok(mut server) = sql::connect(&socket).await
            {
                // Either side may hang up at any time.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}

/// Sends heartbeats and writes, so that files change; returns with what went wrong.
async fn beat(data: &mut Data, pds: &[String], joined: &Joined, told: &Told) -> Failure {
    let body = json!({"cluster_id": joined.cluster, "store_id": joined.store}).to_string();
    loop {
        if let Err(error) = data.write() {
            return error;
        }
        *told.tables.lock().expect("no answer panics") = data.engine.tables();
        match ask_any(pds, "heartbeat", &body).await {
            Err(error) if error.to_string().contains("mismatch cluster id") => return error,
            Err(error) => log("WARN", &format!("heartbeat failed: {error}")),
            Ok(_) => {}
        }
        sleep(HEARTBEAT).await;
    }
}

async fn watch(database: Option<&mut Sql>) -> Failure {
    match database {
        Some(database) => database.watch().await,
        None => std::future::pending().await,
    }
}

impl Data {
    fn open(path: &Path, settings: &Settings, release: &Release) -> Result<Self, Failure> {
        fs::create_dir_all(path)?;
        let lock = File::create(path.join("LOCK"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "lock {} failed, maybe another instance is using this directory.",
                    path.display()
                )
                .into());
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        if path.join("panic_mark_file").exists() {
            return Err("panic_mark_file exists, there must be something wrong with the db".into());
        }
        check_last_config(path, settings)?;
        let mut engine = Engine::open(&path.join("db"))?;
        let with_files = settings
            .get("raft-engine.enable")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        let raft = RaftLog::open(path, with_files)?;
        let (applied, last) = (engine.last(), raft.last());
        if applied > last || applied + 1 < last {
            return Err(format!("[region 100] 101 unexpected raft log index: last_index {last} applied_index {applied}").into());
        }
        if applied < last {
            engine.append()?;
        }
        for folder in ["snap", "import"] {
            fs::create_dir_all(path.join(folder))?;
        }
        if release.since("7.6") {
            write_blob(path)?;
        }
        // Sparse: it takes no room.
        File::create(path.join("space_placeholder_file"))?.set_len(64 << 20)?;
        Ok(Self {
            path: path.to_owned(),
            engine,
            raft,
            _lock: lock,
        })
    }

    /// An entry to Raft's log, then to the engine, as a write would go.
    fn write(&mut self) -> Result<(), Failure> {
        self.raft.append()?;
        self.engine.append()
    }

    fn write_last_config(&self, settings: &Settings) -> Result<(), Failure> {
        let text = toml::to_string(&nested(settings))?;
        let temporary = self.path.join("tmp-last_tikv.toml");
        fs::write(&temporary, text)?;
        Ok(fs::rename(temporary, self.path.join("last_tikv.toml"))?)
    }
}

/// Titan's file: written once.
fn write_blob(data: &Path) -> Result<(), Failure> {
    let folder = data.join("db/titandb");
    fs::create_dir_all(&folder)?;
    let blob = folder.join("000001.blob");
    if !blob.exists() {
        fs::write(blob, "stand-in\n".repeat(1000))?;
    }
    Ok(())
}

/// What may not change between two starts.
fn check_last_config(data: &Path, settings: &Settings) -> Result<(), Failure> {
    let Ok(text) = fs::read_to_string(data.join("last_tikv.toml")) else {
        return Ok(());
    };
    let table: toml::Table = text.parse()?;
    let last = leaves(&serde_json::to_value(table)?);
    for key in [
        "storage.data-dir",
        "rocksdb.wal-dir",
        "raftdb.wal-dir",
        "raftstore.raftdb-path",
        "raft-engine.dir",
    ] {
        if let (Some(old), Some(new)) = (last.get(key), settings.get(key))
            && old != new
        {
            return Err(format!(
                "critical config check failed: {key} have been changed, former {old}, current {new}"
            )
            .into());
        }
    }
    Ok(())
}

impl Told {
    fn answer(&self, request: &Request) -> Answer {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/status") => Answer::text(200, ""),
            ("GET", "/metrics") => Answer::text(200, self.metrics()),
            ("GET", "/config") => {
                Answer::json(&nested(&self.settings.lock().expect("no answer panics")))
            }
            ("POST", "/config") => match self.set(&request.body) {
                Ok(()) => Answer::text(200, ""),
                Err(error) => Answer::text(500, format!("failed to update, error: {error}")),
            },
            _ => Answer::text(404, "path not found"),
        }
    }

    fn set(&self, body: &str) -> Result<(), Failure> {
        let mut settings = self.settings.lock().expect("no answer panics");
        for (key, value) in leaves(&serde_json::from_str(body)?) {
            if !settings.contains_key(&key) {
                return Err(format!("config {key} not found").into());
            }
            if !self.misbehaviour.ignore_config.contains(&key) {
                settings.insert(key, value);
            }
        }
        Ok(())
    }

    fn metrics(&self) -> String {
        let busy = self.misbehaviour.never_idle || self.started.elapsed() < COMPACTION;
        // It grows for as long as compaction goes on, and stands after that.
        let flow = if busy {
            self.started.elapsed()
        } else {
            COMPACTION
        }
        .as_millis();
        let pending = if busy { 64 << 20 } else { 0 };
        let tables = self.tables.lock().expect("no answer panics");
        let settings = self.settings.lock().expect("no answer panics");
        let mut text = String::from("# stand-in\n");
        for cf in ["default", "lock", "write"] {
            text += &format!(
                "tikv_engine_pending_compaction_bytes{{cf=\"{cf}\",db=\"kv\"}} {pending}\n"
            );
            text += &format!(
                "tikv_engine_num_immutable_mem_table{{cf=\"{cf}\",db=\"kv\"}} {}\n",
                u8::from(busy)
            );
            text += &format!(
                "tikv_engine_num_files_at_level{{cf=\"{cf}\",db=\"kv\",level=\"0\"}} {}\n",
                *tables
            );
        }
        for kind in ["bytes_read", "bytes_written"] {
            text += &format!(
                "tikv_engine_compaction_flow_bytes{{db=\"kv\",type=\"{kind}\"}} {}\n",
                flow * 1000
            );
        }
        for kind in ["flush", "compaction", "ingestion"] {
            text += &format!(
                "tikv_engine_event_total{{cf=\"default\",db=\"kv\",type=\"{kind}\"}} {}\n",
                flow / 100
            );
        }
        text += "tikv_engine_write_stall{db=\"kv\",type=\"write_stall_max\"} 0\n";
        text += &format!(
            "tikv_raftstore_region_count{{type=\"region\"}} {}\n",
            crate::regions::REGIONS
        );
        text += "tikv_worker_pending_task_total{name=\"stand-in\"} 0\n";
        for (prefix, metric) in [
            ("raftstore.", "tikv_config_raftstore"),
            ("rocksdb.", "tikv_config_rocksdb"),
        ] {
            for (key, value) in below(&settings, prefix) {
                if let Some(number) = value
                    .as_f64()
                    .or_else(|| value.as_bool().map(|on| f64::from(u8::from(on))))
                {
                    text += &format!("{metric}{{name=\"{}\"}} {number}\n", key.replace('-', "_"));
                }
            }
        }
        text
    }
}
