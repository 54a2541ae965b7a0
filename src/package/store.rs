//! The store: a folder for each content, named by its sha256, complete or absent. Several experiments and processes share one;
//! nothing removes what is in it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use reqwest::Url;

use super::binary::Program;
use super::content::{Summed, missing, open, stopped, sum_of};
use super::error::Tried as _;
use super::fetch::Fetch;
use super::http::{Client, Network};
use super::mirror::{Expected, Found, Mirror};
use super::note::{Note, Notes, key_of_file};
use super::partial::{Partial, Validator, held};
use super::source::Source;
use super::{NIGHTLY, Origin, Package, PackageError, Wanted, Watch, blocking, check, unpack};

/// The packages on the control machine.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) folder: PathBuf,
    network: Network,
    /// Made for the first server: reading the certificates of the system takes a while.
    client: Arc<OnceLock<Client>>,
}

/// A tarball in the store.
pub(super) struct Placed {
    pub(super) sha256: String,
    pub(super) folder: PathBuf,
}

impl Store {
    /// The store in `folder`, which is made when something is obtained. Its servers are reached as the environment says.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            network: Network::default(),
            client: Arc::default(),
        }
    }

    /// The same store, whose servers are reached in another way.
    #[must_use]
    pub fn with_network(self, network: Network) -> Self {
        Self {
            folder: self.folder,
            network,
            client: Arc::default(),
        }
    }

    /// Obtains a package. What is in the store is used; a server is asked all the same whether it still offers that, but a
    /// version that was obtained from it before is used when it cannot be reached. The future may be dropped at any
    /// time.
    ///
    /// # Errors
    /// It is not there, not for this kind of host, not what a manifest says, damaged, or cannot be obtained or kept.
    pub async fn obtain(
        &self,
        origin: &Origin,
        wanted: &Wanted,
        watch: &Watch,
    ) -> Result<Package, PackageError> {
        check::wanted(wanted)?;
        fs::create_dir_all(&self.folder).tried("make the folder", &self.folder)?;
        match origin {
            Origin::Mirror(text) => {
                let base = Source::read(text)?;
                self.of_mirror(&base, wanted, watch).await
            }
            Origin::Offline(path) => self.of_offline(path, wanted, watch).await,
            Origin::Tarball(text) => {
                let source = Source::read(text)?;
                self.of_tarball(source, wanted, watch).await
            }
            Origin::Binary { path, name } => {
                check::name("program", name)?;
                let program = Program {
                    path: path.clone(),
                    name: name.clone(),
                    platform: wanted.platform.clone(),
                };
                let placed = self.program(program, watch).await?;
                let origin = path.display().to_string();
                let platform = wanted.platform.to_string();
                Ok(placed.package(wanted, wanted.version.clone(), platform, origin, false))
            }
        }
    }

    /// What `url` is asked with.
    fn client(&self, url: &Url) -> Result<Client, PackageError> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let client = Client::new(&self.network, url)?;
        if client.has_roots {
            return Ok(self.client.get_or_init(|| client).clone());
        }
        Ok(client)
    }

    /// From a mirror.
    async fn of_mirror(
        &self,
        base: &Source,
        wanted: &Wanted,
        watch: &Watch,
    ) -> Result<Package, PackageError> {
        let Source::Url(url) = base else {
            return self.of_folder(base, wanted, watch).await;
        };
        let key = key_of(url, wanted);
        let known = self.known(&key);
        let client = self.client(url)?;
        let asking = match &known {
            // Waiting for a server that is out of reach is not worth it.
            Some(_) => client.clone().once(),
            None => client.clone(),
        };
        let found = self.found(base, Some(&asking), wanted, watch).await;
        let found = match (found, known) {
            (Err(error), Some(note)) if is_enough(&error, wanted) => {
                return Ok(self.noted(note, wanted));
            }
            (found, _) => found?,
        };
        let downloaded = self.download(&found, &client, &key, wanted, watch).await;
        let Err(PackageError::Missing { what }) = downloaded else {
            return downloaded;
        };
        // Without a manifest only asking tells whether there is one for every platform.
        let missing = PackageError::Missing { what };
        let Some(found) = found.for_any(base, wanted) else {
            return Err(missing);
        };
        match self.download(&found, &client, &key, wanted, watch).await {
            Err(PackageError::Missing { .. }) => Err(missing),
            downloaded => downloaded,
        }
    }

    /// From a mirror that is a folder.
    async fn of_folder(
        &self,
        base: &Source,
        wanted: &Wanted,
        watch: &Watch,
    ) -> Result<Package, PackageError> {
        if let Source::Path(folder) = base
            && !folder.is_dir()
        {
            return Err(PackageError::Missing {
                what: format!("folder {}", base.quoted()),
            });
        }
        let found = self.found(base, None, wanted, watch).await?;
        let placed = match &found.source {
            Source::Path(path) => self.tarball(path, found.expected.as_ref(), watch).await?,
            Source::Url(_) => unreachable!("what lies in a folder is a path"),
        };
        let origin = found.source.shown();
        let verified = found.expected.is_some();
        Ok(placed.package(wanted, found.version, found.platform, origin, verified))
    }

    async fn found(
        &self,
        base: &Source,
        client: Option<&Client>,
        wanted: &Wanted,
        watch: &Watch,
    ) -> Result<Found, PackageError> {
        let mirror = Mirror {
            base,
            client,
            watch,
        };
        mirror.find(wanted).await
    }

    /// From an offline package: its tarballs are unpacked once, for all components.
    async fn of_offline(
        &self,
        path: &Path,
        wanted: &Wanted,
        watch: &Watch,
    ) -> Result<Package, PackageError> {
        if path.is_dir() {
            let base = Source::Path(mirror_in(path)?);
            return self.of_folder(&base, wanted, watch).await;
        }
        let file = Source::Path(path.to_owned()).file();
        check::platform(&file, wanted)?;
        let placed = self.tarball(path, None, watch).await?;
        let mirror = mirror_in(&placed.folder)?;
        let base = Source::Path(mirror.clone());
        let mut package = self.of_folder(&base, wanted, watch).await?;
        // The store is not where it came from.
        let inside = Path::new(&package.origin).strip_prefix(&mirror);
        if let Ok(inside) = inside.map(Path::to_owned) {
            package.origin = path.join(inside).display().to_string();
        }
        Ok(package)
    }

    /// From one component's tarball.
    async fn of_tarball(
        &self,
        source: Source,
        wanted: &Wanted,
        watch: &Watch,
    ) -> Result<Package, PackageError> {
        check::platform(&source.file(), wanted)?;
        let (version, platform) = (wanted.version.clone(), wanted.platform.to_string());
        match &source {
            Source::Path(path) => {
                let placed = self.tarball(path, None, watch).await?;
                Ok(placed.package(wanted, version, platform, source.shown(), false))
            }
            Source::Url(url) => {
                let (client, key) = (self.client(url)?, key_of(url, wanted));
                let found = Found {
                    source: source.clone(),
                    expected: None,
                    version,
                    platform,
                };
                self.download(&found, &client, &key, wanted, watch).await
            }
        }
    }

    /// From a server. What has come of it is noted.
    async fn download(
        &self,
        found: &Found,
        client: &Client,
        key: &str,
        wanted: &Wanted,
        watch: &Watch,
    ) -> Result<Package, PackageError> {
        let Source::Url(url) = &found.source else {
            unreachable!("what lies below a URL is a URL")
        };
        let known = self.known(key);
        let usable = known
            .as_ref()
            .filter(|note| note.origin == found.source.shown());
        let usable = usable.filter(|note| found.expected.is_none() && !note.verified);
        let fetch = Fetch {
            store: self,
            url,
            client,
            expected: found.expected.as_ref(),
            known: usable.map(|note| &note.validator),
            watch,
        };
        let (placed, validator) = match (fetch.run().await, usable) {
            (Ok(Some(fetched)), _) => fetched,
            (Ok(None), Some(note)) => return Ok(self.noted(note.clone(), wanted)),
            (Err(error), Some(note)) if is_enough(&error, wanted) => {
                return Ok(self.noted(note.clone(), wanted));
            }
            (Ok(None), None) => unreachable!("only what is noted can be unchanged"),
            (Err(error), _) => return Err(error),
        };
        let note = Note {
            sha256: placed.sha256,
            version: found.version.clone(),
            platform: found.platform.clone(),
            origin: found.source.shown(),
            verified: found.expected.is_some(),
            validator,
        };
        Notes(&self.folder).write(key, &note);
        Ok(self.noted(note, wanted))
    }

    /// What was obtained before by this key and is still there.
    fn known(&self, key: &str) -> Option<Note> {
        let note = Notes(&self.folder).read(key)?;
        self.place(&note.sha256).is_dir().then_some(note)
    }

    fn noted(&self, note: Note, wanted: &Wanted) -> Package {
        let placed = Placed {
            folder: self.place(&note.sha256),
            sha256: note.sha256,
        };
        placed.package(
            wanted,
            note.version,
            note.platform,
            note.origin,
            note.verified,
        )
    }

    /// Where a content is or will be.
    pub(super) fn place(&self, sha256: &str) -> PathBuf {
        self.folder.join(sha256)
    }

    /// Unpacks a tarball of this machine.
    async fn tarball(
        &self,
        path: &Path,
        expected: Option<&Expected>,
        watch: &Watch,
    ) -> Result<Placed, PackageError> {
        let what = format!("`{}`", path.display());
        let meta = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing(path)),
            meta => meta.tried("open", path)?,
        };
        if let Some(expected) = expected {
            expected.same_length(&what, meta.len())?;
        }
        let sha256 = self.sum(path, &meta, watch).await?;
        if let Some(expected) = expected {
            expected.same_sum(&what, &sha256)?;
        }
        let folder = self.place(&sha256);
        if !folder.is_dir() {
            let partial = Partial::hold(&self.folder, &sha256, watch).await?;
            let (path, sha256) = (path.to_owned(), sha256.clone());
            self.unpack(&partial, path, what, sha256, watch).await?;
        }
        Ok(Placed { sha256, folder })
    }

    /// The sha256 of a file: noted, or read.
    async fn sum(
        &self,
        path: &Path,
        meta: &fs::Metadata,
        watch: &Watch,
    ) -> Result<String, PackageError> {
        let key = key_of_file(path, meta);
        if let Some(note) = self.known(&key) {
            return Ok(note.sha256);
        }
        let (path, step) = (path.to_owned(), watch.clone());
        let origin = path.display().to_string();
        let sha256 = blocking(move || sum_of(&path, &|| stopped(&step))).await?;
        let note = Note {
            sha256: sha256.clone(),
            version: String::new(),
            platform: String::new(),
            origin,
            verified: false,
            validator: Validator::default(),
        };
        Notes(&self.folder).write(&key, &note);
        Ok(sha256)
    }

    /// Unpacks a file with this sha256 into its place.
    pub(super) async fn unpack(
        &self,
        partial: &Partial,
        path: PathBuf,
        what: String,
        sha256: String,
        watch: &Watch,
    ) -> Result<(), PackageError> {
        let (place, watch) = (self.place(&sha256), watch.clone());
        held(partial, move |partial| {
            if place.is_dir() {
                return Ok(());
            }
            let step = || {
                partial.beat();
                stopped(&watch)
            };
            let tree = partial.tree()?;
            let mut file = Summed::new(open(&path)?);
            unpack::unpack(&mut file, tree.path(), &what, &step)?;
            if file.sum().tried("read", &path)? != sha256 {
                return Err(PackageError::Changed { what });
            }
            tree.put(&place)
        })
        .await
    }

    /// Takes a program in.
    async fn program(&self, program: Program, watch: &Watch) -> Result<Placed, PackageError> {
        let (path, at) = (program.path.clone(), watch.clone());
        let sha256 = blocking(move || sum_of(&path, &|| stopped(&at))).await?;
        program.check()?;
        // The same program may be wanted by several names.
        let key = format!("{sha256}-{}", program.name);
        let folder = self.place(&key);
        if !folder.is_dir() {
            let partial = Partial::hold(&self.folder, &key, watch).await?;
            let (place, sum, at) = (folder.clone(), sha256.clone(), watch.clone());
            let take = move |partial: &Partial| program.take(partial, &place, &sum, &at);
            held(&partial, take).await?;
        }
        Ok(Placed { sha256, folder })
    }
}

