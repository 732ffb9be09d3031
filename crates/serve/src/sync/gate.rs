//! The state of a gate, which belongs to the process: what decides, and the askers that it knows.

use std::net::IpAddr;
use weir_policy::gate::{Gate, GateArgs, OtherGate};

/// The state.
pub(crate) struct SharedGate {
    /// What decides.
    pub gate: Gate,
    /// Whether the process runs, after how many flips of its timeline.
    runs: (bool, u64),
    /// By number.
    askers: Vec<IpAddr>,
}

impl SharedGate {
    /// Of a process that runs from the start, or that joins later.
    pub fn new(args: &GateArgs, is_newcomer: bool) -> SharedGate {
        let gate = match is_newcomer {
            true => Gate::new(args.clone()),
            false => Gate::open(args.clone(), 0),
        };
        SharedGate { gate, runs: (true, 0), askers: Vec::new() }
    }

    /// The process has begun anew, or stopped, with that flip of its timeline. Loops may report flips out of order.
    pub fn follow(&mut self, runs: bool, flips: u64) {
        if flips < self.runs.1 {
            return;
        }
        self.runs = (runs, flips);
        if runs {
            self.gate.restart();
        }
    }

    /// The gate as the others of its place see it: where its process runs, and it is not held.
    pub fn as_other(&self, number: u32, now_ns: u64) -> Option<OtherGate> {
        let counts = self.runs.0 && self.gate.held_ns(now_ns).is_none();
        counts.then(|| OtherGate { number, entered: self.gate.entered() })
    }

    /// The number of an asker. Balancers are few, and all are of this run.
    pub fn number(&mut self, address: IpAddr) -> u32 {
        let at = self.askers.iter().position(|known| *known == address).unwrap_or_else(|| {
            self.askers.push(address);
            self.askers.len() - 1
        });
        at as u32
    }
}
