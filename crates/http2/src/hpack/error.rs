//! Why a block cannot be decoded: each is an error of the connection, COMPRESSION_ERROR (RFC 9113 §4.3).

use std::fmt;

/// Why a block cannot be decoded. The connection ends with COMPRESSION_ERROR: the tables of its ends differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// RFC 7541 §5: the block ends within a field.
    Truncated,
    /// RFC 7541 §5.1: a number has more than five octets behind its prefix, or is above 2^32 - 1.
    Integer,
    /// RFC 7541 §6.1: the index 0, or one beyond both tables.
    Index,
    /// RFC 7541 §5.2: a string's padding is longer than 7 bits, or not all ones.
    Padding,
    /// RFC 7541 §5.2: a string has the symbol for its end.
    EndOfString,
    /// RFC 7541 §4.2: a size update behind a field.
    UpdateMisplaced,
    /// RFC 7541 §6.3: a size update above the limit.
    UpdateTooLarge,
    /// RFC 9113 §4.3.1: no size update although the limit was lowered.
    UpdateMissing,
}

impl HpackError {
    /// What is wrong, one sentence without a full stop: for logs, and for the debug data of GOAWAY.
    pub fn text(self) -> &'static str {
        match self {
            HpackError::Truncated => "A block of fields ends within a field (RFC 7541 section 5)",
            HpackError::Integer => "A number in a block of fields is too large (RFC 7541 section 5.1)",
            HpackError::Index => {
                "An index in a block of fields is 0 or not in the tables (RFC 7541 section 6.1)"
            }
            HpackError::Padding => {
                "A string's padding is longer than 7 bits or not all ones (RFC 7541 section 5.2)"
            }
            HpackError::EndOfString => "A string contains the end-of-string symbol (RFC 7541 section 5.2)",
            HpackError::UpdateMisplaced => {
                "A table size update is not at the start of its block (RFC 7541 section 4.2)"
            }
            HpackError::UpdateTooLarge => "A table size update is above the limit (RFC 7541 section 6.3)",
            HpackError::UpdateMissing => {
                "A block does not begin with the table size update that is owed (RFC 9113 section 4.3.1)"
            }
        }
    }
}

impl fmt::Display for HpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for HpackError {}
