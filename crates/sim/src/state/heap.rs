//! A heap of events, for those beyond the timing wheel.

use crate::code::order::{Entry, NOTHING};

/// A 4-ary heap: the children of node i are family i; node i > 0 is in family (i - 1) / 4. Unused places hold an
/// entry that comes after all others, so a family is always complete.
pub(crate) struct Heap {
    /// The first of all.
    pub top: Entry,
    families: Vec<[Entry; 4]>,
    pub size: usize,
}

impl Default for Heap {
    fn default() -> Heap {
        Heap { top: NOTHING, families: Vec::new(), size: 0 }
    }
}

impl Heap {
    /// Adds an entry.
    pub fn push(&mut self, entry: Entry) {
        let mut i = self.size;
        self.size += 1;
        if i > 0 && (i - 1) / 4 == self.families.len() {
            self.families.push([NOTHING; 4]);
        }
        while i > 0 {
            let up = (i - 1) / 4;
            let parent = if up == 0 { self.top } else { self.families[(up - 1) / 4][(up - 1) % 4] };
            if !entry.before(&parent) {
                break;
            }
            self.families[up][(i - 1) % 4] = parent;
            i = up;
        }
        if i == 0 {
            self.top = entry;
        } else {
            self.families[(i - 1) / 4][(i - 1) % 4] = entry;
        }
    }

    /// Removes the top.
    pub fn pop(&mut self) {
        self.size -= 1;
        if self.size == 0 {
            self.top = NOTHING;
            return;
        }
        let at = self.size - 1;
        let last = std::mem::replace(&mut self.families[at / 4][at % 4], NOTHING);
        self.replace_top(last);
    }

    /// Replaces the top by an entry, in one sift.
    #[inline]
    pub fn replace_top(&mut self, entry: Entry) {
        // Where the hole is: the top, or a family and a place in it.
        let mut hole: Option<(usize, usize)> = None;
        let mut node = 0;
        let sought = entry.order();
        while let Some(family) = self.families.get(node) {
            // The least child cannot be predicted, so it is computed rather than branched on.
            let order = [family[0].order(), family[1].order(), family[2].order(), family[3].order()];
            let left = usize::from(order[1] < order[0]);
            let right = 2 + usize::from(order[3] < order[2]);
            let at = if order[right] < order[left] { right } else { left };
            if order[at] >= sought {
                break;
            }
            let least = family[at];
            match hole {
                None => self.top = least,
                Some((family, place)) => self.families[family][place & 3] = least,
            }
            hole = Some((node, at));
            node = 4 * node + 1 + at;
        }
        match hole {
            None => self.top = entry,
            Some((family, place)) => self.families[family][place & 3] = entry,
        }
    }
}
