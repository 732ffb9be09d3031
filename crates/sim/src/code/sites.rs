//! What a step of code needs to know of its place, a struct for each kind of step.

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
    /// What stands before it makes of the request what can be cut off by itself.
    pub sends_in: bool,
}

/// A hedge's place.
#[derive(Clone, Debug)]
pub(crate) struct HedgeSite {
    pub config: Hedge,
    /// Member to budget.
    pub budget: Option<u32>,
    pub stage: u32,
    /// Member to count of further attempts.
    pub repeats: u32,
    /// Where a request goes on that has its answer.
    pub end: u32,
}

/// The place of such a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HopSite {
    pub loops: u32,
    /// Index in [`crate::code::Code::draw_keys`], and the counter of visits.
    pub key: u32,
    pub visits: Option<u32>,
    /// The step behind its way back.
    pub end: u32,
}

/// A crossing that loses messages for good.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossySite {
    pub loss: f64,
    /// What it draws: index in [`crate::code::Code::draw_keys`], and the counter of visits.
    pub key: u32,
    pub visits: Option<u32>,
    /// What the time of the crossing is drawn by, and whether it is.
    pub time: Option<u32>,
    pub stage: u32,
    /// On the way in: who is lost here has not come to what is behind.
    pub inwards: bool,
}

/// The place of servers that have more work until they have warmed up.
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

/// The place of nodes that lead to several, one after another or all at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupSite {
    /// How many must be ok, where all are gone to at once.
    pub need: u32,
    /// Member to [`Groups::lists`].
    pub offset: u32,
    pub stage: u32,
}

/// What a scenario knows of them.
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
