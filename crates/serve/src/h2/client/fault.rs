//! What ends a connection to an origin beside its time: an error on either side of it, for the log.

use std::fmt;
use weir_http2::{ConnectionError, ErrorCode};

/// An error of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault<'a> {
    /// The origin broke a rule.
    Ours(ConnectionError),
    /// The origin said an error, with this text.
    Theirs(ErrorCode, &'a [u8]),
}

/// Takes the errors of a connection.
pub(crate) type Report = Box<dyn Fn(&Fault<'_>)>;

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Fault::Ours(error) => {
                write!(f, "weir ended the connection (HTTP/2): {error}, rule {}", error.rule())
            }
            Fault::Theirs(code, []) => write!(f, "GOAWAY (HTTP/2, {code}), without a reason"),
            Fault::Theirs(code, text) => {
                // Its own bytes must not end the line.
                write!(f, "GOAWAY (HTTP/2, {code}): \"{}\"", text.escape_ascii())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_origin_says_stays_on_its_line() {
        let said = Fault::Theirs(ErrorCode::ENHANCE_YOUR_CALM, b"too_many_pings\n\"\xff");
        let line = r#"GOAWAY (HTTP/2, ENHANCE_YOUR_CALM): "too_many_pings\n\"\xff""#;
        assert_eq!(said.to_string(), line);
        let nothing = Fault::Theirs(ErrorCode(0x99), b"");
        assert_eq!(nothing.to_string(), "GOAWAY (HTTP/2, 0x99), without a reason");
    }
}
