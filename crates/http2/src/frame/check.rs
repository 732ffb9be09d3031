//! What is wrong with a frame by its head alone (RFC 9113 §6). All of it ends the connection: what the frame would have
//! changed is not known.

use super::{FrameHead, PAYLOAD, flag, kind};
use crate::error::ConnectionError;

/// Checks a frame's head. `block`: the stream whose block of fields is not over; only its CONTINUATION may come (RFC
/// 9113 §4.3).
pub(crate) fn check(head: FrameHead, block: Option<u32>) -> Result<(), ConnectionError> {
    if head.length > PAYLOAD {
        return Err(ConnectionError::size("A frame is longer than 16384 bytes (RFC 9113 section 4.2)"));
    }
    match block {
        Some(stream) if head.kind != kind::CONTINUATION || head.stream != stream => {
            return Err(ConnectionError::protocol(
                "A block of fields is interrupted by another frame (RFC 9113 section 4.3)",
            ));
        }
        None if head.kind == kind::CONTINUATION => {
            return Err(ConnectionError::protocol(
                "A CONTINUATION frame continues nothing (RFC 9113 section 6.10)",
            ));
        }
        _ => {}
    }
    check_stream(head)?;
    check_length(head)
}

/// Some kinds belong to a stream, others to the connection.
fn check_stream(head: FrameHead) -> Result<(), ConnectionError> {
    let text = match (head.kind, head.stream) {
        (kind::DATA, 0) => "A DATA frame has no stream (RFC 9113 section 6.1)",
        (kind::HEADERS, 0) => "A HEADERS frame has no stream (RFC 9113 section 6.2)",
        (kind::PRIORITY, 0) => "A PRIORITY frame has no stream (RFC 9113 section 6.3)",
        (kind::RST_STREAM, 0) => "A RST_STREAM frame has no stream (RFC 9113 section 6.4)",
        (kind::SETTINGS, 1..) => "A SETTINGS frame has a stream (RFC 9113 section 6.5)",
        (kind::PING, 1..) => "A PING frame has a stream (RFC 9113 section 6.7)",
        (kind::GOAWAY, 1..) => "A GOAWAY frame has a stream (RFC 9113 section 6.8)",
        (kind::PRIORITY_UPDATE, 1..) => "A PRIORITY_UPDATE frame has a stream (RFC 9218 section 7.1)",
        (kind::PUSH_PROMISE, _) => "A PUSH_PROMISE frame came although push is off (RFC 9113 section 8.4)",
        _ => return Ok(()),
    };
    Err(ConnectionError::protocol(text))
}

/// Some kinds have a fixed length.
fn check_length(head: FrameHead) -> Result<(), ConnectionError> {
    let is_wrong = match head.kind {
        kind::RST_STREAM | kind::WINDOW_UPDATE => head.length != 4,
        kind::PING => head.length != 8,
        kind::SETTINGS if head.has(flag::ACK) => head.length != 0,
        kind::SETTINGS => !head.length.is_multiple_of(6),
        kind::GOAWAY => head.length < 8,
        kind::PRIORITY_UPDATE => head.length < 4,
        kind::DATA => head.has(flag::PADDED) && head.length == 0,
        kind::HEADERS => {
            let padding = u32::from(head.has(flag::PADDED));
            head.length < padding + if head.has(flag::PRIORITY) { 5 } else { 0 }
        }
        _ => false,
    };
    if !is_wrong {
        return Ok(());
    }
    Err(ConnectionError::size(match head.kind {
        kind::RST_STREAM => "A RST_STREAM frame is not 4 bytes long (RFC 9113 section 6.4)",
        kind::WINDOW_UPDATE => "A WINDOW_UPDATE frame is not 4 bytes long (RFC 9113 section 6.9)",
        kind::PING => "A PING frame is not 8 bytes long (RFC 9113 section 6.7)",
        kind::SETTINGS => "A SETTINGS frame has a wrong length (RFC 9113 section 6.5)",
        kind::GOAWAY => "A GOAWAY frame is shorter than 8 bytes (RFC 9113 section 6.8)",
        kind::PRIORITY_UPDATE => "A PRIORITY_UPDATE frame is shorter than 4 bytes (RFC 9218 section 7.1)",
        _ => "A frame is shorter than what its flags announce (RFC 9113 section 4.2)",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn verdict(kind: u8, flags: u8, stream: u32, length: u32) -> ErrorCode {
        let head = FrameHead { length, kind, flags, stream };
        check(head, None).err().map_or(ErrorCode::NO_ERROR, |e| e.code)
    }

    #[test]
    fn lengths_and_streams_by_kind() {
        let (good, bad, size) = (ErrorCode::NO_ERROR, ErrorCode::PROTOCOL_ERROR, ErrorCode::FRAME_SIZE_ERROR);
        for (kind, flags, stream, length, expected) in [
            (kind::DATA, 0, 1, 16_384, good),
            (kind::DATA, 0, 1, 16_385, size),
            (kind::DATA, 0, 0, 1, bad),
            (kind::DATA, flag::PADDED, 1, 0, size),
            (kind::HEADERS, 0, 0, 1, bad),
            (kind::HEADERS, flag::PADDED | flag::PRIORITY, 1, 5, size),
            (kind::HEADERS, flag::PADDED | flag::PRIORITY, 1, 6, good),
            (kind::PRIORITY, 0, 0, 5, bad),
            (kind::PRIORITY, 0, 1, 4, good),
            (kind::RST_STREAM, 0, 0, 4, bad),
            (kind::RST_STREAM, 0, 1, 5, size),
            (kind::SETTINGS, 0, 1, 6, bad),
            (kind::SETTINGS, 0, 0, 7, size),
            (kind::SETTINGS, flag::ACK, 0, 6, size),
            (kind::PUSH_PROMISE, 0, 1, 6, bad),
            (kind::PING, 0, 1, 8, bad),
            (kind::PING, 0, 0, 6, size),
            (kind::GOAWAY, 0, 1, 8, bad),
            (kind::GOAWAY, 0, 0, 7, size),
            (kind::WINDOW_UPDATE, 0, 0, 3, size),
            (kind::CONTINUATION, 0, 1, 3, bad),
            (kind::PRIORITY_UPDATE, 0, 3, 8, bad),
            (kind::PRIORITY_UPDATE, 0, 0, 3, size),
            (0xa, 0xff, 7, 100, good),
            (0xff, 0xff, 0, 100, good),
        ] {
            assert_eq!(verdict(kind, flags, stream, length), expected, "{kind} {flags} {stream} {length}");
        }
    }

    #[test]
    fn a_block_is_not_interrupted() {
        for (kind, stream, is_good) in [
            (kind::CONTINUATION, 1, true),
            (kind::CONTINUATION, 3, false),
            (kind::DATA, 1, false),
            (0xf, 1, false),
        ] {
            let head = FrameHead { length: 1, kind, flags: 0, stream };
            assert_eq!(check(head, Some(1)).is_ok(), is_good, "{kind} {stream}");
        }
    }
}
