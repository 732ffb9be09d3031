//! Tests of the copy.

use super::super::copy::RegistryCopy;
use super::super::wire::read;
use super::{application, hash, instance, registry, source};
use crate::list::{Snapshot, State};
use std::collections::BTreeMap;
use weir_plan::{EurekaHost, EurekaSource};
use weir_stats::Key;

/// The whole registry of these instances, as a copy has it.
fn copied(source: &EurekaSource, instances: &[String]) -> RegistryCopy {
    let mut copy = RegistryCopy::new(source);
    replace(&mut copy, &registry("", &[application("API", instances)]));
    copy
}

fn replace(copy: &mut RegistryCopy, text: &str) {
    copy.replace(&read(text, "").expect("a registry")).expect("not too many");
}

fn apply(copy: &mut RegistryCopy, text: &str) {
    copy.apply(&read(text, "").expect("a delta")).expect("not too many");
}

/// The members: `addr#id`, with `!` where it drains.
fn members(list: &Snapshot) -> String {
    let one = |m: &crate::list::Member| {
        let drain = if m.state == State::Drain { "!" } else { "" };
        format!("{}#{}{drain}", m.addr, m.id.as_deref().unwrap_or_default())
    };
    list.members.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn statuses_are_members_that_are_up_or_drain_and_what_is_stated_to_be_gone() {
    let statuses = ["UP", "OUT_OF_SERVICE", "STARTING", "DOWN", "UNKNOWN", "ASLEEP"];
    let one =
        |(i, status): (usize, &str)| instance(&format!("i-{i}"), &format!("10.0.0.{i}"), status, "ADDED");
    let mut instances: Vec<String> = (1..).zip(statuses).map(one).collect();
    instances.reverse();
    let copy = copied(&source(&[]), &instances);
    let list = copy.list().expect("a list");
    assert_eq!(members(&list), "10.0.0.1:80#i-1 10.0.0.2:80#i-2! 10.0.0.3:80#i-3!");
    assert_eq!(copy.gone(), ["i-4", "i-5"]);
    assert_eq!(list.left_out_count, 1);
    let finding = list.left_out.first().expect("a finding").to_string();
    assert!(finding.starts_with("entry 4: the status of \"i-6\" is \"ASLEEP\""), "{finding}");
    assert!(copy.has_hash(Some("DOWN_1_OUT_OF_SERVICE_1_STARTING_1_UNKNOWN_2_UP_1_")));
    assert!(copy.has_hash(None) && !copy.has_hash(Some("")));
}

#[test]
fn hosts_and_ports_are_those_that_the_source_names() {
    let instances = [
        instance("i-1", "10.0.0.1", "UP", "ADDED"),
        r#"{"instanceId":"i-2","hostName":"b.local","status":"UP","port":{"$":81,"@enabled":"false"},
        "securePort":444}"#
            .to_owned(),
        r#"{"instanceId":"i-3","hostName":"c.local","ipAddr":"fd00::3","status":"UP","port":0}"#.to_owned(),
    ];
    let listed = |secure, host| {
        let copy = copied(&EurekaSource { secure, host, ..source(&[]) }, &instances);
        let list = copy.list().expect("a list");
        let findings: Vec<&str> = list.left_out.iter().map(|finding| finding.problem.as_str()).collect();
        (members(&list), findings.join("; "))
    };
    let (plain, findings) = listed(false, EurekaHost::Ip);
    assert_eq!(plain, "10.0.0.1:80#i-1");
    assert_eq!(findings, "the port of \"i-3\" is 0; the port of \"i-2\" is switched off");
    let (secure, findings) = listed(true, EurekaHost::Ip);
    assert_eq!(secure, "b.local:444#i-2");
    assert_eq!(findings, "the secure port of \"i-1\" is switched off; \"i-3\" has no secure port");
    assert_eq!(listed(false, EurekaHost::Name).0, "i-1.local:80#i-1");
}

#[test]
fn names_of_applications_have_no_case_and_one_id_is_one_instance() {
    let mut copy = RegistryCopy::new(&source(&[]));
    let of = |name: &str, id: &str, ip: &str| application(name, &[instance(id, ip, "UP", "ADDED")]);
    let parts = [of("aPi", "i-1", "10.0.0.1"), of("API", "i-2", "10.0.0.2"), of("API2", "i-3", "10.0.0.3")];
    replace(&mut copy, &registry("", &parts));
    assert_eq!(members(&copy.list().expect("a list")), "10.0.0.1:80#i-1 10.0.0.2:80#i-2");
    assert!(copy.has_hash(Some("UP_3_")));
    replace(&mut copy, &registry("", &[of("API", "i-1", "10.0.0.1"), of("api", "i-1", "10.0.0.9")]));
    let list = copy.list().expect("a list");
    assert_eq!((members(&list).as_str(), list.left_out_count), ("10.0.0.9:80#i-1", 1));
    replace(&mut copy, &registry("", &[]));
    assert_eq!(copy.list().expect("a list"), Snapshot::default());
}

