//! Nodes that are up and down: how they fail, and by which timeline.

use serde::{Deserialize, Serialize};
use weir_model::Dist;
use weir_model::faulty::Law;

/// Which clock a `faulty` node follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Alternating exponential periods on the node's own timeline.
    #[default]
    Eager,
    /// Looked at only when a request enters (the posts').
    Lazy,
}

/// The effect of a node that is down on requests that enter and on those inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Requests that enter are `refused`; those inside finish.
    #[default]
    Refuse,
    /// A killed process: what enters gets `connect_failed`, what is inside `reset`.
    Crash,
    /// Requests that enter are swallowed; those inside finish.
    Blackhole,
    /// The work of what enters takes longer.
    Slow,
    /// The process stands still: what is inside goes on when it comes up, and what enters or leaves waits until then.
    Pause,
}

impl Mode {
    /// The word of the language for it.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Refuse => "refuse",
            Mode::Crash => "crash",
            Mode::Blackhole => "blackhole",
            Mode::Slow => "slow",
            Mode::Pause => "pause",
        }
    }
}

/// The timeline that a faulty node follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// Its own.
    #[default]
    Own,
    /// The timeline of all nodes with the same `together` (then clock, mtbf, mttr and starts are equal as well).
    Together(String),
    /// The timeline of the `block(...)` with this number, counted through the file as it is evaluated.
    Block(u32),
    /// The changes of a scenario drive it: 0 for a process, else the number of the kind of failure. No file has it.
    Driven(u32),
}

/// `faulty(...)`, or one of the nodes that `block(...)` returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Faulty {
    /// Mean time between failures (a mean up period).
    pub mtbf_ns: u64,
    /// Mean time to repair (a mean down period).
    pub mttr_ns: u64,
    /// How up periods are drawn, if not exponentially.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<Dist>,
    /// The same of down periods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<Dist>,
    /// How its state follows time.
    pub clock: Clock,
    /// The effect of being down.
    pub mode: Mode,
    /// How many times longer work takes while down, in mode `slow`; positive, finite.
    pub slow: f64,
    /// Whether it starts up.
    pub starts_up: bool,
    /// Whether health checks pass while it is down (`checks="pass"`).
    pub checks_pass: bool,
    /// Whose timeline it follows.
    pub line: Line,
}

impl Faulty {
    /// Whether its outages are at instants that the file gives, not chance.
    pub fn is_scheduled(&self) -> bool {
        let is_fixed = |dist: &Option<Dist>| dist.as_ref().is_some_and(Dist::is_fixed);
        self.clock == Clock::Eager && is_fixed(&self.up) && is_fixed(&self.down)
    }

    /// One that a scenario's changes drive: it is up, and nothing but them changes that.
    pub fn driven(mode: Mode, slow: f64, checks_pass: bool, number: u32) -> Faulty {
        let period = weir_model::sampler::LONGEST_NS;
        Faulty {
            mtbf_ns: period,
            mttr_ns: period,
            up: Some(Dist::Fixed { ns: period }),
            down: Some(Dist::Fixed { ns: period }),
            clock: Clock::Eager,
            mode,
            slow,
            starts_up: true,
            checks_pass,
            line: Line::Driven(number),
        }
    }

    /// How it fails and is repaired.
    pub fn law(&self) -> Law {
        Law::new(self.mtbf_ns, self.mttr_ns, self.clock == Clock::Lazy, self.starts_up)
            .with(self.up.as_ref(), self.down.as_ref())
    }
}
