//! Limits that a request is under, and where it stands: fixed rows beside its token.

use crate::blocks::NOT;
use crate::code::Code;
use crate::cut::Hold;

/// Drawn waits that follow each other as one event at most.
const DRAWN: usize = 2;

/// What a request that can be cut off has beside its token: a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Scope {
    /// Where and when it began to wait.
    pub since: u64,
    pub pc: u32,
    pub member: u32,
    pub depth: u16,
    /// Limits that it is under.
    pub limits: u16,
    /// Its rank among what one request has going on; see [`ranked`].
    pub rank: u32,
    /// How long the drawn waits are since then, and how many they are.
    pub waits: [u64; DRAWN],
    pub drawn: u8,
    /// The event loop that it meets.
    pub meets: u32,
    /// Where it ends that goes on for nobody.
    pub floor: u32,
    pub floor_depth: u16,
}

const OUTSIDE: Scope = Scope {
    since: 0,
    pc: 0,
    member: 0,
    depth: 0,
    limits: 0,
    rank: 1,
    waits: [0; DRAWN],
    drawn: 0,
    meets: 0,
    floor: NOT,
    floor_depth: 0,
};

/// A limit that a request is under: what holds outside of it, and where it goes on from there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limit {
    pub live: u32,
    pub end: u32,
    pub member: u32,
    pub rank: u32,
    pub depth: u16,
    pub retries: u8,
    /// See [`crate::detail::Details::outside`].
    pub details: (u32, u16),
}

/// Whom a limit's event is for, if the tags are the same.
#[derive(Clone, Copy, Debug)]
struct Live {
    slot: u32,
    tag: u32,
}

/// The end of a limit that is the whole request's.
pub(crate) const WHOLE: u32 = u32::MAX;

/// All scopes, by slot.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    pub slots: Vec<Scope>,
    pub limits: Vec<Limit>,
    pub each: usize,
    live: Vec<Live>,
    spare: Vec<u32>,
}

impl Scopes {
    pub fn new(code: &Code) -> Scopes {
        Scopes { each: code.limit_depth, ..Scopes::default() }
    }

