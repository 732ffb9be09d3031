//! Writing field lines: kept ones in runs, new ones one by one.

use crate::block::Block;
use crate::edits::Edits;
use crate::name::{HOP, Name, Names, classify};
use std::fmt::Write as _;
use std::net::IpAddr;

/// Appends `name: value`.
pub(crate) fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends the lines of a block that are neither dropped by name nor taken out nor edited away. Neighbours in
/// canonical form are copied in one piece.
pub(crate) fn kept(block: &Block, drop: Names, edits: &Edits, out: &mut Vec<u8>) {
    let edited = edits.any();
    let mut from = 0;
    let mut to = 0;
    for line in &block.lines {
        let gone = drop.has(line.known) || line.ends_here || edited && edits.drops(block.name(line));
        if !gone && line.canonical {
            if to != line.name {
                out.extend_from_slice(block.slice(from, to));
                from = line.name;
            }
            to = line.end;
            continue;
        }
        if !gone {
            out.extend_from_slice(block.slice(from, to));
            (from, to) = (0, 0);
            field(out, block.name(line), block.value(line));
        }
    }
    out.extend_from_slice(block.slice(from, to));
}

/// Appends the fields that edits set, but none of framing or of this hop, nor Host (which has its own place).
pub(crate) fn set(edits: &Edits, out: &mut Vec<u8>) {
    const NOT: Names = HOP.with(Names::new(&[Name::ContentLength, Name::Host]));
    for (name, value) in &edits.set {
        if !NOT.has(classify(name).0) {
            field(out, name, value);
        }
    }
}

/// Appends a number in decimal digits.
pub(crate) fn number(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends an address: IPv4 quickly, IPv6 in its canonical text.
pub(crate) fn address(out: &mut Vec<u8>, address: IpAddr) {
    match address.to_canonical() {
        IpAddr::V4(a) => {
            let mut text = [0; 16];
            let mut at = 0;
            for octet in a.octets() {
                if octet >= 100 {
                    text[at] = b'0' + octet / 100;
                    at += 1;
                }
                if octet >= 10 {
                    text[at] = b'0' + octet / 10 % 10;
                    at += 1;
                }
                text[at] = b'0' + octet % 10;
                text[at + 1] = b'.';
                at += 2;
            }
            out.extend_from_slice(&text[..at - 1]);
        }
        IpAddr::V6(a) => {
            let mut text = Text(out);
            // Writing into a Vec cannot fail.
            let _ = write!(text, "{a}");
        }
    }
}

struct Text<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for Text<'_> {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        self.0.extend_from_slice(s.as_bytes());
        Ok(())
    }
}
