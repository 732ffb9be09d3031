//! Branches: what runs through the nodes is a request, or a part of one that can be cut off by itself.

mod attempts;
mod open;
mod own;

use super::build::{DrawKey, NONE};
use super::hops::OuterHop;
use super::recorder::Recorder;
use crate::code::Code;
use crate::code::order::RANKS;
use crate::code::{MemberId, SlotId};
use crate::state::visits::Visits;
use weir_model::draws::purpose;
use weir_policy::config::Exclude;
use weir_policy::hedge::Hedging;
use weir_policy::retry::{Attempt, BalancerId, TriedTargets};
use weir_policy::{Outcome, TargetId, Ticket};
use weir_stats::Key;

/// What a branch does at its stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It begins at once.
    Begin,
    /// It waits on its way in.
    Out,
    /// It waits on its way back.
    Back,
    /// It waits in line for a slot.
    Line,
    /// It has a slot, or a share.
    Inside,
    /// It waits for the branches that it sent in.
    Children,
    /// It waits before its next attempt.
    Backoff,
    /// What it waited for was cut off; it continues at once.
    Cut,
    /// It asks its balancer again, at once.
    Retake,
    /// It waits for nothing: no answer will come.
    Lost,
}

/// Where a branch returns to, and the index that it went to; at a balancer also what the policy needs at its return.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    pub stage: u32,
    pub member: MemberId,
    pub index: u32,
    /// It tries a target on probation.
    pub probe: bool,
    /// How many requests it met at the target.
    pub met: u16,
    /// When it was sent to the target.
    pub at_ns: u64,
    /// The loop whose state was used.
    pub on: u32,
}

impl Frame {
    /// What it must return to the balancer that sent it.
    pub fn ticket(self) -> Ticket {
        Ticket { target: TargetId(self.index), probe: self.probe, met: self.met, at_ns: self.at_ns }
    }
}

/// A branch in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    pub stage: u32,
    pub member: MemberId,
    /// Changes when the slot is reused.
    pub tag: u32,
    /// Changes whenever it continues: an earlier event that would wake it is stale.
    pub epoch: u32,
    /// Its parent: [`NONE`] for the request's own branch, and for one that was left behind.
    pub parent: SlotId,
    /// Its index among its parent's branches.
    pub index: u32,
    /// The stage and depth where it ends.
    pub floor_stage: u32,
    pub floor_depth: u16,
    /// Frames in use.
    pub depth: u16,
    /// Retries that it is inside of: its own, and those of its parents.
    pub retries: u8,
    pub outer_retries: u8,
    pub phase: Phase,
    pub exclude: Exclude,
    pub outcome: Outcome,
    /// The status of the last answer; 0: unknown. See [`Branch::answered_with`].
    pub status: u16,
    /// The load that the last answer reports.
    pub load: Option<f32>,
    /// How often it has come before to the balancer it is at, on this way.
    pub came: u32,
    /// A balancer behind which it failed has passed its error on: that balancer's target was reached.
    pub relayed: bool,
    pub selected: bool,
    /// Its request belongs to the second half of the window.
    pub second_half: bool,
    /// Whether its request waits for it, or for its parent.
    pub wanted: bool,
    pub live: bool,
    /// The branch whose list of tried targets it uses.
    pub tries_of: SlotId,
    /// The crashable processes that it is inside of; see [`super::faults::Cells`].
    pub cell: u32,
    /// Its index in that cell's list; [`NONE`] if the end of another branch there ends it too.
    pub spot: u32,
    /// Its position among events of one instant: its request, then its attempt and branch. A branch with a limit has
    /// a higher rank than the one that set the limit, so limits strike from the outside in; a request's own rank is
    /// 1, after its client's patience.
    pub order: u64,
    pub rank: u32,
    /// How many ranks from there on belong to it and its children; see [`RANKS`].
    pub ranks: u32,
    /// The event loop of its request.
    pub meets: u32,
    /// The instance whose connections it uses.
    pub instance: u32,
    /// Which entry of an inner listener it is behind (0: none), and the attempts that had begun by then.
    pub serial: u32,
    pub attempts_before: u32,
    /// The kind of request, and the hash of its key.
    pub shape: u32,
    pub key: Option<u64>,
    /// The balancer whose health check it is; [`NONE`]: it is not a check.
    pub check: u32,
    /// The probe that it is, rather than a check.
    pub probe: u32,
    /// The branch for whose connection it is the server's work; [`SlotId::NONE`]: it is not that.
    pub shakes_for: SlotId,
    /// The innermost hedge of which it is an attempt: the branch that sent it in.
    pub hedge_of: SlotId,
    /// When it was sent in.
    pub begun: u64,
    /// The user that sent the request, in a closed loop.
    pub user: u32,
    pub arrived: u64,
    /// The time up to which its time is booked.
    pub since: u64,
    /// The request and its way: the key of its work.
    pub way: Key,
    /// Retries and fan-outs that it has left on this way: another one begins ways of its own.
    pub turn: u32,
    /// The request and its attempts when it was sent in: the key of choices outside its own retries.
    pub tries: Key,
    /// The factor of its work.
    pub factor: f64,
}

