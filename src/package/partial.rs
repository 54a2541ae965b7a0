//! What is being obtained, in `<store>/.partial/`: locked by one process at a time, gone on with by the next one.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::error::Tried;
use super::{PackageError, Watch, blocking, hex_of};

/// The folder in the store's.
const FOLDER: &str = ".partial";
/// How often a lock that another process holds is tried.
const POLL: Duration = Duration::from_millis(100);
/// How often a holder shows that it gets on.
const PULSE: Duration = Duration::from_secs(1);

/// Something that is being obtained. Nobody else is at it until the last clone is dropped.
#[derive(Clone)]
pub(super) struct Partial(Arc<Held>);

struct Held {
    /// The paths of its files without their extensions.
    stem: PathBuf,
    /// Locked. Its time is when the holder last got on.
    lock: File,
    touched: Mutex<Instant>,
}

/// Which version of a file the bytes are of, as the server told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Validator {
    /// `ETag`.
    pub(super) etag: Option<String>,
    /// `Last-Modified`.
    pub(super) modified: Option<String>,
}

impl Validator {
    /// What `If-Range` may name: no weak tag, whose versions may differ in bytes.
    pub(super) fn strong(&self) -> Option<&str> {
        let strong = self.etag.as_deref().filter(|tag| !tag.starts_with("W/"));
        strong.or(self.modified.as_deref())
    }
}

/// What stands beside the bytes of a download.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// Its sha256: the URL itself may hold a password.
    url: String,
    validator: Validator,
}

impl Partial {
    /// Waits until nobody else is at what `key` names. One who gets on is waited for, whatever it takes.
    pub(super) async fn hold(store: &Path, key: &str, watch: &Watch) -> Result<Self, PackageError> {
        let folder = store.join(FOLDER);
        fs::create_dir_all(&folder).tried("make the folder", &folder)?;
        let stem = folder.join(key);
        let path = stem.with_extension("lock");
        let lock = File::options().create(true).append(true).open(&path);
        let lock = lock.tried("open", &path)?;
        wait(&lock, &path, watch).await?;
        let held = Self(Arc::new(Held {
            stem,
            lock,
            touched: Mutex::new(Instant::now()),
        }));
        held.touch();
        Ok(held)
    }

    /// The bytes of a download.
    pub(super) fn part(&self) -> PathBuf {
        self.0.stem.with_extension("part")
    }

    fn state(&self) -> PathBuf {
        self.0.stem.with_extension("json")
    }

    /// Shows others that it gets on.
    pub(super) fn beat(&self) {
        let mut touched = self
            .0
            .touched
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if touched.elapsed() >= PULSE {
            *touched = Instant::now();
            self.touch();
        }
    }

    fn touch(&self) {
        // At worst another process gives up early.
        let _ = self.0.lock.set_modified(SystemTime::now());
    }

    /// Bytes that came before, and of which version of the file, if they are of `url`.
    pub(super) fn came(&self, url: &str) -> (u64, Validator) {
        let state = fs::read_to_string(self.state()).ok();
        let state: Option<State> = state.and_then(|text| serde_json::from_str(&text).ok());
        match (state, fs::symlink_metadata(self.part())) {
            (Some(state), Ok(part)) if state.url == hex_of(url) && part.is_file() => {
                (part.len(), state.validator)
            }
            _ => (0, Validator::default()),
        }
    }

    /// An empty file for the bytes of `url`. Its state is written while it is empty, so that bytes never stand beside
    /// that of another version.
    pub(super) fn begin(&self, url: &str, validator: &Validator) -> Result<File, PackageError> {
        self.discard()?;
        let (part, path) = (self.part(), self.state());
        let file = File::create_new(&part).tried("write", &part)?;
        let state = State {
            url: hex_of(url),
            validator: validator.clone(),
        };
        let text = serde_json::to_string(&state).unwrap_or_default();
        fs::write(&path, text).tried("write", &path)?;
        Ok(file)
    }

    /// The file with the bytes that came before, to go on at its end.
    pub(super) fn go_on(&self) -> Result<File, PackageError> {
        let part = self.part();
        File::options()
            .append(true)
            .open(&part)
            .tried("write", &part)
    }

    /// Removes what came.
    pub(super) fn discard(&self) -> Result<(), PackageError> {
        for path in [self.part(), self.state()] {
            absent(fs::remove_file(&path)).tried("remove", &path)?;
        }
        Ok(())
    }

