//! The set of pending events, in a total order (`docs/spec/language.md#order-at-one-instant`): by time, then class,
//! request, attempt and branch; never by when an event was scheduled, so no way of scheduling changes a byte of the
//! result.
//!
//! Constant delays go through one first-in-first-out lane each: an entry that is scheduled later is due later. Where
//! times are equal a lane inserts from its end. Drawn times go to a timing wheel, those beyond it to a 4-ary heap.

use crate::code::order::{Entry, NOTHING};
use crate::state::heap::Heap;
use crate::state::wheel::Wheel;

/// The most lanes; further delays go to the heap.
const LANES: usize = 6;
const NEVER: u64 = NOTHING.at;

struct Lane {
    delay: u64,
    /// A ring; its length is a power of two.
    ring: Vec<Entry>,
    head: usize,
    tail: usize,
}

impl Lane {
    fn new(delay: u64) -> Lane {
        Lane { delay, ring: vec![NOTHING; 64], head: 0, tail: 0 }
    }

    /// Adds an entry; returns whether it is now the first.
    #[inline(always)]
    fn push(&mut self, entry: Entry) -> bool {
        if self.tail - self.head == self.ring.len() {
            self.grow();
        }
        let mask = self.ring.len() - 1;
        let mut at = self.tail;
        self.tail += 1;
        // Times never fall; only equal ones can be out of order.
        while at > self.head && entry.before(&self.ring[(at - 1) & mask]) {
            self.ring[at & mask] = self.ring[(at - 1) & mask];
            at -= 1;
        }
        self.ring[at & mask] = entry;
        at == self.head
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mask = self.ring.len() - 1;
        let mut ring: Vec<Entry> = (self.head..self.tail).map(|i| self.ring[i & mask]).collect();
        self.tail -= self.head;
        self.head = 0;
        ring.resize(self.ring.len() * 2, NOTHING);
        self.ring = ring;
    }

    #[inline]
    fn first(&self) -> Option<&Entry> {
        (self.head != self.tail).then(|| &self.ring[self.head & (self.ring.len() - 1)])
    }

    /// Time of the first entry, or the end of time.
    #[inline(always)]
    fn due(&self) -> u64 {
        if self.head == self.tail { NEVER } else { self.ring[self.head & (self.ring.len() - 1)].at }
    }
}

/// The origin of the next event.
const DRAWN: usize = 0;
const SOURCE: usize = 1;
const FIRST_LANE: usize = 2;

/// Bits of a [`stamp`] for the origin of an event.
const FROM_BITS: u32 = 3;
const _: () = assert!(FIRST_LANE + LANES <= 1 << FROM_BITS);
/// From here on stamps do not distinguish times.
const FAR: u64 = u64::MAX >> FROM_BITS;

/// A time and the origin of its event, in one number that sorts by time.
#[inline(always)]
fn stamp(at: u64, from: usize) -> u64 {
    at.min(FAR) << FROM_BITS | from as u64
}

/// Pending events of requests, and the next arrival.
pub(crate) struct Pending {
    /// Stamps of the earliest drawn time, of the source, and of each lane.
    due: [u64; FIRST_LANE + LANES],
    lanes: Vec<Lane>,
    wheel: Wheel,
    /// Entries beyond the wheel.
    heap: Heap,
    source: Entry,
    /// Requests that were woken at this very instant.
    woken: Vec<Entry>,
}

impl Pending {
    pub fn new() -> Pending {
        Pending {
            due: std::array::from_fn(|from| stamp(NEVER, from)),
            lanes: Vec::new(),
            wheel: Wheel::new(),
            heap: Heap::default(),
            source: NOTHING,
            woken: Vec::new(),
        }
    }

    /// The next arrival; `None`: there is none.
    #[inline]
    pub fn set_source(&mut self, entry: Option<Entry>) {
        self.source = entry.unwrap_or(NOTHING);
        self.due[SOURCE] = stamp(self.source.at, SOURCE);
    }

    /// Adds an event after a delay that is the same for all that are scheduled with it.
    #[inline(always)]
    pub fn push_constant(&mut self, delay: u64, entry: Entry) {
        for (i, lane) in self.lanes.iter_mut().enumerate() {
            if lane.delay == delay {
                if lane.push(entry) {
                    self.due[FIRST_LANE + i] = stamp(entry.at, FIRST_LANE + i);
                }
                return;
            }
        }
        self.push_new_delay(delay, entry);
    }