/// A retry that encloses a branch.
#[derive(Clone, Copy, Debug)]
struct Attempts {
    attempt: Attempt,
    /// The values outside of it.
    exclude: Exclude,
    way: Key,
    turn: u32,
    tries: Key,
    tries_now: Key,
    /// How often the branch has come to the retry before, on this way.
    came: u32,
}

/// The branches of a group that are still open.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// By index; [`NONE`] once it has ended.
    pub branches: Vec<SlotId>,
    /// Balancer, target and index of the branch, of each target that a hedged attempt picked.
    pub picks: Vec<(BalancerId, TargetId, u32)>,
    pub hedging: Option<Hedging>,
    pub open: u32,
    pub ok: u32,
}

/// All branches in flight, by slot, with separate tables for what only some topologies need.
pub(super) struct Branches {
    pub slots: Vec<Branch>,
    spare: Vec<SlotId>,
    frames: Vec<Frame>,
    frames_each: usize,
    attempts: Vec<Attempts>,
    attempts_each: usize,
    visits: Visits,
    pub tried: Vec<TriedTargets>,
    /// The single child of each branch, by parent.
    pub child: Vec<SlotId>,
    pub groups: Vec<Group>,
    /// The state outside of inner listeners, innermost last.
    pub hops: Vec<Vec<OuterHop>>,
    /// The factors outside, innermost last.
    pub factors: Vec<Vec<f64>>,
    /// Part and time, not yet known to count.
    pub notes: Vec<Vec<(u32, u64)>>,
    /// The recorder, if requests are recorded.
    pub recorder: Option<Box<Recorder>>,
    /// How many are alive.
    pub live: u64,
}

const NEW: Branch = Branch {
    stage: 0,
    member: MemberId(0),
    tag: 0,
    epoch: 0,
    parent: SlotId::NONE,
    index: 0,
    floor_stage: 0,
    floor_depth: 0,
    depth: 0,
    retries: 0,
    outer_retries: 0,
    phase: Phase::Out,
    exclude: Exclude::None,
    outcome: None,
    status: 0,
    load: None,
    came: 0,
    relayed: false,
    selected: false,
    second_half: false,
    wanted: true,
    live: true,
    tries_of: SlotId::NONE,
    cell: NONE,
    spot: NONE,
    order: 0,
    rank: 1,
    ranks: RANKS,
    meets: 0,
    instance: 0,
    serial: 0,
    attempts_before: 0,
    shape: 0,
    key: None,
    check: NONE,
    probe: NONE,
    shakes_for: SlotId::NONE,
    hedge_of: SlotId::NONE,
    begun: 0,
    user: NONE,
    arrived: 0,
    since: 0,
    way: Key::from_bits(0),
    turn: 0,
    tries: Key::from_bits(0),
    factor: 1.0,
};

impl Branches {
    pub fn new(code: &Code) -> Branches {
        Branches {
            slots: Vec::new(),
            spare: Vec::new(),
            frames: Vec::new(),
            frames_each: code.depth,
            attempts: Vec::new(),
            attempts_each: code.retry_depth,
            visits: Visits::new(code.visits),
            tried: Vec::new(),
            child: Vec::new(),
            groups: Vec::new(),
            hops: Vec::new(),
            factors: Vec::new(),
            notes: Vec::new(),
            recorder: None,
            live: 0,
        }
    }

    /// Takes a slot for the branch of a new request.
    pub fn add(&mut self) -> SlotId {
        let slot = self.take_slot();
        let old = &mut self.slots[slot.index()];
        *old = Branch { tag: old.tag, epoch: old.epoch, ..NEW };
        self.clear_visits(slot);
        slot
    }

