//! Idle connections to one origin, of one loop: the last one given back is the first one taken, so that few stay warm.

use crate::upstream::OriginConn;
use std::task::{Context, Poll, Waker};
use weir_topology::plan::fixed;

/// The pool.
#[derive(Default)]
pub(crate) struct Pool {
    idle: Vec<Idle>,
}

struct Idle {
    conn: Box<OriginConn>,
    since_ns: u64,
}

impl Pool {
    /// A connection that is still open, has said nothing unasked, and is not too old.
    pub fn take(&mut self, now_ns: u64, idle_timeout_ns: Option<u64>) -> Option<Box<OriginConn>> {
        while let Some(mut idle) = self.idle.pop() {
            if idle.is_good(now_ns, idle_timeout_ns) {
                return Some(idle.conn);
            }
        }
        None
    }

    /// Keeps a connection whose last exchange ended cleanly; that nothing of it is left over is asserted, always.
    pub fn put(&mut self, mut conn: Box<OriginConn>, now_ns: u64) {
        let nothing_left = conn.wire.input().is_empty() && conn.wire.unsent() == 0 && !conn.wire.has_ended();
        assert!(nothing_left, "a connection with bytes of an exchange goes back to its pool");
        if self.idle.len() < fixed::MAX_IDLE_CONNECTIONS {
            conn.wire.rest();
            conn.deadline.set(None);
            self.idle.push(Idle { conn, since_ns: now_ns });
        }
    }

    /// Closes those that are too old, or that the origin has closed.
    pub fn sweep(&mut self, now_ns: u64, idle_timeout_ns: Option<u64>) {
        self.idle.retain_mut(|idle| idle.is_good(now_ns, idle_timeout_ns));
    }

    /// Closes those that do not lead where they should.
    pub fn keep_only(&mut self, mut leads: impl FnMut(&OriginConn) -> bool) {
        self.idle.retain(|idle| leads(&idle.conn));
    }

    /// Closes the one that has been idle for longest.
    pub fn close_one(&mut self) {
        if !self.idle.is_empty() {
            self.idle.remove(0);
        }
    }

    /// Closes all.
    pub fn clear(&mut self) {
        self.idle.clear();
    }
}

impl OriginConn {
    /// Whether it is open and nothing has come unasked. Reading costs no system call where no event has come; where no event
    /// can have told yet, or this task may not read any more in its turn, the socket itself is asked.
    pub fn is_silent(&mut self) -> bool {
        if (self.is_doubtful || !self.wire.socket.has_budget()) && self.wire.socket.has_input() {
            return false;
        }
        matches!(self.wire.poll_fill(&mut Context::from_waker(Waker::noop())), Poll::Pending)
    }
}

impl Idle {
    fn is_good(&mut self, now_ns: u64, idle_timeout_ns: Option<u64>) -> bool {
        let fresh = idle_timeout_ns.is_none_or(|most| now_ns.saturating_sub(self.since_ns) < most);
        fresh && now_ns < self.conn.old_ns && self.conn.is_silent()
    }
}
