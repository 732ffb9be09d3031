//! Tests of members from DNS, with a name server on loopback.

use super::answers::Entry;
use super::server::{FakeServer, Record, Reply, address, alias, service};
use super::{known_entries, members};
use crate::list::{Snapshot, listed};
use crate::registry::Posted;
use crate::registry::fake::{BOUND, next, posted_by};
use crate::source::FollowedSource;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use weir_plan::{DnsRecords, DnsSource, SourceKind};

const HOUR_NS: u64 = 3_600_000_000_000;

const SECOND_NS: u64 = 1_000_000_000;

const PORT_80: DnsRecords = DnsRecords::Addresses { port: 80 };

/// The name that is asked for.
const NAME: &str = "api.test";

fn source(records: DnsRecords, hold_ns: u64, servers: &[&FakeServer]) -> SourceKind {
    let servers = servers.iter().map(|server| server.at.clone()).collect();
    SourceKind::Dns(DnsSource { name: NAME.to_owned(), records, hold_ns, servers })
}

/// A server with one answer to all questions, which a test may replace.
fn with_reply(reply: Reply) -> (FakeServer, Arc<Mutex<Reply>>) {
    let reply = Arc::new(Mutex::new(reply));
    let shared = reply.clone();
    (FakeServer::start(move |_| shared.lock().expect("a reply").clone()), reply)
}

fn replace(reply: &Mutex<Reply>, new: Reply) {
    *reply.lock().expect("a reply") = new;
}

fn addresses(ips: &str) -> Reply {
    Reply::Records(ips.split_whitespace().map(|ip| address(NAME, ip)).collect())
}

/// The first list of a server's records.
fn first_list(records: DnsRecords, all: Vec<Record>) -> String {
    let server = FakeServer::start(move |_| Reply::Records(all.clone()));
    let (_asked, all) = posted_by(source(records, HOUR_NS, &[&server]));
    next(&all)
}

#[test]
fn an_answer_that_is_cut_off_is_asked_for_by_tcp() {
    let ips: Vec<String> = (0..500).map(|i| format!("10.0.{}.{}", i / 250, i % 250 + 1)).collect();
    let (server, _) = with_reply(addresses(&ips.join(" ")));
    let (_asked, all) = posted_by(source(PORT_80, HOUR_NS, &[&server]));
    let mut expected: Vec<String> = ips.iter().map(|ip| format!("{ip}:80")).collect();
    expected.sort();
    let list = next(&all);
    let mut members: Vec<&str> = list.split(' ').collect();
    members.sort_unstable();
    assert_eq!(members, expected);
    assert!(server.count_by_tcp() > 0);
}

#[test]
fn addresses_of_both_families_are_members() {
    let all = ["10.0.0.2", "fd00::1", "10.0.0.1"].map(|ip| address(NAME, ip)).to_vec();
    assert_eq!(first_list(PORT_80, all), "10.0.0.1:80 10.0.0.2:80 [fd00::1]:80");
}

#[test]
fn services_of_the_lowest_priority_are_members_with_their_weights() {
    let all = vec![
        service(NAME, 20, 5, "far.test", 80),
        service(NAME, 10, 10, "B.test", 8081),
        service(NAME, 10, 0, "a.test", 8080),
        service(NAME, 10, 30, "b.test", 8080),
        address("a.test", "10.0.0.1"),
        address("b.test", "10.0.0.2"),
        address("far.test", "10.0.0.3"),
    ];
    let list = first_list(DnsRecords::Services, all);
    assert_eq!(list, "10.0.0.1:8080*0.1 10.0.0.2:8080*30 10.0.0.2:8081*10");
    let equal = vec![
        service(NAME, 1, 0, "b.test", 80),
        service(NAME, 1, 0, "a.test", 80),
        address("a.test", "10.0.0.2"),
        address("b.test", "10.0.0.1"),
    ];
    assert_eq!(first_list(DnsRecords::Services, equal), "10.0.0.1:80 10.0.0.2:80");
}

