//! The head of a response on its way back, and the holds until its end.

use super::hold::Holds;
use super::origin_reply::OriginReplyBox;
use super::{Exchange, Failure};
use std::rc::Rc;
use std::sync::Arc;
use weir_policy::{Kind, Outcome};

/// The result of running a node.
pub(crate) type Answer = Result<Reply, Failure>;

/// The head of a response and the holds until its end.
pub(crate) struct Reply {
    pub source: ReplySource,
    pub holds: Holds,
}

/// Where a response comes from.
pub(crate) enum ReplySource {
    /// weir itself: `respond`, `redirect`, a built-in server. The answer is complete, so nothing is held for it.
    Local(Rc<LocalAnswer>),
    /// An origin.
    Origin(OriginReplyBox),
}

/// A response of weir itself.
#[derive(Clone)]
pub(crate) struct LocalAnswer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Rc<[u8]>,
    /// Whether a built-in server gave it, rather than a fixed answer.
    pub by_server: bool,
    /// The fields in which it reports the load of its server, if that has one.
    pub load_fields: Arc<[Box<str>]>,
}

impl LocalAnswer {
    /// The answer of a built-in server with this name, which reports its load in these fields.
    pub fn server(name: &str, load_fields: Arc<[Box<str>]>) -> LocalAnswer {
        LocalAnswer {
            status: 200,
            headers: vec![("X-Weir-Server".to_owned(), name.to_owned())],
            body: format!("{name}\n").into_bytes().into(),
            by_server: true,
            load_fields,
        }
    }
}

impl Reply {
    /// A response of weir itself.
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

    /// Discards the reply, as another attempt follows. Its holds are given its outcome.
    pub fn discard(self, ex: &Exchange) {
        let (outcome, status) = (self.outcome(), self.status());
        self.holds.finish(outcome, Some(status));
        if let ReplySource::Origin(origin) = self.source {
            origin.into_inner().discard(ex);
        }
    }

    /// Releases the holds of a complete reply that still has a link to cross, so that requests further in do not wait
    /// for that. A tunnel has only begun and keeps them.
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

    /// The outcome that policies see.
    pub fn outcome(&self) -> Outcome {
        (self.status() >= 500).then_some(Kind::Status5xx)
    }
}
