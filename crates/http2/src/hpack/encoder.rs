//! Fields in, blocks out (RFC 7541 §6).

use super::policy::{Policy, Treatment, treat};
use super::recent::{Mark, Recent, Repeats};
use super::table::OVERHEAD;
use super::{Field, huffman, integer::write_integer, static_table};

/// Writes the blocks of one direction of a connection.
#[derive(Debug)]
pub struct Encoder {
    policy: Policy,
    /// The peer's limit.
    limit: u32,
    /// The lowest limit since the last block, if there was one.
    lowest: Option<u32>,
    /// The size of the peer's table. Ours may be smaller without a word, as its fields are then the newest there.
    agreed: u32,
    repeats: Repeats,
    /// There is none until a field repeats.
    recent: Option<Box<Recent>>,
}

impl Encoder {
    /// An encoder without a table.
    pub fn new(policy: Policy) -> Encoder {
        Encoder { policy, limit: 4096, lowest: None, agreed: 4096, repeats: Repeats::new(), recent: None }
    }

    /// Sets the peer's SETTINGS_HEADER_TABLE_SIZE, which then is acknowledged.
    pub fn set_limit(&mut self, bytes: u32) {
        self.limit = bytes;
        self.lowest = Some(self.lowest.map_or(bytes, |lowest| lowest.min(bytes)));
    }

    /// The bytes of memory that its table has taken.
    pub fn memory(&self) -> usize {
        self.recent.as_ref().map_or(0, |recent| recent.memory())
    }

    /// Begins a block: writes the size updates that are owed, two at most (RFC 7541 §4.2).
    #[inline]
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some(lowest) = self.lowest.take() {
            self.update(lowest, out);
        }
    }

    #[cold]
    fn update(&mut self, lowest: u32, out: &mut Vec<u8>) {
        let capacity = u32::from(self.policy.capacity);
        if lowest < self.agreed {
            self.agree(lowest.min(capacity), out);
        }
        let wanted = self.limit.min(capacity);
        if wanted > self.agreed {
            self.agree(wanted, out);
        }
    }

    fn agree(&mut self, size: u32, out: &mut Vec<u8>) {
        write_integer(size as usize, 0x20, 5, out);
        self.agreed = size;
        let capacity = self.capacity();
        if capacity == 0 {
            self.recent = None;
        } else if let Some(recent) = &mut self.recent {
            recent.set_capacity(capacity);
        }
    }

    fn capacity(&self) -> u16 {
        self.policy.capacity.min(u16::try_from(self.agreed).unwrap_or(u16::MAX))
    }

    /// Writes a field of the block that has begun. Its name is in lower case (RFC 9113 §8.2).
    pub fn encode(&mut self, field: Field<'_>, out: &mut Vec<u8>) {
        let name = static_table::find_name(field.name);
        let treatment = treat(name, &field);
        if treatment != Treatment::Hide
            && let Some(index) = static_table::find_value(name, field.value)
        {
            return write_integer(index, 0x80, 7, out);
        }
        match treatment {
            Treatment::Hide => self.literal(0x10, 4, name, &field, out),
            Treatment::Pass => self.literal(0, 4, name, &field, out),
            Treatment::Index => self.refer(name, field, out),
        }
    }

    /// Writes a field that the table has, or may get.
    fn refer(&mut self, name: usize, field: Field<'_>, out: &mut Vec<u8>) {
        let mark = Mark::new(name, &field);
        let mut index = name;
        if let Some(recent) = &self.recent {
            if let Some(age) = recent.find(mark, &field) {
                return write_integer(static_table::LEN + 1 + age, 0x80, 7, out);
            }
            if name == 0 {
                let age = recent.find_name(mark, field.name);
                index = age.map_or(0, |age| static_table::LEN + 1 + age);
            }
        }
        let capacity = self.capacity();
        let size = field.name.len() + field.value.len() + OVERHEAD;
        // What fills most of the table is not worth all that it pushes out.
        if size > usize::from(capacity) / 4 * 3 || !self.repeats.has_seen(mark) {
            return self.literal(0, 4, index, &field, out);
        }
        self.literal(0x40, 6, index, &field, out);
        self.recent.get_or_insert_with(|| Box::new(Recent::new(capacity))).insert(mark, &field);
    }

    /// Writes the index of the name, or the name, and the value.
    fn literal(&self, pattern: u8, prefix: u32, name: usize, field: &Field<'_>, out: &mut Vec<u8>) {
        write_integer(name, pattern, prefix, out);
        if name == 0 {
            self.string(field.name, out);
        }
        self.string(field.value, out);
    }

    /// Writes a string (RFC 7541 §5.2).
    fn string(&self, string: &[u8], out: &mut Vec<u8>) {
        if self.policy.is_huffman {
            let length = huffman::encoded_len(string);
            if length < string.len() {
                write_integer(length, 0x80, 7, out);
                return huffman::encode(string, out);
            }
        }
        write_integer(string.len(), 0, 7, out);
        out.extend_from_slice(string);
    }
}