    /// The same for an event that is mostly stale by the time it is due: those at the front for which `is_over`
    /// returns true are dropped. So the number pending does not grow with the delay, and few come out in vain.
    #[inline(always)]
    pub fn push_limit(&mut self, delay: u64, entry: Entry, is_over: impl Fn(&Entry) -> bool) {
        for (i, lane) in self.lanes.iter_mut().enumerate() {
            if lane.delay == delay {
                while let Some(first) = lane.first().filter(|first| is_over(first)) {
                    debug_assert!(first.at <= entry.at);
                    lane.head += 1;
                }
                lane.push(entry);
                self.due[FIRST_LANE + i] = stamp(lane.due(), FIRST_LANE + i);
                return;
            }
        }
        self.push_new_delay(delay, entry);
    }

    #[cold]
    #[inline(never)]
    fn push_new_delay(&mut self, delay: u64, entry: Entry) {
        if self.lanes.len() == LANES {
            return self.push(entry.at - delay, entry);
        }
        self.lanes.push(Lane::new(delay));
        self.push_constant(delay, entry);
    }

    /// Adds an event at any time not before `now`, outside of the path of every request.
    #[inline]
    pub fn push(&mut self, now_ns: u64, entry: Entry) {
        self.push_often(now_ns, entry);
    }

    /// The same, inlined.
    #[inline(always)]
    pub fn push_often(&mut self, now_ns: u64, entry: Entry) {
        self.wheel.push(now_ns, entry, &mut self.heap);
        self.due[DRAWN] = self.due[DRAWN].min(stamp(entry.at, DRAWN));
    }

    /// A request goes on at this very instant, in its turn.
    #[inline]
    pub fn wake(&mut self, entry: Entry) {
        self.woken.push(entry);
    }

    /// Takes the next event; `None` if none is pending. The bool says whether it is the source's.
    #[inline(always)]
    pub fn next(&mut self) -> Option<(Entry, bool)> {
        // The first cannot be predicted, so it is computed rather than branched on; and most have few lanes.
        let [a, b, c, d, lanes @ ..] = &self.due;
        let (mut first, mut second) = (*a.min(b), *a.max(b));
        let mut look = |due: u64| {
            second = second.min(first.max(due));
            first = first.min(due);
        };
        look(*c);
        look(*d);
        if self.lanes.len() > 2 {
            lanes.iter().for_each(|due| look(*due));
        }
        if !self.woken.is_empty() {
            if let [woken] = self.woken[..]
                && first >> FROM_BITS > woken.at
            {
                self.woken.clear();
                return Some((woken, false));
            }
            return self.next_of_instant(first);
        }
        let mut from = first as usize & ((1 << FROM_BITS) - 1);
        if (first ^ second) >> FROM_BITS == 0 {
            from = self.first_of_tied(first)?;
        }
        Some(self.take(from))
    }

    #[inline(always)]
    fn take(&mut self, from: usize) -> (Entry, bool) {
        match from {
            DRAWN => (self.take_drawn(), false),
            SOURCE => (self.source, true),
            _ => {
                let lane = &mut self.lanes[from - FIRST_LANE];
                let entry = lane.ring[lane.head & (lane.ring.len() - 1)];
                lane.head += 1;
                self.due[from] = stamp(lane.due(), from);
                (entry, false)
            }
        }
    }

    /// Takes the first event at a drawn time.
    #[inline(always)]
    fn take_drawn(&mut self) -> Entry {
        let entry = if self.heap.top.before(self.wheel.first()) {
            let top = self.heap.top;
            self.heap.pop();
            top
        } else {
            self.wheel.pop()
        };
        self.due[DRAWN] = stamp(self.wheel.first().at.min(self.heap.top.at), DRAWN);
        entry
    }

    /// The slot whose event at a drawn time is probably next.
    #[inline(always)]
    pub fn next_drawn(&self) -> u32 {
        self.wheel.first().who
    }

    fn peek(&self, from: usize) -> Entry {
        match from {
            DRAWN if self.heap.top.before(self.wheel.first()) => self.heap.top,
            DRAWN => *self.wheel.first(),
            SOURCE => self.source,
            _ => self.lanes[from - FIRST_LANE].first().copied().unwrap_or(NOTHING),
        }
    }

