//! The sources of fleets that are followed while topologies come and go. A source that the next topology has as well goes on
//! as it is: what it has found out stays (members that are held, servers that have failed), and no fault is said again.

use super::keeper::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::Sender;
use weir_discovery::{Discovery, FollowedSource, News, Readers, Update};
use weir_plan::SourceKind;
use weir_stats::Key;

/// The followed sources.
pub(super) struct Sources {
    /// The threads of the process that read files.
    readers: Readers,
    /// Of the pauses of sources after failures.
    draw: Key,
    /// Once there has been a source.
    discovery: Option<Discovery>,
    /// The number that its first source has here.
    first: usize,
    /// Those that are followed, by the numbers that their updates have. No number comes again.
    kinds: BTreeMap<usize, SourceKind>,
    /// The number of the next source.
    next: usize,
}

impl Sources {
    /// None yet.
    pub fn new(readers: Readers, draw: Key) -> Sources {
        Sources { readers, draw, discovery: None, first: 0, kinds: BTreeMap::new(), next: 0 }
    }

    /// The source of an update; `None`: it is not followed any more.
    pub fn find(&self, number: usize) -> Option<&SourceKind> {
        self.kinds.get(&number)
    }

    /// Follows these sources and no others from now on, and sends their news to `out`.
    ///
    /// # Errors
    /// Some cannot be followed; all others are, and calling this again tries those. Where a thread has ended none is, and
    /// calling this again follows all by new threads.
    pub fn follow(&mut self, wanted: Vec<FollowedSource>, out: &Sender<Message>) -> io::Result<()> {
        if self.discovery.is_none() && !wanted.is_empty() {
            self.first = self.next;
            self.discovery = Some(self.start(out.clone())?);
        }
        let Some(discovery) = &mut self.discovery else { return Ok(()) };
        let kinds: BTreeSet<&SourceKind> = wanted.iter().map(|source| &source.kind).collect();
        self.kinds.retain(|number, kind| {
            let stays = kinds.contains(&*kind);
            if !stays {
                discovery.forget(*number - self.first);
            }
            stays
        });
        let known: BTreeSet<SourceKind> = self.kinds.values().cloned().collect();
        let mut result = Ok(());
        for source in wanted.into_iter().filter(|source| !known.contains(&source.kind)) {
            let kind = source.kind.clone();
            match discovery.follow(source) {
                Ok(number) => {
                    self.kinds.insert(self.first + number, kind);
                    self.next = self.first + number + 1;
                }
                Err(e) => result = result.and(Err(e)),
            }
        }
        if discovery.has_ended() {
            self.discovery = None;
            self.kinds.clear();
        }
        result
    }

    /// Starts what follows sources.
    fn start(&self, out: Sender<Message>) -> io::Result<Discovery> {
        let first = self.first;
        Discovery::start(&self.readers, self.draw, move |news| {
            drop(out.send(match news {
                News::Update(Update { source, result }) => {
                    Message::Update(Update { source: first + source, result })
                }
                News::Failure(source) => Message::Failure(first + source),
                News::Unwatched(unwatched) => Message::Unwatched(unwatched),
            }));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    /// What is waited for comes long before.
    const BOUND: Duration = Duration::from_secs(30);

    /// A folder with lists, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("weir-sources-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).expect("a folder");
            Folder(path)
        }

        fn source(&self, name: &str) -> FollowedSource {
            let path: &Path = &self.0.join(name);
            SourceKind::File(path.to_string_lossy().into_owned()).into()
        }

        /// Writes a list with one member, whose port is this.
        fn write(&self, name: &str, port: u16) {
            std::fs::write(self.0.join("new"), format!("[\"{name}:{port}\"]")).expect("a file");
            std::fs::rename(self.0.join("new"), self.0.join(name)).expect("a file");
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// The next update of a source that is followed: its number, and the member or that there is no list.
    fn next(sources: &Sources, inbox: &Receiver<Message>) -> (usize, String) {
        loop {
            let Message::Update(update) = inbox.recv_timeout(BOUND).expect("an update") else { continue };
            if sources.find(update.source).is_some() {
                let list = update.result.map(|list| list.members[0].addr.clone());
                return (update.source, list.unwrap_or_else(|_| "no list".to_owned()));
            }
        }
    }

    #[test]
    fn a_source_that_cannot_be_followed_keeps_no_other_from_it() {
        let folder = Folder::new("others");
        folder.write("a", 1);
        let (out, inbox) = channel();
        let mut sources = Sources::new(Readers::default(), Key::new(1));
        // An empty path has no folder.
        let wanted = || vec![FollowedSource::from(SourceKind::File(String::new())), folder.source("a")];
        sources.follow(wanted(), &out).expect_err("an empty path");
        assert_eq!(next(&sources, &inbox), (0, "a:1".to_owned()));
        sources.follow(wanted(), &out).expect_err("an empty path");
        assert_eq!(sources.kinds.keys().copied().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_source_that_stays_goes_on_while_others_come_and_go() {
        let folder = Folder::new("staying");
        folder.write("a", 1);
        let (out, inbox) = channel();
        let mut sources = Sources::new(Readers::default(), Key::new(1));
        sources.follow(Vec::new(), &out).expect("nothing to follow");
        assert!(sources.discovery.is_none());
        let follow = |sources: &mut Sources, names: &[&str]| {
            let wanted = names.iter().map(|name| folder.source(name)).collect();
            sources.follow(wanted, &out).expect("threads");
            sources.kinds.keys().copied().collect::<Vec<_>>()
        };
        // A fault of a file that is missing, and a list.
        assert_eq!(follow(&mut sources, &["a", "missing"]), [0, 1]);
        let mut both = [next(&sources, &inbox), next(&sources, &inbox)];
        both.sort();
        assert_eq!(both, [(0, "a:1".to_owned()), (1, "no list".to_owned())]);
        // One more: nothing is said of the others.
        folder.write("b", 1);
        assert_eq!(follow(&mut sources, &["a", "b", "missing"]), [0, 1, 2]);
        assert_eq!(next(&sources, &inbox), (2, "b:1".to_owned()));
        // One less: the others are followed, and it is not.
        assert_eq!(follow(&mut sources, &["b", "missing"]), [1, 2]);
        folder.write("a", 2);
        folder.write("b", 2);
        assert_eq!(next(&sources, &inbox), (2, "b:2".to_owned()));
        // It comes back as another one, with its list.
        assert_eq!(follow(&mut sources, &["a", "b"]), [2, 3]);
        assert_eq!(next(&sources, &inbox), (3, "a:2".to_owned()));
        assert_eq!(follow(&mut sources, &[]), [0; 0]);
    }
}
