//! Words of HTTP as a file may give them: methods, hosts, names and values of headers, networks, statuses.
//!
//! Each check says in a sentence what is wrong, and where it can what to write instead.

use std::fmt;
use std::net::IpAddr;
use weir_http1::{Limits, Networks, parse_network, why_unseen};

/// Why a word cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidWord {
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead, where that is known.
    pub remedy: Option<String>,
}

impl InvalidWord {
    /// A problem, and its remedy.
    pub fn new(problem: impl Into<String>, remedy: Option<String>) -> InvalidWord {
        InvalidWord { problem: problem.into(), remedy }
    }
}

impl fmt::Display for InvalidWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for InvalidWord {}

/// The methods that one may have meant.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"];

/// No word is longer than this.
const MOST_BYTES: usize = 8192;

fn wrong<T>(why: impl Into<String>) -> Result<T, InvalidWord> {
    Err(InvalidWord::new(why, None))
}

/// Shortened for a message.
pub fn short(text: &str) -> String {
    let cut: String = text.chars().take(60).collect();
    if cut.len() < text.len() { format!("{cut}...") } else { cut }
}

/// A name of RFC 9110: letters, digits and some signs.
pub fn is_token(text: &str) -> bool {
    let sign = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.len() <= MOST_BYTES && text.bytes().all(sign)
}

/// A method.
pub fn method(text: &str) -> Result<(), InvalidWord> {
    let upper = text.to_ascii_uppercase();
    if METHODS.contains(&text) {
        Ok(())
    } else if text.len() > Limits::METHOD {
        wrong(format!(
            "\"{}\" is not a method: weir refuses those of more than {} bytes",
            short(text),
            Limits::METHOD
        ))
    } else if METHODS.contains(&upper.as_str()) {
        Err(InvalidWord::new(
            format!("\"{text}\" is not a method: methods are written in capitals"),
            Some(format!("write \"{upper}\"")),
        ))
    } else if is_token(text) {
        Ok(())
    } else {
        wrong(format!("\"{}\" is not a method: write a word such as \"GET\"", short(text)))
    }
}

/// A method that a request may have when a route looks at it.
pub fn routed_method(text: &str) -> Result<(), InvalidWord> {
    method(text)?;
    match text {
        "TRACE" => wrong("no node sees a request with TRACE: weir answers it with 405"),
        _ => Ok(()),
    }
}

/// A method that a health check may have.
pub fn check_method(text: &str) -> Result<(), InvalidWord> {
    method(text)?;
    match text {
        "CONNECT" => Err(InvalidWord::new(
            "no check passes with CONNECT: it asks for a tunnel, not for an answer",
            Some("write \"GET\" or \"HEAD\"".to_owned()),
        )),
        _ => Ok(()),
    }
}

/// A host, without a port.
pub fn host(text: &str) -> Result<(), InvalidWord> {
    let shown = short(text);
    if let Some((name, port)) = text.rsplit_once(':')
        && !text.ends_with(']')
        && !port.is_empty()
        && port.bytes().all(|b| b.is_ascii_digit())
    {
        let help = format!("write \"{}\"", short(name));
        return Err(InvalidWord::new(
            format!("\"{shown}\" must not have a port: hosts are compared without it"),
            Some(help),
        ));
    }
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let fit = match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let sign = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
            !text.is_empty() && text.len() <= 255 && text.bytes().all(sign)
        }
    };
    if fit { Ok(()) } else { wrong(format!("\"{shown}\" is not a host, such as \"www.example.com\"")) }
}

/// A host to match: exact, or `*.example.com`.
pub fn host_pattern(text: &str) -> Result<(), InvalidWord> {
    match text.strip_prefix("*.") {
        Some(rest) => host(rest),
        None if text.contains('*') => {
            wrong(format!("\"{}\" is not a host to match: write one host, or \"*.example.com\"", short(text)))
        }
        None => host(text),
    }
}

/// The name of a header or cookie.
pub fn field_name(text: &str) -> Result<(), InvalidWord> {
    if is_token(text) {
        Ok(())
    } else {
        wrong(format!("\"{}\" is not a name: use letters, digits and signs such as `-`", short(text)))
    }
}

/// The name of a field by which something is decided: requests can have it then.
pub fn seen_field(text: &str) -> Result<(), InvalidWord> {
    field_name(text)?;
    match why_unseen(text.as_bytes()) {
        Some(why) => wrong(format!("\"{}\" is in no request that a node sees: {why}", short(text))),
        None => Ok(()),
    }
}

/// A value to match: exact, or up to a `*` at its end. Values have no blanks around them.
pub fn value_pattern(text: &str) -> Result<(), InvalidWord> {
    field_value(text)?;
    let trimmed = text.trim_matches([' ', '\t']);
    if trimmed == text {
        return Ok(());
    }
    Err(InvalidWord::new(
        format!("\"{}\" matches no value: blanks around a value do not belong to it", short(text)),
        Some(format!("write \"{}\"", short(trimmed))),
    ))
}

