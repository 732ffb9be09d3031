//! Nodes that fail and are repaired in other ways than plain refusal: several on one timeline, processes that crash,
//! black holes, slow nodes.
//!
//! - In virtual time: none. A crash is a scope like a limit without an event of its own: requests inside when the
//!   timeline goes down are cut off at once and fail with `reset`, and so do those that went on there only because no
//!   cancellation reached them.
//! - Given back when cut off: everything that is held inside, whatever `on_cancel` a queue has.
//! - Draws: the periods of each timeline, by node or name.

use crate::code::order::{Class, Entry, order_key};
use crate::code::{ColdOp, NOT, Op};
use crate::code::{MemberId, SlotId};
use crate::engine::{END_OF_TIME, Engine, Event};
use crate::state::request_state::{CHECK, PARKED};
use crate::state::scopes::{GHOST, Limit};
use weir_plan::Mode;
use weir_policy::Kind;

impl Engine<'_> {
    /// Schedules the first flips of the timelines that flip by events.
    pub(crate) fn schedule_flips(&mut self) {
        for line in 0..self.features.lines.state.len() as u32 {
            let begins_later = self.features.lines.state[line as usize].next_flip_ns() > END_OF_TIME;
            let site = &self.core.code().lines.lines[line as usize];
            if site.eager && !site.is_driven && !begins_later {
                self.schedule_flip(line, 0);
            }
        }
    }

    pub(crate) fn schedule_flip(&mut self, line: u32, now_ns: u64) {
        let at = self.features.lines.state[line as usize].next_flip_ns().min(END_OF_TIME);
        let key = order_key(Class::Fault, u64::from(line));
        self.core.schedule(now_ns, Entry { at, key, who: Event::Flip.who(line), tag: 0 });
    }

    /// A timeline flips.
    pub(crate) fn flip(&mut self, line: u32, now_ns: u64) {
        let state = &mut self.features.lines.state[line as usize];
        state.flip_due(&self.core.code().lines.lines[line as usize].law);
        let is_up = state.is_up_now();
        self.features.lines.flip(line, 1, now_ns);
        self.schedule_flip(line, now_ns);
        self.flipped(line, is_up, now_ns);
    }

    /// A change lets the nodes of a timeline fail, or repairs them.
    pub(crate) fn drive(&mut self, line: u32, is_up: bool, now_ns: u64) {
        if self.features.lines.state[line as usize].drive(is_up) {
            self.features.lines.flip(line, 1, now_ns);
            self.flipped(line, is_up, now_ns);
        }
    }

    fn flipped(&mut self, line: u32, is_up: bool, now_ns: u64) {
        if !is_up {
            return self.crash(line, now_ns);
        }
        let code = self.core.code();
        for &birth in &code.lines.lines[line as usize].anew {
            self.brings(birth, now_ns);
        }
    }

    /// Whether the nodes of a timeline are up for a request that enters now.
    fn line_is_up(&mut self, line: u32, now_ns: u64, after_faults: bool) -> bool {
        let site = &self.core.code().lines.lines[line as usize];
        let state = &mut self.features.lines.state[line as usize];
        if site.eager {
            return state.is_up_now();
        }
        let before = state.flips();
        let is_up = state.is_up(&site.law, now_ns, after_faults);
        let flips = state.flips() - before;
        if flips > 0 {
            if self.core.code().loses {
                self.features.lines.flip(line, flips, now_ns);
            }
            self.flipped(line, is_up, now_ns);
        }
        is_up
    }

    /// Whether the node of a member is up.
    pub(crate) fn is_up(&mut self, down: u32, member: MemberId, now_ns: u64, after_faults: bool) -> bool {
        let site = self.core.code().lines.sites[down as usize];
        self.line_is_up(self.core.code().lines.of_node[member.index_from(site.offset)], now_ns, after_faults)
    }

    /// A request arrives at a node that may be down; false: it goes no further now.
    pub(crate) fn come_to_fault(
        &mut self,
        slot: SlotId,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
        after_faults: bool,
    ) -> bool {
        let Op::Cold(ColdOp::EnterFaulty { down }) = self.core.code().steps[pc].op else { return false };
        let site = self.core.code().lines.sites[down as usize];
        let (tag, check) = (self.core.state(slot).tag, self.core.state(slot).pc & CHECK);
        let selected = self.core.state(slot).mask();
        // It may be inside a process that is now found dead: another node on that timeline.
        self.leave_at(slot, pc as u32 | PARKED | check, member, depth);
        self.core.scopes_mut().stand(slot, now_ns, pc, member, depth);
        let is_up = self.is_up(down, member, now_ns, after_faults);
        if self.core.state(slot).tag != tag {
            // It arrived here, and goes no further.
            self.count_cut(site.stage, member, selected);
            return false;
        }
        self.leave_at(slot, (pc as u32 + 1) | check, member, depth);
        let refused = match (site.mode, is_up) {
            (Mode::Slow, _) => {
                self.features.details.scale(slot, if is_up { 1.0 } else { site.slow });
                return true;
            }
            (Mode::Crash, true) => {
                let line = self.core.code().lines.of_node[member.index_from(site.offset)];
                self.enter_process(slot, line, site.skip, member, depth);
                return true;
            }
            // A step of its own waits until it goes on.
            (_, true) | (Mode::Pause, false) => return true,
            (Mode::Blackhole, false) => {
                self.lose(slot, site.stage, member, now_ns);
                return false;
            }
            (Mode::Refuse, false) => Kind::Refused,
            (Mode::Crash, false) => Kind::ConnectFailed,
        };
        self.count_refusal(slot, member, site.stage);
        if site.mode == Mode::Crash {
            // A request that leaves a process, or is not let in, passes the stage behind it.
            self.core.state_mut(slot).set_outcome(Some(refused));
        } else {
            self.refuse(slot, member, site.stage, refused);
        }
        self.features.details.slots[slot.index()].relayed = false;
        self.core.state_mut(slot).pc = site.skip;
        true
    }

    /// A request enters a process that can crash.
    fn enter_process(&mut self, slot: SlotId, line: u32, end: u32, member: MemberId, depth: usize) {
        let rank = self.core.scope(slot).rank;
        let (retries, depth) = (self.core.state(slot).retries, depth as u16);
        let details = self.features.details.outside(slot);
        let row = Limit { live: 0, end, site: NOT, member, rank, depth, retries, details, until: 0 };
        // What changes drive may end at any time.
        let is_driven = self.core.code().lines.lines[line as usize].is_driven;
        let until = if is_driven { 0 } else { self.features.lines.state[line as usize].next_flip_ns() };
        let (live, _) = self.core.scopes_mut().enter(slot, row, until);
        self.core.scopes_mut().register(live, line);
        // Left behind by a client that has gone: the nodes behind know nothing of that.
        self.core.state_mut(slot).set_outcome(None);
    }

    /// A request leaves a process that can crash.
    #[inline(never)]
    pub(crate) fn survived(&mut self, slot: SlotId, pc: usize, member: MemberId) {
        self.count_errors(slot, member, pc);
        self.core.scopes_mut().leave_innermost(slot);
    }

    /// Kills the processes of a timeline.
    pub(crate) fn crash(&mut self, line: u32, now_ns: u64) {
        self.break_handshakes_on(line, now_ns);
        if let Some(of) = self.features.connections.as_deref_mut() {
            of.process_ends(self.core.code(), line, now_ns);
        }
        let mut inside = self.core.inside(line);
        inside.sort_unstable();
        for (_, _, live, tag) in inside {
            let Some((slot, at)) = self.core.scopes().struck(live, tag) else { continue };
            let limit = self.core.scopes().limits[slot.index() * self.core.scopes().each + usize::from(at)];
            if limit.end == GHOST {
                self.kill(slot, now_ns);
                continue;
            }
            self.cut_to(slot, &limit, now_ns);
            self.back_to(slot, at, &limit);
            let token = self.core.state_mut(slot);
            token.set_outcome(Some(Kind::Reset));
            let end = limit.end | token.pc & CHECK;
            (token.pc, token.member, token.depth) = (end, limit.member, limit.depth);
            self.wake(slot, now_ns);
        }
    }

    /// Cuts off a request that goes on unwanted, with all that it holds.
    pub(crate) fn kill(&mut self, slot: SlotId, now_ns: u64) {
        let scope = self.core.scope(slot);
        let whole = Limit { end: scope.floor + 1, depth: scope.floor_depth, ..Limit::default() };
        self.cut_to(slot, &whole, now_ns);
        self.vanish(slot, now_ns);
    }
}
