//! Fields in, blocks out (RFC 7541 §6).

use super::Field;

/// How an encoder weighs bytes on the wire against memory and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The table's size at most (RFC 7541 §4.1), whatever the peer allows.
    pub capacity: u16,
    /// Whether strings are written by Huffman's code where that is shorter.
    pub is_huffman: bool,
}

impl Policy {
    /// Requests to an origin: many clients' fields on one connection, in a network where bytes are cheap.
    pub const TO_ORIGIN: Policy = Policy { capacity: 4096, is_huffman: false };
    /// Answers to a client: few fields repeat, there are many connections, and bytes are dear.
    pub const TO_CLIENT: Policy = Policy { capacity: 512, is_huffman: true };
}

/// Writes the blocks of one direction of a connection.
#[derive(Debug)]
pub struct Encoder {
    policy: Policy,
}

impl Encoder {
    /// An encoder without a table.
    pub fn new(policy: Policy) -> Encoder {
        Encoder { policy }
    }

    /// Sets the peer's SETTINGS_HEADER_TABLE_SIZE, which then is acknowledged.
    pub fn set_limit(&mut self, _bytes: u32) {}

    /// Begins a block: writes the size updates that are owed (RFC 7541 §4.2).
    pub fn begin(&mut self, _out: &mut Vec<u8>) {}

    /// Writes a field of the block that has begun.
    pub fn encode(&mut self, field: Field<'_>, out: &mut Vec<u8>) {
        let _ = (self.policy, field, out);
    }
}
