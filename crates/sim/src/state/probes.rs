//! Probes in flight that ask targets for their load.

use crate::code::order::REQUEST_BITS;
use crate::state::guards::Guards;
use weir_policy::prequal::Busy;
use weir_stats::Key;

/// The number that probes have in the order of events: after all requests and health checks, in the order in which they are sent.
pub(crate) const PROBES: u64 = 1 << (REQUEST_BITS - 1) | 1 << (REQUEST_BITS - 2);

/// No probe.
pub(crate) const NONE: u32 = u32::MAX;

/// A probe on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// The balancer, the loop whose state is told, and which of its targets is asked.
    pub index: u32,
    pub on: u32,
    pub target: u32,
    /// Whom it asks, past the cables.
    pub member: u32,
    /// What its answer is drawn by.
    pub key: Key,
    /// Its place in the order of events.
    pub number: u64,
    /// How long it is on its way back, ns.
    pub back_ns: u64,
    /// What it found.
    pub found: Option<Busy>,
}

/// All probes on their way.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    pub of: Vec<Probe>,
    pub spare: Vec<u32>,
    pub sent: u64,
    /// Whom one request has asked; kept for its memory.
    pub whom: Vec<(u32, Key)>,
}

impl Probes {
    /// One more.
    pub fn add(&mut self, probe: Probe) -> u32 {
        self.sent += 1;
        match self.spare.pop() {
            Some(spare) => {
                self.of[spare as usize] = probe;
                spare
            }
            None => {
                self.of.push(probe);
                self.of.len() as u32 - 1
            }
        }
    }

    /// One is over.
    pub fn remove(&mut self, probe: u32) -> Probe {
        self.spare.push(probe);
        self.of[probe as usize]
    }

    /// The next one's place in the order of events.
    pub fn number(&self) -> u64 {
        PROBES | self.sent & ((1 << (REQUEST_BITS - 2)) - 1)
    }
}

/// The tag of an event at which a probe goes on; those of health checks have none.
pub(crate) const PROBE: u32 = 1;

impl Guards {
    /// After which time a probe of a balancer is given up, ns.
    pub fn probe_age_ns(&mut self, index: u32, on: u32) -> u64 {
        let prequal = self.get(index).and_then(|guard| guard.upstream.on(on).balancer().prequal());
        prequal.map_or(0, |prequal| prequal.age_ns())
    }
}
