//! Blocks in, fields out (RFC 7541 §3.2).

use super::long_field::LongField;
use super::table::Table;
use super::{Field, HpackError, huffman, integer::read_integer, static_table};

/// Reads the blocks of one direction of a connection.
///
/// After an error its table is no longer the peer's, and the connection must end.
#[derive(Debug)]
pub struct Decoder {
    pub(super) table: Table,
    /// The most that a size update may ask for.
    limit: u16,
    /// The lowest limit since the last update, if it is below what the table has: the next block must begin with an
    /// update to no more than that.
    owed: Option<u16>,
    /// A field that is read past, of a block that comes in parts.
    pub(super) long: Option<LongField>,
}

impl Decoder {
    /// A decoder with the limit of a new connection, 4,096 bytes.
    pub fn new() -> Decoder {
        Decoder { table: Table::new(4096), limit: 4096, owed: None, long: None }
    }

    /// Sets the SETTINGS_HEADER_TABLE_SIZE that the peer has acknowledged.
    pub fn set_limit(&mut self, bytes: u16) {
        self.limit = bytes;
        if bytes < self.table.capacity() {
            self.owed = Some(self.owed.map_or(bytes, |owed| owed.min(bytes)));
        }
    }

    /// The bytes of memory that its table has taken.
    pub fn memory(&self) -> usize {
        self.table.memory()
    }

    /// Decodes a whole block, also one whose fields are of no use any more: the table must go on (RFC 9113 §4.3).
    /// `scratch` holds what Huffman's codes decode to; its content is of no meaning before and after, and it grows to
    /// some more than 8/5 of the block at most.
    pub fn decode(
        &mut self,
        block: &[u8],
        scratch: &mut Vec<u8>,
        mut take: impl FnMut(Field<'_>),
    ) -> Result<(), HpackError> {
        let mut at = self.begin(block)?;
        while let Some(&first) = block.get(at) {
            self.decode_field(first, block, &mut at, scratch, &mut take)?;
        }
        Ok(())
    }

    /// Takes the size updates that a block begins with; returns where its fields begin.
    #[inline]
    pub(super) fn begin(&mut self, block: &[u8]) -> Result<usize, HpackError> {
        let mut at = 0;
        while let Some(&first) = block.get(at)
            && first & 0xe0 == 0x20
        {
            let size = read_integer(block, &mut at, 5)?;
            self.update(size)?;
        }
        if at < block.len() && self.owed.is_some() {
            return Err(HpackError::UpdateMissing);
        }
        Ok(at)
    }

    /// Decodes the field that begins with this octet; nothing has changed if it is truncated.
    #[inline]
    pub(super) fn decode_field(
        &mut self,
        first: u8,
        block: &[u8],
        at: &mut usize,
        scratch: &mut Vec<u8>,
        take: &mut impl FnMut(Field<'_>),
    ) -> Result<(), HpackError> {
        if first & 0x80 != 0 {
            let index = read_integer(block, at, 7)?;
            let (name, value) = self.field(index)?;
            take(Field { name, value, is_sensitive: false });
            return Ok(());
        }
        let is_indexed = first & 0x40 != 0;
        if !is_indexed && first & 0x20 != 0 {
            return Err(HpackError::UpdateMisplaced);
        }
        let index = read_integer(block, at, if is_indexed { 6 } else { 4 })?;
        let mut strings = Strings { block, at: *at, scratch, used: 0 };
        let name = match static_table::get(index as usize) {
            Some((name, _)) => Text::Static(name),
            None if index == 0 => strings.read()?,
            None => strings.copy(self.field(index)?.0),
        };
        let value = strings.read()?;
        *at = strings.at;
        let (name, value) = (name.bytes(block, scratch), value.bytes(block, scratch));
        take(Field { name, value, is_sensitive: first & 0x50 == 0x10 });
        if is_indexed {
            self.table.insert(name, value);
        }
        Ok(())
    }

    /// The field of an index, in either table.
    #[inline]
    pub(super) fn field(&self, index: u32) -> Result<(&[u8], &[u8]), HpackError> {
        let index = index as usize;
        if let Some(field) = static_table::get(index) {
            return Ok(field);
        }
        let age = index.checked_sub(static_table::LEN + 1).ok_or(HpackError::Index)?;
        self.table.get(age).ok_or(HpackError::Index)
    }

    /// Changes the table's size as the peer says (RFC 7541 §6.3).
    fn update(&mut self, size: u32) -> Result<(), HpackError> {
        let size = u16::try_from(size).ok().filter(|&size| size <= self.limit);
        let size = size.ok_or(HpackError::UpdateTooLarge)?;
        if self.owed.is_some_and(|owed| size > owed) {
            return Err(HpackError::UpdateMissing);
        }
        self.owed = None;
        self.table.set_capacity(size);
        Ok(())
    }
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::new()
    }
}

/// Where the bytes of a string are.
#[derive(Clone, Copy)]
enum Text {
    Static(&'static [u8]),
    Block(usize, usize),
    Scratch(usize, usize),
}

impl Text {
    #[inline]
    fn bytes<'a>(self, block: &'a [u8], scratch: &'a [u8]) -> &'a [u8] {
        match self {
            Text::Static(name) => name,
            Text::Block(from, to) => &block[from..to],
            Text::Scratch(from, to) => &scratch[from..to],
        }
    }
}

/// The strings of one field.
struct Strings<'a> {
    block: &'a [u8],
    at: usize,
    scratch: &'a mut Vec<u8>,
    /// How much of `scratch` holds strings of this field.
    used: usize,
}

impl Strings<'_> {
    /// Reads a string (RFC 7541 §5.2).
    #[inline]
    fn read(&mut self) -> Result<Text, HpackError> {
        let is_coded = self.block.get(self.at).is_some_and(|first| first & 0x80 != 0);
        let length = read_integer(self.block, &mut self.at, 7)? as usize;
        let start = self.at;
        if length > self.block.len() - start {
            return Err(HpackError::Truncated);
        }
        self.at = start + length;
        if !is_coded {
            return Ok(Text::Block(start, self.at));
        }
        let (block, from, end) = (self.block, self.used, self.at);
        self.used += huffman::decode(block, start, end, self.make_room(huffman::room(length)))?;
        Ok(Text::Scratch(from, self.used))
    }

    /// Copies a name of the table, as the field may push it out (RFC 7541 §4.4).
    #[inline]
    fn copy(&mut self, name: &[u8]) -> Text {
        let from = self.used;
        self.make_room(name.len())[..name.len()].copy_from_slice(name);
        self.used = from + name.len();
        Text::Scratch(from, self.used)
    }

    #[inline]
    fn make_room(&mut self, length: usize) -> &mut [u8] {
        let needed = self.used + length;
        if self.scratch.len() < needed {
            self.scratch.resize(needed, 0);
        }
        &mut self.scratch[self.used..]
    }
}
