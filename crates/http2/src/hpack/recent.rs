//! What an encoder remembers of the fields that it wrote: those in its table, to refer to, and the marks of some others,
//! to see which repeat.

use super::Field;
use super::table::Table;

/// The number of marks that are kept.
const MARKS: usize = 32;

/// The number of shortcuts to fields.
const SLOTS: usize = 64;

/// A number that is equal for equal fields and seldom for others: 10 bits of the name, and below them 22 of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u32);

/// The bits of name and value.
const BOTH: u32 = 22;

/// Where the marks of names begin that the static table does not have.
const OTHER: u32 = 64;

impl Mark {
    /// What an empty place has; a field with such a mark seems to repeat at once.
    const NONE: Mark = Mark(0);

    /// `name`: the first index of its name in the static table, or 0.
    #[inline]
    pub(super) fn new(name: usize, field: &Field<'_>) -> Mark {
        let name = if name == 0 { hash(field.name, 0) as u32 | OTHER } else { name as u32 };
        Mark(name << BOTH | hash(field.value, name.into()) as u32 & ((1 << BOTH) - 1))
    }

    #[inline]
    fn slot(self) -> usize {
        self.0 as usize % SLOTS
    }

    /// The mark of the name.
    #[inline]
    fn name(self) -> u32 {
        self.0 >> BOTH
    }
}

/// A hash, 16 bytes a step. A collision, also one that is made on purpose, only has a field compared in vain or put into
/// the table too early.
#[inline]
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let mut state = fold(seed ^ 0x9e37_79b9_7f4a_7c15, bytes.len() as u64 ^ 0xd6e8_feb8_6659_fd93);
    let mut rest = bytes;
    while let Some((step, behind)) = rest.split_first_chunk::<16>() {
        let (first, second) = (word(&step[..8]), word(&step[8..]));
        state = fold(first ^ state, second ^ 0xa076_1d64_78bd_642f);
        rest = behind;
    }
    // The last steps may have bytes of the ones before, so that each is one load.
    let (first, second) = match (rest.len(), bytes.last_chunk::<8>()) {
        (0, _) => return state,
        (9.., Some(last)) => (word(&rest[..8]), u64::from_le_bytes(*last)),
        (_, Some(last)) => (0, u64::from_le_bytes(*last)),
        (_, None) => (0, rest.iter().fold(0, |word, &b| word << 8 | u64::from(b))),
    };
    fold(first ^ state, second ^ 0xa076_1d64_78bd_642f)
}

/// Both halves of a product.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The table of an encoder, whose fields are found by their marks.
#[derive(Debug)]
pub(super) struct Recent {
    table: Table,
    /// The oldest first, as the fields of the table.
    marks: Vec<Mark>,
    /// By the low bits of a mark the number of the last field with such a one, to be looked at first.
    slots: [u8; SLOTS],
    /// The number of the next field, modulo 256.
    next: u8,
}

impl Recent {
    pub(super) fn new(capacity: u16) -> Recent {
        Recent { table: Table::new(capacity), marks: Vec::new(), slots: [0; SLOTS], next: 0 }
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
        let is_it = |age: usize| {
            // Names of the static table have marks of their own.
            let is_named = |name: &[u8]| mark.name() < OTHER || name == field.name;
            self.table.get(age).is_some_and(|(name, value)| value == field.value && is_named(name))
        };
        let age = usize::from(self.next.wrapping_sub(1).wrapping_sub(self.slots[mark.slot()]));
        let place = self.marks.len().checked_sub(age + 1);
        if place.is_some_and(|at| self.marks[at] == mark) && is_it(age) {
            return Some(age);
        }
        self.age(|known| known == mark, is_it)
    }

    /// The age of a field with the same name, which the static table does not have.
    pub(super) fn find_name(&self, mark: Mark, name: &[u8]) -> Option<usize> {
        let is_it = |age: usize| self.table.get(age).is_some_and(|(known, _)| known == name);
        self.age(|known| known.name() == mark.name(), is_it)
    }

    /// The age of the newest field with a mark and content like this.
    fn age(&self, is_marked: impl Fn(Mark) -> bool, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        // Most often there is none; so that is found out first, without a branch for each.
        let is_any = self.marks.iter().fold(false, |any, &known| any | is_marked(known));
        if !is_any {
            return None;
        }
        let marked = self.marks.iter().rev().enumerate().filter(|&(_, &known)| is_marked(known));
        marked.map(|(age, _)| age).find(|&age| is_it(age))
    }

    pub(super) fn insert(&mut self, mark: Mark, field: &Field<'_>) {
        self.table.insert(field.name, field.value);
        self.marks.push(mark);
        self.slots[mark.slot()] = self.next;
        self.next = self.next.wrapping_add(1);
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