    /// An empty folder to unpack into; what a process that died left there is removed.
    pub(super) fn tree(&self) -> Result<Tree, PackageError> {
        let path = self.0.stem.with_extension("tree");
        absent(fs::remove_dir_all(&path)).tried("remove", &path)?;
        fs::create_dir(&path).tried("make the folder", &path)?;
        Ok(Tree(path))
    }
}

/// Nothing to remove is as good as removed.
fn absent(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// A folder in the making, removed unless it is put in its place.
pub(super) struct Tree(PathBuf);

impl Tree {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Flushes it to disk and moves it to `place`. What is there already is as good, and stays.
    pub(super) fn put(self, place: &Path) -> Result<(), PackageError> {
        let folder = File::open(&self.0).tried("open", &self.0)?;
        // One call for thousands of files: each flushed by itself takes minutes on a slow disk.
        let flushed = rustix::fs::syncfs(&folder).map_err(Into::into);
        flushed.tried("flush", &self.0)?;
        match fs::rename(&self.0, place) {
            Err(_) if place.is_dir() => Ok(()),
            moved => moved.tried("make the folder", place),
        }?;
        let above = place.parent().unwrap_or(place);
        File::open(above)
            .and_then(|folder| folder.sync_all())
            .tried("flush", above)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // It may be in its place by now; what cannot be removed is removed by the next one who is at it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Waits for the lock as long as its holder gets on.
async fn wait(lock: &File, path: &Path, watch: &Watch) -> Result<(), PackageError> {
    // A holder may have to wait for a stalled server, and then pause before it asks again.
    let limit = watch.stall * 3;
    let (mut pulse, mut since) = (None, Instant::now());
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error).tried("lock", path),
        }
        let seen = lock.metadata().and_then(|meta| meta.modified()).ok();
        if seen != pulse {
            (pulse, since) = (seen, Instant::now());
        } else if since.elapsed() >= limit {
            let path = path.to_owned();
            return Err(PackageError::Held { path, limit });
        }
        watch.or_stop(sleep(POLL)).await?;
    }
}

/// Runs what blocks while `partial` is held, even if nobody waits for it any more.
pub(super) async fn held<T: Send + 'static>(
    partial: &Partial,
    work: impl FnOnce(&Partial) -> T + Send + 'static,
) -> T {
    let partial = partial.clone();
    blocking(move || work(&partial)).await
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn watch() -> Watch {
        Watch {
            stall: Duration::from_millis(50),
            ..Watch::new(CancellationToken::new())
        }
    }

    #[tokio::test]
    async fn one_who_does_not_get_on_is_named_and_one_who_is_done_is_followed() {
        let store = tempfile::tempdir().unwrap();
        let first = Partial::hold(store.path(), "k", &watch()).await.unwrap();
        let second = Partial::hold(store.path(), "k", &watch()).await;
        let Err(PackageError::Held { path, .. }) = second else {
            panic!("it is held");
        };
        assert!(path.ends_with(".partial/k.lock"));
        assert!(Partial::hold(store.path(), "other", &watch()).await.is_ok());
        drop(first);
        assert!(Partial::hold(store.path(), "k", &watch()).await.is_ok());
    }

    #[tokio::test]
    async fn waiting_for_another_can_be_stopped() {
        let store = tempfile::tempdir().unwrap();
        let _first = Partial::hold(store.path(), "k", &watch()).await.unwrap();
        let watch = Watch::new(CancellationToken::new());
        watch.stop.cancel();
        let second = Partial::hold(store.path(), "k", &watch).await;
        assert!(matches!(second, Err(PackageError::Stopped)));
    }

    #[tokio::test]
    async fn bytes_of_another_url_are_not_gone_on_with() {
        let store = tempfile::tempdir().unwrap();
        let partial = Partial::hold(store.path(), "k", &watch()).await.unwrap();
        let validator = Validator {
            etag: Some("\"1\"".to_owned()),
            modified: None,
        };
        partial.begin("http://a", &validator).unwrap();
        fs::write(partial.part(), "abc").unwrap();
        assert_eq!(partial.came("http://a"), (3, validator));
        assert_eq!(partial.came("http://b"), (0, Validator::default()));
    }

    #[test]
    fn a_weak_tag_does_not_name_bytes() {
        let validator = |etag: &str, modified: Option<&str>| Validator {
            etag: Some(etag.to_owned()),
            modified: modified.map(str::to_owned),
        };
        assert_eq!(validator("\"1\"", Some("Mon")).strong(), Some("\"1\""));
        assert_eq!(validator("W/\"1\"", Some("Mon")).strong(), Some("Mon"));
        assert_eq!(validator("W/\"1\"", None).strong(), None);
    }
}
