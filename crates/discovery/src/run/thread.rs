//! The thread of all sources: waits for changes and deadlines, and gives each list and fault to the process.
//!
//! It never waits for a file system. Each file is read on a thread of its own, so that a network folder that does not answer
//! holds up nothing but its list.

use super::{News, Update};
use crate::clock::Clock;
use crate::file::{FileSource, Job, LookResult, Watch, wait_for_change};
use crate::readers::Readers;
use crate::registry::Posted;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Reads a file.
pub(super) type Lookup = Box<dyn FnMut(Job, &Watch) -> LookResult + Send>;

/// A message to the thread of all sources.
pub(super) enum Message {
    /// This file is followed as well.
    Follow(usize, Box<File>),
    /// This file is not followed any more.
    Forget(usize),
    /// A reading of this source has ended.
    Found(usize, LookResult),
    /// A registry has given a list, or why there is none.
    Posted(usize, Posted),
    /// A question to a registry has failed.
    Failure(usize),
    Stop,
}

/// The way to the thread of all sources.
#[derive(Clone, Debug)]
pub(super) struct Door {
    out: Sender<Message>,
    /// What the thread waits for.
    bell: Arc<OwnedFd>,
}

impl Door {
    /// Returns whether the thread is still there.
    pub(super) fn send(&self, message: Message) -> bool {
        let is_there = self.out.send(message).is_ok();
        let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
        is_there
    }
}

/// A file that is followed.
pub(super) struct File {
    source: FileSource,
    /// The way to the thread that reads it.
    jobs: Sender<Job>,
}

impl File {
    /// Starts the thread that reads a file. It ends when the file is dropped.
    ///
    /// # Errors
    /// There is no thread, or too many read files.
    pub(super) fn start(
        number: usize,
        source: FileSource,
        mut look: Lookup,
        readers: &Readers,
        watch: Arc<Watch>,
        door: Door,
    ) -> io::Result<File> {
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
            // Only a look, which this thread alone takes, watches names for the source.
            watch.forget(number);
        })?;
        Ok(File { source, jobs: out })
    }
}

/// Starts the thread of all sources, without one. It ends by [`Message::Stop`].
///
/// # Errors
/// There is no descriptor, or no thread.
pub(super) fn start(
    clock: Clock,
    watch: Arc<Watch>,
    deliver: impl FnMut(News) + Send + 'static,
) -> io::Result<Door> {
    let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
    let (out, inbox) = channel();
    let thread = Thread { inbox, bell: bell.clone(), clock, watch, files: BTreeMap::new(), deliver };
    std::thread::Builder::new().name("weir-discovery".to_owned()).spawn(move || thread.run())?;
    Ok(Door { out, bell })
}

struct Thread<F> {
    inbox: Receiver<Message>,
    bell: Arc<OwnedFd>,
    clock: Clock,
    watch: Arc<Watch>,
    /// By the number of their source.
    files: BTreeMap<usize, Box<File>>,
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
                    Message::Follow(source, file) => {
                        self.files.insert(source, file);
                        continue;
                    }
                    Message::Forget(source) => {
                        self.files.remove(&source);
                        continue;
                    }
                    Message::Failure(source) => {
                        (self.deliver)(News::Failure(source));
                        continue;
                    }
                    Message::Posted(source, posted) => (source, Some(posted)),
                    Message::Found(source, found) => {
                        let now_ns = self.clock.now_ns();
                        let file = self.files.get_mut(&source);
                        let result = file.and_then(|file| file.source.finish(found, now_ns));
                        self.deliver_failures(source);
                        (source, result)
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
                let fault = file.source.overdue(now_ns);
                for _ in 0..file.source.take_failures() {
                    (self.deliver)(News::Failure(*number));
                }
                if let Some(fault) = fault {
                    (self.deliver)(News::Update(Update { source: *number, result: Err(fault) }));
                }
                if let Some(job) = file.source.begin(now_ns) {
                    let _ = file.jobs.send(job);
                }
            }
        }
    }

    /// Gives the failures of a file that it has not given yet.
    fn deliver_failures(&mut self, number: usize) {
        let failures = self.files.get_mut(&number).map_or(0, |file| file.source.take_failures());
        for _ in 0..failures {
            (self.deliver)(News::Failure(number));
        }
    }

    /// Waits until there is something to do.
    fn wait(&self) {
        let next_ns = self.files.values().map(|file| file.source.next_ns()).min();
        let pause_ns = next_ns.map(|next_ns| next_ns.saturating_sub(self.clock.now_ns()));
        wait_for_change(&self.watch, &self.bell, pause_ns);
    }
}
