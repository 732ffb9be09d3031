//! How `lb.prequal` asks targets how busy they are: weir knows that itself ([`super::load`]), so no target is asked.
//!
//! If cables act on the way to a target, a probe takes their time as a request does: it sees the load when it has
//! crossed them, and the balancer gets it when the answer has crossed them. Otherwise the answer is there at once.
//! Draws: the simulator's.

use super::Lb;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use weir_model::probe::ProbeWay;
use weir_policy::prequal::Reading;
use weir_policy::{Ask, Operation, TargetId};
use weir_stats::Key;

/// The paths of probes.
pub(crate) struct Probes {
    /// By target, the cables in front of it; empty: no target has any.
    ways: Arc<[ProbeWay]>,
}

impl Probes {
    /// The paths to targets behind these cables, by index; none: no target has any.
    pub fn new(ways: Arc<[ProbeWay]>) -> Probes {
        Probes { ways }
    }
}

impl Lb {
    /// Probes targets for a request.
    pub(super) fn probe(self: &Rc<Self>, probes: &Probes, ask: &Ask) {
        if probes.ways.is_empty() { self.probe_at_once(ask) } else { self.send_probes(probes, ask) }
    }

    fn read(&self, target: TargetId) -> Reading {
        self.state.flags().load(target).map(|load| load.reading()).unwrap_or_default()
    }

    fn probe_at_once(&self, ask: &Ask) {
        let mut upstream = self.state.upstream.borrow_mut();
        let Some(prequal) = upstream.balancer().prequal() else { return };
        let asked = RefCell::new(Vec::new());
        let read = |target| {
            let found = self.read(target);
            if self.records.is_some() {
                asked.borrow_mut().push((target, found.in_flight, found.latency_ns));
            }
            found
        };
        prequal.probe(ask.now_ns, ask.draw, read);
        self.note(|| Operation::Probed { now_ns: ask.now_ns, draw: ask.draw.bits(), busy: asked.take() });
    }

    fn send_probes(self: &Rc<Self>, probes: &Probes, ask: &Ask) {
        let mut whom = Vec::new();
        match self.state.upstream.borrow_mut().balancer().prequal() {
            Some(prequal) => prequal.whom(ask.draw, &mut whom),
            None => return,
        }
        self.note(|| Operation::Asked { draw: ask.draw.bits() });
        for (target, draw) in whom {
            let times = probes.ways.get(target.index()).map_or(Some((0, 0)), |way| way.times(draw));
            if let Some((out_ns, back_ns)) = times {
                self.core.runtime.spawn(self.clone().ask_target(target, draw, out_ns, back_ns));
            }
        }
    }

    /// Sends one probe, there and back.
    async fn ask_target(self: Rc<Self>, target: TargetId, draw: Key, out_ns: u64, back_ns: u64) {
        if out_ns > 0 {
            self.core.timers.after(out_ns).await;
        }
        let found = self.read(target);
        if back_ns > 0 {
            self.core.timers.after(back_ns).await;
        }
        let now_ns = self.core.now();
        let mut upstream = self.state.upstream.borrow_mut();
        let Some(prequal) = upstream.balancer().prequal() else { return };
        prequal.probed(now_ns, draw, target, found);
        let Reading { in_flight, latency_ns } = found;
        self.note(|| Operation::Answered {
            now_ns,
            draw: draw.bits(),
            target,
            busy: (in_flight, latency_ns),
        });
    }
}
