//! Probes in flight that ask targets for their load.

use crate::code::MemberId;
use crate::code::order::REQUEST_BITS;
use crate::state::guards::Guards;
use weir_policy::TargetId;
use weir_policy::prequal::Reading;
use weir_stats::Key;

/// The number of probes in the order of events: after all requests and health checks, in the order in which they are
/// sent.
pub(crate) const PROBES: u64 = 1 << (REQUEST_BITS - 1) | 1 << (REQUEST_BITS - 2);

/// No probe.
pub(crate) const NONE: u32 = u32::MAX;

/// A probe in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// The balancer, the loop whose state gets the answer, and the probed target.
    pub index: u32,
    pub on: u32,
    pub target: TargetId,
    /// The probed member, past the cables.
    pub member: MemberId,
    /// The key of its answer's draws.
    pub key: Key,
    /// Its place in the order of events.
    pub number: u64,
    /// How long its way back takes, ns.
    pub back_ns: u64,
    /// What it read.
    pub found: Option<Reading>,
}

/// All probes in flight.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    pub of: Vec<Probe>,
    pub spare: Vec<u32>,
    pub sent: u64,
    /// The members probed for one request; kept for its memory.
    pub whom: Vec<(TargetId, Key)>,
}

impl Probes {
    /// Adds a probe.
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

    /// Removes a probe.
    pub fn remove(&mut self, probe: u32) -> Probe {
        self.spare.push(probe);
        self.of[probe as usize]
    }

    /// The position of the next probe in the order of events.
    pub fn number(&self) -> u64 {
        PROBES | self.sent & ((1 << (REQUEST_BITS - 2)) - 1)
    }
}

/// The tag of an event at which a probe goes on; those of health checks have none.
pub(crate) const PROBE: u32 = 1;

impl Guards {
    /// The age at which a probe of a balancer is given up, ns.
    pub fn probe_age_ns(&mut self, index: u32, on: u32) -> u64 {
        let prequal = self.get(index).and_then(|guard| guard.upstream.on(on).balancer().prequal());
        prequal.map_or(0, |prequal| prequal.age_ns())
    }
}
