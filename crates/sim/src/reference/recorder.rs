//! What is noted of requests as they walk through the nodes, where somebody asks for it: their stages, attempts and targets.
//!
//! A branch's stages stand with it until it is known whether they are part of the latency, as its times do
//! (`run::books`): then they go to the request. A request is done with once its last branch is gone, which may be after its
//! answer. Whoever keeps requests, or adds them up, stands in `crate::record`.

use super::branch::{Branch, Phase};
use super::build::{Act, NOBODY};
use crate::record::{Noted, Stay, Tracks, Try};
use weir_policy::Outcome;
use weir_policy::history::What;

/// A branch of a request that is noted.
#[derive(Clone, Copy)]
struct Slot {
    /// Which request it is of; [`NOBODY`]: none that is noted.
    of: u32,
    attempt: u32,
    branch: u32,
    /// The innermost target that it was sent to, by number from 1.
    tried: u32,
}

const NONE: Slot = Slot { of: NOBODY, attempt: 1, branch: 0, tried: 0 };

/// A request on its way, how many branches it has there, and how many attempts and branches began in all.
#[derive(Default)]
struct Open {
    noted: Noted,
    live: u32,
    begun: u32,
    branches: u32,
}

pub(crate) struct Recorder {
    pub tracks: Tracks,
    slots: Vec<Slot>,
    /// By slot: stages that may count, or not.
    stays: Vec<Vec<Stay>>,
    open: Vec<Open>,
    spare: Vec<u32>,
}

impl Recorder {
    pub fn new(tracks: Tracks) -> Recorder {
        Recorder { tracks, slots: Vec::new(), stays: Vec::new(), open: Vec::new(), spare: Vec::new() }
    }

    fn slot(&mut self, slot: u32) -> &mut Slot {
        let n = (slot as usize + 1).max(self.slots.len());
        if n > self.slots.len() {
            self.slots.resize(n, NONE);
            self.stays.resize(n, Vec::new());
        }
        &mut self.slots[slot as usize]
    }

    /// The request of a branch, if that is noted.
    fn open(&mut self, slot: u32) -> Option<(Slot, &mut Open)> {
        let own = *self.slot(slot);
        self.open.get_mut(own.of as usize).map(|open| (own, open))
    }

    /// A request arrives.
    pub fn begin(&mut self, slot: u32, request: u64, arrived: u64, selected: bool) {
        *self.slot(slot) = NONE;
        if !self.tracks.wants(request, selected) {
            return;
        }
        let of = self.spare.pop().unwrap_or(self.open.len() as u32);
        if of as usize == self.open.len() {
            self.open.push(Open::default());
        }
        let noted = Noted { request, arrived, selected, ..Noted::default() };
        self.open[of as usize] = Open { noted, live: 1, begun: 1, branches: 0 };
        self.slot(slot).of = of;
    }

    /// A branch sends another in.
    pub fn send_in(&mut self, parent: u32, child: u32) {
        let own = *self.slot(parent);
        *self.slot(child) = own;
        if let Some(open) = self.open.get_mut(own.of as usize) {
            open.live += 1;
        }
    }

    /// A branch is gone.
    pub fn leave(&mut self, slot: u32) {
        self.stays_count(slot, false);
        let of = std::mem::replace(self.slot(slot), NONE).of;
        let Some(open) = self.open.get_mut(of as usize) else { return };
        open.live -= 1;
        if open.live == 0 {
            self.tracks.done(std::mem::take(&mut open.noted));
            self.spare.push(of);
        }
    }

    /// Another attempt begins.
    pub fn attempt(&mut self, slot: u32) {
        let Some((_, open)) = self.open(slot) else { return };
        open.begun += 1;
        let begun = open.begun;
        self.slot(slot).attempt = begun;
    }

    /// One of several at once begins.
    pub fn branch(&mut self, slot: u32) {
        let Some((_, open)) = self.open(slot) else { return };
        open.branches += 1;
        let branches = open.branches;
        self.slot(slot).branch = branches;
    }

    /// A branch is sent to a target of the balancer where it stands.
    pub fn pick(&mut self, slot: u32, (stage, member): (u32, u32), target: u32) {
        let Some((own, open)) = self.open(slot) else { return };
        open.noted.tries.push(Try { stage, member, target, outcome: None, outer: own.tried });
        let tried = open.noted.tries.len() as u32;
        self.slot(slot).tried = tried;
    }

    /// It is back from there; what it goes on to be counted for follows.
    pub fn picked_is_back(&mut self, slot: u32, outcome: Outcome) {
        let Some((own, open)) = self.open(slot) else { return };
        let Some(tried) = (own.tried as usize).checked_sub(1) else { return };
        let tried = &mut open.noted.tries[tried];
        tried.outcome = Some(outcome);
        let outer = tried.outer;
        self.slot(slot).tried = outer;
    }

    /// A branch has spent time at a stage; `counts`: whether that is a part of the latency, where it is known.
    pub fn stay(&mut self, slot: u32, mut stay: Stay, counts: Option<bool>) {
        let Some((own, open)) = self.open(slot) else { return };
        (stay.attempt, stay.branch) = (own.attempt, own.branch);
        if stay.tried == 0 {
            stay.tried = own.tried;
        }
        match counts {
            Some(counts) => open.noted.stays.push((stay, counts)),
            None => self.stays[slot as usize].push(stay),
        }
    }

    /// What a branch has spent counts for another.
    pub fn move_stays(&mut self, from: u32, to: u32) {
        if self.open(from).is_none() || self.open(to).is_none() {
            return;
        }
        let mut stays = std::mem::take(&mut self.stays[from as usize]);
        self.stays[to as usize].append(&mut stays);
        self.stays[from as usize] = stays;
    }

    /// Whether what a branch has spent up to now is a part of the latency, is known.
    pub fn stays_count(&mut self, slot: u32, counts: bool) {
        let own = *self.slot(slot);
        if let Some(open) = self.open.get_mut(own.of as usize) {
            let stays = self.stays[slot as usize].drain(..);
            open.noted.stays.extend(stays.map(|stay| (stay, counts)));
        }
    }

    /// A request has its answer, or never will (`None`).
    pub fn end(&mut self, slot: u32, latency: Option<u64>, outcome: Outcome) {
        self.stays_count(slot, latency.is_some());
        let own = *self.slot(slot);
        let Some(open) = self.open.get_mut(own.of as usize) else { return };
        (open.noted.latency, open.noted.outcome) = (latency, outcome);
        if let (Some(latency), true) = (latency, open.noted.selected) {
            self.tracks.ended(latency, &open.noted);
        }
    }
}

/// What a branch does at a stage where time passes.
pub(super) fn what(act: Act, phase: Phase) -> What {
    match (phase, act) {
        (Phase::Out | Phase::Back, Act::Cable { .. }) => What::Cross,
        (Phase::Out, Act::Work { .. }) | (Phase::Inside, _) => What::Work,
        (Phase::Backoff, _) => What::Backoff,
        _ => What::Wait,
    }
}

/// Time of a branch where it stands.
pub(super) fn stay_of(branch: &Branch, what: What, from: u64, to: u64) -> Stay {
    Stay::new(branch.stage, branch.member, what, from, to)
}
