//! The ring of consistent hashing (ketama), point for point nginx's.
//!
//! - Idea: each target owns many points of a ring; a key belongs to the first point at or after its hash.
//! - Signal: the request's key; with `bound` requests in flight too. State: 160 points per unit of weight, a count per
//!   target.
//! - Cost of a decision: O(1) by a table of starts; a step per point of a target that is left out. A change of the
//!   targets sorts the ring anew, off that path where another brings it ([`crate::balance::table`]); eligibility
//!   changes nothing but where a walk stops.
//! - Formula: point k of a target is crc32(host, 0, port, point k−1), little-endian; key: crc32. When a target goes,
//!   its keys move and no others; the most loaded of n equal targets has about 1 + 2.5/√160 of the mean.
//! - Pathologies: shares are uneven by a tenth or two (Maglev's are not); a popular key is one target's (hence
//!   `bound`); when a target is out its load goes to those that follow its points. Slow start does not act on it: it
//!   would move keys.
//! - Source: Karger et al. 1997; libketama; nginx `hash ... consistent`.
//! - In the language: `lb.ring_hash(targets, key=, bound=None)`.
//! - Elsewhere: arguments and reference text in `topology/src/nodes/lb/ring_hash.rs`; checks of a plan in
//!   `plan/src/validate/around.rs`; the naive twin in `examples/decisions/naive.rs`.

use crate::TargetId;
use crate::balance::Ask;
use crate::balance::policy::{Policy, Traits};
use crate::balance::roster::Roster;
use crate::balance::table::{self, Table, TableInput};
use crate::ds::bounded::Bounded;
use crate::key;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_stats::Key;

/// The arguments of `lb.ring_hash`, without the targets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RingHashArgs {
    /// Greatest load as a factor of the mean; at least 1.
    pub bound: Option<f64>,
}

/// Points per unit of weight, as in nginx.
const POINTS: f64 = 160.0;
/// More than this are scaled down together.
const MOST_POINTS: f64 = 4_194_304.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    hash: u32,
    target: TargetId,
}

/// The ring: the same for all balancers over the same targets, which may share it.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    pub made_of: TableInput,
    points: Vec<Point>,
    /// For each part of the range of hashes the first point in it or after it.
    starts: Vec<u32>,
    shift: u32,
}

/// The state of one balancer.
#[derive(Clone, Debug)]
pub struct RingHash {
    load: Bounded,
    ring: Arc<Ring>,
    /// Of what a ring is to be made before the next pick; `None`: the ring is of that.
    wanted: Option<TableInput>,
}

impl RingHash {
    /// A balancer over these targets, which have names.
    pub fn new(roster: &Roster, bound: Option<f64>) -> RingHash {
        let load = Bounded::new(roster.effective(), bound);
        RingHash { load, ring: Arc::default(), wanted: Some(TableInput::new(roster)) }
    }

    /// The counts.
    pub fn load(&self) -> &Bounded {
        &self.load
    }

    /// The counts, to be changed.
    pub fn load_mut(&mut self) -> &mut Bounded {
        &mut self.load
    }

    /// The targets have changed. If weights or names did, a new ring is made, at the next pick or by
    /// [`RingHash::ring`], unless [`RingHash::share`] brings it before.
    pub fn refresh(&mut self, roster: &Roster) {
        self.load.refresh(roster.effective());
        self.wanted = (!self.ring.made_of.is(roster)).then(|| TableInput::new(roster));
    }

    /// The ring of the present targets.
    pub(crate) fn ring(&mut self) -> &Arc<Ring> {
        if let Some(wanted) = self.wanted.take() {
            self.ring = Arc::new(Ring::new(wanted));
        }
        &self.ring
    }

    /// Takes a ring that another has made, if one is wanted and this is it.
    pub(crate) fn share(&mut self, ring: &Arc<Ring>) {
        if self.wanted.as_ref() == Some(&ring.made_of) {
            self.ring = ring.clone();
            self.wanted = None;
        }
    }

    /// Chooses and counts the target of a key's hash, walking on past those that are barred, not eligible or at their
    /// bound; `None` if all are barred. If all that are left are at their bound, the first of these.
    pub fn pick_where(&mut self, hash: u64, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        if !self.load.any() {
            return None;
        }
        if self.wanted.is_some() {
            self.ring();
        }
        let per_weight = self.load.per_weight();
        let (before, after) = self.ring.points.split_at(self.ring.find(hash as u32));
        let mut walk = after.iter().chain(before).map(|p| p.target);
        let target = walk.clone().find(|&t| self.load.has_room(t, per_weight) && !barred(t));
        let target = target.or_else(|| walk.find(|&t| self.load.is_open(t) && !barred(t)))?;
        self.load.take(target);
        Some(target)
    }
}

