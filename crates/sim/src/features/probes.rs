//! Probes of `lb.prequal`: how busy targets are, reported after a round trip.
//!
//! - In virtual time: each way of the target's cables. A target without cables answers at once. A probe without a cost
//!   is drawn in advance, so only its arrival and return are events; one with a cost is work, and runs through the code
//!   like a health check ([`crate::features::health_checks`]).
//! - Given back: nothing; a probe with a cost gives back what it holds, once the answers' `age` has passed.
//! - Draws: crossings, by balancer, request and number of the probe.

use crate::code::SlotId;
use crate::code::Target;
use crate::code::order::{Class, Entry, order_key};
use crate::engine::{END_OF_TIME, Engine, Event};
use crate::state::guards::{Guard, Guards, seen_target};
use crate::state::probes::PROBE;
use crate::state::probes::Probe;
use crate::state::request_state::CHECK;
use crate::state::scopes::{CHECKED, Limit};
use weir_model::draws::purpose;
use weir_policy::TargetId;
use weir_policy::prequal::Busy;

impl Engine<'_> {
    /// Probes how busy targets are; the balancer gets the answers now, or as they arrive.
    #[inline(never)]
    pub(crate) fn probe(&mut self, slot: SlotId, index: u32, now_ns: u64) {
        let Some(picks) = self.features.guards.get(index).map(|guard| guard.picks) else { return };
        let draw = self.choice_key(slot, picks, self.features.details.slots[slot.index()].came);
        let (first, on) = self.features.guards.place(index);
        let code = self.core.code();
        let Guards { of, busy, .. } = &mut self.features.guards;
        let Some(Guard { upstream, targets, seen, site, .. }) = of[first].as_deref_mut() else { return };
        let seen = seen.as_ref();
        let (targets, list) = (*targets, code.instances[first].list);
        let costs = code.guards.sites[*site as usize].probe_cost_ns > 0;
        let Some(prequal) = upstream.on(on).balancer().prequal() else { return };
        if !costs && !code.guards.probe_ways.take_time(list) {
            return prequal.probe(now_ns, draw, |t| {
                busy[code.ends.server(seen_target(code, targets, seen, t).member).index()].reading()
            });
        }
        let mut whom = std::mem::take(&mut self.features.probes.whom);
        prequal.whom(draw, &mut whom);
        for &(target, key) in &whom {
            let Some(guard) = self.features.guards.of[first].as_deref() else { continue };
            let (place, to) = (guard.place(target), guard.target(code, target));
            let member = code.ends.server(to.member);
            let number = self.features.probes.number();
            let probe =
                Probe { index: first as u32, on, target, member, key, number, back_ns: 0, found: None };
            if costs {
                self.send_costly(probe, to, now_ns)
            } else {
                self.send_probe(probe, list, place, now_ns)
            }
        }
        self.features.probes.whom = whom;
    }

    fn send_probe(&mut self, probe: Probe, list: u32, place: u32, now_ns: u64) {
        let Some((out_ns, back_ns)) =
            self.core.code().guards.probe_ways.times(list, TargetId(place), probe.key)
        else {
            return;
        };
        let probe = self.features.probes.add(Probe { back_ns, ..probe });
        match out_ns {
            0 => self.probe_arrives(probe, now_ns),
            _ => self.probe_goes_on(probe, out_ns, now_ns),
        }
    }

    fn probe_goes_on(&mut self, probe: u32, ns: u64, now_ns: u64) {
        let at = now_ns.saturating_add(ns).min(END_OF_TIME);
        let key = order_key(Class::Step, self.features.probes.of[probe as usize].number);
        self.core.schedule(now_ns, Entry { at, key, who: Event::Checks.who(probe), tag: PROBE });
    }

    /// A probe arrives or returns.
    #[cold]
    #[inline(never)]
    pub(crate) fn probe_is_due(&mut self, probe: u32, now_ns: u64) {
        match self.features.probes.of[probe as usize].found {
            None => self.probe_arrives(probe, now_ns),
            Some(_) => self.probe_ends(probe, now_ns),
        }
    }

    fn probe_arrives(&mut self, probe: u32, now_ns: u64) {
        self.probe_looks(probe);
        match self.features.probes.of[probe as usize].back_ns {
            0 => self.probe_ends(probe, now_ns),
            ns => self.probe_goes_on(probe, ns, now_ns),
        }
    }

    /// A probe reads how busy its target is now.
    pub(crate) fn probe_looks(&mut self, probe: u32) {
        let probe = &mut self.features.probes.of[probe as usize];
        probe.found = self.features.guards.busy.get(probe.member.index()).map(Busy::reading);
    }

    /// A probe has ended, with an answer or without.
    pub(crate) fn probe_ends(&mut self, probe: u32, now_ns: u64) {
        let Probe { index, on, target, key, found, .. } = self.features.probes.remove(probe);
        let Some(guard) = self.features.guards.get(index) else { return };
        if let (Some(found), Some(prequal)) = (found, guard.upstream.on(on).balancer().prequal()) {
            prequal.probed(now_ns, key, target, found);
        }
    }

    /// Sends out a probe with a cost: it has a slot of its own, like a health check.
    fn send_costly(&mut self, probe: Probe, to: Target, now_ns: u64) {
        let Probe { index, on, target, key, number, .. } = probe;
        let probe = self.features.probes.add(probe);
        let slot = self.core.states_mut().add(number, now_ns, key.with(purpose::PROBE), false);
        self.core.states_mut().checks += 1;
        self.core.scopes_mut().begin(slot);
        self.features.hops.begin(slot);
        self.features.details.begin(slot, 0, None);
        (self.features.details.slots[slot.index()].check, self.features.details.slots[slot.index()].probe) =
            ((index, target), probe);
        let (live, tag) = self.core.scopes_mut().enter(slot, Limit { end: CHECKED, ..Limit::default() }, 0);
        let at = now_ns.saturating_add(self.features.guards.probe_age_ns(index, on)).min(END_OF_TIME);
        let key = order_key(Class::Limit, number);
        self.core.schedule(now_ns, Entry { at, key, who: Event::Limit.who(live), tag });
        self.leave_at(slot, to.pc | CHECK, to.member, 0);
        self.check_goes_on(slot, now_ns);
    }
}
