//! While members of a fleet come, go, drain and change their weights, a hashing policy moves the keys that it must and
//! few others, and every loop sends a key to the same target.

use weir_policy::config::{Balance, MaglevArgs, RingHashArgs};
use weir_policy::key::hash_number;
use weir_policy::{Ask, Balancer, Table, TargetId, TargetNames};
use weir_stats::Key;

const TARGETS: u32 = 400;
const CHANGES: u64 = 50;
const KEYS: u64 = 4000;

/// The targets as a source would list them.
#[derive(Clone)]
struct List {
    names: Vec<String>,
    weights: Vec<f64>,
}

impl List {
    fn new() -> List {
        let names: Vec<_> = (0..TARGETS).map(|t| format!("10.1.{}.{}:8080", t / 250, t % 250)).collect();
        List { weights: vec![1.0; names.len()], names }
    }

    /// One to twenty members join, leave, drain, return or change their weights.
    fn change(&mut self, change: u64) {
        let draw = Key::new(11).with(change);
        for i in 0..1 + draw.with(0).below(20) {
            let draw = draw.with(1 + i);
            let member = draw.with(0).below(self.names.len() as u64) as usize;
            match draw.with(1).below(4) {
                0 if self.names.len() < 2 * TARGETS as usize => {
                    self.names.push(format!("10.2.{change}.{i}:8080"));
                    self.weights.push(1.0);
                }
                1 => self.weights[member] = 0.0,
                2 => self.weights[member] = 1.0,
                _ => self.weights[member] = [1.0, 2.0, 3.0][draw.with(2).below(3) as usize],
            }
        }
    }
}

/// A loop's balancer, which follows the list by single changes.
struct Loop {
    balancer: Balancer,
    seen: List,
}

impl Loop {
    fn new(balance: &Balance, list: &List) -> Loop {
        let names: Vec<&str> = list.names.iter().map(String::as_str).collect();
        let balancer = Balancer::with_names(balance, &list.weights, &names, Key::new(1));
        Loop { balancer, seen: list.clone() }
    }

    fn follow(&mut self, list: &List) {
        for (index, (name, weight)) in (0..).zip(list.names.iter().zip(&list.weights)) {
            let target = TargetId(index);
            match self.seen.weights.get(target.index()) {
                None => self.balancer.add_at(0, target, *weight, name),
                Some(seen) if seen != weight => self.balancer.set_weight(0, target, *weight),
                Some(_) => {}
            }
        }
        self.seen = list.clone();
    }

    /// The target of each key.
    fn owners(&mut self) -> Vec<TargetId> {
        let owner = |key| {
            let ask = Ask { key: Some(hash_number(key)), ..Ask::new(Key::new(1), 0) };
            let target = self.balancer.ask(&ask).expect("some target has a weight");
            self.balancer.release(target);
            target
        };
        (0..KEYS).map(owner).collect()
    }
}

/// What a history of changes has moved, as shares of all keys.
#[derive(Debug, Default)]
struct Moved {
    /// From a target whose weight fell, or to one whose weight rose.
    owed: f64,
    /// Between two targets that did not change.
    besides: f64,
}

fn play(balance: &Balance) -> Moved {
    let (mut list, mut moved) = (List::new(), Moved::default());
    let mut follower = Loop::new(balance, &list);
    let mut sharer = Loop::new(balance, &list);
    let mut owners = follower.owners();
    for change in 0..CHANGES {
        let before = list.clone();
        list.change(change);
        follower.follow(&list);
        let names: Vec<&str> = list.names.iter().map(String::as_str).collect();
        sharer.follow(&list);
        sharer
            .balancer
            .share(&Table::new(balance, &list.weights, &TargetNames::new(&names)).expect("it hashes"));
        let now = follower.owners();
        assert_eq!(sharer.owners(), now, "a loop that took the table, at change {change}");
        if change % 10 == 0 {
            assert_eq!(Loop::new(balance, &list).owners(), now, "a loop that began at change {change}");
        }
        let weight = |list: &List, target: TargetId| list.weights.get(target.index()).copied().unwrap_or(0.0);
        for (from, to) in owners.iter().zip(&now).filter(|(from, to)| from != to) {
            let is_owed =
                weight(&list, *from) < weight(&before, *from) || weight(&list, *to) > weight(&before, *to);
            *if is_owed { &mut moved.owed } else { &mut moved.besides } += 1.0 / (KEYS * CHANGES) as f64;
        }
        owners = now;
    }
    moved
}

#[test]
fn a_ring_moves_what_it_must() {
    let moved = play(&Balance::RingHash(RingHashArgs { bound: None }));
    assert!(moved.owed > 0.005, "the changes move keys: {moved:?}");
    assert_eq!(moved.besides, 0.0);
}

/// A table of 65,537 slots is filled anew for each list: the paper (section 5.3, figure 12) sees some of the others' slots
/// change hands with it. Here 1.4 % of the keys a change, beside 2.0 % that must.
#[test]
fn maglev_moves_fewer_keys_besides_than_it_must() {
    let moved = play(&Balance::Maglev(MaglevArgs { table_size: 65_537, bound: None }));
    assert!(moved.owed > 0.005, "the changes move keys: {moved:?}");
    assert!(moved.besides < moved.owed, "{moved:?}");
}
