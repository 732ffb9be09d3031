//! A list in a file, followed through renames over it, swapped symbolic links, writes in place and lost folders.
//!
//! Nothing here waits but [`FileReader`], which the system may hold up: [`FileSource`] says when the file is read, and what
//! to make of a reading that does not end. [`PlainFile`] follows a file of any other content by the same rules.

mod chain;
mod follow;
mod plain;
mod reader;
mod reading;
mod wait;
mod watch;

#[cfg(test)]
pub(crate) mod folder;

pub(crate) use plain::PlainFile;
pub(crate) use reader::{FileReader, Job, LookResult};
pub(crate) use wait::wait_for_change;
pub(crate) use watch::Watch;

use crate::fault::{Defect, Fault, FaultKind, Reports};
use crate::list::Snapshot;
use follow::Follow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How long a reading may take. A network folder may keep it for ever.
pub(crate) const READING_NS: u64 = 30_000_000_000;

/// How often a reading that takes longer is looked at.
const LATE_NS: u64 = 5_000_000_000;

/// A followed file.
#[derive(Debug)]
pub(crate) struct FileSource {
    path: PathBuf,
    follow: Follow,
    reports: Reports,
    most_ns: u64,
    reading: Option<Reading>,
    /// Whether the last reading was thrown away.
    is_anew: bool,
    /// Readings that gave no list, since that was last asked for.
    failures: u32,
}

/// A reading that goes on.
#[derive(Debug)]
struct Reading {
    /// When it takes too long, or is looked at again.
    due_ns: u64,
    is_late: bool,
}

impl FileSource {
    /// Follows an absolute path, from now on. A reading may take `most_ns`.
    pub(crate) fn new(path: &Path, now_ns: u64, most_ns: u64) -> FileSource {
        FileSource {
            path: path.to_owned(),
            follow: Follow::new(now_ns),
            reports: Reports::default(),
            most_ns,
            reading: None,
            is_anew: false,
            failures: 0,
        }
    }

    /// Takes the number of readings that gave no list, reported or not, since it was last taken.
    pub(crate) fn take_failures(&mut self) -> u32 {
        std::mem::take(&mut self.failures)
    }

    /// When there is something to do, if nothing happens until then.
    pub(crate) fn next_ns(&self) -> u64 {
        self.reading.as_ref().map_or_else(|| self.follow.next_ns(), |reading| reading.due_ns)
    }

    /// Notes that something happened on the way to the file.
    pub(crate) fn note_change(&mut self, now_ns: u64) {
        self.follow.note_change(now_ns);
    }

    /// Begins a reading, if one is due. [`FileSource::finish`] ends it.
    pub(crate) fn begin(&mut self, now_ns: u64) -> Option<Job> {
        if self.reading.is_some() {
            return None;
        }
        let step = self.follow.take(now_ns)?;
        self.reading = Some(Reading { due_ns: now_ns + self.most_ns, is_late: false });
        Some(Job { step, is_anew: std::mem::take(&mut self.is_anew) })
    }

    /// Returns the fault that a reading takes too long, if it is to be reported now.
    pub(crate) fn overdue(&mut self, now_ns: u64) -> Option<Fault> {
        let reading = self.reading.as_mut().filter(|reading| reading.due_ns <= now_ns)?;
        // However often it is looked at, it is one.
        self.failures += u32::from(!reading.is_late);
        (reading.due_ns, reading.is_late) = (now_ns + LATE_NS, true);
        let problem = format!("the file was not read within {}s", self.most_ns / 1_000_000_000);
        let remedy = "see to its file system; weir reads it again once that answers";
        self.report(Defect::new(FaultKind::Late, problem, remedy), now_ns)
    }

