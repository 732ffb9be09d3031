//! The code that a plan is compiled to: linear code per block of nodes, run by every request that passes.
//!
//! A *block* is a chain of nodes with one entry: it begins at a target of a balancer, at a node that several others
//! lead to, or at the root, and runs to a leaf, a balancer or another block. Chains of the same sites and arguments
//! share one block; the *member* of the block that a request is in is a number. Members are numbered through all
//! blocks, so the state of a member's queue is at `member + offset`, and 250,000 dynos cost no more code than one.
//!
//! Code is written by `compile` and by the builder of the reference; everything else only reads it.

pub(crate) mod bounds;
pub(crate) mod changes;
pub(crate) mod connections;
pub(crate) mod ends;
pub(crate) mod fault_timelines;
pub(crate) mod gates;
pub(crate) mod guards;
mod ids;
mod op;
pub(crate) mod order;
pub(crate) mod probe_ways;
pub(crate) mod request_kinds;
pub(crate) mod revisits;
mod sites;
pub(crate) mod watch;

use changes::ChangeTables;
use connections::ConnectionTables;
use ends::Ends;
use fault_timelines::LineTables;
use guards::GuardTables;
pub(crate) use ids::{MemberId, SiteId, SlotId, StageId};
pub(crate) use op::{ColdOp, Op, Step};
use request_kinds::Kinds;
use revisits::VisitCounters;
pub(crate) use sites::{
    CallSite, DrawSite, FaultSite, FlakySite, GroupSite, Groups, HedgeSite, HopSite, Instance, KnownWork,
    LbSite, LimitSite, LossSite, LossySite, QueueSite, RateSite, RetrySite, ShareSite, WaitSite, WarmupSite,
};
use watch::WatchTables;
use weir_policy::config::{Budget, Rate};

/// A member of a block, and where its code begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub pc: u32,
    pub member: MemberId,
}

/// A node's position in a block: one row of statistics (or one per member).
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub site: SiteId,
    pub spec: u32,
    pub block: u32,
    /// The index of its accumulators; see [`Code::mask`].
    pub part: u32,
    /// Constant waits of each entry, ns.
    pub wait_ns: u64,
    /// The plan's nodes, by member.
    pub nodes: Vec<u32>,
    /// Refusals by member are at `member + offset`; only for stages that can refuse.
    pub refusals: Option<u32>,
    /// Further attempts by member are at `member + offset`; only for retries.
    pub repeats: Option<u32>,
    /// The index of its gauge, see [`Code::mask`], and the slots or cores of each member; only for queues and
    /// servers.
    pub gauge: Option<u32>,
    pub slots: f64,
    /// Whether a request can be behind it several times at once.
    pub parallel: bool,
    /// Entries by member are at `member + offset`, where they are counted rather than derived from the block's.
    pub entries: Option<u32>,
    /// Requests cut off here on their way in, by member, at `member + offset`; only for stages where that can happen.
    pub cuts: Option<u32>,
}

/// A chain of nodes with one entry.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Number of its first member.
    pub base: u32,
    pub stages: std::ops::Range<u32>,
    pub members: u32,
    /// The call in which it ends.
    pub calls: Option<u32>,
    /// Whether it ends at a server rather than in other blocks.
    pub leaf: bool,
}

