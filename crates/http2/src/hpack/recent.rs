//! What an encoder remembers of the fields that it wrote: those in its table, to refer to, and the marks of some others,
//! to see which repeat.

use super::Field;
use super::table::Table;
use std::collections::VecDeque;

/// The number of marks that are kept.
const MARKS: usize = 32;

/// A number that is equal for equal fields and seldom for others: 10 bits of the name, and below them 22 of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u32);

const BOTH: u32 = 22;

impl Mark {
    /// What an empty place has; a field with such a mark seems to repeat at once.
    const NONE: Mark = Mark(0);

    /// `name`: the first index of its name in the static table, or 0.
    #[inline]
    pub(super) fn new(name: usize, field: &Field<'_>) -> Mark {
        let name = if name == 0 { hash(field.name, 0) } else { name as u64 };
        let both = hash(field.value, name);
        Mark((name as u32) << BOTH | both as u32 & ((1 << BOTH) - 1))
    }

    #[inline]
    fn is_same_name(self, other: Mark) -> bool {
        (self.0 ^ other.0) >> BOTH == 0
    }
}

/// A hash, eight bytes a step. Whoever finds collisions only makes a field be compared in vain, or put into the table
/// too early.
#[inline]
fn hash(bytes: &[u8], seed: u64) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |state: u64, word: u64| {
        let product = (state ^ word).wrapping_mul(FACTOR);
        product ^ product >> 32
    };
    let mut state = step(seed ^ FACTOR, bytes.len() as u64);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        state = step(state, u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        // Of a longer string the last eight bytes, which are one load.
        let word = match bytes.last_chunk::<8>() {
            Some(last) => u64::from_le_bytes(*last),
            None => rest.iter().fold(0, |word, &b| word << 8 | u64::from(b)),
        };
        state = step(state, word);
    }
    state
}

/// The table of an encoder, whose fields are found by their marks.
#[derive(Debug)]
pub(super) struct Recent {
    table: Table,
    /// The oldest first, as the fields of the table.
    marks: VecDeque<Mark>,
}

impl Recent {
    pub(super) fn new(capacity: u16) -> Recent {
        Recent { table: Table::new(capacity), marks: VecDeque::new() }
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Recent>() + self.table.memory() + self.marks.capacity() * size_of::<Mark>()
    }

    pub(super) fn set_capacity(&mut self, capacity: u16) {
        self.table.set_capacity(capacity);
        self.forget();
        self.marks.shrink_to_fit();
    }

    /// The age of a field that is equal.
    #[inline]
    pub(super) fn find(&self, mark: Mark, field: &Field<'_>) -> Option<usize> {
        self.age(|known| known == mark, |name, value| value == field.value && name == field.name)
    }

    /// The age of a field with the same name.
    pub(super) fn find_name(&self, mark: Mark, name: &[u8]) -> Option<usize> {
        self.age(|known| known.is_same_name(mark), |known, _| known == name)
    }

    /// The age of a field with a mark and content like this.
    #[inline]
    fn age(&self, is_marked: impl Fn(Mark) -> bool, is_it: impl Fn(&[u8], &[u8]) -> bool) -> Option<usize> {
        let matches = |age: &usize| self.table.get(*age).is_some_and(|(name, value)| is_it(name, value));
        let marked = self.marks.iter().rev().enumerate().filter(|&(_, &known)| is_marked(known));
        marked.map(|(age, _)| age).find(matches)
    }

    pub(super) fn insert(&mut self, mark: Mark, field: &Field<'_>) {
        self.table.insert(field.name, field.value);
        self.marks.push_back(mark);
        self.forget();
    }

    /// Drops the marks of fields that have left.
    fn forget(&mut self) {
        let gone = self.marks.len() - self.table.len();
        self.marks.drain(..gone);
    }
}

/// The marks of the last fields that were not in the table. A field is put there when it comes a second time; so what
/// differs from message to message pushes nothing out, and a connection of one message has no table.
#[derive(Debug)]
pub(super) struct Repeats {
    marks: [Mark; MARKS],
    next: u8,
}

impl Repeats {
    pub(super) fn new() -> Repeats {
        Repeats { marks: [Mark::NONE; MARKS], next: 0 }
    }

    /// Whether the field came before; if not, it is remembered.
    #[inline]
    pub(super) fn has_seen(&mut self, mark: Mark) -> bool {
        if self.marks.iter().fold(false, |seen, &known| seen | (known == mark)) {
            return true;
        }
        self.marks[usize::from(self.next) % MARKS] = mark;
        self.next = (self.next + 1) % MARKS as u8;
        false
    }
}
