//! Tests of what answers amount to, with times as arguments.

use super::*;
use crate::fault::FaultKind;
use std::collections::BTreeSet;
use weir_stats::Key;

const S: u64 = 1_000_000_000;

fn found(hosts: &str, ttl_s: u64) -> Answer {
    let entry = |host: &str| Entry { host: host.to_owned(), port: 80, weight: 0 };
    Answer::new(hosts.split_whitespace().map(entry).collect(), ttl_s * S)
}

fn failed() -> Answer {
    Answer::Failed(Defect::new(FaultKind::Unreachable, "no server answers", "see to it"))
}

fn hosts(answers: &Answers) -> String {
    answers.entries().into_iter().map(|entry| entry.host).collect::<Vec<_>>().join(" ")
}

/// What the answers at this second lead to: the hosts, and the time until the next look-up, s.
fn after(answers: &mut Answers, now_s: u64, all: &[Answer]) -> (String, u64) {
    match answers.apply(now_s * S, all.to_vec(), 0.0) {
        Step::Listed { wait_ns } => (hosts(answers), wait_ns / S),
        Step::Failed(defect) => (format!("{}: {}", defect.problem, hosts(answers)), 0),
    }
}

fn list(hosts: &str, wait_s: u64) -> (String, u64) {
    (hosts.to_owned(), wait_s)
}

#[test]
fn an_answer_holds_for_its_ttl_within_bounds_and_has_no_order() {
    let mut answers = Answers::new(30 * S);
    assert_eq!(after(&mut answers, 0, &[found("b a", 5)]), list("a b", 5));
    assert_eq!(after(&mut answers, 5, &[found("a b", 0)]), list("a b", 1));
    assert_eq!(after(&mut answers, 6, &[found("b a", 86_400)]), list("a b", 60));
}

#[test]
fn an_entry_goes_when_all_answers_of_hold_lacked_it() {
    let mut answers = Answers::new(30 * S);
    after(&mut answers, 0, &[found("a b", 60)]);
    // The answer before held for a minute: that time does not count.
    assert_eq!(after(&mut answers, 60, &[found("a", 60)]), list("a b", 30));
    assert_eq!(after(&mut answers, 89, &[found("a", 5)]), list("a b", 1));
    assert_eq!(after(&mut answers, 90, &[found("a", 60)]), list("a", 60));
    // One that has it begins the time anew.
    after(&mut answers, 100, &[found("a b", 5)]);
    after(&mut answers, 105, &[found("a", 5)]);
    after(&mut answers, 130, &[found("a b", 5)]);
    assert_eq!(after(&mut answers, 136, &[found("a", 5)]), list("a b", 5));
    assert_eq!(after(&mut answers, 165, &[found("a", 5)]), list("a b", 1));
    assert_eq!(after(&mut answers, 166, &[found("a", 5)]), list("a", 5));
}

/// The entries of a list of before that has these hosts, each with the weight 1.
fn listed_before(hosts: &str) -> Vec<Entry> {
    let entry = |host: &str| Entry { host: host.to_owned(), port: 80, weight: 1 };
    hosts.split_whitespace().map(entry).collect()
}

#[test]
fn the_entries_of_a_list_of_before_are_held_from_the_first_answer_that_lacks_them() {
    let mut answers = Answers::new(30 * S);
    answers.seed(vec![listed_before("a b c d")]);
    assert_eq!(after(&mut answers, 100, &[failed()]), list("no server answers: a b c d", 0));
    assert_eq!(after(&mut answers, 110, &[found("a b", 60)]), list("a b c d", 30));
    assert_eq!(after(&mut answers, 139, &[found("a b", 5)]), list("a b c d", 1));
    assert_eq!(after(&mut answers, 140, &[found("a b", 60)]), list("a b", 60));
    // Of each family, and denials as ever.
    let mut answers = Answers::new(0);
    answers.seed(vec![listed_before("10.0.0.1"), listed_before("fd00::1")]);
    assert_eq!(after(&mut answers, 0, &[found("10.0.0.2", 5), failed()]), list("10.0.0.2 fd00::1", 5));
    let mut answers = Answers::new(0);
    answers.seed(vec![listed_before("a")]);
    let kept = [0, 1, 3].map(|now_s| after(&mut answers, now_s, &[Answer::Denied]).0);
    assert_eq!(kept, ["a", "a", ""]);
}

