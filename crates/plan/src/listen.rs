//! The parts of a plan for serving: listeners with their HTTP settings, how weir connects to a server's origin, fixed
//! answers, redirects and rewriting. Durations are ns, sizes bytes; `None` means no limit unless stated otherwise.

use crate::address::Address;
use crate::http::InvalidWord;
use crate::{TlsClient, TlsServer};
use serde::{Deserialize, Serialize};
use weir_http1::Networks;
use weir_model::Dist;
use weir_model::connections::Limits;

const SECOND_NS: u64 = 1_000_000_000;
/// How long an idle connection to an origin is kept: shorter than most servers keep theirs (Node: 5 s), since a request
/// may meet its end.
const H1_IDLE_NS: u64 = 4 * SECOND_NS;
/// The same of HTTP/2, where GOAWAY says which requests were not begun.
const H2_IDLE_NS: u64 = 60 * SECOND_NS;

/// `listen(...)`: where requests come in. Its node's name is unique in the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listen {
    /// `:443`, `host:port`, `[::1]:80` or `unix:/path`; port 0 is a free one.
    pub addr: String,
    /// The protocol that is spoken there.
    pub protocol: ListenProtocol,
    /// On how many event loops (the first ones), at least 1; `None`: on all when served, on one when simulated.
    pub loops: Option<u32>,
    /// TLS; `None`: cleartext.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsServer>,
    /// Limits, timeouts, logs.
    pub http: Http,
}

impl Listen {
    /// Which of `trusted` and `proxy_from` names no peer that this listener can have, with the remedy.
    ///
    /// # Errors
    /// All entries of one are networks on a Unix socket, whose peers have no address, or all are `unix:` elsewhere.
    pub fn check_peers(&self) -> Result<(), InvalidWord> {
        let is_unix = matches!(Address::parse(&self.addr), Some(Address::Unix(_)));
        let Http { trusted, proxy_from, .. } = &self.http;
        // Behind `proxy_from` peers have the addresses that the PROXY protocol gives them.
        let (name, peers) =
            if proxy_from.is_empty() { ("trusted", trusted) } else { ("proxy_from", proxy_from) };
        if !peers.is_empty() && !peers.iter().any(|peer| (peer == Networks::UNIX) == is_unix) {
            let (problem, remedy) = if is_unix {
                (
                    "no peer of a Unix socket has an address",
                    "add \"unix:\": it means all peers of a Unix socket",
                )
            } else {
                (
                    "\"unix:\" means peers of a Unix socket, and this listener has none",
                    "name addresses or networks",
                )
            };
            return Err(InvalidWord::new(
                format!("`{name}` matches no peer: {problem}"),
                Some(remedy.to_owned()),
            ));
        }
        Ok(())
    }

    /// HTTP in cleartext at this address, with default settings.
    pub fn with_addr(addr: &str) -> Listen {
        let (protocol, http) = (ListenProtocol::Http, Http::default());
        Listen { addr: addr.to_owned(), protocol, loops: None, tls: None, http }
    }
}

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenProtocol {
    /// HTTP.
    #[default]
    Http,
}

/// A version of HTTP that a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpVersion {
    /// HTTP/1.1 and HTTP/1.0.
    H1,
    /// HTTP/2.
    H2,
}

/// The meaning of the end of a client's stream after a whole request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HalfClose {
    /// The client has gone: the exchange is cancelled.
    #[default]
    Cancel,
    /// It still reads: it gets its answer.
    Answer,
}

/// The treatment of paths whose meaning changes when they are normalised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Paths {
    /// 400, where the two would take different routes.
    #[default]
    Safe,
    /// They pass.
    Raw,
}

/// The form of an access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// A JSON object per line.
    #[default]
    Json,
    /// The combined format.
    Combined,
}

