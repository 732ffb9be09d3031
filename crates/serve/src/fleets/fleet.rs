//! The members of one fleet: what its lists and failures have made of it.

use super::Changes;
use super::handed::{HandedFleet, HandedMember};
use super::seats::Seats;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_discovery::{Member, Snapshot, State};
use weir_plan::fleets::ListedMember;
use weir_plan::{Fleet, SourceKind};
use weir_policy::fleet::{
    Doubt, Entry, MemberChange, MemberCounts, MemberRecord, Members, State as Listed, Verdict,
};

/// A member: another id at an address is another member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct MemberKey {
    pub addr: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// What came of asking for a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListResult {
    Changed,
    Same,
    Doubted,
    Failed,
}

impl ListResult {
    /// All of them, by their numbers.
    pub const ALL: [ListResult; 4] =
        [ListResult::Changed, ListResult::Same, ListResult::Doubted, ListResult::Failed];

    /// As metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            ListResult::Changed => Verdict::Changed.name(),
            ListResult::Same => Verdict::Same.name(),
            ListResult::Doubted => Verdict::Doubted.name(),
            ListResult::Failed => "failed",
        }
    }
}

impl From<Verdict> for ListResult {
    fn from(verdict: Verdict) -> ListResult {
        match verdict {
            Verdict::Changed => ListResult::Changed,
            Verdict::Same => ListResult::Same,
            Verdict::Doubted => ListResult::Doubted,
        }
    }
}

/// The members of one fleet that a source lists.
#[derive(Clone, Debug)]
pub(crate) struct FleetMembers {
    /// Its number among all fleets of the topology.
    pub number: usize,
    /// Its name, for people and metrics.
    pub name: Arc<str>,
    /// What lists them.
    pub source: SourceKind,
    /// Whether it has had a list.
    pub has_list: bool,
    /// What gave the last one.
    listed_by: Option<SourceKind>,
    doubt: Doubt,
    /// Since when its source gives none, ns.
    pub failing_since_ns: Option<u64>,
    /// When a member was last added, removed or changed, ms since 1970.
    pub last_change_unix_ms: Option<u64>,
    /// Lists by result, and all changes.
    pub lists: [u64; 4],
    pub changes: Changes,
    members: Members<MemberKey>,
    seats: Seats,
}

impl FleetMembers {
    /// A fleet without members; `None`: no source lists them.
    pub fn new(number: usize, fleet: &Fleet) -> Option<FleetMembers> {
        let source = fleet.source.as_ref()?;
        let doubt = Doubt { shrink: source.shrink, grace_ns: source.grace_ns };
        Some(FleetMembers::empty(number, &fleet.label, source.from.clone(), doubt))
    }

    fn empty(number: usize, name: &str, source: SourceKind, doubt: Doubt) -> FleetMembers {
        FleetMembers {
            number,
            name: name.into(),
            source,
            has_list: false,
            listed_by: None,
            doubt,
            failing_since_ns: None,
            last_change_unix_ms: None,
            lists: [0; 4],
            changes: Changes::default(),
            members: Members::new(doubt),
            seats: Seats::default(),
        }
    }

    /// For a successor of this process.
    pub(super) fn hand(&self, now_ns: u64) -> HandedFleet {
        let records: BTreeMap<&MemberKey, MemberRecord> = self.members.records(now_ns).collect();
        let member = |member: &ListedMember| {
            let key = MemberKey { addr: member.addr.clone(), id: member.id.clone() };
            let record = *records.get(&key)?;
            Some(HandedMember { key, record })
        };
        HandedFleet {
            name: String::from(&*self.name),
            source: self.source.clone(),
            members: self.places().iter().flatten().filter_map(member).collect(),
        }
    }

