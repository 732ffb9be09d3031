//! The files of Unix sockets that listen. They would be in the way of the next start, so they go as soon as the listener
//! closes: a successor can bind while this process still drains, as it can with a TCP port. A file that somebody has put
//! there meanwhile is not ours, and stays.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A socket's file, as it was when it was made.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode. As long as the socket is open no other file can have them.
    is: (u64, u64),
}

impl SocketFile {
    /// The file that was just bound.
    pub fn from_path(path: &Path) -> io::Result<SocketFile> {
        Ok(SocketFile { path: path.to_owned(), is: identity(path)? })
    }

    fn remove(&self) {
        if identity(&self.path).is_ok_and(|is| is == self.is) {
            // Whoever removed it before has done what was to be done.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = path.symlink_metadata()?;
    Ok((found.dev(), found.ino()))
}

/// Those of a process; removed when dropped.
#[derive(Default)]
pub(crate) struct SocketFiles(Mutex<Vec<(u32, SocketFile)>>);

impl SocketFiles {
    /// One more, of a listener of this level.
    pub fn add(&self, level: u32, file: SocketFile) {
        self.files().push((level, file));
    }

    /// Removes them, once: what is there later is another's. To be called while their sockets are still open. Those of listeners
    /// before which more than so many stand remain.
    pub fn remove(&self, level: u32) {
        let gone: Vec<_> = self.files().extract_if(.., |(of, _)| *of <= level).collect();
        gone.iter().for_each(|(_, file)| file.remove());
    }

    /// They have this name from now on, in place of what had it.
    pub fn rename(&self, to: &Path) -> io::Result<()> {
        for (_, file) in self.files().iter_mut() {
            std::fs::rename(&file.path, to)?;
            to.clone_into(&mut file.path);
        }
        Ok(())
    }

    /// They are another process's from now on.
    pub fn forget(&self) {
        self.files().clear();
    }

    /// Removes that of one listener, which is no more.
    pub fn remove_at(&self, path: &Path) {
        let gone: Vec<_> = self.files().extract_if(.., |(_, file)| file.path == path).collect();
        gone.iter().for_each(|(_, file)| file.remove());
    }

    /// Takes over those of new listeners.
    pub fn take(&self, new: &SocketFiles) {
        let new = std::mem::take(&mut *new.files());
        self.files().extend(new);
    }

    fn files(&self) -> std::sync::MutexGuard<'_, Vec<(u32, SocketFile)>> {
        // A list is a list, even if a thread died while it held the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SocketFiles {
    fn drop(&mut self) {
        self.remove(u32::MAX);
    }
}
