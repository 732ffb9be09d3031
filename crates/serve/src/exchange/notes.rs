//! Notes of an exchange for its line in the access log. Nothing is noted if no log is written.

use super::failure::Failure;
use super::reply::Answer;
use super::{Exchange, NodeId, RequestContext, Upstream};
use crate::log::notes::{Notes, Stage, Target, TriedTarget};
use std::rc::Rc;
use weir_http1::{Edits, Response};
use weir_policy::history::StageKind;
use weir_policy::{Kind, Outcome};

/// One of several parallel branches of a request (`hedge`); 0 is the request's own path.
pub(crate) type Branch = u32;

impl<T: Upstream> Target for T {
    fn name(&self) -> &str {
        Upstream::name(self)
    }
}

/// An attempt that is noted; one that is dropped before its end was cancelled. Small, since it is part of each
/// request's future.
pub(crate) struct NotedAttempt<'a> {
    ex: &'a Exchange,
    from_ns: u64,
    /// Its site, if a history is written.
    site: Option<Box<(String, String)>>,
    branch: Branch,
    attempt: u32,
    /// Its index among the targets that were tried.
    tried: u32,
    ended: bool,
}

impl NotedAttempt<'_> {
    /// Notes the attempt's end: a head or a failure.
    pub fn ends(mut self, answer: &Answer) {
        let outcome = match answer {
            Ok(reply) => reply.outcome(),
            Err(Failure { kind, .. }) => Some(*kind),
        };
        self.end(outcome);
    }

    fn end(&mut self, outcome: Outcome) {
        self.ended = true;
        let Some(notes) = &self.ex.notes else { return };
        let at = self.tried as usize;
        if let Some(tried) = notes.tried.borrow_mut().get_mut(at) {
            tried.outcome = Some(outcome);
        }
        notes.stage(|| Stage {
            site: self.site.take().map(|site| *site),
            what: StageKind::Work,
            from_ns: self.from_ns,
            to_ns: self.ex.core.now(),
            attempt: self.attempt,
            branch: self.branch,
            tried: Some(at),
        });
    }
}

impl Drop for NotedAttempt<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.end(Some(Kind::Cancelled));
        }
    }
}

impl Exchange {
    /// The time, if it is noted; otherwise 0.
    pub fn moment(&self) -> u64 {
        if self.notes.is_some() { self.core.now() } else { 0 }
    }

    /// Notes a wait at a node that began at `since_ns`.
    pub fn waited(&self, node: NodeId, ctx: &RequestContext, since_ns: u64) {
        let Some(notes) = &self.notes else { return };
        let to_ns = self.core.now();
        notes.queue_ns.set(notes.queue_ns.get() + to_ns.saturating_sub(since_ns));
        self.spent(notes, node, ctx, StageKind::Wait, since_ns, to_ns);
    }

    /// Notes a wait before a further attempt.
    pub fn backed_off(&self, node: NodeId, ctx: &RequestContext, since_ns: u64) {
        if let Some(notes) = &self.notes {
            self.spent(notes, node, ctx, StageKind::Backoff, since_ns, self.core.now());
        }
    }

    fn spent(
        &self,
        notes: &Notes,
        node: NodeId,
        ctx: &RequestContext,
        what: StageKind,
        from_ns: u64,
        to_ns: u64,
    ) {
        let (attempt, branch) = (self.attempts(), ctx.branch);
        notes.stage(|| {
            let site = self.site(ctx, node);
            Stage { site, what, from_ns, to_ns, attempt, branch, tried: None }
        });
    }

    /// Notes an attempt at a target.
    pub fn tries(
        &self,
        node: NodeId,
        ctx: &RequestContext,
        upstream: &Rc<impl Upstream + 'static>,
    ) -> Option<NotedAttempt<'_>> {
        let notes = self.notes.as_ref()?;
        let mut tried = notes.tried.borrow_mut();
        let at = tried.len();
        tried.push(TriedTarget { target: upstream.clone(), outcome: None });
        Some(NotedAttempt {
            ex: self,
            from_ns: self.core.now(),
            site: notes.stages.as_ref().and_then(|_| self.site(ctx, node)).map(Box::new),
            branch: ctx.branch,
            attempt: self.attempts(),
            tried: at as u32,
            ended: false,
        })
    }

    /// Notes that an attempt has its connection; returns the time.
    pub fn connected(&self, since_ns: u64) -> u64 {
        let Some(notes) = &self.notes else { return 0 };
        let now_ns = self.core.now();
        notes.connect_ns.set(Some(now_ns.saturating_sub(since_ns)));
        notes.response_ns.set(None);
        now_ns
    }

    /// Notes the head of an answer.
    pub fn headed(&self, since_ns: u64) {
        if let Some(notes) = &self.notes {
            notes.response_ns.set(Some(self.core.now().saturating_sub(since_ns)));
        }
    }

    /// Notes the fields of an origin's answer that the log has.
    pub fn note_response(&self, response: &Response, edits: &Edits) {
        if let (Some(notes), Some(log)) = (&self.notes, &self.listener().log) {
            *notes.response.borrow_mut() = log.fields.read_response(response, edits);
        }
    }

    /// Notes the same of an answer of weir's own.
    pub fn note_own(&self, fields: &[(&str, &[u8])]) {
        if let (Some(notes), Some(log)) = (&self.notes, &self.listener().log) {
            *notes.response.borrow_mut() = log.fields.read_own(fields);
        }
    }

    /// Notes that the request was read completely.
    pub fn note_request_read(&self) {
        if let Some(notes) = &self.notes {
            notes.request_ns.set(Some(self.core.now().saturating_sub(self.begun_ns)));
        }
    }

    /// Opens a branch of another branch.
    pub fn branches(&self, of: Branch) -> Branch {
        let Some(stages) = self.notes.as_ref().and_then(|notes| notes.stages.as_ref()) else { return 0 };
        let branches = &mut stages.borrow_mut().branches;
        branches.push((of, false));
        branches.len() as Branch
    }

    /// Notes that another branch was faster.
    pub fn lost(&self, branch: Branch) {
        if let Some(stages) = self.notes.as_ref().and_then(|notes| notes.stages.as_ref())
            && let Some(at) = (branch as usize).checked_sub(1)
            && let Some((_, lost)) = stages.borrow_mut().branches.get_mut(at)
        {
            *lost = true;
        }
    }
}
