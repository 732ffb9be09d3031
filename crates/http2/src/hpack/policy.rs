//! Which fields an encoder puts into its table.

use super::Field;

/// How an encoder weighs bytes on the wire against memory and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What the table's fields count for at most (RFC 7541 §4.1), even if the peer allows more. The memory is less, as
    /// each field counts for 32 bytes more than it has.
    pub capacity: u16,
    /// Whether strings are written by Huffman's code where that is shorter.
    pub is_huffman: bool,
}

impl Policy {
    /// Requests to an origin: many clients' fields on one connection, in a network where bytes are cheap.
    pub const TO_ORIGIN: Policy = Policy { capacity: 4096, is_huffman: false };
    /// Answers to a client: few fields repeat, there are many connections, and bytes are dear.
    pub const TO_CLIENT: Policy = Policy { capacity: 1024, is_huffman: true };
}

/// How a field is written where the tables do not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// It is put into the table if it repeats.
    Index,
    /// It is a value of one message, and would only push others out.
    Pass,
    /// It is a secret that others on the connection could guess by the length of a block (RFC 7541 §7.1.3): no table
    /// has it, nor any behind the next hop.
    Hide,
}

/// A secret that is longer cannot be guessed as a whole, and nothing shows that a part of it was right.
const GUESSABLE: usize = 20;

/// How to treat a field; `name`: the first index of its name in the static table, or 0.
#[inline]
pub(super) fn treat(name: usize, field: &Field<'_>) -> Treatment {
    if field.is_sensitive {
        return Treatment::Hide;
    }
    match TREATMENTS[name] {
        Treatment::Hide if name == COOKIE && field.value.len() >= GUESSABLE => Treatment::Index,
        treatment => treatment,
    }
}

const COOKIE: usize = 32;

/// By a name's first index. A field whose name is not in the static table is indexed if it repeats.
static TREATMENTS: [Treatment; super::static_table::LEN + 1] = {
    let mut treatments = [Treatment::Index; super::static_table::LEN + 1];
    // :path, age, content-length, content-location, content-range, date, etag, expires, if-match, if-modified-since,
    // if-none-match, if-range, if-unmodified-since, last-modified, location, range, retry-after, set-cookie.
    let pass = [4, 21, 28, 29, 30, 33, 34, 36, 39, 40, 41, 42, 43, 44, 46, 50, 53, 55];
    let mut i = 0;
    while i < pass.len() {
        treatments[pass[i]] = Treatment::Pass;
        i += 1;
    }
    // authorization, cookie, proxy-authorization.
    let hide = [23, COOKIE, 49];
    let mut i = 0;
    while i < hide.len() {
        treatments[hide[i]] = Treatment::Hide;
        i += 1;
    }
    treatments
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpack::static_table::find_name;

    #[test]
    fn secrets_are_hidden_and_single_values_pass() {
        for (name, value, expected) in [
            ("authorization", "Basic Zm9vOmJhcmJhemJhcmJheg==", Treatment::Hide),
            ("proxy-authorization", "x", Treatment::Hide),
            ("cookie", "a=1234567890123456", Treatment::Hide),
            ("cookie", "a=12345678901234567", Treatment::Hide),
            ("cookie", "a=123456789012345678", Treatment::Index),
            ("set-cookie", "a=123456789012345678901234567890", Treatment::Pass),
            (":path", "/a", Treatment::Pass),
            ("age", "1", Treatment::Pass),
            ("content-length", "1", Treatment::Pass),
            ("date", "x", Treatment::Pass),
            ("etag", "x", Treatment::Pass),
            ("if-none-match", "x", Treatment::Pass),
            ("location", "/", Treatment::Pass),
            (":authority", "a", Treatment::Index),
            ("user-agent", "a", Treatment::Index),
            ("server", "a", Treatment::Index),
            ("x-other", "a", Treatment::Index),
        ] {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            let treatment = treat(find_name(name), &Field { name, value, is_sensitive: false });
            assert_eq!(treatment, expected, "{}: {}", name.escape_ascii(), value.escape_ascii());
            assert_eq!(treat(find_name(name), &Field { name, value, is_sensitive: true }), Treatment::Hide);
        }
    }
}
