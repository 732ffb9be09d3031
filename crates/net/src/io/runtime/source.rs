//! A descriptor that the runtime watches: what it is ready for, and who waits for that.

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
/// The end of the stream or an error is there to be read, whatever was read before it.
const CLOSED: u8 = 4;
/// The system tells of room to write as well.
const ASKS_TO_WRITE: u8 = 8;
/// The system is not to tell of it just now.
const QUIET: u8 = 16;

/// Who waits for a descriptor.
#[derive(Default)]
pub(super) enum Waits {
    #[default]
    Nobody,
    /// A task of this thread.
    Task(Rc<Task>),
    /// Whoever is behind this waker.
    Other(Waker),
}

/// What a descriptor is ready for.
pub(super) struct Readiness {
    state: Cell<u8>,
    reader: Cell<Waits>,
    writer: Cell<Waits>,
}

impl Readiness {
    /// The system has told of it.
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
    fn wake_all(&self, waits: &Cell<Waits>) {
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
    /// A connection: told once of what comes, and taken for writable until it is not.
    Connection,
    /// A connection that is being made: it is writable when it is there.
    Connecting,
    /// Told for as long as there is something to read, and to one of those that share it.
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

/// A descriptor's place among those that are watched. Closing the descriptor ends the watch where no other one stands for
/// the same socket; else [`Source::forget`] does.
pub struct Source {
    rt: Runtime,
    key: usize,
    readiness: Rc<Readiness>,
}

impl Source {
    /// Watches a connection, a pipe or a timer.
    ///
    /// # Errors
    /// When the system cannot watch it, or no more.
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

    /// Whether something may be read; else the task is woken then.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.readiness.has(READ) {
            return Poll::Ready(());
        }
        self.readiness.reader.set(self.rt.waits(cx));
        Poll::Pending
    }

    /// Whether something may be written; else the task is woken then.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.readiness.has(WRITE) {
            return Poll::Ready(());
        }
        self.readiness.writer.set(self.rt.waits(cx));
        Poll::Pending
    }

    /// All that had come was read. An end of stream that was told of is still to be read.
    pub fn mark_drained(&self) {
        if !self.readiness.has(CLOSED) {
            self.readiness.clear(READ);
        }
    }

    /// A read was refused: there is nothing, whatever was told.
    pub(super) fn clear_readable(&self) {
        self.readiness.clear(READ | CLOSED);
    }

    /// A write was refused: from now on the system tells of room.
    pub(super) fn await_writable(&self, fd: impl AsFd) -> io::Result<()> {
        self.readiness.clear(WRITE);
        if !self.readiness.has(ASKS_TO_WRITE) {
            // Should there be room again by now, that is told at once.
            epoll::modify(&self.rt.0.epoll, fd, self.data(), Watch::Connecting.flags())?;
            self.readiness.set(ASKS_TO_WRITE);
        }
        Ok(())
    }

    /// Whether the task that runs may still read and write in its turn.
    pub(super) fn has_budget(&self) -> bool {
        self.rt.has_budget()
    }

    /// One read or write of the task that runs; `false`: it is others' turn.
    pub(super) fn spend(&self, cx: &Context<'_>) -> bool {
        self.rt.spend(cx)
    }

    /// So many bytes were read or written by the task that runs.
    pub(super) fn spent(&self, bytes: usize) {
        self.rt.spent(bytes);
    }

    /// The system is not to tell of a listener for a while.
    pub(super) fn quiet(&self, fd: impl AsFd) -> io::Result<()> {
        // What is watched exclusively cannot be changed.
        if !self.readiness.has(QUIET) {
            epoll::delete(&self.rt.0.epoll, fd)?;
            self.readiness.set(QUIET);
        }
        Ok(())
    }

    /// It is to tell again.
    pub(super) fn listen(&self, fd: impl AsFd) -> io::Result<()> {
        if self.readiness.has(QUIET) {
            epoll::add(&self.rt.0.epoll, fd, self.data(), Watch::Listener.flags())?;
            self.readiness.clear(QUIET);
        }
        Ok(())
    }

    /// Ends the watch of a descriptor that others stand for as well.
    pub(super) fn forget(&self, fd: impl AsFd) {
        // It fails for what is not watched.
        let _ = epoll::delete(&self.rt.0.epoll, fd);
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // Events of this turn may still name it: then nobody is told, or somebody looks once in vain.
        self.rt.0.sources.borrow_mut().try_remove(self.key);
    }
}
