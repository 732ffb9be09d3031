//! Streams that were reset lately: frames on them may be on their way (RFC 9113 §5.1).

use super::state::State;

/// How long frames may be on their way.
const MEMORY_NS: u64 = 2_000_000_000;

/// Streams that are remembered at most.
const MOST: usize = 256;

/// The reset streams of a connection, oldest first. Without any it holds no memory.
#[derive(Debug, Default)]
pub(crate) struct ResetStreams {
    streams: Vec<Entry>,
    /// The highest that was forgotten. Of those below it is not known how they ended.
    forgotten: u32,
}

#[derive(Debug)]
struct Entry {
    id: u32,
    is_by_peer: bool,
    at_ns: u64,
}

impl ResetStreams {
    /// Remembers a stream that was reset.
    pub(crate) fn push(&mut self, id: u32, state: State, now_ns: u64) {
        if self.streams.len() >= MOST {
            self.drop_first(MOST / 2);
        }
        self.streams.push(Entry { id, is_by_peer: state == State::ResetThere, at_ns: now_ns });
    }

    fn drop_first(&mut self, count: usize) {
        let highest = self.streams.drain(..count).map(|entry| entry.id).max();
        self.forgotten = self.forgotten.max(highest.unwrap_or(0));
    }

    /// The state of a stream that is not there any more. One that may have been reset here is taken for one that the peer
    /// has reset: its frames are dropped, and answered by RST_STREAM, which may be said again after a round trip (RFC 9113
    /// §5.4.2), and do not end the connection (§5.1).
    pub(crate) fn state(&self, id: u32) -> State {
        match self.streams.iter().rev().find(|entry| entry.id == id) {
            Some(entry) if entry.is_by_peer => State::ResetThere,
            Some(_) => State::ResetHere,
            None if id <= self.forgotten => State::ResetThere,
            None => State::Closed,
        }
    }

    /// Forgets those whose frames must have arrived.
    pub(crate) fn forget(&mut self, now_ns: u64) {
        let old = self.streams.partition_point(|entry| entry.at_ns.saturating_add(MEMORY_NS) <= now_ns);
        if old == self.streams.len() {
            self.drop_first(old);
            self.streams = Vec::new();
        } else if old > MOST / 4 {
            self.drop_first(old);
        }
    }

    /// When [`ResetStreams::forget`] frees its memory.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        self.streams.last().map(|entry| entry.at_ns.saturating_add(MEMORY_NS))
    }

    /// Bytes on the heap.
    pub(crate) fn footprint(&self) -> usize {
        self.streams.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_are_remembered_for_a_while() {
        let mut ended = ResetStreams::default();
        ended.push(1, State::ResetHere, 5);
        ended.push(3, State::ResetThere, 6);
        let states = [1, 3, 5].map(|id| ended.state(id));
        assert_eq!(states, [State::ResetHere, State::ResetThere, State::Closed]);
        assert_eq!(ended.deadline_ns(), Some(6 + MEMORY_NS));
        ended.forget(5 + MEMORY_NS);
        assert_eq!(ended.state(3), State::ResetThere);
        ended.forget(6 + MEMORY_NS);
        assert_eq!((ended.footprint(), ended.deadline_ns()), (0, None));
        assert_eq!(
            [1, 3, 5].map(|id| ended.state(id)),
            [State::ResetThere, State::ResetThere, State::Closed]
        );
        for id in 0..10_000 {
            ended.push(id, State::ResetHere, 0);
        }
        assert!(ended.streams.len() <= MOST && ended.state(9_999) == State::ResetHere);
    }
}
