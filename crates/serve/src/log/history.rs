//! The history of a request, in the schema of `weir sim --trace`: its stages with their times, each a part of the
//! latency or of a branch that lost.

use super::format::{outcome, quote};
use super::notes::{Notes, Stage, Stages};
use std::fmt::Write as _;
use weir_policy::history::StageKind;
use weir_policy::{Kind, Outcome};

/// A request that has ended.
pub(crate) struct History<'a> {
    /// The listener that it came to.
    pub listener: &'a str,
    pub begun_ns: u64,
    pub ended_ns: u64,
    pub outcome: Outcome,
    /// Its name (`request_id`), and its trace's.
    pub id: Option<&'a str>,
    pub trace_id: Option<u128>,
    /// Attempts that it began.
    pub attempts: u32,
    pub notes: &'a Notes,
    pub stages: &'a Stages,
}

/// A stage of the line.
struct Part {
    stage: Stage,
    /// Whether it is a part of the latency.
    counts: bool,
}

impl History<'_> {
    /// Writes it as a line. `loop, number`: its serial number.
    pub(super) fn format(&self, replication: u32, request: u64, text: &mut String) {
        let History { listener, begun_ns, id, .. } = self;
        text.push_str("{\"schema\":\"weir.trace/1\",\"scenario\":");
        quote(text, listener.as_bytes());
        let latency_ns = self.ended_ns.saturating_sub(*begun_ns);
        let ended = outcome(self.outcome);
        let _ = write!(
            text,
            ",\"replication\":{replication},\"request\":{request},\"arrived_ns\":{begun_ns},\"latency_ns\":{latency_ns},\"outcome\":\"{ended}\""
        );
        if let Some(id) = id {
            text.push_str(",\"request_id\":");
            quote(text, id.as_bytes());
        }
        if let Some(trace_id) = self.trace_id {
            let _ = write!(text, ",\"trace_id\":\"{trace_id:032x}\"");
        }
        text.push_str(",\"stages\":[");
        for (at, part) in self.parts().iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            self.stage(&part.stage, part.counts, text);
        }
        text.push_str("]}\n");
    }

    /// All stages by their beginning. Parts of the latency without a stage were spent in weir itself, and after the
    /// head of the answer in relaying it: so the stages that count add up to the latency.
    fn parts(&self) -> Vec<Part> {
        let mut noted: Vec<Stage> = self.stages.all.clone();
        noted.sort_by_key(|stage| (stage.from_ns, stage.to_ns));
        let mut parts = Vec::with_capacity(noted.len() + 2);
        let mut at_ns = self.begun_ns;
        for mut stage in noted {
            let counts = self.stages.counts(stage.branch);
            if counts {
                // Two clocks' readings may cross by a little.
                stage.from_ns = stage.from_ns.max(at_ns);
                stage.to_ns = stage.to_ns.max(stage.from_ns).min(self.ended_ns);
                if stage.from_ns > at_ns {
                    parts.push(self.own(StageKind::Work, at_ns, stage.from_ns, stage.attempt));
                }
                at_ns = stage.to_ns;
            }
            parts.push(Part { stage, counts });
        }
        if self.ended_ns > at_ns {
            parts.push(self.own(StageKind::Answer, at_ns, self.ended_ns, self.attempts));
        }
        parts
    }

    /// Time in weir itself.
    fn own(&self, what: StageKind, from_ns: u64, to_ns: u64, attempt: u32) -> Part {
        let stage = Stage { site: None, what, from_ns, to_ns, attempt, branch: 0, tried: None };
        Part { stage, counts: true }
    }

    fn stage(&self, stage: &Stage, counts: bool, text: &mut String) {
        let listener = || (String::new(), self.listener.to_owned());
        let (site, member) = stage.site.clone().unwrap_or_else(listener);
        text.push_str("{\"site\":");
        quote(text, if site.is_empty() { member.as_bytes() } else { site.as_bytes() });
        text.push_str(",\"member\":");
        quote(text, member.as_bytes());
        let Stage { what, from_ns, to_ns, attempt, branch, .. } = stage;
        let begun_ns = self.begun_ns;
        let (from, to) = (from_ns.saturating_sub(begun_ns), to_ns.saturating_sub(begun_ns));
        let _ = write!(
            text,
            ",\"from_ns\":{from},\"to_ns\":{to},\"what\":\"{}\",\"attempt\":{attempt},\"branch\":{branch}",
            what.name()
        );
        let tried = self.notes.tried.borrow();
        match stage.tried.and_then(|at| tried.get(at)) {
            Some(tried) => {
                text.push_str(",\"target\":");
                quote(text, tried.target.name().as_bytes());
                let ended = outcome(tried.outcome.unwrap_or(Some(Kind::Cancelled)));
                let _ = write!(text, ",\"outcome\":\"{ended}\"");
            }
            None => text.push_str(",\"target\":null,\"outcome\":null"),
        }
        let _ = write!(text, ",\"counts\":{counts}}}");
    }
}
