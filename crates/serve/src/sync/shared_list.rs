//! A list in chunks, of a thread: one that differs little from another shares the chunks in which nothing has changed, so that
//! one member of ten thousand costs no look at the others.

use crate::sync::discards::{Discards, Slice};
use std::ops::Index;
use std::rc::Rc;

/// Items per chunk. With ten thousand items, a change of one looks at 157 chunks and makes 64 items anew.
pub(crate) const CHUNK: usize = 64;

/// The list.
pub(crate) struct SharedList<T> {
    chunks: Vec<Rc<Vec<T>>>,
    /// The number of items in them: to look at each would cost more than the rest of a change.
    sealed: usize,
    /// The last items, which are no whole chunk yet.
    open: Vec<T>,
}

impl<T> Default for SharedList<T> {
    fn default() -> SharedList<T> {
        SharedList { chunks: Vec::new(), sealed: 0, open: Vec::new() }
    }
}

impl<T> SharedList<T> {
    /// An item; `None`: the list is shorter.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    /// All items, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// The number of items, those that are added included.
    pub fn len(&self) -> usize {
        self.sealed + self.open.len()
    }

    /// The number of the chunk that is to be added next; `None`: one is under way.
    pub fn next_chunk(&self) -> Option<usize> {
        self.open.is_empty().then_some(self.chunks.len())
    }

    /// The items of a chunk.
    pub fn chunk(&self, chunk: usize) -> &[T] {
        self.chunks.get(chunk).map_or(&[], |chunk| chunk)
    }

    /// Adds the chunk of another list.
    pub fn share(&mut self, other: &SharedList<T>, chunk: usize) {
        let chunk = other.chunks[chunk].clone();
        self.sealed += chunk.len();
        self.chunks.push(chunk);
    }

    /// Adds an item.
    pub fn push(&mut self, item: T) {
        self.open.push(item);
        if self.open.len() == CHUNK {
            self.seal();
        }
    }

    /// Ends the last chunk: only then its items can be read.
    pub fn seal(&mut self) {
        if !self.open.is_empty() {
            self.sealed += self.open.len();
            self.chunks.push(Rc::new(std::mem::take(&mut self.open)));
        }
    }
}

impl<T: 'static> SharedList<T> {
    /// Frees the items later, as far as no other list has them.
    pub fn discard(self, discards: &Discards) {
        let left = self.chunks.into_iter().filter_map(|chunk| Rc::try_unwrap(chunk).ok());
        left.chain([self.open]).for_each(|items| discards.put(items, Slice::Memory));
    }
}

impl<T> Index<usize> for SharedList<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.chunks[at / CHUNK][at % CHUNK]
    }
}

impl<T> FromIterator<T> for SharedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> SharedList<T> {
        let mut list = SharedList::default();
        items.into_iter().for_each(|item| list.push(item));
        list.seal();
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_by_number() {
        for count in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 4 * CHUNK - 9] {
            let list: SharedList<usize> = (0..count).collect();
            assert_eq!(list.len(), count);
            assert!((0..count).all(|at| list.get(at) == Some(&at)) && list.get(count).is_none());
            assert_eq!(list.iter().count(), count);
        }
    }

    #[test]
    fn shared_chunks_outlive_their_first_list() {
        let discards = Discards::default();
        let before: SharedList<u32> = (0..2 * CHUNK as u32 + 9).collect();
        let mut now = SharedList::default();
        assert_eq!(now.next_chunk(), Some(0));
        now.share(&before, 0);
        now.push(7);
        assert_eq!((now.next_chunk(), now.len()), (None, CHUNK + 1));
        now.seal();
        before.discard(&discards);
        assert_eq!(
            (now.get(CHUNK - 1), now.get(CHUNK), now.chunk(1)),
            (Some(&(CHUNK as u32 - 1)), Some(&7), &[7][..])
        );
    }
}