    /// A predecessor's fleet; its source is known by the topology, and its first list is compared with these members.
    pub(super) fn restored(handed: &HandedFleet, now_ns: u64) -> FleetMembers {
        let mut fleet = FleetMembers {
            has_list: true,
            listed_by: Some(handed.source.clone()),
            ..FleetMembers::empty(0, &handed.name, handed.source.clone(), Doubt::default())
        };
        for HandedMember { key, record } in &handed.members {
            let MemberKey { addr, id } = key.clone();
            fleet.members.restore(now_ns, key.clone(), *record);
            let MemberRecord { weight, drain, .. } = *record;
            fleet.seats.add(key.clone(), ListedMember { addr, id, weight, drain });
        }
        fleet.seats.settle();
        fleet
    }

    /// Takes the place of another topology's fleet, and its members.
    pub fn follow(self, before: &FleetMembers) -> FleetMembers {
        let FleetMembers { number, name, source, doubt, .. } = self;
        let mut own = FleetMembers { number, name, source, doubt, ..before.clone() };
        own.members.configure(doubt);
        if own.source != before.source {
            own.failing_since_ns = None;
        }
        own
    }

    /// Whether its source has given a list, rather than one that listed the members before.
    pub fn is_listed(&self) -> bool {
        self.listed_by.as_ref() == Some(&self.source)
    }

    /// The members by state.
    pub fn counts(&self) -> MemberCounts {
        self.members.counts()
    }

    /// For how long its source has given no list, s; `None`: it gives one.
    pub fn stale_s(&self, now_ns: u64) -> Option<f64> {
        self.failing_since_ns.map(|since_ns| now_ns.saturating_sub(since_ns) as f64 / 1e9)
    }

    /// When the next member ends by its grace, ns.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.members.next_deadline()
    }

    /// The members by place, as nodes are made of them.
    pub fn places(&self) -> &[Option<ListedMember>] {
        self.seats.places()
    }

    /// Those that only a doubted list lacks.
    pub fn withdrawn(&self, now_ns: u64) -> Vec<MemberKey> {
        let records = self.members.records(now_ns);
        records.filter(|(_, one)| one.withdrawn_for_ns.is_some()).map(|(key, _)| key.clone()).collect()
    }

    /// Takes a list.
    pub fn list(&mut self, now_ns: u64, list: &Snapshot) -> (ListResult, Changes) {
        let mut changes = Vec::new();
        // The source says of these that another is at their address now.
        let gone: Vec<MemberKey> = list.members.iter().flat_map(|member| self.others(member)).collect();
        let entries: Vec<Entry<MemberKey>> = list.members.iter().map(entry).collect();
        if !self.is_listed() {
            // What another source listed is no measure of this one.
            self.members.configure(Doubt { shrink: None, ..self.doubt });
        }
        let stated =
            list.departures.iter().map(|one| MemberKey { addr: one.addr.clone(), id: one.id.clone() });
        self.members.state_gone(now_ns, &stated.collect::<Vec<_>>(), &mut changes);
        let verdict = self.members.replace(now_ns, &gone, &entries, &mut changes);
        self.members.configure(self.doubt);
        (self.has_list, self.failing_since_ns) = (true, None);
        self.listed_by = Some(self.source.clone());
        let result = match ListResult::from(verdict) {
            ListResult::Same if !changes.is_empty() => ListResult::Changed,
            result => result,
        };
        self.lists[result as usize] += 1;
        (result, self.take(changes))
    }

    /// Notes that its source gives no list.
    pub fn fail(&mut self, now_ns: u64) {
        self.failing_since_ns.get_or_insert(now_ns);
        self.lists[ListResult::Failed as usize] += 1;
    }

    /// Removes members that only a doubted list lacks, and that have failed.
    pub fn end(&mut self, now_ns: u64, failed: &[MemberKey]) -> Changes {
        let mut changes = Vec::new();
        failed.iter().for_each(|key| self.members.failed(now_ns, key, &mut changes));
        self.take(changes)
    }

    /// Removes members whose grace is over.
    pub fn tick(&mut self, now_ns: u64) -> Changes {
        let mut changes = Vec::new();
        self.members.tick(now_ns, &mut changes);
        self.take(changes)
    }

    /// The members at the address of a listed one that are not it.
    fn others(&self, listed: &Member) -> Vec<MemberKey> {
        self.seats.find(&listed.addr).filter(|key| key.id != listed.id).cloned().collect()
    }

    fn take(&mut self, changes: Vec<MemberChange<MemberKey>>) -> Changes {
        let mut counted = Changes::default();
        for change in changes {
            match change {
                MemberChange::Add { key, weight, drain } => {
                    counted.added += 1;
                    let (addr, id) = (key.addr.clone(), key.id.clone());
                    self.seats.add(key, ListedMember { addr, id, weight, drain });
                }
                MemberChange::Remove { key } => {
                    counted.removed += 1;
                    self.seats.remove(&key);
                }
                MemberChange::Set { key, weight, drain } => {
                    counted.changed += 1;
                    if let Some(member) = self.seats.get_mut(&key) {
                        (member.weight, member.drain) = (weight, drain);
                    }
                }
            }
        }
        self.seats.settle();
        self.changes += counted;
        counted
    }
}

