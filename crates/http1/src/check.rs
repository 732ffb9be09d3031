//! The checks that an intermediary makes on a request before any node sees it.

use crate::byte::{decimal, elements};
use crate::forwarded;
use crate::framing::Version;
use crate::name::{ENDS_HERE, FORWARDED, Name, Names};
use crate::networks::Networks;
use crate::request::Request;
use crate::response::Response;
use crate::rule::{Id, Refusal, refuse};
use crate::target::has_encoded_control;
use crate::trace_context::{self, Trace};
use std::net::IpAddr;

/// The properties of the client's hop.
#[derive(Clone, Copy, Debug)]
pub struct Hop<'a> {
    /// The other end of the connection (or what PROXY protocol says of it); `None`: a Unix socket.
    pub peer: Option<IpAddr>,
    /// Whether the connection is TLS.
    pub https: bool,
    /// The listener's port; `None`: a Unix socket.
    pub port: Option<u16>,
    /// Peers whose X-Forwarded-* are believed.
    pub trusted: &'a Networks,
    /// Protocols that may be upgraded to, in lower case. `h2c` is never allowed, even if it is listed here (RFC 9113
    /// §3.1).
    pub upgrades: &'a [String],
    /// Authorities that CONNECT may ask for: `host:port`, `*.example.com:port`, or with `*` for the port.
    pub connect: &'a [String],
    /// Pass encoded NUL, CR and LF in paths (`paths="raw"`).
    pub raw_paths: bool,
    /// The other end is this very proxy: its entry in Via is not a hop.
    pub own: bool,
}

/// The results of these checks, made once per request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The rightmost untrusted address; `None`: a Unix socket without trusted fields.
    pub client: Option<IpAddr>,
    /// An allowed Upgrade, or an allowed CONNECT, was asked for.
    pub upgrade: bool,
    /// `Expect: 100-continue` with a body.
    pub expect: bool,
    /// The answer must carry `Connection: close`.
    pub close: bool,
    /// weir answers itself.
    pub here: Option<OwnAnswer>,
    /// The peer is one of the listener's `trusted`.
    pub trusted: bool,
    /// The trace that it belongs to.
    pub trace: Option<Trace>,
}

/// An answer that weir gives itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnAnswer {
    /// OPTIONS that may go no further: `Max-Forwards: 0` (RFC 9110 §7.6.2).
    Options,
    /// TRACE is never passed on: 405, it would show what the hops add (RFC 9110 §9.3.8).
    Trace,
}

const MOST_HOPS: usize = crate::limits::Limits::OWN_HOPS;

/// The intermediary's rules of a request: paths, CONNECT, Expect, Via, Upgrade, Max-Forwards, the client's address.
///
/// What may go no further is taken out of the request here, before anything is decided by it: what decides and what is
/// passed on are one message (`docs/spec/serving.md#one-message`).
pub fn check_request(request: &mut Request, hop: &Hop<'_>) -> Result<Checked, Refusal> {
    let block = &request.block;
    let seen = block.seen;
    if !hop.raw_paths && has_encoded_control(request.path()) {
        return Err(refuse(Id::TargetControl));
    }
    let connect = request.is_connect();
    if connect && !allows(hop.connect, request.target()) {
        return Err(refuse(Id::Connect));
    }
    if seen.has(Name::Expect) {
        let mut values = block.known(Name::Expect);
        if !values.all(|v| v.eq_ignore_ascii_case(b"100-continue")) || block.known(Name::Expect).count() > 1 {
            return Err(refuse(Id::Expectation));
        }
    }
    if seen.has(Name::Via) && own_hops(request) > MOST_HOPS + usize::from(hop.own) {
        return Err(refuse(Id::ViaLoop));
    }
    let here = match request.method() {
        b"TRACE" => Some(OwnAnswer::Trace),
        b"OPTIONS" if max_forwards(request)? == Some(0) => Some(OwnAnswer::Options),
        _ => None,
    };
    let trusted = hop.trusted.trusts(hop.peer);
    let traced = seen.has(Name::TraceParent) || seen.has(Name::TraceState);
    let (trace, invalid) = if traced { trace_context::read(block) } else { Default::default() };
    let switch = seen.has(Name::Upgrade) && upgrades(request, hop).next().is_some();
    // Without its Upgrade it would be another request, whose 2xx the client would take for a tunnel.
    if request.is_extended_connect() && !switch {
        return Err(refuse(Id::Upgrade));
    }
    let expect = request.expects_continue();
    let mut gone = ENDS_HERE.with(invalid);
    gone = if trusted { gone } else { gone.with(FORWARDED) };
    gone = if switch { gone } else { gone.with(Names::new(&[Name::Upgrade])) };
    gone = if expect { gone } else { gone.with(Names::new(&[Name::Expect])) };
    gone = if request.te_trailers() { gone } else { gone.with(Names::new(&[Name::Te])) };
    request.block.end(gone);
    Ok(Checked {
        client: forwarded::client(request, hop.peer, hop.trusted),
        upgrade: connect || switch,
        expect,
        close: !request.keep_alive(),
        here,
        trusted,
        trace,
    })
}

