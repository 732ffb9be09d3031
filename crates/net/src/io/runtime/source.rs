//! A descriptor that the runtime watches: what it is ready for, and which tasks wait for that.

use crate::io::runtime::Runtime;
use crate::io::runtime::task::Task;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Something can be read.
const READ: u8 = 1;
/// Something can be written.
const WRITE: u8 = 2;
/// The end of the stream or an error can be read, even after other reads.
const CLOSED: u8 = 4;
/// The system reports room to write as well.
const ASKS_TO_WRITE: u8 = 8;
/// The system does not report it at present.
const QUIET: u8 = 16;

/// The task that waits for a descriptor.
#[derive(Default)]
pub(super) enum Waits {
    #[default]
    Nobody,
    /// A task of this thread.
    Task(Rc<Task>),
    /// The task behind this waker.
    Other(Waker),
}

/// The readiness of a descriptor.
pub(super) struct Readiness {
    state: Cell<u8>,
    reader: Cell<Waits>,
    writer: Cell<Waits>,
}

impl Readiness {
    /// Applies an event and wakes the tasks that wait for it.
    pub fn on_event(&self, rt: &Runtime, flags: EventFlags) {
        let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        let mut state = self.state.get();
        if broken || flags.intersects(EventFlags::RDHUP) {
            state |= READ | CLOSED;
        }
        if flags.intersects(EventFlags::IN) {
            state |= READ;
        }
        if broken || flags.intersects(EventFlags::OUT) {
            state |= WRITE;
        }
        self.state.set(state);
        if state & READ != 0 {
            rt.wake_all(&self.reader);
        }
        if state & WRITE != 0 {
            rt.wake_all(&self.writer);
        }
    }

    fn has(&self, bits: u8) -> bool {
        self.state.get() & bits != 0
    }

    fn set(&self, bits: u8) {
        self.state.set(self.state.get() | bits);
    }

    fn clear(&self, bits: u8) {
        self.state.set(self.state.get() & !bits);
    }
}

impl Runtime {
    pub(super) fn wake_all(&self, waits: &Cell<Waits>) {
        match waits.take() {
            Waits::Nobody => {}
            Waits::Task(task) => self.wake(&task),
            Waits::Other(waker) => waker.wake(),
        }
    }
}

/// How a descriptor is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    /// A connection: reported once for new input, and assumed writable until it is not.
    Connection,
    /// A connection that is being made: it is writable when it is established.
    Connecting,
    /// A listener: reported while there is something to read, to one of the loops that share it.
    Listener,
}

impl Watch {
    fn flags(self) -> EventFlags {
        let reads = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        match self {
            Watch::Connection => reads,
            Watch::Connecting => reads | EventFlags::OUT,
            Watch::Listener => EventFlags::IN | EventFlags::EXCLUSIVE,
        }
    }

    fn state(self) -> u8 {
        match self {
            Watch::Connection => WRITE,
            Watch::Connecting => ASKS_TO_WRITE,
            Watch::Listener => 0,
        }
    }
}

/// A watched descriptor. Closing it ends the watch unless another descriptor refers to the same socket; then
/// [`Source::forget`] does.
pub struct Source {
    rt: Runtime,
    key: usize,
    readiness: Rc<Readiness>,
}

impl Source {
    /// Watches a connection, a pipe or a timer.
    ///
    /// # Errors
    /// The system cannot watch it, or no more descriptors.
    pub fn new(rt: &Runtime, fd: impl AsFd) -> io::Result<Source> {
        Source::watch(rt, fd, Watch::Connection)
    }

    pub(super) fn watch(rt: &Runtime, fd: impl AsFd, watch: Watch) -> io::Result<Source> {
        let readiness = Rc::new(Readiness {
            state: Cell::new(watch.state()),
            reader: Cell::default(),
            writer: Cell::default(),
        });
        let key = rt.0.sources.borrow_mut().insert(readiness.clone());
        let source = Source { rt: rt.clone(), key, readiness };
        epoll::add(&rt.0.epoll, fd, source.data(), watch.flags())?;
        Ok(source)
    }

    fn data(&self) -> EventData {
        EventData::new_u64(self.key as u64)
    }

    /// Ready when something may be read; otherwise wakes the task then.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.readiness.has(READ) {
            return Poll::Ready(());
        }
        self.readiness.reader.set(self.rt.waits(cx));
        Poll::Pending
    }

    /// Ready when something may be written; otherwise wakes the task then.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.readiness.has(WRITE) {
            return Poll::Ready(());
        }
        self.readiness.writer.set(self.rt.waits(cx));
        Poll::Pending
    }

    /// Notes that everything was read. A reported end of stream can still be read.
    pub fn mark_drained(&self) {
        if !self.readiness.has(CLOSED) {
            self.readiness.clear(READ);
        }
    }

    /// Notes that a read was refused: there is nothing to read.
    pub(super) fn clear_readable(&self) {
        self.readiness.clear(READ | CLOSED);
    }

    /// Notes that a write was refused: the system reports room from now on.
    pub(super) fn await_writable(&self, fd: impl AsFd) -> io::Result<()> {
        self.readiness.clear(WRITE);
        if !self.readiness.has(ASKS_TO_WRITE) {
            // If there is room again by now, that is reported at once.
            epoll::modify(&self.rt.0.epoll, fd, self.data(), Watch::Connecting.flags())?;
            self.readiness.set(ASKS_TO_WRITE);
        }
        Ok(())
    }

    /// Whether the task that runs may still read and write in its turn.
    pub(super) fn has_budget(&self) -> bool {
        self.rt.has_budget()
    }

    /// Counts one read or write of the running task; `false`: its budget is used up.
    pub(super) fn spend(&self, cx: &Context<'_>) -> bool {
        self.rt.spend(cx)
    }

    /// Counts bytes that the running task has read or written.
    pub(super) fn spent(&self, bytes: usize) {
        self.rt.spent(bytes);
    }

    /// Stops reports of a listener for a while.
    pub(super) fn quiet(&self, fd: impl AsFd) -> io::Result<()> {
        // An exclusive watch cannot be changed.
        if !self.readiness.has(QUIET) {
            epoll::delete(&self.rt.0.epoll, fd)?;
            self.readiness.set(QUIET);
        }
        Ok(())
    }

    /// Resumes reports of a listener.
    pub(super) fn listen(&self, fd: impl AsFd) -> io::Result<()> {
        if self.readiness.has(QUIET) {
            epoll::add(&self.rt.0.epoll, fd, self.data(), Watch::Listener.flags())?;
            self.readiness.clear(QUIET);
        }
        Ok(())
    }

    /// Ends the watch of a socket that other descriptors refer to as well.
    pub(super) fn forget(&self, fd: impl AsFd) {
        // It fails if the descriptor is not watched.
        let _ = epoll::delete(&self.rt.0.epoll, fd);
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // Events of this turn may still name it: then they are ignored, or a task checks once in vain.
        self.rt.0.sources.borrow_mut().try_remove(self.key);
    }
}
