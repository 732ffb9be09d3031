//! What a plan is compiled to: linear code per block of nodes, run by every request that passes.
//!
//! A *block* is a chain of nodes with one way in: it begins at a target of a balancer, at a node that several others lead
//! to, or at the root, and runs to a leaf, a balancer or another block. Chains of the same sites and arguments share one
//! block; which of its *members* a request is in is a number. Members are numbered through all blocks, so the state of a
//! member's queue stands at `member + offset`, and 250,000 dynos cost no more code than one.

use crate::guards::GuardTables;
use crate::kinds::Kinds;
use crate::lines::LineTables;
use crate::lost::LossySite;
use crate::rare::{LossSite, WarmupSite};
use weir_model::faulty::Law;
use weir_model::queue::Limits;
use weir_model::sampler::Sampler;
use weir_model::{OnCancel, concurrent};
use weir_policy::Kind;
use weir_policy::config::{Balance, Budget, Rate, Retry};

/// A step and the constant waits before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub wait_ns: u64,
    pub op: Op,
}

/// What a step does. What changes nothing that another request could see (waits, stateless choices) runs ahead of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    /// A drawn wait.
    Draw {
        draw: u32,
    },
    /// A wait that can be cut off: one that is constant, or drawn.
    Stand {
        wait: u32,
    },
    StandDrawn {
        draw: u32,
    },
    /// A balancer takes a target.
    Pick {
        lb: u32,
    },
    /// The request is back from it.
    Done {
        lb: u32,
    },
    /// A queue is entered.
    Enter {
        queue: u32,
    },
    /// The slot is given back.
    Leave {
        queue: u32,
    },
    /// Attempts begin.
    Try {
        retry: u32,
    },
    /// An attempt begins; where it has waited before that, it stands here.
    Again {
        retry: u32,
    },
    /// An attempt has come back.
    Tried {
        retry: u32,
    },
    /// A server that shares its cores is entered; the next step is back from it.
    Share {
        share: u32,
    },
    Shared {
        share: u32,
    },
    /// What is answered here and now, with a status.
    Answer {
        status: u32,
    },
    /// The request is of another kind from here on; no longer.
    Rewrite {
        rewrite: u32,
    },
    Unrewrite,
    /// The request, or a draw, chooses where it goes.
    Choose {
        choice: u32,
    },
    /// A balancer with something around it is asked for a target; told how that went.
    Ask {
        lb: u32,
    },
    Told {
        lb: u32,
    },
    /// Nodes are entered that may be down, in other ways than a plain refusal; one that can crash has lived long enough.
    Down {
        down: u32,
    },
    Survived {
        down: u32,
    },
    /// A crossing begins that may lose the request for good.
    Lossy {
        lossy: u32,
    },
    /// The end of the way in, where a health check costs work.
    Serve,
    /// What is behind has more work; no longer.
    Warm {
        warmup: u32,
    },
    /// Health checks are under what is slow, too.
    Cool {
        slow: bool,
    },
    /// A token is needed.
    Token {
        rate: u32,
    },
    /// What comes back may fail.
    Flaky {
        flaky: u32,
    },
    /// What is behind has so long to answer.
    Limit {
        limit: u32,
    },
    /// It has.
    Limited,
    /// A node that may be down is entered.
    Fault {
        fault: u32,
    },
    /// On the way back; only counts errors.
    Pass,
    /// Another block with one way out of this one.
    Call {
        call: u32,
    },
    /// Back from it.
    Back,
    /// The end of a block.
    Return,
    /// The end of the request.
    End,
}

/// A member of a block: where its code begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub pc: u32,
    pub member: u32,
}

/// A drawn wait.
#[derive(Clone, Debug)]
pub(crate) struct DrawSite {
    pub sampler: Sampler,
    /// Where the time is added up.
    pub part: u32,
    /// Index in [`Code::draw_keys`].
    pub key: u32,
    /// Counter of visits, where a request can pass the place more than once.
    pub visits: Option<u32>,
    pub stage: u32,
    /// On the way in: who stands here has not come to what is behind.
    pub inwards: bool,
    /// What is around it makes it longer; so does losing messages: index in [`Code::losses`].
    pub scaled: bool,
    pub loss: Option<u32>,
    /// A cable: health checks cross it, too.
    pub crosses: bool,
}

/// A constant wait that can be cut off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitSite {
    pub ns: u64,
    pub part: u32,
    pub stage: u32,
    pub inwards: bool,
    /// A cable: health checks cross it, too.
    pub crosses: bool,
}

/// A limit's place in the code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitSite {
    pub ns: u64,
    /// Where a request goes on whose time is over: behind the step that ends the limit.
    pub end: u32,
}

