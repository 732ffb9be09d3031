//! The head of a response on its way back, and what is held until its end.

use super::hold::Holds;
use super::origin_reply::OriginReply;
use super::{Exchange, Failure};
use std::rc::Rc;
use weir_policy::{Kind, Outcome};

/// What is behind a node, or how it failed.
pub(crate) type Answer = Result<Reply, Failure>;

/// The head of a response and what is held until its end.
pub(crate) struct Reply {
    pub source: ReplySource,
    pub holds: Holds,
}

/// Where a response comes from.
pub(crate) enum ReplySource {
    /// weir's own: `respond`, `redirect`, a built-in server. It is there whole, so that nothing is held for it.
    Local(Rc<LocalAnswer>),
    /// An origin.
    Origin(Box<OriginReply>),
}

/// A response of weir's own.
#[derive(Clone)]
pub(crate) struct LocalAnswer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Rc<[u8]>,
    /// Whether a built-in server says so, rather than a fixed answer.
    pub by_server: bool,
}

impl LocalAnswer {
    /// What a built-in server of that name answers.
    pub fn server(name: &str) -> LocalAnswer {
        LocalAnswer {
            status: 200,
            headers: vec![("X-Weir-Server".to_owned(), name.to_owned())],
            body: format!("{name}\n").into_bytes().into(),
            by_server: true,
        }
    }
}

impl Reply {
    /// A response of weir's own.
    pub fn own(own: Rc<LocalAnswer>) -> Reply {
        Reply { source: ReplySource::Local(own), holds: Holds::default() }
    }

    /// The response's status.
    pub fn status(&self) -> u16 {
        match &self.source {
            ReplySource::Local(own) => own.status,
            ReplySource::Origin(origin) => origin.response().status(),
        }
    }

    /// Nobody wants it: another attempt follows. What is held learns how it ended.
    pub fn discard(self, ex: &Exchange) {
        let (outcome, status) = (self.outcome(), self.status());
        self.holds.finish(outcome, Some(status));
        if let ReplySource::Origin(origin) = self.source {
            origin.discard(ex);
        }
    }

    /// It leaves a place from which it is still a while on its way. If it has come back whole, nobody further in waits for that
    /// way: what is held ends. A tunnel has only begun.
    pub fn leaves(mut self, ex: &Exchange) -> Reply {
        let is_tunnel = self.status() == 101 || ex.request.is_connect();
        let is_whole = match &mut self.source {
            ReplySource::Local(_) => true,
            ReplySource::Origin(reply) => {
                !is_tunnel && reply.is_sent_whole() && reply.origin.has_come_whole()
            }
        };
        if is_whole {
            let (outcome, status) = (self.outcome(), self.status());
            std::mem::take(&mut self.holds).finish(outcome, Some(status));
        }
        self
    }

    /// How policies see it.
    pub fn outcome(&self) -> Outcome {
        (self.status() >= 500).then_some(Kind::Status5xx)
    }
}
