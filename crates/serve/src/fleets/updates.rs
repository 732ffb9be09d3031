//! Lists and faults that have come from sources and are not taken yet: of each source only the last ones wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_discovery::{Departure, Snapshot, Update};

/// The last list and the last fault of each source, in their order: a list may wait for long, and others come meanwhile.
/// Lists are whole, so that the last one has all that those before it say, except which members are gone: it
/// gets that from them.
pub(super) fn latest(mut updates: Vec<Update>) -> Vec<Update> {
    let mut lists: BTreeMap<usize, Arc<Snapshot>> = BTreeMap::new();
    for update in &mut updates {
        let Ok(list) = &mut update.result else { continue };
        if let Some(before) = lists.get(&update.source) {
            add_departures(list, &before.departures);
        }
        lists.insert(update.source, list.clone());
    }
    let mut seen = BTreeSet::new();
    let mut latest: Vec<Update> = updates
        .into_iter()
        .rev()
        .filter(|update| seen.insert((update.source, update.result.is_ok())))
        .collect();
    latest.reverse();
    latest
}

/// Adds members of which an earlier list of the source says that they are gone, unless this one lists them.
fn add_departures(list: &mut Arc<Snapshot>, earlier: &[Departure]) {
    if earlier.is_empty() {
        return;
    }
    let departures = {
        let members = list.members.iter().map(|member| (member.addr.as_str(), member.id.as_deref()));
        let listed: BTreeSet<(&str, Option<&str>)> = members.collect();
        let is_listed = |one: &Departure| listed.contains(&(one.addr.as_str(), one.id.as_deref()));
        let missing = earlier.iter().filter(|one| !is_listed(one));
        let all: BTreeSet<Departure> = missing.chain(&list.departures).cloned().collect();
        Vec::from_iter(all)
    };
    if departures != list.departures {
        Arc::make_mut(list).departures = departures;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_discovery::{Defect, Fault, FaultKind};

    /// However many lists come while one waits.
    #[test]
    fn the_last_list_and_fault_of_each_source_wait() {
        let list = |source, members: usize| Update {
            source,
            result: weir_discovery::parse(format!("[{}]", vec!["\"a:1\""; members].join(",")).as_bytes())
                .map(Arc::new)
                .map_err(|defect| Fault { subject: String::new(), defect, lasting: Duration::ZERO }),
        };
        let fault = |source| {
            let (problem, remedy) = (String::new(), String::new());
            let defect = Defect { kind: FaultKind::Missing, place: None, problem, remedy };
            Update { source, result: Err(Fault { subject: String::new(), defect, lasting: Duration::ZERO }) }
        };
        let many = (0..1_000).map(|n| list(0, n % 2)).chain([fault(0), list(1, 1), fault(0)]);
        let kept: Vec<_> = latest(many.collect()).iter().map(|u| (u.source, u.result.is_ok())).collect();
        assert_eq!(kept, [(0, true), (1, true), (0, false)]);
    }

    #[test]
    fn the_last_list_has_the_departures_of_those_before_that_it_does_not_list() {
        let departure = |addr: &str| Departure { addr: addr.to_owned(), id: None };
        let list = |source, members: &str, departures: &[&str]| {
            let list = weir_discovery::parse(members.as_bytes()).expect("a list");
            let departures = departures.iter().map(|addr| departure(addr)).collect();
            Update { source, result: Ok(Arc::new(Snapshot { departures, ..list })) }
        };
        let last = list(0, r#"["a:1", "b:1"]"#, &["c:1", "f:1"]);
        let updates = vec![
            list(0, r#"["a:1"]"#, &["b:1", "c:1", "d:1"]),
            list(1, r#"["b:1"]"#, &["x:1"]),
            // One that came back, and is missing later, has gone without a word.
            list(0, r#"["a:1", "d:1"]"#, &["e:1"]),
            last.clone(),
        ];
        let kept = latest(updates);
        let departures = |update: &Update| update.result.clone().expect("a list").departures.clone();
        assert_eq!(kept.iter().map(|update| update.source).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(departures(&kept[0]), [departure("x:1")]);
        assert_eq!(departures(&kept[1]), ["c:1", "e:1", "f:1"].map(departure));
        assert_eq!(kept[1].result.as_ref().expect("a list").members.len(), 2);
        // The source holds it as well, where it stays as it was.
        assert_eq!(departures(&last), ["c:1", "f:1"].map(departure));
    }
}
