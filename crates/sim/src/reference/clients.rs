//! Arrivals of requests, their ends, and the window that selects requests.

use super::build::NONE;
#[cfg(test)]
use super::run::Sabotage;
use super::run::{Flow, Reference, what};
use crate::code::MemberId;
use crate::code::SlotId;
use crate::code::bounds::{AT_ONE_INSTANT, Cut};
use crate::code::order::{Class, Entry, order_key, ranked};
use crate::state::boundaries::boundary_after;
use crate::state::meter::Snapshot;
use crate::state::source::Source;
use weir_model::draws::purpose;
use weir_model::traffic::Thinking;
use weir_policy::key::hash_number;
use weir_workload::{Load, Window};

/// The clients of a replication.
pub(super) struct Clients {
    source: Source,
    thinking: Option<Thinking>,
    patience_ns: Option<u64>,
    /// How many requests each user has sent.
    sent: Vec<u64>,
    /// Requests sent so far, and ended so far.
    pub issued: u64,
    /// Whether no more requests will be sent.
    over: bool,
    /// Users that think before their next request.
    thinkers: u64,
    /// First and last selected arrival, ns.
    first_last: Option<(u64, u64)>,
    /// The next instant of the window that the clock has not passed, and its index.
    mark: u64,
    passed: usize,
    /// Bits of a user's number in the order of events.
    user_bits: u32,
}

impl Clients {
    pub fn new(load: Load) -> Clients {
        let thinking = load.thinking.clone();
        let users = thinking.as_ref().map_or(0, Thinking::users);
        Clients {
            patience_ns: load.patience_ns,
            source: Source::new(load),
            thinking,
            sent: vec![0; users as usize],
            issued: 0,
            over: false,
            thinkers: 0,
            first_last: None,
            mark: u64::MAX,
            passed: 0,
            user_bits: 32 - users.leading_zeros(),
        }
    }

    /// Whether another request will be sent, whatever happens to those in flight.
    pub fn will_send(&self) -> bool {
        !self.over && (self.thinking.is_none() || self.thinkers > 0)
    }

    /// The traffic.
    pub fn source(&self) -> &Source {
        &self.source
    }

    pub fn window_ns(&self) -> u64 {
        self.first_last.map_or(0, |(first, last)| last - first)
    }

    /// Whether a request that arrives now is selected, and whether it is in the second half of the window.
    fn selects(&self, now_ns: u64, ordinal: u64) -> (bool, bool) {
        let (from, at, to) = match self.source.load.window {
            Window::Requests(from, to) => (from, ordinal, to),
            Window::Times(from, to) => (from, now_ns, to + 1),
        };
        ((from..to).contains(&at), at >= from + (to - from) / 2)
    }
}