/// `http(...)`: what a listener allows and for how long it waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Http {
    /// Versions spoken, ascending, each once; at least one.
    pub versions: Vec<HttpVersion>,
    /// The longest head of a request, bytes; 256 to 131,072.
    pub max_head: u64,
    /// Fields of a head at most; 1 to 10,000.
    pub max_headers: u32,
    /// The longest body of a request, bytes.
    pub max_body: Option<u64>,
    /// The time from the first byte of a head to its end.
    pub head_timeout_ns: Option<u64>,
    /// Silence between two bytes of a body.
    pub body_timeout_ns: Option<u64>,
    /// How long a client may read nothing of its response.
    pub write_timeout_ns: Option<u64>,
    /// Between two requests of a connection.
    pub idle_timeout_ns: Option<u64>,
    /// Requests of a connection at most, at least 1.
    pub max_requests: Option<u64>,
    /// How old a connection may be when a request begins.
    pub max_age_ns: Option<u64>,
    /// Streams of an HTTP/2 connection at most; 1 to 2^31 - 1.
    pub max_streams: u32,
    /// Connections at most, at least 1.
    pub max_clients: Option<u64>,
    /// Connections of one address at most, at least 1.
    pub max_clients_per_address: Option<u64>,
    /// Protocols that may be upgraded to, lower case; never `h2c`.
    pub upgrade: Vec<String>,
    /// The authorities that CONNECT may name: `host:port`, or `*.example.com:port`; hosts in lower case.
    pub connect: Vec<String>,
    /// Silence in both directions of a tunnel.
    pub tunnel_idle_ns: Option<u64>,
    /// The meaning of the end of a client's stream.
    pub half_close: HalfClose,
    /// Addresses and networks (CIDR) whose `X-Forwarded-*` fields are trusted; `unix:` means the peers of a Unix
    /// socket.
    pub trusted: Vec<String>,
    /// Addresses and networks (CIDR), or `unix:`, that send the PROXY protocol.
    pub proxy_from: Vec<String>,
    /// The treatment of ambiguous paths.
    pub paths: Paths,
    /// The time from the signal to the first closed socket; 0: none.
    pub drain_delay_ns: u64,
    /// How long open requests may continue when draining; 0: they are cut off at once.
    pub drain_timeout_ns: u64,
    /// `stdout`, `stderr` or a path; `None`: no log.
    pub access_log: Option<String>,
    /// Its form.
    pub log_format: LogFormat,
    /// Fields of messages that each JSON line has: `header:NAME` and `response:NAME`, see [`crate::log_field`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_fields: Vec<String>,
    /// The share of lines of requests that ended well that is written; 0 to 1.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub log_sample: f64,
    /// The field that names a request, from here to the origin and back; `None`: requests have no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The share of requests whose history is written down; 0 to 1. With 0 none is, else those that `traceparent`
    /// samples as well.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trace: f64,
}

fn whole() -> f64 {
    1.0
}

fn is_whole(share: &f64) -> bool {
    *share == 1.0
}

fn streams() -> u32 {
    100
}

