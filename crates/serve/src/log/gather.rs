//! Lines of the access log on their way out of a loop: they are gathered and handed to the writer many at a time, since waking
//! its thread for each costs more than half of what a request does.

use super::{Flags, Message, QUEUE};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

/// Bytes that are handed over at once, without waiting for the loop's tick.
const PIECE: usize = 16 * 1024;

/// What one loop has for one log. Dropped, it hands over what it has.
pub(super) struct Gathered {
    text: RefCell<String>,
    lines: Cell<usize>,
    to_writer: Sender<Message>,
    flags: Arc<Flags>,
}

impl Gathered {
    /// With nothing yet.
    pub fn new(to_writer: Sender<Message>, flags: Arc<Flags>) -> Rc<Gathered> {
        Rc::new(Gathered { text: RefCell::default(), lines: Cell::new(0), to_writer, flags })
    }

    /// Whether its lines go to the log with these flags.
    pub fn is_of(&self, flags: &Arc<Flags>) -> bool {
        Arc::ptr_eq(&self.flags, flags)
    }

    /// Adds the line that is written there.
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

    /// Hands over what there is. What finds no room in the queue is lost, and counted.
    pub fn hand_over(&self) {
        let lines = self.lines.replace(0);
        if lines == 0 {
            return;
        }
        // The next lines will be about as many.
        let text = self.text.replace_with(|text| String::with_capacity(text.len()));
        let waiting = self.flags.waiting.fetch_add(lines, Ordering::Relaxed);
        let has_room = waiting + lines <= QUEUE;
        if !has_room || self.to_writer.send(Message::Lines(text, lines)).is_err() {
            self.flags.waiting.fetch_sub(lines, Ordering::Relaxed);
            self.flags.dropped.fetch_add(lines as u64, Ordering::Relaxed);
        }
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.hand_over();
    }
}
