//! The table of strictness: every reason for which a message is refused, with its status and its section.

use std::fmt;

/// One entry of the table of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Short and stable, for logs and metrics: `bare-lf`.
    pub name: &'static str,
    /// The status that a client receives; 502 for a message of an origin.
    pub status: u16,
    /// Where it comes from.
    pub section: &'static str,
    /// The error in the message, one sentence without a full stop.
    pub text: &'static str,
}

/// Why a message is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal(pub &'static Rule);

impl Refusal {
    /// The status of the answer: 4xx or 5xx; 502 for a response.
    pub fn status(self) -> u16 {
        self.0.status
    }

    /// The same fault of an origin's message: 502.
    #[cold]
    pub fn in_response(self) -> Refusal {
        RULES.iter().position(|r| r.name == self.0.name).map_or(self, |i| Refusal(&OF_RESPONSES[i]))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.0.text, self.0.name, self.0.section)
    }
}

impl std::error::Error for Refusal {}

/// Names a rule in the code. A rule that no code names is a warning of the compiler.
macro_rules! rules {
    ($($id:ident $name:literal $status:literal $section:literal $text:literal;)*) => {
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Id { $($id),* }

        /// Everything that is refused, and why. The code refuses for no other reason.
        pub static RULES: [Rule; [$($name),*].len()] =
            [$(Rule { name: $name, status: $status, section: $section, text: $text }),*];
    };
}

