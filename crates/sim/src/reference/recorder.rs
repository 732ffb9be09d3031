//! Records requests as they walk through the nodes: their stages, attempts and targets.
//!
//! A branch keeps its stages until it is known whether they are part of the latency, as it keeps its times
//! (`run::books`): then they move to the request. A request is complete once its last branch has ended, which may be
//! after its answer. `crate::record` keeps requests, or adds them up.

use super::branch::{Branch, Phase};
use super::build::{Act, NONE};
use crate::code::StageId;
use crate::code::{MemberId, SlotId};
use crate::record::{RecordedRequest, StageTime, Tracks, Try};
use weir_model::faulty::Faulty;
use weir_policy::history::StageKind;
use weir_policy::{Outcome, TargetId};

/// A branch of a recorded request.
#[derive(Clone, Copy)]
struct Slot {
    /// Its request; [`NONE`]: none that is recorded.
    of: u32,
    attempt: u32,
    branch: u32,
    /// The number, from 1, of the innermost target that it was sent to.
    tried: u32,
}

const NO_SLOT: Slot = Slot { of: NONE, attempt: 1, branch: 0, tried: 0 };

/// A request in flight: its branches, and how many attempts and branches began in all.
#[derive(Default)]
struct Open {
    noted: RecordedRequest,
    live: u32,
    begun: u32,
    branches: u32,
}

pub(crate) struct Recorder {
    pub tracks: Tracks,
    /// The timelines of nodes that fail, as they were at the start.
    pub lines: Vec<Faulty>,
    slots: Vec<Slot>,
    /// By slot: stages that may or may not count.
    stays: Vec<Vec<StageTime>>,
    open: Vec<Open>,
    spare: Vec<u32>,
}

impl Recorder {
    pub fn new(tracks: Tracks) -> Recorder {
        Recorder {
            tracks,
            lines: Vec::new(),
            slots: Vec::new(),
            stays: Vec::new(),
            open: Vec::new(),
            spare: Vec::new(),
        }
    }

    fn slot(&mut self, slot: SlotId) -> &mut Slot {
        let n = (slot.index() + 1).max(self.slots.len());
        if n > self.slots.len() {
            self.slots.resize(n, NO_SLOT);
            self.stays.resize(n, Vec::new());
        }
        &mut self.slots[slot.index()]
    }

    /// The request of a branch, if it is recorded.
    fn open(&mut self, slot: SlotId) -> Option<(Slot, &mut Open)> {
        let own = *self.slot(slot);
        self.open.get_mut(own.of as usize).map(|open| (own, open))
    }

    /// A request arrives.
    pub fn begin(&mut self, slot: SlotId, request: u64, arrived: u64, selected: bool) {
        *self.slot(slot) = NO_SLOT;
        if !self.tracks.wants(request, selected) {
            return;
        }
        let of = self.spare.pop().unwrap_or(self.open.len() as u32);
        if of as usize == self.open.len() {
            self.open.push(Open::default());
        }
        let noted = RecordedRequest { request, arrived, selected, ..RecordedRequest::default() };
        self.open[of as usize] = Open { noted, live: 1, begun: 1, branches: 0 };
        self.slot(slot).of = of;
    }

    /// A branch sends in another.
    pub fn send_in(&mut self, parent: SlotId, child: SlotId) {
        let own = *self.slot(parent);
        *self.slot(child) = own;
        if let Some(open) = self.open.get_mut(own.of as usize) {
            open.live += 1;
        }
    }

    /// A branch has ended.
    pub fn leave(&mut self, slot: SlotId) {
        self.stays_count(slot, false);
        let of = std::mem::replace(self.slot(slot), NO_SLOT).of;
        let Some(open) = self.open.get_mut(of as usize) else { return };
        open.live -= 1;
        if open.live == 0 {
            self.tracks.done(std::mem::take(&mut open.noted));
            self.spare.push(of);
        }
    }

    /// Another attempt begins.
    pub fn attempt(&mut self, slot: SlotId) {
        let Some((_, open)) = self.open(slot) else { return };
        open.begun += 1;
        let begun = open.begun;
        self.slot(slot).attempt = begun;
    }

