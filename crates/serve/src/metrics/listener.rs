//! Counts of a listener's clients on one thread: requests as in the access log, connections, handshakes.

use super::counts::{Count, CountsBy, OutcomeLabel, Outcomes, Value, values};
use super::histogram::Histogram;
use super::recent::{Recent, is_failure};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_http1::Version;
use weir_policy::{Kind, Outcome};

values! {
    /// Methods that have a name of their own.
    Method {
        Get "GET",
        Head "HEAD",
        Post "POST",
        Put "PUT",
        Delete "DELETE",
        Patch "PATCH",
        Options "OPTIONS",
        Connect "CONNECT",
        Trace "TRACE",
        /// Any other, or none that could be parsed.
        Other "other",
    }
}

values! {
    /// The protocol of a request.
    Protocol { H10 "1.0", H11 "1.1", H2 "2" }
}

values! {
    /// How a client's connection ended.
    Parting {
        /// The client closed it.
        Client "client",
        /// With an answer that was announced as the last.
        Answered "answered",
        /// It was idle for too long.
        Idle "idle",
        /// It had its `max_requests`, or its `max_age`.
        Limit "limit",
        /// To make room for another client.
        Room "room",
        /// weir drains.
        Drain "drain",
        /// The bytes received were not a request.
        BadRequest "bad_request",
        /// It floods weir with frames.
        Flood "flood",
        /// It broke off during a request, or accepts nothing of its answer.
        Broken "broken",
        /// Before any request: no TLS, no PROXY header.
        Greeting "greeting",
    }
}

values! {
    /// How a client's TLS handshake ended.
    Handshake {
        Done "ok",
        /// It broke a rule, or both sides have nothing in common.
        Failed "failed",
        /// Its certificate is missing, or not accepted.
        Certificate "certificate",
        Late "timeout",
        /// The client left.
        Gone "gone",
        /// It speaks no TLS.
        Cleartext "cleartext",
    }
}

values! {
    /// A limit of weir that ended a request, by the name of its setting where it has one.
    RequestLimit {
        /// The head of the request did not come in time.
        HeadTimeout "head_timeout",
        /// No byte of a body came, or was accepted by the origin, in time.
        BodyTimeout "body_timeout",
        /// The client accepted nothing of its answer in time.
        WriteTimeout "write_timeout",
        /// It accepted nothing for a second, while the buffers of this process are full.
        Buffered "buffered",
        /// Nothing moved in a tunnel.
        TunnelIdle "tunnel_idle",
        /// The request's body is longer than allowed.
        MaxBody "max_body",
        /// No connection to the origin was made in time.
        ConnectTimeout "connect_timeout",
        /// No head of an answer came in time.
        ResponseTimeout "response_timeout",
        /// The limit of a `timeout`.
        Timeout "timeout",
        /// The `timeout` of a `queue`, or of a wait for a full target.
        QueueTimeout "queue_timeout",
        /// The target was removed, or weir drains, and this time is over.
        DrainTimeout "drain_timeout",
        /// The peer floods weir with frames without progress (HTTP/2).
        Flood "flood",
    }
}

impl Method {
    /// Of a request.
    pub fn from_bytes(method: &[u8]) -> Method {
        match method {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"PATCH" => Method::Patch,
            b"OPTIONS" => Method::Options,
            b"CONNECT" => Method::Connect,
            b"TRACE" => Method::Trace,
            _ => Method::Other,
        }
    }
}

impl Protocol {
    /// Of a request.
    pub fn from_version(version: Version) -> Protocol {
        match version {
            Version::H10 => Protocol::H10,
            Version::H11 => Protocol::H11,
            Version::H2 => Protocol::H2,
        }
    }
}

/// Statuses from 100 to 599.
const CODES: usize = 500;
/// Indices of requests without a status, and with any other.
const NONE: usize = CODES;
const OTHER: usize = CODES + 1;

/// Requests of one method and protocol, by their status.
struct Codes([Count; CODES + 2]);

fn place(status: u16) -> usize {
    match status {
        0 => NONE,
        100..=599 => usize::from(status) - 100,
        _ => OTHER,
    }
}

/// A status in the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Number(u16),
    /// There was no head of an answer.
    None,
    /// Above 599.
    Other,
}

/// The outcome of an exchange, as in its line of the access log.
pub(crate) struct ExchangeOutcome {
    pub status: u16,
    pub failure: Outcome,
    /// The limit that ended it.
    pub limit: Option<RequestLimit>,
    /// Bytes of the request's body that were read, and of the answer's that the client accepted.
    pub received: u64,
    pub sent: u64,
    pub took_ns: u64,
    /// When it ended.
    pub now_ns: u64,
}

/// An answer of weir to a request's head alone.
#[derive(Clone, Copy)]
pub(crate) struct HeadAnswer {
    pub status: u16,
    /// The limit that refused it.
    pub limit: Option<RequestLimit>,
    /// Bytes of the answer's body.
    pub sent: usize,
}

