//! The tables of hashing policies: large, a function of the targets' names and weights alone, so made once and
//! shared.
//!
//! A balancer whose targets have changed makes its table at its next pick. A caller with several balancers over the
//! same targets (one on each loop) makes it elsewhere, of a plan ([`Table::new`]) or by one of them
//! ([`Balancer::table`]), and shares it with them before ([`Balancer::share`]), so that no request waits for it. As long
//! as the caller keeps a table, none of them frees it.
//!
//! [`Balancer::table`]: crate::Balancer::table
//! [`Balancer::share`]: crate::Balancer::share

use crate::balance::Balance;
use crate::balance::maglev::Slots;
use crate::balance::ring_hash::Ring;
use crate::balance::roster::Roster;
use crate::{TargetId, TargetNames};
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

impl Table {
    /// The table of a policy that hashes, for targets of these weights and names, by index; `None` for the others.
    pub fn new(balance: &Balance, weights: &[f64], names: &TargetNames) -> Option<Table> {
        let made_of = || TableInput { names: names.clone(), weights: weights.to_vec() };
        match balance {
            Balance::RingHash(_) => Some(Table(Kind::Ring(Arc::new(Ring::new(made_of()))))),
            Balance::Maglev(args) => {
                Some(Table(Kind::Slots(Arc::new(Slots::new(made_of(), args.table_size)))))
            }
            _ => None,
        }
    }

    /// Whether the other is a copy of this table: they are one in memory.
    pub fn is_copy_of(&self, other: &Table) -> bool {
        match (&self.0, &other.0) {
            (Kind::Ring(ring), Kind::Ring(other)) => Arc::ptr_eq(ring, other),
            (Kind::Slots(slots), Kind::Slots(other)) => Arc::ptr_eq(slots, other),
            _ => false,
        }
    }

    /// Whether [`Table::new`] would make the same.
    pub fn is_for(&self, balance: &Balance, weights: &[f64], names: &TargetNames) -> bool {
        match (&self.0, balance) {
            (Kind::Ring(ring), Balance::RingHash(_)) => ring.made_of.is_of(weights, names),
            (Kind::Slots(slots), Balance::Maglev(args)) => {
                slots.has_size(args.table_size) && slots.made_of.is_of(weights, names)
            }
            _ => false,
        }
    }
}

/// The input of a table, by index: of targets without a weight nothing is in it. Lists, so that it costs no look at each
/// name to copy, to compare or to drop it on an event loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableInput {
    names: TargetNames,
    weights: Vec<f64>,
}

impl PartialEq for TableInput {
    fn eq(&self, other: &TableInput) -> bool {
        self.is_of(&other.weights, &other.names)
    }
}

impl TableInput {
    /// The input for these targets.
    pub fn new(roster: &Roster) -> TableInput {
        TableInput { names: roster.names().clone(), weights: roster.weights().to_vec() }
    }

    /// Whether it is for these targets.
    pub fn is(&self, roster: &Roster) -> bool {
        self.is_of(roster.weights(), roster.names())
    }

    /// Whether it is for targets of these weights and names. Most names are the same text at the same place.
    fn is_of(&self, weights: &[f64], names: &TargetNames) -> bool {
        let are_copies = self.names.is_copy_of(names);
        let is_same = |name: Option<&Arc<str>>, other: Option<&Arc<str>>| match (name, other) {
            (Some(name), Some(other)) => Arc::ptr_eq(name, other) || name == other,
            (name, other) => name == other,
        };
        (0..self.weights.len().max(weights.len())).all(|i| {
            let of = |weights: &[f64]| weights.get(i).copied().unwrap_or_default();
            let weight = of(weights);
            of(&self.weights) == weight
                && (are_copies || weight <= 0.0 || is_same(self.names.get(i), names.get(i)))
        })
    }

    /// The weights.
    pub fn weights(&self) -> impl Iterator<Item = f64> + '_ {
        self.weights.iter().copied().filter(|weight| *weight > 0.0)
    }

    /// By name, so that the order of the targets does not matter.
    pub fn by_name(&self) -> impl Iterator<Item = (TargetId, &str, f64)> {
        let targets = (0..).map(TargetId).zip(self.names.iter()).zip(&self.weights);
        let named = targets.map(|((target, name), weight)| (target, &**name, *weight));
        let mut all: Vec<_> = named.filter(|(.., weight)| *weight > 0.0).collect();
        all.sort_by(|a, b| a.1.cmp(b.1));
        all.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Balance, MaglevArgs, RingHashArgs};
    use crate::{Ask, Balancer, Table, TargetId, TargetNames};
    use weir_stats::Key;

    fn made(lb: &mut Balancer) -> Table {
        lb.table().expect("it hashes")
    }

    /// A balancer accepts a table that another has made, or that was made of a plan, and picks as if it had made it; it
    /// rejects one of other targets.
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
            let table = made(&mut maker);
            taker.share(&table);
            other.share(&table);
            let names = TargetNames::new(&["a", "b", "c"]);
            assert!(
                table.is_for(&balance, &[1.0, 1.0, 2.0], &names)
                    && !table.is_for(&balance, &[1.0; 3], &names)
            );
            let planned = Table::new(&balance, &[1.0, 1.0, 2.0], &names).expect("it hashes");
            assert!(made(&mut taker).is_copy_of(&table), "it is shared");
            assert!(!made(&mut other).is_copy_of(&table), "another is made");
            let mut alone = of(&["a", "b", "c"]);
            alone.set_weight(0, TargetId(2), 2.0);
            let mut of_plan = of(&["a", "b", "c"]);
            of_plan.set_weight(0, TargetId(2), 2.0);
            of_plan.share(&planned);
            assert!(made(&mut of_plan).is_copy_of(&planned), "it is taken");
            for key in 0..1000 {
                let ask = Ask { key: Some(crate::key::hash_number(key)), ..Ask::new(Key::new(1), 0) };
                let picked = alone.ask(&ask);
                assert_eq!((taker.ask(&ask), of_plan.ask(&ask)), (picked, picked));
            }
        }
        assert!(Balancer::new(&Balance::Random, &[1.0], Key::new(1)).table().is_none());
    }

    /// Several changes before a pick make one table, and a target that returns finds the old one.
    #[test]
    fn what_comes_back_makes_no_table() {
        let balance = Balance::Maglev(MaglevArgs { table_size: 1009, bound: None });
        let mut lb = Balancer::with_names(&balance, &[1.0; 2], &["a", "b"], Key::new(1));
        let before = made(&mut lb);
        lb.remove(0, TargetId(1));
        lb.add_at(0, TargetId(1), 1.0, "b");
        assert!(made(&mut lb).is_copy_of(&before));
    }
}
