//! Bytes as text: one line each, `\r`, `\n`, `\t`, `\0`, `\\`, `\xHH`, and `\{text*times}` for many alike.

/// The bytes that a text represents; its own line ends are ignored.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' => {}
            '\\' => {
                let kind = rest.chars().next().expect("something behind a backslash");
                rest = &rest[1..];
                match kind {
                    'r' => out.push(b'\r'),
                    'n' => out.push(b'\n'),
                    't' => out.push(b'\t'),
                    '0' => out.push(0),
                    '\\' => out.push(b'\\'),
                    'x' => {
                        out.push(u8::from_str_radix(&rest[..2], 16).expect("two hexadecimal digits"));
                        rest = &rest[2..];
                    }
                    '{' => {
                        let (inner, after) = rest.split_once('}').expect("a closing brace");
                        let (what, times) = inner.rsplit_once('*').expect("text*times");
                        for i in 0..times.parse().expect("a number") {
                            out.extend_from_slice(&unescape(&what.replace("%i", &format!("{i}"))));
                        }
                        rest = after;
                    }
                    _ => panic!("\\{kind} means nothing"),
                }
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out
}

/// The text of bytes, a new line after each LF. More than 60 equal bytes are written `\{x*n}`.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut i = 0;
    while i < bytes.len() {
        let b = bytes[i];
        let run = bytes[i..].iter().take_while(|&&x| x == b).count();
        if run > 60 && b.is_ascii_alphanumeric() {
            out.push_str(&format!("\\{{{}*{run}}}", b as char));
            i += run;
            continue;
        }
        match b {
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n\n"),
            b'\t' => out.push_str("\\t"),
            0 => out.push_str("\\0"),
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' => out.push(b as char),
            b => out.push_str(&format!("\\x{b:02x}")),
        }
        i += 1;
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out
}
