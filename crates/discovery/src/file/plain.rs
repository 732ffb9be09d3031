//! A file of any content, followed as lists are: it has changed when its bytes have, or when it cannot be read any
//! more.

use super::chain;
use super::follow::{Follow, Step};
use super::reading::{self, Stamp};
use super::watch::Watch;
use crate::clock::Clock;
use crate::fault::FaultKind;
use std::path::{Path, PathBuf};

/// A larger file is not read, and counts as one that cannot be.
const MOST_BYTES: u64 = 8 << 20;

/// A followed file.
#[derive(Debug)]
pub(crate) struct PlainFile {
    /// Its number among the followed files.
    number: usize,
    path: PathBuf,
    follow: Follow,
    stamp: Option<Stamp>,
    /// Whether two readings seconds apart had this stamp. A younger one may have missed a write within one tick of
    /// the file system's clock.
    is_settled: bool,
    /// The digest of its bytes, or why there are none; `None`: it was not looked at.
    content: Option<Result<blake3::Hash, FaultKind>>,
}

impl PlainFile {
    /// Follows an absolute path, from now on.
    pub(crate) fn new(number: usize, path: &Path, now_ns: u64) -> PlainFile {
        PlainFile {
            number,
            path: path.to_owned(),
            follow: Follow::new(now_ns),
            stamp: None,
            is_settled: false,
            content: None,
        }
    }

    /// When it is looked at, if nothing happens until then.
    pub(crate) fn next_ns(&self) -> u64 {
        self.follow.next_ns()
    }

    /// Notes that something happened on the way to it.
    pub(crate) fn note_change(&mut self, now_ns: u64) {
        self.follow.note_change(now_ns);
    }

    /// Looks at it if that is due. Returns whether its content is another one than before, as it is at first.
    pub(crate) fn look(&mut self, clock: Clock, watch: &Watch) -> bool {
        let Some(step) = self.follow.take(clock.now_ns()) else { return false };
        let found = self.read(step, watch);
        self.follow.finish(clock.now_ns());
        let content = match found {
            Ok(None) => return false,
            Ok(Some(digest)) => Ok(digest),
            Err(kind) => {
                (self.stamp, self.is_settled) = (None, false);
                Err(kind)
            }
        };
        self.content.replace(content) != Some(content)
    }

    /// Reads it, unless it is certain that it has not changed.
    fn read(&mut self, step: Step, watch: &Watch) -> Result<Option<blake3::Hash>, FaultKind> {
        let chain = chain::walk(&self.path);
        // Before the file is read: a change behind this makes an event.
        watch.follow(self.number, &chain.links);
        let stamp = chain.end.and_then(|_| reading::stamp(&self.path)).map_err(|defect| defect.kind)?;
        if stamp.size() > MOST_BYTES {
            return Err(FaultKind::TooLarge);
        }
        let is_same = self.stamp == Some(stamp);
        if step == Step::Look && is_same && self.is_settled {
            return Ok(None);
        }
        let (after, bytes) = reading::read(&self.path).map_err(|defect| defect.kind)?;
        self.is_settled = step == Step::Look && is_same && after == stamp;
        self.stamp = Some(after);
        Ok(Some(blake3::hash(&bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::folder::Folder;

    #[test]
    fn what_is_missing_or_too_large_is_not_read() {
        let (folder, watch) = (Folder::new("plain"), Watch::new());
        let mut file = PlainFile::new(0, &folder.path("key.pem"), 0);
        let mut read = |step| file.read(step, &watch).map(|digest| digest.is_some());
        assert_eq!(read(Step::Look), Err(FaultKind::Missing));
        let most = usize::try_from(MOST_BYTES).expect("a small number");
        folder.write("key.pem", vec![0; most + 1]);
        assert_eq!(read(Step::Read), Err(FaultKind::TooLarge));
        folder.write("key.pem", vec![0; most]);
        assert_eq!(read(Step::Read), Ok(true));
        // Bytes may have changed within the tick of the file system's clock in which they were read.
        assert_eq!([read(Step::Look), read(Step::Look)], [Ok(true), Ok(false)]);
        assert_eq!(read(Step::Read), Ok(true));
    }

    #[test]
    fn the_same_bytes_are_no_change() {
        let (folder, watch) = (Folder::new("same"), Watch::new());
        folder.write("key.pem", "a");
        let clock = Clock::start();
        let mut file = PlainFile::new(0, &folder.path("key.pem"), clock.now_ns());
        // As it would be looked at whenever something has happened, however early.
        let mut look = || {
            file.follow = Follow::new(clock.now_ns());
            file.look(clock, &watch)
        };
        assert_eq!([look(), look(), look()], [true, false, false]);
        folder.write("other", "a");
        std::fs::rename(folder.path("other"), folder.path("key.pem")).expect("a file");
        assert!(!look());
        folder.write("other", "b");
        std::fs::rename(folder.path("other"), folder.path("key.pem")).expect("a file");
        assert!(look());
        std::fs::remove_file(folder.path("key.pem")).expect("a file");
        assert_eq!([look(), look()], [true, false]);
        folder.write("key.pem", "b");
        assert_eq!([look(), look()], [true, false]);
    }
}
