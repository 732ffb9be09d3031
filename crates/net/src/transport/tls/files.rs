//! Certificates, keys and bundles of authorities, read from PEM files; an error is a sentence with the path and the
//! remedy.

use super::provider;
use super::validity::{Today, Validity};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, RootCertStore};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A chain of certificates and its key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain, beginning with the certificate of the key.
    pub cert: String,
    /// The private key.
    pub key: String,
}

/// PEM that is no file of its own, and what messages call it: `kube.yaml: client-key-data`.
#[derive(Clone, PartialEq, Eq)]
pub struct NamedPem {
    /// Its name.
    pub name: String,
    /// The PEM.
    pub pem: Vec<u8>,
}

impl fmt::Debug for NamedPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It may be a key.
        f.debug_struct("NamedPem").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a file is unusable, with its path and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotUse(pub String);

impl fmt::Display for CannotUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotUse {}

fn wrong<T>(what: &str, path: &str, why: impl fmt::Display) -> Result<T, CannotUse> {
    Err(CannotUse(format!("the {what} \"{path}\" {why}")))
}

/// The size limit of a PEM file.
const MOST_BYTES: u64 = 8 << 20;

impl CertificateFiles {
    /// The paths of both.
    pub(super) fn paths(&self) -> [&str; 2] {
        [&self.cert, &self.key]
    }

    /// The warning for a certificate, read from these, that has expired or is not valid yet: clients may refuse it, so
    /// it is worth a sentence, but the rest of a file is served all the same. `None`: it is valid.
    pub(super) fn warning(&self, read: &CertifiedKey) -> Option<String> {
        let why = match Validity::from_der(read.cert.first()?)?.today() {
            Today::Valid => return None,
            Today::Expired => "has expired; renew it",
            Today::NotYet => "is not valid yet; check this machine's clock, or wait",
        };
        Some(format!("the certificate \"{}\" {why}", self.cert))
    }
}

/// A chain with its key.
pub(super) fn certified(files: &CertificateFiles) -> Result<Arc<CertifiedKey>, CannotUse> {
    let CertificateFiles { cert, key } = files;
    pair(cert, certificates("certificate", cert)?, key, private_key(key)?)
}

/// The same of PEM that is no file.
pub(super) fn certified_of(cert: &NamedPem, key: &NamedPem) -> Result<Arc<CertifiedKey>, CannotUse> {
    let chain = certificates_of("certificate", &cert.name, &cert.pem)?;
    pair(&cert.name, chain, &key.name, private_key_of(&key.name, &key.pem)?)
}

fn pair(
    cert: &str,
    chain: Vec<CertificateDer<'static>>,
    key: &str,
    secret: PrivateKeyDer<'static>,
) -> Result<Arc<CertifiedKey>, CannotUse> {
    if chain.first().and_then(|own| Validity::from_der(own)).is_none() {
        return wrong("certificate", cert, "cannot be parsed; is it an X.509 certificate?");
    }
    match CertifiedKey::from_der(chain, secret, &provider()) {
        Ok(certified) => Ok(Arc::new(certified)),
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            let why =
                format!("does not match the certificate \"{cert}\"; give the key that it was made with");
            wrong("key", key, why)
        }
        Err(Error::InvalidCertificate(_)) => {
            wrong("certificate", cert, "cannot be parsed; is it an X.509 certificate?")
        }
        Err(_) => wrong(
            "key",
            key,
            "is of a kind that weir does not support; use ECDSA P-256, P-384, Ed25519 or RSA",
        ),
    }
}

/// Authorities, and the certificates of the file that names them.
#[derive(Clone, Debug)]
pub(super) struct Authorities {
    pub(super) roots: Arc<RootCertStore>,
    pub(super) named: Vec<CertificateDer<'static>>,
}

/// The authorities of a bundle.
pub(super) fn authorities(path: &str) -> Result<Authorities, CannotUse> {
    bundle(path, certificates("bundle of authorities", path)?)
}

/// The same of PEM that is no file.
pub(super) fn authorities_of(ca: &NamedPem) -> Result<Authorities, CannotUse> {
    bundle(&ca.name, certificates_of("bundle of authorities", &ca.name, &ca.pem)?)
}

