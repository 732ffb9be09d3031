//! The thread of all sources: waits for changes and deadlines, and gives each list and fault to the process.
//!
//! It never waits for a file system. Each file is read on a thread of its own, so that a network folder that does not answer
//! holds up nothing but its list.

use crate::clock::Clock;
use crate::fault::{Fault, Unwatched};
use crate::file::{FileReader, FileSource, Job, LookResult, READING_NS, Watch, wait_for_change};
use crate::list::Snapshot;
use crate::readers::Readers;
use crate::registry::{Posted, Registries, ask};
use crate::source::FollowedSource;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use weir_plan::SourceKind;
use weir_stats::Key;

/// What a source gives.
#[derive(Clone, Debug)]
pub struct Update {
    /// The index of the source.
    pub source: usize,
    /// Another list than before, or why there is none. After a fault a list follows even if it is the same as before.
    pub result: Result<Arc<Snapshot>, Fault>,
}

/// The news of its sources that a process gets.
#[derive(Clone, Debug)]
pub enum News {
    /// A list, or why there is none.
    Update(Update),
    /// Changes of lists are seen late.
    Unwatched(Unwatched),
}

/// Sources that are followed, until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the sources"]
pub struct Discovery {
    door: Door,
    _registries: Option<Registries>,
}

impl Drop for Discovery {
    /// Ends the threads, but does not wait for them: a network folder may hold them up. An update that is on its way may
    /// still come.
    fn drop(&mut self) {
        self.door.send(Message::Stop);
    }
}

/// Follows these sources on threads of its own, one of which calls `deliver` with the news. The first one of each
/// source comes as soon as it is read. While `deliver` runs nothing else is taken. A relative path begins at the folder
/// of the process; pauses after failures depend on `draw`. `readers`: those of the process.
///
/// # Errors
/// When there is no descriptor or no thread, or no current folder for a relative path.
pub fn run(
    sources: &[FollowedSource],
    readers: &Readers,
    draw: Key,
    deliver: impl FnMut(News) + Send + 'static,
) -> io::Result<Discovery> {
    let clock = Clock::start();
    let (mut files, mut registries) = (Vec::new(), Vec::new());
    for (number, source) in sources.iter().enumerate() {
        let SourceKind::File(path) = &source.kind else {
            registries.push((number, source.clone()));
            continue;
        };
        let path = std::path::absolute(path)?;
        let mut reader = FileReader::new(number, &path);
        let look: Lookup = Box::new(move |job, watch| reader.look(job, watch));
        files.push((number, FileSource::new(&path, clock.now_ns(), READING_NS), look));
    }
    let mut discovery = start(clock, files, readers, deliver)?;
    if !registries.is_empty() {
        let door = discovery.door.clone();
        let give = move |number, posted| {
            door.send(Message::Posted(number, posted));
        };
        discovery._registries = Some(ask(registries, draw, give)?);
    }
    Ok(discovery)
}

/// Reads a file.
type Lookup = Box<dyn FnMut(Job, &Watch) -> LookResult + Send>;

/// Follows these files, each with what reads it.
fn start(
    clock: Clock,
    files: Vec<(usize, FileSource, Lookup)>,
    readers: &Readers,
    deliver: impl FnMut(News) + Send + 'static,
) -> io::Result<Discovery> {
    let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
    let (out, inbox) = channel();
    let door = Door { out, bell };
    let watch = Arc::new(Watch::new());
    let mut followed = BTreeMap::new();
    for (number, source, look) in files {
        let jobs = start_reader(number, look, readers, watch.clone(), door.clone())?;
        followed.insert(number, File { source, jobs });
    }
    let bell = door.bell.clone();
    let thread = Thread { inbox, bell, clock, watch, files: followed, deliver };
    std::thread::Builder::new().name("weir-discovery".to_owned()).spawn(move || thread.run())?;
    Ok(Discovery { door, _registries: None })
}

/// A message to the thread of all sources.
enum Message {
    /// A reading of this source has ended.
    Found(usize, LookResult),
    /// A registry has given a list, or why there is none.
    Posted(usize, Posted),
    Stop,
}

/// The way to the thread of all sources.
#[derive(Clone, Debug)]
struct Door {
    out: Sender<Message>,
    /// What the thread waits for.
    bell: Arc<OwnedFd>,
}

impl Door {
    /// Returns whether the thread is still there.
    fn send(&self, message: Message) -> bool {
        let is_there = self.out.send(message).is_ok();
        let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
        is_there
    }
}