fn is_streams(most: &u32) -> bool {
    *most == streams()
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

impl Http {
    /// Checks that what is set for the access log can act.
    ///
    /// # Errors
    /// There is no log, or it has no room for fields.
    pub fn check_log(&self) -> Result<(), InvalidWord> {
        let no = |problem: &str, remedy: &str| Err(InvalidWord::new(problem, Some(remedy.to_owned())));
        if self.access_log.is_none() && !self.log_fields.is_empty() {
            return no("`log_fields` has no effect without `access_log`", "add `access_log=\"stdout\"`");
        }
        if self.access_log.is_none() && self.log_sample < 1.0 {
            return no("`log_sample` has no effect without `access_log`", "add `access_log=\"stdout\"`");
        }
        if self.log_format == LogFormat::Combined && !self.log_fields.is_empty() {
            return no(
                "lines of `log_format=\"combined\"` have no room for `log_fields`",
                "use `log_format=\"json\"`",
            );
        }
        Ok(())
    }

    /// Where histories of requests go: to the access log, or standard output where there is none; `None`: none are
    /// written.
    pub fn traces(&self) -> Option<&str> {
        (self.trace > 0.0).then(|| self.access_log.as_deref().unwrap_or("stdout"))
    }

    /// Whether lines of its logs go there.
    pub fn logs_to(&self, place: &str) -> bool {
        self.access_log.as_deref() == Some(place) || self.traces() == Some(place)
    }
}

impl Default for Http {
    fn default() -> Http {
        Http {
            versions: vec![HttpVersion::H1, HttpVersion::H2],
            max_head: 32 * 1024,
            max_headers: 100,
            max_body: None,
            head_timeout_ns: Some(10 * SECOND_NS),
            body_timeout_ns: Some(30 * SECOND_NS),
            write_timeout_ns: Some(30 * SECOND_NS),
            idle_timeout_ns: Some(60 * SECOND_NS),
            max_requests: Some(100_000),
            max_age_ns: Some(3600 * SECOND_NS),
            max_streams: 100,
            max_clients: None,
            max_clients_per_address: None,
            upgrade: vec!["websocket".to_owned()],
            connect: Vec::new(),
            tunnel_idle_ns: Some(3600 * SECOND_NS),
            half_close: HalfClose::Cancel,
            trusted: Vec::new(),
            proxy_from: Vec::new(),
            paths: Paths::Safe,
            drain_delay_ns: 0,
            drain_timeout_ns: 10 * SECOND_NS,
            access_log: None,
            log_format: LogFormat::Json,
            log_fields: Vec::new(),
            log_sample: 1.0,
            request_id: None,
            trace: 0.0,
        }
    }
}

/// The protocol to an origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OriginProtocol {
    /// HTTP/1.1, unless TLS agrees on HTTP/2.
    #[default]
    Auto,
    /// HTTP/1.1.
    H1,
    /// HTTP/2; in cleartext by prior knowledge.
    H2,
}

/// The version of the PROXY protocol that announces the client's address to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendProxy {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// How a server's origin is spoken to. Of a server without address (built in) the protocol, idle times, `max_age_ns`,
/// `max_requests` and `max_streams` are used; TLS only says that `auto` means HTTP/2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The protocol.
    pub protocol: OriginProtocol,
    /// TLS; `None`: cleartext.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsClient>,
    /// How long a connection may take to establish (TCP and TLS each).
    pub connect_timeout_ns: Option<u64>,
    /// From the last byte of the request to the final head; none for built-in servers.
    pub response_timeout_ns: Option<u64>,
    /// Silence between two bytes of a body.
    pub body_timeout_ns: Option<u64>,
    /// How long a connection is kept without a request.
    pub idle_timeout_ns: Option<u64>,
    /// How long one of HTTP/2 is; `None`: as long as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub h2_idle_timeout_ns: Option<u64>,
    /// How old a connection may be when a request begins.
    pub max_age_ns: Option<u64>,
    /// Requests of a connection at most, at least 1.
    pub max_requests: Option<u64>,
    /// How long a new connection takes in a simulation; `None`: connections are not simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<Dist>,
    /// The server's work for a new connection in a simulation, ns.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub connect_cost_ns: u64,
    /// Requests at once on a connection of HTTP/2 at most; 1 to 2^31 - 1.
    #[serde(default = "streams", skip_serializing_if = "is_streams")]
    pub max_streams: u32,
    /// The header that a connection begins with; such a connection belongs to one client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_proxy: Option<SendProxy>,
}

fn is_nothing(ns: &u64) -> bool {
    *ns == 0
}

impl Default for Origin {
    fn default() -> Origin {
        Origin {
            protocol: OriginProtocol::Auto,
            tls: None,
            connect_timeout_ns: Some(SECOND_NS),
            response_timeout_ns: Some(60 * SECOND_NS),
            body_timeout_ns: Some(60 * SECOND_NS),
            idle_timeout_ns: Some(H1_IDLE_NS),
            h2_idle_timeout_ns: None,
            max_age_ns: None,
            max_requests: None,
            connect: None,
            connect_cost_ns: 0,
            max_streams: streams(),
            send_proxy: None,
        }
    }
}

impl Origin {
    /// The defaults of a server with an address, or of one without.
    pub fn new(has_addr: bool) -> Origin {
        let all = Origin::default();
        Origin { response_timeout_ns: all.response_timeout_ns.filter(|_| has_addr), ..all }
    }

