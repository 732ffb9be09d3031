//! Lists of members, the same for every source: what is in one, what is left out, and what counts twice.

pub(crate) mod json;
mod registered;

pub(crate) use registered::{Registered, listed, listed_with_stated};

use crate::fault::{Defect, FaultKind, printable};
use crate::place::Place;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use weir_plan::address::Address;

/// The most bytes of a list.
pub const MOST_BYTES: u64 = 64 << 20;

/// The most members of a list.
pub const MOST_MEMBERS: usize = 100_000;

/// The most entries of a list: right, doubled and wrong ones together.
pub const MOST_ENTRIES: usize = 1_000_000;

/// The most findings of a list that are kept; the others are counted.
pub const MOST_FINDINGS: usize = 100;

/// What a source says of a member that it lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It may be picked.
    Up,
    /// It gets nothing new; what it has goes on.
    Drain,
}

/// A member as a source lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its address as the source writes it: `Address::parse` reads it, and it has a host and a port, or a path.
    pub addr: String,
    /// What tells it from another that had its address before.
    pub id: Option<String>,
    /// Its weight: 0, or within `weir_plan::ranges::WEIGHTS`. A member of weight 0 drains.
    pub weight: f64,
    /// Whether it may be picked.
    pub state: State,
}

/// A whole list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The members, each address once, in the order of the list.
    pub members: Vec<Member>,
    /// The first entries that do not count, at most [`MOST_FINDINGS`].
    pub left_out: Vec<Finding>,
    /// The number of entries that do not count.
    pub left_out_count: usize,
    /// Members that the source says are gone, where it says so: that is no matter of doubt.
    pub departures: Vec<Departure>,
}

impl Snapshot {
    /// Notes an entry that does not count, or a part of the source that is not in the list. Where it is need not be found for
    /// all of them.
    pub(crate) fn leave_out(
        &mut self,
        subject: Subject,
        objection: Objection,
        find: impl FnOnce() -> Option<Place>,
    ) {
        self.left_out_count += 1;
        if self.left_out.len() < MOST_FINDINGS {
            let problem = printable(&objection.problem);
            let remedy = objection.remedy.map(|remedy| printable(&remedy));
            self.left_out.push(Finding { place: find(), subject, problem, remedy });
        }
    }
}

/// A member that its source says is gone: deleted, or out of service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departure {
    /// Its address.
    pub addr: String,
    /// What distinguished it from another at that address.
    pub id: Option<String>,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An entry of the list, by its number, from 1.
    Entry(usize),
    /// A part of the source: the problem is a whole sentence, which names it.
    Part {
        /// The sentence for when no part is at fault any more, without a full stop.
        recovery: &'static str,
    },
}

/// An entry that does not count, or a part of a source that has no answer, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where in the text of a file.
    pub place: Option<Place>,
    /// What it is about.
    pub subject: Subject,
    /// What is wrong, without a full stop.
    pub problem: String,
    /// What to write instead, where that is known.
    pub remedy: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.map_or(Ok(()), |place| write!(f, "{place}: "))?;
        if let Subject::Entry(number) = self.subject {
            write!(f, "entry {number}: ")?;
        }
        f.write_str(&self.problem)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

/// Why an entry does not count, before its place is known.
pub(crate) struct Objection {
    pub(crate) problem: String,
    pub(crate) remedy: Option<String>,
}

impl Objection {
    pub(crate) fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Objection {
        Objection { problem: problem.into(), remedy: Some(remedy.into()) }
    }
}

/// A list while it is read.
#[derive(Default)]
pub(crate) struct Builder {
    snapshot: Snapshot,
    /// The index of each address.
    indices: HashMap<Address, usize>,
}

impl Builder {
    /// Adds a member. Of an address that is there already one member stays, the first that is up; what differs between
    /// the two is the objection.
    ///
    /// # Errors
    /// There are too many members.
    pub(crate) fn add(&mut self, address: Address, mut member: Member) -> Result<Option<Objection>, Defect> {
        if member.weight == 0.0 {
            member.weight = 0.0; // not -0
            member.state = State::Drain;
        }
        let members = &mut self.snapshot.members;
        match self.indices.entry(address) {
            Entry::Vacant(entry) if members.len() < MOST_MEMBERS => {
                entry.insert(members.len());
                members.push(member);
                Ok(None)
            }
            Entry::Vacant(_) => Err(too_many(MOST_MEMBERS, "members")),
            Entry::Occupied(entry) => {
                let known = &mut members[*entry.get()];
                let objection = contradiction(known, &member);
                if known.state == State::Drain && member.state == State::Up {
                    *known = member;
                }
                Ok(objection)
            }
        }
    }

