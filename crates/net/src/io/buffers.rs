//! Read buffers, owned by the loop and lent to connections that read: idle connections hold none.
//!
//! A buffer is as long as reads of large bodies need (`docs/spec/background.md#read-size`) and has room before the
//! data, so that a rewritten head is put directly before the body that arrived with the old one and both leave in one
//! send.
//!
//! A buffer costs the clearing of its memory, so a loop keeps as many free ones as it has lately needed at once
//! ([`Buffers::trim`]).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

/// Bytes read at once at most.
pub const READ: usize = 128 * 1024;

/// The room for data that is not consumed yet: the largest head that a listener accepts, with what weir adds to it on
/// the way to a built-in server.
const BEHIND: usize = 16 * 1024;

/// Room before the data, for a head that grows.
pub const HEADROOM: usize = 8 * 1024;

/// A whole buffer.
const SIZE: usize = HEADROOM + READ + BEHIND;

/// Free buffers that are kept at least, and at most.
const KEPT: usize = 4;
const MOST_KEPT: usize = 32;

/// A small buffer to begin with: most heads of answers fit.
const FIRST: usize = 2 * 1024;

/// A small buffer that bytes are appended to, and the room in it before them, for a head.
const PART: usize = 4 * 1024;
const PART_HEADROOM: usize = 1024;

/// What fits such a buffer, and what fits a large one.
const PART_BYTES: usize = PART - PART_HEADROOM;
const LARGE_BYTES: usize = READ + BEHIND;

/// Small buffers that are kept, and how large one may have grown.
const KEPT_SMALL: usize = 64;
const SMALL: usize = 16 * 1024;

/// The free buffers of a loop.
#[derive(Default)]
pub struct Buffers {
    free: RefCell<Vec<Box<[u8]>>>,
    /// How few of them were free at once since the last [`Buffers::trim`].
    least_free: Cell<usize>,
    parts: RefCell<Vec<Box<[u8]>>>,
    small: RefCell<Vec<Vec<u8>>>,
}

impl Buffers {
    /// A buffer without data, large enough for `READ` bytes.
    pub fn take(self: &Rc<Self>) -> Chunk {
        let data = {
            let mut free = self.free.borrow_mut();
            let data = free.pop();
            self.least_free.set(self.least_free.get().min(free.len()));
            data
        };
        let data = data.unwrap_or_else(|| vec![0; SIZE].into_boxed_slice());
        Chunk { data, from: HEADROOM, to: HEADROOM, home: self.clone() }
    }

    /// One for this number of bytes that are appended, and a few more.
    fn take_part(self: &Rc<Self>, bytes: usize) -> Chunk {
        let (data, from) = match bytes {
            0..=PART_BYTES => {
                let data = self.parts.borrow_mut().pop();
                (data.unwrap_or_else(|| vec![0; PART].into_boxed_slice()), PART_HEADROOM)
            }
            SMALL..=LARGE_BYTES => return self.take(),
            _ => (vec![0; PART_HEADROOM + bytes + bytes / 2].into_boxed_slice(), PART_HEADROOM),
        };
        Chunk { data, from, to: from, home: self.clone() }
    }

    /// Frees the buffers that were not needed since the last time, but for a few.
    pub fn trim(&self) {
        let free = self.free.borrow().len();
        let unneeded = self.least_free.get().min(free).saturating_sub(KEPT);
        self.keep(free - unneeded);
    }

    /// Frees all buffers but a few: nothing needs them soon.
    pub fn rest(&self) {
        self.keep(KEPT);
    }

    fn keep(&self, most: usize) {
        let mut free = self.free.borrow_mut();
        free.truncate(most);
        self.least_free.set(free.len());
    }

    /// One that begins small, and grows with what is read.
    fn take_small(self: &Rc<Self>) -> Chunk {
        Chunk { data: vec![0; FIRST].into_boxed_slice(), from: 0, to: 0, home: self.clone() }
    }
}

/// Bytes that were read and not yet consumed.
pub struct Chunk {
    data: Box<[u8]>,
    from: usize,
    to: usize,
    home: Rc<Buffers>,
}

impl Chunk {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.data[self.from..self.to]
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// Consumes the first `n` bytes.
    pub fn consume(&mut self, n: usize) {
        self.from = (self.from + n).min(self.to);
    }

    /// The space to read into; never empty after [`Chunk::make_room`], unless [`Chunk::is_full`].
    pub fn space(&mut self) -> &mut [u8] {
        let begin = if self.is_large() { HEADROOM } else { 0 };
        if self.from == self.to {
            (self.from, self.to) = (begin, begin);
        } else if self.to == self.data.len() && self.from > begin {
            self.data.copy_within(self.from..self.to, begin);
            self.to = begin + self.to - self.from;
            self.from = begin;
        }
        let to = (self.to + READ).min(self.data.len());
        &mut self.data[self.to..to]
    }

