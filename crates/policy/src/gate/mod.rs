//! A health check that flaps on purpose: a process that has just begun is unhealthy to a shrinking share of its askers.
//!
//! - Idea: balancers that decide about health each for itself let a newcomer in one after the other, so that its load grows in
//!   steps while it warms up. It needs nothing of the balancers but checks. A gate can also answer that nothing comes in:
//!   its askers reach the process, but requests do not (Morsing 2017).
//! - Signal: the time since the process was first healthy, and the hash of the asker's address; the number of requests that
//!   have entered since the same asker's last check.
//! - State: the clock's beginning, a count of requests; with `min_requests` a count for each asker. Cost: a hash for each asker,
//!   once; then a comparison for each check.
//! - Formula, `even`: u = MurmurHash3 x86_32(asker, seed = MurmurHash3 x86_32(id, 0)) / 2³²; unhealthy while elapsed < ramp and
//!   elapsed / ramp ≤ u. `article`: unhealthy while elapsed < ramp and |h| mod 100 > ⌊elapsed⌋ / ramp · 100 in single precision,
//!   h = MurmurHash3 x86_32(asker, seed = 0), in whole seconds since the first check.
//! - Choices: `even` differs from the article where that surprises. There an asker in bucket 0 is let in at once, one whose
//!   hash is −2³¹ always, the clock begins with a question although the process may not be ready, and all newcomers let the same
//!   askers in first, so that several newcomers at a time fall on the same balancers. The `id` is why two newcomers differ.
//! - Pathologies: n askers make a ramp of n steps. Judgement by work takes an idle service for a partitioned one, unless it
//!   is `relative` to the others.
//! - Source: AppOptics, "Moving from ELB to ALB" (2018); Daniel Morsing, "How to do health checks" (2017). In the language:
//!   `gate(node, ramp=60*s, flap="even", min_requests=None, relative=False, grace=60*s, hold=30*s, max_hold=300*s)`; beside a
//!   process of any kind: `weir gate`.

mod murmur3;
#[cfg(test)]
mod tests;
mod work;

pub use murmur3::murmur3_x86_32;
pub use work::{OtherGate, Work};

use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use work::Judge;

const NS_PER_S: u64 = 1_000_000_000;
/// The number of different hashes.
const HASHES: f64 = 4_294_967_296.0;

/// By what rule a gate opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flap {
    /// Each asker at a point of its own, in another order for each process.
    #[default]
    Even,
    /// As the article's code.
    Article,
}

/// `gate(...)`, without the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GateArgs {
    /// From the clock's beginning until every asker is let in, ns; `None`: all are at once. At least a second with
    /// [`Flap::Article`].
    pub ramp_ns: Option<u64>,
    /// The rule.
    pub flap: Flap,
    /// Judgement by requests that come in.
    pub work: Option<Work>,
}

/// The text by which a gate knows an address: IPv6 as in RFC 5952, and an IPv4-mapped address as IPv4.
pub fn asker_text(address: IpAddr) -> String {
    address.to_canonical().to_string()
}

/// Where on the ramp an asker is let in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The number that it comes from: the hash, and with [`Flap::Article`] its magnitude as Java has it.
    pub hash: i64,
    /// The share of the ramp, 0 to 1; with [`Flap::Article`] in hundredths, and below 0 for −2³¹.
    pub share: f64,
}

impl Place {
    /// Of an asker at the process with this id.
    pub fn new(flap: Flap, id: &str, asker: &str) -> Place {
        match flap {
            Flap::Even => {
                let hash = murmur3_x86_32(asker.as_bytes(), murmur3_x86_32(id.as_bytes(), 0));
                Place { hash: i64::from(hash), share: f64::from(hash) / HASHES }
            }
            Flap::Article => Place::of_article(murmur3_x86_32(asker.as_bytes(), 0)),
        }
    }

    fn of_article(hash: u32) -> Place {
        // The article keeps the magnitude in a `long`, but takes it as an `int`, which −2³¹ does not fit.
        let hash = i64::from(hash.cast_signed().wrapping_abs());
        Place { hash, share: (hash % 100) as f64 / 100.0 }
    }

    /// When it is let in, ns after the clock's beginning: at that instant, with [`Flap::Even`] directly after it.
    pub fn from_ns(&self, args: &GateArgs) -> u64 {
        let Some(ramp_ns) = args.ramp_ns else { return 0 };
        match args.flap {
            Flap::Even => (self.share * ramp_ns as f64) as u64,
            Flap::Article => {
                let is_in = |s: &u64| self.share_is_in(args, s * NS_PER_S);
                (0..ramp_ns / NS_PER_S).find(is_in).map_or(ramp_ns, |s| s * NS_PER_S)
            }
        }
    }

    /// Whether it is let in this long after the clock's beginning.
    pub fn share_is_in(&self, args: &GateArgs, elapsed_ns: u64) -> bool {
        let Some(ramp_ns) = args.ramp_ns.filter(|ramp_ns| elapsed_ns < *ramp_ns) else { return true };
        match args.flap {
            Flap::Even => elapsed_ns as f64 / ramp_ns as f64 > self.share,
            Flap::Article => (self.hash % 100) as f32 <= enabled_percent(args, elapsed_ns),
        }
    }
}

/// How much of the ramp is over, percent, in single precision as the article's log has it.
pub fn enabled_percent(args: &GateArgs, elapsed_ns: u64) -> f32 {
    match args.ramp_ns.filter(|ramp_ns| elapsed_ns < *ramp_ns) {
        None => 100.0,
        Some(ramp_ns) if args.flap == Flap::Article => {
            (elapsed_ns / NS_PER_S) as f32 / (ramp_ns / NS_PER_S) as f32 * 100.0
        }
        Some(ramp_ns) => (elapsed_ns as f64 / ramp_ns as f64 * 100.0) as f32,
    }
}