#[test]
fn targets_of_services_are_asked_for_at_the_server_that_names_them() {
    // No other server knows them. That before it refuses everything.
    let (refusing, _) = with_reply(Reply::Code(5));
    let knowing = FakeServer::start(|name| match name {
        NAME => Reply::Records(vec![
            service(NAME, 1, 3, "a.test", 80),
            service(NAME, 1, 2, "b.test", 81),
            service(NAME, 1, 1, "10.0.0.9", 82),
        ]),
        "a.test" => Reply::Records(vec![address(name, "10.0.0.1"), address(name, "fd00::1")]),
        "b.test" => Reply::Records(vec![alias(name, "c.test"), address("c.test", "10.0.0.2")]),
        _ => Reply::Code(3),
    });
    let (_asked, all) = posted_by(source(DnsRecords::Services, HOUR_NS, &[&refusing, &knowing]));
    assert_eq!(next(&all), "10.0.0.1:80*3 10.0.0.2:81*2 10.0.0.9:82 [fd00::1]:80*3");
}

#[test]
fn only_what_does_not_come_with_the_answer_is_asked_for() {
    let (out, questions) = channel();
    let server = FakeServer::start(move |name| {
        let _ = out.send(name.to_owned());
        let services = ["a.test", "b.test", "c.test"].map(|target| service(NAME, 1, 1, target, 80));
        match name {
            NAME => {
                let a = ["10.0.0.1", "fd00::1"].map(|ip| address("a.test", ip));
                let both = a.into_iter().chain([address("c.test", "10.0.0.3")]);
                Reply::Both(services.to_vec(), both.collect())
            }
            "b.test" => Reply::Records(vec![address(name, "10.0.0.2")]),
            name => Reply::Records(vec![address(name, "10.0.0.9"), address(name, "fd00::3")]),
        }
    });
    let (_asked, all) = posted_by(source(DnsRecords::Services, HOUR_NS, &[&server]));
    assert_eq!(next(&all), "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80 [fd00::1]:80 [fd00::3]:80");
    let names: BTreeSet<String> = questions.try_iter().collect();
    assert_eq!(Vec::from_iter(names), [NAME, "b.test", "c.test"]);
}

/// The addresses of the next list, and its first finding.
fn next_with_finding(all: &Receiver<Posted>) -> (String, String) {
    let list = all.recv_timeout(BOUND).expect("an update").expect("a list");
    let members: Vec<&str> = list.members.iter().map(|member| member.addr.as_str()).collect();
    (members.join(" "), list.left_out.first().map(ToString::to_string).unwrap_or_default())
}

#[test]
fn a_target_without_an_answer_keeps_its_addresses_and_one_that_has_none_is_a_finding() {
    let reply = Arc::new(Mutex::new(Reply::Records(vec![address("b.test", "10.0.0.2")])));
    let shared = reply.clone();
    let (out, look_ups) = channel();
    let server = FakeServer::start(move |name| match name {
        NAME => {
            let _ = out.send(());
            Reply::Records(["a.test", "b.test"].map(|target| service(NAME, 1, 1, target, 80)).to_vec())
        }
        "a.test" => Reply::Records(vec![address(name, "10.0.0.1")]),
        _ => shared.lock().expect("a reply").clone(),
    });
    // Without `hold`: an answer that lacks a member removes it at once.
    let (_asked, all) = posted_by(source(DnsRecords::Services, 0, &[&server]));
    assert_eq!(next(&all), "10.0.0.1:80 10.0.0.2:80");
    replace(&reply, Reply::Code(2));
    let (members, finding) = next_with_finding(&all);
    assert_eq!(members, "10.0.0.1:80 10.0.0.2:80");
    let problem = "the target \"b.test\" of an SRV record gives no answer; its last addresses stay: the name";
    assert!(finding.starts_with(problem), "{finding}");
    let begun = look_ups.try_iter().count();
    assert!(begun > 0);
    // The first of these look-ups has only this answer, and the second begins after it. The list is the same.
    for _ in 0..2 {
        look_ups.recv_timeout(BOUND).expect("a look-up");
    }
    assert!(all.try_recv().is_err());
    replace(&reply, Reply::Code(3));
    let (mut members, mut finding) = next_with_finding(&all);
    if members != "10.0.0.1:80" {
        // One family had the answer of before.
        (members, finding) = next_with_finding(&all);
    }
    assert_eq!(members, "10.0.0.1:80");
    let problem = "the target \"b.test\" of an SRV record has no address at the name servers of `server`";
    assert_eq!(finding, format!("{problem}; see to its A and AAAA records there"));
}