impl Ring {
    /// The ring of these targets.
    pub fn new(made_of: TableInput) -> Ring {
        let sum: f64 = made_of.weights().sum();
        let per_weight = if sum * POINTS > MOST_POINTS { MOST_POINTS / sum } else { POINTS };
        let mut points = Vec::new();
        for (target, name, weight) in made_of.by_name() {
            let count = ((weight * per_weight + 0.5) as u64).max(1);
            points.extend(points_of(name, count).map(|hash| Point { hash, target }));
        }
        points.sort_by_key(|p| p.hash);
        points.dedup_by_key(|p| p.hash);
        let mut ring = Ring { made_of, points, starts: Vec::new(), shift: 0 };
        ring.index();
        ring
    }

    fn index(&mut self) {
        let bits = self.points.len().next_power_of_two().trailing_zeros().min(20);
        self.shift = 32 - bits.max(1);
        let mut at = 0;
        for part in 0..1u64 << (32 - self.shift) {
            while self.points.get(at).is_some_and(|p| u64::from(p.hash) < part << self.shift) {
                at += 1;
            }
            self.starts.push(at as u32);
        }
    }

    /// The index of the first point at or after a hash; one past the end where there is none.
    fn find(&self, hash: u32) -> usize {
        let start = self.starts.get((hash >> self.shift) as usize).map_or(0, |&s| s as usize);
        start + self.points[start..].iter().take_while(|p| p.hash < hash).count()
    }
}

/// The points of a target, as nginx has them: the name is split at the colon before a port.
fn points_of(name: &str, count: u64) -> impl Iterator<Item = u32> {
    let (host, port) = match name.strip_prefix("unix:") {
        Some(path) => (path, ""),
        None => match name.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, port),
            _ => (name, ""),
        },
    };
    let register =
        [host.as_bytes(), &[0], port.as_bytes()].iter().fold(!0, |r, part| key::crc32_update(r, part));
    let mut previous = 0u32;
    (0..count).map(move |_| {
        previous = !key::crc32_update(register, &previous.to_le_bytes());
        previous
    })
}

impl Policy for RingHash {
    type Args = RingHashArgs;
    const NAME: &'static str = "lb.ring_hash";
    const TRAITS: Traits = Traits { hashes: true, ..Traits::PLAIN };

    fn traits(args: &RingHashArgs) -> Traits {
        Traits { counts: args.bound.is_some(), ..Self::TRAITS }
    }

    fn build(args: &RingHashArgs, roster: &Roster, _draw: Key) -> RingHash {
        RingHash::new(roster, args.bound)
    }

    fn follow(&mut self, _now_ns: u64, roster: &Roster) {
        self.refresh(roster);
    }

    fn ask_where(&mut self, ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.pick_where(ask.key.unwrap_or(ask.draw.bits()), barred)
    }

    #[inline]
    fn take(&mut self, target: TargetId) {
        self.load.take(target);
    }

    #[inline]
    fn release(&mut self, target: TargetId) {
        self.load.release(target);
    }

    fn counted_at(&self, target: TargetId) -> Option<u32> {
        Some(self.load.in_flight(target))
    }

    fn counted(&self) -> u64 {
        self.load.total_in_flight()
    }

    fn make_table(&mut self) -> Option<Table> {
        Some(Table(table::Kind::Ring(self.ring().clone())))
    }

