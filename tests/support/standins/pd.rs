//! The stand-in of pd-server. The first of `--initial-cluster` leads; the others hand on to it what they are asked.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::args::{Flag, Takes};
use crate::cluster::{Cluster, Store, is_kept};
use crate::config::{Config, Settings, below, leaves, nested};
use crate::http::{self, Answer, Request};
use crate::misbehaviour::Misbehaviour;
use crate::process::{End, block_on, checksum, end, info, log, open_log, print, since_epoch};
use crate::regions::{REGIONS, leaders, moving};
use crate::release::Release;
use crate::{Failure, Start, tls};

pub(crate) const FLAGS: &[Flag] = &[
    Flag("V", Takes::Nothing, ""),
    Flag("version", Takes::Nothing, ""),
    Flag("config-check", Takes::Nothing, ""),
    Flag("name", Takes::Value, ""),
    Flag("client-urls", Takes::Value, ""),
    Flag("advertise-client-urls", Takes::Value, ""),
    Flag("peer-urls", Takes::Value, ""),
    Flag("advertise-peer-urls", Takes::Value, ""),
    Flag("data-dir", Takes::Value, ""),
    Flag("initial-cluster", Takes::Value, ""),
    Flag("join", Takes::Value, ""),
    Flag("config", Takes::Value, ""),
    Flag("log-file", Takes::Value, ""),
    Flag("L", Takes::Value, ""),
];

/// How often a follower tells the leader that it is there, and how long that holds.
const TELL: Duration = Duration::from_secs(2);
const FRESH: Duration = Duration::from_secs(7);
/// How long a TiDB that has told of itself counts as running.
const TIDB_FRESH: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Member {
    name: String,
    client_urls: String,
    peer_urls: String,
    version: String,
    git_hash: String,
    deploy_path: String,
}

struct Pd {
    member: Member,
    release: Release,
    misbehaviour: Misbehaviour,
    settings: Settings,
    started: u64,
    /// Where the leader is, for a follower.
    leader: Option<String>,
    /// All members by name and peer URL, in order.
    initial: Vec<(String, String)>,
    cluster: Mutex<Cluster>,
    members: Mutex<BTreeMap<String, (Member, Instant)>>,
    tidbs: Mutex<BTreeMap<String, (Value, Instant)>>,
}

pub(crate) fn run(start: Start) -> Result<ExitCode, Failure> {
    let misbehaviour = Misbehaviour::of(&start)?;
    let config = Config::of(&start, &misbehaviour.ignore_config)?;
    if start.arguments.has("config-check") {
        print(&warning(&config).unwrap_or_else(|| "config check successful".to_owned()));
        return Ok(ExitCode::SUCCESS);
    }
    open_log(start.arguments.get("log-file"))?;
    info(&format!(
        "Welcome to the stand-in of Placement Driver (PD) {}",
        start.release.version
    ));
    warning(&config).inspect(|warning| log("WARN", warning));
    let pd = Arc::new(Pd::open(&start, misbehaviour, config)?);
    let secure = [
        "security.cacert-path",
        "security.cert-path",
        "security.key-path",
    ];
    if !tls::use_in_cluster(&pd.settings, secure)? && pd.member.client_urls.starts_with("https:") {
        return Err("the URLs ask for TLS, and the config file names no certificates".into());
    }
    block_on(serve(pd, &start))
}

/// PD only warns of keys that it does not know, also when it is asked to check.
fn warning(config: &Config) -> Option<String> {
    let unknown = &config.unknown;
    (!unknown.is_empty()).then(|| format!("Config contains undefined item: {}", unknown.join(", ")))
}

async fn serve(pd: Arc<Pd>, start: &Start) -> Result<ExitCode, Failure> {
    let from = tokio::time::Instant::now() + pd.misbehaviour.answer_after();
    for flag in ["client-urls", "peer-urls"] {
        for url in start.arguments.need(flag)?.split(',') {
            let listener = http::listen(http::address_of(url)).await?;
            let pd = Arc::clone(&pd);
            let handler = move |request| answer(Arc::clone(&pd), request);
            tokio::spawn(http::serve(listener, from, handler));
        }
    }
    if pd.leader.is_some() {
        tokio::spawn(follow(Arc::clone(&pd)));
    }
    info("stand-in is ready to serve");
    Ok(match end(&pd.misbehaviour).await? {
        End::Asked => ExitCode::SUCCESS,
        End::Told => ExitCode::FAILURE,
    })
}

