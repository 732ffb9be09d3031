//! The key under which the cookies of `sticky=` are made: of the file `sticky_key=`, or of the cookie's name.
//!
//! A cookie's value is a hash of its target's name under this key (`policy::sticky`). A client that knows the key can
//! send a request to the target of its choice. A key in a file is secret; a key derived from the cookie's name can be
//! computed by anyone. Either is the same after a restart and on every instance with the same file or name, so this
//! derivation never changes.

use crate::diagnostic::Diagnostic;
use crate::http::{InvalidWord, short};
use crate::{NodeId, Point, Spec};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes that a key's file has at least.
pub const LEAST_BYTES: usize = 16;

/// Bytes that it has at most: what is longer is surely another file.
pub const MOST_BYTES: u64 = 64 << 10;

/// The remedy for a file that is not a key.
pub const REMEDY: &str = "its path is relative to the folder of the file that names it; `head -c 32 /dev/urandom > sticky.key` makes one, the same for every instance";

/// Whether it may be the path of a key's file.
pub fn path(text: &str) -> Result<(), InvalidWord> {
    if text.is_empty() || text.len() > 4096 || text.chars().any(char::is_control) {
        let shown = short(&text.escape_debug().to_string());
        return Err(InvalidWord::new(
            format!("\"{shown}\" is not the path of a file"),
            Some(REMEDY.to_owned()),
        ));
    }
    Ok(())
}

/// The contexts of the two kinds of keys, so that a file that contains a cookie's name is not a guessable key.
const OF_FILE: &str = "weir 2026-11 sticky cookies, key of a file";
const OF_NAME: &str = "weir 2026-11 sticky cookies, key of the cookie's name";

/// Why a file is not a key, to follow the file's name: `cannot be read: there is no such file`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidKey(String);

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidKey {}

/// The key of a file's bytes, all of them, a line end too.
///
/// # Errors
/// They are too few.
pub fn of_file(bytes: &[u8]) -> Result<[u64; 2], InvalidKey> {
    match bytes.len() {
        n if n < LEAST_BYTES => {
            Err(InvalidKey(format!("has {n} bytes, but a key needs at least {LEAST_BYTES}")))
        }
        _ => Ok(derived(OF_FILE, bytes)),
    }
}

/// The key where there is no file.
pub fn of_name(cookie: &str) -> [u64; 2] {
    derived(OF_NAME, cookie.as_bytes())
}

/// The key of a file: looked at when a topology file is evaluated, read when it is served and at each reload.
///
/// # Errors
/// It cannot be read, or is not a key.
pub fn read(path: &Path) -> Result<[u64; 2], InvalidKey> {
    let wrong = |e: std::io::Error| InvalidKey(format!("cannot be read: {}", crate::diagnostic::plainly(&e)));
    // Before it is opened: a pipe would wait for its writer.
    if !std::fs::metadata(path).map_err(wrong)?.is_file() {
        return Err(InvalidKey("is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)).map_err(wrong)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(InvalidKey(format!("is larger than {} KiB: it cannot be a key", MOST_BYTES >> 10)));
    }
    of_file(&bytes)
}

/// The key of each balancer with `sticky=`, by node, as it is when this is called: at start and at a reload.
///
/// # Errors
/// Every file that is none, with the place of its balancer and the remedy.
pub fn keys(point: &Point) -> Result<BTreeMap<NodeId, [u64; 2]>, Vec<Diagnostic>> {
    let (mut keys, mut wrong) = (BTreeMap::new(), Vec::new());
    for (id, node) in (0..).zip(&point.nodes) {
        let Some(Spec::Lb(lb)) = point.specs.get(node.spec as usize) else { continue };
        let Some(cookie) = &lb.sticky else { continue };
        let key = lb.sticky_key.as_ref().map_or_else(|| Ok(of_name(cookie)), |file| read(Path::new(file)));
        match key {
            Ok(key) => _ = keys.insert(id, key),
            Err(why) => {
                let file = lb.sticky_key.as_deref().unwrap_or_default();
                let finding =
                    Diagnostic::error(format!("`sticky_key`: the file \"{file}\" {why}")).help(REMEDY);
                let span = point.sites.get(node.site as usize).map_or("", |site| site.span.as_str());
                let finding = finding.at_span(span);
                if !wrong.contains(&finding) {
                    wrong.push(finding);
                }
            }
        }
    }
    if wrong.is_empty() { Ok(keys) } else { Err(wrong) }
}

fn derived(what_for: &str, bytes: &[u8]) -> [u64; 2] {
    let key = blake3::derive_key(what_for, bytes);
    let word = |at: usize| key[at..].first_chunk::<8>().map_or(0, |w| u64::from_le_bytes(*w));
    [word(0), word(8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cookies that clients hold must mean the same after an update.
    #[test]
    fn keys_never_change() {
        assert_eq!(of_file(&[7; 16]), Ok([16_366_271_861_957_465_281, 7_673_748_436_428_281_599]));
        assert_eq!(of_name("srv"), [8_972_170_454_765_956_506, 15_458_601_195_066_264_674]);
    }

    #[test]
    fn every_byte_counts_and_a_name_is_no_file() {
        let name = "a name of 16 let";
        assert_eq!(name.len(), LEAST_BYTES);
        assert_ne!(of_file(name.as_bytes()), Ok(of_name(name)));
        assert_ne!(of_file(&[7; 16]), of_file(&[7; 17]));
        assert_ne!(of_name("srv"), of_name("srw"));
        let why = of_file(&[7; 15]).unwrap_err();
        assert!(why.0.contains("15 bytes") && why.0.contains("at least 16"), "{why}");
    }
}
