//! Frames as they are written.

use super::{FrameHead, HEAD, PREFACE, flag, kind};
use crate::error::ErrorCode;

/// The stream number of frames that belong to the connection.
pub(crate) const CONNECTION_FRAME: u32 = 0;

/// Writes a frame's head.
pub(crate) fn head(head: FrameHead, out: &mut Vec<u8>) {
    out.extend_from_slice(&encode(head));
}

fn encode(head: FrameHead) -> [u8; HEAD] {
    let [_, a, b, c] = head.length.to_be_bytes();
    let [d, e, f, g] = head.stream.to_be_bytes();
    [a, b, c, head.kind, head.flags, d, e, f, g]
}

fn fixed(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    head(FrameHead { length: payload.len() as u32, kind, flags, stream }, out);
    out.extend_from_slice(payload);
}

/// Writes a client's preface.
pub(crate) fn preface(out: &mut Vec<u8>) {
    out.extend_from_slice(PREFACE);
}

/// Writes SETTINGS (RFC 9113 §6.5).
pub(crate) fn settings(parameters: &[(u16, u32)], out: &mut Vec<u8>) {
    let length = parameters.len() as u32 * 6;
    head(FrameHead { length, kind: kind::SETTINGS, flags: 0, stream: CONNECTION_FRAME }, out);
    for (id, value) in parameters {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Acknowledges SETTINGS.
pub(crate) fn settings_ack(out: &mut Vec<u8>) {
    fixed(kind::SETTINGS, flag::ACK, CONNECTION_FRAME, &[], out);
}

/// Writes PING, or its answer (RFC 9113 §6.7).
pub(crate) fn ping(payload: [u8; 8], is_ack: bool, out: &mut Vec<u8>) {
    fixed(kind::PING, if is_ack { flag::ACK } else { 0 }, CONNECTION_FRAME, &payload, out);
}

/// Writes RST_STREAM (RFC 9113 §6.4).
pub(crate) fn reset(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    fixed(kind::RST_STREAM, 0, stream, &code.0.to_be_bytes(), out);
}

/// Writes WINDOW_UPDATE (RFC 9113 §6.9).
pub(crate) fn window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    fixed(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes(), out);
}

/// Writes GOAWAY (RFC 9113 §6.8).
pub(crate) fn goaway(last: u32, code: ErrorCode, debug: &str, out: &mut Vec<u8>) {
    let length = 8 + debug.len() as u32;
    head(FrameHead { length, kind: kind::GOAWAY, flags: 0, stream: CONNECTION_FRAME }, out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(debug.as_bytes());
}

/// Completes a block of fields that was written behind the room for its frame's head, at `begin`: sets the head, and
/// divides what is longer than a frame into CONTINUATION (RFC 9113 §6.10).
pub(crate) fn split_block(begin: usize, stream: u32, is_end: bool, most: u32, out: &mut Vec<u8>) {
    let most = most as usize;
    let length = out.len() - begin - HEAD;
    let end = if is_end { flag::END_STREAM } else { 0 };
    if length <= most {
        let flags = end | flag::END_HEADERS;
        let head = FrameHead { length: length as u32, kind: kind::HEADERS, flags, stream };
        out[begin..begin + HEAD].copy_from_slice(&encode(head));
        return;
    }
    // Rare: heads of more than 16 KiB. The pieces move apart, the last first.
    let more = (length - 1) / most;
    out.resize(out.len() + more * HEAD, 0);
    for piece in (0..=more).rev() {
        let from = begin + HEAD + piece * most;
        let size = most.min(length - piece * most);
        let to = from + piece * HEAD;
        out.copy_within(from..from + size, to);
        let (kind, first) = if piece == 0 { (kind::HEADERS, end) } else { (kind::CONTINUATION, 0) };
        let flags = first | if piece == more { flag::END_HEADERS } else { 0 };
        let head = FrameHead { length: size as u32, kind, flags, stream };
        out[to - HEAD..to].copy_from_slice(&encode(head));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = FrameHead { length: 0x01_02_03, kind: 9, flags: 0x25, stream: 0x7fff_fff1 };
        assert_eq!(FrameHead::parse(encode(head)), head);
        let mut reserved = encode(head);
        reserved[5] |= 0x80;
        assert_eq!(FrameHead::parse(reserved), head);
    }

    #[test]
    fn long_blocks_are_divided() {
        for length in [0, 1, 9, 10, 11, 20, 21, 35] {
            let block: Vec<u8> = (0..length).collect();
            let mut out = b"before".to_vec();
            out.extend_from_slice(&[0; HEAD]);
            out.extend_from_slice(&block);
            split_block(6, 5, true, 10, &mut out);
            let (mut rest, mut read, mut heads) = (&out[6..], Vec::new(), Vec::new());
            while let Some((head, tail)) = rest.split_first_chunk::<HEAD>() {
                let head = FrameHead::parse(*head);
                assert!(head.length <= 10 && head.stream == 5);
                read.extend_from_slice(&tail[..head.length as usize]);
                rest = &tail[head.length as usize..];
                heads.push((head.kind, head.flags));
            }
            assert_eq!((read, &out[..6]), (block, &b"before"[..]));
            assert!(heads[0].0 == kind::HEADERS && heads[0].1 & flag::END_STREAM != 0);
            assert!(heads[1..].iter().all(|(kind, _)| *kind == kind::CONTINUATION));
            let ends: Vec<_> = heads.iter().filter(|(_, flags)| flags & flag::END_HEADERS != 0).collect();
            assert_eq!((ends.len(), heads.last()), (1, ends.first().copied()));
        }
    }
}