    /// One of several parallel branches begins.
    pub fn branch(&mut self, slot: SlotId) {
        let Some((_, open)) = self.open(slot) else { return };
        open.branches += 1;
        let branches = open.branches;
        self.slot(slot).branch = branches;
    }

    /// A branch is sent to a target by the balancer it is at.
    pub fn pick(&mut self, slot: SlotId, stage: StageId, member: MemberId, target: TargetId) {
        let Some((own, open)) = self.open(slot) else { return };
        open.noted.tries.push(Try { stage, member, target, outcome: None, outer: own.tried });
        let tried = open.noted.tries.len() as u32;
        self.slot(slot).tried = tried;
    }

    /// A branch has returned from its target; the time for which it still counts there follows.
    pub fn picked_is_back(&mut self, slot: SlotId, outcome: Outcome) {
        let Some((own, open)) = self.open(slot) else { return };
        let Some(tried) = (own.tried as usize).checked_sub(1) else { return };
        let tried = &mut open.noted.tries[tried];
        tried.outcome = Some(outcome);
        let outer = tried.outer;
        self.slot(slot).tried = outer;
    }

    /// A branch spent time at a stage; `counts`: whether that is part of the latency, if known.
    pub fn stay(&mut self, slot: SlotId, mut stay: StageTime, counts: Option<bool>) {
        let Some((own, open)) = self.open(slot) else { return };
        (stay.attempt, stay.branch) = (own.attempt, own.branch);
        if stay.tried == 0 {
            stay.tried = own.tried;
        }
        match counts {
            Some(counts) => open.noted.stays.push((stay, counts)),
            None => self.stays[slot.index()].push(stay),
        }
    }

    /// Moves the stages of one branch to another.
    pub fn move_stays(&mut self, from: SlotId, to: SlotId) {
        if self.open(from).is_none() || self.open(to).is_none() {
            return;
        }
        let mut stays = std::mem::take(&mut self.stays[from.index()]);
        self.stays[to.index()].append(&mut stays);
        self.stays[from.index()] = stays;
    }

    /// Whether the stages of a branch are part of the latency is now known.
    pub fn stays_count(&mut self, slot: SlotId, counts: bool) {
        let own = *self.slot(slot);
        if let Some(open) = self.open.get_mut(own.of as usize) {
            let stays = self.stays[slot.index()].drain(..);
            open.noted.stays.extend(stays.map(|stay| (stay, counts)));
        }
    }

    /// A request is answered, or never will be (`None`).
    pub fn end(&mut self, slot: SlotId, latency: Option<u64>, outcome: Outcome) {
        self.stays_count(slot, latency.is_some());
        let own = *self.slot(slot);
        let Some(open) = self.open.get_mut(own.of as usize) else { return };
        (open.noted.latency, open.noted.outcome) = (latency, outcome);
        if let (Some(latency), true) = (latency, open.noted.selected) {
            self.tracks.ended(latency, &open.noted);
        }
    }
}

impl Recorder {
    /// Counts the end of any request, recorded or not, for the series.
    pub fn count_end(&mut self, latency: Option<u64>, outcome: Outcome, is_good: bool) {
        if let Some(series) = &mut self.tracks.series {
            series.end(latency, outcome, is_good);
        }
    }
}

/// What a branch does at a stage where time passes.
pub(super) fn what(act: Act, phase: Phase) -> StageKind {
    match (phase, act) {
        (Phase::Out | Phase::Back, Act::Cable { .. }) => StageKind::Cross,
        (Phase::Out, Act::Work { .. }) | (Phase::Inside, _) => StageKind::Work,
        (Phase::Backoff, _) => StageKind::Backoff,
        _ => StageKind::Wait,
    }
}

/// The time of a branch at its stage.
pub(super) fn stay_of(branch: &Branch, what: StageKind, from: u64, to: u64) -> StageTime {
    StageTime::new(StageId(branch.stage), branch.member, what, from, to)
}
