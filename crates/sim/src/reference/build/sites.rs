//! What each stage of a scenario does, and the tables of the sites.

use crate::code::MemberId;
use crate::code::Target;
use crate::code::changes::Birth;
use crate::code::gates::GateTables;
use crate::code::guards::SubsetSite;
use crate::code::probe_ways::ProbeWays;
use crate::compile::loops::Loops;
use crate::reference::around::{ChoiceSite, HedgeSite, LbSite, LimitSite, Shape};
use std::collections::BTreeMap;
use weir_model::mix::Mix;
use weir_model::queue::Limits;
use weir_model::sampler::Sampler;
use weir_model::{OnCancel, concurrent, faulty, warmup};
use weir_plan::Mode;
use weir_policy::config::{Budget, Rate, Retry};
use weir_policy::{Kind, TargetId};

/// What a request does at a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Nothing.
    Pass,
    /// Is answered with a status.
    Answer {
        status: u16,
    },
    /// Becomes another kind of request behind it.
    Rewrite {
        rewrite: u32,
    },
    /// Takes the time of its work.
    Work {
        draw: u32,
    },
    /// Crosses, out and back.
    Cable {
        cable: u32,
    },
    /// Takes a slot, or waits for one.
    Queue {
        queue: u32,
    },
    /// Shares the cores of a server.
    Share {
        server: u32,
    },
    /// Is tried again.
    Retry {
        retry: u32,
    },
    /// May find the node down.
    Fault {
        fault: u32,
    },
    /// May fail on the way back.
    Flaky {
        flaky: u32,
    },
    /// Has more work behind it.
    Warmup {
        warmup: u32,
    },
    Gate {
        gate: u32,
    },
    /// Continues as a branch with this time limit, ns.
    Timeout {
        ns: u64,
    },
    /// Goes to one of the targets.
    Balance {
        lb: u32,
    },
    /// Goes to one node after another.
    Sequence {
        group: u32,
    },
    /// Goes to all of them, a branch each.
    Fanout {
        group: u32,
    },
    /// Goes to the node that its request or a draw chooses.
    Choose {
        choice: u32,
    },
    /// Needs a token.
    Limit {
        limit: u32,
    },
    /// Is sent again while it is open.
    Hedge {
        hedge: u32,
    },
    /// Enters a listener behind another.
    Hop {
        hop: u32,
    },
    /// Takes a connection to a server, or opens it.
    Connect {
        at: u32,
    },
}

/// Where a request goes behind a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// To the next stage of the block.
    Stage,
    /// Back.
    Leaf,
    /// Into another block.
    Call(u32),
}

/// A stage as a request meets it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub act: Act,
    pub next: Next,
    /// The first stage of its block.
    pub first: u32,
    /// Where its time is added up; see [`Code::mask`].
    pub part: u32,
    /// Where its entries are counted: member + this.
    pub entries: u32,
}

/// A draw from a distribution.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    pub sampler: Sampler,
    pub key: DrawKey,
    /// Pauses of the process around it lengthen it: member to [`Tables::pauses`].
    pub pause: Option<u32>,
}

/// The key of a draw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrawKey {
    /// Index in [`Code::draw_keys`].
    pub key: u32,
    /// Counter of visits, where a request can pass the place more than once.
    pub visits: Option<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct CableSite {
    pub out: Draw,
    pub back: Draw,
    pub loss: f64,
    pub resend_ns: Option<u64>,
    pub lost_out: DrawKey,
    pub lost_back: DrawKey,
}