/// What an asker is answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// Healthy.
    Healthy,
    /// The process itself is not.
    Unready,
    /// The ramp has not come to this asker.
    Ramp,
    /// Too few requests have come in since its last check.
    Idle {
        /// Their number.
        had: u64,
    },
    /// All are turned away since that was so.
    Held,
}

impl Answer {
    /// Whether it is healthy.
    pub fn is_healthy(self) -> bool {
        self == Answer::Healthy
    }
}

/// An asker as a gate sees it.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// Its number, the same at each check.
    pub number: u32,
    /// Where on the ramp it is let in.
    pub place: Place,
}

/// The gate of one process.
#[derive(Clone, Debug)]
pub struct Gate {
    args: GateArgs,
    /// When the clock began.
    began_ns: Option<u64>,
    /// Whether the ramp does not apply: the process has run since before the gate.
    is_open: bool,
    judge: Judge,
}

impl Gate {
    /// Of a process that begins now.
    pub fn new(args: GateArgs) -> Gate {
        Gate { args, began_ns: None, is_open: false, judge: Judge::default() }
    }

    /// Of a process that ran long before `now_ns`.
    pub fn open(args: GateArgs, now_ns: u64) -> Gate {
        Gate { args, began_ns: Some(now_ns), is_open: true, judge: Judge::default() }
    }

    /// The process has begun anew: nothing is known of it.
    pub fn restart(&mut self) {
        (self.began_ns, self.is_open, self.judge) = (None, false, Judge::default());
    }

    /// Takes other arguments, if they are others; clock and counts go on.
    pub fn configure(&mut self, args: &GateArgs) {
        if self.args != *args {
            self.args = args.clone();
        }
    }

    /// The arguments.
    pub fn args(&self) -> &GateArgs {
        &self.args
    }

    /// A request enters.
    pub fn enter(&mut self) {
        self.enter_many(1);
    }

    /// So many requests have entered.
    pub fn enter_many(&mut self, requests: u64) {
        self.judge.entered = self.judge.entered.saturating_add(requests);
    }

    /// The requests that have entered since the process began.
    pub fn entered(&self) -> u64 {
        self.judge.entered
    }

    /// A check comes in, which may begin the clock.
    pub fn asked(&mut self, now_ns: u64) {
        if self.args.flap == Flap::Article {
            self.begin(now_ns);
        }
    }

    /// The process is healthy, which may begin the clock.
    pub fn passed(&mut self, now_ns: u64) {
        if self.args.flap == Flap::Even {
            self.begin(now_ns);
        }
    }

    fn begin(&mut self, now_ns: u64) {
        self.began_ns.get_or_insert(now_ns);
    }

    /// How long the clock runs, ns.
    pub fn elapsed_ns(&self, now_ns: u64) -> Option<u64> {
        Some(now_ns.saturating_sub(self.began_ns?))
    }

    /// How much of the ramp is over, percent.
    pub fn enabled_percent(&self, now_ns: u64) -> f32 {
        match self.is_open {
            true => 100.0,
            false => enabled_percent(&self.args, self.elapsed_ns(now_ns).unwrap_or(0)),
        }
    }

    /// For how long all are still turned away for want of requests, ns.
    pub fn held_ns(&self, now_ns: u64) -> Option<u64> {
        self.judge.held_ns(now_ns)
    }

    /// Requests that have entered since an asker's last check, where that counts.
    pub fn entered_since(&self, asker: u32) -> Option<u64> {
        self.judge.entered_since(asker)
    }

    /// An asker is forgotten.
    pub fn forget(&mut self, asker: u32) {
        self.judge.forget(asker);
    }

    /// Whether the ramp has come to an asker.
    pub fn lets_in(&self, now_ns: u64, place: &Place) -> bool {
        self.is_open || place.share_is_in(&self.args, self.elapsed_ns(now_ns).unwrap_or(0))
    }

    /// Answers a check. `is_ready`: whether the process itself is healthy. `others`: the gates of the same place that run and
    /// are not held, for [`Work::is_relative`].
    pub fn answer(&mut self, now_ns: u64, asker: Asker, is_ready: bool, others: &[OtherGate]) -> Answer {
        self.asked(now_ns);
        if !is_ready {
            // That is the answer. What came in meanwhile says nothing, so the next check is a first one.
            self.judge.forget(asker.number);
            return Answer::Unready;
        }
        self.passed(now_ns);
        let began_ns = self.began_ns.filter(|_| self.args.ramp_ns.is_some());
        let judged = match &self.args.work {
            Some(work) => self.judge.judge(work, now_ns, began_ns, asker.number, others),
            None => Answer::Healthy,
        };
        match judged {
            Answer::Held => Answer::Held,
            _ if !self.lets_in(now_ns, &asker.place) => Answer::Ramp,
            judged => judged,
        }
    }

    /// The same while it is not known how many requests enter: nothing is judged, and nothing is noted.
    pub fn answer_by_ramp(&mut self, now_ns: u64, asker: Asker, is_ready: bool) -> Answer {
        self.asked(now_ns);
        if is_ready {
            self.passed(now_ns);
        }
        match is_ready {
            false => Answer::Unready,
            true if self.lets_in(now_ns, &asker.place) => Answer::Healthy,
            true => Answer::Ramp,
        }
    }
}