impl Reference<'_> {
    /// Schedules the first arrivals and flips.
    pub(super) fn begin(&mut self) {
        self.boundary = boundary_after(self.code, self.clients.source(), 0);
        self.schedule_changes();
        self.schedule_flips();
        self.schedule_checks();
        let users = self.clients.sent.len() as u32;
        if self.clients.thinking.is_none() {
            return self.schedule_arrival();
        }
        self.clients.over = self.clients.source.load.requests == 0;
        (0..users).for_each(|user| self.think(user));
    }

    fn schedule_arrival(&mut self) {
        let Some(at) = self.clients.source.take(0) else {
            self.clients.over = true;
            return self.pending.set_source(None);
        };
        self.set_mark();
        self.end_last_part();
        let key = order_key(Class::Arrival, self.clients.issued);
        self.pending.set_source(Some(Entry { at: at.min(u64::MAX - 1), key, who: 0, tag: 0 }));
    }

    /// The next instant of the window, once it is known.
    fn set_mark(&mut self) {
        let passed = self.clients.passed;
        self.clients.mark = match self.clients.source.load.window {
            Window::Requests(..) => self.clients.source.window.get(passed).copied().unwrap_or(u64::MAX),
            Window::Times(..) => u64::MAX,
        };
    }

    /// A user thinks before the next request.
    fn think(&mut self, user: u32) {
        let clients = &self.clients;
        let Some(thinking) = clients.thinking.as_ref().filter(|_| !clients.over) else { return };
        let k = clients.sent[user as usize];
        let at = self.now_ns.saturating_add(thinking.think_ns(user, k)).min(u64::MAX - 1);
        if at > clients.source.load.until_ns {
            return;
        }
        let key = order_key(Class::Arrival, self.user_order(user, k));
        self.clients.thinkers += 1;
        self.schedule(Entry { at, key, who: what::THINK | user, tag: 0 }, false);
    }

    /// The position of a user's request in the order of events: by user, then by its number.
    fn user_order(&self, user: u32, k: u64) -> u64 {
        crate::code::order::user_order(user, self.clients.user_bits, k)
    }

    /// An open arrival.
    pub(super) fn arrive(&mut self) {
        let ordinal = self.clients.issued;
        let way = self.request_key.with(ordinal);
        self.send(ordinal, way, NONE);
    }

    /// A user has finished thinking.
    pub(super) fn user_sends(&mut self, user: u32) {
        self.clients.thinkers -= 1;
        if self.clients.over {
            return;
        }
        let k = self.clients.sent[user as usize];
        self.clients.sent[user as usize] += 1;
        let way = self.request_key.with(u64::from(user)).with(k);
        self.send(self.user_order(user, k), way, user);
    }

    fn send(&mut self, order: u64, way: weir_stats::Key, user: u32) {
        let ordinal = self.clients.issued;
        let (selected, second_half) = self.clients.selects(self.now_ns, ordinal);
        self.clients.issued += 1;
        if user == NONE {
            self.schedule_arrival();
        } else {
            self.clients.over |= self.clients.issued == self.clients.source.load.requests;
            self.count_at_arrival();
        }
        if selected {
            let first = self.clients.first_last.map_or(self.now_ns, |(first, _)| first);
            self.clients.first_last = Some((first, self.now_ns));
        }
        // Open arrivals are drawn ahead, so their marks are known; in a closed loop they are found during the run.
        // The last one of a window of times is known when the next one arrives: until then it is the latest.
        if selected && user != NONE {
            let (first, last) = match self.clients.source.load.window {
                Window::Requests(from, to) => (ordinal == from, ordinal + 1 == to),
                Window::Times(..) => (self.clients.passed == 0, true),
            };
            (0..u32::from(first) + u32::from(last)).for_each(|_| self.keep_mark(self.now_ns));
        }
        let (shape, key) = self.tables.mix.request(ordinal, way.with(purpose::MIX));
        // Without a key each request is a client of its own; in a closed loop the user is the client.
        let client = if user == NONE { (1 << 63) + ordinal } else { u64::from(user) };
        let sender = self.tables.reads_keys.then(|| key.unwrap_or_else(|| hash_number(client)));
        let meets = crate::compile::loops::meets(self.tables.loops.first, way);
        let slot = self.branches.add();
        let branch = &mut self.branches.slots[slot.index()];
        (branch.stage, branch.member) = (self.tables.start, self.tables.start_member);
        branch.floor_stage = branch.stage;
        (branch.way, branch.tries) = (way, way);
        (branch.order, branch.user) = (order, user);
        (branch.shape, branch.key, branch.meets) = (shape, sender, meets);
        (branch.selected, branch.second_half) = (selected, second_half);
        (branch.arrived, branch.since) = (self.now_ns, self.now_ns);
        let (tag, ranked) = (branch.tag, ranked(order_key(Class::Limit, order), 0));
        if let Some(ns) = self.clients.patience_ns {
            let at = self.now_ns.saturating_add(ns).min(u64::MAX - 1);
            self.schedule(Entry { at, key: ranked, who: what::LIMIT | slot.0, tag }, true);
        }
        if let Some(recorder) = &mut self.branches.recorder {
            recorder.begin(slot, ordinal, self.now_ns, selected);
        }
        self.ledger.arrived += 1;
        self.ledger.step(self.now_ns, true);
        self.run_branch(slot, Flow::In);
    }

    /// A request is answered, or its client has left.
    pub(super) fn end_request(&mut self, slot: SlotId) {
        for (part, ns) in self.branches.notes[slot.index()].drain(..) {
            let sum = &mut self.ledger.parts[part as usize];
            *sum = sum.wrapping_add(ns);
        }
        let branch = &self.branches.slots[slot.index()];
        let latency = self.now_ns - branch.arrived;
        let user = branch.user;
        let is_good = branch.outcome.is_none() && latency <= self.clients.source.load.deadline_ns;
        if let Some(recorder) = &mut self.branches.recorder {
            recorder.end(slot, Some(latency), branch.outcome);
            recorder.count_end(Some(latency), branch.outcome, is_good);
        }
        #[cfg(test)]
        self.seen.answers.push((branch.order, branch.arrived, Some(latency), branch.outcome));
        #[cfg(test)]
        let latency = latency + u64::from(self.sabotage == Some(Sabotage::StretchLatency));
        while let Some(line) = self.flipped_since.pop() {
            self.flips_since[line as usize] = 0;
        }
        let ledger = &mut self.ledger;
        ledger.ended += 1;
        ledger.latency_sum = ledger.latency_sum.wrapping_add(latency);
        ledger.step(self.now_ns, false);
        #[cfg(test)]
        if self.sabotage == Some(Sabotage::SkipRecord) {
            return;
        }
        ledger.ends.add(self.now_ns, is_good, self.now_ns);
        if branch.selected {
            ledger.record(latency, branch.outcome, self.now_ns, branch.second_half);
        }
        if let Some(aside) = &mut ledger.aside {
            aside.end(0, false, branch.arrived, latency, branch.outcome);
        }
        if user != NONE {
            self.at_once += u64::from(latency == 0);
            if self.at_once > AT_ONE_INSTANT.saturating_mul(self.clients.sent.len() as u64) {
                self.cut = Some(Cut::StandsStill);
            }
            self.think(user);
        }
    }

    /// Stores the integrals at the instants of the window that the clock has passed.
    pub(super) fn pass_marks(&mut self) {
        while self.now_ns > self.clients.mark {
            self.pass_boundaries(self.clients.mark);
            self.keep_mark(self.clients.mark);
        }
    }

    fn keep_mark(&mut self, at: u64) {
        let passed = self.clients.passed.min(1);
        self.ledger.marked_ns[passed] = at;
        self.ledger.ends.mark(passed, at);
        let integrals: Vec<(u64, u64)> = self.meters.iter().map(|m| m.until(at)).collect();
        self.ledger.marks[passed] = Snapshot {
            busy: integrals.iter().map(|i| i.0).collect(),
            waiting: integrals.iter().map(|i| i.1).collect(),
            most: self.ledger.gauges.iter().map(|g| g.most).collect(),
        };
        if let Some(of) = self.connections.as_deref_mut() {
            of.mark(passed, at);
        }
        if self.clients.passed == 0 {
            self.forget_most();
        }
        self.clients.passed += 1;
        self.set_mark();
    }

    /// Restarts the maximum of each line from here on.
    fn forget_most(&mut self) {
        self.ledger.gauges.iter_mut().for_each(|g| g.most = 0);
        let tables = self.tables;
        for site in &tables.queues {
            for member in (site.base..site.base + site.members).map(MemberId) {
                let waiting = self.queues[member.index_from(site.offset)].waiting();
                let at = self.code.row(site.gauge, member);
                let most = &mut self.ledger.gauges[at].most;
                *most = (*most).max(waiting);
            }
        }
        for (&(site, member), server) in tables.server_sites.iter().zip(&self.servers) {
            let gauge = tables.servers[site as usize].gauge;
            let most = &mut self.ledger.gauges[self.code.row(gauge, MemberId(member))].most;
            *most = (*most).max(server.state.waiting());
        }
    }

    /// Ends the rest of the window with the run; `loses`: with the last step of requests that are lost.
    pub(super) fn finish_marks(&mut self, loses: bool) {
        let has_checks = self.tables.lbs.iter().any(|site| site.check_timeout_ns > 0);
        let is_late = loses && has_checks && self.clients.thinking.is_some();
        while self.clients.passed < 2 {
            let at = self.clients.mark.min(self.now_ns);
            self.ledger.is_marked_late |= is_late;
            self.keep_mark(at);
        }
    }
}
