//! The index of each target of a balancer, the same on all threads and in every graph: a target keeps its index as
//! long as it exists, regardless of its position in the file. Counts, permits and health are kept by it.
//!
//! The index of a removed target is used again once no graph is left whose requests could be at it.

/// The targets of one balancer, by index.
#[derive(Debug, Default)]
pub(crate) struct Slots(Vec<Slot>);

#[derive(Clone, Copy, Debug)]
enum Slot {
    /// The identity of its target.
    Taken(u32),
    /// No target, from this epoch on.
    Free(u32),
}

/// Numbers of added and removed targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub added: u32,
    pub removed: u32,
}

impl Slots {
    /// Gives these targets, by identity, their indices in a new epoch. Returns, by index, the position of each in the
    /// list; `oldest`: the oldest epoch with a remaining graph.
    pub fn assign(&mut self, targets: &[u32], epoch: u32, oldest: u32) -> (Box<[Option<u32>]>, Changes) {
        let mut open = OpenPlaces::new(targets);
        let mut changes = Changes::default();
        let mut places: Vec<Option<u32>> = Vec::with_capacity(self.0.len());
        for slot in &mut self.0 {
            let Slot::Taken(target) = slot else {
                places.push(None);
                continue;
            };
            let place = open.take(*target);
            if place.is_none() {
                changes.removed += 1;
                *slot = Slot::Free(epoch);
            }
            places.push(place);
        }
        let new = open.rest();
        changes.added = new.len() as u32;
        let mut new = new.into_iter();
        for (slot, place) in self.0.iter_mut().zip(&mut places) {
            let is_free = matches!(slot, Slot::Free(since) if *since <= oldest && *since < epoch);
            if is_free && let Some((at, target)) = new.next() {
                (*slot, *place) = (Slot::Taken(target), Some(at));
            }
        }
        for (at, target) in new {
            self.0.push(Slot::Taken(target));
            places.push(Some(at));
        }
        (places.into(), changes)
    }
}

/// The places in a list that have no index yet, by target.
struct OpenPlaces {
    /// (target, place), ascending.
    all: Vec<(u32, u32)>,
    /// Where a target has its first place, the number of its places that have an index.
    taken: Vec<u32>,
}

impl OpenPlaces {
    fn new(targets: &[u32]) -> OpenPlaces {
        let mut all: Vec<(u32, u32)> = targets.iter().copied().zip(0..).collect();
        all.sort_unstable();
        OpenPlaces { taken: vec![0; all.len()], all }
    }

    /// Takes the first place of a target.
    fn take(&mut self, target: u32) -> Option<u32> {
        let first = self.all.partition_point(|(other, _)| *other < target);
        let taken = self.taken.get_mut(first)?;
        let (_, place) = self.all.get(first + *taken as usize).filter(|(other, _)| *other == target)?;
        *taken += 1;
        Some(*place)
    }

    /// (place, target) of the others, in the order of the list.
    fn rest(self) -> Vec<(u32, u32)> {
        let mut rest = Vec::new();
        let mut left = 0;
        for (at, (target, place)) in self.all.iter().enumerate() {
            if at == 0 || self.all[at - 1].0 != *target {
                left = self.taken[at];
            }
            match left.checked_sub(1) {
                Some(fewer) => left = fewer,
                None => rest.push((*place, *target)),
            }
        }
        rest.sort_unstable();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_keep_their_indices_and_those_of_old_ones_are_used_again() {
        let mut slots = Slots::default();
        let mut assign = |targets: &[u32], epoch, oldest| slots.assign(targets, epoch, oldest).0.to_vec();
        assert_eq!(assign(&[7, 8, 9], 0, 0), [Some(0), Some(1), Some(2)]);
        // 8 goes, 5 comes first in the file: its requests of epoch 0 may still be there.
        assert_eq!(assign(&[5, 9, 7], 1, 0), [Some(2), None, Some(1), Some(0)]);
        assert_eq!(assign(&[5, 9, 7, 4], 2, 0), [Some(2), None, Some(1), Some(0), Some(3)]);
        // From epoch 1 on no request is sent to index 1.
        assert_eq!(assign(&[5, 9, 7, 4, 3], 3, 1), [Some(2), Some(4), Some(1), Some(0), Some(3)]);
        let same = Slots::default().assign(&[1, 1], 0, 0);
        assert_eq!(same, ([Some(0), Some(1)].into(), Changes { added: 2, removed: 0 }));
    }

    #[test]
    fn equal_targets_keep_their_order() {
        let mut slots = Slots::default();
        slots.assign(&[4, 9, 4, 4], 0, 0);
        let (places, changes) = slots.assign(&[4, 4, 7, 9, 9], 1, 0);
        let kept = [Some(0), Some(3), Some(1), None];
        assert_eq!((&places[..4], &places[4..]), (&kept[..], &[Some(2), Some(4)][..]));
        assert_eq!(changes, Changes { added: 2, removed: 1 });
    }
}