fn entry(member: &Member) -> Entry<MemberKey> {
    let key = MemberKey { addr: member.addr.clone(), id: member.id.clone() };
    let state = match member.state {
        State::Up => Listed::Up,
        State::Drain => Listed::Drain,
    };
    Entry { key, state, weight: member.weight }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::Dist;
    use weir_plan::FleetSource;

    fn fleet() -> FleetMembers {
        let source =
            FleetSource { from: SourceKind::File("api.json".to_owned()), shrink: Some(0.5), grace_ns: 100 };
        let (lag, label) = (Dist::Fixed { ns: 0 }, "api".to_owned());
        let fleet = Fleet { size: 1, first: 0, lag, source: Some(source), life: None, label };
        FleetMembers::new(0, &fleet).expect("a source")
    }

    fn list(members: &[(&str, Option<&str>)]) -> Snapshot {
        let member = |(addr, id): &(&str, Option<&str>)| Member {
            addr: (*addr).to_owned(),
            id: id.map(str::to_owned),
            weight: 1.0,
            state: State::Up,
        };
        Snapshot { members: members.iter().map(member).collect(), ..Snapshot::default() }
    }

    fn members(fleet: &FleetMembers) -> impl Iterator<Item = &ListedMember> {
        fleet.places().iter().flatten()
    }

    fn addresses(fleet: &FleetMembers) -> Vec<String> {
        members(fleet).map(|member| member.addr.clone()).collect()
    }

    #[test]
    fn members_keep_their_places_whatever_the_order_of_a_list_is() {
        let mut fleet = fleet();
        fleet.list(0, &list(&[("c:1", None), ("a:1", None)]));
        fleet.list(1, &list(&[("b:1", None), ("a:1", None), ("c:1", None)]));
        assert_eq!(addresses(&fleet), ["c:1", "a:1", "b:1"]);
        let (result, changes) = fleet.list(2, &list(&[("a:1", None), ("b:1", None)]));
        assert_eq!((result, changes), (ListResult::Changed, Changes { removed: 1, ..Changes::default() }));
        fleet.list(3, &list(&[("d:1", None), ("a:1", None), ("b:1", None)]));
        assert_eq!(addresses(&fleet), ["d:1", "a:1", "b:1"]);
    }

    /// All ids may change at once: nothing is missing from such a list.
    #[test]
    fn another_id_at_an_address_is_another_member() {
        let mut fleet = fleet();
        fleet.list(0, &list(&[("a:1", Some("x")), ("b:1", Some("y"))]));
        let (result, changes) = fleet.list(1, &list(&[("a:1", Some("z")), ("b:1", None)]));
        assert_eq!((result, changes), (ListResult::Changed, Changes { added: 2, removed: 2, changed: 0 }));
        assert_eq!(fleet.counts(), MemberCounts { up: 2, drain: 0, withdrawn: 0 });
        let ids: Vec<Option<String>> = members(&fleet).map(|member| member.id.clone()).collect();
        assert_eq!(ids, [Some("z".to_owned()), None]);
    }

    /// What another source has listed says nothing of the length of this one's lists.
    #[test]
    fn the_first_list_of_another_source_is_believed() {
        let mut before = fleet();
        before.list(0, &list(&[("a:1", None), ("b:1", None), ("c:1", None)]));
        let mut after =
            FleetMembers { source: SourceKind::File("b.json".to_owned()), ..fleet() }.follow(&before);
        assert!(before.is_listed() && !after.is_listed());
        assert_eq!(after.list(1, &list(&[("d:1", None)])).0, ListResult::Changed);
        assert_eq!((addresses(&after), after.is_listed()), (vec!["d:1".to_owned()], true));
        assert_eq!(after.list(2, &list(&[])).0, ListResult::Doubted);
    }

    /// Ids that have changed do not make a list longer.
    #[test]
    fn a_short_list_of_other_ids_is_doubted() {
        let mut fleet = fleet();
        let all: Vec<String> = (0..10).map(|n| format!("h{n}:1")).collect();
        let with = |id, n: usize| all.iter().take(n).map(|addr| (&**addr, Some(id))).collect::<Vec<_>>();
        fleet.list(0, &list(&with("x", 10)));
        assert_eq!(fleet.list(1, &list(&with("y", 4))).0, ListResult::Doubted);
        assert_eq!(fleet.counts(), MemberCounts { up: 4, drain: 0, withdrawn: 6 });
    }

    /// Through JSON, as an offer to a successor is; that one has a clock of its own.
    #[test]
    fn a_successor_goes_on_with_the_members() {
        let mut before = fleet();
        before.list(0, &list(&[("a:1", Some("x")), ("b:1", None), ("c:1", None), ("d:1", None)]));
        before.list(5, &list(&[("a:1", Some("x")), ("c:1", None), ("d:1", None)]));
        assert_eq!(before.list(10, &list(&[("c:1", None)])).0, ListResult::Doubted);
        let words = serde_json::to_string(&before.hand(40)).expect("plain data");
        let handed: HandedFleet = serde_json::from_str(&words).expect("what was written");
        let mut after = fleet().follow(&FleetMembers::restored(&handed, 7_000));
        assert_eq!(after.counts(), MemberCounts { up: 1, drain: 0, withdrawn: 2 });
        assert_eq!((addresses(&after), after.has_list), (addresses(&before), true));
        assert_eq!((after.next_deadline_ns(), after.lists), (Some(7_070), [0; 4]));
        assert_eq!(after.list(7_001, &list(&[("c:1", None)])).0, ListResult::Doubted);
        assert_eq!((after.tick(7_070).removed, addresses(&after)), (2, vec!["c:1".to_owned()]));
    }

    #[test]
    fn a_doubted_list_withdraws_until_a_failure_or_the_end_of_the_grace() {
        let mut fleet = fleet();
        fleet.list(0, &list(&[("a:1", None), ("b:1", None), ("c:1", None)]));
        let (result, changes) = fleet.list(10, &list(&[]));
        assert_eq!((result, changes), (ListResult::Doubted, Changes::default()));
        let withdrawn = fleet.withdrawn(10);
        assert_eq!(withdrawn.len(), 3);
        assert_eq!(fleet.end(20, &withdrawn[..1]).removed, 1);
        assert_eq!((fleet.next_deadline_ns(), fleet.tick(109).removed), (Some(110), 0));
        assert_eq!((fleet.tick(110).removed, members(&fleet).count()), (2, 0));
        assert_eq!(fleet.lists, [1, 0, 1, 0]);
    }
}
