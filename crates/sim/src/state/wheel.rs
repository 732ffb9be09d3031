//! A timing wheel for events at drawn times: constant cost where a heap's grows with the number pending.
//!
//! Time is cut into buckets of equal width; bucket b of the ring holds the entries of one of them, and a bitmap marks
//! those that hold any. Number and width of the buckets follow the pending entries (a few entries in a bucket, the
//! ring four mean delays long); they change where an entry is kept, never the order in which entries come out.
//! Entries beyond the ring, or that would crowd a bucket (many events at one instant), go to the heap.

use crate::code::order::{Entry, NOTHING};
use crate::state::heap::Heap;
use weir_memory::prefetch;

/// No slot; also the most slots there can be.
const NONE: u32 = (1 << COUNT_SHIFT) - 1;
/// A bucket is its first slot and, above that bit, its number of entries.
const COUNT_SHIFT: u32 = 26;
/// The most entries of a bucket, which are searched for the first.
const CROWD: u32 = 12;
const LEAST_BUCKETS: usize = 1024;
const MOST_BUCKETS: usize = 1 << 22;
/// The most buckets whose slots fit into a core's cache.
const CACHED_BUCKETS: usize = 1 << 14;
/// The ring's least length in mean delays, and its buckets per entry.
const SPARE: u64 = 4;
/// Pushes between two checks whether the ring still fits.
const LOOK: u32 = 1024;

/// Half of a cache line, so that none lies on two.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Slot {
    entry: Entry,
    next: u32,
}

const _: () = assert!(size_of::<Slot>() == 32);

pub(crate) struct Wheel {
    slots: Vec<Slot>,
    spare: u32,
    heads: Vec<u32>,
    bits: Vec<u64>,
    /// log2 of a bucket's width in ns.
    shift: u32,
    len: usize,
    /// The first entry; `NOTHING` if empty.
    first: Entry,
    first_slot: u32,
    /// Pushes since the last check, and the sum of their delays.
    pushes: u32,
    delays: u64,
}

impl Wheel {
    pub fn new() -> Wheel {
        Wheel {
            slots: Vec::new(),
            spare: NONE,
            heads: vec![NONE; LEAST_BUCKETS],
            bits: vec![0; LEAST_BUCKETS / 64],
            shift: 20,
            len: 0,
            first: NOTHING,
            first_slot: NONE,
            pushes: 0,
            delays: 0,
        }
    }

    /// The first entry, or `NOTHING`.
    #[inline]
    pub fn first(&self) -> &Entry {
        &self.first
    }

    /// Adds an entry here or to the heap. `now` is not after any entry's time.
    #[inline(always)]
    pub fn push(&mut self, now_ns: u64, entry: Entry, beyond: &mut Heap) {
        self.pushes += 1;
        self.delays = self.delays.saturating_add(entry.at - now_ns);
        if self.pushes == LOOK {
            self.look(now_ns, beyond);
        }
        if !self.takes_in(now_ns, entry) {
            beyond.push(entry);
        }
    }

    /// Adds an entry; false if it belongs in the heap.
    #[inline(always)]
    fn takes_in(&mut self, now_ns: u64, entry: Entry) -> bool {
        let mask = self.heads.len() - 1;
        if (entry.at >> self.shift) - (now_ns >> self.shift) > mask as u64 {
            return false;
        }
        let bucket = (entry.at >> self.shift) as usize & mask;
        let head = self.heads[bucket];
        let (next, size) = (head & NONE, head >> COUNT_SHIFT);
        if size == CROWD || self.len == NONE as usize {
            return false;
        }
        let slot = self.spare;
        let slot = if slot == NONE {
            self.slots.push(Slot { entry, next });
            self.slots.len() as u32 - 1
        } else {
            self.spare = self.slots[slot as usize].next;
            self.slots[slot as usize] = Slot { entry, next };
            slot
        };
        self.heads[bucket] = slot | (size + 1) << COUNT_SHIFT;
        self.bits[bucket / 64] |= 1 << (bucket % 64);
        self.len += 1;
        if entry.before(&self.first) {
            self.first = entry;
            self.first_slot = slot;
        }
        true
    }

    /// Removes the first entry; there must be one.
    #[inline(always)]
    pub fn pop(&mut self) -> Entry {
        let (entry, slot) = (self.first, self.first_slot);
        let bucket = (entry.at >> self.shift) as usize & (self.heads.len() - 1);
        let next = self.slots[slot as usize].next;
        let (head, size) = (self.heads[bucket] & NONE, (self.heads[bucket] >> COUNT_SHIFT) - 1);
        if head == slot {
            self.heads[bucket] = next | size << COUNT_SHIFT;
        } else {
            self.heads[bucket] = head | size << COUNT_SHIFT;
            let mut before = head;
            while self.slots[before as usize].next != slot {
                before = self.slots[before as usize].next;
            }
            self.slots[before as usize].next = next;
        }
        self.slots[slot as usize].next = self.spare;
        self.spare = slot;
        self.len -= 1;
        if size == 0 {
            self.bits[bucket / 64] &= !(1 << (bucket % 64));
        }
        self.find_first(bucket);
        entry
    }

