//! Gathers lines of the access log on a loop, and sends them to the writer many at a time, since waking its thread
//! for each costs more than half of a request.

use super::{Flags, Message, QUEUE};
use crate::sync::channel::Sender;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are sent at once, without waiting for the loop's tick. On a core shared with the loop, the writer's
/// turn costs two switches, 4 % of all with a quarter of this.
const PIECE: usize = 64 * 1024;

/// The most bytes in the queue: 2 KiB for each of its lines.
const QUEUE_BYTES: usize = 2048 * QUEUE;

/// The contents of the queue: its room is counted in lines, and in bytes, since a line may be long.
#[derive(Default)]
pub(super) struct Waiting {
    lines: AtomicUsize,
    bytes: AtomicUsize,
}

impl Waiting {
    /// Reserves room for lines, if there is any.
    fn enter(&self, bytes: usize, lines: usize) -> bool {
        let add = |counter: &AtomicUsize, n: usize, most: usize| {
            let more = |now: usize| Some(now + n).filter(|sum| *sum <= most);
            counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
        };
        if !add(&self.lines, lines, QUEUE) {
            return false;
        }
        let fits = add(&self.bytes, bytes, QUEUE_BYTES);
        if !fits {
            self.lines.fetch_sub(lines, Ordering::Relaxed);
        }
        fits
    }

    /// Releases their room.
    pub fn leave(&self, bytes: usize, lines: usize) {
        self.lines.fetch_sub(lines, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The lines of one loop for one log. They are sent when it is dropped.
pub(super) struct LineBuffer {
    text: RefCell<String>,
    lines: Cell<usize>,
    to_writer: Sender<Message>,
    flags: Arc<Flags>,
}

impl LineBuffer {
    /// Without lines.
    pub fn new(to_writer: Sender<Message>, flags: Arc<Flags>) -> Rc<LineBuffer> {
        Rc::new(LineBuffer { text: RefCell::default(), lines: Cell::new(0), to_writer, flags })
    }

    /// Whether its lines go to the log with these flags.
    pub fn is_of(&self, flags: &Arc<Flags>) -> bool {
        Arc::ptr_eq(&self.flags, flags)
    }

    /// Adds the line that `write` produces.
    pub fn add(&self, write: impl FnOnce(&mut String)) {
        let mut text = self.text.borrow_mut();
        write(&mut text);
        self.lines.set(self.lines.get() + 1);
        let is_full = text.len() >= PIECE;
        drop(text);
        if is_full {
            self.hand_over();
        }
    }

    /// Sends all lines. Lines without room in the queue are lost, and counted.
    pub fn hand_over(&self) {
        let lines = self.lines.replace(0);
        if lines == 0 {
            return;
        }
        // The next lines will be about as many.
        let text = self.text.replace_with(|text| String::with_capacity(text.len()));
        let has_room = self.flags.waiting.enter(text.len(), lines);
        if !has_room || self.to_writer.send(Message::Lines(text, lines)).is_err() {
            self.flags.dropped.fetch_add(lines as u64, Ordering::Relaxed);
        }
    }
}

impl Drop for LineBuffer {
    fn drop(&mut self) {
        self.hand_over();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_full_by_lines_or_by_bytes() {
        let waiting = Waiting::default();
        assert!(waiting.enter(10, QUEUE - 1));
        assert!(!waiting.enter(10, 2) && waiting.enter(10, 1) && !waiting.enter(10, 1));
        waiting.leave(20, QUEUE);
        assert!(!waiting.enter(QUEUE_BYTES + 1, 1) && waiting.enter(QUEUE_BYTES, 1) && !waiting.enter(1, 1));
        waiting.leave(QUEUE_BYTES, 1);
        assert!(waiting.enter(QUEUE_BYTES, QUEUE));
    }
}