    /// The first of those with the same time in their stamps as this one; `None`: nothing is due.
    #[cold]
    #[inline(never)]
    fn first_of_tied(&self, stamp: u64) -> Option<usize> {
        let (mut best, mut found) = (NOTHING, None);
        for from in 0..FIRST_LANE + self.lanes.len() {
            if (self.due[from] ^ stamp) >> FROM_BITS == 0 {
                let entry = self.peek(from);
                if entry.before(&best) {
                    (best, found) = (entry, Some(from));
                }
            }
        }
        found
    }

    /// The first of those woken and those due at the same instant.
    #[inline(never)]
    fn next_of_instant(&mut self, stamp: u64) -> Option<(Entry, bool)> {
        let at = (0..self.woken.len()).min_by_key(|&i| self.woken[i].key)?;
        let woken = self.woken[at];
        match self.first_of_tied(stamp) {
            Some(from) if self.peek(from).before(&woken) => Some(self.take(from)),
            _ => {
                self.woken.swap_remove(at);
                Some((woken, false))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::order::{Class, order_key};
    use weir_stats::Key;

    /// Limits that are over do not come out, and take no room however far off they are.
    #[test]
    fn limits_that_are_over_are_dropped() {
        const HOURS: u64 = 36_000_000_000_000;
        let mut pending = Pending::new();
        let limit = |i: u64| Entry { at: HOURS + i, key: order_key(Class::Limit, i), who: i as u32, tag: 0 };
        for i in 0..10_000 {
            // All but every thousandth and the last ten.
            pending.push_limit(HOURS, limit(i), |e| e.who % 1000 != 0 && u64::from(e.who) + 10 < i);
        }
        assert!(pending.lanes[0].ring.len() <= 16_384);
        let mut out = std::iter::from_fn(|| pending.next()).map(|(e, _)| e.who);
        assert_eq!(out.next(), Some(0), "one that is not over");
        assert_eq!(out.next(), Some(1), "behind that one nothing was dropped yet");

        let mut pending = Pending::new();
        for i in 0..100_000 {
            pending.push_limit(HOURS, limit(i), |e| u64::from(e.who) + 10 < i);
        }
        assert_eq!(pending.lanes[0].ring.len(), 64);
        let left: Vec<u32> = std::iter::from_fn(|| pending.next()).map(|(e, _)| e.who).collect();
        assert_eq!(left, (99_989..100_000).collect::<Vec<u32>>());
    }

    /// Against a sorted list, with many ties, lanes, heap, source and woken entries mixed.
    #[test]
    fn comes_out_in_total_order() {
        for spread in [3, 40, 100_000] {
            let (mut pending, mut naive) = (Pending::new(), Vec::new());
            let (mut now, mut request) = (0u64, 0u64);
            let mut source: Option<Entry> = None;
            for step in 0..30_000u64 {
                let draw = Key::new(spread).with(step);
                if source.is_none() && step < 25_000 {
                    let e = Entry {
                        at: now + draw.below(spread),
                        key: order_key(Class::Arrival, request),
                        who: 0,
                        tag: 0,
                    };
                    request += 1;
                    source = Some(e);
                    pending.set_source(source);
                    naive.push(e);
                }
                for k in 0..draw.nth(1).below(3) {
                    if step > 25_000 {
                        break;
                    }
                    let class = if draw.nth(2 + k).unit() < 0.8 { Class::Step } else { Class::Hold };
                    // Requests in no particular order.
                    let key = order_key(class, draw.nth(9 + k).below(1 << 40));
                    let kind = draw.nth(5 + k).below(10);
                    let delay = if kind < 8 { kind * spread / 4 } else { draw.nth(20 + k).below(spread) };
                    let e = Entry { at: now + delay, key, who: kind as u32, tag: 0 };
                    naive.push(e);
                    match kind {
                        0 if class == Class::Step => pending.wake(e),
                        0..8 => pending.push_constant(delay, e),
                        _ => pending.push(now, e),
                    }
                }
                naive.sort_by_key(|e| (e.at, e.key));
                let Some((got, is_source)) = pending.next() else {
                    assert!(naive.is_empty());
                    continue;
                };
                let want = naive.remove(0);
                assert_eq!((got.at, got.key), (want.at, want.key));
                if is_source {
                    source = None;
                    pending.set_source(None);
                }
                now = got.at;
            }
            assert!(naive.is_empty());
        }
    }
}
