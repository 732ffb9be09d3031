//! The files that a topology names and does not contain: certificates, keys, authorities, keys of cookies.

use crate::{CertificateFiles, Point, Spec};
use std::collections::BTreeSet;

/// A digest of the contents of all files that the topology names; what cannot be read counts as such. The same topology
/// with the same digest serves the same.
pub fn digest_of_named_files(point: &Point) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for path in named_files(point) {
        let bytes = std::fs::read(path).map_err(|e| e.kind());
        let digest = bytes.map(|bytes| blake3::hash(&bytes));
        hasher.update(format!("{path:?} {digest:?}\n").as_bytes());
    }
    hasher.finalize().into()
}

/// The paths of these files, each once.
pub fn named_files(point: &Point) -> BTreeSet<&str> {
    point.specs.iter().flat_map(paths).collect()
}

fn paths(spec: &Spec) -> Vec<&str> {
    match spec {
        Spec::Listen(listen) => {
            let Some(tls) = &listen.tls else { return Vec::new() };
            let own = tls.certificates.iter().flat_map(pair);
            own.chain(tls.client_ca.as_deref()).collect()
        }
        Spec::Server { origin, .. } => {
            let Some(tls) = &origin.tls else { return Vec::new() };
            tls.certificate.iter().flat_map(pair).chain(tls.ca.as_deref()).collect()
        }
        Spec::Lb(lb) => lb.sticky_key.as_deref().into_iter().collect(),
        _ => Vec::new(),
    }
}

fn pair(files: &CertificateFiles) -> [&str; 2] {
    [&files.cert, &files.key]
}
