//! How busy a target of `lb.prequal` is: what a probe of it finds, as seen by the sender of all of its requests.

use super::latencies::Latencies;
use crate::Outcome;

/// What a probe finds at a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Requests in flight there.
    pub in_flight: u32,
    /// How long requests took that met about as many, ns; 0: none has been answered yet.
    pub latency_ns: u64,
}

/// The account of a target that its probes read.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    in_flight: u32,
    latencies: Latencies,
}

impl Busy {
    /// A request goes there; returns how many it meets ([`crate::Ticket::met`]).
    pub fn entered(&mut self) -> u16 {
        let met = met(self.in_flight);
        self.in_flight += 1;
        met
    }

    /// A request that had met that many has left after this time.
    pub fn left(&mut self, met: u16, took_ns: u64, outcome: Outcome) {
        self.in_flight -= 1;
        self.latencies.ended(met, took_ns, outcome);
    }

    /// This number of requests will not be reported any more.
    pub fn forget(&mut self, requests: u32) {
        self.in_flight -= requests;
    }

    /// What a probe finds now.
    pub fn reading(&self) -> Reading {
        let in_flight = self.in_flight;
        Reading { in_flight, latency_ns: self.latencies.median_ns(met(in_flight)) }
    }
}

/// The number that a request meets where so many are in flight: more are as many.
fn met(in_flight: u32) -> u16 {
    in_flight.try_into().unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn a_probe_finds_what_requests_took_that_met_as_many() {
        let mut busy = Busy::default();
        assert_eq!(busy.reading(), Reading::default());
        assert_eq!([(); 4].map(|()| busy.entered()), [0, 1, 2, 3]);
        busy.left(3, 400, None);
        busy.left(0, 5, Some(Kind::Status5xx));
        busy.left(2, 9, Some(Kind::Cancelled));
        assert_eq!(busy.reading(), Reading { in_flight: 1, latency_ns: 400 });
        busy.left(1, 100, None);
        assert_eq!(busy.reading(), Reading { in_flight: 0, latency_ns: 250 });
        assert_eq!((met(7), met(1 << 20)), (7, u16::MAX));
    }
}