/// Starts the thread that reads a file. It ends when the returned way to it is dropped.
fn start_reader(
    number: usize,
    mut look: Lookup,
    readers: &Readers,
    watch: Arc<Watch>,
    door: Door,
) -> io::Result<Sender<Job>> {
    let (out, jobs) = channel();
    let reader = readers.admit()?;
    std::thread::Builder::new().name("weir-list".to_owned()).spawn(move || {
        let _counts_until_the_end = reader;
        while let Ok(job) = jobs.recv() {
            let found = look(job, &watch);
            if !door.send(Message::Found(number, found)) {
                return;
            }
        }
    })?;
    Ok(out)
}

/// A file that is followed.
struct File {
    source: FileSource,
    /// The way to the thread that reads it.
    jobs: Sender<Job>,
}

struct Thread<F> {
    inbox: Receiver<Message>,
    bell: Arc<OwnedFd>,
    clock: Clock,
    watch: Arc<Watch>,
    /// By the number of their source.
    files: BTreeMap<usize, File>,
    deliver: F,
}

impl<F: FnMut(News)> Thread<F> {
    fn run(mut self) {
        loop {
            self.wait();
            let now_ns = self.clock.now_ns();
            for number in self.watch.take_changes() {
                if let Some(file) = self.files.get_mut(&number) {
                    file.source.note_change(now_ns);
                }
            }
            while let Ok(message) = self.inbox.try_recv() {
                let (source, result) = match message {
                    Message::Stop => return,
                    Message::Posted(source, posted) => (source, Some(posted)),
                    Message::Found(source, found) => {
                        let now_ns = self.clock.now_ns();
                        let file = self.files.get_mut(&source);
                        (source, file.and_then(|file| file.source.finish(found, now_ns)))
                    }
                };
                if let Some(result) = result {
                    (self.deliver)(News::Update(Update { source, result }));
                }
            }
            for unwatched in self.watch.take_refusals() {
                (self.deliver)(News::Unwatched(unwatched));
            }
            for (number, file) in &mut self.files {
                let now_ns = self.clock.now_ns();
                if let Some(fault) = file.source.overdue(now_ns) {
                    (self.deliver)(News::Update(Update { source: *number, result: Err(fault) }));
                }
                if let Some(job) = file.source.begin(now_ns) {
                    let _ = file.jobs.send(job);
                }
            }
        }
    }

    /// Waits until there is something to do.
    fn wait(&self) {
        let next_ns = self.files.values().map(|file| file.source.next_ns()).min();
        let pause_ns = next_ns.map(|next_ns| next_ns.saturating_sub(self.clock.now_ns()));
        wait_for_change(&self.watch, &self.bell, pause_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::mpsc::RecvTimeoutError;
    use std::time::Duration;

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

    #[test]
    fn a_file_that_is_never_read_holds_up_no_other_and_no_end() {
        let clock = Clock::start();
        // The file system answers when the test lets it.
        let (answer, answers) = channel::<()>();
        let hung = move |_: Job, _: &Watch| {
            let _ = answers.recv();
            list("hung:1")
        };
        let source = FileSource::new(Path::new("/hung"), clock.now_ns(), 100_000_000);
        let (out, updates) = channel();
        let (quick, look) = quick(clock);
        let files = vec![(0, source, Box::new(hung) as Lookup), (1, quick, look)];
        let readers = Readers::default();
        let discovery = start(clock, files, &readers, only_updates(out)).expect("threads");
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
        let clock = Clock::start();
        let (answer, answers) = channel::<()>();
        let mut n = 0;
        let slow = move |job: Job, _: &Watch| {
            n += 1;
            if n == 1 {
                let _ = answers.recv();
            }
            list(&format!("{}:{n}", if job.is_anew { "anew" } else { "known" }))
        };
        let source = FileSource::new(Path::new("/slow"), clock.now_ns(), 100_000_000);
        let (out, updates) = channel();
        let files = vec![(0, source, Box::new(slow) as Lookup)];
        let _discovery = start(clock, files, &Readers::default(), only_updates(out)).expect("threads");
        let late = updates.recv_timeout(BOUND).expect("an update").result.expect_err("no list");
        assert_eq!(late.defect.kind, crate::fault::FaultKind::Late);
        answer.send(()).expect("it waits");
        let next = updates.recv_timeout(BOUND).expect("an update").result.expect("a list");
        assert_eq!(next.members[0].addr, "anew:2");
    }
}
