//! Which requests' histories are kept, and what a history is.

use super::tracks::{RecordedRequest, StageTime};
use crate::code::Code;
use crate::code::{MemberId, StageId};
use weir_plan::NodeId;
use weir_policy::history::StageKind;
use weir_policy::{Kind, Outcome, TargetId};
use weir_stats::Key;

/// Which requests are recorded.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// This many of each scenario with the longest latencies, among those that the window selects; of equal ones the
    /// first.
    Slowest(usize),
    /// Each with this probability. The draw depends on seed, replication and request only.
    Sample(f64),
    /// All of them.
    All,
    /// Those with these numbers (from 0, in order of arrival), of every replication.
    These(Vec<u64>),
}

/// An interval of a request's time, or an instant: the moment of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// The node.
    pub node: NodeId,
    /// When it began, counted from the request's arrival.
    pub from_ns: u64,
    /// When it ended, counted likewise.
    pub to_ns: u64,
    /// What happened in it.
    pub what: StageKind,
    /// How many attempts the request had begun by then.
    pub attempt: u32,
    /// The number of the parallel branch (`hedge`, `fanout`); 0: the request's own.
    pub branch: u32,
    /// The balancer that last sent it on, and the index of the target.
    pub target: Option<(NodeId, TargetId)>,
    /// How that attempt came back, or what was answered here; `None`: unknown.
    pub outcome: Option<Outcome>,
    /// Whether it lies on the path that decided the latency.
    pub counts: bool,
}

/// The history of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The replication.
    pub replication: u32,
    /// Its number in the replication.
    pub request: u64,
    /// When it arrived.
    pub arrived_ns: u64,
    /// Its latency; `None`: it was never answered.
    pub latency_ns: Option<u64>,
    /// Whether the window selects it.
    pub selected: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// In the order in which they began.
    pub stages: Vec<Stage>,
}

/// The number of values a draw can take.
const TWO_TO_64: f64 = (1u128 << 64) as f64;

/// Stages that are kept of one replication, at most: ten replications at this limit take some gigabytes.
pub(crate) const MOST_STAGES: usize = 4_000_000;

/// The requests of a replication that are kept.
pub(crate) struct HistoryStore {
    selection: Selection,
    draws: Key,
    pub all: Vec<RecordedRequest>,
    stages: usize,
    /// Whether there were more than can be kept.
    pub too_many: bool,
}

impl HistoryStore {
    pub fn new(selection: &Selection, seed: u64, replication: u32) -> HistoryStore {
        let draws = Key::new(seed).with_text("trace").with(u64::from(replication));
        HistoryStore { selection: selection.clone(), draws, all: Vec::new(), stages: 0, too_many: false }
    }

    /// Whether a request can be among them.
    pub fn may_be(&self, request: u64, selected: bool) -> bool {
        match &self.selection {
            Selection::Slowest(_) => selected,
            Selection::Sample(p) => (self.draws.with(request).bits() as f64) < p * TWO_TO_64,
            Selection::All => true,
            Selection::These(numbers) => numbers.contains(&request),
        }
    }

    pub fn take_in(&mut self, noted: RecordedRequest) {
        if self.too_many || !self.may_be(noted.request, noted.selected) {
            return;
        }
        self.stages += noted.stays.len();
        self.all.push(noted);
        if let Selection::Slowest(most) = self.selection
            && self.all.len() > 2 * most.max(50)
        {
            self.keep_slowest(most);
        }
        self.too_many = self.stages > MOST_STAGES;
    }

    fn keep_slowest(&mut self, most: usize) {
        self.all.sort_by_key(|noted| (std::cmp::Reverse(noted.latency), noted.request));
        self.all.truncate(most);
        self.stages = self.all.iter().map(|noted| noted.stays.len()).sum();
    }

    /// The histories of the kept requests.
    pub fn histories(mut self, code: &Code, replication: u32) -> Vec<History> {
        if let Selection::Slowest(most) = self.selection {
            self.keep_slowest(most);
        }
        self.all.sort_by_key(|noted| noted.request);
        self.all.into_iter().map(|noted| history(code, replication, noted)).collect()
    }
}

fn history(code: &Code, replication: u32, noted: RecordedRequest) -> History {
    let node = |stage: StageId, member: MemberId| {
        let stage = &code.stages[stage.index()];
        stage.nodes[(member.0 - code.blocks[stage.block as usize].base) as usize]
    };
    let stage = |&(stay, counts): &(StageTime, bool)| {
        let tried = (stay.tried as usize).checked_sub(1).and_then(|at| noted.tries.get(at));
        Stage {
            node: node(stay.stage, stay.member),
            from_ns: stay.from - noted.arrived,
            to_ns: stay.to - noted.arrived,
            what: stay.what,
            attempt: stay.attempt,
            branch: stay.branch,
            target: tried.map(|tried| (node(tried.stage, tried.member), tried.target)),
            // An attempt that was sent there and did not come back was cut off.
            outcome: stay.said.or_else(|| tried.map(|t| t.outcome.unwrap_or(Some(Kind::Cancelled)))),
            counts,
        }
    };
    let mut stages: Vec<Stage> = noted.stays.iter().map(stage).collect();
    stages.sort_by_key(|stage| (stage.from_ns, stage.to_ns));
    History {
        replication,
        request: noted.request,
        arrived_ns: noted.arrived,
        latency_ns: noted.latency,
        selected: noted.selected,
        outcome: noted.outcome,
        stages,
    }
}

/// The histories that the selection asks for, out of those of all replications: the slowest first, otherwise in
/// order.
pub(crate) fn chosen(selection: &Selection, mut all: Vec<History>) -> Vec<History> {
    if let Selection::Slowest(most) = selection {
        all.sort_by_key(|h| (std::cmp::Reverse(h.latency_ns), h.replication, h.request));
        all.truncate(*most);
    }
    all
}
