//! A served topology at one moment, as plain data.

use serde::Serialize;
use std::sync::Arc;
use weir_plan::Point;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct View {
    /// The hash of the topology; `None`: the owner has not answered.
    #[serde(skip)]
    pub point: Option<Arc<Point>>,
    /// The generation, counted by reloads.
    pub generation: u32,
    /// Whether it is draining.
    pub draining: bool,
    /// Threads that did not answer within a second, in words: their state is missing below.
    pub silent: Vec<String>,
    /// Listeners, in the order of the file.
    pub listeners: Vec<ListenerView>,
    /// Listeners that a reload has removed and that drain, in the order in which they were added.
    pub leaving: Vec<LeavingView>,
    /// Balancers, in the order of the plan: those inside before those around.
    pub pools: Vec<PoolView>,
    /// Fleets whose members a source lists, in the order of the plan.
    pub fleets: Vec<FleetView>,
    /// Queues, in the order of the plan.
    pub queues: Vec<QueueView>,
    /// Event loops, by number.
    pub loops: Vec<LoopView>,
    /// The last changes of targets, the newest first; many at once are one.
    pub events: Vec<EventView>,
    /// Limits, with what is used of them.
    pub limits: Vec<LimitView>,
    /// Certificates that listeners show, and when they end.
    pub certificates: Vec<CertificateView>,
}

/// What happened over the last seconds or minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RecentView {
    /// The stretch of time, s: 10 or 300; right after the start what there is of it.
    pub seconds: u32,
    /// Requests (of a balancer: attempts) that ended each second.
    pub rate_per_s: f64,
    /// The share of them that failed with a 5xx, or broke off by the fault of weir or an origin; `None`: there were
    /// none.
    pub share_5xx: Option<f64>,
    /// The time that half of them took at most, ms (of attempts: until the head of the answer).
    pub p50_ms: Option<f64>,
    /// The same for 99 of 100.
    pub p99_ms: Option<f64>,
}

/// Targets of a balancer that came or went, alike and at about the same time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventView {
    /// When the first did, ms since 1970.
    pub at_unix_ms: u64,
    /// The balancer.
    pub pool: String,
    /// In a word: up, down, ejected.
    pub state: &'static str,
    /// Why, as metrics name it.
    pub reason: &'static str,
    /// The number of targets.
    pub count: u32,
    /// The first twenty of them.
    pub targets: Vec<String>,
    /// What the last check of the first saw, if that is why.
    pub check: Option<String>,
}

/// A limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitView {
    /// What is limited: `clients`, `descriptors`, `budget`.
    pub limit: &'static str,
    /// Whose limit it is: a listener, a node; empty: the process's.
    pub of: String,
    /// How much is used; of a budget how much is left.
    pub now: f64,
    /// The limit; of a budget its reserve, beside what requests earn.
    pub most: f64,
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CertificateView {
    /// The listener that shows it.
    pub listener: String,
    /// The file that it was read from.
    pub file: String,
    /// Until when it is valid, s since 1970.
    pub not_after_s: u64,
}

/// The last check of a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckView {
    /// When it ended, ms since 1970.
    pub at_unix_ms: u64,
    /// As `weir_health_checks_total` names it: passed, refused, timeout, status, failed, skipped.
    pub result: &'static str,
    /// The same in words: `connect refused`.
    pub words: String,
}

/// A listener that a reload has removed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeavingView {
    /// Its name.
    pub name: String,
    /// Its address, as the file had it.
    pub addr: String,
    /// The number of its clients.
    pub connections: usize,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListenerView {
    /// Its number among the plan's nodes.
    pub node: u32,
    /// Its name.
    pub name: String,
    /// Its address.
    pub addr: String,
    /// Clients that are connected.
    pub connections: usize,
    /// Whether a request that enters here would find a target now.
    pub has_target: bool,
    /// The last 10 s and the last 5 min.
    pub recent: Vec<RecentView>,
}

/// A balancer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolView {
    /// Its number among the plan's nodes.
    pub node: u32,
    /// Its `name=`, or its site.
    pub name: String,
    /// Its policy, as the language has it.
    pub policy: &'static str,
    /// The scope of its state: each loop, or the process.
    pub scope: &'static str,
    /// Targets that may be picked, of those with a weight above 0.
    pub eligible: u32,
    /// Targets with a weight above 0.
    pub of: u32,
    /// Whether health is ignored now, since too few targets are left.
    pub panic: bool,
    /// Requests that wait while all targets are full; `None`: they are not limited.
    pub waiting: Option<u64>,
    /// How its targets are divided among the loops; `None`: they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subset: Option<SubsetsView>,
    /// The last 10 s and the last 5 min, of attempts at its targets.
    pub recent: Vec<RecentView>,
    /// Its targets.
    pub targets: Vec<TargetView>,
}

