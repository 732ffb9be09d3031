//! The entries of one list, each member once.

use super::Entry;
use std::collections::BTreeMap;

/// The entries of a list and where each member is in it. Wrong entries are left out; a member that is listed more than
/// once has the place of its first entry and is as its first entry that is up says, if one is.
#[derive(Debug)]
pub(super) struct Places<'a, K> {
    entries: Vec<&'a Entry<K>>,
    places: BTreeMap<&'a K, usize>,
}

impl<'a, K: Ord> Places<'a, K> {
    pub(super) fn new(list: &'a [Entry<K>]) -> Places<'a, K> {
        let (mut entries, mut places) = (Vec::<&Entry<K>>::with_capacity(list.len()), BTreeMap::new());
        for entry in list.iter().filter(|entry| entry.is_valid()) {
            let place = *places.entry(&entry.key).or_insert(entries.len());
            match entries.get_mut(place) {
                None => entries.push(entry),
                Some(first) if first.is_draining() && !entry.is_draining() => *first = entry,
                Some(_) => {}
            }
        }
        Places { entries, places }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn has(&self, key: &K) -> bool {
        self.places.contains_key(key)
    }

    /// In the order of the list.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'a Entry<K>> + '_ {
        self.entries.iter().copied()
    }
}
