//! The tables of hashing policies: large, a function of the targets' names and weights alone, so made once and
//! shared.
//!
//! A balancer whose targets have changed makes its table at its next pick. A caller with several balancers over the
//! same targets (one on each loop) lets one of them make it elsewhere ([`Balancer::table`]) and shares it with the
//! others before ([`Balancer::share`]), so that no request waits for it.
//!
//! [`Balancer::table`]: crate::Balancer::table
//! [`Balancer::share`]: crate::Balancer::share

use crate::TargetId;
use crate::balance::maglev::Slots;
use crate::balance::ring_hash::Ring;
use crate::balance::roster::Roster;
use std::sync::Arc;

/// A table that balancers may share.
#[derive(Clone, Debug)]
pub struct Table(pub(crate) Kind);

/// The policy.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Ring(Arc<Ring>),
    Slots(Arc<Slots>),
}

/// A target that has a weight.
#[derive(Clone, Debug)]
struct TableEntry {
    target: TargetId,
    name: Arc<str>,
    weight: f64,
}

impl PartialEq for TableEntry {
    /// Most names are the same text at the same place.
    fn eq(&self, other: &TableEntry) -> bool {
        let same_name = || Arc::ptr_eq(&self.name, &other.name) || self.name == other.name;
        self.target == other.target && self.weight == other.weight && same_name()
    }
}

/// The input of a table: the targets that have a weight, by index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TableInput(Vec<TableEntry>);

impl TableInput {
    /// The input for these targets.
    pub fn new(roster: &Roster) -> TableInput {
        TableInput(weighed(roster).collect())
    }

    /// Whether it is for these targets.
    pub fn is(&self, roster: &Roster) -> bool {
        self.0.iter().cloned().eq(weighed(roster))
    }

    /// The weights.
    pub fn weights(&self) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().map(|entry| entry.weight)
    }

    /// By name, so that the order of the targets does not matter.
    pub fn by_name(&self) -> impl Iterator<Item = (TargetId, &str, f64)> {
        let mut all: Vec<_> = self.0.iter().map(|entry| (entry.target, &*entry.name, entry.weight)).collect();
        all.sort_by(|a, b| a.1.cmp(b.1));
        all.into_iter()
    }
}

fn weighed(roster: &Roster) -> impl Iterator<Item = TableEntry> + '_ {
    let targets = (0..).map(TargetId).zip(roster.names()).zip(roster.weights());
    let entry = |((target, name), weight): ((TargetId, &Arc<str>), &f64)| TableEntry {
        target,
        name: name.clone(),
        weight: *weight,
    };
    targets.filter(|(_, weight)| **weight > 0.0).map(entry)
}

#[cfg(test)]
mod tests {
    use crate::balance::table::Kind;
    use crate::config::{Balance, MaglevArgs, RingHashArgs};
    use crate::{Ask, Balancer, TargetId};
    use std::sync::Arc;
    use weir_stats::Key;

    /// A balancer accepts a table that another has made, and picks as if it had made it; it rejects one of other
    /// targets.
    #[test]
    fn a_table_is_made_once() {
        for balance in [
            Balance::RingHash(RingHashArgs { bound: None }),
            Balance::Maglev(MaglevArgs { table_size: 1009, bound: None }),
        ] {
            let of =
                |names: &[&str]| Balancer::with_names(&balance, &vec![1.0; names.len()], names, Key::new(1));
            let (mut maker, mut taker, mut other) = (of(&["a", "b"]), of(&["a", "b"]), of(&["a", "b"]));
            [&mut maker, &mut taker].into_iter().for_each(|lb| lb.add_at(0, TargetId(2), 2.0, "c"));
            other.add_at(0, TargetId(2), 2.0, "d");
            let table = maker.table().expect("it hashes");
            taker.share(&table);
            other.share(&table);
            let address = |lb: &mut Balancer| match lb.table().expect("it hashes").0 {
                Kind::Ring(ring) => Arc::as_ptr(&ring).addr(),
                Kind::Slots(slots) => Arc::as_ptr(&slots).addr(),
            };
            let own = address(&mut maker);
            assert_eq!(address(&mut taker), own, "it is shared");
            assert_ne!(address(&mut other), own, "another is made");
            let mut alone = of(&["a", "b", "c"]);
            alone.set_weight(0, TargetId(2), 2.0);
            for key in 0..1000 {
                let ask = Ask { key: Some(crate::key::hash_number(key)), ..Ask::new(Key::new(1), 0) };
                assert_eq!(taker.ask(&ask), alone.ask(&ask));
            }
        }
        assert!(Balancer::new(&Balance::Random, &[1.0], Key::new(1)).table().is_none());
    }

    /// Several changes before a pick make one table, and a target that returns finds the old one.
    #[test]
    fn what_comes_back_makes_no_table() {
        let balance = Balance::Maglev(MaglevArgs { table_size: 1009, bound: None });
        let mut lb = Balancer::with_names(&balance, &[1.0; 2], &["a", "b"], Key::new(1));
        let address = |lb: &mut Balancer| match lb.table().expect("it hashes").0 {
            Kind::Slots(slots) => Arc::as_ptr(&slots).addr(),
            Kind::Ring(_) => 0,
        };
        let before = address(&mut lb);
        lb.remove(0, TargetId(1));
        lb.add_at(0, TargetId(1), 1.0, "b");
        assert_eq!(address(&mut lb), before);
    }
}