#[test]
fn addresses_that_came_with_an_answer_stay_where_the_next_is_without_them_and_the_target_fails() {
    let comes_alone = Arc::new(AtomicBool::new(false));
    let shared = comes_alone.clone();
    let server = FakeServer::start(move |name| {
        let services = vec![service(NAME, 1, 1, "a.test", 80)];
        match (name, shared.load(SeqCst)) {
            (NAME, false) => Reply::Both(services, vec![address("a.test", "10.0.0.1")]),
            (NAME, true) => Reply::Records(services),
            (_, false) => Reply::Records(Vec::new()),
            (_, true) => Reply::Code(2),
        }
    });
    let (_asked, all) = posted_by(source(DnsRecords::Services, 0, &[&server]));
    assert_eq!(next(&all), "10.0.0.1:80");
    comes_alone.store(true, SeqCst);
    let (members, finding) = next_with_finding(&all);
    assert_eq!(members, "10.0.0.1:80");
    assert!(finding.contains("gives no answer; its last addresses stay: "), "{finding}");
}

#[test]
fn members_of_the_list_before_stay_while_a_target_fails_that_has_no_known_address() {
    let reply = Arc::new(Mutex::new(Reply::Code(2)));
    let shared = reply.clone();
    let server = FakeServer::start(move |name| match name {
        NAME => Reply::Records(["a.test", "b.test"].map(|target| service(NAME, 1, 1, target, 80)).to_vec()),
        "a.test" => Reply::Records(vec![address(name, "10.0.0.1")]),
        _ => shared.lock().expect("a reply").clone(),
    });
    let kind = source(DnsRecords::Services, 0, &[&server]);
    let last = Some(Arc::new(list(&[("10.0.0.1", 1), ("10.0.0.2", 1)])));
    let (_asked, all) = posted_by(FollowedSource { kind, last });
    let (members, finding) = next_with_finding(&all);
    assert_eq!(members, "10.0.0.1:80 10.0.0.2:80");
    assert!(finding.starts_with("the target \"b.test\" of an SRV record has no address: "), "{finding}");
    replace(&reply, Reply::Records(vec![address("b.test", "10.0.0.3")]));
    assert_eq!(next(&all), "10.0.0.1:80 10.0.0.3:80");
}

/// The limit of a look-up of targets ends it.
#[test]
fn a_server_that_is_silent_for_one_family_keeps_no_target_from_the_list() {
    const TARGETS: u8 = 40;
    let server = FakeServer::start(|name| match name {
        NAME => {
            let target = |n: u8| service(NAME, 1, 1, &format!("t{n}.test"), 80);
            Reply::Records((1..=TARGETS).map(target).collect())
        }
        name => {
            let number = name.trim_start_matches('t').trim_end_matches(".test");
            Reply::SilentV6(vec![address(name, &format!("10.0.0.{number}"))])
        }
    });
    let (_asked, all) = posted_by(source(DnsRecords::Services, HOUR_NS, &[&server]));
    let members = next(&all);
    assert_eq!(members.split(' ').count(), usize::from(TARGETS), "{members}");
}

#[test]
fn services_whose_targets_all_fail_are_no_answer() {
    let server = FakeServer::start(|name| match name {
        NAME => Reply::Records(vec![service(NAME, 1, 1, "a.test", 80)]),
        _ => Reply::Code(5),
    });
    let (_asked, all) = posted_by(source(DnsRecords::Services, HOUR_NS, &[&server]));
    let fault = next(&all);
    assert!(fault.starts_with("dns SRV api.test: the name server 127.0.0.1:"), "{fault}");
    assert!(fault.contains(" of a.test: "), "{fault}");
}

#[test]
fn aliases_are_followed_within_an_answer_and_from_one_to_the_next() {
    let all = vec![
        alias(NAME, "blue.test"),
        service("blue.test", 1, 1, "a.test", 80),
        address("a.test", "10.0.0.1"),
    ];
    assert_eq!(first_list(DnsRecords::Services, all), "10.0.0.1:80");
    let server = FakeServer::start(|name| match name {
        "blue.test" => Reply::Records(vec![address(name, "10.0.0.1")]),
        name => Reply::Records(vec![alias(name, "blue.test")]),
    });
    let (_asked, all) = posted_by(source(PORT_80, HOUR_NS, &[&server]));
    assert_eq!(next(&all), "10.0.0.1:80");
}

