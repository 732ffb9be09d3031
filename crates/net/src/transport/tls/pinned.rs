//! TLS to a listener of one's own (one that stands behind another): it is known by the very certificates that it was told to
//! show, whoever has signed them, whatever their names and dates.

use super::verify::Verifier;
use super::{CannotUse, Client, Server};
use rustls::pki_types::CertificateDer;
use std::sync::{Arc, PoisonError, RwLock};

/// What is asked for: an address, which is no name (RFC 6066, 3). So a listener shows its first certificate, and takes any
/// Host: requests are passed on with those that they came with, for which a name would be wrong (421).
const NO_NAME: &str = "127.0.0.1";

/// How a listener of one's own is reached. A session that is resumed is not looked at again: nobody else can resume it.
#[derive(Clone, Debug)]
pub struct OwnListener {
    /// What its connections begin with.
    pub client: Arc<Client>,
    pinned: Pinned,
}

impl OwnListener {
    /// By what it shows now.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(listener: &Server) -> Result<OwnListener, CannotUse> {
        let pinned = Pinned::default();
        pinned.are(listener.shown());
        let client = Arc::new(Client::with_verifier(Verifier::of_pinned(pinned.clone()), Some(NO_NAME))?);
        Ok(OwnListener { client, pinned })
    }

    /// It is to show others: until that is told again it may show either, as connections may have begun before, and loops follow one
    /// after another. To be told before it does.
    pub fn changes(&self, from: &Server, to: &Server) {
        self.pinned.are(from.shown().into_iter().chain(to.shown()));
    }
}

/// Certificates that may be shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Pinned(Arc<RwLock<Vec<CertificateDer<'static>>>>);

impl Pinned {
    /// Whether this is one of them.
    pub fn has(&self, shown: &CertificateDer<'_>) -> bool {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|one| one.as_ref() == shown.as_ref())
    }

    fn are(&self, all: impl IntoIterator<Item = CertificateDer<'static>>) {
        let all = all.into_iter().collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = all;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tls::{CertificateFiles, ServerFiles};
    use std::path::{Path, PathBuf};

    /// Files of this test's own, removed at the end.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn server(folder: &Path) -> Server {
        let signed = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("a file");
            path.to_str().expect("a path").to_owned()
        };
        let cert = write("cert.pem", signed.cert.pem());
        let key = write("key.pem", signed.signing_key.serialize_pem());
        let certificates = vec![CertificateFiles { cert, key }];
        let files = ServerFiles { certificates, client_ca: None, requires_certificate: true };
        Server::read(&files, &["http/1.1"]).expect("they can be used")
    }

    #[test]
    fn those_of_before_are_trusted_until_the_next_change() {
        let folder = Folder(std::env::temp_dir().join(format!("weir-pinned-{}", std::process::id())));
        std::fs::create_dir_all(&folder.0).expect("a folder");
        let (shown, second, third) = (server(&folder.0), server(&folder.0), server(&folder.0));
        let all = [&shown, &second, &third].map(|server| server.shown().remove(0));
        let own = OwnListener::new(&shown).expect("TLS can be set up");
        let trusted = || all.iter().map(|one| own.pinned.has(one)).collect::<Vec<_>>();
        assert_eq!(trusted(), [true, false, false]);
        own.changes(&shown, &second);
        assert_eq!(trusted(), [true, true, false]);
        // It does not come to that: another is to be shown.
        own.changes(&shown, &third);
        assert_eq!(trusted(), [true, false, true]);
        shown.show(&third);
        own.changes(&shown, &second);
        assert_eq!(trusted(), [false, true, true]);
    }
}