    fn take_table(&mut self, table: &Table) {
        if let table::Kind::Ring(made) = &table.0 {
            self.share(made);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{distinct, hash};

    fn ring(names: &[&str], weights: &[f64], bound: Option<f64>) -> RingHash {
        let mut lb = RingHash::new(&Roster::new(weights).named(names), bound);
        lb.ring();
        lb
    }

    fn owner(lb: &RingHash, key: &str) -> u32 {
        lb.clone().pick_where(hash(key.as_bytes()), |_| false).unwrap().0
    }

    const ADDRESSES: [&str; 3] = ["127.0.0.1:18081", "127.0.0.1:18082", "127.0.0.1:18083"];

    /// What nginx 1.22.1 answered for the keys user-0 to user-63: `hash $arg_k consistent` over three servers on the
    /// ports above, each of which answers with its number (recorded in November 2026). In turn: equal weights; 1, 2 and
    /// 5; the second one down.
    const NGINX: [&str; 3] = [
        "1121213233111121213311113313211332123221331131121123332222121113",
        "3123233233133123212313133313233332232322331333123323332232323333",
        "1131113333111111313311113313311333113331331131131133331331111113",
    ];

    #[test]
    fn keys_go_where_nginx_sends_them() {
        let equal = ring(&ADDRESSES, &[1.0; 3], None);
        let weighted = ring(&ADDRESSES, &[1.0, 2.0, 5.0], None);
        let mut roster = Roster::new(&[1.0; 3]).named(&ADDRESSES);
        let mut down = RingHash::new(&roster, None);
        roster.set_eligible(TargetId(1), false);
        down.refresh(&roster);
        for (lb, answers) in [equal, weighted, down].iter().zip(NGINX) {
            let got: String =
                (0..64).map(|i| (b'1' + owner(lb, &format!("user-{i}")) as u8) as char).collect();
            assert_eq!(got, answers);
        }
    }

    /// IPv6 and a socket's path (the numbers of nginx's answers are those of the servers).
    #[test]
    fn names_are_read_as_nginx_reads_them() {
        let lb = ring(&["[::1]:18084", "127.0.0.1:18081", "unix:/tmp/ngx/run/s.sock"], &[1.0; 3], None);
        let got: String =
            (0..64).map(|i| ["4", "1", "5"][owner(&lb, &format!("user-{i}")) as usize]).collect();
        assert_eq!(got, "1151144544114111414551514515511555155141541151115454455154141144");
    }

    /// A model simple enough to be checked by reading: all points, the least at or after the key, else the least of
    /// all.
    #[test]
    fn the_table_of_starts_changes_no_answer() {
        for n in [1usize, 2, 7, 300] {
            let names: Vec<String> = (0..n).map(|i| format!("t{i}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let lb = ring(&names, &vec![1.0; n], None);
            for i in 0..2000u64 {
                let h = hash(&i.to_le_bytes());
                let at_or_after = lb.ring.points.iter().filter(|p| p.hash >= h as u32).min_by_key(|p| p.hash);
                let naive = at_or_after.or_else(|| lb.ring.points.iter().min_by_key(|p| p.hash)).unwrap();
                assert_eq!(lb.clone().pick_where(h, |_| false), Some(naive.target));
                if n == 300 && i == 100 {
                    break;
                }
            }
        }
    }

    /// When a target goes, exactly its keys move; when it comes back they return; the order of targets is of no matter.
    #[test]
    fn disruption_is_minimal_and_all_instances_agree() {
        let names: Vec<String> = distinct(&["a"; 20]);
        let mut roster = Roster::new(&[1.0; 20]).named(&names);
        let whole = RingHash::new(&roster, None);
        let mut out = whole.clone();
        roster.set_eligible(TargetId(7), false);
        out.refresh(&roster);
        roster.set_eligible(TargetId(7), true);
        roster.remove(TargetId(7));
        let mut removed = whole.clone();
        removed.refresh(&roster);
        let turned: Vec<&String> = names.iter().rev().collect();
        let turned = RingHash::new(&Roster::new(&[1.0; 20]).named(&turned), None);
        for i in 0..5000 {
            let key = format!("key {i}");
            let (before, after) = (owner(&whole, &key), owner(&out, &key));
            assert!(if before == 7 { after != 7 } else { after == before });
            assert_eq!(
                owner(&removed, &key),
                after,
                "being out and being gone move the same keys to the same targets"
            );
            assert_eq!(owner(&turned, &key), 19 - before);
        }
    }

    #[test]
    fn shares_follow_the_weights_roughly() {
        let names: Vec<String> = (0..10).map(|i| format!("t{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (even, mut tall) = (ring(&names, &[1.0; 10], None), [1.0; 10]);
        tall[3] = 11.0;
        let heavy = ring(&names, &tall, None);
        let mut seen = [0.0; 10];
        let mut third = 0.0;
        for i in 0..20_000 {
            seen[owner(&even, &format!("k{i}")) as usize] += 1.0 / 20_000.0;
            third += f64::from(u8::from(owner(&heavy, &format!("k{i}")) == 3)) / 20_000.0;
        }
        assert!(seen.iter().all(|s| (0.05..0.16).contains(s)), "{seen:?}");
        assert!((third - 0.55).abs() < 0.06, "{third}");
    }

    #[test]
    fn a_popular_key_walks_on_at_its_bound() {
        let mut lb = ring(&["a", "b", "c", "d"], &[1.0; 4], Some(1.25));
        let h = hash(b"popular");
        for total in 0..40u32 {
            let t = lb.pick_where(h, |_| false).unwrap();
            let bound = (1.25 * f64::from(total + 1) / 4.0).ceil() as u32;
            assert!(lb.load().in_flight(t) <= bound);
        }
        assert!((0..4).all(|t| lb.load().in_flight(TargetId(t)) >= 2), "it spread");
        assert!(lb.pick_where(h, |t| t != TargetId(2)).is_some(), "the last one left takes it, bound or not");
        assert_eq!(lb.pick_where(h, |_| true), None);
        assert_eq!(ring(&[], &[], None).pick_where(h, |_| false), None);
    }
}
