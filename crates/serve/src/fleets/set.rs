//! All fleets of a topology whose members are listed, and which of another topology each of them is.

use super::fleet::FleetMembers;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_discovery::{FollowedSource, Snapshot};
use weir_plan::fleets::MemberPlaces;
use weir_plan::{Point, SourceKind};

/// The fleets of a topology whose members a source lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct FleetSet {
    /// In the order of the file.
    pub fleets: Vec<FleetMembers>,
    /// The last list of each source.
    pub lists: BTreeMap<SourceKind, Arc<Snapshot>>,
}

impl FleetSet {
    /// Those of another topology. A fleet whose source stays keeps its members. One of the same name keeps them as well,
    /// until its new source has spoken; others begin with the last list of their source, if there is one.
    pub fn renewed(&self, point: &Point, now_ns: u64) -> FleetSet {
        let mut set = FleetSet { fleets: Vec::new(), lists: self.lists.clone() };
        for (mut own, before) in self.matched(point) {
            let is_new = before.is_none_or(|before| before.source != own.source);
            if let Some(before) = before {
                own = own.follow(before);
            }
            // Its source may have spoken already, to another fleet, and says nothing again.
            if let Some(list) = self.lists.get(&own.source).filter(|_| is_new) {
                own.list(now_ns, list);
            }
            if let Some(other) = self.fleets.iter().find(|fleet| is_new && fleet.source == own.source) {
                own.share_outage(other);
            }
            set.fleets.push(own);
        }
        let sources = set.sources();
        set.lists.retain(|source, _| sources.contains(source));
        set
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

    /// The same in their order, each with the last list that it gave.
    pub fn followed(&self) -> Vec<FollowedSource> {
        let followed = |kind: SourceKind| FollowedSource { last: self.lists.get(&kind).cloned(), kind };
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
