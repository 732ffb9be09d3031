//! Reading a file that a topology names, up to a limit. A device or a pipe is refused before it is opened: a pipe would
//! wait for its writer, and some devices never end.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use weir_plan::diagnostic::plainly;

/// The bytes of a regular file of at most this many MiB.
///
/// # Errors
/// Why they cannot be had, to be put behind the file's name.
pub(crate) fn read_regular(path: &Path, most_mib: u64) -> Result<Vec<u8>, String> {
    let wrong = |e: io::Error| format!("cannot be read: {}", plainly(&e));
    let most = most_mib << 20;
    let found = fs::metadata(path).map_err(wrong)?;
    if !found.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    // A file may say that it is empty and have content (`/proc`), or grow meanwhile.
    if found.len() <= most {
        File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)).map_err(wrong)?;
    }
    if found.len().max(bytes.len() as u64) > most {
        return Err(format!("is larger than {most_mib} MiB"));
    }
    Ok(bytes)
}
