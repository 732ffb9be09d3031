//! The files that a topology names and does not contain: certificates, keys, authorities, keys of cookies.

use crate::{CertificateFiles, Point, Spec};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};

/// A digest of the contents of all files that the topology names; what cannot be read counts as such. The same topology
/// with the same digest serves the same.
pub fn digest_of_named_files(point: &Point) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for path in named_files(point) {
        let digest = beginning(path).map(|bytes| blake3::hash(&bytes)).map_err(|e| e.kind());
        hasher.update(format!("{path:?} {digest:?}\n").as_bytes());
    }
    hasher.finalize().into()
}

/// No certificate or key has more bytes; whatever has them is refused where it is used.
const MOST_BYTES: u64 = 16 << 20;

/// The bytes of a regular file, up to a limit: a pipe would wait for its writer, and some devices never end.
fn beginning(path: &str) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The paths of these files, each once.
pub fn named_files(point: &Point) -> BTreeSet<&str> {
    // Of the point as it is written: the members of a fleet that come and go are no other files.
    point.written().specs.iter().flat_map(paths).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_not_read() {
        assert_eq!(beginning("/dev/zero").map_err(|e| e.kind()), Err(io::ErrorKind::InvalidInput));
        assert_eq!(beginning("/no/such").map_err(|e| e.kind()), Err(io::ErrorKind::NotFound));
    }
}
