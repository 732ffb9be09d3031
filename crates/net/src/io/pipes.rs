//! Pipes through which bytes go from one socket to another without a copy in this process: splice(2). Bodies of many
//! megabytes cost less than half of what reads and writes cost (`docs/spec/background.md#read-size`).

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

/// The size that a pipe asks for, bytes: one place for each 4 KiB, and a place holds what a network card has put into
/// one page, which may be a single segment.
const SIZE: usize = 256 * 1024;

/// Empty pipes that are kept.
const KEPT: usize = 8;

/// Pipes that may be in use: each has two descriptors. Beyond that bodies are copied.
const MOST: usize = 64;

/// The pipes of a loop.
#[derive(Default)]
pub struct Pipes {
    free: RefCell<Vec<Ends>>,
    lent: Cell<usize>,
    /// Whether the system has refused to splice sockets.
    refused: Cell<bool>,
}

/// The two ends of a pipe.
struct Ends {
    read: OwnedFd,
    write: OwnedFd,
}

/// A pipe and the number of bytes in it. It is returned when it is dropped empty, and closed otherwise.
pub struct Pipe {
    ends: Option<Ends>,
    held: usize,
    home: Rc<Pipes>,
}

impl Pipes {
    /// An empty pipe; `None`: bytes are to be copied. `is_reserved`: whether a descriptor must be left to others.
    pub fn take(self: &Rc<Self>, is_reserved: impl Fn(&OwnedFd) -> bool) -> Option<Pipe> {
        if self.refused.get() || self.lent.get() >= MOST {
            return None;
        }
        let free = self.free.borrow_mut().pop();
        let ends = match free {
            Some(ends) => ends,
            None => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
                if is_reserved(&read) || is_reserved(&write) {
                    return None;
                }
                // A user without privileges may have many pipes or large ones; a small one does as well, more slowly.
                let _ = fcntl_setpipe_size(&write, SIZE);
                Ends { read, write }
            }
        };
        self.lent.set(self.lent.get() + 1);
        Some(Pipe { ends: Some(ends), held: 0, home: self.clone() })
    }
}

impl Pipe {
    /// The bytes in it.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Moves at most `most` bytes from a socket into this pipe, which must be empty: otherwise a full pipe looks like
    /// an empty socket. 0 is the end of the stream.
    ///
    /// # Errors
    /// Those of a read; `WouldBlock`: nothing has arrived.
    pub(super) fn fill(&mut self, from: impl AsFd, most: usize) -> io::Result<usize> {
        debug_assert_eq!(self.held, 0, "a pipe is filled when it is empty");
        let Some(ends) = &self.ends else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let moved = splice(from, None, &ends.write, None, most, flags).inspect_err(|e| {
            let unable = [rustix::io::Errno::INVAL, rustix::io::Errno::NOSYS, rustix::io::Errno::PERM];
            if unable.contains(e) {
                self.home.refused.set(true);
            }
        })?;
        self.held += moved;
        Ok(moved)
    }

    /// Moves what is in it to a socket, as much as that takes.
    ///
    /// # Errors
    /// Those of a write; `WouldBlock`: the socket takes nothing.
    pub(super) fn drain(&mut self, to: impl AsFd) -> io::Result<usize> {
        let Some(ends) = &self.ends else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let moved = splice(&ends.read, None, to, None, self.held, flags)?;
        self.held = self.held.saturating_sub(moved);
        Ok(moved)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.home.lent.set(self.home.lent.get() - 1);
        let mut free = self.home.free.borrow_mut();
        if self.held == 0 && free.len() < KEPT {
            free.extend(self.ends.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("it does not block");
        theirs.set_nonblocking(true).expect("it does not block");
        (ours, theirs)
    }

    /// A socket that takes a part at a time gets all of it, in order, and the pipe is used again.
    #[test]
    fn bytes_go_through_in_their_order() {
        let pipes: Rc<Pipes> = Rc::default();
        let ((mut origin, from), (to, mut client)) = (pair(), pair());
        let sent: Vec<u8> = (0..2_000_000u32).map(|n| (n % 251) as u8).collect();
        let (mut given, mut got, mut calls) = (0, Vec::new(), 0);
        let mut held: Option<Pipe> = None;
        while got.len() < sent.len() {
            given += origin.write(&sent[given..]).unwrap_or(0);
            let mut pipe = held.take().or_else(|| pipes.take(|_| false)).expect("a pipe");
            if pipe.held() == 0 {
                calls += usize::from(pipe.fill(&from, usize::MAX >> 1).is_ok());
            }
            match pipe.drain(&to) {
                Ok(_) => calls += 1,
                Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock),
            }
            held = Some(pipe).filter(|pipe| pipe.held() > 0);
            let mut some = [0; 30_000];
            let n = client.read(&mut some).unwrap_or(0);
            got.extend_from_slice(&some[..n]);
        }
        assert!(got == sent);
        assert!(calls < sent.len() / 4096, "{calls} calls for {} bytes", sent.len());
        assert_eq!((pipes.free.borrow().len(), pipes.lent.get()), (1, 0));
    }

    #[test]
    fn a_pipe_with_bytes_in_it_is_closed_and_few_are_lent() {
        let pipes: Rc<Pipes> = Rc::default();
        let (mut origin, from) = pair();
        origin.write_all(b"bytes").expect("it is written");
        let mut pipe = pipes.take(|_| false).expect("a pipe");
        assert_eq!(pipe.fill(&from, 1000).expect("bytes"), 5);
        drop(pipe);
        assert!(pipes.free.borrow().is_empty());
        let lent: Vec<Pipe> = std::iter::from_fn(|| pipes.take(|_| false)).collect();
        assert_eq!(lent.len(), MOST);
        drop(lent);
        assert_eq!(pipes.free.borrow().len(), KEPT);
        assert!(pipes.take(|_| true).is_some(), "one that is open already is no new descriptor");
        pipes.free.borrow_mut().clear();
        assert!(pipes.take(|_| true).is_none());
    }

    /// A file of a kind that cannot be spliced: bytes are to be read, now and later.
    #[test]
    fn what_the_system_refuses_is_not_tried_again() {
        let pipes: Rc<Pipes> = Rc::default();
        let mut pipe = pipes.take(|_| false).expect("a pipe");
        let events = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).expect("a set");
        assert!(pipe.fill(&events, 1000).is_err());
        drop(pipe);
        assert!(pipes.take(|_| false).is_none());
    }
}
