//! The sources that a process follows. Each begins and ends by itself, and the others go on meanwhile.

mod thread;

use crate::clock::Clock;
use crate::fault::{Fault, Unwatched};
use crate::file::{FileReader, FileSource, READING_NS, Watch};
use crate::list::Snapshot;
use crate::readers::Readers;
use crate::registry::{self, Notice, Registries};
use crate::source::FollowedSource;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use thread::{Door, File, Lookup, Message};
use weir_plan::SourceKind;
use weir_stats::Key;

/// What a source gives.
#[derive(Clone, Debug)]
pub struct Update {
    /// The number of the source.
    pub source: usize,
    /// Another list than before, or why there is none. After a fault a list follows even if it is the same as before.
    pub result: Result<Arc<Snapshot>, Fault>,
}

/// The news of its sources that a process gets.
#[derive(Clone, Debug)]
pub enum News {
    /// A list, or why there is none. A fault that lasts is given again after five minutes.
    Update(Update),
    /// A question to the source of this number has failed. Each gives one, and some an update after it.
    Failure(usize),
    /// Changes of lists are seen late.
    Unwatched(Unwatched),
}

/// Sources that are followed, until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the sources"]
pub struct Discovery {
    door: Door,
    clock: Clock,
    watch: Arc<Watch>,
    readers: Readers,
    draw: Key,
    /// The thread that asks registries, while there is one to ask.
    registries: Option<Registries>,
    /// The numbers of the registries that are asked.
    asked: BTreeSet<usize>,
    /// The number of the next source.
    next: usize,
    /// Whether a thread that follows or asks sources has ended.
    has_ended: bool,
}

impl Drop for Discovery {
    /// Ends the threads, but does not wait for them: a network folder may hold them up. An update that is on its way may
    /// still come.
    fn drop(&mut self) {
        self.door.send(Message::Stop);
    }
}

/// Follows these sources, whose numbers are their indices. The other arguments are those of [`Discovery::start`].
///
/// # Errors
/// When there is no descriptor or no thread, or no current folder for a relative path.
pub fn run(
    sources: &[FollowedSource],
    readers: &Readers,
    draw: Key,
    deliver: impl FnMut(News) + Send + 'static,
) -> io::Result<Discovery> {
    let mut discovery = Discovery::start(readers, draw, deliver)?;
    for source in sources {
        discovery.follow(source.clone())?;
    }
    Ok(discovery)
}

impl Discovery {
    /// Follows no source yet, but has a thread that calls `deliver` with the news. While `deliver` runs nothing else is
    /// taken. Pauses after failures depend on `draw`. `readers`: those of the process.
    ///
    /// # Errors
    /// When there is no descriptor or no thread.
    pub fn start(
        readers: &Readers,
        draw: Key,
        deliver: impl FnMut(News) + Send + 'static,
    ) -> io::Result<Discovery> {
        let (clock, watch) = (Clock::start(), Arc::new(Watch::new()));
        let door = thread::start(clock, watch.clone(), deliver)?;
        let (readers, registries, asked) = (readers.clone(), None, BTreeSet::new());
        let (next, has_ended) = (0, false);
        Ok(Discovery { door, clock, watch, readers, draw, registries, asked, next, has_ended })
    }

    /// Follows another source. Returns its number, which no other has or will have. Its first update comes as soon as it
    /// is read. A relative path begins at the folder of the process.
    ///
    /// # Errors
    /// When there is no thread, or no current folder for a relative path. One that has ended does not come back:
    /// [`Discovery::has_ended`].
    pub fn follow(&mut self, source: FollowedSource) -> io::Result<usize> {
        let SourceKind::File(path) = &source.kind else { return self.ask(source) };
        let path = std::path::absolute(path)?;
        let mut reader = FileReader::new(self.next, &path);
        let look: Lookup = Box::new(move |job, watch| reader.look(job, watch));
        self.read(FileSource::new(&path, self.clock.now_ns(), READING_NS), look)
    }

    /// Whether following a source has found that a thread has ended, by a mistake of weir's. Another [`Discovery`] can follow the
    /// sources then.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Ends the source of this number. An update that is on its way may still come.
    pub fn forget(&mut self, number: usize) {
        if !self.asked.remove(&number) {
            self.door.send(Message::Forget(number));
            return;
        }
        if self.asked.is_empty() {
            self.registries = None;
        } else if let Some(registries) = &self.registries {
            registries.forget(number);
        }
    }

    /// Follows a file that is read by `look`.
    fn read(&mut self, source: FileSource, look: Lookup) -> io::Result<usize> {
        let number = self.next;
        let (watch, door) = (self.watch.clone(), self.door.clone());
        let file = File::start(number, source, look, &self.readers, watch, door)?;
        if !self.door.send(Message::Follow(number, Box::new(file))) {
            self.has_ended = true;
            return Err(io::Error::other("the thread that follows sources has ended"));
        }
        self.next += 1;
        Ok(number)
    }

    /// Follows a registry.
    fn ask(&mut self, source: FollowedSource) -> io::Result<usize> {
        let number = self.next;
        let registries = match self.registries.take() {
            Some(registries) => registries,
            None => {
                let door = self.door.clone();
                let give = move |number, notice| {
                    door.send(match notice {
                        Notice::Posted(posted) => Message::Posted(number, posted),
                        Notice::Failure => Message::Failure(number),
                    });
                };
                registry::start(self.draw, give)?
            }
        };
        if let Err(e) = registries.ask(number, source) {
            // None of them is asked any more.
            self.asked.clear();
            self.has_ended = true;
            return Err(e);
        }
        self.registries = Some(registries);
        self.asked.insert(number);
        self.next += 1;
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Job, LookResult};
    use crate::registry::fake::{Fake, Reply};
    use std::path::Path;
    use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
    use std::time::Duration;
    use weir_plan::ConsulSource;