/// Tells the leader of this member again and again.
async fn follow(pd: Arc<Pd>) {
    let member = json!(pd.member).to_string();
    loop {
        if let Some(leader) = &pd.leader
            && let Err(error) = http::ask_json(leader, "POST", "/stand-in/v1/member", &member).await
        {
            log("WARN", &format!("no leader: {error}"));
        }
        tokio::time::sleep(TELL).await;
    }
}

async fn answer(pd: Arc<Pd>, request: Request) -> Answer {
    let own = matches!(
        request.path.as_str(),
        "/pd/ping" | "/pd/api/v1/status" | "/pd/api/v1/version" | "/metrics"
    );
    let Some(leader) = pd.leader.as_ref().filter(|_| !own) else {
        return pd.answer(&request);
    };
    let target = if request.query.is_empty() {
        request.path
    } else {
        format!("{}?{}", request.path, request.query)
    };
    match http::ask(leader, &request.method, &target, &request.body).await {
        Ok(answer) => answer,
        Err(error) => Answer::text(503, format!("no leader (stand-in): {error}\n")),
    }
}

impl Pd {
    fn open(start: &Start, misbehaviour: Misbehaviour, config: Config) -> Result<Self, Failure> {
        let flags = &start.arguments;
        let name = flags.get("name").unwrap_or("pd").to_owned();
        let advertised = |flag: &str, or: &str| {
            flags
                .get(flag)
                .or_else(|| flags.get(or))
                .unwrap_or_default()
                .to_owned()
        };
        let member = Member {
            name,
            client_urls: advertised("advertise-client-urls", "client-urls"),
            peer_urls: advertised("advertise-peer-urls", "peer-urls"),
            version: start.release.version.clone(),
            git_hash: start.release.git_hash.clone(),
            deploy_path: deploy_path(),
        };
        let initial = initial(flags.get("initial-cluster"), &member)?;
        let leader = match flags.get("join") {
            Some(urls) => urls
                .split(',')
                .next()
                .map(http::address_of)
                .map(str::to_owned),
            None => initial
                .first()
                .filter(|first| first.0 != member.name)
                .map(|first| http::address_of(&first.1).to_owned()),
        };
        let data = Path::new(flags.need("data-dir")?);
        let cluster = Cluster::open(data, &config.settings, start.release.since("5.4"))?;
        let settings = with_flags(config.settings, &member, flags.need("data-dir")?);
        let started = since_epoch().as_secs();
        Ok(Self {
            member,
            release: start.release.clone(),
            misbehaviour,
            settings,
            started,
            leader,
            initial,
            cluster: Mutex::new(cluster),
            members: Mutex::default(),
            tidbs: Mutex::default(),
        })
    }

    fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().expect("no answer panics")
    }

    fn answer(&self, request: &Request) -> Answer {
        let Request {
            method,
            path,
            query,
            body,
        } = request;
        if let Some(rest) = path.strip_prefix("/stand-in/v1/") {
            return self
                .internal(rest, body)
                .unwrap_or_else(|error| Answer::text(400, error.to_string()));
        }
        match path.as_str() {
            "/pd/ping" => return Answer::text(200, ""),
            "/pd/health" => return Answer::json(&self.health()),
            "/pd/api/v2/ready" if self.release.since("8.5.2") => return self.ready(query),
            "/metrics" => return Answer::text(200, "pd_cluster_id 1\n"),
            _ => {}
        }
        let Some(path) = path.strip_prefix("/pd/api/v1/") else {
            return Answer::not_found();
        };
        if method == "POST" {
            return self.post(path, body);
        }
        self.get(path.trim_end_matches('/'), query)
    }

    fn get(&self, path: &str, query: &str) -> Answer {
        let value = match path {
            "health" => self.health(),
            "version" => json!({"version": self.release.version}),
            "status" => json!({
                "build_ts": "2020-01-01 00:00:00", "version": self.release.version,
                "git_hash": self.release.git_hash, "start_timestamp": self.started,
            }),
            "members" => self.members(),
            "leader" => self.leading(),
            "cluster" => json!({"id": self.cluster().id(), "max_peer_count": self.max_replicas()}),
            "cluster/status" => self.cluster_status(),
            "config" => nested(&self.in_effect()),
            "config/schedule" => nested(&below(&self.in_effect(), "schedule.")),
            "config/replicate" => nested(&below(&self.in_effect(), "replication.")),
            "config/cluster-version" => json!(self.cluster().version()),
            "schedulers" => json!([
                "balance-leader-scheduler",
                "balance-region-scheduler",
                "balance-hot-region-scheduler"
            ]),
            "hotspot/regions/read" | "hotspot/regions/write" => {
                json!({"as_peer": {}, "as_leader": {}})
            }
            "min-resolved-ts" => {
                json!({"min_resolved_ts": 0, "is_real_time": false, "persist_interval": "0s"})
            }
            "gc/safepoint" => json!({"service_gc_safe_points": [], "gc_safe_point": 0}),
            _ if self.cluster().bootstrapped().is_none() => {
                let text = "[PD:cluster:ErrNotBootstrapped]TiKV cluster not bootstrapped, please start TiKV first";
                return Answer::text(500, json!(text).to_string());
            }
            "stores" => self.stores(query),
            "operators" => json!(self.operators()),
            "regions/count" => json!({"count": REGIONS}),
            "regions" => {
                json!({"count": REGIONS, "regions": (0..REGIONS).map(|id| json!({"id": id + 100})).collect::<Vec<_>>()})
            }
            "stats/region" => self.region_stats(),
            other => return self.get_named(other),
        };
        Answer::json(&value)
    }

    fn get_named(&self, path: &str) -> Answer {
        if let Some(kind) = path.strip_prefix("regions/check/") {
            let count = self.regions_with(kind);
            let regions: Vec<Value> = (0..count).map(|id| json!({"id": id + 100})).collect();
            return Answer::json(&json!({"count": count, "regions": regions}));
        }
        let id = path.strip_prefix("store/").and_then(|id| id.parse().ok());
        let cluster = self.cluster();
        match id.and_then(|id| cluster.store(id)) {
            Some(store) => Answer::json(&self.store(&cluster, store)),
            None if id.is_some() => Answer::text(404, json!("store not found").to_string()),
            None => Answer::not_found(),
        }
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        let prefix = match path {
            "config" => "",
            "config/schedule" => "schedule.",
            "config/replicate" => "replication.",
            "schedulers" | "leader/resign" => {
                return Answer::text(200, "\"done by the stand-in\"\n");
            }
            other if other.starts_with("schedulers/") || other.starts_with("leader/transfer/") => {
                return Answer::text(200, "\"done by the stand-in\"\n");
            }
            _ => return Answer::not_found(),
        };
        match self.set(prefix, body) {
            Ok(()) => Answer::text(200, "\"The config is updated.\"\n"),
            Err(error) => Answer::text(400, json!(error.to_string()).to_string()),
        }
    }

    fn set(&self, prefix: &str, body: &str) -> Result<(), Failure> {
        for (key, value) in leaves(&serde_json::from_str(body)?) {
            let key = format!("{prefix}{key}");
            if !is_kept(&key) || !self.cluster().settings().contains_key(&key) {
                return Err(format!("config item {key} not found").into());
            }
            if !self.misbehaviour.ignore_config.contains(&key) {
                self.cluster().set(&key, value)?;
            }
        }
        Ok(())
    }

    /// What the other stand-ins ask for and tell.
    fn internal(&self, path: &str, body: &str) -> Result<Answer, Failure> {
        let value = match path {
            "member" => {
                let member: Member = serde_json::from_str(body)?;
                let mut members = self.members.lock().expect("no answer panics");
                members.insert(member.name.clone(), (member, Instant::now()));
                json!({})
            }
            "store" => {
                let store: Store = serde_json::from_str(body)?;
                let mut cluster = self.cluster();
                let id = cluster.register(store)?;
                info(&format!("store {id} has come"));
                let first = cluster.stores().map(|store| store.id).min() == Some(id);
                json!({"store_id": id, "first": first})
            }
            "cluster-id" => json!({"cluster_id": self.cluster().id()}),
            "heartbeat" => {
                let told: Value = serde_json::from_str(body)?;
                let mut cluster = self.cluster();
                if told["cluster_id"].as_u64() != Some(cluster.id()) {
                    return Err(format!(
                        "mismatch cluster id, need {} but got {}",
                        cluster.id(),
                        told["cluster_id"]
                    )
                    .into());
                }
                cluster.heartbeat(told["store_id"].as_u64().unwrap_or(0))?;
                json!({})
            }
            "tidb" => {
                let told: Value = serde_json::from_str(body)?;
                let name = told["instance"].as_str().unwrap_or_default().to_owned();
                self.tidbs
                    .lock()
                    .expect("no answer panics")
                    .insert(name, (told, Instant::now()));
                json!({})
            }
            "tidbs" => {
                let tidbs = self.tidbs.lock().expect("no answer panics");
                json!(
                    tidbs
                        .values()
                        .filter(|tidb| tidb.1.elapsed() < TIDB_FRESH)
                        .map(|tidb| &tidb.0)
                        .collect::<Vec<_>>()
                )
            }
            _ => return Ok(Answer::not_found()),
        };
        Ok(Answer::json(&value))
    }

    fn ready(&self, query: &str) -> Answer {
        let loaded = json!({"status": "ready", "region_loaded": true});
        if query.contains("verbose") {
            Answer::json(&loaded)
        } else {
            Answer::text(200, "")
        }
    }

    /// All members: what is known of them, and whether they have been heard of lately.
    fn known_members(&self) -> Vec<(Member, bool)> {
        let told = self.members.lock().expect("no answer panics");
        let mut names: Vec<(String, String)> = self.initial.clone();
        names.extend(
            told.values()
                .map(|(member, _)| (member.name.clone(), member.peer_urls.clone())),
        );
        let mut members: Vec<(Member, bool)> = Vec::new();
        for (name, peer_urls) in names {
            if members.iter().any(|(member, _)| member.name == name) {
                continue;
            }
            members.push(match told.get(&name) {
                _ if name == self.member.name => (self.member.clone(), true),
                Some((member, at)) => (member.clone(), at.elapsed() < FRESH),
                None => (
                    Member {
                        name,
                        peer_urls,
                        client_urls: String::new(),
                        ..self.member.clone()
                    },
                    false,
                ),
            });
        }
        members
    }

    fn health(&self) -> Value {
        let members = self.known_members();
        let health = members.iter().map(|(member, healthy)| {
            let urls: Vec<&str> = member.client_urls.split(',').collect();
            json!({"name": member.name, "member_id": member_id(&member.name), "client_urls": urls, "health": healthy})
        });
        Value::Array(health.collect())
    }

    fn members(&self) -> Value {
        let members: Vec<Value> = self
            .known_members()
            .iter()
            .map(|(member, _)| described(member))
            .collect();
        json!({
            "header": {"cluster_id": self.cluster().id()}, "members": members,
            "leader": self.leading(), "etcd_leader": self.leading(),
        })
    }

    fn leading(&self) -> Value {
        described(&self.member)
    }

    fn cluster_status(&self) -> Value {
        let bootstrapped = self.cluster().bootstrapped();
        let time = jiff::Timestamp::from_second(bootstrapped.unwrap_or(0).cast_signed())
            .unwrap_or_default();
        json!({
            "raft_bootstrap_time": time.to_string(), "is_initialized": bootstrapped.is_some(),
            "replication_status": "",
        })
    }

    /// Effective settings: the file's, and what the cluster keeps.
    fn in_effect(&self) -> Settings {
        let mut settings = self.settings.clone();
        settings.extend(self.cluster().settings().clone());
        settings.insert(
            "cluster-version".to_owned(),
            json!(self.cluster().version()),
        );
        if let Some(labels) = settings.get_mut("replication.location-labels")
            && let Value::Array(list) = labels
        {
            let list: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            *labels = json!(list.join(","));
        }
        settings
    }

    fn max_replicas(&self) -> u64 {
        self.cluster()
            .settings()
            .get("replication.max-replicas")
            .and_then(Value::as_u64)
            .unwrap_or(3)
    }

    fn stores(&self, query: &str) -> Value {
        let wanted: Vec<&str> = query
            .split('&')
            .filter_map(|pair| pair.strip_prefix("state="))
            .collect();
        // Stores go neither offline nor tombstone here.
        let all = wanted.is_empty() || wanted.contains(&"0");
        let cluster = self.cluster();
        let stores: Vec<Value> = cluster
            .stores()
            .filter(|_| all)
            .map(|store| self.store(&cluster, store))
            .collect();
        json!({"count": stores.len(), "stores": stores})
    }

    fn store(&self, cluster: &Cluster, store: &Store) -> Value {
        let up = cluster.up();
        let count = leaders(
            &up,
            cluster.calm().as_secs(),
            !self.misbehaviour.never_balance,
        );
        let labels: Vec<Value> = store
            .labels
            .iter()
            .map(|(key, value)| json!({"key": key, "value": value}))
            .collect();
        let beat =
            jiff::Timestamp::from_nanosecond(store.last_heartbeat.into()).unwrap_or_default();
        let start =
            jiff::Timestamp::from_second(store.start_timestamp.cast_signed()).unwrap_or_default();
        let mut told = json!({
            "id": store.id, "address": store.address, "version": store.version, "peer_address": store.address,
            "status_address": store.status_address, "git_hash": store.git_hash, "start_timestamp": store.start_timestamp,
            "deploy_path": store.deploy_path, "last_heartbeat": store.last_heartbeat, "state_name": store.state(),
        });
        if !labels.is_empty() {
            told["labels"] = json!(labels);
        }
        let mut status = json!({
            "capacity": "100GiB", "available": "90GiB", "used_size": "31.5MiB",
            "leader_weight": 1, "region_count": REGIONS, "region_weight": 1, "region_score": REGIONS, "region_size": REGIONS,
            "start_ts": start.to_string(), "last_heartbeat_ts": beat.to_string(),
            "uptime": format!("{}s", since_epoch().as_secs().saturating_sub(store.start_timestamp)),
        });
        // What is zero is left out, as the real one does it.
        if let Some(count) = count.get(&store.id).filter(|count| **count > 0) {
            status["leader_count"] = json!(count);
            status["leader_score"] = json!(count);
            status["leader_size"] = json!(count);
        }
        json!({"store": told, "status": status})
    }

    fn operators(&self) -> Vec<String> {
        let cluster = self.cluster();
        let up = cluster.up();
        let never = self.misbehaviour.never_balance;
        if !(never || moving(&up, cluster.calm().as_secs(), true)) {
            return Vec::new();
        }
        let (from, to) = (up.first().unwrap_or(&1), up.last().unwrap_or(&1));
        let text = format!(
            "balance-leader {{transfer leader: store {from} to {to}}} (kind:leader, region:100(1,1), stand-in)"
        );
        vec![text]
    }

    fn regions_with(&self, trouble: &str) -> u64 {
        let replicas = self.max_replicas();
        let cluster = self.cluster();
        let (all, up) = (cluster.stores().count() as u64, cluster.up().len() as u64);
        match trouble {
            "miss-peer" if all < replicas => REGIONS,
            "down-peer" | "pending-peer" if up < all => REGIONS,
            _ => 0,
        }
    }

    fn region_stats(&self) -> Value {
        let cluster = self.cluster();
        let up = cluster.up();
        let leaders = leaders(
            &up,
            cluster.calm().as_secs(),
            !self.misbehaviour.never_balance,
        );
        let peers: BTreeMap<u64, u64> = up.iter().map(|store| (*store, REGIONS)).collect();
        json!({
            "count": REGIONS, "empty_count": 0, "storage_size": REGIONS, "storage_keys": REGIONS * 1000,
            "store_leader_count": leaders, "store_peer_count": peers,
            "store_leader_size": leaders, "store_leader_keys": leaders, "store_peer_size": peers, "store_peer_keys": peers,
        })
    }
}

