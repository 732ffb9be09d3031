//! The thread that writes an access log: lines as they come, the file reopened on request, and a message on standard
//! error about lost lines.

use crate::log::out::Output;
use crate::log::{FINISH, Flags, Message};
use crate::sync::channel::Receiver;
use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// Messages that are processed before a request to reopen is checked.
const AT_ONCE: usize = 64;

/// The interval between two messages about lost lines.
const PAUSE: Duration = Duration::from_secs(1);

/// How often it checks for room.
const LOOK: Duration = Duration::from_millis(50);

/// The state of the writer.
pub(super) struct Writer<'a> {
    out: Output,
    /// How it was opened.
    to: String,
    flags: &'a Flags,
    /// Since when the process is about to end.
    end: Option<Instant>,
    lost: u64,
    /// Why the last lost line could not be written.
    why: Option<io::Error>,
    /// When that was last reported.
    said: Option<Instant>,
    /// Senders that wait until everything before is written.
    told: Vec<SyncSender<()>>,
}

impl<'a> Writer<'a> {
    /// To where this is open.
    pub fn new(out: Output, to: String, flags: &'a Flags) -> Writer<'a> {
        Writer { out, to, flags, end: None, lost: 0, why: None, said: None, told: Vec::new() }
    }

    /// Writes until no loop is left.
    pub fn run(mut self, queue: &Receiver<Message>) {
        loop {
            // Lost lines are reported even if no other message comes.
            if self.out.is_blocked() {
                self.wait_for_room(queue);
                continue;
            }
            let wait = if self.lost > 0 { PAUSE } else { Duration::MAX };
            let first = match queue.recv_timeout(wait) {
                Ok(entry) => entry,
                Err(RecvTimeoutError::Timeout) => Message::Look,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if self.flags.reopen.swap(false, Ordering::Relaxed) {
                self.open_anew();
            }
            self.write(first, queue);
        }
        self.finish();
    }

    /// The output is not read: the queue fills meanwhile, and lines without room are counted. At the end of the
    /// process it waits for a while, then the remaining lines are lost.
    fn wait_for_room(&mut self, queue: &Receiver<Message>) {
        self.out.wait(LOOK);
        if self.flags.reopen.swap(false, Ordering::Relaxed) {
            self.open_anew();
        }
        self.out.flush();
        self.count();
        if self.said.is_none_or(|at| at.elapsed() >= PAUSE) {
            self.why.get_or_insert_with(|| io::Error::other("it is not read"));
            self.say_lost();
        }
        if self.flags.ending.load(Ordering::Relaxed)
            && self.end.get_or_insert_with(Instant::now).elapsed() >= FINISH
        {
            self.why = Some(io::Error::other("it is not read"));
            for message in queue.try_iter() {
                match message {
                    Message::Lines(text, lines) => {
                        let lines = self.took(&text, lines);
                        self.lose(lines);
                    }
                    Message::Written(tell) => self.told.push(tell),
                    Message::Look => {}
                }
            }
            self.finish();
        } else {
            self.tell();
        }
    }

    /// Signals waiting senders that everything is written, if nothing waits for room.
    fn tell(&mut self) {
        if !self.told.is_empty() && !self.out.is_blocked() {
            self.finish();
        }
    }

    /// Releases the room of these lines in the queue.
    fn took(&self, text: &str, lines: usize) -> u64 {
        self.flags.waiting.leave(text.len(), lines);
        lines as u64
    }

    fn open_anew(&mut self) {
        match Output::open(&self.to) {
            Ok(anew) => {
                // The rest of a line does not belong in another file.
                self.out.give_up();
                self.count();
                self.out = anew;
            }
            Err(e) => {
                let (to, remedy) = (&self.to, "check its folder and permissions, then send SIGUSR1 again");
                say(&format!(
                    "cannot reopen the access log {to}: {e}; it continues in the old file; {remedy}"
                ));
            }
        }
    }

    /// Writes waiting lines, as long as there is room.
    fn write(&mut self, first: Message, queue: &Receiver<Message>) {
        let mut next = Some(first);
        let mut left = AT_ONCE;
        while let Some(message) = next {
            match message {
                Message::Lines(text, lines) => {
                    self.out.put(&text);
                    self.took(&text, lines);
                }
                Message::Written(tell) => self.told.push(tell),
                Message::Look => {}
            }
            left -= 1;
            next = if left > 0 && !self.out.is_blocked() { queue.try_recv().ok() } else { None };
        }
        self.out.flush();
        self.count();
        self.tell();
        if self.said.is_none_or(|at| at.elapsed() >= PAUSE) {
            self.say_lost();
        }
    }

    /// Everything is written, and no lost line is unreported.
    fn finish(&mut self) {
        self.out.give_up();
        self.count();
        self.say_lost();
        for tell in self.told.drain(..) {
            let _ = tell.send(());
        }
    }

    fn lose(&mut self, lines: u64) {
        self.lost += lines;
        self.flags.lost.fetch_add(lines, Ordering::Relaxed);
    }

    fn count(&mut self) {
        let (lost, why) = self.out.lost();
        let dropped = self.flags.dropped.swap(0, Ordering::Relaxed);
        self.lose(lost + dropped);
        self.why = why.or(self.why.take());
    }

    fn say_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            self.said = Some(Instant::now());
            let too_fast = || "they came faster than they could be written".to_owned();
            let why = self.why.take().map_or_else(too_fast, |e| e.to_string());
            say(&format!("the access log {} lost {lost} lines: {why}", self.to));
        }
    }
}

fn say(text: &str) {
    // Without a reader, the message is lost.
    let _ = writeln!(io::stderr(), "weir: {text}");
}
