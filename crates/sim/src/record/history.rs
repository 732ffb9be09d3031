//! Which requests' histories are wanted, and what one is.

use super::tracks::{Noted, Stay};
use crate::code::Code;
use weir_plan::NodeId;
use weir_policy::history::What;
use weir_policy::{Kind, Outcome};
use weir_stats::Key;

/// Which requests are written down.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// So many of each scenario with the longest latencies, of those that the window selects; of equal ones the first.
    Slowest(usize),
    /// Each with this probability. What is drawn for that depends on seed, replication and request, and on nothing else.
    Sample(f64),
    /// All of them.
    All,
    /// Those with these numbers (from 0, in order of arrival), of every replication.
    These(Vec<u64>),
}

/// A part of a request's time; of no length: what it was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Where.
    pub node: NodeId,
    /// From the request's arrival on.
    pub from_ns: u64,
    /// The same.
    pub to_ns: u64,
    /// What it was.
    pub what: What,
    /// Attempts that the request had begun by then.
    pub attempt: u32,
    /// Which of several ways at once (`hedge`, `fanout`); 0: its own.
    pub branch: u32,
    /// The balancer that sent it there last, and the index of the target.
    pub target: Option<(NodeId, u32)>,
    /// How that attempt came back, or what was answered here; `None`: nothing of it is known.
    pub outcome: Option<Outcome>,
    /// Whether it is on the way that decided.
    pub counts: bool,
}

/// The history of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Of which replication.
    pub replication: u32,
    /// Its number there.
    pub request: u64,
    /// When it arrived.
    pub arrived_ns: u64,
    /// How long it took; `None`: nothing ever answered it.
    pub latency_ns: Option<u64>,
    /// Whether the window selects it.
    pub selected: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// In the order of their beginnings.
    pub stages: Vec<Stage>,
}

/// Numbers that a draw can be.
const TWO_TO_64: f64 = (1u128 << 64) as f64;

/// Stages that are kept of one replication at most: ten replications of that take some gigabytes.
pub(crate) const MOST_STAGES: usize = 4_000_000;

/// Those of a replication that are kept.
pub(crate) struct Kept {
    selection: Selection,
    draws: Key,
    pub all: Vec<Noted>,
    stages: usize,
    /// More than can be kept.
    pub too_many: bool,
}

impl Kept {
    pub fn new(selection: &Selection, seed: u64, replication: u32) -> Kept {
        let draws = Key::new(seed).with_text("trace").with(u64::from(replication));
        Kept { selection: selection.clone(), draws, all: Vec::new(), stages: 0, too_many: false }
    }

    /// Whether a request may be one of them.
    pub fn may_be(&self, request: u64, selected: bool) -> bool {
        match &self.selection {
            Selection::Slowest(_) => selected,
            Selection::Sample(p) => (self.draws.with(request).bits() as f64) < p * TWO_TO_64,
            Selection::All => true,
            Selection::These(numbers) => numbers.contains(&request),
        }
    }

    pub fn take_in(&mut self, noted: Noted) {
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

    /// Those that are kept, of a replication.
    pub fn histories(mut self, code: &Code, replication: u32) -> Vec<History> {
        if let Selection::Slowest(most) = self.selection {
            self.keep_slowest(most);
        }
        self.all.sort_by_key(|noted| noted.request);
        self.all.into_iter().map(|noted| history(code, replication, noted)).collect()
    }
}

fn history(code: &Code, replication: u32, noted: Noted) -> History {
    let node = |stage: u32, member: u32| {
        let stage = &code.stages[stage as usize];
        stage.nodes[(member - code.blocks[stage.block as usize].base) as usize]
    };
    let stage = |&(stay, counts): &(Stay, bool)| {
        let tried = (stay.tried as usize).checked_sub(1).and_then(|at| noted.tries.get(at));
        Stage {
            node: node(stay.stage, stay.member),
            from_ns: stay.from - noted.arrived,
            to_ns: stay.to - noted.arrived,
            what: stay.what,
            attempt: stay.attempt,
            branch: stay.branch,
            target: tried.map(|tried| (node(tried.stage, tried.member), tried.target)),
            // Who was sent there and has not come back was cut off.
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

/// Of those of all replications the ones that a selection is about: the slowest first, others in their order.
pub(crate) fn chosen(selection: &Selection, mut all: Vec<History>) -> Vec<History> {
    if let Selection::Slowest(most) = selection {
        all.sort_by_key(|h| (std::cmp::Reverse(h.latency_ns), h.replication, h.request));
        all.truncate(*most);
    }
    all
}
