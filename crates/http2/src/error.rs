//! Codes of RST_STREAM and GOAWAY (RFC 9113 §7), and why a connection ends.

use std::fmt;

/// An error code. Unknown ones are lawful and mean nothing more than that something went wrong (RFC 9113 §7).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

/// The names of RFC 9113 §7, by number.
const NAMES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

impl ErrorCode {
    /// Nothing is wrong.
    pub const NO_ERROR: ErrorCode = ErrorCode(0);
    /// The peer broke a rule for which there is no code of its own.
    pub const PROTOCOL_ERROR: ErrorCode = ErrorCode(1);
    /// The sender failed.
    pub const INTERNAL_ERROR: ErrorCode = ErrorCode(2);
    /// The peer sent more than a window allows.
    pub const FLOW_CONTROL_ERROR: ErrorCode = ErrorCode(3);
    /// The peer did not acknowledge SETTINGS in time.
    pub const SETTINGS_TIMEOUT: ErrorCode = ErrorCode(4);
    /// A frame came on a stream that the peer had ended.
    pub const STREAM_CLOSED: ErrorCode = ErrorCode(5);
    /// A frame has a length that its kind may not have.
    pub const FRAME_SIZE_ERROR: ErrorCode = ErrorCode(6);
    /// The stream was not processed: its request may be repeated.
    pub const REFUSED_STREAM: ErrorCode = ErrorCode(7);
    /// The stream is not wanted any more.
    pub const CANCEL: ErrorCode = ErrorCode(8);
    /// A block of fields cannot be decoded.
    pub const COMPRESSION_ERROR: ErrorCode = ErrorCode(9);
    /// The connection behind a CONNECT broke.
    pub const CONNECT_ERROR: ErrorCode = ErrorCode(10);
    /// The peer sends too much that brings nothing.
    pub const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(11);
    /// The security of the connection does not suffice.
    pub const INADEQUATE_SECURITY: ErrorCode = ErrorCode(12);
    /// The request is to be made by HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: ErrorCode = ErrorCode(13);

    /// Its name in RFC 9113 §7; `None`: it has none there.
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(self.0 as usize).copied()
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

/// Why a connection ends: what the peer did, for GOAWAY's debug data and the log (RFC 9113 §5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    /// The code of GOAWAY.
    pub code: ErrorCode,
    /// One sentence without a full stop.
    pub text: &'static str,
}

impl ConnectionError {
    pub(crate) const fn protocol(text: &'static str) -> ConnectionError {
        ConnectionError { code: ErrorCode::PROTOCOL_ERROR, text }
    }

    pub(crate) const fn size(text: &'static str) -> ConnectionError {
        ConnectionError { code: ErrorCode::FRAME_SIZE_ERROR, text }
    }

    pub(crate) const fn flow(text: &'static str) -> ConnectionError {
        ConnectionError { code: ErrorCode::FLOW_CONTROL_ERROR, text }
    }

    /// Short and stable, for metrics, as [`crate::Malformed::name`].
    pub fn rule(&self) -> &'static str {
        match self.code {
            ErrorCode::FLOW_CONTROL_ERROR => "connection-window",
            ErrorCode::SETTINGS_TIMEOUT => "settings-late",
            ErrorCode::FRAME_SIZE_ERROR => "frame-size",
            ErrorCode::COMPRESSION_ERROR => "compression",
            ErrorCode::ENHANCE_YOUR_CALM => "flood",
            _ => "connection-protocol",
        }
    }

    pub(crate) const fn flood(text: &'static str) -> ConnectionError {
        ConnectionError { code: ErrorCode::ENHANCE_YOUR_CALM, text }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.code)
    }
}

impl std::error::Error for ConnectionError {}
