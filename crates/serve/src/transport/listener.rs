//! `listen(addr, node, ...)`: what the connections of a listener have in common.

use crate::log::{ErrorLog, LoopLog};
use crate::metrics::ListenerCounts;
use crate::transport::inner::OwnConnections;
use crate::verify_run::VerifyRun;
use std::rc::Rc;
use std::sync::Arc;
use weir_http1::{Limits, Networks};
use weir_net::io::Core;
use weir_net::transport::tls;
use weir_plan::{Http, Paths};

/// Where requests of a listener enter the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The listener with this number.
    Listener(usize),
    /// The root of a built-in server, by its identity.
    BuiltIn(u32),
}

/// What a listener behind others trusts about connections of its own process.
#[derive(Clone)]
pub(crate) struct OwnProcessTrust {
    pub own: Arc<OwnConnections>,
    /// The peers whose X-Forwarded-For it and the listeners in front trust; a connection of its own process counts as
    /// one without an address of its own.
    pub trusted: Networks,
}

/// A listener as one loop sees it.
pub(crate) struct Listener {
    pub entry: Entry,
    /// Its name.
    pub name: String,
    /// Its address as written.
    pub addr: String,
    pub http: Http,
    pub limits: Limits,
    pub trusted: Networks,
    /// Peers that must announce their clients by the PROXY protocol.
    pub proxy_from: Networks,
    pub raw_paths: bool,
    pub port: Option<u16>,
    /// TLS; `None`: cleartext.
    pub tls: Option<Arc<tls::Server>>,
    pub log: Option<LoopLog>,
    /// The log of its requests' histories.
    pub traces: Option<LoopLog>,
    /// Its counters on this loop.
    pub counts: Rc<ListenerCounts>,
    /// The log of failed requests.
    pub errors: Option<Arc<ErrorLog>>,
    /// The token by which it recognises requests of this process, or of other processes of its run; `None`: it trusts
    /// none.
    pub believes: Option<u64>,
    /// The run that receives events, in a verification.
    pub run: Option<Arc<VerifyRun>>,
    /// The number of the root of the built-in server that this is the inside of.
    pub built_in: Option<u32>,
    /// The number of listeners in front of it; see [`weir_plan::levels`].
    pub level: u32,
    /// For a listener behind others: what it trusts.
    pub inner: Option<OwnProcessTrust>,
}

/// What the file says of a listener, and what it was bound to.
pub(crate) struct ListenerConfig<'a> {
    pub name: &'a str,
    /// Its address as written.
    pub addr: &'a str,
    pub http: &'a Http,
    /// The port that it was bound to; `None`: a Unix socket.
    pub port: Option<u16>,
    pub tls: Option<Arc<tls::Server>>,
}

/// The logs that a listener writes on one loop.
pub(crate) struct ListenerLogs {
    pub access: Option<LoopLog>,
    /// Receives the histories of requests.
    pub traces: Option<LoopLog>,
    /// Receives the reasons of failures.
    pub errors: Arc<ErrorLog>,
}

impl Listener {
    /// A listener of the file.
    pub fn new(
        number: usize,
        config: &ListenerConfig<'_>,
        logs: ListenerLogs,
        run: Option<Arc<VerifyRun>>,
    ) -> Listener {
        let ListenerConfig { name, addr, http, port, tls } = config;
        let ListenerLogs { access, traces, errors } = logs;
        Listener {
            entry: Entry::Listener(number),
            name: (*name).to_owned(),
            addr: (*addr).to_owned(),
            limits: Limits {
                max_head: usize::try_from(http.max_head).unwrap_or(usize::MAX),
                max_headers: http.max_headers as usize,
                ..Limits::default()
            },
            trusted: Networks::parse(&http.trusted).unwrap_or_default(),
            proxy_from: Networks::parse(&http.proxy_from).unwrap_or_default(),
            raw_paths: http.paths == Paths::Raw,
            port: *port,
            tls: tls.clone(),
            log: access,
            traces,
            counts: Rc::default(),
            errors: Some(errors),
            believes: run.as_ref().map(|run| run.secret),
            run,
            built_in: None,
            level: 0,
            inner: None,
            http: (*http).clone(),
        }
    }

    /// Its number among the listeners of the file.
    pub fn number(&self) -> Option<usize> {
        if let Entry::Listener(number) = self.entry { Some(number) } else { None }
    }

    /// Whether this is the inside of the built-in servers.
    pub fn is_built_in(&self) -> bool {
        matches!(self.entry, Entry::BuiltIn(_))
    }

    /// When a connection made now will be too old, ns; up to a tenth sooner or later.
    pub fn old_ns(&self, core: &Core) -> u64 {
        match self.http.max_age_ns {
            None => u64::MAX,
            Some(age) => {
                let tenth = (age / 10).max(1);
                core.now().saturating_add(age - tenth).saturating_add(core.draw().below(2 * tenth))
            }
        }
    }
}
