//! A list in a file, followed through renames over it, swapped symbolic links, writes in place and lost folders.

mod chain;
mod follow;
mod reading;
mod watch;

#[cfg(test)]
mod folder;

pub(crate) use watch::Watch;

use crate::clock::Clock;
use crate::fault::{Defect, Fault, Reports};
use crate::list::{Snapshot, json};
use follow::{Follow, Step};
use reading::Stamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A followed file.
#[derive(Debug)]
pub(crate) struct FileSource {
    /// Its number among the sources of the process.
    number: usize,
    path: PathBuf,
    follow: Follow,
    reports: Reports,
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

impl FileSource {
    /// Follows an absolute path, from now on.
    pub(crate) fn new(number: usize, path: &Path, now_ns: u64) -> FileSource {
        FileSource {
            number,
            path: path.to_owned(),
            follow: Follow::new(now_ns),
            reports: Reports::default(),
            last: Reading::default(),
        }
    }

    /// When it is to be advanced, if nothing happens until then.
    pub(crate) fn next_ns(&self) -> u64 {
        self.follow.next_ns()
    }

    /// Notes that something happened on the way to the file.
    pub(crate) fn note_change(&mut self, now_ns: u64) {
        self.follow.note_change(now_ns);
    }

    /// Does what is due. Returns a list if it is another one, and a fault if it is to be reported.
    pub(crate) fn advance(
        &mut self,
        watch: &mut Watch,
        clock: &Clock,
    ) -> Option<Result<Arc<Snapshot>, Fault>> {
        let step = self.follow.take(clock.now_ns())?;
        let found = self.look(step, watch);
        let now_ns = clock.now_ns();
        self.follow.finish(now_ns);
        match found {
            Ok(Some(snapshot)) => {
                self.reports.clear(now_ns);
                Some(Ok(Arc::new(snapshot)))
            }
            Ok(None) => None,
            Err(defect) => {
                let lasting = self.reports.admit(now_ns, defect.kind)?;
                Some(Err(Fault { subject: self.path.display().to_string(), defect, lasting }))
            }
        }
    }

    /// Looks for a list; `None` if it is the one that was there before.
    fn look(&mut self, step: Step, watch: &mut Watch) -> Result<Option<Snapshot>, Defect> {
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
    use super::folder::Folder;
    use super::*;
    use crate::fault::FaultKind;
    use std::fs::File;
    use std::time::SystemTime;

    #[test]
    fn a_look_reads_only_what_may_have_changed() {
        let (folder, mut watch) = (Folder::new("look"), Watch::new());
        folder.write("api.json", "[\"a:1\"]");
        let path = folder.path("api.json");
        let mut source = FileSource::new(0, &path, 0);
        let mut look = |step| {
            let found =
                source.look(step, &mut watch).map(|list| list.map(|list| list.members[0].addr.clone()));
            (found.map_err(|defect| defect.kind), source.last.is_settled)
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
    }
}
