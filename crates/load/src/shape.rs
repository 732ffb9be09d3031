//! The bytes of each kind of a scenario's requests: rendered once, except for the sender.

use http::header::{COOKIE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Uri};
use std::fmt;
use weir_plan::{KeySource, Point, RequestShape, Scenario, Spec};
use weir_policy::retry::is_idempotent;
use weir_workload::DRAWN;

/// The sender of a request.
const AGENT: &str = concat!("weir-load/", env!("CARGO_PKG_VERSION"));

/// Bytes of bodies that are sent at once.
pub(crate) const PIECE: usize = 64 * 1024;

/// A kind of request.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub idempotent: bool,
    pub is_head: bool,
    pub body_bytes: u64,
    /// The head in HTTP/1.1 syntax, up to the sender's fields.
    head: Vec<u8>,
    /// Where the sender is identified: fields and cookies that the kind lacks.
    sender_fields: Vec<HeaderName>,
    sender_cookies: Vec<String>,
    cookies: String,
}

/// The fields of a request that its kind does not fix.
pub(crate) struct VariableFields<'a> {
    /// The sender.
    pub sender: Option<&'a str>,
    /// Cookies that the sender was given.
    pub cookies: Option<String>,
    /// A field that only the processes of its run read.
    pub drawn: Option<String>,
}

/// Where the nodes of a topology read the sender of a request.
pub(crate) fn key_sources(point: &Point) -> Vec<KeySource> {
    let mut sources: Vec<KeySource> = Vec::new();
    for spec in &point.specs {
        let key = match spec {
            Spec::Split { key, .. } | Spec::Rate { key, .. } => key.as_ref(),
            Spec::Lb(lb) => lb.key.as_ref(),
            _ => None,
        };
        if let Some(key) = key.filter(|key| !sources.contains(key)) {
            sources.push(key.clone());
        }
    }
    sources
}

/// Why a scenario's requests cannot be sent, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotSend(String);

impl fmt::Display for CannotSend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotSend {}

/// The kinds of a scenario's requests, sent to this authority.
///
/// # Errors
/// A request that cannot be sent, or has no kind; the reason.
pub(crate) fn shapes(
    scenario: &Scenario,
    sources: &[KeySource],
    to: &Host<'_>,
) -> Result<Vec<Shape>, CannotSend> {
    let plain = RequestShape::plain();
    let kinds = if scenario.mix.is_empty() { std::slice::from_ref(&plain) } else { &scenario.mix };
    let recorded = scenario.recorded.iter().flat_map(|recorded| &recorded.kinds);
    if let Some(none) = recorded.copied().find(|kind| *kind as usize >= kinds.len()) {
        return Err(CannotSend(format!(
            "a row of the scenario's trace is of kind {none}, and there are {}",
            kinds.len()
        )));
    }
    kinds.iter().map(|kind| Shape::new(kind, sources, to)).collect()
}

/// The authority of requests that name no host.
pub(crate) struct Host<'a> {
    pub https: bool,
    pub authority: &'a str,
}

impl Shape {
    fn new(kind: &RequestShape, sources: &[KeySource], to: &Host<'_>) -> Result<Shape, CannotSend> {
        let cannot = |what: &str| {
            CannotSend(format!("the scenario's request {} {} cannot be sent: {what}", kind.method, kind.path))
        };
        let method = Method::from_bytes(kind.method.as_bytes()).map_err(|_| cannot("its method"))?;
        let host = kind.host.as_deref().unwrap_or(to.authority);
        let scheme = if to.https { "https" } else { "http" };
        let uri = Uri::builder().scheme(scheme).authority(host).path_and_query(kind.path.as_str());
        uri.build().map_err(|e| cannot(&e.to_string()))?;
        let mut fields = HeaderMap::new();
        fields.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let mut cookies = Vec::new();
        for (name, value) in &kind.headers {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| cannot(&format!("the name of `{name}`")))?;
            match name {
                HOST => {}
                COOKIE => cookies.push(value.clone()),
                name => {
                    let value = HeaderValue::from_bytes(value.as_bytes());
                    fields.append(&name, value.map_err(|_| cannot(&format!("the value of `{name}`")))?);
                }
            }
        }
        let cookies = cookies.join("; ");
        let (mut sender_fields, mut sender_cookies) = (Vec::new(), Vec::new());
        for source in sources {
            match source {
                source if kind.brings(source) => {}
                KeySource::Header(name) if !fields.contains_key(name.as_str()) => {
                    sender_fields.extend(HeaderName::from_bytes(name.as_bytes()).ok());
                }
                KeySource::Cookie(name) => sender_cookies.push(name.clone()),
                _ => {}
            }
        }
        let body_bytes = kind.body_bytes;
        if body_bytes > 0 {
            fields.insert(http::header::CONTENT_LENGTH, HeaderValue::from(body_bytes));
        }
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {host}\r\n", kind.method, kind.path).into_bytes();
        for (name, value) in &fields {
            line(&mut head, name, value.as_bytes());
        }
        Ok(Shape {
            idempotent: is_idempotent(&kind.method),
            is_head: method == Method::HEAD,
            body_bytes,
            head,
            sender_fields,
            sender_cookies,
            cookies,
        })
    }

    /// The value of its Cookie field, which identifies the sender.
    fn cookie(&self, said: &VariableFields<'_>) -> Option<String> {
        let own = (!self.cookies.is_empty()).then(|| self.cookies.clone());
        let more = said
            .sender
            .into_iter()
            .flat_map(|s| self.sender_cookies.iter().map(move |name| format!("{name}={s}")));
        let all: Vec<String> = own.into_iter().chain(more).chain(said.cookies.clone()).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Its head, in HTTP/1.1 syntax.
    pub fn write(&self, said: &VariableFields<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        if let Some(sender) = said.sender {
            self.sender_fields.iter().for_each(|name| line(out, name, sender.as_bytes()));
        }
        if let Some(cookie) = self.cookie(said) {
            line(out, &COOKIE, cookie.as_bytes());
        }
        if let Some(drawn) = &said.drawn {
            line(out, &HeaderName::from_static(DRAWN), drawn.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn line(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The next piece of a body with this remainder.
pub(crate) fn body(left: u64) -> &'static [u8] {
    static BODY: [u8; PIECE] = [b'w'; PIECE];
    let n = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
    &BODY[..n]
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plan::Recording;
    use weir_topology::{Request, evaluate};

    /// A plan's own check reports this earlier; a scenario built in another way is checked here.
    #[test]
    fn each_row_of_a_trace_is_of_a_kind() {
        let text = "scenario(\"s\", server(\"a\"), traffic.mix(traffic.poisson(rate = 1), [(1, request()), (1, request())]), requests = 1)";
        let request = Request { name: "a.star".into(), source: text.into(), ..Request::default() };
        let mut scenario = evaluate(&request).expect("a plan").plan.points[0].scenarios[0].clone();
        let to = Host { https: false, authority: "test" };
        let (keys, senders) = (Vec::new(), Vec::new());
        scenario.recorded = Some(Recording { kinds: vec![0, 1, 1], keys, senders });
        assert_eq!(shapes(&scenario, &[], &to).expect("they can be sent").len(), 2);
        scenario.recorded.as_mut().expect("it was put there").kinds.push(2);
        let why = shapes(&scenario, &[], &to).expect_err("no third kind");
        assert_eq!(why.0, "a row of the scenario's trace is of kind 2, and there are 2");
    }
}