/// A balancer's place in the code.
#[derive(Clone, Debug)]
pub(crate) struct LbSite {
    pub balance: Balance,
    /// Member to instance.
    pub offset: u32,
    pub stage: u32,
    /// Where a request without target goes on.
    pub skip: u32,
    /// The pick must happen in its turn.
    pub ordered: bool,
    /// Returns change its state.
    pub counts: bool,
    /// A request behind it can be cut off.
    pub can_be_cut: bool,
    /// All event loops share one state, or there is one loop.
    pub shared: bool,
    /// What stands around it, if anything does.
    pub guard: Option<u32>,
}

/// One balancer.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub lb: u32,
    /// Index in [`Code::lists`].
    pub list: u32,
    /// Index in [`Code::place_keys`].
    pub place: u32,
    /// Its number among the nodes of its place.
    pub number: u32,
}

/// A queue's place in the code.
#[derive(Clone, Debug)]
pub(crate) struct QueueSite {
    pub limits: Limits,
    /// Member to queue.
    pub offset: u32,
    /// Member to gauge; see [`Code::mask`].
    pub gauge: u32,
    /// Where the stage's wait is added up.
    pub part: u32,
    pub stage: u32,
    pub skip: u32,
    /// Requests enter in order of arrival, a constant time after it: one that finds it idle may enter ahead of time.
    pub ahead: bool,
    pub members: u32,
    pub base: u32,
    /// A request here can be cut off.
    pub can_be_cut: bool,
    pub on_cancel: OnCancel,
    pub timeout_ns: Option<u64>,
}

/// The place of servers that share their cores.
#[derive(Clone, Debug)]
pub(crate) struct ShareSite {
    pub law: concurrent::Law,
    /// Its work: index in [`Code::draws`].
    pub work: u32,
    pub on_cancel: OnCancel,
    /// Member to server.
    pub offset: u32,
    pub gauge: u32,
    pub stage: u32,
    pub base: u32,
    pub members: u32,
}

/// A rate limit's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateSite {
    /// What it reads of requests: index of a key source.
    pub key: Option<u32>,
    /// Member to limit.
    pub offset: u32,
    pub stage: u32,
    pub skip: u32,
}

/// The place of nodes that fail at random.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlakySite {
    pub p: f64,
    pub kind: Kind,
    /// Index in [`Code::draw_keys`], and the counter of visits.
    pub key: u32,
    pub visits: Option<u32>,
}

/// A retry's place in the code.
#[derive(Clone, Debug)]
pub(crate) struct RetrySite {
    pub config: Retry,
    /// The first step of an attempt.
    pub again: u32,
    /// Member to count of further attempts.
    pub repeats: u32,
    pub stage: u32,
    /// Member to the place and number that backoffs are drawn by: [`Code::retry_nodes`].
    pub nodes: u32,
    /// Member to budget.
    pub budget: Option<u32>,
    /// What comes back is looked at in its turn.
    pub in_turn: bool,
}

/// A faulty node's place in the code.
#[derive(Clone, Debug)]
pub(crate) struct FaultSite {
    pub law: Law,
    /// Member to state.
    pub offset: u32,
    pub stage: u32,
    pub skip: u32,
    /// Whether checks pass while it is down.
    pub checks_pass: bool,
}

/// A call's place in the code: member to entry of [`Code::call_targets`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSite {
    pub offset: u32,
}

/// A node's position in a block: one line of statistics (or one per member).
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub site: u32,
    pub spec: u32,
    pub block: u32,
    /// Positions in the block run from the outside in.
    pub position: u32,
    /// Where its accumulators stand; see [`Code::mask`].
    pub part: u32,
    /// Constant waits of each entry, ns.
    pub wait_ns: u64,
    /// The plan's nodes, by member.
    pub nodes: Vec<u32>,
    /// Refusals by member stand at `member + offset`; stages that can refuse only.
    pub refusals: Option<u32>,
    /// Further attempts by member stand at `member + offset`; retries only.
    pub repeats: Option<u32>,
    /// Where its gauge stands, see [`Code::mask`], and how many slots or cores each member has; queues and servers only.
    pub gauge: Option<u32>,
    pub slots: f64,
    /// A request can be at what is behind several times at once.
    pub parallel: bool,
    /// Entries by member stand at `member + offset`, where they are counted rather than reckoned from the block's.
    pub entries: Option<u32>,
    /// Requests cut off here on their way in, by member, at `member + offset`; stages where that can happen only.
    pub cuts: Option<u32>,
}

/// A chain of nodes with one way in.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Number of its first member.
    pub base: u32,
    pub stages: std::ops::Range<u32>,
    pub members: u32,
    /// The call that it ends in.
    pub calls: Option<u32>,
    /// It ends at a server rather than in other blocks.
    pub leaf: bool,
}

