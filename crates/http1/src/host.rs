//! A host with an optional port (RFC 9110 §7.2, RFC 3986 §3.2.2).

use crate::byte::{is_hex, is_host};
use std::net::Ipv6Addr;

/// Whether it is `uri-host [ ":" port ]`, without user information, list or blanks, and not empty.
pub(crate) fn is_authority(text: &[u8]) -> bool {
    split(text).is_some()
}

/// Host and port (digits, perhaps none) of a valid authority.
pub(crate) fn split(text: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let (host, rest) = if text.first() == Some(&b'[') {
        let end = text.iter().position(|&b| b == b']')?;
        let address = std::str::from_utf8(&text[1..end]).ok()?;
        address.parse::<Ipv6Addr>().ok()?;
        text.split_at(end + 1)
    } else {
        let mut percent = false;
        let mut end = 0;
        while let Some(&b) = text.get(end)
            && is_host(b)
        {
            percent |= b == b'%';
            end += 1;
        }
        if end == 0 || percent && !percents(&text[..end]) {
            return None;
        }
        text.split_at(end)
    };
    match rest {
        [] => Some((host, None)),
        [b':', port @ ..] => is_port(port).then_some((host, Some(port))),
        _ => None,
    }
}

fn is_port(port: &[u8]) -> bool {
    port.len() <= 5
        && port.iter().all(u8::is_ascii_digit)
        && port.iter().fold(0, |n, b| n * 10 + u32::from(b - b'0')) <= 65535
}

/// Whether every percent sign is followed by two hexadecimal digits.
pub(crate) fn percents(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(i) = rest.iter().position(|&b| b == b'%') {
        match rest.get(i + 1..i + 3) {
            Some(&[a, b]) if is_hex(a) && is_hex(b) => rest = &rest[i + 3..],
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for good in [
            "h",
            "h.example",
            "h.example.:80",
            "1.2.3.4",
            "[::1]",
            "[::1]:443",
            "h:",
            "a_b",
            "%41",
            "h:65535",
        ] {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in [
            "", ":80", "u@h", "h/x", "h,i", "h i", "h:8x", "h:65536", "h:000080", "[::1", "[::g]", "::1",
            "h:1:2", "%4", "[::1]x", "h\u{e9}", "h\\x", "h?x", "h#x", "\"h\"", "[v1.x]", "h:-1",
        ] {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
    }
}
