//! All fleets of a topology whose members are listed, and which of another topology each of them is.

use super::fleet::FleetMembers;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use weir_discovery::{FollowedSource, Snapshot};
use weir_plan::fleets::MemberPlaces;
use weir_plan::{DnsRecords, Point, SourceKind};

/// The fleets of a topology whose members a source lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct FleetSet {
    /// In the order of the file.
    pub fleets: Vec<FleetMembers>,
    /// The last list of each source.
    pub lists: BTreeMap<SourceKind, Arc<Snapshot>>,
    /// For sources that have other arguments than before and have given no list yet: the last one by those of before.
    pub(super) former: BTreeMap<SourceKind, Arc<Snapshot>>,
}

impl FleetSet {
    /// Those of another topology. A fleet whose source stays keeps its members. One of the same name keeps them as well,
    /// until its new source has spoken; others begin with the last list of their source, if there is one. `waited`: for how
    /// long the first lists of sources that no fleet had before were waited for.
    pub fn renewed(&self, point: &Point, now_ns: u64, waited: Duration) -> FleetSet {
        let (lists, former) = (self.lists.clone(), self.former.clone());
        let mut set = FleetSet { fleets: Vec::new(), lists, former };
        for (mut own, before) in self.matched(point) {
            let is_new = before.is_none_or(|before| before.source != own.source);
            if let Some(before) = before {
                if let Some(list) = self.last_by(&before.source).filter(|_| asks_again(before, &own)) {
                    set.former.insert(own.source.clone(), list.clone());
                }
                own = own.follow(before, now_ns);
            }
            if is_new {
                own.await_first(now_ns, if before.is_none() { waited } else { Duration::ZERO });
            }
            // Its source may have spoken already, to another fleet, and says nothing again.
            if let Some(list) = self.lists.get(&own.source).filter(|_| is_new) {
                own.list(now_ns, list);
            }
            if let Some(other) = self.fleets.iter().find(|fleet| is_new && fleet.source == own.source) {
                own.share_outage(other);
            }
            // What a reload changes has a line of its own.
            drop(own.take_names());
            set.fleets.push(own);
        }
        let sources = set.sources();
        set.lists.retain(|source, _| sources.contains(source));
        set.former.retain(|source, _| sources.contains(source) && !set.lists.contains_key(source));
        set
    }

    /// The last list of a source, by its arguments or those of before.
    fn last_by(&self, source: &SourceKind) -> Option<&Arc<Snapshot>> {
        self.lists.get(source).or_else(|| self.former.get(source))
    }

    /// The fleets of a topology, without members, each with the fleet that it was: of the same source and name, else of
    /// the same source, else of the same name.
    fn matched(&self, point: &Point) -> Vec<(FleetMembers, Option<&FleetMembers>)> {
        let mut before: Vec<Option<&FleetMembers>> = self.fleets.iter().map(Some).collect();
        let new = point.sourced().filter_map(|(number, fleet)| FleetMembers::new(number, fleet));
        let mut all: Vec<(FleetMembers, Option<&FleetMembers>)> = new.map(|own| (own, None)).collect();
        let ranks: [fn(&FleetMembers, &FleetMembers) -> bool; 3] = [
            |a, b| a.source == b.source && a.name == b.name,
            |a, b| a.source == b.source,
            |a, b| a.name == b.name,
        ];
        for is_it in ranks {
            for (own, found) in all.iter_mut().filter(|(_, found)| found.is_none()) {
                let same = before.iter_mut().find(|old| old.is_some_and(|old| is_it(own, old)));
                *found = same.and_then(Option::take);
            }
        }
        all
    }

    /// Sources of a topology's fleets that have given no list yet, and whose fleets have no members of before.
    pub fn unheard(&self, point: &Point) -> Vec<SourceKind> {
        let new = self.matched(point).into_iter().filter(|(_, before)| before.is_none());
        let sources: BTreeSet<SourceKind> = new.map(|(own, _)| own.source).collect();
        sources.into_iter().filter(|source| !self.lists.contains_key(source)).collect()
    }