#[test]
fn entries_of_a_list_of_before_have_the_weights_that_an_answer_gives_to_equal_ones() {
    for (weight, wanted) in [(0, 0), (1, 1), (7, 1)] {
        let mut answers = Answers::new(30 * S);
        answers.seed(vec![listed_before("a b")]);
        assert_eq!(after(&mut answers, 0, &[Answer::Denied]), list("a b", 1));
        let entry = Entry { host: "a".to_owned(), port: 80, weight };
        answers.apply(S, vec![Answer::new(vec![entry], S)], 0.0);
        let weights: Vec<u16> = answers.entries().iter().map(|entry| entry.weight).collect();
        assert_eq!(weights, [weight, wanted]);
    }
    let mut answers = Answers::new(30 * S);
    let unequal = listed_before("a b").into_iter().zip([3, 1]);
    answers.seed(vec![unequal.map(|(entry, weight)| Entry { weight, ..entry }).collect()]);
    answers.apply(S, vec![found("c", 5)], 0.0);
    let weights: Vec<u16> = answers.entries().iter().map(|entry| entry.weight).collect();
    assert_eq!(weights, [3, 1, 0]);
}

#[test]
fn failures_are_no_answers() {
    let mut answers = Answers::new(10 * S);
    assert_eq!(after(&mut answers, 0, &[failed()]), list("no server answers: ", 0));
    after(&mut answers, 1, &[found("a b", 5)]);
    assert_eq!(after(&mut answers, 1_000, &[failed()]), list("no server answers: a b", 0));
    assert_eq!(after(&mut answers, 1_001, &[found("a", 5)]), list("a b", 5));
    assert_eq!(after(&mut answers, 9_000, &[failed()]), list("no server answers: a b", 0));
    assert_eq!(after(&mut answers, 9_001, &[found("a", 5)]), list("a", 5));
}

#[test]
fn denials_lack_every_entry_and_count_after_three_in_a_row() {
    let mut answers = Answers::new(0);
    assert_eq!(after(&mut answers, 0, &[Answer::Denied]), list("", 1));
    after(&mut answers, 1, &[found("a b", 5)]);
    assert_eq!(after(&mut answers, 6, &[Answer::Denied]), list("a b", 1));
    assert_eq!(after(&mut answers, 7, &[Answer::Denied]), list("a b", 2));
    after(&mut answers, 8, &[failed()]);
    assert_eq!(after(&mut answers, 9, &[Answer::Denied]), list("a b", 1));
    assert_eq!(after(&mut answers, 10, &[Answer::Denied]), list("a b", 2));
    assert_eq!(after(&mut answers, 12, &[Answer::Denied]), list("", 4));
    let waits = [8, 16, 30, 30].map(|_| after(&mut answers, 20, &[Answer::Denied]).1);
    assert_eq!(waits, [8, 16, 30, 30]);

    let mut answers = Answers::new(30 * S);
    after(&mut answers, 0, &[found("a", 5)]);
    let kept = [5, 6, 8, 12, 20].map(|now_s| after(&mut answers, now_s, &[Answer::Denied]));
    assert_eq!(kept, [1, 2, 4, 8, 15].map(|wait_s| list("a", wait_s)));
    assert_eq!(after(&mut answers, 35, &[Answer::Denied]), list("", 30));
}

#[test]
fn one_family_of_addresses_says_nothing_about_the_other() {
    let mut answers = Answers::new(0);
    assert_eq!(after(&mut answers, 0, &[found("10.0.0.1", 5), failed()]), list("10.0.0.1", 5));
    assert_eq!(
        after(&mut answers, 5, &[found("10.0.0.2", 9), found("fd00::1", 7)]),
        list("10.0.0.2 fd00::1", 7)
    );
    assert_eq!(after(&mut answers, 10, &[found("10.0.0.2", 5), failed()]), list("10.0.0.2 fd00::1", 5));
    assert_eq!(
        after(&mut answers, 15, &[Answer::Denied, failed()]),
        list("no server answers: 10.0.0.2 fd00::1", 0)
    );
    // The name has addresses: that it has none of this family is an answer as others are.
    assert_eq!(after(&mut answers, 20, &[found("10.0.0.2", 5), Answer::Denied]), list("10.0.0.2", 5));
}

#[test]
fn an_answer_that_may_lack_addresses_of_a_family_takes_none_of_it_away() {
    let partial = |hosts: &str, unknown: &[Family]| match found(hosts, 5) {
        Answer::Found(entries, ttl_ns) => Answer::Partial(entries, ttl_ns, unknown.to_vec()),
        other => other,
    };
    let mut answers = Answers::new(10 * S);
    let all = "10.0.0.1 10.0.0.2 fd00::1 fd00::2";
    assert_eq!(after(&mut answers, 0, &[found(all, 5)]), list(all, 5));
    // No time begins for the families that are not known, however long that lasts.
    assert_eq!(after(&mut answers, 5, &[partial("10.0.0.1", &Family::ALL)]), list(all, 5));
    assert_eq!(after(&mut answers, 100, &[partial("10.0.0.1", &[Family::V6])]), list(all, 5));
    assert_eq!(
        after(&mut answers, 110, &[partial("10.0.0.1 10.0.0.3", &[Family::V6])]),
        list("10.0.0.1 10.0.0.3 fd00::1 fd00::2", 5)
    );
    // A time that has begun goes on, but only an answer that knows the family removes.
    assert_eq!(
        after(&mut answers, 111, &[found("10.0.0.1 fd00::1", 5)]),
        list("10.0.0.1 10.0.0.3 fd00::1 fd00::2", 5)
    );
    assert_eq!(
        after(&mut answers, 121, &[partial("10.0.0.1 fd00::1", &Family::ALL)]),
        list("10.0.0.1 10.0.0.3 fd00::1 fd00::2", 5)
    );
    assert_eq!(after(&mut answers, 122, &[found("10.0.0.1 fd00::1", 5)]), list("10.0.0.1 fd00::1", 5));
}