    /// A request begins in a slot.
    #[inline]
    pub fn begin(&mut self, slot: u32) {
        match self.slots.get_mut(slot as usize) {
            Some(scope) => (scope.limits, scope.rank) = (0, 1),
            None => self.grow(slot),
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, slot: u32) {
        self.slots.resize(slot as usize + 1, OUTSIDE);
        self.limits.resize(self.slots.len() * self.each, Limit::default());
    }

    /// It is over, with the limits that it is under.
    #[inline]
    pub fn end(&mut self, slot: u32) {
        self.leave(slot, 0);
    }

    /// A limit begins; the number and tag of its event.
    #[inline(always)]
    pub fn enter(&mut self, slot: u32, limit: Limit) -> (u32, u32) {
        let live = match self.spare.pop() {
            Some(live) => live,
            None => {
                self.live.push(Live { slot, tag: 0 });
                self.live.len() as u32 - 1
            }
        };
        self.live[live as usize].slot = slot;
        let scope = &mut self.slots[slot as usize];
        self.limits[slot as usize * self.each + usize::from(scope.limits)] = Limit { live, ..limit };
        scope.limits += 1;
        (live, self.live[live as usize].tag)
    }

    /// The innermost limit is over; what held outside of it holds again.
    #[inline(always)]
    pub fn leave_innermost(&mut self, slot: u32) {
        let scope = &mut self.slots[slot as usize];
        scope.limits -= 1;
        let limit = &self.limits[slot as usize * self.each + usize::from(scope.limits)];
        scope.rank = limit.rank;
        let live = &mut self.live[limit.live as usize];
        live.tag = live.tag.wrapping_add(1);
        self.spare.push(limit.live);
    }

    /// All limits but the first so many are over; what held outside of them holds again.
    pub fn leave(&mut self, slot: u32, keep: u16) {
        while self.slots[slot as usize].limits > keep {
            self.leave_innermost(slot);
        }
    }

    /// Whether an event is for a limit that is over.
    #[inline]
    pub fn is_over(&self, live: u32, tag: u32) -> bool {
        self.live.get(live as usize).is_some_and(|l| l.tag != tag)
    }

    /// The request and which of its limits an event is for.
    pub fn struck(&self, live: u32, tag: u32) -> Option<(u32, u16)> {
        let found = self.live.get(live as usize).filter(|l| l.tag == tag)?;
        let first = found.slot as usize * self.each;
        let limits = usize::from(self.slots[found.slot as usize].limits);
        let at = self.limits[first..first + limits].iter().position(|l| l.live == live)?;
        Some((found.slot, at as u16))
    }

    /// Whether what goes on for nobody ends at a step.
    pub fn ends_at(&self, slot: u32, pc: usize, depth: usize) -> bool {
        let scope = &self.slots[slot as usize];
        scope.floor as usize == pc && usize::from(scope.floor_depth) == depth
    }

    /// A request goes on in another slot, under the limits up to one of them; what it leaves behind is under those inside of
    /// the place where that ends.
    pub fn split(&mut self, from: u32, to: u32, at: u16, floor: &Hold) {
        self.begin(to);
        self.slots[to as usize] = Scope { limits: at + 1, ..self.slots[from as usize] };
        let (old, new) = (from as usize * self.each, to as usize * self.each);
        let (kept, all) = (usize::from(at) + 1, usize::from(self.slots[from as usize].limits));
        for row in 0..kept {
            self.limits[new + row] = self.limits[old + row];
            self.live[self.limits[new + row].live as usize].slot = to;
        }
        let rows = &self.limits[old + kept..old + all];
        let around = |limit: &&Limit| {
            let depth = usize::from(limit.depth);
            depth < floor.depth || depth == floor.depth && limit.end > floor.pc
        };
        let gone = rows.iter().take_while(around).count();
        for limit in &rows[..gone] {
            let live = &mut self.live[limit.live as usize];
            live.tag = live.tag.wrapping_add(1);
            self.spare.push(limit.live);
        }
        self.limits.copy_within(old + kept + gone..old + all, old);
        self.slots[from as usize].limits = (all - kept - gone) as u16;
    }

    /// A request begins to wait.
    #[inline]
    pub fn stand(&mut self, slot: u32, now: u64, pc: usize, member: u32, depth: usize) {
        let scope = &mut self.slots[slot as usize];
        scope.since = now;
        scope.pc = pc as u32;
        scope.member = member;
        scope.depth = depth as u16;
        scope.drawn = 0;
    }

    /// Whether it has waited so many drawn times that it must stand up first.
    #[inline]
    pub fn is_full(&self, slot: u32) -> bool {
        usize::from(self.slots[slot as usize].drawn) == DRAWN
    }

    /// A drawn wait follows.
    #[inline]
    pub fn drew(&mut self, slot: u32, ns: u64) {
        let scope = &mut self.slots[slot as usize];
        if let Some(wait) = scope.waits.get_mut(usize::from(scope.drawn)) {
            *wait = ns;
            scope.drawn += 1;
        }
    }
}

const _: () = assert!(size_of::<Scope>() == 64);

/// How the waits of a request that is cut off are gone through: where it is in them.
pub(crate) struct Passing<'b> {
    pub slot: u32,
    pub at: u64,
    /// It was found where it stands; what comes after has not begun.
    pub found: bool,
    pub left: Option<Left<'b>>,
}

impl Passing<'_> {
    /// What is left behind goes no further than the wait in which it stands.
    pub fn is_to_stop(&self) -> bool {
        self.left.as_ref().is_some_and(|left| left.stands.is_some())
    }

    /// A wait has been passed, up to this step.
    pub fn may_stop_at(&mut self, pc: usize, member: u32, depth: usize, drawn: u8) {
        let at = self.at;
        if let (true, Some(Left { stands: Some(stands), .. })) = (self.found, &mut self.left) {
            stands.get_or_insert(Stands { pc, member, depth, at, drawn });
        }
    }
}

/// What is left behind by a request goes on without it.
pub(crate) struct Left<'b> {
    pub request: u32,
    /// Stage, member and time of the waits that it is still to pass.
    pub beyond: &'b mut Vec<(u32, u32, u64)>,
    /// Where its wait ends, if it is to go no further than that.
    pub stands: Option<&'b mut Option<Stands>>,
}

/// Where and when a wait ends, and how many drawn ones there were until then.
#[derive(Clone, Copy)]
pub(crate) struct Stands {
    pub pc: usize,
    pub member: u32,
    pub depth: usize,
    pub at: u64,
    pub drawn: u8,
}