#[test]
fn a_failure_is_reported_and_takes_nothing_away() {
    let (server, reply) = with_reply(addresses("10.0.0.1"));
    let (_asked, all) = posted_by(source(PORT_80, 0, &[&server]));
    assert_eq!(next(&all), "10.0.0.1:80");
    replace(&reply, Reply::Code(2));
    let fault = next(&all);
    assert!(fault.starts_with("dns api.test:80: the name server 127.0.0.1:"), "{fault}");
    assert!(fault.ends_with(" of api.test: Server Failure; see to the name server"), "{fault}");
    replace(&reply, addresses("10.0.0.1"));
    assert_eq!(next(&all), "10.0.0.1:80");
}

#[test]
fn a_name_that_never_was_is_an_empty_list() {
    let (server, reply) = with_reply(Reply::Code(3));
    let (_asked, all) = posted_by(source(PORT_80, HOUR_NS, &[&server]));
    assert_eq!(next(&all), "");
    replace(&reply, addresses("10.0.0.1"));
    assert_eq!(next(&all), "10.0.0.1:80");
}

#[test]
fn members_that_an_answer_lacks_are_held() {
    let (server, reply) = with_reply(addresses("10.0.0.1 10.0.0.2"));
    let (_asked, held) = posted_by(source(PORT_80, HOUR_NS, &[&server]));
    let (_asked_too, believed) = posted_by(source(PORT_80, 0, &[&server]));
    assert_eq!(next(&held), "10.0.0.1:80 10.0.0.2:80");
    assert_eq!(next(&believed), "10.0.0.1:80 10.0.0.2:80");
    replace(&reply, addresses("10.0.0.3 10.0.0.2"));
    assert_eq!(next(&held), "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    assert_eq!(next(&believed), "10.0.0.2:80 10.0.0.3:80");
}

/// The list of these entries, each a host and a weight.
fn list(entries: &[(&str, u16)]) -> Snapshot {
    let entry = |(host, weight): &(&str, u16)| Entry { host: (*host).to_owned(), port: 80, weight: *weight };
    listed(members(entries.iter().map(entry).collect())).expect("a list")
}

#[test]
fn members_of_the_list_before_are_held_where_the_first_answer_lacks_them() {
    let (server, _) = with_reply(addresses("10.0.0.1 10.0.0.2"));
    let before = list(&[("10.0.0.1", 0), ("10.0.0.2", 0), ("10.0.0.3", 0), ("10.0.0.4", 0)]);
    for (hold_ns, next_list) in [(HOUR_NS, None), (SECOND_NS, Some("10.0.0.1:80 10.0.0.2:80"))] {
        let kind = source(PORT_80, hold_ns, &[&server]);
        let (_asked, all) = posted_by(FollowedSource { kind, last: Some(Arc::new(before.clone())) });
        assert_eq!(next(&all), "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80 10.0.0.4:80");
        if let Some(next_list) = next_list {
            assert_eq!(next(&all), next_list);
        }
    }
}

#[test]
fn entries_are_known_from_the_list_that_they_made() {
    let known = |entries: &[(&str, u16)], records| {
        let shown = |entry: &Entry| format!("{}:{}*{}", entry.host, entry.port, entry.weight);
        let questions = known_entries(&list(entries), records);
        questions.iter().map(|all| all.iter().map(shown).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    // In a list equal weights are 1.
    let both = [("10.0.0.1", 0), ("fd00::1", 0), ("10.0.0.2", 0)];
    assert_eq!(known(&both, PORT_80), ["10.0.0.1:80*1 10.0.0.2:80*1", "fd00::1:80*1"]);
    let services = [("a.test", 30), ("b.test", 0), ("c.test", 65_535), ("10.0.0.1", 10)];
    assert_eq!(
        known(&services, DnsRecords::Services),
        ["a.test:80*30 b.test:80*0 c.test:80*65535 10.0.0.1:80*10"]
    );
}

#[test]
fn the_next_server_is_asked_where_one_refuses() {
    let (refusing, _) = with_reply(Reply::Code(5));
    let (knowing, _) = with_reply(addresses("10.0.0.1"));
    let (_asked, all) = posted_by(source(PORT_80, HOUR_NS, &[&refusing, &knowing]));
    assert_eq!(next(&all), "10.0.0.1:80");
}
