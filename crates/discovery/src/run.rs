//! The thread of all sources: waits for changes and deadlines, and gives each list and fault to the process.

use crate::clock::Clock;
use crate::fault::Fault;
use crate::file::{FileSource, Watch};
use crate::list::Snapshot;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Where members are listed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A JSON file. A relative path begins at the folder of the process.
    File(PathBuf),
}

/// What a source gives.
#[derive(Clone, Debug)]
pub struct Update {
    /// The index of the source.
    pub source: usize,
    /// Another list than before, or why there is none. After a fault a list follows even if it is the same as before.
    pub result: Result<Arc<Snapshot>, Fault>,
}

/// Sources that are followed, until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the sources"]
pub struct Discovery {
    stop: Arc<OwnedFd>,
}

impl Drop for Discovery {
    /// Ends the thread, but does not wait for it: a network folder may hold it up. An update that is on its way may
    /// still come.
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
    }
}

/// Follows these sources on a thread of its own, which calls `deliver` with each update. The first one of each source
/// comes at once. While `deliver` runs no source is looked at.
///
/// # Errors
/// When there is no descriptor or no thread, or no current folder for a relative path.
pub fn run(sources: &[Source], deliver: impl FnMut(Update) + Send + 'static) -> io::Result<Discovery> {
    let stop = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
    let clock = Clock::start();
    let follow = |(number, source): (usize, &Source)| match source {
        Source::File(path) => Ok(FileSource::new(number, &std::path::absolute(path)?, clock.now_ns())),
    };
    let sources = sources.iter().enumerate().map(follow).collect::<io::Result<Vec<_>>>()?;
    let own = stop.clone();
    std::thread::Builder::new()
        .name("weir-discovery".to_owned())
        .spawn(move || Thread { stop: own, clock, watch: Watch::new(), sources, deliver }.run())?;
    Ok(Discovery { stop })
}

struct Thread<F> {
    stop: Arc<OwnedFd>,
    clock: Clock,
    watch: Watch,
    sources: Vec<FileSource>,
    deliver: F,
}

impl<F: FnMut(Update)> Thread<F> {
    fn run(mut self) {
        while !self.wait() {
            let now_ns = self.clock.now_ns();
            for source in self.watch.take_changes() {
                self.sources[source].note_change(now_ns);
            }
            for (number, source) in self.sources.iter_mut().enumerate() {
                if let Some(result) = source.advance(&mut self.watch, &self.clock) {
                    (self.deliver)(Update { source: number, result });
                }
            }
        }
    }

    /// Waits until there is something to do. Returns whether that is to end.
    fn wait(&self) -> bool {
        let next_ns = self.sources.iter().map(FileSource::next_ns).min();
        let pause = next_ns.map(|next_ns| {
            let ns = next_ns.saturating_sub(self.clock.now_ns());
            Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
        });
        let mut fds = vec![PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN)];
        fds.extend(self.watch.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        // A signal ends the wait too early, which does no harm.
        let _ = poll(&mut fds, pause.as_ref());
        !fds[0].revents().is_empty()
    }
}