#[derive(Clone, Debug)]
pub(crate) struct QueueSite {
    pub limits: Limits,
    pub timeout_ns: Option<u64>,
    pub on_cancel: OnCancel,
    /// Member to queue.
    pub offset: u32,
    /// Member to gauge; see [`Code::mask`].
    pub gauge: u32,
    pub base: u32,
    pub members: u32,
    /// Whether an answer that leaves reports how many slots are busy.
    pub reports: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ShareSite {
    pub law: concurrent::Law,
    /// Its `pause` stops the server as a whole.
    pub work: Draw,
    pub on_cancel: OnCancel,
    /// Member to server.
    pub offset: u32,
    pub gauge: u32,
    /// Whether an answer that leaves reports how many cores are busy.
    pub reports: bool,
}

/// The site of a listener behind another.
#[derive(Clone, Debug)]
pub(crate) struct HopSite {
    pub loops: u32,
    pub key: DrawKey,
    /// Member to instance, for connections.
    pub offset: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct RetrySite {
    pub retry: Retry,
    /// Member to budget.
    pub budget: Option<u32>,
    /// Member to [`Tables::retry_nodes`].
    pub offset: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultSite {
    pub mode: Mode,
    pub slow: f64,
    /// Whether checks pass while it is down.
    pub checks_pass: bool,
    /// Member to [`Tables::fault_lines`].
    pub offset: u32,
}

/// The timeline of a faulty node, or of several.
#[derive(Clone, Debug)]
pub(crate) struct LineSite {
    pub law: faulty::Law,
    pub key: LineKey,
    /// Whether it flips by events, because a flip cuts requests off.
    pub eager_crash: bool,
    /// Whether changes drive it, rather than its law.
    pub is_driven: bool,
    /// What begins anew when it comes up again.
    pub anew: Vec<Birth>,
}

/// The key of the periods of a timeline.
#[derive(Clone, Debug)]
pub(crate) enum LineKey {
    /// Site, and number among its members.
    Node(u32, u32),
    Name(String),
}

#[derive(Clone, Debug)]
pub(crate) struct FlakySite {
    pub p: f64,
    pub kind: Kind,
    pub key: DrawKey,
}

#[derive(Clone, Debug)]
pub(crate) struct WarmupSite {
    pub law: warmup::Law,
    /// Member to warm-up.
    pub offset: u32,
}

/// The nodes of a `sequence` or `fanout`.
#[derive(Clone, Debug)]
pub(crate) struct GroupSite {
    pub need: u32,
    /// Member to [`Tables::group_lists`].
    pub offset: u32,
}

/// What the stages of a scenario do; the tables beside its [`Code`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    /// By stage.
    pub nodes: Vec<Node>,
    pub draws: Vec<Draw>,
    pub cables: Vec<CableSite>,
    pub queues: Vec<QueueSite>,
    pub queue_count: u32,
    pub servers: Vec<ShareSite>,
    pub server_count: u32,
    /// Stage and member of each server.
    pub server_sites: Vec<(u32, u32)>,
    pub retries: Vec<RetrySite>,
    /// Site and number of each node that is a retry.
    pub retry_nodes: Vec<(u32, u32)>,
    /// By balancer, choosing node and retry: the visit counter of each that one way can pass more than once.
    pub visits_of_lbs: BTreeMap<u32, u32>,
    pub visits_of_choices: BTreeMap<u32, u32>,
    pub visits_of_retries: BTreeMap<u32, u32>,
    pub faults: Vec<FaultSite>,
    /// The timeline of each faulty node.
    pub fault_lines: Vec<u32>,
    /// The timeline that stops each member of a stage inside of a process that pauses; [`NONE`](super::NONE): none
    /// does.
    pub pauses: Vec<u32>,
    pub lines: Vec<LineSite>,
    /// Nodes that changes drive, each with its timeline.
    pub driven: Vec<(u32, u32)>,
    pub flaky: Vec<FlakySite>,
    pub warmups: Vec<WarmupSite>,
    pub warmup_count: u32,
    pub gates: GateTables,
    pub warmup_sites: Vec<u32>,
    pub lbs: Vec<LbSite>,
    /// The names by which each balancer hashes its targets, or divides them; empty where it does neither.
    pub names: Vec<Vec<String>>,
    /// How the targets of each are divided among loops.
    pub subsets: Vec<Option<SubsetSite>>,
    /// Where requests go if no target is left, by member and [`LbSite::spares`].
    pub spares: Vec<Target>,
    pub(in crate::reference) spare_nodes: Vec<u32>,
    /// By balancer: the balancers and targets in front of it whose health depends on it.
    pub outside: Vec<Vec<(u32, TargetId)>>,
    /// The balancers behind each target.
    pub inside: BTreeMap<(u32, TargetId), Vec<u32>>,
    /// Whether requests in flight at targets are counted for probes.
    pub probes: bool,
    pub probe_ways: ProbeWays,
    pub choices: Vec<ChoiceSite>,
    /// List, site and number of each node that chooses.
    pub choice_nodes: Vec<(u32, u32, u32)>,
    pub limits: Vec<LimitSite>,
    pub rates: Vec<Rate>,
    pub hedges: Vec<HedgeSite>,
    /// The budget of each node that has one.
    pub budgets: Vec<Budget>,
    /// By key source, then kind of request: the hash of its value; `None`: the request's own key.
    pub keys: Vec<Vec<Option<u64>>>,
    /// Whether any node reads a request's client.
    pub reads_keys: bool,
    /// The kinds of requests, rewritten ones included; empty: all are GET.
    pub shapes: Vec<Shape>,
    /// Of each `rewrite`: the kind that it turns each kind into. Then the original of each kind.
    pub rewrites: Vec<Vec<u32>>,
    pub before: Vec<u32>,
    /// The event loops of requests.
    pub loops: Loops,
    pub hops: Vec<HopSite>,
    pub mix: Mix,
    pub groups: Vec<GroupSite>,
    /// The list of each node with a group.
    pub group_lists: Vec<u32>,
    /// The request's first stage.
    pub start: u32,
    pub start_member: MemberId,
    pub entry_count: u32,
    /// Whether time that a request spends may turn out not to count: the branch notes it until that is known.
    pub notes: bool,
    /// Whether requests can be lost.
    pub loses: bool,
    /// Whether the work behind some node is multiplied.
    pub scales: bool,
}
