//! TLS to a listener of this process (one behind another): it is recognised by the very certificates that it was
//! configured to show, by any signer, with any names and dates.

use super::verify::Verifier;
use super::{CannotUse, Client, Server};
use rustls::pki_types::CertificateDer;
use std::sync::{Arc, PoisonError, RwLock};

/// The name that is asked for: an address, which is not a name (RFC 6066, 3). So a listener shows its first
/// certificate, and accepts any Host: requests are forwarded with their own, for which a name would be wrong (421).
const NO_NAME: &str = "127.0.0.1";

/// The TLS client for a listener of this process. A resumed session is not verified again: no other process can
/// resume it.
#[derive(Clone, Debug)]
pub struct OwnListener {
    /// The configuration of its connections.
    pub client: Arc<Client>,
    pinned: Pinned,
}

impl OwnListener {
    /// Trusts what the listener shows now.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(listener: &Server) -> Result<OwnListener, CannotUse> {
        let pinned = Pinned::default();
        pinned.are(listener.shown());
        let client = Arc::new(Client::with_verifier(Verifier::of_pinned(pinned.clone()), Some(NO_NAME))?);
        Ok(OwnListener { client, pinned })
    }

    /// Trusts the certificates of both until the next call, as connections may have begun before, and loops change
    /// one after another. To be called before the listener changes.
    pub fn changes(&self, from: &Server, to: &Server) {
        self.pinned.are(from.shown().into_iter().chain(to.shown()));
    }

    /// Trusts these certificates too, as the listener is about to show them. Of those of before the last ones stay
    /// trusted, since connections may have begun before, and renewals may follow each other soon.
    pub(super) fn add(&self, shown: Vec<CertificateDer<'static>>) {
        self.pinned.add(shown);
    }
}

/// The number of renewals after which a certificate is not trusted any more.
const FORMER: usize = 3;

/// The certificates that may be shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Pinned(Arc<RwLock<Vec<CertificateDer<'static>>>>);

impl Pinned {
    /// Whether this is one of them.
    pub fn has(&self, shown: &CertificateDer<'_>) -> bool {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|one| one.as_ref() == shown.as_ref())
    }

    fn add(&self, new: Vec<CertificateDer<'static>>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| !new.contains(one));
        let excess = all.len().saturating_sub(FORMER * new.len());
        all.drain(..excess);
        all.extend(new);
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
        let files =
            ServerFiles { certificates, client_ca: None, requires_certificate: true, requires_13: false };
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
        // Replaced before it was shown.
        own.changes(&shown, &third);
        assert_eq!(trusted(), [true, false, true]);
        shown.show(&third);
        own.changes(&shown, &second);
        assert_eq!(trusted(), [false, true, true]);
    }

    #[test]
    fn those_of_the_last_renewals_are_trusted() {
        let folder = Folder(std::env::temp_dir().join(format!("weir-renewed-{}", std::process::id())));
        std::fs::create_dir_all(&folder.0).expect("a folder");
        let all: Vec<_> = (0..6).map(|_| server(&folder.0).shown().remove(0)).collect();
        let pinned = Pinned::default();
        pinned.are([all[0].clone()]);
        for now in 1..all.len() {
            pinned.add(vec![all[now].clone()]);
            // A renewal that changes nothing pushes none out.
            pinned.add(vec![all[now].clone()]);
            let trusted: Vec<usize> = (0..all.len()).filter(|one| pinned.has(&all[*one])).collect();
            assert_eq!(trusted, (now.saturating_sub(FORMER)..=now).collect::<Vec<_>>());
        }
    }
}