/// Fields by which weir frames messages and keeps connections: no file sets or removes them.
const FRAMING: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The name of a field that a file may set or remove.
pub fn own_field(text: &str) -> Result<(), InvalidWord> {
    field_name(text)?;
    // Servers that read `_` as `-` would take the one for the other.
    let plain = text.to_ascii_lowercase().replace('_', "-");
    if FRAMING.contains(&plain.as_str()) {
        return wrong(format!("\"{}\" is set only by weir: it frames messages and connections", short(text)));
    }
    Ok(())
}

/// A protocol to upgrade to.
pub fn upgrade(text: &str) -> Result<(), InvalidWord> {
    let name = text.split('/').next().unwrap_or_default().to_ascii_lowercase();
    if matches!(&*name, "h2c" | "h2" | "http") {
        return wrong(format!(
            "\"{}\" is not allowed: weir could not see the requests of such a connection",
            short(text)
        ));
    }
    let fit = text.split('/').count() <= 2 && text.split('/').all(is_token);
    if fit { Ok(()) } else { wrong(format!("\"{}\" is not a protocol, such as \"websocket\"", short(text))) }
}

/// The value of a header.
pub fn field_value(text: &str) -> Result<(), InvalidWord> {
    if text.len() <= MOST_BYTES && !text.chars().any(|c| c.is_control() && c != '\t') {
        Ok(())
    } else {
        wrong(format!(
            "\"{}\" is not a header's value: it must have no control characters and at most {MOST_BYTES} \
                bytes",
            short(&text.escape_debug().to_string())
        ))
    }
}

/// An address, or a network as `10.0.0.0/8`, in which a client may be.
pub fn network(text: &str) -> Result<(IpAddr, u32), InvalidWord> {
    let Some((address, bits)) = parse_network(text) else {
        return wrong(format!(
            "\"{}\" is neither an address nor a network such as \"10.0.0.0/8\"",
            short(text)
        ));
    };
    let is_empty = match address {
        // RFC 1122, 3.2.1.3; RFC 1112.
        IpAddr::V4(ip) => {
            let first = ip.octets()[0];
            bits >= 8 && first == 0 || bits >= 4 && first >> 4 == 14 || bits == 32 && ip.is_broadcast()
        }
        IpAddr::V6(ip) => bits == 128 && ip.is_unspecified() || bits >= 8 && ip.is_multicast(),
    };
    if is_empty {
        let all = if address.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        return Err(InvalidWord::new(
            format!("\"{}\" matches nothing: no client has such an address", short(text)),
            address.is_unspecified().then(|| format!("write \"{all}\" for all addresses")),
        ));
    }
    Ok((address, bits))
}

/// A name of a client's certificate to match: exact, or up to a `*` at its end.
pub fn client_name(text: &str) -> Result<(), InvalidWord> {
    let stem = text.strip_suffix('*').unwrap_or(text);
    let is_name = !text.is_empty()
        && text.len() <= MOST_BYTES
        && stem.bytes().all(|b| b.is_ascii_graphic() && b != b'*');
    if is_name {
        return Ok(());
    }
    let shown = short(&text.escape_debug().to_string());
    Err(InvalidWord::new(
        format!(
            "\"{shown}\" is not a name of a certificate to match: it is ASCII without blanks, and a `*` can only be at its end"
        ),
        Some("write such as \"spiffe://prod/*\" or \"app.example.com\"".to_owned()),
    ))
}

/// Peers of a listener: an address, a network, or `unix:` for the peers of a Unix socket.
pub fn peers(text: &str) -> Result<(), InvalidWord> {
    const UNIX: &str = Networks::UNIX;
    if text == UNIX {
        return Ok(());
    }
    if parse_network(text).is_some() {
        return network(text).map(|_| ());
    }
    let message =
        format!("\"{}\" is not an address, a network such as \"10.0.0.0/8\" or \"{UNIX}\"", short(text));
    let help = text.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("unix"));
    Err(InvalidWord::new(
        message,
        help.then(|| format!("write \"{UNIX}\": it means all peers of a Unix socket")),
    ))
}

/// Ranges of status numbers, as in `200-299,304`.
pub fn statuses(text: &str) -> Result<Vec<(u16, u16)>, InvalidWord> {
    let no = || {
        InvalidWord::new(
            format!("\"{}\" is not a set of status numbers", short(text)),
            Some("write them as \"200-399\", \"200\" or \"200-299,404\"".to_owned()),
        )
    };
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let number = |t: &str| t.trim().parse::<u16>().ok().filter(|n| (100..=599).contains(n));
        match (number(low), number(high)) {
            (Some(low), Some(high)) if low <= high && high < 200 => {
                let message =
                    format!("\"{}\" are no statuses of an answer: those below 200 are interim", short(part));
                return Err(InvalidWord::new(message, Some("write such as \"200-399\"".to_owned())));
            }
            (Some(low), Some(high)) if low <= high => ranges.push((low, high)),
            _ => return Err(no()),
        }
    }
    Ok(ranges)
}
