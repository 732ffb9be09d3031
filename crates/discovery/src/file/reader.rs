//! Looks for the list in a file. The system may hold this up for as long as it likes, so each file has a thread for it.

use super::chain;
use super::follow::Step;
use super::reading::{self, Stamp};
use super::watch::Watch;
use crate::fault::Defect;
use crate::list::{Snapshot, json};
use std::path::{Path, PathBuf};

/// What is to be done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(super) step: Step,
    /// Whether what the last reading found was thrown away, so that the same bytes are another list.
    pub(crate) is_anew: bool,
}

/// A list if it is another one than before, or why there is none.
pub(crate) type LookResult = Result<Option<Snapshot>, Defect>;

/// Reads a file.
#[derive(Debug)]
pub(crate) struct FileReader {
    /// Its number among the sources of the process.
    number: usize,
    path: PathBuf,
    last: Reading,
}

/// What the last reading found.
#[derive(Debug, Default)]
struct Reading {
    stamp: Option<Stamp>,
    /// Whether two readings seconds apart had this stamp. A younger one may have missed a write within one tick of the
    /// file system's clock.
    is_settled: bool,
    hash: Option<blake3::Hash>,
    defect: Option<Defect>,
}

impl FileReader {
    /// Reads the file at an absolute path.
    pub(crate) fn new(number: usize, path: &Path) -> FileReader {
        FileReader { number, path: path.to_owned(), last: Reading::default() }
    }

    /// Looks for a list.
    pub(crate) fn look(&mut self, job: Job, watch: &Watch) -> LookResult {
        let Job { step, is_anew } = job;
        if is_anew {
            self.last = Reading::default();
        }
        let chain = chain::walk(&self.path);
        // Before the file is read: a change behind this makes an event.
        watch.follow(self.number, &chain.links);
        let found = chain.end.and_then(|_| reading::stamp(&self.path));
        let stamp = found.map_err(|defect| self.fail(defect))?;
        let is_same = self.last.stamp == Some(stamp);
        if step == Step::Look && is_same && self.last.is_settled {
            return self.repeat();
        }
        let (after, bytes) = reading::read(&self.path).map_err(|defect| self.fail(defect))?;
        let hash = blake3::hash(&bytes);
        let is_settled = step == Step::Look && is_same && after == stamp;
        (self.last.stamp, self.last.is_settled) = (Some(after), is_settled);
        if self.last.hash == Some(hash) {
            return self.repeat();
        }
        let parsed = json::parse(&bytes);
        (self.last.hash, self.last.defect) = (Some(hash), parsed.as_ref().err().cloned());
        parsed.map(Some)
    }

    /// The same bytes have the same meaning.
    fn repeat(&self) -> Result<Option<Snapshot>, Defect> {
        self.last.defect.clone().map_or(Ok(None), Err)
    }

    /// Notes that there are no bytes, so that the next ones count as new even if they were there before.
    fn fail(&mut self, defect: Defect) -> Defect {
        self.last = Reading::default();
        defect
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultKind;
    use crate::file::folder::Folder;
    use std::fs::File;
    use std::time::SystemTime;

    #[test]
    fn a_look_reads_only_what_may_have_changed() {
        let (folder, watch) = (Folder::new("look"), Watch::new());
        folder.write("api.json", "[\"a:1\"]");
        let path = folder.path("api.json");
        let mut reader = FileReader::new(0, &path);
        let mut look = |step| {
            let found = reader.look(Job { step, is_anew: false }, &watch);
            let found = found.map(|list| list.map(|list| list.members[0].addr.clone()));
            (found.map_err(|defect| defect.kind), reader.last.is_settled)
        };
        assert_eq!(look(Step::Look), (Ok(Some("a:1".to_owned())), false));
        // Bytes may have changed within the tick of the file system's clock in which they were read.
        assert_eq!(look(Step::Look), (Ok(None), true));
        assert_eq!(look(Step::Look), (Ok(None), true));
        assert_eq!(look(Step::Read), (Ok(None), false));
        assert_eq!(look(Step::Look), (Ok(None), true));
        // The same size and time of writing.
        folder.write("api.json", "[\"b:1\"]");
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(look(Step::Look), (Ok(Some("b:1".to_owned())), false));
        folder.write("api.json", "[");
        assert_eq!(look(Step::Read), (Err(FaultKind::Cut), false));
        assert_eq!(look(Step::Look), (Err(FaultKind::Cut), true));
        assert_eq!(look(Step::Look), (Err(FaultKind::Cut), true));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(look(Step::Look), (Err(FaultKind::Missing), false));
        folder.write("api.json", "[\"b:1\"]");
        assert_eq!(look(Step::Look), (Ok(Some("b:1".to_owned())), false));
        assert_eq!(look(Step::Look), (Ok(None), true));
        // What was found was thrown away.
        let found = reader.look(Job { step: Step::Look, is_anew: true }, &watch).expect("a list");
        assert_eq!(found.expect("another one").members[0].addr, "b:1");
    }
}
