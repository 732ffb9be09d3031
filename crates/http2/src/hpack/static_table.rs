//! The static table (RFC 7541 appendix A), and where a field is in it.

/// The fields by their index, which begins at 1.
#[rustfmt::skip]
static FIELDS: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// The number of fields: the index of the last one.
pub(super) const LEN: usize = FIELDS.len();

/// Places by [`slot`]: the index of the first field with such a name, 0 for none.
static SLOTS: [u8; 256] = {
    let mut slots = [0; 256];
    let mut i = FIELDS.len();
    while i > 0 {
        slots[slot(FIELDS[i - 1].0.as_bytes())] = i as u8;
        i -= 1;
    }
    slots
};

/// A number of a name that is not empty. No two names of the table share one: the factors were chosen for that.
const fn slot(name: &[u8]) -> usize {
    let (first, last) = (name[0] as usize, name[name.len() - 1] as usize);
    (2 * first + last + 25 * name.len()) & 255
}

/// The field of an index from 1 on.
#[inline]
pub(super) fn get(index: usize) -> Option<(&'static [u8], &'static [u8])> {
    let (name, value) = FIELDS.get(index.wrapping_sub(1))?;
    Some((name.as_bytes(), value.as_bytes()))
}

/// The first index of a name; 0 if it is not in the table.
#[inline]
pub(super) fn find_name(name: &[u8]) -> usize {
    if name.is_empty() {
        return 0;
    }
    let index = usize::from(SLOTS[slot(name)]);
    match get(index) {
        Some((known, _)) if known == name => index,
        _ => 0,
    }
}

/// The index of a field whose name has this first index.
#[inline]
pub(super) fn find_value(name: usize, value: &[u8]) -> Option<usize> {
    let index = match (name, value) {
        (2, b"GET") => 2,
        (2, b"POST") => 3,
        (4, b"/") => 4,
        (4, b"/index.html") => 5,
        (6, b"http") => 6,
        (6, b"https") => 7,
        (8, b"200") => 8,
        (8, b"204") => 9,
        (8, b"206") => 10,
        (8, b"304") => 11,
        (8, b"400") => 12,
        (8, b"404") => 13,
        (8, b"500") => 14,
        (16, b"gzip, deflate") => 16,
        _ => return None,
    };
    Some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_found() {
        for index in 1..=LEN {
            let (name, value) = get(index).expect("within the table");
            let first = (1..).find(|&i| get(i).is_some_and(|(n, _)| n == name)).expect("a name");
            assert_eq!(find_name(name), first);
            let expected = (!value.is_empty()).then_some(index);
            assert_eq!(find_value(first, value), expected);
            assert_eq!(find_value(first, b"none"), None);
        }
        assert_eq!((get(0), get(LEN + 1)), (None, None));
    }

    #[test]
    fn other_names_are_not() {
        for name in [
            "",
            ":",
            "vi",
            "vib",
            "hosts",
            "Host",
            ":authorita",
            "x-forwarded-for",
            "access-control-allow-origi",
        ] {
            assert_eq!(find_name(name.as_bytes()), 0, "{name}");
        }
    }
}