    /// Adds `n` bytes that were read into [`Chunk::space`].
    pub fn filled(&mut self, n: usize) {
        self.to = (self.to + n).min(self.data.len());
    }

    /// Whether nothing more can be read before something is consumed.
    pub fn is_full(&self) -> bool {
        self.is_large() && self.to == self.data.len() && self.from <= HEADROOM
    }

    fn is_large(&self) -> bool {
        self.data.len() == SIZE
    }

    /// Makes a full small copy larger by half, or a large buffer again: what arrives byte by byte is copied a few
    /// times in all, not at each byte.
    pub fn make_room(&mut self) {
        let length = self.to - self.from;
        if self.is_large() || length < self.data.len() {
            return;
        }
        if length >= SMALL {
            let mut large = self.home.clone().take();
            large.space()[..length].copy_from_slice(self.bytes());
            large.filled(length);
            *self = large;
        } else {
            (self.from, self.to, self.data) = (0, length, with_room(self.bytes()));
        }
    }

    /// Appends bytes; a buffer without room for them is replaced by one that has it.
    fn append(&mut self, bytes: &[u8]) {
        let length = self.to - self.from;
        if self.data.len() - self.to < bytes.len() {
            let mut larger = self.home.clone().take_part(length + bytes.len());
            larger.data[larger.from..larger.from + length].copy_from_slice(self.bytes());
            larger.to = larger.from + length;
            *self = larger;
        }
        self.data[self.to..self.to + bytes.len()].copy_from_slice(bytes);
        self.to += bytes.len();
    }

    /// Puts bytes directly before what is there; `false` if there is no room.
    pub fn put_before(&mut self, head: &[u8]) -> bool {
        let Some(from) = self.from.checked_sub(head.len()) else { return false };
        self.data[from..self.from].copy_from_slice(head);
        self.from = from;
        true
    }

    /// A small copy of what is left, so that the large buffer goes back.
    pub fn shrink(&mut self) {
        if !self.is_large() || self.to - self.from > READ / 2 {
            return;
        }
        let to = self.to - self.from;
        let small = with_room(self.bytes());
        let large = std::mem::replace(&mut self.data, small);
        (self.from, self.to) = (0, to);
        self.home.give_back(large);
    }
}

/// The unconsumed input of a connection: nothing, or bytes in a lent buffer. Body data moves from one connection to
/// another as the first bytes of this, so that a head can be put before it in place.
#[derive(Default)]
pub struct Input(Option<Chunk>);

impl Input {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], Chunk::bytes)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether nothing more can be read before something is consumed.
    pub fn is_full(&self) -> bool {
        self.0.as_ref().is_some_and(Chunk::is_full)
    }

    /// Consumes the first `n` bytes; with the last of them the buffer is returned.
    pub fn consume(&mut self, n: usize) {
        if let Some(chunk) = &mut self.0 {
            chunk.consume(n);
            if chunk.is_empty() {
                self.0 = None;
            }
        }
    }

    /// Lets `read` append bytes; returns their number, as `read` does.
    pub fn fill<E>(
        &mut self,
        buffers: &Rc<Buffers>,
        read: impl FnOnce(&mut [u8]) -> Poll<Result<usize, E>>,
    ) -> Poll<Result<usize, E>> {
        self.fill_from(|| buffers.take(), read)
    }

    /// The same with a small buffer at first: data that may wait for long holds no large one.
    pub fn fill_small<E>(
        &mut self,
        buffers: &Rc<Buffers>,
        read: impl FnOnce(&mut [u8]) -> Poll<Result<usize, E>>,
    ) -> Poll<Result<usize, E>> {
        self.fill_from(|| buffers.take_small(), read)
    }

    fn fill_from<E>(
        &mut self,
        first: impl FnOnce() -> Chunk,
        read: impl FnOnce(&mut [u8]) -> Poll<Result<usize, E>>,
    ) -> Poll<Result<usize, E>> {
        let chunk = self.0.get_or_insert_with(first);
        chunk.make_room();
        let read = read(chunk.space());
        if let Poll::Ready(Ok(n)) = read {
            chunk.filled(n);
        }
        if chunk.is_empty() {
            self.0 = None;
        }
        read
    }

    /// Appends bytes, however many: the buffer begins small and grows with them.
    pub fn append(&mut self, buffers: &Rc<Buffers>, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.0.get_or_insert_with(|| buffers.take_part(bytes.len())).append(bytes);
        }
    }

    /// Puts bytes directly before what is there; `false` if there is no room.
    pub fn put_before(&mut self, head: &[u8]) -> bool {
        self.0.as_mut().is_some_and(|chunk| chunk.put_before(head))
    }

    /// The memory that this uses, bytes.
    pub fn kept(&self) -> usize {
        self.0.as_ref().map_or(0, |chunk| chunk.data.len())
    }

    /// Moves a few bytes that stay for long out of a large buffer.
    pub fn shrink(&mut self) {
        if let Some(chunk) = &mut self.0 {
            chunk.shrink();
        }
    }

    /// The same if they are so few that a copy costs nothing.
    pub fn shrink_small(&mut self) {
        if self.bytes().len() <= SMALL {
            self.shrink();
        }
    }
}

