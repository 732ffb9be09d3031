//! The streams of a connection by their number. Without streams it holds no memory.

use super::record::Stream;

/// Where a stream lies. It stays there until it is removed.
pub(crate) type Slot = u32;

/// Streams by number.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Sorted by number; new streams have higher ones, so that they come last.
    index: Vec<(u32, Slot)>,
    slots: Vec<Option<Stream>>,
    free: Vec<Slot>,
}

impl Streams {
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    pub(crate) fn find(&self, id: u32) -> Option<Slot> {
        match self.index.last() {
            Some(last) if last.0 == id => Some(last.1),
            _ => self.index.binary_search_by_key(&id, |entry| entry.0).ok().map(|at| self.index[at].1),
        }
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Stream> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut Stream> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    pub(crate) fn stream(&self, id: u32) -> Option<&Stream> {
        self.get(self.find(id)?)
    }

    /// Adds a stream, whose number is above all others.
    pub(crate) fn insert(&mut self, stream: Stream) -> Slot {
        debug_assert!(self.index.last().is_none_or(|last| last.0 < stream.id));
        let id = stream.id;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(stream);
                slot
            }
            None => {
                self.slots.push(Some(stream));
                self.slots.len() as Slot - 1
            }
        };
        self.index.push((id, slot));
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Stream> {
        let stream = self.slots.get_mut(slot as usize)?.take()?;
        if let Ok(at) = self.index.binary_search_by_key(&stream.id, |entry| entry.0) {
            self.index.remove(at);
        }
        if self.index.is_empty() {
            *self = Streams::default();
        } else {
            self.free.push(slot);
        }
        Some(stream)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Stream> {
        self.index.iter().filter_map(|entry| self.get(entry.1))
    }

    /// The slots in the order of their streams' numbers.
    pub(crate) fn slot_at(&self, place: usize) -> Option<Slot> {
        self.index.get(place).map(|entry| entry.1)
    }

    /// Bytes on the heap.
    pub(crate) fn footprint(&self) -> usize {
        self.index.capacity() * size_of::<(u32, Slot)>()
            + self.slots.capacity() * size_of::<Option<Stream>>()
            + self.free.capacity() * size_of::<Slot>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::State;

    #[test]
    fn slots_are_used_again_and_memory_is_given_back() {
        let stream = |id| Stream::new(id, State::Open, 1, 1, 0);
        let mut streams = Streams::default();
        let slots: Vec<Slot> = [1, 3, 5].map(|id| streams.insert(stream(id))).to_vec();
        assert_eq!(streams.remove(slots[1]).map(|s| s.id), Some(3));
        assert_eq!((streams.find(3), streams.len()), (None, 2));
        assert_eq!(streams.insert(stream(7)), slots[1]);
        let ids: Vec<u32> = streams.iter().map(|s| s.id).collect();
        assert_eq!(ids, [1, 5, 7]);
        assert!(streams.footprint() > 0);
        for id in ids {
            let slot = streams.find(id).expect("present");
            streams.remove(slot);
        }
        assert!(streams.is_empty() && streams.footprint() == 0 && streams.remove(slots[0]).is_none());
    }
}