rules! {
    // Lines.
    BareLf "bare-lf" 400 "RFC 9112 §2.2" "A line ends in LF without CR";
    BareCr "bare-cr" 400 "RFC 9112 §2.2" "A CR is not followed by LF";
    EmptyLines "empty-lines" 400 "RFC 9112 §2.2" "There are too many empty lines before the request line";
    HeadTooLarge "head-too-large" 431 "RFC 6585 §5" "The head is longer than the limit";
    TooManyFields "too-many-fields" 431 "RFC 6585 §5" "There are more field lines than the limit";
    HeadUnfinished "head-unfinished" 400 "RFC 9112 §2.1" "The head does not end with its blank line";
    // Request line.
    RequestLine "request-line" 400 "RFC 9112 §3" "The request line is not method, target and version with one space between";
    MethodInvalid "method-invalid" 400 "RFC 9110 §9.1" "The method is not a token";
    MethodTooLong "method-too-long" 400 "RFC 9112 §3" "The method is longer than the limit";
    VersionInvalid "version-invalid" 400 "RFC 9112 §2.3" "The version is not HTTP/ and two digits with a point between";
    VersionUnknown "version-unknown" 505 "RFC 9110 §15.6.6" "The version is neither HTTP/1.0 nor HTTP/1.1";
    // Target.
    TargetTooLong "target-too-long" 414 "RFC 9110 §15.5.15" "The request target is longer than the limit";
    TargetForm "target-form" 400 "RFC 9112 §3.2" "The request target has none of the four forms, or not the one of this method";
    TargetBytes "target-bytes" 400 "RFC 3986 §2" "The request target has a byte that neither RFC 3986 allows there nor browsers send";
    TargetPercent "target-percent" 400 "RFC 3986 §2.1" "A percent sign in the target is not followed by two hexadecimal digits";
    TargetControl "target-control" 400 "RFC 3986 §7.3" "The path has an encoded NUL, CR or LF";
    // Host.
    HostMissing "host-missing" 400 "RFC 9112 §3.2" "An HTTP/1.1 request has no Host";
    HostTwice "host-twice" 400 "RFC 9112 §3.2" "There is more than one Host";
    HostInvalid "host-invalid" 400 "RFC 9112 §3.2" "The host is not a name or address with an optional port";
    AuthorityDiffers "authority-differs" 400 "RFC 9113 §8.3.1" "Host and :authority name different authorities";
    // Fields.
    Fold "fold" 400 "RFC 9112 §5.2" "A line begins with a blank: folded or before the first field";
    NoColon "no-colon" 400 "RFC 9112 §5" "A field line has no colon";
    NameEmpty "name-empty" 400 "RFC 9110 §5.1" "A field has no name";
    NameSpace "name-space" 400 "RFC 9112 §5.1" "There is a blank between a field's name and its colon";
    NameInvalid "name-invalid" 400 "RFC 9110 §5.1" "A field's name is not a token";
    NameAlias "name-alias" 400 "docs/spec/serving.md#refused-messages" "A field's name, with _ read as -, is one that weir frames, routes by or sets";
    ValueInvalid "value-invalid" 400 "RFC 9110 §5.5" "A field's value has a control character";
    ValueBlank "value-blank" 400 "RFC 9113 §8.2.1" "A field's value begins or ends with a blank, which HTTP/2 does not trim";
    ConnectionOptions "connection-options" 400 "RFC 9110 §7.6.1" "Connection has too many options";
    // Framing.
    LengthInvalid "length-invalid" 400 "RFC 9110 §8.6" "Content-Length is not one decimal number without sign, list or leading zero";
    LengthTwice "length-twice" 400 "RFC 9112 §6.3" "There is more than one Content-Length";
    LengthAndCoding "length-and-coding" 400 "RFC 9112 §6.3" "Content-Length and Transfer-Encoding are both present";
    CodingUnknown "coding-unknown" 400 "RFC 9112 §6.1" "Transfer-Encoding is not a single `chunked`";
    CodingVersion "coding-version" 400 "RFC 9112 §6.1" "Transfer-Encoding is present in an HTTP/1.0 message";
    CodingHere "coding-here" 400 "RFC 9110 §9.3.6" "A CONNECT request, which has no body, has a length or a coding";
    // What an intermediary refuses.
    Expectation "expectation" 417 "RFC 9110 §10.1.1" "Expect is not exactly 100-continue";
    Connect "connect" 405 "RFC 9110 §9.3.6" "CONNECT to this authority is not allowed";
    Upgrade "upgrade" 501 "RFC 9220 §3" "An extended CONNECT asks for a protocol that is not allowed";
    ViaLoop "via-loop" 508 "RFC 9110 §7.6.3" "The request has passed through weir too often";
    MaxForwards "max-forwards" 400 "RFC 9110 §7.6.2" "Max-Forwards is not one decimal number";
    // Bodies.
    ChunkSize "chunk-size" 400 "RFC 9112 §7.1" "A chunk's size is not 1 to 15 hexadecimal digits";
    ChunkExtension "chunk-extension" 400 "RFC 9112 §7.1.1" "A chunk extension is not ;name or ;name=value";
    ChunkExtensions "chunk-extensions" 400 "RFC 9112 §7.1.1" "The chunk extensions are longer than the limit";
    ChunkLine "chunk-line" 400 "RFC 9112 §7.1" "A chunk's line does not end in CR LF";
    ChunkEnd "chunk-end" 400 "RFC 9112 §7.1" "A chunk's data is not followed by CR LF";
    BodyCut "body-cut" 400 "RFC 9112 §8" "The connection ended before the body did";
    // Responses.
    StatusLine "status-line" 502 "RFC 9112 §4" "The status line is not version, three digits and a reason";
    Unasked "unasked-101" 502 "RFC 9110 §15.2.2" "101 answers a request that did not ask for an upgrade";
}

/// The same table for what an origin sent.
static OF_RESPONSES: [Rule; RULES.len()] = {
    let mut rules = RULES_COPY;
    let mut i = 0;
    while i < rules.len() {
        rules[i].status = 502;
        i += 1;
    }
    rules
};

const RULES_COPY: [Rule; RULES.len()] = RULES;

/// The refusal by this rule.
#[cold]
pub(crate) fn refuse(id: Id) -> Refusal {
    Refusal(&RULES[id as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_statuses_are_errors() {
        for (i, rule) in RULES.iter().enumerate() {
            assert!((400..600).contains(&rule.status), "{}", rule.name);
            assert!(!RULES[..i].iter().any(|r| r.name == rule.name), "{}", rule.name);
            assert!(!rule.text.ends_with('.') && !rule.section.is_empty());
            assert_eq!(Refusal(rule).in_response().status(), 502);
            assert_eq!(Refusal(rule).in_response().0.name, rule.name);
        }
    }
}