fn described(member: &Member) -> Value {
    json!({
        "name": member.name, "member_id": member_id(&member.name),
        "peer_urls": member.peer_urls.split(',').collect::<Vec<_>>(),
        "client_urls": member.client_urls.split(',').collect::<Vec<_>>(),
        "deploy_path": member.deploy_path, "binary_version": member.version, "git_hash": member.git_hash,
    })
}

fn member_id(name: &str) -> u64 {
    checksum(name.as_bytes())
}

/// The folder that this program lies in.
pub(crate) fn deploy_path() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    program
        .parent()
        .unwrap_or(Path::new("/"))
        .display()
        .to_string()
}

fn initial(flag: Option<&str>, member: &Member) -> Result<Vec<(String, String)>, Failure> {
    let Some(flag) = flag else {
        return Ok(vec![(member.name.clone(), member.peer_urls.clone())]);
    };
    let pairs = flag.split(',').map(|pair| {
        pair.split_once('=')
            .map(|(name, url)| (name.to_owned(), url.to_owned()))
    });
    let initial: Option<Vec<_>> = pairs.collect();
    let initial = initial.ok_or_else(|| format!("initial-cluster {flag:?} is not name=url,…"))?;
    if !initial.iter().any(|(name, _)| *name == member.name) {
        return Err(format!(
            "couldn't find local name {:?} in the initial cluster configuration",
            member.name
        )
        .into());
    }
    Ok(initial)
}

fn with_flags(mut settings: Settings, member: &Member, data: &str) -> Settings {
    for (key, value) in [
        ("name", member.name.as_str()),
        ("data-dir", data),
        ("advertise-client-urls", &member.client_urls),
        ("advertise-peer-urls", &member.peer_urls),
    ] {
        settings.insert(key.to_owned(), json!(value));
    }
    settings
}