/// A copy with room for half as much again.
fn with_room(bytes: &[u8]) -> Box<[u8]> {
    let mut copy = Vec::with_capacity(bytes.len() + (bytes.len() / 2).max(256));
    copy.extend_from_slice(bytes);
    copy.resize(copy.capacity(), 0);
    copy.into_boxed_slice()
}

impl Buffers {
    /// Takes a growing buffer for output.
    pub fn small(&self) -> Vec<u8> {
        self.small.borrow_mut().pop().unwrap_or_default()
    }

    /// Returns such a buffer.
    pub fn keep_small(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut small = self.small.borrow_mut();
        if small.len() < KEPT_SMALL && (1..=SMALL).contains(&buffer.capacity()) {
            small.push(buffer);
        }
    }

    fn give_back(&self, data: Box<[u8]>) {
        let (list, most) =
            if data.len() == PART { (&self.parts, KEPT_SMALL) } else { (&self.free, MOST_KEPT) };
        let mut free = list.borrow_mut();
        if [SIZE, PART].contains(&data.len()) && free.len() < most {
            #[cfg(feature = "poison")]
            let data = {
                let mut data = data;
                data.fill(0xdb);
                data
            };
            free.push(data);
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.home.give_back(std::mem::take(&mut self.data));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few bytes leave the large buffer to the next reader; many do not.
    #[test]
    fn what_is_small_holds_no_large_buffer() {
        for (bytes, free) in [(1024, 1), (SMALL, 1), (SMALL + 1, 0)] {
            let buffers: Rc<Buffers> = Rc::default();
            let mut input = Input::default();
            let read = input.fill(&buffers, |space| {
                space[..bytes].fill(7);
                Poll::Ready(Ok::<_, ()>(bytes))
            });
            assert_eq!(read, Poll::Ready(Ok(bytes)));
            input.shrink_small();
            assert_eq!(input.bytes(), vec![7; bytes]);
            assert_eq!(buffers.free.borrow().len(), free, "{bytes}");
        }
    }

    /// After a burst its buffers stay for as long as they are needed.
    #[test]
    fn free_buffers_are_those_that_were_needed_lately() {
        let buffers: Rc<Buffers> = Rc::default();
        let free = |buffers: &Buffers| buffers.free.borrow().len();
        let burst = |n: usize| drop((0..n).map(|_| buffers.take()).collect::<Vec<_>>());
        burst(100);
        assert_eq!(free(&buffers), MOST_KEPT);
        buffers.trim();
        burst(20);
        buffers.trim();
        assert_eq!(free(&buffers), 20 + KEPT);
        buffers.trim();
        assert_eq!(free(&buffers), KEPT);
        burst(10);
        buffers.rest();
        assert_eq!(free(&buffers), KEPT);
    }

    /// Bytes of a body that wait for their reader, in a buffer of about their size.
    #[test]
    fn what_is_appended_has_a_buffer_of_its_size() {
        let buffers: Rc<Buffers> = Rc::default();
        let whole: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
        let mut input = Input::default();
        for piece in whole.chunks(700) {
            input.append(&buffers, piece);
            let bytes = input.bytes().len();
            assert!(
                input.kept() <= PART.max(PART_HEADROOM + 2 * bytes) || bytes >= SMALL && input.kept() <= SIZE
            );
        }
        assert!(input.bytes() == whole && input.put_before(b"head"));
        input.consume(4 + 999_990);
        input.append(&buffers, b"more");
        assert_eq!(input.bytes(), [&whole[999_990..], b"more"].concat());
        input.consume(14);
        assert!(input.is_empty() && input.kept() == 0);
        input.append(&buffers, b"few");
        assert_eq!((input.kept(), buffers.parts.borrow().len()), (PART, 0));
        drop(input);
        assert_eq!(buffers.parts.borrow().len(), 1);
    }

    /// A head that arrives byte by byte, between whose bytes the connection rests.
    #[test]
    fn what_comes_byte_by_byte_is_copied_a_few_times() {
        let buffers: Rc<Buffers> = Rc::default();
        let mut input = Input::default();
        let (mut moves, mut last) = (0, None);
        let whole: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
        for byte in &whole {
            let read = input.fill(&buffers, |space| {
                space[0] = *byte;
                Poll::Ready(Ok::<_, ()>(1))
            });
            assert_eq!(read, Poll::Ready(Ok(1)));
            input.shrink();
            let place = Some(input.bytes().as_ptr().addr());
            moves += u32::from(std::mem::replace(&mut last, place) != place);
        }
        assert_eq!(input.bytes(), whole);
        assert!(moves < 60, "{moves}");
        input.consume(99_990);
        assert!(input.put_before(b"head") && input.bytes().starts_with(b"head"));
        input.consume(14);
        assert!(input.is_empty());
    }
}
