//! The table of what ends one stream: a malformed message (RFC 9113 §8.1.1), or a frame that breaks a rule of its stream
//! (§5.4.2). Nothing else on the connection is harmed by any of it.

use crate::error::ErrorCode;
use std::fmt;

/// Why a stream ends by its peer's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Malformed(Id);

impl Malformed {
    /// Short and stable, for logs and metrics: `name-upper`.
    pub fn name(self) -> &'static str {
        RULES[self.0 as usize].name
    }

    /// The status of an answer to such a request: 400 or 431.
    pub fn status(self) -> u16 {
        RULES[self.0 as usize].status
    }

    /// The code of RST_STREAM.
    pub fn code(self) -> ErrorCode {
        RULES[self.0 as usize].code
    }

    /// Where the rule is from.
    pub fn section(self) -> &'static str {
        RULES[self.0 as usize].section
    }

    /// What is wrong, one sentence without a full stop.
    pub fn text(self) -> &'static str {
        RULES[self.0 as usize].text
    }

    /// All of them, for documentation and metrics.
    pub fn all() -> impl Iterator<Item = Malformed> {
        IDS.iter().map(|id| Malformed(*id))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.text(), self.name(), self.section())
    }
}

impl std::error::Error for Malformed {}

impl From<Id> for Malformed {
    fn from(id: Id) -> Malformed {
        Malformed(id)
    }
}

struct Rule {
    name: &'static str,
    status: u16,
    code: ErrorCode,
    section: &'static str,
    text: &'static str,
}

