//! The streams of a connection. Without streams it holds no memory.

use super::slot::Slot;
use slab::Slab;

/// Streams, by their number and by their place.
#[derive(Default)]
pub(super) struct Slots {
    /// Numbers and places; sorted, since new streams have higher numbers.
    index: Vec<(u32, usize)>,
    slots: Slab<Slot>,
    /// Whether bytes were left with a stream when the socket was last read.
    pub may_hold: bool,
}

impl Slots {
    /// Adds a stream, whose number is above all others; returns its place.
    pub fn insert(&mut self, id: u32) -> usize {
        let place = self.slots.insert(Slot { id, users: 1, ..Slot::default() });
        self.index.push((id, place));
        place
    }

    /// The stream at a place.
    pub fn get(&self, place: usize) -> Option<&Slot> {
        self.slots.get(place)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut Slot> {
        self.slots.get_mut(place)
    }

    /// The place of the stream of this number.
    pub fn place(&self, id: u32) -> Option<usize> {
        let at = match self.index.last() {
            Some(last) if last.0 == id => self.index.len() - 1,
            _ => self.index.binary_search_by_key(&id, |entry| entry.0).ok()?,
        };
        Some(self.index[at].1)
    }

    /// The stream of this number.
    pub fn find(&mut self, id: u32) -> Option<&mut Slot> {
        let place = self.place(id)?;
        self.slots.get_mut(place)
    }

    /// Removes the stream at a place.
    pub fn remove(&mut self, place: usize) -> Option<Slot> {
        let slot = self.slots.try_remove(place)?;
        if let Ok(at) = self.index.binary_search_by_key(&slot.id, |entry| entry.0) {
            self.index.remove(at);
        }
        if self.index.is_empty() {
            *self = Slots::default();
        }
        Some(slot)
    }

    /// All of them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.slots.iter_mut().map(|(_, slot)| slot)
    }
}
