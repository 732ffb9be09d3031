//! Who the targets of a balancer are: the one place that changes the set, for all loops and the process.
//!
//! A target has an index, by which loops count, and a generation, which tells it from those that had the index before. Loops
//! apply what they are sent in its order, and never choose an index themselves. No index is used twice yet, since nothing adds a
//! target to a running set: whoever does must have what acts later (the end of a `drain_timeout`) look at the generation.

/// A target at its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetSlot {
    pub index: u32,
    /// How many targets had that index before.
    pub generation: u32,
}

/// The targets of one balancer.
#[derive(Clone, Debug)]
pub(crate) struct TargetSet {
    /// By index: the generation, and whether that target is still there.
    slots: Vec<(u32, bool)>,
}

impl TargetSet {
    /// So many, none of which was ever another.
    pub fn new(count: usize) -> TargetSet {
        TargetSet { slots: vec![(0, true); count] }
    }

    /// Takes the target at an index away; `None`: there is none.
    pub fn remove(&mut self, index: u32) -> Option<TargetSlot> {
        let (generation, there) = self.slots.get_mut(index as usize)?;
        std::mem::take(there).then_some(TargetSlot { index, generation: *generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_removed_once() {
        let mut set = TargetSet::new(2);
        assert_eq!(set.remove(1), Some(TargetSlot { index: 1, generation: 0 }));
        assert_eq!((set.remove(1), set.remove(2)), (None, None));
        assert!(set.remove(0).is_some());
    }
}