/// Names a rule in the code. A rule that no code names is a warning of the compiler.
macro_rules! rules {
    ($($id:ident $name:literal $status:literal $code:ident $section:literal $text:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Id { $($id),* }

        const IDS: [Id; [$($name),*].len()] = [$(Id::$id),*];

        static RULES: [Rule; IDS.len()] = [$(Rule {
            name: $name, status: $status, code: ErrorCode::$code, section: $section, text: $text,
        }),*];
    };
}

rules! {
    // Names and values.
    NameEmpty "name-empty" 400 PROTOCOL_ERROR "RFC 9113 §8.2.1" "A field has no name";
    NameUpper "name-upper" 400 PROTOCOL_ERROR "RFC 9113 §8.2" "A field's name has an upper-case letter";
    NameInvalid "name-invalid" 400 PROTOCOL_ERROR "RFC 9113 §8.2.1" "A field's name is not a token";
    ValueInvalid "value-invalid" 400 PROTOCOL_ERROR "RFC 9110 §5.5" "A field's value has a control character";
    ValueBlank "value-blank" 400 PROTOCOL_ERROR "RFC 9113 §8.2.1" "A field's value begins or ends with a blank";
    ConnectionField "connection-field" 400 PROTOCOL_ERROR "RFC 9113 §8.2.2" "A field belongs to HTTP/1.1's connections";
    Te "te" 400 PROTOCOL_ERROR "RFC 9113 §8.2.2" "TE has another value than `trailers`";
    // How much there is.
    HeadTooLarge "head-too-large" 431 ENHANCE_YOUR_CALM "RFC 6585 §5" "The head is longer than the limit";
    TooManyFields "too-many-fields" 431 ENHANCE_YOUR_CALM "RFC 6585 §5" "There are more fields than the limit";
    TooManyInterims "too-many-interims" 400 ENHANCE_YOUR_CALM "RFC 9113 §10.5" "There are more interim answers than the limit";
    // Pseudo-fields.
    PseudoUnknown "pseudo-unknown" 400 PROTOCOL_ERROR "RFC 9113 §8.3" "A pseudo-field is unknown or does not belong to this message";
    PseudoTwice "pseudo-twice" 400 PROTOCOL_ERROR "RFC 9113 §8.3" "A pseudo-field occurs twice";
    PseudoLate "pseudo-late" 400 PROTOCOL_ERROR "RFC 9113 §8.3" "A pseudo-field follows other fields";
    PseudoInTrailers "pseudo-in-trailers" 400 PROTOCOL_ERROR "RFC 9113 §8.1" "There is a pseudo-field in trailers";
    PseudoMissing "pseudo-missing" 400 PROTOCOL_ERROR "RFC 9113 §8.3.1" "A pseudo-field that must be there is missing";
    PseudoOfConnect "pseudo-of-connect" 400 PROTOCOL_ERROR "RFC 9113 §8.5" "CONNECT has other pseudo-fields than :method and :authority";
    Protocol "protocol" 400 PROTOCOL_ERROR "RFC 8441 §4" ":protocol occurs without CONNECT, or was not offered";
    Method "method" 400 PROTOCOL_ERROR "RFC 9110 §9.1" "The method is not a token";
    Scheme "scheme" 400 PROTOCOL_ERROR "RFC 3986 §3.1" "The scheme is not one";
    Path "path" 400 PROTOCOL_ERROR "RFC 9113 §8.3.1" ":path is empty, or does not begin with a slash";
    Authority "authority" 400 PROTOCOL_ERROR "RFC 9113 §8.3.1" ":authority is empty or has user information";
    AuthorityDiffers "authority-differs" 400 PROTOCOL_ERROR "RFC 9113 §8.3.1" "Host and :authority name different authorities";
    HostTwice "host-twice" 400 PROTOCOL_ERROR "RFC 9112 §3.2" "There is more than one Host";
    Status "status" 400 PROTOCOL_ERROR "RFC 9113 §8.3.2" ":status is not a number from 100 to 999";
    Switching "switching" 400 PROTOCOL_ERROR "RFC 9113 §8.6" "101 does not exist in HTTP/2";
    // Bodies.
    LengthInvalid "length-invalid" 400 PROTOCOL_ERROR "RFC 9110 §8.6" "Content-Length is not one decimal number";
    LengthTwice "length-twice" 400 PROTOCOL_ERROR "RFC 9110 §8.6" "There is more than one Content-Length";
    LengthOfConnect "length-of-connect" 400 PROTOCOL_ERROR "RFC 9110 §9.3.6" "CONNECT has a Content-Length";
    BodyTooLong "body-too-long" 400 PROTOCOL_ERROR "RFC 9113 §8.1.1" "The body is longer than its Content-Length";
    BodyTooShort "body-too-short" 400 PROTOCOL_ERROR "RFC 9113 §8.1.1" "The body is shorter than its Content-Length";
    BodyForbidden "body-forbidden" 400 PROTOCOL_ERROR "RFC 9110 §6.4.1" "An answer has a body that may have none";
    DataBeforeHead "data-before-head" 400 PROTOCOL_ERROR "RFC 9113 §8.1" "DATA comes before the head";
    InterimEnds "interim-ends" 400 PROTOCOL_ERROR "RFC 9113 §8.1" "An interim answer ends the stream";
    HeadInTunnel "head-in-tunnel" 400 PROTOCOL_ERROR "RFC 9113 §8.5" "HEADERS come in the tunnel of a CONNECT";
    TrailersUnended "trailers-unended" 400 PROTOCOL_ERROR "RFC 9113 §8.1" "Trailers do not end the stream";
    // Frames.
    StreamClosed "stream-closed" 400 STREAM_CLOSED "RFC 9113 §5.1" "A frame comes after the end of its stream";
    WindowZero "window-zero" 400 PROTOCOL_ERROR "RFC 9113 §6.9" "A WINDOW_UPDATE gives nothing";
    WindowOverflow "window-overflow" 400 FLOW_CONTROL_ERROR "RFC 9113 §6.9.1" "A stream's window is above 2^31 - 1";
    WindowPassed "window-passed" 400 FLOW_CONTROL_ERROR "RFC 9113 §6.9.1" "DATA is longer than the stream's window";
    SelfDependency "self-dependency" 400 PROTOCOL_ERROR "RFC 7540 §5.3.1" "A stream depends on itself";
    PrioritySize "priority-size" 400 FRAME_SIZE_ERROR "RFC 9113 §6.3" "A PRIORITY frame is not 5 bytes long";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (i, rule) in RULES.iter().enumerate() {
            assert!(!RULES[..i].iter().any(|other| other.name == rule.name), "{}", rule.name);
            assert!(!rule.text.ends_with('.') && rule.section.starts_with("RFC "), "{}", rule.name);
            assert!(matches!(rule.status, 400 | 431));
        }
        assert_eq!(Malformed::all().count(), RULES.len());
    }
}