    fn take_slot(&mut self) -> SlotId {
        self.live += 1;
        self.spare.pop().unwrap_or_else(|| self.grow())
    }

    /// Creates a branch that `parent` sends in from its stage.
    pub fn send_in(&mut self, parent: SlotId, stage: u32, member: MemberId, now_ns: u64) -> SlotId {
        let slot = self.take_slot();
        let from = self.slots[parent.index()];
        let tries = self.tries(parent);
        let to = &mut self.slots[slot.index()];
        *to = Branch {
            stage,
            member,
            parent,
            index: 0,
            spot: NONE,
            floor_stage: stage,
            outer_retries: from.retries,
            tries,
            since: now_ns,
            begun: now_ns,
            tag: to.tag,
            epoch: to.epoch,
            floor_depth: 0,
            depth: 0,
            outcome: None,
            status: 0,
            load: None,
            relayed: false,
            phase: Phase::Out,
            ..from
        };
        if let Some(recorder) = &mut self.recorder {
            recorder.send_in(parent, slot);
        }
        slot
    }

    /// Removes a branch; events that are still scheduled for it become stale.
    pub fn remove(&mut self, slot: SlotId) {
        if let Some(recorder) = &mut self.recorder {
            recorder.leave(slot);
        }
        let branch = &mut self.slots[slot.index()];
        debug_assert!(branch.live);
        branch.tag = branch.tag.wrapping_add(1);
        branch.epoch = branch.epoch.wrapping_add(1);
        branch.live = false;
        self.live -= 1;
        self.hops[slot.index()].clear();
        self.factors[slot.index()].clear();
        self.spare.push(slot);
    }

    #[cold]
    fn grow(&mut self) -> SlotId {
        let slot = SlotId(self.slots.len() as u32);
        // The code that runs branches ends the run before that; see `crate::code::bounds`.
        assert!(slot.0 < 1 << 28, "more branches in flight than can be numbered");
        self.slots.push(NEW);
        let n = self.slots.len();
        self.frames.resize(n * self.frames_each, Frame::default());
        let nobody = Key::from_bits(0);
        let (attempt, exclude) = (Attempt::FIRST, Exclude::None);
        let (tries, tries_now) = (nobody, nobody);
        let outside = Attempts { attempt, exclude, way: nobody, turn: 0, tries, tries_now, came: 0 };
        self.attempts.resize(n * self.attempts_each, outside);
        self.visits.grow(n, self.attempts.len());
        self.tried.push(TriedTargets::default());
        self.child.push(SlotId::NONE);
        self.groups.push(Group::default());
        self.hops.push(Vec::new());
        self.factors.push(Vec::new());
        self.notes.push(Vec::new());
        slot
    }

    pub fn push_frame(&mut self, slot: SlotId, frame: Frame) {
        let branch = &mut self.slots[slot.index()];
        self.frames[slot.index() * self.frames_each + usize::from(branch.depth)] = frame;
        branch.depth += 1;
    }

    /// The frame at a depth; that of the stage that the branch passed last if it is the branch's own depth.
    pub fn frame(&self, slot: SlotId, depth: u16) -> Frame {
        self.frames[slot.index() * self.frames_each + usize::from(depth)]
    }

    /// The key of a branch's draw at a place on this visit.
    pub fn draw_key(&mut self, slot: SlotId, keys: &[Key], key: DrawKey) -> Key {
        let drawn = keys[key.key as usize].with(self.slots[slot.index()].way.bits());
        let Some(counter) = key.visits else { return drawn };
        match self.visits.count(slot, counter) {
            0 => drawn,
            again => drawn.with(purpose::VISIT).with(u64::from(again)),
        }
    }

    /// The key of a branch's choice at a node on visit number `came`.
    pub fn choice_key(&self, slot: SlotId, own: Key, came: u32) -> Key {
        let key = own.with(self.tries(slot).bits());
        if came == 0 { key } else { key.with(purpose::VISIT).with(u64::from(came)) }
    }

    /// Multiplies the work of a branch from here on.
    pub fn scale(&mut self, slot: SlotId, factor: f64) {
        let branch = &mut self.slots[slot.index()];
        self.factors[slot.index()].push(branch.factor);
        branch.factor *= factor;
    }

    /// Reverts [`Branches::scale`].
    pub fn unscale(&mut self, slot: SlotId) {
        if let Some(before) = self.factors[slot.index()].pop() {
            self.slots[slot.index()].factor = before;
        }
    }
}