#[test]
fn a_deletion_is_stated_until_the_second_whole_after_it() {
    let one = instance("i-1", "10.0.0.1", "UP", "ADDED");
    let two = instance("i-2", "10.0.0.2", "UP", "ADDED");
    let whole = registry("", &[application("API", &[one.clone(), two.clone()])]);
    let rest = registry("", &[application("API", &[two])]);
    let deletion = registry("", &[application("API", &[instance("i-1", "10.0.0.1", "UP", "DELETED")])]);
    let mut copy = RegistryCopy::new(&source(&[]));
    replace(&mut copy, &whole);
    // Servers repeat what has changed.
    for _ in 0..2 {
        apply(&mut copy, &deletion);
        assert_eq!(members(&copy.list().expect("a list")), "10.0.0.2:80#i-2");
        assert_eq!(copy.gone(), ["i-1"]);
    }
    replace(&mut copy, &rest);
    assert_eq!(copy.gone(), ["i-1"]);
    replace(&mut copy, &rest);
    assert_eq!(copy.gone(), [""; 0]);
    // What is not in the copy any more is stated nevertheless; what comes again is not gone.
    apply(&mut copy, &deletion);
    assert_eq!(copy.gone(), ["i-1"]);
    apply(&mut copy, &registry("", &[application("API", &[one])]));
    assert_eq!(copy.gone(), [""; 0]);
    apply(&mut copy, &deletion);
    replace(&mut copy, &whole);
    assert_eq!(copy.gone(), [""; 0]);
    // Those of others are not kept.
    apply(&mut copy, &registry("", &[application("WEB", &[instance("i-9", "10.0.0.9", "UP", "DELETED")])]));
    assert_eq!(copy.gone(), [""; 0]);
}

#[test]
fn what_is_gone_takes_nothing_from_another_instance_at_its_address() {
    let new = instance("i-2", "10.0.0.1", "UP", "ADDED");
    let copy = copied(&source(&[]), &[instance("i-1", "10.0.0.1", "DOWN", "MODIFIED"), new.clone()]);
    assert_eq!(members(&copy.list().expect("a list")), "10.0.0.1:80#i-2");
    assert_eq!(copy.gone(), [""; 0]);
    let mut copy = copied(&source(&[]), &[instance("i-1", "10.0.0.1", "UP", "ADDED")]);
    let changes = [instance("i-1", "10.0.0.1", "UP", "DELETED"), new];
    apply(&mut copy, &registry("", &[application("API", &changes)]));
    assert_eq!(members(&copy.list().expect("a list")), "10.0.0.1:80#i-2");
    assert_eq!(copy.gone(), [""; 0]);
}

/// A registry without a copy's shortcuts: the status of each instance, by application and number.
type Naive = BTreeMap<(usize, usize), &'static str>;

const APPS: [&str; 3] = ["API", "WEB", "OTHER"];
const STATUSES: [&str; 5] = ["UP", "DOWN", "STARTING", "OUT_OF_SERVICE", "UNKNOWN"];

/// An application with this one instance.
fn entry(app: usize, number: usize, status: &str, action: &str) -> String {
    let (id, ip) = (format!("i-{number}"), format!("10.{app}.0.{number}"));
    application(APPS[app], &[instance(&id, &ip, status, action)])
}

fn naive_whole(naive: &Naive) -> String {
    let applications: Vec<String> =
        naive.iter().rev().map(|((app, number), status)| entry(*app, *number, status, "ADDED")).collect();
    registry(&naive_hash(naive), &applications)
}

fn naive_hash(naive: &Naive) -> String {
    hash(naive.values().copied())
}

fn naive_members(naive: &Naive) -> String {
    let mut all = Vec::new();
    for ((app, number), status) in naive {
        if *app == 0 && *status != "DOWN" && *status != "UNKNOWN" {
            let drain = if *status == "UP" { "" } else { "!" };
            all.push(format!("10.0.0.{number}:80#i-{number}{drain}"));
        }
    }
    all.join(" ")
}

#[test]
fn whatever_changes_the_copy_is_the_registry() {
    for seed in 0..100 {
        let (key, mut drawn) = (Key::new(seed), 0);
        let mut draw = |most: usize| {
            drawn += 1;
            key.with(drawn).below(most as u64) as usize
        };
        let mut naive = Naive::new();
        for _ in 0..draw(20) {
            naive.insert((draw(3), 1 + draw(9)), STATUSES[draw(5)]);
        }
        let mut copy = RegistryCopy::new(&source(&[]));
        replace(&mut copy, &naive_whole(&naive));
        for round in 0..20 {
            let mut delta = Vec::new();
            for _ in 0..draw(6) {
                let at = (draw(3), 1 + draw(9));
                let (status, is_deleted) = (STATUSES[draw(5)], draw(3) == 0);
                let known = if is_deleted { naive.remove(&at) } else { naive.insert(at, status) };
                let action = match known {
                    _ if is_deleted => "DELETED",
                    None => "ADDED",
                    Some(_) => "MODIFIED",
                };
                delta.push(entry(at.0, at.1, status, action));
            }
            apply(&mut copy, &registry(&naive_hash(&naive), &delta));
            assert!(copy.has_hash(Some(&naive_hash(&naive))), "seed {seed} round {round}");
            let list = copy.list().expect("a list");
            assert_eq!(members(&list), naive_members(&naive), "seed {seed} round {round}");
            // Reading the whole changes nothing.
            let mut anew = RegistryCopy::new(&source(&[]));
            replace(&mut anew, &naive_whole(&naive));
            assert_eq!(anew.list().expect("a list").members, list.members);
        }
    }
}
