//! The options of `weir gate`.

use crate::log::LogFormat;
use crate::url::Url;
use std::time::Duration;
use weir_plan::address::Address;
use weir_policy::gate::{Flap, GateArgs, Work};

/// By what an asker is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AskerKey {
    /// The address that the check comes from.
    #[default]
    Peer,
    /// The value of this field of the check, if it has one.
    Header(String),
}

/// Judgement by requests that come in.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkOptions {
    /// Requests that must have entered since an asker's last check; at least 1.
    pub min_requests: u64,
    /// A page of metrics that counts them.
    pub from: Url,
    /// The family in it; `None`: the first that is known.
    pub family: Option<String>,
    /// The other gates, `HOST:PORT`: all addresses of the name.
    pub peers: Option<String>,
    /// Time from the beginning in which requests are not judged.
    pub grace: Duration,
    /// For how long all are turned away the first time.
    pub hold: Duration,
    /// For how long at most.
    pub max_hold: Duration,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The application's own check.
    pub url: Url,
    /// Where checks are answered, as written and parsed; at least one.
    pub listen: Vec<(String, Address)>,
    /// Where HAProxy's agent checks are answered.
    pub agent: Option<(String, Address)>,
    /// From the beginning until every asker is let in; `None`: no ramp.
    pub ramp: Option<Duration>,
    /// By what rule askers are let in.
    pub flap: Flap,
    /// By what they are known.
    pub key: AskerKey,
    /// The name of the process; `None`: the host's, and the authority of `url`.
    pub id: Option<String>,
    /// How often the application is asked.
    pub interval: Duration,
    /// For how long at most.
    pub timeout: Duration,
    /// Statuses of a healthy application.
    pub expect: Vec<(u16, u16)>,
    /// Judgement by requests that come in.
    pub work: Option<WorkOptions>,
    /// For how long all are turned away before the end.
    pub linger: Duration,
    /// The form of the log.
    pub log: LogFormat,
}

impl Options {
    /// The name of the process.
    pub fn id(&self) -> String {
        match &self.id {
            Some(id) => id.clone(),
            None => id(self.url.authority()),
        }
    }

    pub(crate) fn gate(&self) -> GateArgs {
        let work = self.work.as_ref().map(|work| Work {
            min_requests: work.min_requests,
            is_relative: work.peers.is_some(),
            grace_ns: ns(work.grace),
            hold_ns: ns(work.hold),
            max_hold_ns: ns(work.max_hold),
        });
        GateArgs { ramp_ns: self.ramp.map(ns), flap: self.flap, work }
    }
}

/// The name of a process on this host: `/` and its authority, if any, behind the host's.
pub(crate) fn id(authority: &str) -> String {
    format!("{}/{authority}", rustix::system::uname().nodename().to_string_lossy())
}

pub(crate) fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