#[test]
fn partial_answers_with_other_entries_each_time_fill_no_memory() {
    let mut answers = Answers::new(u64::MAX);
    for i in 0..12_u64 {
        let entry = |n: u64| Entry { host: format!("10.{i}.{}.{}", n / 200, n % 200), port: 80, weight: 0 };
        let entries = (0..10_000).map(entry).collect();
        answers.apply(i * S, vec![Answer::Partial(entries, S, Family::ALL.to_vec())], 0.0);
    }
    assert_eq!(answers.entries().len(), MOST_MEMBERS);
}

/// What is known of a host from the answers alone.
#[derive(Clone, Copy)]
struct Sight {
    last_ns: u64,
    lacking_ns: Option<u64>,
}

/// A drawn answer with some of six hosts, a denial, or none.
fn drawn(key: Key) -> Answer {
    let bits = key.nth(1).bits();
    let hosts: Vec<String> = (0..6).filter(|i| (bits >> i) & 1 == 1).map(|i| format!("h{i}")).collect();
    match key.nth(2).below(8) {
        0 | 1 => failed(),
        2 => Answer::Denied,
        _ => found(&hosts.join(" "), key.nth(3).below(90)),
    }
}

fn reversed(answer: Answer) -> Answer {
    match answer {
        Answer::Found(entries, ttl_ns) => Answer::Found(entries.into_iter().rev().collect(), ttl_ns),
        other => other,
    }
}

#[test]
fn no_entry_goes_before_hold_is_over_and_none_stays_after_it() {
    for seed in 0..300 {
        let key = Key::new(seed);
        let hold_ns = key.nth(0).below(60 * S);
        let (mut answers, mut again) = (Answers::new(hold_ns), Answers::new(hold_ns));
        let mut sights: BTreeMap<String, Sight> = BTreeMap::new();
        let mut now_ns = 0;
        for i in 1..100 {
            let key = key.with(i);
            now_ns += key.nth(0).below(20 * S);
            let (answer, before) = (drawn(key), answers.entries());
            let step = answers.apply(now_ns, vec![answer.clone()], 0.5);
            assert_eq!(step, again.apply(now_ns, vec![reversed(answer.clone())], 0.5), "seed {seed}");
            assert_eq!(answers.entries(), again.entries(), "seed {seed}");
            let present: BTreeSet<String> = match &answer {
                Answer::Found(entries, _) | Answer::Partial(entries, ..) => {
                    entries.iter().map(|entry| entry.host.clone()).collect()
                }
                Answer::Denied => BTreeSet::new(),
                Answer::Failed(_) => {
                    assert_eq!(answers.entries(), before, "seed {seed}: a failure changes nothing");
                    continue;
                }
            };
            for (host, sight) in &mut sights {
                if !present.contains(host) {
                    sight.lacking_ns.get_or_insert(now_ns);
                }
            }
            for host in present {
                sights.insert(host, Sight { last_ns: now_ns, lacking_ns: None });
            }
            let listed: BTreeSet<String> = answers.entries().into_iter().map(|entry| entry.host).collect();
            assert!(listed.iter().all(|host| sights.contains_key(host)), "seed {seed}");
            sights.retain(|host, sight| {
                let is_over = sight.lacking_ns.is_some_and(|since_ns| now_ns - since_ns >= hold_ns);
                let is_listed = listed.contains(host);
                assert!(is_listed || (is_over && now_ns - sight.last_ns >= hold_ns), "seed {seed}: {host}");
                assert!(!(is_listed && is_over && answer.is_found()), "seed {seed}: {host}");
                is_listed
            });
        }
    }
}

#[test]
fn a_server_that_gives_other_entries_each_time_fills_no_memory() {
    let mut answers = Answers::new(u64::MAX);
    for i in 0..12_u64 {
        let entry = |n: u64| Entry { host: format!("h{i}-{n}"), port: 80, weight: 0 };
        answers.apply(i * S, vec![Answer::new((0..10_000).map(entry).collect(), S)], 0.0);
    }
    let entries = answers.entries();
    assert_eq!(entries.len(), MOST_MEMBERS);
    let oldest = entries.iter().any(|entry| entry.host.starts_with("h0-"));
    let newest = entries.iter().filter(|entry| entry.host.starts_with("h11-")).count();
    assert_eq!((oldest, newest), (false, 10_000));
}