    /// Finds the first entry at or after a bucket, going round once.
    #[inline]
    fn find_first(&mut self, from: usize) {
        if self.len == 0 {
            self.first = NOTHING;
            self.first_slot = NONE;
            return;
        }
        let mut word = from / 64;
        let mut bits = self.bits[word] & (!0 << (from % 64));
        while bits == 0 {
            word = if word + 1 == self.bits.len() { 0 } else { word + 1 };
            bits = self.bits[word];
        }
        let bucket = word * 64 + bits.trailing_zeros() as usize;
        let mut best = self.heads[bucket] & NONE;
        let Slot { mut entry, next } = self.slots[best as usize];
        let mut slot = next;
        while slot != NONE {
            let other = &self.slots[slot as usize];
            if other.entry.before(&entry) {
                (entry, best) = (other.entry, slot);
            }
            slot = other.next;
        }
        self.first = entry;
        self.first_slot = best;
        // The head of the next bucket of this word, which is probably searched next, is in no cache: its load begins now.
        let later = bits & (bits - 1);
        if self.heads.len() > CACHED_BUCKETS
            && later != 0
            && let head = self.heads[word * 64 + later.trailing_zeros() as usize] & NONE
            && let Some(slot) = self.slots.get(head as usize)
        {
            prefetch(slot);
        }
    }

    /// Checks whether the ring fits the pending entries; if not, all entries move to one that does. Those beyond a
    /// shorter one go to the heap: nearly always some entry does, so a ring that kept the old size for it would never
    /// fit.
    #[cold]
    fn look(&mut self, now_ns: u64, beyond: &mut Heap) {
        let mean = self.delays / u64::from(self.pushes);
        self.pushes = 0;
        self.delays = 0;
        let buckets = (self.len * SPARE as usize).next_power_of_two().clamp(LEAST_BUCKETS, MOST_BUCKETS);
        // No shorter than that: entries beyond the ring take a heap's time.
        let width = mean.saturating_mul(SPARE).div_ceil(buckets as u64).clamp(1, 1 << 62);
        let shift = width.next_power_of_two().trailing_zeros();
        let fits = buckets <= self.heads.len()
            && buckets * 8 > self.heads.len()
            && (shift..=shift + 1).contains(&self.shift);
        if !fits {
            self.rebuild(now_ns, buckets, shift, beyond);
        }
    }

    fn rebuild(&mut self, now_ns: u64, buckets: usize, shift: u32, beyond: &mut Heap) {
        let slots = Vec::with_capacity(self.slots.len());
        let next =
            Wheel { slots, heads: vec![NONE; buckets], bits: vec![0; buckets / 64], shift, ..Wheel::new() };
        let old = std::mem::replace(self, next);
        for &head in &old.heads {
            let mut slot = head & NONE;
            while slot != NONE {
                let Slot { entry, next } = old.slots[slot as usize];
                if !self.takes_in(now_ns, entry) {
                    beyond.push(entry);
                }
                slot = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::order::{Class, order_key};
    use weir_stats::{Key, math};

    /// With exponential delays some always lie beyond the ring that fits; it grows all the same, and few wait in the
    /// heap.
    #[test]
    fn it_fits_itself_to_what_is_pending() {
        let (mut wheel, mut heap) = (Wheel::new(), Heap::default());
        let (mut now, mut most) = (0, 0);
        for i in 0..400_000u64 {
            let delay = (-1e8 * math::ln_1p(-Key::new(1).with(i).unit())) as u64;
            let entry = Entry { at: now + delay, key: order_key(Class::Step, i), who: 0, tag: 0 };
            wheel.push(now, entry, &mut heap);
            // A hundred thousand are pending after a while.
            now += 1_000;
            while wheel.first().at.min(heap.top.at) < now {
                if heap.top.before(wheel.first()) {
                    heap.pop();
                } else {
                    wheel.pop();
                }
            }
            if i > 200_000 {
                most = most.max(heap.size);
            }
        }
        assert!((80_000..120_000).contains(&wheel.len), "{}", wheel.len);
        assert!(wheel.heads.len() >= 2 * wheel.len && most < wheel.len / 20, "{} {most}", wheel.heads.len());
    }
}
