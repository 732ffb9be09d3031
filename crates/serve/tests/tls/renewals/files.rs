//! A certificate and its key in files that are replaced, in each of the ways in which tools do.

use crate::common::certificates::Authority;
use crate::common::configs;
use crate::{connect, status};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// How files are replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Others are renamed over them, one after the other.
    Rename,
    /// A symbolic link to their folder is swapped, as in a volume of Kubernetes.
    Swap,
    /// They are written where they are.
    Write,
}

/// A pair of files in a folder of their own.
pub struct PairFiles {
    folder: PathBuf,
    way: Way,
    version: u32,
}

impl PairFiles {
    /// A first pair, as PEM, in a folder with this name beside the authority's file.
    pub fn new(authority: &Authority, name: &str, way: Way, pair: &(String, String)) -> PairFiles {
        let folder = Path::new(&authority.file).parent().expect("a folder").join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let mut files = PairFiles { folder, way, version: 0 };
        if way == Way::Swap {
            for name in ["tls.crt", "tls.key"] {
                symlink(format!("..data/{name}"), files.path(name)).expect("a link");
            }
        }
        files.replace(pair);
        files
    }

    /// Replaces both.
    pub fn replace(&mut self, pair: &(String, String)) {
        self.version += 1;
        match self.way {
            Way::Rename => {
                self.rename("tls.key", &pair.1);
                self.rename("tls.crt", &pair.0);
            }
            Way::Swap => self.swap(pair),
            Way::Write => {
                std::fs::write(self.path("tls.crt"), &pair.0).expect("a file");
                std::fs::write(self.path("tls.key"), &pair.1).expect("a file");
            }
        }
    }

    /// Renames a file with this text over one of both.
    pub fn rename(&self, name: &str, text: &str) {
        rename(&self.path(name), text);
    }

    fn swap(&self, pair: &(String, String)) {
        let folder = format!("..{}", self.version);
        std::fs::create_dir(self.path(&folder)).expect("a folder");
        std::fs::write(self.path(&folder).join("tls.crt"), &pair.0).expect("a file");
        std::fs::write(self.path(&folder).join("tls.key"), &pair.1).expect("a file");
        symlink(&folder, self.path("..new")).expect("a link");
        std::fs::rename(self.path("..new"), self.path("..data")).expect("a link");
        if self.version > 1 {
            let former = format!("..{}", self.version - 1);
            std::fs::remove_dir_all(self.path(&former)).expect("a folder");
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The pair as the language has it.
    pub fn words(&self) -> String {
        format!("\"{}\", \"{}\"", self.path("tls.crt").display(), self.path("tls.key").display())
    }
}

/// Renames a file with this text over another.
pub fn rename(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).expect("a file");
    std::fs::rename(&new, path).expect("a file");
}

/// The certificate in this PEM.
pub fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM")
}

/// A client without sessions, which is shown a certificate each time.
pub fn without_sessions(authority: &Authority) -> Arc<ClientConfig> {
    let mut config = configs::client(authority);
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

/// What is shown for this name to a client that gets an answer.
pub fn shown(config: &Arc<ClientConfig>, addr: &str, name: &str) -> CertificateDer<'static> {
    let mut tls = connect(config, addr, name);
    tls.sock.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    assert_eq!(status(&mut tls, name), 200);
    tls.conn.peer_certificates().and_then(|all| all.first()).expect("a certificate").clone()
}

/// Lets threads end, also where the test fails.
pub struct EndGuard<'a>(pub &'a AtomicBool);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
