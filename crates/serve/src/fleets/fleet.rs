//! The members of one fleet: what its lists and failures have made of it.

use super::Changes;
use super::changes::{MemberEvent, MemberNames};
use super::handed::{HandedFleet, HandedMember};
use super::outage::Outage;
use super::seats::Seats;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use weir_discovery::{Fault, Member, Snapshot, State};
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
    /// While its source gives none.
    outage: Option<Outage>,
    /// When a member was last added, removed or changed, ms since 1970.
    pub last_change_unix_ms: Option<u64>,
    /// Lists by result, and all changes.
    pub lists: [u64; 4],
    pub changes: Changes,
    /// Those that have changed since that was last asked for.
    names: MemberNames,
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
            outage: None,
            last_change_unix_ms: None,
            lists: [0; 4],
            changes: Changes::default(),
            names: MemberNames::default(),
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
            doubt: self.doubt,
            outage: self.outage.as_ref().map(|outage| outage.hand(now_ns)),
            members: self.places().iter().flatten().filter_map(member).collect(),
        }
    }

    /// A predecessor's fleet; its source is known by the topology, and its first list is compared with these members.
    pub(super) fn restored(handed: &HandedFleet, now_ns: u64) -> FleetMembers {
        let mut fleet = FleetMembers {
            has_list: true,
            listed_by: Some(handed.source.clone()),
            outage: handed.outage.as_ref().map(|outage| Outage::restored(now_ns, outage)),
            ..FleetMembers::empty(0, &handed.name, handed.source.clone(), handed.doubt)
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

    /// Takes the place of another topology's fleet, and its members. By another doubt some may be due to end.
    pub fn follow(self, before: &FleetMembers, now_ns: u64) -> FleetMembers {
        let FleetMembers { number, name, source, doubt, .. } = self;
        let mut own = FleetMembers { number, name, source, doubt, ..before.clone() };
        let mut changes = Vec::new();
        own.members.configure(now_ns, doubt, &mut changes);
        own.take(changes, MemberEvent::Expired);
        if own.source != before.source {
            own.outage = None;
        }
        own
    }

    /// Takes over since when and why the source gives no list, as another of its fleets knows it.
    pub fn share_outage(&mut self, other: &FleetMembers) {
        self.outage = other.outage.clone();
    }

    /// Whether its source has given a list, rather than one that listed the members before.
    pub fn is_listed(&self) -> bool {
        self.listed_by.as_ref() == Some(&self.source)
    }

    /// The members by state.
    pub fn counts(&self) -> MemberCounts {
        self.members.counts()
    }

    /// Whether its source gives no list.
    pub fn is_stale(&self) -> bool {
        self.outage.is_some()
    }

    /// Notes that its source is asked for the first list. `waited`: for how long it was waited for before.
    pub fn await_first(&mut self, now_ns: u64, waited: Duration) {
        self.outage = Some(Outage::until_first(now_ns, waited));
    }

    /// For how long its source has given no list, s: since the first fault, or since it is asked if it never gave one;
    /// `None`: it gives one.
    pub fn stale_s(&self, now_ns: u64) -> Option<f64> {
        self.outage.as_ref().map(|outage| outage.lasting_ns(now_ns) as f64 / 1e9)
    }

    /// Why its source gives no list: a sentence with what to do; `None`: it gives one, or no fault has come yet.
    pub fn error(&self) -> Option<&str> {
        self.outage.as_ref()?.reason.as_deref()
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
        if self.counts().withdrawn == 0 {
            return Vec::new();
        }
        let records = self.members.records(now_ns);
        records.filter(|(_, one)| one.withdrawn_for_ns.is_some()).map(|(key, _)| key.clone()).collect()
    }

    /// Takes the names of the members that have changed since they were last taken.
    pub(super) fn take_names(&mut self) -> MemberNames {
        std::mem::take(&mut self.names)
    }

    /// Takes a list.
    pub fn list(&mut self, now_ns: u64, list: &Snapshot) -> (ListResult, Changes) {
        let over = self.tick(now_ns);
        let mut changes = Vec::new();
        // The source says of these that another is at their address now.
        let gone = self.find_replaced(&list.members);
        let entries: Vec<Entry<MemberKey>> = list.members.iter().map(entry).collect();
        if self.listed_by.as_ref().is_some_and(|by| !by.is_same_service(&self.source)) {
            // The members of another service are no measure of this one, and requests are not for them.
            self.members.believe_next();
        }
        let stated =
            list.departures.iter().map(|one| MemberKey { addr: one.addr.clone(), id: one.id.clone() });
        self.members.state_gone(now_ns, &stated.collect::<Vec<_>>(), &mut changes);
        let verdict = self.members.replace(now_ns, &gone, &entries, &mut changes);
        (self.has_list, self.outage) = (true, None);
        self.listed_by = Some(self.source.clone());
        let result = match ListResult::from(verdict) {
            ListResult::Same if !changes.is_empty() || !over.is_empty() => ListResult::Changed,
            result => result,
        };
        self.lists[result as usize] += 1;
        let mut counted = self.take(changes, MemberEvent::Removed);
        counted += over;
        (result, counted)
    }

    /// Counts questions that its source has not answered by a list.
    pub fn count_failures(&mut self, count: u64) {
        self.lists[ListResult::Failed as usize] += count;
    }

    /// Notes that its source gives no list, as it is reported.
    pub fn fail(&mut self, now_ns: u64, fault: &Fault) {
        self.outage = Some(match &self.outage {
            Some(outage) => outage.go_on(fault),
            None => Outage::new(now_ns, fault),
        });
    }

    /// Removes members that only a doubted list lacks, and that have failed.
    pub fn end(&mut self, now_ns: u64, failed: &[MemberKey]) -> Changes {
        let mut counted = self.tick(now_ns);
        let mut changes = Vec::new();
        failed.iter().for_each(|key| self.members.failed(now_ns, key, &mut changes));
        counted += self.take(changes, MemberEvent::Failed);
        counted
    }

    /// Removes members whose grace is over.
    pub fn tick(&mut self, now_ns: u64) -> Changes {
        let mut changes = Vec::new();
        self.members.tick(now_ns, &mut changes);
        // Without doubt there is no grace: the last list lacks them.
        let removal = if self.doubt.shrink.is_some() { MemberEvent::Expired } else { MemberEvent::Removed };
        self.take(changes, removal)
    }

    /// The members at the addresses of listed ones that are not these: they have another id.
    fn find_replaced(&self, listed: &[Member]) -> Vec<MemberKey> {
        if !self.seats.have_ids() && listed.iter().all(|member| member.id.is_none()) {
            return Vec::new();
        }
        let others = |one: &Member| {
            self.seats.find(&one.addr).filter(|key| key.id != one.id).cloned().collect::<Vec<_>>()
        };
        listed.iter().flat_map(others).collect()
    }

    /// Takes what has come of an input. `removal`: what its removals are.
    fn take(&mut self, changes: Vec<MemberChange<MemberKey>>, removal: MemberEvent) -> Changes {
        let mut counted = Changes::default();
        for change in changes {
            match change {
                MemberChange::Add { key, weight, drain } => {
                    counted.added += 1;
                    self.names.note(MemberEvent::Added, &key);
                    let (addr, id) = (key.addr.clone(), key.id.clone());
                    self.seats.add(key, ListedMember { addr, id, weight, drain });
                }
                MemberChange::Remove { key } => {
                    counted.removed += 1;
                    self.names.note(removal, &key);
                    self.seats.remove(&key);
                }
                MemberChange::Set { key, weight, drain } => {
                    counted.changed += 1;
                    self.names.note(MemberEvent::Changed, &key);
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
#[path = "fleet_tests.rs"]
mod tests;