/// A scenario, compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub steps: Vec<Step>,
    /// By pc: the stages whose errors are counted there, as a range of `cover_list`.
    pub covers: Vec<(u32, u32)>,
    pub cover_list: Vec<StageId>,
    pub start: Target,
    /// The waits before the first step that must happen in its turn, where they are the same on every path.
    pub prefix_ns: u64,
    pub draws: Vec<DrawSite>,
    pub waits: Vec<WaitSite>,
    pub limits: Vec<LimitSite>,
    /// Whether what they cut off is a timeout of the balancer behind.
    pub timed: Vec<bool>,
    /// By pc: the step that gives back what a request there holds, innermost first; [`NOT`]: none in this block. Only
    /// for what can be cut off.
    pub gives_back: Vec<u32>,
    /// By pc: whether a request there can be cut off.
    pub can_be_cut: Vec<bool>,
    /// Purpose and place of each key of work and crossings.
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
    /// Event loops of the listener where requests come in, at least 1; and the most that any listener has.
    pub first_loops: u32,
    pub loops: u32,
    pub hops: Vec<HopSite>,
    /// Whether some requests go on unwanted after being cut off.
    pub goes_on: bool,
    pub retries: Vec<RetrySite>,
    /// Site and number of each node that is a retry.
    pub retry_nodes: Vec<(u32, u32)>,
    pub budgets: Vec<Budget>,
    pub faults: Vec<FaultSite>,
    /// Fault site, site and number of each faulty node.
    pub fault_nodes: Vec<(u32, u32, u32)>,
    pub calls: Vec<CallSite>,
    pub call_targets: Vec<Target>,
    pub blocks: Vec<Block>,
    pub stages: Vec<Stage>,
    /// Stages in the order of a request's path.
    pub order: Vec<StageId>,
    pub members: u32,
    pub part_count: u32,
    pub refusal_count: u32,
    pub repeat_count: u32,
    pub cut_count: u32,
    /// All ones if statistics are kept by member, else 0: an accumulator is at `offset + (member & mask)`.
    pub mask: u32,
    /// The most frames that a request needs.
    pub depth: usize,
    /// The most retries that enclose a request.
    pub retry_depth: usize,
    /// The most limits of a request; its client's patience is one.
    pub limit_depth: usize,
    /// Whether a request can be cut off anywhere, or waits between attempts.
    pub cuts: bool,
    pub patience_ns: Option<u64>,
    /// The length of the parts in which the run is told over time, ns; `None`: it is not.
    pub every_ns: Option<u64>,
    /// Whether all requests are taken as GET because the traffic does not give a method.
    pub takes_as_get: bool,
    /// Counters of visits that a request needs.
    pub visits: usize,
    /// Whether any retry excludes targets.
    pub excludes: bool,
    /// Whether requests have details ([`crate::state::request_details`]).
    pub details: bool,
    pub kinds: Kinds,
    pub groups: Groups,
    pub again: VisitCounters,
    pub hedges: Vec<HedgeSite>,
    /// Whether one request can be in several places at once, and whether requests can be lost.
    pub branches: bool,
    pub loses: bool,
    /// Whether one retry or fan-out can follow another on one way.
    pub turns: bool,
    /// Whether branches that a fan-out left behind may still be on their way when their parent sends in others.
    pub leaves_branches: bool,
    pub guards: GuardTables,
    /// Work that some balancer uses; empty where none does.
    pub known_work: Vec<KnownWork>,
    pub ends: Ends,
    pub warmups: Vec<WarmupSite>,
    pub warmup_count: u32,
    pub gates: gates::GateTables,
    pub losses: Vec<LossSite>,
    pub lossy: Vec<LossySite>,
    pub lines: LineTables,
    /// The changes of fleets during a run.
    pub changes: Option<Box<ChangeTables>>,
    /// The members that these move, where the run has results over time.
    pub watch: Option<Box<WatchTables>>,
    /// Connections to servers, where they are simulated.
    pub connections: Option<Box<ConnectionTables>>,
    /// Whether requests can be lost, or have branches that do not count: their time is noted with them, at the places
    /// where that may happen.
    pub notes: bool,
    /// Whether events before a request's answer matter: health checks go on until then.
    pub ends_in_turn: bool,
    /// Whether time is booked request by request: some is noted, or belongs to unwanted requests.
    pub charges: bool,
}

impl Code {
    /// The index of a member's accumulator, among those that begin at `offset`; see [`Code::mask`].
    #[inline(always)]
    pub fn row(&self, offset: u32, member: MemberId) -> usize {
        offset.wrapping_add(member.0 & self.mask) as usize
    }

    /// The plan's node of a member at a stage.
    pub fn node(&self, stage: StageId, member: MemberId) -> Option<u32> {
        let of = self.stages.get(stage.index())?;
        let first = self.blocks[of.block as usize].base;
        of.nodes.get(member.0.checked_sub(first)? as usize).copied()
    }
}

/// The targets of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Targets {
    /// Consecutive members of one block, from the first one: nothing to look up.
    Members(Target),
    /// Entries of [`Code::targets`], and how many.
    Table(u32, u32),
}

impl Targets {
    /// The target with that index.
    #[inline]
    pub fn get(&self, code: &Code, index: u32) -> Target {
        match *self {
            Targets::Members(first) => Target { pc: first.pc, member: MemberId(first.member.0 + index) },
            Targets::Table(from, _) => code.targets[(from + index) as usize],
        }
    }

    /// Where the code of any of them begins; each once.
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

/// No index.
pub(crate) const NOT: u32 = u32::MAX;