/// The counters of one listener on one thread.
#[derive(Default)]
pub(crate) struct ListenerCounts {
    pub name: Arc<str>,
    /// By method and protocol; created when the first such request ends.
    requests: [OnceCell<Box<Codes>>; Method::COUNT * Protocol::COUNT],
    pub errors: Outcomes,
    pub duration: Histogram,
    /// The last minutes.
    pub recent: Recent,
    pub in_flight: Count,
    /// Requests that a panic ended.
    pub panics: Count,
    pub received: Count,
    pub sent: Count,
    pub accepted: Count,
    pub closed: CountsBy<Parting, { Parting::COUNT }>,
    pub handshakes: CountsBy<Handshake, { Handshake::COUNT }>,
    /// Requests that a limit ended.
    pub limits: CountsBy<RequestLimit, { RequestLimit::COUNT }>,
    /// Requests whose line `log_sample` left out.
    pub unlogged: Count,
    /// Messages that were refused, by the rule.
    refused: RefCell<BTreeMap<&'static str, u64>>,
}

impl ListenerCounts {
    /// Without counts.
    pub fn new(name: &str) -> ListenerCounts {
        ListenerCounts { name: name.into(), ..ListenerCounts::default() }
    }

    /// Counts the end of an exchange.
    pub fn exchanged(&self, method: &[u8], version: Version, ended: &ExchangeOutcome) {
        self.in_flight.less();
        self.count(Method::from_bytes(method), Protocol::from_version(version), ended);
    }

    /// Counts a request that was answered for its head alone: it was never in flight.
    pub fn refused(&self, request: Option<&[u8]>, version: Version, answer: &HeadAnswer, now_ns: u64) {
        let HeadAnswer { status, limit, sent } = *answer;
        let failure = Some(Kind::BadRequest);
        let sent = sent as u64;
        let ended = ExchangeOutcome { status, failure, limit, received: 0, sent, took_ns: 0, now_ns };
        self.count(
            request.map_or(Method::Other, Method::from_bytes),
            Protocol::from_version(version),
            &ended,
        );
    }

    fn count(&self, method: Method, protocol: Protocol, ended: &ExchangeOutcome) {
        let cell = &self.requests[method.index() * Protocol::COUNT + protocol.index()];
        let codes = cell.get_or_init(|| Box::new(Codes(std::array::from_fn(|_| Count::default()))));
        codes.0[place(ended.status)].one();
        let is_bad = || (ended.status >= 500).then_some(Kind::Status5xx);
        if let Some(kind) = ended.failure.or_else(is_bad) {
            self.errors.one(OutcomeLabel(Some(kind)));
        }
        if let Some(limit) = ended.limit {
            self.limits.one(limit);
        }
        self.duration.observe(ended.took_ns);
        self.recent.ended(ended.now_ns, is_failure(ended.status, ended.failure));
        self.recent.took(ended.now_ns, ended.took_ns);
        self.received.add(ended.received);
        self.sent.add(ended.sent);
    }

    /// Counts a message that breaks this rule.
    #[cold]
    pub fn broke(&self, rule: &'static str) {
        *self.refused.borrow_mut().entry(rule).or_default() += 1;
    }

    /// Requests by method, protocol and status, where there were any.
    pub fn each_request(&self) -> impl Iterator<Item = (Method, Protocol, Code, u64)> + '_ {
        let kinds = Method::ALL.iter().flat_map(|m| Protocol::ALL.iter().map(move |p| (*m, *p)));
        kinds.zip(&self.requests).flat_map(|((method, protocol), codes)| {
            let codes = codes.get().into_iter().flat_map(|codes| codes.0.iter().enumerate());
            codes.filter(|(_, count)| count.get() > 0).map(move |(at, count)| {
                let code = match at {
                    NONE => Code::None,
                    OTHER => Code::Other,
                    at => Code::Number(at as u16 + 100),
                };
                (method, protocol, code, count.get())
            })
        })
    }

    /// Messages that were refused, by the rule.
    pub fn each_rule(&self) -> Vec<(&'static str, u64)> {
        self.refused.borrow().iter().map(|(rule, count)| (*rule, *count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_once() {
        let counts = ListenerCounts::new("edge");
        let of = |status, failure| ExchangeOutcome {
            status,
            failure,
            limit: None,
            received: 1,
            sent: 2,
            took_ns: 5,
            now_ns: 9,
        };
        counts.in_flight.add(3);
        counts.exchanged(b"GET", Version::H11, &of(200, None));
        counts.exchanged(b"BREW", Version::H2, &of(0, Some(Kind::Reset)));
        counts.exchanged(b"GET", Version::H11, &of(999, None));
        counts.refused(None, Version::H11, &HeadAnswer { status: 400, limit: None, sent: 7 }, 9);
        let all: Vec<_> = counts.each_request().collect();
        assert_eq!(
            all,
            [
                (Method::Get, Protocol::H11, Code::Number(200), 1),
                (Method::Get, Protocol::H11, Code::Other, 1),
                (Method::Other, Protocol::H11, Code::Number(400), 1),
                (Method::Other, Protocol::H2, Code::None, 1),
            ]
        );
        let errors: Vec<_> = counts.errors.each().collect();
        assert_eq!(errors, [("reset", 1), ("status_5xx", 1), ("bad_request", 1)]);
        assert_eq!((counts.in_flight.get(), counts.received.get(), counts.sent.get()), (0, 3, 13));
        assert_eq!(counts.duration.observed().cumulative()[21], 4);
    }
}
