//! What lists and failures make of the members of a fleet.

use super::*;
use std::time::Duration;
use weir_discovery::{Defect, Departure, FaultKind};
use weir_model::Dist;
use weir_plan::{ConsulSource, FleetSource};

fn fleet() -> FleetMembers {
    let source =
        FleetSource { from: SourceKind::File("api.json".to_owned()), shrink: Some(0.5), grace_ns: 100 };
    let (lag, label) = (Dist::Fixed { ns: 0 }, "api".to_owned());
    let fleet =
        Fleet { size: 1, first: 0, lag, source: Some(source), life: None, label, span: String::new() };
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

/// What another file has listed says nothing of the length of this one's lists.
#[test]
fn the_first_list_of_another_service_is_believed() {
    let mut before = fleet();
    before.list(0, &list(&[("a:1", None), ("b:1", None), ("c:1", None)]));
    let mut after =
        FleetMembers { source: SourceKind::File("b.json".to_owned()), ..fleet() }.follow(&before, 0);
    assert!(before.is_listed() && !after.is_listed());
    assert_eq!(after.list(1, &list(&[("d:1", None)])).0, ListResult::Changed);
    assert_eq!((addresses(&after), after.is_listed()), (vec!["d:1".to_owned()], true));
    assert_eq!(after.list(2, &list(&[])).0, ListResult::Doubted);
}

/// A reload that asks another agent for the same service takes no members away.
#[test]
fn the_first_list_by_other_arguments_is_doubted_as_any_other() {
    let at = |url: &str, service: &str| FleetMembers {
        source: SourceKind::Consul(ConsulSource::new(url, service)),
        ..fleet()
    };
    let mut before = at("http://a:8500", "api");
    before.list(0, &list(&[("a:1", None), ("b:1", None), ("c:1", None)]));
    let turned = || at("http://b:8500", "api").follow(&before, 0);
    let mut after = turned();
    assert!(!after.is_listed());
    assert_eq!(after.list(1, &list(&[("d:1", None)])).0, ListResult::Doubted);
    assert_eq!(after.counts(), MemberCounts { up: 1, drain: 0, withdrawn: 3 });
    assert!(after.is_listed());
    // What `shrink` allows is believed.
    let mut after = turned();
    assert_eq!(after.list(1, &list(&[("d:1", None), ("e:1", None)])).0, ListResult::Changed);
    assert_eq!(addresses(&after), ["d:1", "e:1"]);
    let mut after = at("http://b:8500", "web").follow(&before, 0);
    assert_eq!(after.list(1, &list(&[])).0, ListResult::Changed);
    assert_eq!(members(&after).count(), 0);
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
    let mut after = fleet().follow(&FleetMembers::restored(&handed, 7_000), 7_000);
    assert_eq!(after.counts(), MemberCounts { up: 1, drain: 0, withdrawn: 2 });
    assert_eq!((addresses(&after), after.has_list), (addresses(&before), true));
    assert_eq!((after.next_deadline_ns(), after.lists), (Some(7_070), [0; 4]));
    // With another grace it counts from when the predecessor withdrew them.
    let longer = FleetMembers { doubt: Doubt { grace_ns: 500, ..after.doubt }, ..fleet() };
    let longer = longer.follow(&FleetMembers::restored(&handed, 7_000), 7_000);
    assert_eq!(longer.next_deadline_ns(), Some(7_470));
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
    drop(fleet.take_names());
    assert_eq!(fleet.end(20, &withdrawn[..1]).removed, 1);
    assert_eq!(fleet.take_names().words(), "- a:1 (withdrawn, failed)");
    assert_eq!((fleet.next_deadline_ns(), fleet.tick(109).removed), (Some(110), 0));
    assert_eq!((fleet.tick(110).removed, members(&fleet).count()), (2, 0));
    assert_eq!(fleet.take_names().words(), "- b:1 (grace over), c:1 (grace over)");
    assert_eq!(fleet.lists, [1, 0, 1, 0]);
}

/// The log says of each removal why it was, also where a list comes late.
#[test]
fn a_list_after_the_end_of_the_grace_removes_for_two_reasons() {
    let mut fleet = fleet();
    fleet.list(0, &list(&[("a:1", None), ("b:1", None), ("c:1", None), ("d:1", None), ("e:1", None)]));
    fleet.list(10, &list(&[("a:1", None), ("b:1", None)]));
    drop(fleet.take_names());
    let (result, changes) = fleet.list(500, &list(&[("a:1", None)]));
    assert_eq!((result, changes.removed), (ListResult::Changed, 4));
    let words = "- c:1 (grace over), d:1 (grace over), e:1 (grace over), b:1";
    assert_eq!(fleet.take_names().words(), words);
    // A list that lacks no member once those are gone whose grace is over.
    fleet.list(501, &list(&[("a:1", None), ("f:1", None), ("g:1", None)]));
    fleet.list(502, &list(&[("a:1", None)]));
    assert_eq!(fleet.list(900, &list(&[("a:1", None)])).0, ListResult::Changed);
}

/// What a source says of one member is no matter of doubt; what its list merely lacks is.
#[test]
fn a_member_that_is_stated_as_gone_leaves_at_once_though_the_list_is_doubted() {
    let mut fleet = fleet();
    fleet.list(0, &list(&[("a:1", None), ("b:1", Some("x")), ("c:1", Some("y")), ("d:1", None)]));
    let departure = |addr: &str, id: &str| Departure { addr: addr.to_owned(), id: Some(id.to_owned()) };
    // At c:1 another member has gone.
    let departures = vec![departure("b:1", "x"), departure("c:1", "before")];
    let short = Snapshot { departures, ..list(&[("a:1", None)]) };
    let (result, changes) = fleet.list(1, &short);
    assert_eq!((result, changes), (ListResult::Doubted, Changes { removed: 1, ..Changes::default() }));
    assert_eq!(fleet.counts(), MemberCounts { up: 1, drain: 0, withdrawn: 2 });
    assert_eq!(addresses(&fleet), ["a:1", "c:1", "d:1"]);
}

fn fault(problem: &str) -> Fault {
    let (problem, remedy) = (problem.to_owned(), "see to it".to_owned());
    let defect = Defect { kind: FaultKind::Unreachable, place: None, problem, remedy };
    Fault { subject: "file api.json".to_owned(), defect, lasting: Duration::ZERO }
}

#[test]
fn a_list_is_stale_since_the_first_failure_and_for_the_last_reason() {
    const S: u64 = 1_000_000_000;
    let mut fleet = fleet();
    assert_eq!((fleet.is_stale(), fleet.stale_s(S), fleet.error()), (false, None, None));
    fleet.fail(S, &fault("no leader"));
    fleet.fail(3 * S, &fault("no way there"));
    fleet.count_failures(5);
    assert_eq!((fleet.is_stale(), fleet.stale_s(4 * S)), (true, Some(3.0)));
    assert_eq!(fleet.error(), Some("file api.json: no way there; see to it"));
    // A reload keeps that, unless the fleet has another source.
    let same = self::fleet().follow(&fleet, 0);
    assert_eq!((same.stale_s(4 * S), same.error()), (fleet.stale_s(4 * S), fleet.error()));
    let source = SourceKind::File("b.json".to_owned());
    let other = FleetMembers { source, ..self::fleet() }.follow(&fleet, 0);
    assert_eq!((other.stale_s(4 * S), other.error()), (None, None));
    fleet.list(5 * S, &list(&[("a:1", None)]));
    assert_eq!((fleet.stale_s(6 * S), fleet.error(), fleet.lists), (None, None, [1, 0, 0, 5]));
}
