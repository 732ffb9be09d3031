//! The files of listening Unix sockets. They would block the next start, so they are removed as soon as the listener
//! closes: a successor can bind while this process still drains, as with a TCP port. A file that another process has
//! created meanwhile is kept.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A socket's file, as it was created.
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
            // If it is gone already, nothing is left to do.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = path.symlink_metadata()?;
    Ok((found.dev(), found.ino()))
}

/// The files of a process; removed when dropped.
#[derive(Default)]
pub(crate) struct SocketFiles(Mutex<Vec<(u32, SocketFile)>>);

impl SocketFiles {
    /// Adds the file of a listener of this level.
    pub fn add(&self, level: u32, file: SocketFile) {
        self.files().push((level, file));
    }

    /// Removes the files, once: a later file belongs to another process. To be called while the sockets are still
    /// open. Files of listeners behind more than `level` others stay.
    pub fn remove(&self, level: u32) {
        let gone: Vec<_> = self.files().extract_if(.., |(of, _)| *of <= level).collect();
        gone.iter().for_each(|(_, file)| file.remove());
    }

    /// Renames the files, replacing what had the name.
    pub fn rename(&self, to: &Path) -> io::Result<()> {
        for (_, file) in self.files().iter_mut() {
            std::fs::rename(&file.path, to)?;
            to.clone_into(&mut file.path);
        }
        Ok(())
    }

    /// Leaves the files to another process.
    pub fn forget(&self) {
        self.files().clear();
    }

    /// Removes the file of one listener, which has closed.
    pub fn remove_at(&self, path: &Path) {
        let gone: Vec<_> = self.files().extract_if(.., |(_, file)| file.path == path).collect();
        gone.iter().for_each(|(_, file)| file.remove());
    }

    /// Adds the files of new listeners.
    pub fn take(&self, new: &SocketFiles) {
        let new = std::mem::take(&mut *new.files());
        self.files().extend(new);
    }

    fn files(&self) -> std::sync::MutexGuard<'_, Vec<(u32, SocketFile)>> {
        // The list is valid even if a thread panicked while it held the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SocketFiles {
    fn drop(&mut self) {
        self.remove(u32::MAX);
    }
}