impl Placed {
    fn package(
        self,
        wanted: &Wanted,
        version: String,
        platform: String,
        origin: String,
        verified: bool,
    ) -> Package {
        Package {
            component: wanted.component.clone(),
            version,
            platform,
            sha256: self.sha256,
            origin,
            verified,
            folder: self.folder,
        }
    }
}

/// Whether what was obtained before is enough, since the server is out of reach. What is built daily is another one by now.
fn is_enough(error: &PackageError, wanted: &Wanted) -> bool {
    let is_enough = error.may_pass() && wanted.version != NIGHTLY;
    if is_enough {
        tracing::warn!(%error, "using what was obtained before");
    }
    is_enough
}

/// Names what is wanted of a server.
fn key_of(url: &Url, wanted: &Wanted) -> String {
    let Wanted {
        component,
        version,
        platform,
    } = wanted;
    format!("{url} {component} {version} {platform}")
}

/// The mirror that an offline package unpacks to: the folder itself, or the only folder in it.
fn mirror_in(folder: &Path) -> Result<PathBuf, PackageError> {
    if folder.join("snapshot.json").is_file() {
        return Ok(folder.to_owned());
    }
    let entries = fs::read_dir(folder).tried("read the folder", folder)?;
    let entries: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    match entries.as_slice() {
        [only] if only.is_dir() => Ok(only.clone()),
        _ => Ok(folder.to_owned()),
    }
}
