//! Files of any content that are followed by the rules of lists: the thread that looks at all of them.
//!
//! Unlike lists they share one thread, which reads them too: a network folder that does not answer holds up all of
//! them.

use crate::clock::Clock;
use crate::fault::Unwatched;
use crate::file::{PlainFile, Watch, wait_for_change};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The news of followed files.
#[derive(Clone, Debug)]
pub enum FileNews {
    /// The contents of these, by their index, are others than before: their bytes differ, or they can be read now,
    /// or cannot any more.
    Changed(Vec<usize>),
    /// Changes are seen late.
    Unwatched(Unwatched),
}

/// Files that are followed, until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends this"]
pub struct FollowedFiles {
    end: Arc<End>,
}

impl Drop for FollowedFiles {
    /// Ends the thread, but does not wait for it: a network folder may hold it up. News that are on their way may
    /// still come.
    fn drop(&mut self) {
        self.end.is_due.store(true, Ordering::Release);
        let _ = rustix::io::write(&self.end.bell, &1u64.to_ne_bytes());
    }
}

/// Follows these files on a thread of its own, which calls `deliver` with the news. At first all of them have
/// changed. A relative path begins at the folder of the process.
///
/// # Errors
/// When there is no descriptor or no thread, or no current folder for a relative path.
pub fn follow_files<P: AsRef<Path>>(
    paths: &[P],
    deliver: impl FnMut(FileNews) + Send + 'static,
) -> io::Result<FollowedFiles> {
    let clock = Clock::start();
    let mut files = Vec::with_capacity(paths.len());
    for (number, path) in paths.iter().enumerate() {
        files.push(PlainFile::new(number, &std::path::absolute(path)?, clock.now_ns()));
    }
    let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
    let end = Arc::new(End { is_due: AtomicBool::new(false), bell });
    let thread = Thread { clock, files, watch: Watch::new(), end: end.clone(), deliver };
    std::thread::Builder::new().name("weir-files".to_owned()).spawn(move || thread.run())?;
    Ok(FollowedFiles { end })
}

/// How the thread ends.
#[derive(Debug)]
struct End {
    is_due: AtomicBool,
    /// What the thread waits for.
    bell: OwnedFd,
}

struct Thread<F> {
    clock: Clock,
    /// By their numbers.
    files: Vec<PlainFile>,
    watch: Watch,
    end: Arc<End>,
    deliver: F,
}

impl<F: FnMut(FileNews)> Thread<F> {
    fn run(mut self) {
        while !self.end.is_due.load(Ordering::Acquire) {
            let now_ns = self.clock.now_ns();
            for number in self.watch.take_changes() {
                if let Some(file) = self.files.get_mut(number) {
                    file.note_change(now_ns);
                }
            }
            let mut changed = Vec::new();
            for (number, file) in self.files.iter_mut().enumerate() {
                if file.look(self.clock, &self.watch) {
                    changed.push(number);
                }
            }
            if !changed.is_empty() {
                (self.deliver)(FileNews::Changed(changed));
            }
            for unwatched in self.watch.take_refusals() {
                (self.deliver)(FileNews::Unwatched(unwatched));
            }
            let next_ns = self.files.iter().map(PlainFile::next_ns).min();
            let pause_ns = next_ns.map(|next_ns| next_ns.saturating_sub(self.clock.now_ns()));
            wait_for_change(&self.watch, &self.end.bell, pause_ns);
        }
    }
}