    /// What is waited for comes long before.
    const BOUND: Duration = Duration::from_secs(30);

    fn list(addr: &str) -> LookResult {
        crate::list::json::parse(format!("[\"{addr}\"]").as_bytes()).map(Some)
    }

    fn only_updates(out: Sender<Update>) -> impl FnMut(News) + Send {
        move |news| {
            if let News::Update(update) = news {
                drop(out.send(update));
            }
        }
    }

    /// A file that is read at once, another list each time.
    fn quick(clock: Clock) -> (FileSource, Lookup) {
        let mut n = 0;
        let look = move |_: Job, _: &Watch| {
            n += 1;
            list(&format!("a:{n}"))
        };
        (FileSource::new(Path::new("/quick"), clock.now_ns(), READING_NS), Box::new(look))
    }

    /// No source yet, and the way of updates.
    fn start(out: Sender<Update>) -> Discovery {
        Discovery::start(&Readers::default(), Key::new(1), only_updates(out)).expect("a thread")
    }

    #[test]
    fn nothing_is_followed_by_a_thread_that_has_ended() {
        let (out, _updates) = channel();
        let mut discovery = start(out);
        discovery.door.send(Message::Stop);
        while discovery.door.send(Message::Forget(0)) {
            std::thread::yield_now();
        }
        assert!(!discovery.has_ended());
        let (source, look) = quick(discovery.clock);
        let e = discovery.read(source, look).expect_err("no thread");
        assert_eq!(e.to_string(), "the thread that follows sources has ended");
        assert!(discovery.has_ended());
    }

    /// All sources go to another one then, which asks this registry again.
    #[test]
    fn no_registry_is_asked_by_a_thread_that_has_ended() {
        let fake = Fake::start(|_| Reply::Close);
        let consul = || FollowedSource::from(SourceKind::Consul(ConsulSource::new(fake.url.as_str(), "web")));
        let (out, updates) = channel();
        let mut discovery = start(out.clone());
        discovery.registries = Some(Registries::ended());
        discovery.asked.insert(7);
        assert!(!discovery.has_ended());
        let e = discovery.follow(consul()).expect_err("no thread");
        assert_eq!(e.to_string(), "the thread that asks registries has ended");
        assert!(discovery.has_ended() && discovery.asked.is_empty());
        // None of them is there any more.
        discovery.forget(7);
        drop(discovery);
        let mut other = start(out);
        assert_eq!(other.follow(consul()).expect("a thread"), 0);
        let update = updates.recv_timeout(BOUND).expect("an update");
        assert_eq!((update.source, update.result.is_err()), (0, true));
    }

    #[test]
    fn a_file_that_is_never_read_holds_up_no_other_and_no_end() {
        // The file system answers when the test lets it.
        let (answer, answers) = channel::<()>();
        let hung = move |_: Job, _: &Watch| {
            let _ = answers.recv();
            list("hung:1")
        };
        let (out, updates) = channel();
        let mut discovery = start(out);
        let source = FileSource::new(Path::new("/hung"), discovery.clock.now_ns(), 100_000_000);
        assert_eq!(discovery.read(source, Box::new(hung)).expect("a thread"), 0);
        let (source, look) = quick(discovery.clock);
        assert_eq!(discovery.read(source, look).expect("a thread"), 1);
        let mut faults = Vec::new();
        let mut lists = Vec::new();
        // The second list comes by the look after 5 s.
        while lists.len() < 2 {
            let update = updates.recv_timeout(BOUND).expect("an update");
            match update.result {
                Ok(list) => lists.push((update.source, list.members[0].addr.clone())),
                Err(fault) => faults.push((update.source, fault.defect.kind)),
            }
        }
        assert_eq!(lists, [(1, "a:1".to_owned()), (1, "a:2".to_owned())]);
        assert_eq!(faults, [(0, crate::fault::FaultKind::Late)]);
        drop(discovery);
        while let Ok(update) = updates.recv_timeout(BOUND) {
            assert_eq!(update.source, 1);
        }
        assert_eq!(
            updates.recv_timeout(BOUND).map(|update| update.source),
            Err(RecvTimeoutError::Disconnected)
        );
        // Only now does that reading end, which nothing waits for.
        drop(answer);
    }

    #[test]
    fn a_file_system_that_answers_at_last_has_its_next_list_taken() {
        let (answer, answers) = channel::<()>();
        let mut n = 0;
        let slow = move |job: Job, _: &Watch| {
            n += 1;
            if n == 1 {
                let _ = answers.recv();
            }
            list(&format!("{}:{n}", if job.is_anew { "anew" } else { "known" }))
        };
        let (out, updates) = channel();
        let mut discovery = start(out);
        let source = FileSource::new(Path::new("/slow"), discovery.clock.now_ns(), 100_000_000);
        discovery.read(source, Box::new(slow)).expect("a thread");
        let late = updates.recv_timeout(BOUND).expect("an update").result.expect_err("no list");
        assert_eq!(late.defect.kind, crate::fault::FaultKind::Late);
        answer.send(()).expect("it waits");
        let next = updates.recv_timeout(BOUND).expect("an update").result.expect("a list");
        assert_eq!(next.members[0].addr, "anew:2");
    }
}
