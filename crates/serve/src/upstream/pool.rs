//! Idle connections of one loop to one target: the last one given back is the first one taken, so that few stay warm.

use crate::exchange::OriginConn;
use weir_plan::fixed;

/// The pool.
#[derive(Default)]
pub(crate) struct Pool {
    idle: Vec<Idle>,
}

struct Idle {
    conn: OriginConn,
    since_ns: u64,
}

impl Pool {
    /// Takes a connection that is open, has no unexpected bytes, and is not too old.
    pub fn take(&mut self, now_ns: u64, idle_timeout_ns: Option<u64>) -> Option<OriginConn> {
        while let Some(mut idle) = self.idle.pop() {
            if idle.conn.is_usable(now_ns, idle.since_ns, idle_timeout_ns) {
                return Some(idle.conn);
            }
        }
        None
    }

    /// Keeps a connection whose last exchange ended cleanly.
    pub fn put(&mut self, mut conn: OriginConn, now_ns: u64) {
        conn.rest();
        if self.idle.len() < fixed::MAX_IDLE_CONNECTIONS {
            self.idle.push(Idle { conn, since_ns: now_ns });
        }
    }

    /// The number of connections.
    pub fn len(&self) -> usize {
        self.idle.len()
    }

    /// Removes those that are too old or were closed by the origin.
    pub fn sweep(&mut self, now_ns: u64, idle_timeout_ns: Option<u64>) -> Vec<OriginConn> {
        let is_over = |idle: &mut Idle| !idle.conn.is_usable(now_ns, idle.since_ns, idle_timeout_ns);
        self.idle.extract_if(.., is_over).map(|idle| idle.conn).collect()
    }

    /// Closes those that lead elsewhere.
    pub fn keep_only(&mut self, mut leads: impl FnMut(&OriginConn) -> bool) {
        self.idle.retain(|idle| leads(&idle.conn));
    }

    /// When the longest idle connection became idle, ns.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.idle.first().map(|idle| idle.since_ns)
    }

    /// Closes the longest idle connection; returns whether there was one.
    pub fn close_one(&mut self) -> bool {
        let any = !self.idle.is_empty();
        if any {
            self.idle.remove(0);
        }
        any
    }

    /// Removes all.
    pub fn take_all(&mut self) -> Vec<OriginConn> {
        std::mem::take(&mut self.idle).into_iter().map(|idle| idle.conn).collect()
    }
}