/// A fleet whose members a source lists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetView {
    /// Its name.
    pub fleet: String,
    /// What lists its members: `file api.json`.
    pub source: String,
    /// Its members, in all states.
    pub members: usize,
    /// Those that the last list lacks, which was too short to be believed at once.
    pub withdrawn: usize,
    /// Those without new requests.
    pub draining: usize,
    /// For how long its source has given no list, s; of one that never gave any since it began to be asked. `None`: it gives
    /// one.
    pub stale_s: Option<f64>,
    /// Why it gives none, as it was last reported: a sentence with what to do; `None`: it gives one, or no fault has been
    /// reported yet.
    pub error: Option<String>,
    /// When a member was last added, removed or changed, ms since 1970; `None`: not since the start.
    pub last_change_unix_ms: Option<u64>,
}

/// The subsets of a balancer's targets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubsetsView {
    /// How many there are.
    pub count: u32,
    /// Targets of the smallest.
    pub least: u32,
    /// Targets of the largest.
    pub most: u32,
    /// The number of each loop's, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<u32>,
}

/// A target of a balancer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetView {
    /// Its index there.
    pub index: u32,
    /// Its number among the plan's nodes.
    pub node: u32,
    /// Its display name.
    pub name: String,
    /// Its subset; `None`: targets are not divided, or one may be in several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subset: Option<u32>,
    /// The address of the server at the end of its only way; `None`: a built-in one, or several.
    pub addr: Option<String>,
    /// In one word.
    pub state: State,
    /// Whether only a list of its fleet lacks it that is too short to be believed at once.
    #[serde(rename = "withdrawn", skip_serializing_if = "std::ops::Not::not")]
    pub is_withdrawn: bool,
    /// Whether new requests may be sent to it.
    pub picked: bool,
    /// Why it is not picked, or not like others: a sentence for each reason.
    pub why: Vec<String>,
    /// Since when it may be picked, or may not, ms since 1970; `None`: since the start.
    pub since_unix_ms: Option<u64>,
    /// Its last check; `None`: it has none.
    pub last_check: Option<CheckView>,
    /// Its state by hand: `up`, `drain`, `eject`; `file`: none.
    pub admin: &'static str,
    /// What is left of that state, s; `None`: it holds until it is taken back.
    pub admin_left_s: Option<f64>,
    /// Its weight, without a ramp.
    pub weight: f64,
    /// The share of its weight that it has on its ramp, 0 to 1; `None`: it is on none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Its limit of requests in flight, while a ramp lowers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Its weight in the file.
    pub file_weight: f64,
    /// Whether its weight was set by hand.
    pub weight_by_hand: bool,
    /// What is left of that weight, s; `None`: it holds until it is taken back.
    pub weight_left_s: Option<f64>,
    /// Requests in flight; `None`: no loop has answered.
    pub in_flight: Option<u64>,
    /// The estimate of its response time, ms, over all loops; `None`: its policy estimates nothing.
    pub estimate_ms: Option<f64>,
    /// The load that it has reported last in an answer, 0 to 1; `None`: none, or its policy reads none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f32>,
    /// Attempts so far; `None`: not counted.
    pub attempts: Option<u64>,
    /// Failed attempts.
    pub failed: Option<u64>,
    /// Attempts that ended, each second, over the last 10 s.
    pub rate_per_s: Option<f64>,
    /// The share of them that failed with a 5xx or broke off; `None`: there were none.
    pub share_5xx: Option<f64>,
    /// Their mean time to the head of the answer, ms.
    pub mean_ms: Option<f64>,
    /// The same by loop, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<OnLoop>,
}

/// A target as one loop sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnLoop {
    /// The loop; the owner's number if the process has one state.
    #[serde(rename = "loop")]
    pub number: u32,
    /// The weight that a pick sees: 0 if it may not be picked.
    pub weight: f64,
    /// Requests in flight.
    pub in_flight: u64,
    /// The estimate of its response time, ms.
    pub estimate_ms: Option<f64>,
    /// Whether it is passed over since a connection failed a moment ago.
    pub passed_over: bool,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueView {
    /// Its number among the plan's nodes.
    pub node: u32,
    /// Its `name=`, or its site.
    pub name: String,
    /// Requests inside.
    pub inside: u32,
    /// The capacity inside.
    pub concurrency: u32,
    /// Requests that wait.
    pub waiting: u64,
}

/// An event loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoopView {
    /// Its number.
    #[serde(rename = "loop")]
    pub number: u32,
    /// Clients that it serves; `None`: it did not answer.
    pub clients: Option<usize>,
    /// Requests that it carries, with connections that have sent none yet.
    pub carries: usize,
}

/// A target in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its requests failed: it is ejected for a while.
    Ejected,
    /// Its checks fail, or no target is behind it.
    Down,
    /// It was taken out by hand.
    Out,
    /// One request may try it.
    Probation,
    /// A connection to it failed a moment ago: others are preferred.
    PassedOver,
    /// It has as many requests as it may have.
    Full,
    /// It is drained by hand, or by the source that lists it.
    Drain,
    /// It has come back, and its share is still reduced.
    SlowStart,
    /// Its weight is 0.
    NoWeight,
    /// It is healthy.
    Up,
}

impl State {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            State::Ejected => "ejected",
            State::Down => "down",
            State::Out => "out by hand",
            State::Probation => "on probation",
            State::PassedOver => "passed over",
            State::Full => "full",
            State::Drain => "draining",
            State::SlowStart => "slow start",
            State::NoWeight => "weight 0",
            State::Up => "up",
        }
    }
}