    /// As [`Snapshot::leave_out`].
    pub(crate) fn leave_out(
        &mut self,
        entry: usize,
        objection: Objection,
        find: impl FnOnce() -> Option<Place>,
    ) {
        self.snapshot.leave_out(Subject::Entry(entry), objection, find);
    }

    /// Notes a member that the source says is gone. `finish` drops it if the member is listed as well.
    pub(crate) fn depart(&mut self, departure: Departure) {
        self.snapshot.departures.push(departure);
    }

    pub(crate) fn finish(self) -> Snapshot {
        let Builder { mut snapshot, .. } = self;
        if !snapshot.departures.is_empty() {
            let there: HashSet<(&str, Option<&str>)> =
                snapshot.members.iter().map(|m| (m.addr.as_str(), m.id.as_deref())).collect();
            snapshot.departures.retain(|d| !there.contains(&(d.addr.as_str(), d.id.as_deref())));
            snapshot.departures.sort_unstable();
            snapshot.departures.dedup();
        }
        snapshot
    }
}

/// The list has more of something than is read.
pub(crate) fn too_many(most: usize, what: &str) -> Defect {
    Defect::new(
        FaultKind::TooMany,
        format!("the list has more than {most} {what}"),
        "divide it into several lists, each with a fleet of its own",
    )
}

/// What two entries of one address say differently.
fn contradiction(first: &Member, second: &Member) -> Option<Objection> {
    let addr = weir_plan::http::short(&second.addr);
    let objection =
        |how: &str| Some(Objection::new(format!("\"{addr}\" is in the list twice, {how}"), "list it once"));
    match (first.state, second.state) {
        (State::Up, State::Drain) | (State::Drain, State::Up) => {
            objection("once up and once draining: it counts as up")
        }
        _ if first.id != second.id => objection("with different ids: the first counts"),
        _ if first.weight != second.weight => objection("with different weights: the first counts"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(addr: &str, id: &str, state: State) -> (Address, Member) {
        let id = Some(id.to_owned());
        let member = Member { addr: addr.to_owned(), id, weight: 1.0, state };
        (Address::parse(addr).expect("an address"), member)
    }

    fn departure(addr: &str, id: Option<&str>) -> Departure {
        Departure { addr: addr.to_owned(), id: id.map(str::to_owned) }
    }

    /// The departures of a list with these members, if those come after the departures and if they come before.
    fn depart(members: &[(Address, Member)], departures: &[Departure]) -> [Vec<Departure>; 2] {
        [false, true].map(|is_first| {
            let mut list = Builder::default();
            let add = |list: &mut Builder| {
                for (address, member) in members {
                    list.add(address.clone(), member.clone()).expect("few members");
                }
            };
            if is_first {
                add(&mut list);
            }
            departures.iter().for_each(|departure| list.depart(departure.clone()));
            if !is_first {
                add(&mut list);
            }
            list.finish().departures
        })
    }

    #[test]
    fn a_departure_that_is_listed_is_none_and_the_others_are_sorted_and_named_once() {
        let members = [member("a:1", "x", State::Up), member("b:1", "x", State::Drain)];
        let (c, a) = (departure("c:1", None), departure("a:1", Some("y")));
        let there = [departure("a:1", Some("x")), departure("b:1", Some("x"))];
        let departures = [c.clone(), there[0].clone(), a.clone(), c.clone(), there[1].clone(), a.clone()];
        for departures in depart(&members, &departures) {
            assert_eq!(departures, [a.clone(), c.clone()]);
        }
        // Without an id it is another one.
        let others = [departure("a:1", None), departure("b:1", Some("y"))];
        assert_eq!(depart(&members, &others), [others.to_vec(), others.to_vec()]);
        assert_eq!(depart(&members, &[]), [vec![], vec![]]);
    }

    /// Of an address one member counts; the other one may well be gone.
    #[test]
    fn a_doubled_address_has_the_departure_of_the_other_member() {
        let members = [member("a:1", "x", State::Drain), member("a:1", "y", State::Up)];
        let (x, y) = (departure("a:1", Some("x")), departure("a:1", Some("y")));
        for departures in depart(&members, &[y, x.clone()]) {
            assert_eq!(departures, std::slice::from_ref(&x));
        }
    }
}