    /// The sources, each once.
    pub fn sources(&self) -> BTreeSet<SourceKind> {
        self.fleets.iter().map(|fleet| fleet.source.clone()).collect()
    }

    /// The same in their order, each with the last list that it gave, if by other arguments.
    pub fn followed(&self) -> Vec<FollowedSource> {
        let followed = |kind: SourceKind| FollowedSource { last: self.last_by(&kind).cloned(), kind };
        self.sources().into_iter().map(followed).collect()
    }

    /// The names of the fleets.
    pub fn names(&self) -> BTreeSet<Arc<str>> {
        self.fleets.iter().map(|fleet| fleet.name.clone()).collect()
    }

    /// The members of all fleets by place, by the fleet's number: what [`weir_plan::fleets::with_members`] takes.
    pub fn members(&self) -> Vec<Option<MemberPlaces>> {
        let count = self.fleets.iter().map(|fleet| fleet.number + 1).max().unwrap_or_default();
        let mut all = vec![None; count];
        for fleet in &self.fleets {
            all[fleet.number] = Some(fleet.places().to_vec());
        }
        all
    }

    /// When the next member ends by its grace, ns.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.fleets.iter().filter_map(FleetMembers::next_deadline_ns).min()
    }
}

/// Whether the source of a fleet is the name in DNS that it was, with other arguments. What an answer lacks is held then as if
/// it had been asked by these all the time.
fn asks_again(before: &FleetMembers, now: &FleetMembers) -> bool {
    let (SourceKind::Dns(was), SourceKind::Dns(is)) = (&before.source, &now.source) else { return false };
    // With name servers of its own the targets of services are addresses, without they are names.
    let is_alike = was.records != DnsRecords::Services || was.servers.is_empty() == is.servers.is_empty();
    is_alike && before.source.is_same_service(&now.source)
}

#[cfg(test)]
mod tests {
    use super::super::fleet::ListResult;
    use super::*;
    use weir_discovery::{Defect, Fault, FaultKind};

    const S: u64 = 1_000_000_000;
    const NONE: Duration = Duration::ZERO;

    /// A topology with a fleet that DNS lists, by these arguments.
    fn topology(name: &str, more: &str) -> Point {
        let text = format!(
            "apps = find.dns(\"{name}\", lambda: server(\"app\"), port = 80{more})\n\
             listen(\"127.0.0.1:0\", lb.random(apps), name = \"front\")\n"
        );
        let request =
            weir_topology::Request { source: text.into(), name: "t.star".into(), ..Default::default() };
        let evaluated = weir_topology::evaluate(&request).unwrap_or_else(|errors| panic!("{errors:#?}"));
        evaluated.plan.points.first().expect("a point").clone()
    }

    fn list(text: &str) -> Arc<Snapshot> {
        Arc::new(weir_discovery::parse(text.as_bytes()).expect("a list"))
    }

    /// What the only source is asked with.
    fn last(set: &FleetSet) -> Option<Arc<Snapshot>> {
        set.followed().first().expect("a source").last.clone()
    }

    /// Whether it is silent or fails: the time counts from when the source began to be asked.
    #[test]
    fn a_source_that_never_gave_a_list_is_stale_since_it_is_asked() {
        let first = topology("app.internal", "");
        let set = FleetSet::default().renewed(&first, 5 * S, Duration::from_secs(3));
        let said = |set: &FleetSet, now_ns| {
            let fleet = &set.fleets[0];
            (fleet.stale_s(now_ns), fleet.error().map(str::to_owned))
        };
        assert_eq!(said(&set, 6 * S), (Some(4.0), None));
        let (problem, remedy) = ("no answer".to_owned(), "see to it".to_owned());
        let defect = Defect { kind: FaultKind::Unreachable, place: None, problem, remedy };
        let fault = Fault { subject: "dns app.internal".to_owned(), defect, lasting: NONE };
        let mut failed = set.clone();
        failed.fleets[0].fail(35 * S, &fault);
        let why = "dns app.internal: no answer; see to it".to_owned();
        assert_eq!(said(&failed, 40 * S), (Some(38.0), Some(why)));
        // A reload for another reason changes nothing; one with another source begins anew, without having waited.
        let again = set.renewed(&first, 7 * S, Duration::from_secs(3));
        assert_eq!(said(&again, 8 * S), (Some(6.0), None));
        let other = failed.renewed(&topology("web.internal", ""), 50 * S, Duration::from_secs(3));
        assert_eq!(said(&other, 51 * S), (Some(1.0), None));
        let mut listed = again;
        listed.fleets[0].list(9 * S, &list("[]"));
        assert_eq!(said(&listed, 10 * S), (None, None));
    }