/// The first protocol of Upgrade that is passed on, in lower case: the one that an extended CONNECT names, which has no
/// choice to offer (RFC 8441 §4).
pub fn first_upgrade<'a>(request: &Request, hop: &Hop<'a>) -> Option<&'a str> {
    let first = upgrades(request, hop).next()?;
    hop.upgrades
        .iter()
        .map(|allowed| &**allowed)
        .find(|allowed| first.eq_ignore_ascii_case(allowed.as_bytes()))
}

/// The protocols of Upgrade that are passed on: allowed ones of an HTTP/1.1 request without body that names Upgrade in
/// Connection (RFC 9110 §7.8), or the one of an extended CONNECT; websocket only with GET (RFC 6455 §4.1).
pub(crate) fn upgrades<'a>(request: &'a Request, hop: &'a Hop<'_>) -> impl Iterator<Item = &'a [u8]> {
    let possible = request.block.seen.has(Name::Upgrade)
        && request.options.upgrade
        && (request.version() == Version::H11 || request.is_extended_connect())
        && !request.has_body();
    let get = request.method() == b"GET";
    request
        .block
        .known(Name::Upgrade)
        .filter(move |_| possible)
        .flat_map(elements)
        .filter(move |p| hop.upgrades.iter().any(|a| p.eq_ignore_ascii_case(a.as_bytes())))
        .filter(move |p| !p.eq_ignore_ascii_case(b"h2c") && (get || !p.eq_ignore_ascii_case(b"websocket")))
}

/// How many times more OPTIONS may be passed on; `None`: nothing is said.
pub(crate) fn max_forwards(request: &Request) -> Result<Option<u64>, Refusal> {
    let mut values = request.block.known(Name::MaxForwards);
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(v), None) => decimal(v).map(Some).ok_or_else(|| refuse(Id::MaxForwards)),
        _ => Err(refuse(Id::MaxForwards)),
    }
}

/// Whether a 101 leads to where the client wants to go: only to protocols of its Upgrade that were passed on (RFC 9110
/// §7.8). By HTTP/2 it is a 2xx, which agrees to the one protocol of the extended CONNECT and names none.
pub fn check_switch(request: &Request, hop: &Hop<'_>, response: &Response) -> Result<(), Refusal> {
    if response.version() == Version::H2 {
        return Ok(());
    }
    let mut to = response.block.known(Name::Upgrade).flat_map(elements).peekable();
    let named = to.peek().is_some() && response.version() == Version::H11;
    let asked = |protocol: &[u8]| upgrades(request, hop).any(|p| p.eq_ignore_ascii_case(protocol));
    if named && to.all(asked) { Ok(()) } else { Err(refuse(Id::Unasked).in_response()) }
}

fn own_hops(request: &Request) -> usize {
    let mut count = 0;
    for hop in request.block.known(Name::Via).flat_map(elements) {
        let mut words = hop.split(|b| matches!(b, b' ' | b'\t')).filter(|w| !w.is_empty());
        count += usize::from(words.nth(1).is_some_and(|by| by.eq_ignore_ascii_case(b"weir")));
    }
    count
}

/// Whether a request for this authority may be passed on: `*.` matches one or more labels, `:*` any port.
fn allows(connect: &[String], authority: &[u8]) -> bool {
    let host = authority.iter().rposition(|&b| b == b':').map_or(authority, |i| &authority[..i]);
    connect.iter().any(|allowed| {
        let (wanted, asked) = match allowed.strip_suffix(":*") {
            Some(any) => (any, host),
            None => (&allowed[..], authority),
        };
        match wanted.strip_prefix('*') {
            Some(tail) => {
                let from = asked.len().saturating_sub(tail.len());
                from > 0 && asked[from..].eq_ignore_ascii_case(tail.as_bytes())
            }
            None => asked.eq_ignore_ascii_case(wanted.as_bytes()),
        }
    })
}