fn bundle(path: &str, all: Vec<CertificateDer<'static>>) -> Result<Authorities, CannotUse> {
    let mut roots = RootCertStore::empty();
    for certificate in &all {
        if roots.add(certificate.clone()).is_err() {
            let why = "has a certificate that cannot be parsed; remove it";
            return wrong("bundle of authorities", path, why);
        }
    }
    Ok(Authorities { roots: Arc::new(roots), named: all })
}

/// The authorities that the system trusts.
pub(super) fn system_authorities() -> Result<Authorities, CannotUse> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(CannotUse(
            "the system has no certificates of authorities; install its package ca-certificates, or name a file with \
             `tls.client(ca=\"...\")`"
                .to_owned(),
        ));
    }
    Ok(Authorities { roots: Arc::new(roots), named: Vec::new() })
}

/// The certificates of a file; there must be at least one.
fn certificates(what: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, CannotUse> {
    certificates_of(what, path, &read(what, path)?)
}

fn certificates_of(what: &str, path: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CannotUse> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if all.is_empty() => {
            wrong(what, path, "has no certificate; it must be PEM, with `-----BEGIN CERTIFICATE-----`")
        }
        Ok(all) => Ok(all),
        Err(_) => wrong(what, path, "is damaged: its PEM cannot be read"),
    }
}

fn private_key(path: &str) -> Result<PrivateKeyDer<'static>, CannotUse> {
    private_key_of(path, &read("key", path)?)
}

fn private_key_of(path: &str, pem: &[u8]) -> Result<PrivateKeyDer<'static>, CannotUse> {
    // The older form (RFC 1421) has the same labels as a plain key, and says so in a field.
    if contains(pem, b"Proc-Type: 4,ENCRYPTED") {
        return encrypted(path);
    }
    match PrivateKeyDer::from_pem_slice(pem) {
        Ok(key) => Ok(key),
        Err(PemError::NoItemsFound) if contains(pem, b"ENCRYPTED PRIVATE KEY") => encrypted(path),
        Err(PemError::NoItemsFound) => {
            wrong("key", path, "has no private key; it must be PEM, with `-----BEGIN PRIVATE KEY-----`")
        }
        Err(_) => wrong("key", path, "is damaged: its PEM cannot be read"),
    }
}

fn encrypted(path: &str) -> Result<PrivateKeyDer<'static>, CannotUse> {
    wrong("key", path, "is encrypted; take it out with `openssl pkey -in KEY -out PLAIN`")
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|w| w == word)
}

fn read(what: &str, path: &str) -> Result<Vec<u8>, CannotUse> {
    // Before it is opened: a pipe would wait for its writer.
    match std::fs::metadata(Path::new(path)) {
        Ok(file) if !file.is_file() => return wrong(what, path, "is not a regular file"),
        Ok(file) if file.len() > MOST_BYTES => {
            return wrong(what, path, format_args!("is larger than {} MiB", MOST_BYTES >> 20));
        }
        Ok(_) => {}
        Err(e) => return unreadable(what, path, &e),
    }
    std::fs::read(path).or_else(|e| unreadable(what, path, &e))
}

fn unreadable<T>(what: &str, path: &str, e: &std::io::Error) -> Result<T, CannotUse> {
    match e.kind() {
        std::io::ErrorKind::NotFound => wrong(
            what,
            path,
            "cannot be read: there is no such file; its path is relative to the folder of the file that \
                names it",
        ),
        std::io::ErrorKind::PermissionDenied => {
            wrong(what, path, "cannot be read: permission denied; let the user that weir runs as read it")
        }
        _ => wrong(what, path, format_args!("cannot be read: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encrypted_key_is_called_encrypted() {
        let path = std::env::temp_dir().join(format!("weir-encrypted-{}.pem", std::process::id()));
        for text in [
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMA==\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\nMA==\n-----END EC PRIVATE KEY-----\n",
        ] {
            std::fs::write(&path, text).expect("a temporary folder");
            let why = private_key(&path.to_string_lossy()).expect_err("it cannot be read").to_string();
            assert!(why.contains("is encrypted; take it out with"), "{why}");
        }
        std::fs::remove_file(&path).expect("it is there");
    }
}