    /// Whether HTTP/2 may be spoken.
    pub fn may_speak_h2(&self) -> bool {
        match self.protocol {
            OriginProtocol::H1 => false,
            OriginProtocol::H2 => true,
            // A connection that names one client is no good for others.
            OriginProtocol::Auto => self.tls.is_some() && self.send_proxy.is_none(),
        }
    }

    /// How a server of this process is spoken to in the place of this one: without TLS, so that both sides know the
    /// version beforehand.
    pub fn built_in(&self) -> Origin {
        let protocol = if self.may_speak_h2() { OriginProtocol::H2 } else { OriginProtocol::H1 };
        Origin {
            protocol,
            idle_timeout_ns: self.idle_ns(protocol == OriginProtocol::H2),
            max_age_ns: self.max_age_ns,
            max_requests: self.max_requests,
            max_streams: self.max_streams,
            ..Origin::new(false)
        }
    }

    /// Gives connections the idle times that they have where a file says nothing: 4 s, and 60 s where HTTP/2 is spoken.
    pub fn set_default_idle(&mut self, may_speak_h2: bool) {
        (self.idle_timeout_ns, self.h2_idle_timeout_ns) = match (self.protocol, may_speak_h2) {
            (OriginProtocol::H2, _) => (Some(H2_IDLE_NS), None),
            (_, true) => (Some(H1_IDLE_NS), Some(H2_IDLE_NS)),
            (_, false) => (Some(H1_IDLE_NS), None),
        };
    }

    /// How long a connection is kept without a request: one of HTTP/2, or one of HTTP/1.1. `None`: without limit.
    pub fn idle_ns(&self, is_h2: bool) -> Option<u64> {
        self.h2_idle_timeout_ns.filter(|_| is_h2).or(self.idle_timeout_ns)
    }
}

/// How the connections to a server are opened and kept, in a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connecting {
    /// How long until a new one is open.
    pub connect: Dist,
    /// The most of that, ns.
    pub timeout_ns: Option<u64>,
    /// The server's work for a new one, ns.
    pub cost_ns: u64,
    /// Whether it is by TLS.
    pub tls: bool,
    /// How long it is kept, and how many requests it carries.
    pub limits: Limits,
}

impl Connecting {
    /// Those of a server; `None` where they are not simulated. `all`: they are of each server, in no time where the file
    /// says nothing.
    pub fn new(origin: &Origin, all: bool) -> Option<Connecting> {
        let at_once = Dist::Fixed { ns: 0 };
        let connect = origin.connect.clone().or_else(|| all.then_some(at_once))?;
        let is_h2 = origin.may_speak_h2();
        Some(Connecting {
            connect,
            timeout_ns: origin.connect_timeout_ns,
            cost_ns: origin.connect_cost_ns,
            tls: origin.tls.is_some(),
            limits: Limits {
                streams: is_h2.then_some(origin.max_streams),
                idle_ns: origin.idle_ns(is_h2),
                age_ns: origin.max_age_ns,
                requests: origin.max_requests,
            },
        })
    }

    /// Whether one is opened in no time.
    pub fn is_free(&self) -> bool {
        self.connect == Dist::Fixed { ns: 0 } && self.cost_ns == 0
    }

    /// Whether one may not be opened in time, or refused: the server's work for it may find a full queue.
    pub fn may_fail(&self) -> bool {
        let in_time = |most: u64| matches!(self.connect, Dist::Fixed { ns } if ns <= most);
        self.cost_ns > 0 || self.timeout_ns.is_some_and(|most| !in_time(most))
    }
}

/// `rewrite(...)`: fields have lower-case names and keep the order of the file; fields for framing are excluded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rewrite {
    /// A prefix of the path (in normal form, [`crate::path`]), and what takes its place; both begin with `/`.
    pub path: Option<(String, String)>,
    /// Fields of the request that are set; values are templates, see [`crate::template`].
    pub set: Vec<(String, String)>,
    /// Fields of the request that are removed.
    pub remove: Vec<String>,
    /// Fields of the response that are set; values are templates, filled in from the request.
    pub response_set: Vec<(String, String)>,
    /// Fields of the response that are removed.
    pub response_remove: Vec<String>,
}
