//! A process: it boots, runs, has to go, stops, and is stopped.
//!
//! - In virtual time, and beside built-in servers: asked at the instants that it names, and when the last thing inside
//!   has left it. What its balancers have seen, and what is inside, are arguments.
//! - Draws: how long it boots, by its caller.
//! - Rules: one that must go is no longer listed from that instant. It gets SIGTERM once each balancer has seen that and
//!   nothing is inside, `drain` later at the latest; it is killed `grace` after SIGTERM.

use crate::Dist;
use serde::{Deserialize, Serialize};

/// What SIGTERM does to what is inside (`on_term`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTerm {
    /// It goes on to its end; new connections are refused.
    #[default]
    Drain,
    /// It fails with `reset`.
    Exit,
}

/// How the members of a fleet begin and end (`life`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Life {
    /// From the change until a process runs.
    pub boot: Dist,
    /// How long it waits at most until nothing is inside, ns; `None`: without limit.
    pub drain_ns: Option<u64>,
    /// What SIGTERM does to what is inside.
    pub on_term: OnTerm,
    /// From SIGTERM until it is killed, ns.
    pub grace_ns: u64,
}

impl Default for Life {
    fn default() -> Life {
        Life { boot: Dist::Fixed { ns: 0 }, drain_ns: None, on_term: OnTerm::Drain, grace_ns: 30_000_000_000 }
    }
}

/// What a process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is not there yet, or no more.
    Stopped,
    /// It is not ready.
    Boots,
    /// It takes what comes.
    Runs,
    /// It takes what comes, and is to go.
    Drains,
    /// It has got SIGTERM: nothing new comes in.
    Stops,
}

impl Phase {
    /// Its name in results: a process that drains still runs.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Stopped => "stopped",
            Phase::Boots => "boots",
            Phase::Runs | Phase::Drains => "runs",
            Phase::Stops => "stops",
        }
    }
}

/// What becomes of a process when it is asked ([`Process::turn`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It gets SIGTERM, and lets what is inside go on.
    Stops,
    /// It has ended; what is still inside fails with `reset`.
    Ends,
}

/// One process.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    phase: Phase,
    since_ns: u64,
}

impl Process {
    /// One of the start of the run, or one that is not there yet.
    pub fn new(runs: bool) -> Process {
        Process { phase: if runs { Phase::Runs } else { Phase::Stopped }, since_ns: 0 }
    }

    /// What it is doing.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    fn enter(&mut self, phase: Phase, now_ns: u64) {
        (self.phase, self.since_ns) = (phase, now_ns);
    }

    /// It begins to boot.
    pub fn boot(&mut self, now_ns: u64) {
        self.enter(Phase::Boots, now_ns);
    }

    /// It has booted.
    pub fn run(&mut self, now_ns: u64) {
        self.enter(Phase::Runs, now_ns);
    }

    /// It is to go: `false` if it does not run, and has to be asked later.
    pub fn must_go(&mut self, now_ns: u64) -> bool {
        if self.phase != Phase::Runs {
            return false;
        }
        self.enter(Phase::Drains, now_ns);
        true
    }

    /// What becomes of it now; `None`: nothing. `is_seen`: each balancer has seen that it is to go; `is_empty`: nothing
    /// is inside. It is to be asked at [`Process::due_ns`], when the last balancer has seen it, and when the last thing
    /// inside has left.
    pub fn turn(&mut self, life: &Life, now_ns: u64, is_seen: bool, is_empty: bool) -> Option<Turn> {
        let is_due = self.due_ns(life).is_some_and(|due_ns| due_ns <= now_ns);
        match self.phase {
            Phase::Drains if is_due || is_seen && is_empty => {
                let ends = is_empty || life.on_term == OnTerm::Exit || life.grace_ns == 0;
                self.enter(if ends { Phase::Stopped } else { Phase::Stops }, now_ns);
                Some(if ends { Turn::Ends } else { Turn::Stops })
            }
            Phase::Stops if is_due || is_empty => {
                self.enter(Phase::Stopped, now_ns);
                Some(Turn::Ends)
            }
            _ => None,
        }
    }

    /// When it goes on whatever is inside, ns; `None`: at no time.
    pub fn due_ns(&self, life: &Life) -> Option<u64> {
        match self.phase {
            Phase::Drains => Some(self.since_ns.saturating_add(life.drain_ns?)),
            Phase::Stops => Some(self.since_ns.saturating_add(life.grace_ns)),
            Phase::Stopped | Phase::Boots | Phase::Runs => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn life(drain_ns: Option<u64>, on_term: OnTerm) -> Life {
        Life { drain_ns, on_term, ..Life::default() }
    }

    fn going(life: &Life) -> Process {
        let mut process = Process::new(true);
        assert_eq!(process.turn(life, 0, true, true), None, "one that runs stays");
        assert!(process.must_go(10 * S));
        assert!(!process.must_go(11 * S), "once");
        process
    }

    #[test]
    fn it_waits_for_balancers_and_for_what_is_inside() {
        let life = life(None, OnTerm::Drain);
        let mut process = going(&life);
        assert_eq!(process.due_ns(&life), None);
        for (is_seen, is_empty) in [(false, false), (true, false), (false, true)] {
            assert_eq!(process.turn(&life, 900 * S, is_seen, is_empty), None);
        }
        assert_eq!(process.turn(&life, 900 * S, true, true), Some(Turn::Ends));
        assert_eq!(process.phase(), Phase::Stopped);
        process.boot(901 * S);
        assert!(!process.must_go(902 * S), "one that boots goes when it runs");
        process.run(903 * S);
        assert_eq!(process.phase(), Phase::Runs);
    }

    #[test]
    fn sigterm_comes_after_the_drain_and_the_end_after_the_grace() {
        let life = life(Some(5 * S), OnTerm::Drain);
        let mut process = going(&life);
        assert_eq!(process.due_ns(&life), Some(15 * S));
        assert_eq!(process.turn(&life, 15 * S - 1, false, false), None);
        assert_eq!(process.turn(&life, 15 * S, false, false), Some(Turn::Stops));
        assert_eq!((process.phase(), process.due_ns(&life)), (Phase::Stops, Some(45 * S)));
        let mut other = process;
        assert_eq!(process.turn(&life, 44 * S, true, false), None);
        assert_eq!(process.turn(&life, 45 * S, true, false), Some(Turn::Ends));
        assert_eq!(other.turn(&life, 20 * S, false, true), Some(Turn::Ends), "empty before its time");
    }

    #[test]
    fn one_that_exits_ends_with_sigterm() {
        let life = life(Some(0), OnTerm::Exit);
        assert_eq!(going(&life).turn(&life, 10 * S, false, false), Some(Turn::Ends));
    }
}
