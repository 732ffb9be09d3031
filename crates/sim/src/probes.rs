//! Probes of `lb.prequal`: how busy targets are, told after a way there and back.
//!
//! - In virtual time: each way of the target's cables. What has no cables on it is answered at once. A probe that costs nothing is
//!   taken out of line, so only where it comes and when it is back are events; one with a cost is work, and runs through the
//!   code like a health check ([`crate::checks`]).
//! - Given back: nothing; one with a cost what it holds, as the answers' `age` is over.
//! - Draws: crossings, by balancer, request and number of the probe.

use crate::code::Targets;
use crate::engine::{CHECKS_DUE, END_OF_TIME, Engine};
use crate::guards::{Guard, Guards};
use crate::order::{Class, Entry, REQUEST_BITS, order_key};
use crate::request_state::CHECK;
use crate::scopes::{CHECKED, Limit};
use std::collections::BTreeMap;
use weir_model::draws::purpose;
use weir_model::probe::{Cable, ProbeWay};
use weir_model::sampler::Sampler;
use weir_plan::{Point, Spec, only_way};
use weir_policy::prequal::Busy;
use weir_stats::Key;

/// The number that probes have in the order of events: after all requests and health checks, in the order in which they are sent.
pub(crate) const PROBES: u64 = 1 << (REQUEST_BITS - 1) | 1 << (REQUEST_BITS - 2);

/// No probe.
pub(crate) const NONE: u32 = u32::MAX;

/// The cables before the servers of targets, outermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProbeWays {
    chains: Vec<ProbeWay>,
    /// By list of targets, where any has cables: the chain of each.
    of: BTreeMap<u32, Vec<u32>>,
}

impl ProbeWays {
    /// The ways to the targets of a list.
    pub fn add(&mut self, point: &Point, list: u32) {
        let mut known: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let mut of = Vec::new();
        for &target in &point.lists[list as usize] {
            let specs = only_way(point, target).map(|id| point.nodes[id as usize].spec);
            let is_cable = |spec: &u32| matches!(point.specs[*spec as usize], Spec::Cable { .. });
            let specs: Vec<u32> = specs.filter(is_cable).collect();
            let chains = &mut self.chains;
            of.push(*known.entry(specs).or_insert_with_key(|specs| {
                chains.push(ProbeWay(specs.iter().filter_map(|spec| cable(point, *spec)).collect()));
                chains.len() as u32 - 1
            }));
        }
        if known.keys().any(|specs| !specs.is_empty()) {
            self.of.insert(list, of);
        }
    }

    /// Whether probes of a list take their time.
    pub fn take_time(&self, list: u32) -> bool {
        self.of.contains_key(&list)
    }

    /// How long a probe is on its way to a target, and back from there; `None`: it is lost.
    pub fn times(&self, list: u32, target: u32, key: Key) -> Option<(u64, u64)> {
        let Some(of) = self.of.get(&list) else { return Some((0, 0)) };
        self.chains[of[target as usize] as usize].times(key)
    }
}

fn cable(point: &Point, spec: u32) -> Option<Cable> {
    match &point.specs[spec as usize] {
        Spec::Cable { time, loss, resend_ns } => {
            Some(Cable { time: Sampler::new(time), loss: *loss, resend_ns: *resend_ns })
        }
        _ => None,
    }
}

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
    spare: Vec<u32>,
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

