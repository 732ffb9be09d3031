//! Classes of bytes, as tables.

pub(crate) const TOKEN: u8 = 1;
/// Allowed in a target.
pub(crate) const URI: u8 = 2;
const VALUE: u8 = 4;
const HOST: u8 = 8;
const HEX: u8 = 16;
/// Allowed in a target's query, but not in its path.
pub(crate) const QUERY_ONLY: u8 = 32;
pub(crate) const PERCENT: u8 = 64;
pub(crate) const QUERY: u8 = 128;

static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        let alnum = b.is_ascii_alphanumeric();
        if alnum || among(b, b"!#$%&'*+-.^_`|~") {
            class[i] |= TOKEN;
        }
        if alnum || among(b, b"-._~:/?@!$&'()*+,;=%") || among(b, b"[]|^") {
            class[i] |= URI;
        }
        if among(b, b"{}\\`") {
            class[i] |= URI | QUERY_ONLY;
        }
        if b == b'\t' || (b >= b' ' && b != 0x7f) {
            class[i] |= VALUE;
        }
        if alnum || among(b, b"-._~!$&'()*+;=%") {
            class[i] |= HOST;
        }
        if b.is_ascii_hexdigit() {
            class[i] |= HEX;
        }
        if b == b'%' {
            class[i] |= PERCENT;
        }
        if b == b'?' {
            class[i] |= QUERY;
        }
        i += 1;
    }
    class
};

const fn among(b: u8, set: &[u8]) -> bool {
    let mut i = 0;
    while i < set.len() {
        if set[i] == b {
            return true;
        }
        i += 1;
    }
    false
}

/// All classes of a byte.
pub(crate) fn class(b: u8) -> u8 {
    CLASS[usize::from(b)]
}

fn is(b: u8, of: u8) -> bool {
    class(b) & of != 0
}

/// A byte of a token, such as a field's name (RFC 9110 §5.6.2: tchar).
pub const fn is_token(b: u8) -> bool {
    CLASS[b as usize] & TOKEN != 0
}

/// What a target may have: of RFC 3986 §2 the unreserved bytes, the reserved ones without `#`, and the percent sign;
/// and what browsers send unescaped (WHATWG URL, percent-encode sets): `[` `]` `|` `^` anywhere, `{` `}` `\` and the
/// backtick ([`QUERY_ONLY`]) in a query.
pub(crate) fn is_uri(b: u8) -> bool {
    is(b, URI)
}

/// A byte of a field's value (RFC 9110 §5.5): visible, blank, tab or above 0x7f.
pub const fn is_value(b: u8) -> bool {
    CLASS[b as usize] & VALUE != 0
}

/// RFC 3986 §3.2.2: a registered name's bytes, without the comma, which would make a list of hosts.
pub(crate) fn is_host(b: u8) -> bool {
    is(b, HOST)
}

/// A hexadecimal digit.
pub(crate) fn is_hex(b: u8) -> bool {
    is(b, HEX)
}

/// RFC 9110 §5.6.4: qdtext.
pub(crate) fn is_quoted(b: u8) -> bool {
    is_value(b) && b != b'"' && b != b'\\'
}

/// A name's byte as names are compared: lower case, and `_` as `-` (what a CGI-like origin makes of both).
pub(crate) fn folded(b: u8) -> u8 {
    FOLDED[usize::from(b)]
}

static FOLDED: [u8; 256] = {
    let mut folded = [0; 256];
    let mut i = 0;
    while i < 256 {
        folded[i] = if i as u8 == b'_' { b'-' } else { (i as u8).to_ascii_lowercase() };
        i += 1;
    }
    folded
};

/// Trims blanks and tabs (RFC 9110 §5.6.3: OWS).
pub(crate) fn trim(mut v: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = v {
        v = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = v {
        v = rest;
    }
    v
}

/// The elements of a comma-separated list, trimmed, empty ones left out (RFC 9110 §5.6.1). For tokens: quotes have no
/// meaning.
pub(crate) fn elements(v: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    v.split(|&b| b == b',').map(trim).filter(|e| !e.is_empty())
}

/// A decimal number of digits only; `None` for anything else and from 10^18 on.
pub(crate) fn decimal(v: &[u8]) -> Option<u64> {
    if v.is_empty() || v.len() > 18 {
        return None;
    }
    v.iter().try_fold(0u64, |n, &b| b.is_ascii_digit().then(|| n * 10 + u64::from(b - b'0')))
}
