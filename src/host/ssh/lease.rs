//! The lease of a host over SSH: taken over the connection, and kept while its heart beats.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::{ANSWER, Reach};
use crate::host::lease::{BEAT, Holder};
use crate::host::remote::Refused;
use crate::host::{Claim, Hold, HostError, Lease, Pending};

/// Takes the host's lease. One whose holder was a process of this machine that is dead is taken over.
pub(super) async fn take(reach: &Arc<Reach>, claim: Claim<'_>) -> Result<Lease, HostError> {
    let token = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
    let holder = Holder::elsewhere(claim.owner, token.clone());
    let mut dead = None::<String>;
    loop {
        let connection = reach.connected().await?;
        let asked = connection
            .link
            .take(&holder, dead.as_deref(), claim.break_dead);
        let other = match timeout(ANSWER * 2, asked).await {
            Ok(Ok(Ok(()))) => break,
            Ok(Ok(Err(Refused::Ended(end)))) => return Err(reach.failed(&end)),
            Ok(Ok(Err(Refused::Held(other)))) => other,
            Ok(Err(_)) | Err(_) => return Err(reach.lost("take the lease")),
        };
        let known_dead = other
            .holder
            .as_ref()
            .filter(|holder| holder.is_known_dead());
        let control = known_dead.and_then(|holder| holder.control.clone());
        match control {
            // Broken by its token, so that one which is taken meanwhile is not.
            Some(control) if dead.as_ref() != Some(&control.token) => dead = Some(control.token),
            _ => {
                return Err(HostError::Held {
                    host: reach.target.name.clone(),
                    owner: other.text,
                    seems_dead: other.seems_dead,
                });
            }
        }
    }
    *reach.lease.lock().await = Some(token.clone());
    let fate = Arc::new(Mutex::new(None));
    let beats = beat(Arc::downgrade(reach), token.clone(), Arc::clone(&fate));
    Ok(Lease::new(Held {
        reach: Arc::downgrade(reach),
        token,
        fate,
        heart: tokio::spawn(beats),
        host: reach.target.name.clone(),
    }))
}

/// What became of a lease that is not held any more.
type Fate = Arc<Mutex<Option<String>>>;

/// Says again and again that the holder lives. A lost connection is made again by whoever needs it next, or here.
async fn beat(reach: Weak<Reach>, token: String, fate: Fate) {
    let mut ticks = interval(BEAT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(reach) = reach.upgrade() else { return };
        let Ok(connection) = reach.connected().await else {
            continue;
        };
        if let Ok(Ok(Err(end))) = timeout(ANSWER, connection.link.beat(&token)).await {
            doom(&fate, &reach.failed(&end));
            return;
        }
    }
}

/// Notes that a lease is not held any more, and why.
fn doom(fate: &Fate, error: &HostError) {
    let source = std::error::Error::source(error);
    let why = source.map_or_else(|| error.to_string(), ToString::to_string);
    *fate.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
}

/// A lease with its heart. It is given back when the host is closed.
struct Held {
    host: String,
    reach: Weak<Reach>,
    token: String,
    fate: Fate,
    heart: JoinHandle<()>,
}

impl Hold for Held {
    fn check(&self) -> Result<(), HostError> {
        let fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        match &*fate {
            None => Ok(()),
            Some(why) => Err(HostError::Io {
                host: self.host.clone(),
                what: "keep the lease".to_owned(),
                source: std::io::Error::other(why.clone()),
            }),
        }
    }

    fn confirm(&self) -> Pending<'_, Result<(), HostError>> {
        Box::pin(self.asked())
    }
}

impl Held {
    async fn asked(&self) -> Result<(), HostError> {
        self.check()?;
        let Some(reach) = self.reach.upgrade() else {
            return Ok(());
        };
        let never = CancellationToken::new();
        loop {
            let connection = reach.reached(reach.patience(&never), &never).await?;
            match timeout(ANSWER, connection.link.beat(&self.token)).await {
                Ok(Ok(Ok(()))) => return Ok(()),
                Ok(Ok(Err(end))) => {
                    doom(&self.fate, &reach.failed(&end));
                    return self.check();
                }
                Ok(Err(_)) => {}
                Err(_) => return Err(reach.lost("keep the lease")),
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.heart.abort();
    }
}
