//! The places of a fleet's members. A member keeps its place, and a newcomer takes the first that is vacant, so that one change
//! concerns the nodes of one member: the others keep their numbers.

use super::fleet::MemberKey;
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::fleets::{ListedMember, MemberPlaces};

/// The least number of places by which they grow, at once: nodes behind them get other numbers then.
const GROWTH: usize = 8;

/// The members of one fleet by place.
#[derive(Clone, Debug, Default)]
pub(super) struct Seats {
    places: MemberPlaces,
    vacant: BTreeSet<usize>,
    known: BTreeMap<MemberKey, usize>,
}

impl Seats {
    /// All places.
    pub fn places(&self) -> &[Option<ListedMember>] {
        &self.places
    }

    /// The members at an address.
    pub fn find<'a>(&'a self, addr: &'a str) -> impl Iterator<Item = &'a MemberKey> {
        let first = MemberKey { addr: addr.to_owned(), id: None };
        self.known.range(first..).map(|(key, _)| key).take_while(move |key| key.addr == addr)
    }

    /// Whether any of them has an id.
    pub fn have_ids(&self) -> bool {
        self.known.keys().any(|key| key.id.is_some())
    }

    /// Gives a newcomer a place.
    pub fn add(&mut self, key: MemberKey, member: ListedMember) {
        let place = self.vacant.pop_first().unwrap_or(self.places.len());
        match self.places.get_mut(place) {
            Some(vacant) => *vacant = Some(member),
            None => self.places.push(Some(member)),
        }
        self.known.insert(key, place);
    }

    /// Frees the place of a member.
    pub fn remove(&mut self, key: &MemberKey) {
        if let Some(place) = self.known.remove(key) {
            self.places[place] = None;
            self.vacant.insert(place);
        }
    }

    /// A member.
    pub fn get_mut(&mut self, key: &MemberKey) -> Option<&mut ListedMember> {
        self.places.get_mut(*self.known.get(key)?)?.as_mut()
    }

    /// After a change: makes room for later newcomers where there is none, and gives up what is mostly vacant.
    pub fn settle(&mut self) {
        let count = self.known.len();
        if self.places.len() > GROWTH + 4 * count {
            self.pack();
        }
        if self.vacant.is_empty() && count > 1 {
            let room = (count / 8).max(GROWTH);
            self.vacant.extend(count..count + room);
            self.places.resize(count + room, None);
        }
    }

    /// Puts the members side by side, in the order of their places.
    fn pack(&mut self) {
        self.places.retain(Option::is_some);
        self.vacant.clear();
        let mut in_order: Vec<&mut usize> = self.known.values_mut().collect();
        in_order.sort_unstable();
        in_order.into_iter().zip(0..).for_each(|(place, at)| *place = at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: usize) -> MemberKey {
        MemberKey { addr: format!("h{n}:1"), id: None }
    }

    fn add(seats: &mut Seats, n: usize) {
        let MemberKey { addr, id } = key(n);
        seats.add(key(n), ListedMember { addr, id, weight: 1.0, drain: false });
    }

    /// Where each member is.
    fn places(seats: &Seats) -> BTreeMap<String, usize> {
        let place = |(at, member): (usize, &Option<ListedMember>)| Some((member.as_ref()?.addr.clone(), at));
        seats.places().iter().enumerate().filter_map(place).collect()
    }

    #[test]
    fn one_change_moves_no_other_member() {
        let mut seats = Seats::default();
        (0..100).for_each(|n| add(&mut seats, n));
        seats.settle();
        let before = (places(&seats), seats.places().len());
        for n in 0..50 {
            seats.remove(&key(n));
            add(&mut seats, 100 + n);
            seats.settle();
            seats.get_mut(&key(100 + n)).expect("it is there").weight = 2.0;
        }
        let after = places(&seats);
        assert_eq!(seats.places().len(), before.1);
        assert!((50..100).all(|n| after[&key(n).addr] == before.0[&key(n).addr]));
        assert!((0..50).all(|n| after[&key(100 + n).addr] == before.0[&key(n).addr]));
        assert_eq!(seats.find("h100:1").collect::<Vec<_>>(), [&key(100)]);
    }

    #[test]
    fn what_is_mostly_vacant_is_given_up() {
        let mut seats = Seats::default();
        (0..1000).for_each(|n| add(&mut seats, n));
        seats.settle();
        (0..1000).filter(|n| n % 100 != 7).for_each(|n| seats.remove(&key(n)));
        seats.settle();
        assert!(seats.places().len() <= 10 + GROWTH, "{}", seats.places().len());
        let order: Vec<usize> = (0..10).map(|i| places(&seats)[&key(100 * i + 7).addr]).collect();
        assert!(order.is_sorted(), "{order:?}");
        seats.remove(&key(7));
        assert!(seats.get_mut(&key(7)).is_none() && seats.get_mut(&key(107)).is_some());
    }
}
