//! HTTP/1.1 messages as the tests read them: strictly, and independently of weir's own codec.

use super::stream::{Fault, Stream};

/// A request or a response.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Its first line.
    pub(crate) line: String,
    /// Its fields: names in lower case.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// Interim responses that came before.
    pub(crate) interim: Vec<u16>,
    pub(crate) framing: Framing,
    /// Why the body is not whole, if it is not.
    pub(crate) cut: Option<Fault>,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    Length,
    Chunked,
    Close,
}

fn malformed<T>(why: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Malformed(why.into()))
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(*b)).collect()
}

impl Message {
    /// All values of a field.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.fields.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect()
    }

    /// A field that is there once at most.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() < 2, "{name} is there {} times: {:?}", all.len(), self.fields);
        all.first().copied()
    }

    pub(crate) fn status(&self) -> u16 {
        self.line.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0)
    }

    pub(crate) fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    pub(crate) fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn body_text(&self) -> String {
        text(&self.body)
    }

    /// Whether the connection is said to end with it.
    pub(crate) fn closes(&self) -> bool {
        self.field("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"))
    }
}

/// Reads a head, up to its empty line.
fn head(stream: &mut Stream) -> Result<Message, Fault> {
    let line = text(&stream.line()?);
    Ok(Message {
        fields: fields(stream)?,
        line,
        body: Vec::new(),
        trailers: Vec::new(),
        interim: Vec::new(),
        framing: Framing::None,
        cut: None,
    })
}

fn fields(stream: &mut Stream) -> Result<Vec<(String, String)>, Fault> {
    let mut fields = Vec::new();
    loop {
        let line = stream.line()?;
        if line.is_empty() {
            return Ok(fields);
        }
        let Some(colon) = line.iter().position(|b| *b == b':') else {
            return malformed(format!("no colon in {:?}", text(&line)));
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if !is_token(name) {
            return malformed(format!("the name in {:?}", text(&line)));
        }
        if value.iter().any(|b| (*b < 32 && *b != b'\t') || *b == 127) {
            return malformed(format!("a control in {:?}", text(&line)));
        }
        fields.push((text(name).to_ascii_lowercase(), text(value)));
    }
}

/// The head of a request, and how its body ends.
pub(crate) fn request_head(stream: &mut Stream) -> Result<Message, Fault> {
    let mut message = head(stream)?;
    let parts: Vec<&str> = message.line.split(' ').collect();
    let [method, target, version] = parts[..] else {
        return malformed(format!("the line {:?}", message.line));
    };
    if !is_token(method.as_bytes()) || target.is_empty() || version != "HTTP/1.1" {
        return malformed(format!("the line {:?}", message.line));
    }
    if message.all("host").len() != 1 {
        return malformed(format!("{} lines of Host", message.all("host").len()));
    }
    message.framing = framing(&message)?;
    Ok(message)
}

fn framing(message: &Message) -> Result<Framing, Fault> {
    match (&message.all("transfer-encoding")[..], &message.all("content-length")[..]) {
        ([], []) => Ok(Framing::None),
        (["chunked"], []) => Ok(Framing::Chunked),
        ([], [n]) if n.bytes().all(|b| b.is_ascii_digit()) && !n.is_empty() => Ok(Framing::Length),
        (te, cl) => malformed(format!("Transfer-Encoding {te:?} and Content-Length {cl:?}")),
    }
}

/// A whole request. `cut` says how much of its body is missing.
pub(crate) fn request(stream: &mut Stream) -> Result<Message, Fault> {
    let mut message = request_head(stream)?;
    body(stream, &mut message);
    match &message.cut {
        Some(Fault::Malformed(why)) => malformed(why.clone()),
        _ => Ok(message),
    }
}

/// The final response to a request with this method, with what it lacks of its body told in `cut`.
pub(crate) fn response(stream: &mut Stream, method: &str) -> Result<Message, Fault> {
    let mut interim = Vec::new();
    loop {
        let mut message = head(stream)?;
        let status = message.status();
        let line = message.line.as_bytes();
        if !message.line.starts_with("HTTP/1.1 ")
            || !(100..600).contains(&status)
            || line.get(12) != Some(&b' ')
        {
            return malformed(format!("the line {:?}", message.line));
        }
        if (100..200).contains(&status) && status != 101 {
            interim.push(status);
            continue;
        }
        message.interim = interim;
        message.framing = match framing(&message)? {
            _ if method == "HEAD" || matches!(status, 101 | 204 | 304) => Framing::None,
            _ if method == "CONNECT" && (200..300).contains(&status) => Framing::None,
            Framing::None => Framing::Close,
            known => known,
        };
        body(stream, &mut message);
        return Ok(message);
    }
}

/// Reads what belongs to a head.
pub(crate) fn body(stream: &mut Stream, message: &mut Message) {
    let read = match message.framing {
        Framing::None => Ok(()),
        Framing::Length => {
            let length = message.all("content-length")[0].parse().unwrap_or(u64::MAX);
            stream.take(length, &mut message.body)
        }
        Framing::Chunked => chunked(stream, message),
        Framing::Close => match stream.take(u64::MAX, &mut message.body) {
            Err(Fault::End) => Ok(()),
            other => other,
        },
    };
    message.cut = read.err();
}

fn chunked(stream: &mut Stream, message: &mut Message) -> Result<(), Fault> {
    loop {
        let line = stream.line()?;
        let canonical = !line.is_empty() && line.len() < 16 && line.iter().all(u8::is_ascii_hexdigit);
        let Ok(size) = u64::from_str_radix(&text(&line), 16) else {
            return malformed(format!("the chunk line {:?}", text(&line)));
        };
        if !canonical {
            return malformed(format!("the chunk line {:?}", text(&line)));
        }
        if size == 0 {
            message.trailers = fields(stream)?;
            return Ok(());
        }
        stream.take(size, &mut message.body)?;
        if !stream.line()?.is_empty() {
            return malformed("a chunk without its end");
        }
    }
}
