//! A growing list that all threads read without a lock: items never move. Each piece is as long as all before it.

use std::sync::OnceLock;

/// The first piece, as a power of two: 64 items.
const FIRST: u32 = 6;
/// As many as indices of 32 bits need.
const PIECES: usize = 32 - FIRST as usize + 1;

/// The list.
pub(crate) struct Chunks<T>([OnceLock<Box<[T]>>; PIECES]);

impl<T: Default> Chunks<T> {
    /// With at least this number of items.
    pub fn with_len(n: usize) -> Chunks<T> {
        let chunks = Chunks([const { OnceLock::new() }; PIECES]);
        chunks.grow(n);
        chunks
    }

    /// Grows to at least this number of items.
    pub fn grow(&self, n: usize) {
        let Some(last) = n.checked_sub(1) else { return };
        for piece in 0..=place(last as u32).0 {
            let items = 1usize << (FIRST as usize + piece.saturating_sub(1));
            self.0[piece].get_or_init(|| (0..items).map(|_| T::default()).collect());
        }
    }
}

impl<T> Chunks<T> {
    /// An item; `None`: the list is shorter.
    #[inline]
    pub fn get(&self, at: u32) -> Option<&T> {
        let (piece, offset) = place(at);
        self.0[piece].get()?.get(offset)
    }
}

/// The piece of an index, and the position there.
#[inline]
fn place(at: u32) -> (usize, usize) {
    match (at >> FIRST).checked_ilog2() {
        None => (0, at as usize),
        Some(log) => (log as usize + 1, at as usize - (1 << (FIRST + log))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn items_stay_where_they_are_as_the_list_grows() {
        let chunks: Chunks<AtomicU32> = Chunks::with_len(1);
        for n in [1u32, 64, 65, 128, 129, 5_000] {
            chunks.grow(n as usize);
            let last = chunks.get(n - 1).expect("as long as it was to be");
            assert_eq!(last.swap(n, Relaxed), 0, "of nobody else");
        }
        for n in [1u32, 64, 65, 128, 129, 5_000] {
            assert_eq!(chunks.get(n - 1).map(|item| item.load(Relaxed)), Some(n));
        }
        assert!(
            Chunks::<u8>::with_len(64).get(64).is_none() && Chunks::<u8>::with_len(65).get(127).is_some()
        );
    }
}
