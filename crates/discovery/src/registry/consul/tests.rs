//! Consul on a socket: a stand-in, whose answers wait for the test, as those to blocking queries wait for a
//! change.

use crate::registry::fake::{BOUND, Fake, Reply, next, posted_by};
use crate::registry::{Posted, Registries};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use weir_plan::{ConsulSource, SourceKind};

/// A question without an index.
const ANEW: &str = "/v1/health/service/api?passing=1&stale";

/// A Consul, and a source that asks it.
struct Consul {
    /// The target of each question, and its fields.
    questions: Receiver<(String, String)>,
    answers: Sender<Reply>,
    lists: Receiver<Posted>,
    _registries: Registries,
}

impl Consul {
    fn start(change: impl FnOnce(&mut ConsulSource)) -> Consul {
        let (ask, questions) = channel();
        let (answers, waiting) = channel::<Reply>();
        let waiting = Mutex::new(waiting);
        let fake = Fake::start(move |question| {
            drop(ask.send((question.target.clone(), question.fields.clone())));
            let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.recv_timeout(BOUND).unwrap_or(Reply::Close)
        });
        let mut source = ConsulSource::new(fake.url, "api");
        change(&mut source);
        let (registries, lists) = posted_by(SourceKind::Consul(source));
        Consul { questions, answers, lists, _registries: registries }
    }

    /// Answers the next question. Returns that.
    fn answer(&self, reply: Reply) -> String {
        let (target, _) = self.questions.recv_timeout(BOUND).expect("a question");
        self.answers.send(reply).expect("a Consul that waits");
        target
    }

    /// The next list or fault.
    fn next(&self) -> String {
        next(&self.lists)
    }
}

/// A question that waits for a change.
fn after(index: u64) -> String {
    format!("/v1/health/service/api?index={index}&wait=5m&passing=1&stale")
}

/// The fields of a list.
fn list_fields(index: u64) -> Vec<String> {
    vec![format!("X-Consul-Index: {index}"), "Content-Type: application/json".to_owned()]
}

/// The instances with these numbers: `n1/api` at 10.0.0.1:80.
fn list(index: u64, instances: &[u8]) -> Reply {
    let entries = instances.iter().map(|n| {
        format!(
            r#"{{"Node": {{"Node": "n{n}", "Address": "10.0.0.{n}"}},
                "Service": {{"ID": "api", "Address": "", "Port": 80}}}}"#
        )
    });
    let text = format!("[{}]", entries.collect::<Vec<_>>().join(","));
    Reply::Other(200, list_fields(index), text)
}

/// An answer without an index.
fn other(status: u16, kind: &str, body: &str) -> Reply {
    Reply::Other(status, vec![format!("Content-Type: {kind}")], body.to_owned())
}

#[test]
fn each_question_waits_for_the_index_after_the_one_before() {
    let consul = Consul::start(|_| ());
    assert_eq!(consul.answer(list(7, &[1])), ANEW);
    assert_eq!(consul.next(), "10.0.0.1:80#n1/api");
    assert_eq!(consul.answer(list(12, &[2, 1])), after(7));
    assert_eq!(consul.next(), "10.0.0.1:80#n1/api 10.0.0.2:80#n2/api");
    // An unknown service has an empty list.
    assert_eq!(consul.answer(list(13, &[])), after(12));
    assert_eq!(consul.next(), "");
    assert_eq!(consul.answer(list(14, &[3])), after(13));
    assert_eq!(consul.next(), "10.0.0.3:80#n3/api");
}

#[test]
fn an_index_that_moves_without_a_change_gives_no_list() {
    let consul = Consul::start(|_| ());
    assert_eq!(consul.answer(list(7, &[1, 2])), ANEW);
    assert_eq!(consul.answer(list(8, &[1, 2])), after(7));
    // Nor does another order, or the end of the wait, with the index of before.
    assert_eq!(consul.answer(list(9, &[2, 1])), after(8));
    assert_eq!(consul.answer(list(9, &[1, 2])), after(9));
    assert_eq!(consul.answer(list(10, &[2])), after(9));
    assert_eq!(consul.next(), "10.0.0.1:80#n1/api 10.0.0.2:80#n2/api");
    assert_eq!(consul.next(), "10.0.0.2:80#n2/api");
}

#[test]
fn an_index_that_goes_back_or_is_0_begins_anew() {
    let consul = Consul::start(|_| ());
    assert_eq!(consul.answer(list(70, &[1])), ANEW);
    assert_eq!(consul.answer(list(3, &[2])), after(70));
    assert_eq!(consul.answer(list(4, &[3])), ANEW);
    assert_eq!(consul.answer(list(0, &[4])), after(4));
    assert_eq!(consul.answer(list(0, &[5])), ANEW);
    assert_eq!(consul.answer(list(5, &[6])), ANEW);
    assert_eq!(consul.answer(list(6, &[7])), after(5));
    for n in 1..=7 {
        assert_eq!(consul.next(), format!("10.0.0.{n}:80#n{n}/api"));
    }
}

