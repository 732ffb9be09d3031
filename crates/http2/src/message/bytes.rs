//! Classes of bytes: those of `weir_http1`, less the upper-case letters in names (RFC 9113 §8.2).

use crate::malformed::Id;

const TOKEN: u8 = 1;
const UPPER: u8 = 2;
const CONTROL: u8 = 4;

static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut i = 0;
    while i < 256 {
        let byte = i as u8;
        class[i] = if weir_http1::is_token(byte) { TOKEN } else { 0 }
            | if byte.is_ascii_uppercase() { UPPER } else { 0 }
            | if weir_http1::is_value(byte) { 0 } else { CONTROL };
        i += 1;
    }
    class
};

/// Checks a name (RFC 9113 §8.2.1).
pub(crate) fn check_name(name: &[u8]) -> Result<(), Id> {
    if name.is_empty() {
        return Err(Id::NameEmpty);
    }
    let (all, any) = name.iter().fold((TOKEN, 0), |(all, any), byte| {
        let class = CLASS[usize::from(*byte)];
        (all & class, any | class)
    });
    match () {
        () if all & TOKEN == 0 => Err(Id::NameInvalid),
        () if any & UPPER != 0 => Err(Id::NameUpper),
        () => Ok(()),
    }
}

/// Checks a value (RFC 9110 §5.5, RFC 9113 §8.2.1).
pub(crate) fn check_value(value: &[u8]) -> Result<(), Id> {
    if value.iter().fold(0, |any, byte| any | CLASS[usize::from(*byte)]) & CONTROL != 0 {
        return Err(Id::ValueInvalid);
    }
    match value {
        [b' ' | b'\t', ..] | [.., b' ' | b'\t'] => Err(Id::ValueBlank),
        _ => Ok(()),
    }
}

/// Whether it is a token (RFC 9110 §5.6.2).
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| CLASS[usize::from(*byte)] & TOKEN != 0)
}

/// A decimal number in its one form: no sign, no leading zero, below 10^18.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    match text {
        [] | [b'0', _, ..] => None,
        _ if text.len() > 18 => None,
        _ => text.iter().try_fold(0u64, |n, b| b.is_ascii_digit().then(|| n * 10 + u64::from(b - b'0'))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http1::{Limits, Request};

    /// The verdict of HTTP/1.1's parser on a field.
    fn accepts(name: &[u8], value: &[u8]) -> bool {
        let mut head = b"GET / HTTP/1.1\r\nHost: h\r\n".to_vec();
        for part in [name, b":", value, b"\r\n\r\n"] {
            head.extend_from_slice(part);
        }
        Request::default().parse(&head, &Limits::default()).is_ok()
    }

    #[test]
    fn every_byte_is_judged_as_in_http1() {
        for byte in 0..=255u8 {
            let name = [b'a', byte, b'a'];
            let expected = accepts(&name, b"v") && !byte.is_ascii_uppercase();
            // A colon ends the name in HTTP/1.1.
            assert_eq!(check_name(&name).is_ok(), expected && byte != b':', "{byte:#x} in a name");
            assert_eq!(check_value(&name).is_ok(), accepts(b"a", &name), "{byte:#x} in a value");
        }
    }

    #[test]
    fn names_values_and_numbers() {
        for (name, expected) in [
            ("", Err(Id::NameEmpty)),
            ("a b", Err(Id::NameInvalid)),
            ("a:", Err(Id::NameInvalid)),
            ("A b", Err(Id::NameInvalid)),
            ("aB", Err(Id::NameUpper)),
            ("a_b", Ok(())),
        ] {
            assert_eq!(check_name(name.as_bytes()), expected, "{name}");
        }
        for (value, expected) in [
            ("", Ok(())),
            ("a b\tc\u{e9}", Ok(())),
            (" a", Err(Id::ValueBlank)),
            ("a\t", Err(Id::ValueBlank)),
            (" ", Err(Id::ValueBlank)),
            ("a\r", Err(Id::ValueInvalid)),
            ("a\0b", Err(Id::ValueInvalid)),
        ] {
            assert_eq!(check_value(value.as_bytes()), expected, "{value:?}");
        }
        for (text, number) in
            [("0", Some(0)), ("10", Some(10)), ("01", None), ("+1", None), ("1,1", None), ("", None)]
        {
            assert_eq!(decimal(text.as_bytes()), number, "{text}");
        }
    }
}