impl Engine<'_> {
    /// Asks targets how busy they are, and tells the balancer, now or as the answers come.
    #[inline(never)]
    pub(crate) fn probe(&mut self, slot: u32, index: u32, now: u64) {
        let Some(picks) = self.guards.get(index).map(|guard| guard.picks) else { return };
        let draw = self.choice_key(slot, picks, self.details.slots[slot as usize].came);
        let (first, on) = self.guards.place(index);
        let code = self.code;
        let Guards { of, busy, .. } = &mut self.guards;
        let Some(Guard { upstream, targets, site, .. }) = of[first].as_deref_mut() else { return };
        let (targets, list) = (*targets, code.instances[first].list);
        let costs = code.guards.sites[*site as usize].probe_cost_ns > 0;
        let Some(prequal) = upstream.on(on).balancer().prequal() else { return };
        if !costs && !code.guards.probe_ways.take_time(list) {
            return prequal
                .probe(now, draw, |t| busy[code.ends.server(targets.get(code, t).member) as usize]);
        }
        let mut whom = std::mem::take(&mut self.probes.whom);
        prequal.whom(draw, &mut whom);
        for &(target, key) in &whom {
            let member = code.ends.server(targets.get(code, target).member);
            let number = self.probes.number();
            let probe =
                Probe { index: first as u32, on, target, member, key, number, back_ns: 0, found: None };
            if costs { self.send_costly(probe, targets, now) } else { self.send_probe(probe, list, now) }
        }
        self.probes.whom = whom;
    }

    fn send_probe(&mut self, probe: Probe, list: u32, now: u64) {
        let Some((out_ns, back_ns)) = self.code.guards.probe_ways.times(list, probe.target, probe.key) else {
            return;
        };
        let probe = self.probes.add(Probe { back_ns, ..probe });
        match out_ns {
            0 => self.probe_arrives(probe, now),
            _ => self.probe_goes_on(probe, out_ns, now),
        }
    }

    fn probe_goes_on(&mut self, probe: u32, ns: u64, now: u64) {
        let at = now.saturating_add(ns).min(END_OF_TIME);
        let key = order_key(Class::Step, self.probes.of[probe as usize].number);
        self.pending.push(now, Entry { at, key, who: CHECKS_DUE | probe, tag: PROBE });
    }

    /// A probe is there, or back.
    #[cold]
    #[inline(never)]
    pub(crate) fn probe_is_due(&mut self, probe: u32, now: u64) {
        match self.probes.of[probe as usize].found {
            None => self.probe_arrives(probe, now),
            Some(_) => self.probe_ends(probe, now),
        }
    }

    fn probe_arrives(&mut self, probe: u32, now: u64) {
        self.probe_looks(probe);
        match self.probes.of[probe as usize].back_ns {
            0 => self.probe_ends(probe, now),
            ns => self.probe_goes_on(probe, ns, now),
        }
    }

    /// What a probe tells is what it finds now.
    pub(crate) fn probe_looks(&mut self, probe: u32) {
        let probe = &mut self.probes.of[probe as usize];
        probe.found = self.guards.busy.get(probe.member as usize).copied();
    }

    /// A probe is over, with an answer or without.
    pub(crate) fn probe_ends(&mut self, probe: u32, now: u64) {
        let Probe { index, on, target, key, found, .. } = self.probes.remove(probe);
        let Some(guard) = self.guards.get(index) else { return };
        if let (Some(found), Some(prequal)) = (found, guard.upstream.on(on).balancer().prequal()) {
            prequal.probed(now, key, target, found.in_flight, found.latency_ns());
        }
    }

    /// A probe with a cost begins its way: a slot of its own, as for a health check.
    fn send_costly(&mut self, probe: Probe, targets: Targets, now: u64) {
        let Probe { index, on, target, key, number, .. } = probe;
        let to = targets.get(self.code, target);
        let probe = self.probes.add(probe);
        let slot = self.states.add(number, now, key.with(purpose::PROBE), false);
        self.states.checks += 1;
        self.scopes.begin(slot);
        self.hops.begin(slot);
        self.details.begin(slot, 0, None);
        (self.details.slots[slot as usize].check, self.details.slots[slot as usize].probe) =
            ((index, target), probe);
        let (live, tag) = self.scopes.enter(slot, Limit { end: CHECKED, ..Limit::default() }, 0);
        let at = now.saturating_add(self.guards.probe_age_ns(index, on)).min(END_OF_TIME);
        let key = order_key(Class::Limit, number);
        self.pending.push(now, Entry { at, key, who: crate::engine::LIMIT | live, tag });
        self.leave_at(slot, to.pc | CHECK, to.member, 0);
        self.check_goes_on(slot, now);
    }
}

/// The tag of an event at which a probe goes on; those of health checks have none.
pub(crate) const PROBE: u32 = 1;

impl Guards {
    /// After which time a probe of a balancer is given up, ns.
    fn probe_age_ns(&mut self, index: u32, on: u32) -> u64 {
        let prequal = self.get(index).and_then(|guard| guard.upstream.on(on).balancer().prequal());
        prequal.map_or(0, |prequal| prequal.age_ns())
    }
}
