//! The dynamic table (RFC 7541 §2.3.2): recent fields, the oldest of which make room for new ones.
//!
//! The fields' bytes follow each other in one buffer, names and values whole, so that a field of the table is
//! two slices of it. New ones are appended; when the buffer's end is reached, what is left of the old ones moves to its
//! begin. As each field counts for 32 bytes more than it has, there is room between, and that is rare.
//! The buffer grows with its content: an empty table takes no memory, and a full one no more than its capacity.

/// What each field counts for beside its bytes (RFC 7541 §4.1).
pub(super) const OVERHEAD: usize = 32;

/// The least that the buffer has.
const LEAST: usize = 128;

/// One side's view of the recent fields.
#[derive(Debug)]
pub(super) struct Table {
    bytes: Vec<u8>,
    /// The oldest first.
    entries: Vec<Entry>,
    size: usize,
    capacity: u16,
}

/// Where a field is; its value ends where the next field begins.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u16,
    name: u16,
}

impl Table {
    pub(super) fn new(capacity: u16) -> Table {
        Table { bytes: Vec::new(), entries: Vec::new(), size: 0, capacity }
    }

    /// The number of fields.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The most that the fields may count for.
    pub(super) fn capacity(&self) -> u16 {
        self.capacity
    }

    /// The bytes of memory it has taken.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// Changes the capacity; the oldest fields leave if they must (RFC 7541 §4.3).
    pub(super) fn set_capacity(&mut self, capacity: u16) {
        let is_lower = capacity < self.capacity;
        self.capacity = capacity;
        if is_lower {
            self.evict(usize::from(capacity));
            self.compact();
            self.bytes.shrink_to(usize::from(capacity));
            self.entries.shrink_to(usize::from(capacity) / OVERHEAD);
        }
    }

    /// Name and value of the field that was put in as the `age`-th last one, the newest being 0.
    #[inline]
    pub(super) fn get(&self, age: usize) -> Option<(&[u8], &[u8])> {
        let at = self.entries.len().checked_sub(age)?.checked_sub(1)?;
        let entry = self.entries[at];
        let end = self.entries.get(at + 1).map_or(self.bytes.len(), |next| usize::from(next.start));
        Some(self.bytes[usize::from(entry.start)..end].split_at(usize::from(entry.name)))
    }

    /// Puts a field in. If it is larger than the whole table, it only empties it (RFC 7541 §4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let (length, capacity) = (name.len() + value.len(), usize::from(self.capacity));
        let size = length + OVERHEAD;
        self.evict(capacity.saturating_sub(size));
        if size > capacity {
            return;
        }
        self.make_room(length);
        self.entries.push(Entry { start: self.bytes.len() as u16, name: name.len() as u16 });
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.size += size;
        assert!(self.size <= capacity, "a table is within its capacity");
    }

    /// Removes all fields.
    pub(super) fn clear(&mut self) {
        self.evict(0);
    }

    /// Removes the oldest fields until the rest counts for `size` at most.
    #[inline]
    fn evict(&mut self, size: usize) {
        if self.size > size {
            self.remove_oldest(size);
        }
    }

    fn remove_oldest(&mut self, size: usize) {
        let mut count = 0;
        while self.size > size && count < self.entries.len() {
            let end = self.entries.get(count + 1).map_or(self.bytes.len(), |next| usize::from(next.start));
            self.size -= end - usize::from(self.entries[count].start) + OVERHEAD;
            count += 1;
        }
        self.entries.drain(..count);
        if self.entries.is_empty() {
            self.bytes.clear();
        }
    }

    /// Makes room for more bytes behind the newest field.
    #[inline]
    fn make_room(&mut self, length: usize) {
        if self.bytes.len() + length > self.bytes.capacity() {
            self.grow(length);
        }
    }

    #[cold]
    fn grow(&mut self, length: usize) {
        self.compact();
        let needed = self.bytes.len() + length;
        // With less than a quarter to spare the next time would come soon.
        let spacious = (needed + needed / 4).min(usize::from(self.capacity));
        if spacious > self.bytes.capacity() {
            let wanted = (needed + needed / 2).max(LEAST).min(usize::from(self.capacity));
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
    }

    /// Moves the fields to the begin of the buffer.
    fn compact(&mut self) {
        let Some(gap) = self.entries.first().map(|oldest| oldest.start) else { return self.bytes.clear() };
        if gap > 0 {
            self.bytes.drain(..usize::from(gap));
            self.entries.iter_mut().for_each(|entry| entry.start -= gap);
        }
    }
}
