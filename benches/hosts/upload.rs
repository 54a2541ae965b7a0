//! A file of random bytes to four hosts at once, beside `ssh HOST 'cat > FILE'`.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use assay::host::transfer::{self, Options, Sent, Source};
use assay::host::{Host as _, Retry, SshHost, fan_out};
use rand::{Rng as _, SeedableRng as _};
use std::sync::Arc;

use crate::exec::connect;
use crate::fleet::Fleet;
use crate::{load, spread};

const HOSTS: usize = 4;
const BYTES: usize = 200 << 20;

pub(crate) fn measure(to: &Path, rounds: usize) {
    let fleet = Fleet::start(HOSTS, to);
    println!(
        "\n{} MiB of random bytes to {HOSTS} hosts at once, below {}, {rounds} rounds; load before: {}\n",
        BYTES >> 20,
        to.display(),
        load()
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let hosts = runtime.block_on(connect(&fleet));
    for (folder, options) in [("mux", ""), ("quick", "-c aes128-gcm@openssh.com")] {
        let open = "for h in $HOSTS; do $SSH -o ControlPersist=600 -MNf";
        let open = format!("mkdir {folder}; {open} {options} -S {folder}/$h $h; done");
        assert!(fleet.shell(&open).status().unwrap().success());
    }
    let cat = |folder: &str| {
        let ssh = format!("$SSH -S {folder}/$h $h \"cat > $PWD/$h/plain\" < source");
        let all = format!("for h in $HOSTS; do {ssh} & done; wait");
        assert!(fleet.shell(&all).status().unwrap().success());
    };
    let mut times: [Vec<f64>; 6] = Default::default();
    for round in 0..rounds {
        fill(&fleet.path("source"), round);
        let mut timed = |number: usize, work: &mut dyn FnMut()| {
            let begin = Instant::now();
            work();
            times[number].push(begin.elapsed().as_secs_f64());
        };
        for (number, folder) in [(0, "mux"), (1, "quick")] {
            timed(number, &mut || cat(folder));
            for host in fleet.names() {
                let arrived = fleet.home(&host).join("plain");
                assert_eq!(std::fs::metadata(&arrived).unwrap().len(), BYTES as u64);
                std::fs::remove_file(arrived).unwrap();
            }
        }
        let send = |path: Option<&str>| {
            let name = path.map(|path| format!("{path}-{round}"));
            runtime.block_on(send(&fleet, &hosts, name))
        };
        timed(2, &mut || assert!(send(None) >= (BYTES * HOSTS) as u64));
        timed(3, &mut || assert_eq!(send(None), 0));
        timed(4, &mut || assert_eq!(send(Some("copy")), 0));
        tidy(&fleet);
        timed(5, &mut || {
            assert!(send(Some("whole")) >= (BYTES * HOSTS) as u64);
        });
        tidy(&fleet);
    }
    for folder in ["mux", "quick"] {
        fleet.end_masters(&fleet.path(folder));
    }
    let names = [
        "`ssh HOST 'cat > FILE'`, over masters that stand",
        "the same with `-c aes128-gcm@openssh.com`, which assay prefers",
        "assay, into the hosts' caches",
        "the same again: 0 bytes are sent",
        "from the caches to a place: 0 bytes are sent",
        "assay, to a place, nothing in the caches",
    ];
    println!("| what | s, median | min - max | MB/s, all hosts | speed beside ssh |");
    println!("|---|--:|--:|--:|--:|");
    for (name, seconds) in names.iter().zip(&times) {
        let ratios = seconds.iter().zip(&times[0]).map(|(s, r)| r / s).collect();
        let ([min, median, max], [_, ratio, _]) = (spread(seconds.clone()), spread(ratios));
        let rate = (BYTES * HOSTS) as f64 / 1e6 / median;
        println!(
            "| {name} | {median:.2} | {min:.2} - {max:.2} | {rate:.0} | {:.0} % |",
            ratio * 100.0
        );
    }
}

fn fill(path: &Path, seed: usize) {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed as u64);
    let mut bytes = vec![0; BYTES];
    random.fill_bytes(&mut bytes);
    std::fs::File::create(path)
        .unwrap()
        .write_all(&bytes)
        .unwrap();
}

/// Empties the caches and removes what was made.
fn tidy(fleet: &Fleet) {
    for host in fleet.names() {
        std::fs::remove_dir_all(fleet.home(&host).join(".assay")).unwrap();
        std::fs::create_dir(fleet.home(&host).join(".assay")).unwrap();
    }
}

/// Hashes the file and sends it to every host; how many bytes went over the wire.
async fn send(fleet: &Fleet, hosts: &[Arc<SshHost>], place: Option<String>) -> u64 {
    let source = Source::read(&fleet.path("source")).await.unwrap();
    let works: Vec<_> = hosts
        .iter()
        .map(|host| {
            let (host, source, place) = (Arc::clone(host), source.clone(), place.clone());
            async move { to_one(&host, &source, place).await.sent }
        })
        .collect();
    fan_out(works, HOSTS, |_, _| {}).await.into_iter().sum()
}

async fn to_one(host: &SshHost, source: &Source, place: Option<String>) -> Sent {
    let target = transfer::Target {
        channels: host,
        directory: host.directory(),
    };
    let options = Options::new(Retry::NEVER);
    match place {
        None => transfer::provide(target, source, &options).await.unwrap().1,
        Some(name) => {
            let remote = host.directory().join(name);
            transfer::upload(target, source, &remote, false, &options)
                .await
                .unwrap()
        }
    }
}
