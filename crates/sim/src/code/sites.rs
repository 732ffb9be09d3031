//! What a step of code needs to know of its site, a struct for each kind of step.

use crate::code::StageId;
use weir_model::faulty::Law;
use weir_model::queue::Limits;
use weir_model::sampler::Sampler;
use weir_model::{OnCancel, concurrent, warmup};
use weir_policy::Kind;
use weir_policy::config::{Balance, Hedge, Retry};

/// A drawn wait.
#[derive(Clone, Debug)]
pub(crate) struct DrawSite {
    pub sampler: Sampler,
    /// Where its time is added up.
    pub part: u32,
    /// Index in [`Code::draw_keys`].
    pub key: u32,
    /// Counter of visits, where a request can pass the place more than once.
    pub visits: Option<u32>,
    pub stage: StageId,
    /// On the way in: a request that waits here has not reached what is behind.
    pub inwards: bool,
    /// Nodes around it may lengthen it, or lost messages: index in [`Code::losses`].
    pub scaled: bool,
    pub loss: Option<u32>,
    /// A cable, which health checks cross as well.
    pub crosses: bool,
    /// Pauses of the process around it lengthen it: member to
    /// [`LineTables::pauses`](crate::code::fault_timelines::LineTables::pauses).
    pub pause: Option<u32>,
}

/// A constant wait that can be cut off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitSite {
    pub ns: u64,
    pub part: u32,
    pub stage: StageId,
    pub inwards: bool,
    /// A cable, which health checks cross as well.
    pub crosses: bool,
}

/// The site of a time limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitSite {
    pub ns: u64,
    /// Where a request goes on when its time is over: behind the step that ends the limit.
    pub end: u32,
    /// Member to [`super::Code::timed`].
    pub offset: u32,
}

/// The site of a balancer.
#[derive(Clone, Debug)]
pub(crate) struct LbSite {
    pub balance: Balance,
    /// Member to instance.
    pub offset: u32,
    pub stage: StageId,
    /// Where a request without a target continues.
    pub skip: u32,
    /// Whether the pick must happen in its turn.
    pub ordered: bool,
    /// Whether returns change its state.
    pub counts: bool,
    /// Whether a request behind it can be cut off.
    pub can_be_cut: bool,
    /// Whether all event loops share one state, or there is only one loop.
    pub shared: bool,
    /// Its guard, if it has one.
    pub guard: Option<u32>,
    /// Whether its targets change: then picks and returns are in their turn.
    pub changes: bool,
}

/// One balancer.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub lb: u32,
    /// Index in [`Code::lists`].
    pub list: u32,
    /// Index in [`Code::place_keys`].
    pub place: u32,
    /// Its number among the members of its site.
    pub number: u32,
}

/// The site of a queue.
#[derive(Clone, Debug)]
pub(crate) struct QueueSite {
    pub limits: Limits,
    /// Member to queue.
    pub offset: u32,
    /// Member to gauge; see [`Code::mask`].
    pub gauge: u32,
    /// Where the wait at the stage is added up.
    pub part: u32,
    pub stage: StageId,
    pub skip: u32,
    /// Whether requests enter in order of arrival, a constant time after it: one that finds it idle may enter ahead
    /// of time.
    pub ahead: bool,
    pub members: u32,
    pub base: u32,
    /// Whether a request here can be cut off.
    pub can_be_cut: bool,
    pub on_cancel: OnCancel,
    pub timeout_ns: Option<u64>,
}

/// The site of servers that share their cores.
#[derive(Clone, Debug)]
pub(crate) struct ShareSite {
    pub law: concurrent::Law,
    /// Its work: index in [`Code::draws`].
    pub work: u32,
    pub on_cancel: OnCancel,
    /// Member to server.
    pub offset: u32,
    pub gauge: u32,
    pub stage: StageId,
    pub base: u32,
    pub members: u32,
    /// As [`DrawSite::pause`].
    pub pause: Option<u32>,
}

/// The site of a rate limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateSite {
    /// The key that it reads: index of a key source.
    pub key: Option<u32>,
    /// Member to limit.
    pub offset: u32,
    pub stage: StageId,
    pub skip: u32,
}

/// The site of nodes that fail at random.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlakySite {
    pub p: f64,
    pub kind: Kind,
    /// Index in [`Code::draw_keys`], and the counter of visits.
    pub key: u32,
    pub visits: Option<u32>,
}

/// The site of a retry.
#[derive(Clone, Debug)]
pub(crate) struct RetrySite {
    pub config: Retry,
    /// The first step of an attempt.
    pub again: u32,
    /// Member to count of further attempts.
    pub repeats: u32,
    pub stage: StageId,
    /// Member to site and number that key the backoffs: [`Code::retry_nodes`].
    pub nodes: u32,
    /// Member to budget.
    pub budget: Option<u32>,
    /// Whether outcomes are handled in their turn.
    pub in_turn: bool,
}

/// The site of a faulty node.
#[derive(Clone, Debug)]
pub(crate) struct FaultSite {
    pub law: Law,
    /// Member to state.
    pub offset: u32,
    pub stage: StageId,
    pub skip: u32,
    /// Whether checks pass while it is down.
    pub checks_pass: bool,
}

/// The site of a call: member to entry of [`Code::call_targets`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSite {
    pub offset: u32,
    /// Whether a node before it turns the request into a part that can be cut off by itself.
    pub sends_in: bool,
}

/// The site of a hedge.
#[derive(Clone, Debug)]
pub(crate) struct HedgeSite {
    pub config: Hedge,
    /// Member to budget.
    pub budget: Option<u32>,
    pub stage: StageId,
    /// Member to count of further attempts.
    pub repeats: u32,
    /// Where a request goes on after its answer.
    pub end: u32,
}

/// The site of such a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HopSite {
    pub loops: u32,
    /// Index in [`crate::code::Code::draw_keys`], and the counter of visits.
    pub key: u32,
    pub visits: Option<u32>,
    /// The step after its return.
    pub end: u32,
    /// Member to instance, for connections.
    pub offset: u32,
}

/// A crossing that loses messages for good.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossySite {
    pub loss: f64,
    /// The key of the loss: index in [`crate::code::Code::draw_keys`], and the counter of visits.
    pub key: u32,
    pub visits: Option<u32>,
    /// The key of the crossing's time, if it is drawn.
    pub time: Option<u32>,
    pub stage: StageId,
    /// On the way in: a request that is lost here has not reached what is behind.
    pub inwards: bool,
}

/// The site of servers that have more work until they have warmed up.
#[derive(Clone, Debug)]
pub(crate) struct WarmupSite {
    pub law: warmup::Law,
    /// Member to warm-up.
    pub offset: u32,
}

/// A crossing that loses messages, and sends them again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossSite {
    pub loss: f64,
    pub resend_ns: Option<u64>,
    /// Index in [`Code::draw_keys`], and the counter of visits.
    pub key: u32,
    pub visits: Option<u32>,
}

/// The site of nodes that lead to several, one after another or all at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupSite {
    /// How many must be ok, where all are visited at once.
    pub need: u32,
    /// Member to [`Groups::lists`].
    pub offset: u32,
    pub stage: StageId,
}

/// The tables of such nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    pub sites: Vec<GroupSite>,
    /// The list of each such node.
    pub lists: Vec<u32>,
}

/// Work that begins at a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownWork {
    /// The same for all, ns; or drawn by the next step.
    pub ns: u64,
    pub draw: u32,
}