    /// Ends a reading. Returns a list if it is another one, and a fault if it is to be reported.
    pub(crate) fn finish(&mut self, found: LookResult, now_ns: u64) -> Option<Result<Arc<Snapshot>, Fault>> {
        let late = self.overdue(now_ns);
        let is_late = self.reading.take().is_some_and(|reading| reading.is_late);
        self.follow.finish(now_ns);
        match found {
            Err(defect) => {
                self.failures += u32::from(!is_late);
                self.report(defect, now_ns).or(late).map(Err)
            }
            // It may be as old as the reading.
            Ok(_) if is_late => {
                self.is_anew = true;
                late.map(Err)
            }
            Ok(found) => {
                let snapshot = found?;
                self.reports.clear(now_ns);
                Some(Ok(Arc::new(snapshot)))
            }
        }
    }

    fn report(&mut self, defect: Defect, now_ns: u64) -> Option<Fault> {
        let lasting = self.reports.admit(now_ns, defect.kind)?;
        Some(Fault { subject: self.path.display().to_string(), defect, lasting })
    }
}

#[cfg(test)]
mod tests {
    use super::follow::Step;
    use super::*;

    const S: u64 = 1_000_000_000;

    fn list() -> LookResult {
        crate::list::json::parse(b"[\"a:1\"]").map(Some)
    }

    #[test]
    fn a_reading_that_does_not_end_is_a_fault_said_once_and_then_every_five_minutes() {
        let mut source = FileSource::new(Path::new("/net/api.json"), 0, READING_NS);
        assert_eq!(source.begin(0), Some(Job { step: Step::Look, is_anew: false }));
        assert!(source.finish(list(), 0).is_some_and(|update| update.is_ok()));
        assert_eq!(
            (source.next_ns(), source.begin(5 * S)),
            (5 * S, Some(Job { step: Step::Look, is_anew: false }))
        );
        // However often it changes meanwhile.
        source.note_change(6 * S);
        assert_eq!((source.next_ns(), source.begin(7 * S), source.overdue(34 * S)), (35 * S, None, None));
        let mut said = Vec::new();
        for s in 35..400 {
            said.extend(source.overdue(s * S).map(|fault| (s, fault.to_string())));
        }
        let words = "/net/api.json: the file was not read within 30s; see to its file system; weir reads it again once that answers";
        assert_eq!(said, [(35, words.to_owned()), (335, format!("{words} (no list for 300s)"))]);
        // What it found at last is no list, and the next reading takes no bytes as known.
        assert!(source.finish(list(), 400 * S).is_none());
        assert_eq!(source.take_failures(), 1, "one reading");
        assert_eq!(source.next_ns(), 400 * S + S / 10);
        assert_eq!(source.begin(401 * S), Some(Job { step: Step::Read, is_anew: true }));
        assert!(source.finish(list(), 402 * S).is_some_and(|update| update.is_ok()));
    }

    #[test]
    fn what_ends_too_late_is_no_list_though_nothing_looked_at_it_before() {
        let mut source = FileSource::new(Path::new("/net/api.json"), 0, READING_NS);
        source.begin(0);
        let late = source.finish(list(), 31 * S).expect("a fault").expect_err("no list");
        assert_eq!(late.defect.kind, FaultKind::Late);
        // That it cannot be read at all says more.
        source.begin(40 * S);
        let gone = Defect::new(FaultKind::Unreadable, "gone", "see to it");
        let fault = source.finish(Err(gone), 80 * S).expect("a fault").expect_err("no list");
        assert_eq!(fault.defect.kind, FaultKind::Unreadable);
        assert_eq!(source.take_failures(), 2);
    }

    #[test]
    fn each_reading_without_a_list_counts_though_it_is_reported_once() {
        let mut source = FileSource::new(Path::new("/net/api.json"), 0, READING_NS);
        let mut reported = 0;
        for look in 0..3 {
            assert!(source.begin(look * 5 * S).is_some());
            let missing = Defect::new(FaultKind::Missing, "there is no such file", "write it");
            reported += usize::from(source.finish(Err(missing), look * 5 * S).is_some());
        }
        assert_eq!((reported, source.take_failures(), source.take_failures()), (1, 3, 0));
    }
}