/// A scenario, compiled.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub steps: Vec<Step>,
    /// By pc: the stages whose errors are counted there, as a range of `cover_list`.
    pub covers: Vec<(u32, u32)>,
    pub cover_list: Vec<u32>,
    pub start: Target,
    /// Waits before the first step that must happen in its turn, where they are the same on every way.
    pub prefix_ns: u64,
    pub draws: Vec<DrawSite>,
    pub waits: Vec<WaitSite>,
    pub limits: Vec<LimitSite>,
    /// By pc: the step that gives back what a request there holds, innermost first; [`crate::blocks::NOT`]: none in this
    /// block. What can be cut off only.
    pub around: Vec<u32>,
    /// By pc: whether a request there can be cut off.
    pub can_be_cut: Vec<bool>,
    /// Purpose and place of each key that work and crossings are drawn by.
    pub draw_keys: Vec<(u64, u32)>,
    /// Hash of each place.
    pub place_keys: Vec<u64>,
    pub lbs: Vec<LbSite>,
    pub instances: Vec<Instance>,
    pub lists: Vec<Targets>,
    /// The targets of lists that are not [`Targets::Members`].
    pub targets: Vec<Target>,
    pub weights: Vec<Vec<f64>>,
    pub queues: Vec<QueueSite>,
    pub queue_count: u32,
    pub gauge_count: u32,
    pub shares: Vec<ShareSite>,
    /// Site and member of each server.
    pub servers: Vec<(u32, u32)>,
    pub rate_sites: Vec<RateSite>,
    pub rates: Vec<Rate>,
    pub flaky: Vec<FlakySite>,
    /// Event loops that requests meet; at least 1.
    pub loops: u32,
    /// Whether something that is cut off goes on for nobody.
    pub goes_on: bool,
    pub retries: Vec<RetrySite>,
    /// Place and number of each node that is a retry.
    pub retry_nodes: Vec<(u32, u32)>,
    pub budgets: Vec<Budget>,
    pub faults: Vec<FaultSite>,
    /// Fault site, place and number of each faulty node.
    pub fault_nodes: Vec<(u32, u32, u32)>,
    pub calls: Vec<CallSite>,
    pub call_targets: Vec<Target>,
    pub blocks: Vec<Block>,
    pub stages: Vec<Stage>,
    /// Stages in the order of the request's way.
    pub order: Vec<u32>,
    pub members: u32,
    pub part_count: u32,
    pub refusal_count: u32,
    pub repeat_count: u32,
    pub cut_count: u32,
    /// All ones if statistics are kept by member, else 0: an accumulator stands at `offset + (member & mask)`.
    pub mask: u32,
    /// Frames that a request needs at most.
    pub depth: usize,
    /// Retries that a request is inside of at most.
    pub retry_depth: usize,
    /// Limits likewise; its client's patience is one.
    pub limit_depth: usize,
    /// Whether a request can be cut off anywhere, or waits between attempts.
    pub cuts: bool,
    pub patience_ns: Option<u64>,
    /// Whether all requests are taken as GET because the traffic does not say otherwise.
    pub takes_as_get: bool,
    /// Counters of visits that a request needs.
    pub visits: usize,
    /// Whether any retry leaves targets out.
    pub excludes: bool,
    /// Whether requests have details ([`crate::detail`]).
    pub details: bool,
    pub kinds: Kinds,
    pub guards: GuardTables,
    pub warmups: Vec<WarmupSite>,
    pub warmup_count: u32,
    pub losses: Vec<LossSite>,
    pub lossy: Vec<LossySite>,
    pub lines: LineTables,
    /// Whether requests can be lost: what time they take is noted with them, at the places where they may have been.
    pub notes: bool,
    /// Whether what happens before a request has its answer can tell: its client may leave, health checks go on.
    pub ends_in_turn: bool,
    /// Whether time is booked request by request: some is noted, or goes on for nobody.
    pub books: bool,
}

/// The targets of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Targets {
    /// Members of one block in a row, from the first one: nothing to look up.
    Members(Target),
    /// Entries of [`Code::targets`], and how many.
    Table(u32, u32),
}

impl Targets {
    /// The target of that index.
    #[inline]
    pub fn get(&self, code: &Code, index: u32) -> Target {
        match *self {
            Targets::Members(first) => Target { pc: first.pc, member: first.member + index },
            Targets::Table(from, _) => code.targets[(from + index) as usize],
        }
    }

    /// Where code begins for any of them; each once.
    pub fn starts(&self, code: &Code) -> Vec<u32> {
        let mut starts: Vec<u32> = match *self {
            Targets::Members(first) => vec![first.pc],
            Targets::Table(from, n) => {
                code.targets[from as usize..(from + n) as usize].iter().map(|t| t.pc).collect()
            }
        };
        starts.sort_unstable();
        starts.dedup();
        starts
    }
}