    /// Members that only a doubted list lacks have the grace of the file that is served, and none without `shrink`.
    #[test]
    fn another_doubt_concerns_members_that_are_withdrawn_already() {
        let mut set = FleetSet::default().renewed(&topology("app.internal", ", grace = 100*s"), 0, NONE);
        set.fleets[0].list(0, &list("[\"10.0.0.1:80\", \"10.0.0.2:80\", \"10.0.0.3:80\"]"));
        set.fleets[0].list(S, &list("[]"));
        let due = |set: &FleetSet| set.next_deadline_ns().map(|at| at / S);
        assert_eq!(due(&set), Some(101));
        let longer = set.renewed(&topology("app.internal", ", grace = 500*s"), 9 * S, NONE);
        assert_eq!((due(&longer), longer.fleets[0].counts().withdrawn), (Some(501), 3));
        for (more, end) in [(", grace = 3*s", 4), (", grace = 500*s, shrink = None", 1)] {
            let mut other = longer.renewed(&topology("app.internal", more), 9 * S, NONE);
            // It is past: the keeper does that at once, and serves it.
            assert_eq!((due(&other), other.fleets[0].counts().withdrawn), (Some(end), 3));
            assert_eq!((other.fleets[0].tick(9 * S).removed, other.next_deadline_ns()), (3, None));
            assert!(other.fleets[0].places().iter().flatten().next().is_none());
        }
        // What was over before the reload is not there after it.
        let late = set.renewed(&topology("app.internal", ", grace = 500*s"), 101 * S, NONE);
        assert_eq!((late.next_deadline_ns(), late.fleets[0].counts().withdrawn), (None, 0));
    }

    #[test]
    fn a_source_with_other_arguments_goes_on_from_the_last_list() {
        let mut set = FleetSet::default().renewed(&topology("app.internal", ""), 0, NONE);
        let whole = list("[\"10.0.0.1:80\", \"10.0.0.2:80\", \"10.0.0.3:80\"]");
        set.lists.insert(set.fleets[0].source.clone(), whole.clone());
        set.fleets[0].list(0, &whole);
        // Twice, before it answers.
        let once = set.renewed(&topology("app.internal", ", hold = 5*s"), 1, NONE);
        let mut twice =
            once.renewed(&topology("app.internal", ", hold = 6*s, server = \"10.0.0.9:53\""), 2, NONE);
        for set in [&once, &twice] {
            assert_eq!((last(set), set.lists.len(), set.fleets[0].counts().up), (Some(whole.clone()), 0, 3));
        }
        let short = list("[\"10.0.0.1:80\"]");
        assert_eq!(twice.fleets[0].list(3, &short).0, ListResult::Doubted);
        assert_eq!(twice.fleets[0].counts().withdrawn, 2);
        // Its own list counts from then on.
        twice.lists.insert(twice.fleets[0].source.clone(), short.clone());
        assert_eq!(last(&twice), Some(short));
    }

    /// An answer for another name lacks no member of this one.
    #[test]
    fn a_source_that_is_asked_for_another_name_holds_no_member_of_the_one_before() {
        let mut set = FleetSet::default().renewed(&topology("app.internal", ""), 0, NONE);
        let whole = list("[\"10.0.0.1:80\"]");
        set.lists.insert(set.fleets[0].source.clone(), whole.clone());
        set.fleets[0].list(0, &whole);
        let other = set.renewed(&topology("web.internal", ""), 1, NONE);
        assert_eq!((last(&other), other.fleets[0].counts().up), (None, 1));
    }
}
