//! Reading a file whole, without ever waiting for anything but its disk.

use super::chain::unreadable;
use crate::fault::{Defect, FaultKind};
use crate::list::MOST_BYTES;
use crate::list::json::too_large;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open, stat};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The most times that a file is read which changes meanwhile.
const TRIES: usize = 3;

/// What the system knows of a file without reading it. Equal stamps mean equal bytes, but for changes within one tick
/// of the file system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: i64,
    written: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    fn new(stat: &Stat) -> Stamp {
        Stamp {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            written: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// The number of bytes.
    pub(super) fn size(&self) -> u64 {
        u64::try_from(self.size).unwrap_or(u64::MAX)
    }
}

/// The stamp of the regular file at a path, which is not opened: opening a device can do something.
pub(super) fn stamp(path: &Path) -> Result<Stamp, Defect> {
    let stat = stat(path).map_err(|e| unreadable(&e.into(), "the file"))?;
    judge(&stat)?;
    Ok(Stamp::new(&stat))
}

/// Reads the regular file at a path, of which [`stamp`] has judged what it is.
pub(super) fn read(path: &Path) -> Result<(Stamp, Vec<u8>), Defect> {
    let mut tries = 0;
    loop {
        let (before, after, bytes) = read_once(path)?;
        tries += 1;
        // Half of one list and half of the next one may be a list.
        if before == after || tries == TRIES {
            return Ok((after, bytes));
        }
    }
}

/// A file's bytes with its stamps before and after.
fn read_once(path: &Path) -> Result<(Stamp, Stamp, Vec<u8>), Defect> {
    let failed = |e: std::io::Error| unreadable(&e, "the file");
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let mut file = File::from(open(path, flags, Mode::empty()).map_err(|e| failed(e.into()))?);
    let stat = fstat(&file).map_err(|e| failed(e.into()))?;
    judge(&stat)?;
    let mut bytes = Vec::with_capacity(usize::try_from(stat.st_size).unwrap_or_default());
    file.by_ref().take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_large());
    }
    let after = fstat(&file).map_err(|e| failed(e.into()))?;
    Ok((Stamp::new(&stat), Stamp::new(&after), bytes))
}

/// Judges whether it is a file with an end, and not too long.
fn judge(stat: &Stat) -> Result<(), Defect> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if u64::try_from(stat.st_size).is_ok_and(|size| size <= MOST_BYTES) => {
            return Ok(());
        }
        FileType::RegularFile => return Err(too_large()),
        FileType::Directory => "it is a folder",
        FileType::Fifo => "it is a FIFO",
        FileType::Socket => "it is a socket",
        _ => "it is a device",
    };
    Err(Defect::new(FaultKind::Irregular, what, "name a regular file"))
}