#[test]
fn there_are_at_most_ten_questions_a_second() {
    let begun = Instant::now();
    let consul = Consul::start(|_| ());
    // The list is the same, and so only the questions are apart.
    for index in 1..=5 {
        consul.answer(list(index, &[1]));
    }
    assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
}

#[test]
fn a_question_has_the_sources_filters_and_its_token() {
    let token = std::env::temp_dir().join(format!("weir-consul-token-{}", std::process::id()));
    std::fs::write(&token, "secret-1\n").expect("a file");
    let consul = Consul::start(|source| {
        source.service = "a b".to_owned();
        source.tag = Some("blue/1".to_owned());
        source.datacenter = Some("dc2".to_owned());
        source.passing = false;
        source.stale = false;
        source.token = token.to_str().map(str::to_owned);
    });
    let (target, fields) = consul.questions.recv_timeout(BOUND).expect("a question");
    drop(std::fs::remove_file(&token));
    assert_eq!(target, "/v1/health/service/a%20b?tag=blue%2F1&dc=dc2");
    assert!(fields.contains("x-consul-token: secret-1\n"), "{fields}");
    // Whatever the checks say, which are not read.
    consul.answers.send(list(7, &[1])).expect("a Consul that waits");
    assert_eq!(consul.next(), "10.0.0.1:80#n1/api");
}

#[test]
fn a_token_that_is_missing_is_a_fault_and_no_question() {
    let consul = Consul::start(|source| source.token = Some("/nowhere/token".to_owned()));
    let fault = consul.next();
    assert!(fault.contains("/nowhere/token") && fault.contains("write the token"), "{fault}");
    assert!(consul.questions.try_recv().is_err());
}

#[test]
fn after_a_failure_the_list_is_asked_for_anew_and_given_again() {
    let consul = Consul::start(|_| ());
    assert_eq!(consul.answer(list(7, &[1])), ANEW);
    assert_eq!(consul.next(), "10.0.0.1:80#n1/api");
    assert_eq!(consul.answer(other(500, "text/plain", "No cluster leader")), after(7));
    let fault = consul.next();
    assert!(fault.contains("answers 500") && fault.contains("elected no leader"), "{fault}");
    // Each kind of fault is said once.
    assert_eq!(consul.answer(other(500, "text/plain", "No cluster leader")), ANEW);
    assert_eq!(consul.answer(list(7, &[1])), ANEW);
    assert_eq!(consul.next(), "10.0.0.1:80#n1/api");
    assert_eq!(consul.answer(list(8, &[2])), after(7));
    assert_eq!(consul.next(), "10.0.0.2:80#n2/api");
}

#[test]
fn what_is_no_list_of_consuls_is_a_fault() {
    let moved = Reply::Other(301, vec!["Location: /v1/health/service/api".to_owned()], String::new());
    let mut fields = list_fields(9);
    fields.push("X-Consul-Results-Filtered-By-ACLs: true".to_owned());
    let hidden = Reply::Other(200, fields, "[]".to_owned());
    for (reply, words) in [
        (other(200, "text/html", "<html>"), "text/html"),
        (other(200, "application/json", "{}"), "X-Consul-Index"),
        (Reply::Other(200, list_fields(9), "{\"a\": 1}".to_owned()), "no list of a service's instances"),
        (hidden, "`service \"api\" { policy = \"read\" }`"),
        (moved, "redirects to /v1/health/service/api"),
    ] {
        let consul = Consul::start(|_| ());
        assert_eq!(consul.answer(reply), ANEW);
        let fault = consul.next();
        assert!(fault.starts_with("consul api: ") && fault.contains(words), "{fault}");
    }
}

#[test]
fn an_answer_that_does_not_end_is_cut_off() {
    let consul = Consul::start(|_| ());
    let (more, lines) = sync_channel(1);
    // It ends when the connection does, and with it what takes the lines.
    std::thread::spawn(move || while more.send(" ".repeat(1 << 20)).is_ok() {});
    assert_eq!(consul.answer(Reply::Lines(lines)), ANEW);
    let fault = consul.next();
    assert!(fault.contains("more than 64 MiB"), "{fault}");
    assert_eq!(consul.answer(list(7, &[1])), ANEW);
    assert_eq!(consul.next(), "10.0.0.1:80#n1/api");
}
