//! The questions as an API server sees them, and the lists that its answers make; and slices for the tests
//! beside this.

use super::super::fake::{BOUND, Fake, Question, Reply, next, posted_by};
use super::super::{Posted, Registries};
use crate::file::folder::Folder;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use weir_plan::{KubernetesPort, KubernetesSource, SourceKind};

/// A slice of endpoints `"HOST"` (ready), or `"HOST ending"`, `"HOST serving"` (both terminate) and `"HOST
/// down"`.
pub(super) fn slice(name: &str, ports: &[(&str, i64)], endpoints: &[&str]) -> String {
    let endpoint = |endpoint: &&str| {
        let (host, kind) = endpoint.split_once(' ').unwrap_or((*endpoint, "up"));
        let conditions = match kind {
            "up" => json!({"ready": true}),
            "ending" => json!({"ready": false, "serving": false, "terminating": true}),
            "serving" => json!({"ready": false, "serving": true, "terminating": true}),
            _ => json!({"ready": false, "serving": false, "terminating": false}),
        };
        let target = json!({"kind": "Pod", "name": "web", "uid": format!("u{host}")});
        json!({"addresses": [host], "conditions": conditions, "targetRef": target})
    };
    let ports = ports.iter().map(|(name, port)| json!({"name": name, "port": port, "protocol": "TCP"}));
    let slice = json!({
        "addressType": "IPv4",
        "metadata": {"name": name},
        "endpoints": endpoints.iter().map(endpoint).collect::<Vec<_>>(),
        "ports": ports.collect::<Vec<_>>(),
    });
    slice.to_string()
}

/// A page of a list.
pub(super) fn page(version: &str, next: &str, slices: &[String]) -> String {
    let metadata = json!({"resourceVersion": version, "continue": next});
    format!(r#"{{"kind": "EndpointSliceList", "metadata": {metadata}, "items": [{}]}}"#, slices.join(","))
}

/// An event of a watch about a slice.
pub(super) fn event(kind: &str, version: &str, slice: &str) -> String {
    let metadata = format!(r#""metadata":{{"resourceVersion":"{version}","#);
    let object = slice.replacen(r#""metadata":{"#, &metadata, 1);
    format!(r#"{{"type":"{kind}","object":{object}}}"#)
}

const EXPIRED: &str = r#"{"type":"ERROR","object":{"kind":"Status","reason":"Expired","code":410}}"#;

/// The beginning of what says where the API server was found.
const TRACED: &str = " (asked as the kubeconfig ";

fn web(name: &str, endpoints: &[&str]) -> String {
    slice(name, &[("http", 80)], endpoints)
}

fn list(version: &str, slices: &[String]) -> Reply {
    Reply::Json(page(version, "", slices))
}

/// A service that is followed, at a server whose answers were written before.
struct FakeCluster {
    asked: Receiver<String>,
    posted: Receiver<Posted>,
    _registries: Registries,
    _folder: Folder,
}

/// Follows a service. Lists and watches are answered in turn; after the last list there is none, after the
/// last watch one without an end.
fn serve(name: &str, port: Option<KubernetesPort>, lists: Vec<Reply>, watches: Vec<Reply>) -> FakeCluster {
    let (out, asked) = channel();
    let answers = Mutex::new((VecDeque::from(lists), VecDeque::from(watches)));
    let fake = Fake::start(move |question: &Question| {
        let _ = out.send(question.target.clone());
        let mut answers = answers.lock().expect("no panic");
        if question.target.contains("&watch=1") {
            return answers.1.pop_front().unwrap_or_else(endless);
        }
        answers.0.pop_front().unwrap_or_else(|| Reply::Other(500, Vec::new(), String::new()))
    });
    let (source, folder) = source(name, &fake, port, "token: t-1");
    let (registries, posted) = posted_by(source);
    FakeCluster { asked, posted, _registries: registries, _folder: folder }
}

/// A watch that gives nothing.
fn endless() -> Reply {
    let (out, lines) = channel();
    std::mem::forget(out);
    Reply::Lines(lines)
}

/// The source of a service at this server, by a kubeconfig whose user has this field.
fn source(name: &str, fake: &Fake, port: Option<KubernetesPort>, user: &str) -> (SourceKind, Folder) {
    let folder = Folder::new(&format!("kubernetes-{name}"));
    let text = format!(
        "current-context: a\n\
         contexts: [{{name: a, context: {{cluster: a, user: a, namespace: shop}}}}]\n\
         clusters: [{{name: a, cluster: {{server: \"{}\"}}}}]\n\
         users: [{{name: a, user: {{{user}}}}}]\n",
        fake.url
    );
    folder.write("config", text);
    let kubeconfig = Some(folder.path("config").display().to_string());
    let (service, namespace) = ("web".to_owned(), None);
    (SourceKind::Kubernetes(KubernetesSource { service, namespace, port, kubeconfig }), folder)
}

impl FakeCluster {
    /// The next list without ids, or the next fault.
    fn next(&self) -> String {
        let text = next(&self.posted);
        if text.starts_with("kubernetes web") {
            return text;
        }
        let members = text.split_whitespace().map(|member| match member.split_once('#') {
            Some((addr, id)) if id.ends_with("!drain") => format!("{addr}!"),
            Some((addr, _)) => addr.to_owned(),
            None => member.to_owned(),
        });
        members.collect::<Vec<_>>().join(" ")
    }

    /// What was asked next.
    fn question(&self) -> String {
        self.asked.recv_timeout(BOUND).expect("a question")
    }
}

#[test]
fn a_service_is_listed_and_then_watched() {
    let (out, lines) = channel();
    let all = [web("a", &["10.0.0.1", "10.0.0.2 down"]), web("b", &["10.0.0.3"])];
    let served = serve("watch", None, vec![list("5", &all)], vec![Reply::Lines(lines)]);
    assert_eq!(served.next(), "10.0.0.1:80 10.0.0.3:80");
    let path = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices\
                ?labelSelector=kubernetes.io/service-name%3Dweb";
    assert_eq!(served.question(), format!("{path}&limit=500"));
    let watch = served.question();
    let rest = watch.strip_prefix(path).expect("the same path");
    let time = rest.strip_prefix("&watch=1&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=");
    let time: u64 = time.and_then(|time| time.parse().ok()).expect(rest);
    assert!((240..=300).contains(&time), "{time}");
    let send = |kind: &str, version: &str, slice: &str| {
        out.send(event(kind, version, slice)).expect("a watch");
    };
    send("MODIFIED", "6", &web("a", &["10.0.0.1 serving", "10.0.0.2"]));
    assert_eq!(served.next(), "10.0.0.1:80! 10.0.0.2:80 10.0.0.3:80");
    send("DELETED", "7", &web("b", &["10.0.0.3"]));
    assert_eq!(served.next(), "10.0.0.1:80! 10.0.0.2:80");
    send("ADDED", "8", &web("c", &["fd00::4"]));
    assert_eq!(served.next(), "10.0.0.1:80! 10.0.0.2:80 [fd00::4]:80");
    send("MODIFIED", "9", &web("a", &[]));
    assert_eq!(served.next(), "[fd00::4]:80");
}

#[test]
fn what_events_take_away_is_stated_and_what_a_list_lacks_is_not() {
    let (out, lines) = channel();
    let lists = vec![
        list("5", &[web("a", &["10.0.0.1", "10.0.0.2", "10.0.0.3 down"])]),
        list("9", &[web("b", &["10.0.0.4", "10.0.0.5 down"])]),
    ];
    let served = serve("stated", None, lists, vec![Reply::Lines(lines)]);
    let departures = || {
        let list = served.posted.recv_timeout(BOUND).expect("a list").expect("no fault");
        list.departures.iter().map(|gone| gone.addr.clone()).collect::<Vec<_>>()
    };
    assert_eq!(departures(), ["10.0.0.3:80"]);
    out.send(event("MODIFIED", "6", &web("a", &["10.0.0.1"]))).expect("a watch");
    assert_eq!(departures(), ["10.0.0.2:80"]);
    out.send(EXPIRED.to_owned()).expect("a watch");
    assert_eq!(departures(), ["10.0.0.5:80"]);
}

#[test]
fn after_an_error_in_the_stream_another_list_replaces_the_first_at_once() {
    let (out, lines) = channel();
    let lists = vec![list("5", &[web("a", &["10.0.0.1"])]), list("9", &[web("b", &["10.0.0.2"])])];
    let served = serve("expired", None, lists, vec![Reply::Lines(lines)]);
    assert_eq!(served.next(), "10.0.0.1:80");
    out.send(EXPIRED.to_owned()).expect("a watch");
    assert_eq!(served.next(), "10.0.0.2:80");
    let questions: Vec<String> = (0..4).map(|_| served.question()).collect();
    assert!(questions[1].contains("resourceVersion=5&"), "{questions:?}");
    assert!(questions[2].ends_with("&limit=500"), "{questions:?}");
    assert!(questions[3].contains("resourceVersion=9&"), "{questions:?}");
}

#[test]
fn a_watch_that_breaks_without_a_word_is_no_fault() {
    let lists = vec![list("5", &[web("a", &["10.0.0.1"])]), list("9", &[web("a", &["10.0.0.2"])])];
    let served = serve("broken", None, lists, vec![Reply::Close]);
    assert_eq!(served.next(), "10.0.0.1:80");
    assert_eq!(served.next(), "10.0.0.2:80");
}

#[test]
fn a_watch_whose_time_is_over_goes_on_from_the_last_bookmark() {
    let (out, lines) = channel();
    let (again, later) = channel();
    let watches = vec![Reply::Lines(lines), Reply::Lines(later)];
    let served = serve("bookmark", None, vec![list("5", &[web("a", &["10.0.0.1"])])], watches);
    assert_eq!(served.next(), "10.0.0.1:80");
    out.send(event("BOOKMARK", "77", &web("", &[]))).expect("a watch");
    drop(out);
    again.send(event("MODIFIED", "78", &web("a", &["10.0.0.2"]))).expect("a watch");
    assert_eq!(served.next(), "10.0.0.2:80");
    let questions: Vec<String> = (0..3).map(|_| served.question()).collect();
    assert!(questions[1].contains("resourceVersion=5&"), "{questions:?}");
    assert!(questions[2].contains("resourceVersion=77&"), "{questions:?}");
}

#[test]
fn pages_are_one_list() {
    let lists = vec![
        Reply::Json(page("5", "k/1=", &[web("a", &["10.0.0.1"])])),
        Reply::Json(page("5", "", &[web("b", &["10.0.0.2"])])),
    ];
    let served = serve("pages", None, lists, vec![]);
    assert_eq!(served.next(), "10.0.0.1:80 10.0.0.2:80");
    assert!(served.question().ends_with("&limit=500"));
    assert!(served.question().ends_with("&limit=500&continue=k%2F1%3D"));
}

#[test]
fn a_list_whose_version_is_forgotten_between_its_pages_begins_again() {
    let lists = vec![
        Reply::Json(page("5", "k", &[web("a", &["10.0.0.1"])])),
        Reply::Other(410, Vec::new(), "{}".to_owned()),
        list("9", &[web("b", &["10.0.0.2"])]),
    ];
    let served = serve("forgotten", None, lists, vec![]);
    assert_eq!(served.next(), "10.0.0.2:80");
}

#[test]
fn a_service_that_is_unknown_is_an_empty_list() {
    let (out, lines) = channel();
    let served = serve("unknown", None, vec![list("5", &[])], vec![Reply::Lines(lines)]);
    assert_eq!(served.next(), "");
    out.send(event("ADDED", "6", &web("a", &["10.0.0.1"]))).expect("a watch");
    assert_eq!(served.next(), "10.0.0.1:80");
}

#[test]
fn missing_rights_are_a_sentence_with_the_rule() {
    let forbidden = || Reply::Other(403, Vec::new(), r#"{"kind": "Status", "code": 403}"#.to_owned());
    let rule = "(of `kubeconfig=`) says); bind a Role in \"shop\" to its user with the rule \
                apiGroups: [\"discovery.k8s.io\"], resources: [\"endpointslices\"], \
                verbs: [\"get\", \"list\", \"watch\"]";
    let served = serve("forbidden", None, vec![forbidden(), list("5", &[web("a", &["10.0.0.1"])])], vec![]);
    let word = served.next();
    let problem = format!("EndpointSlices in the namespace \"shop\"{TRACED}");
    assert!(word.contains(rule) && word.contains(&problem), "{word}");
    assert_eq!(served.next(), "10.0.0.1:80");
    // The right to list is not the right to watch.
    let one = || list("5", &[web("a", &["10.0.0.1"])]);
    let served = serve("unwatched", None, vec![one(), one()], vec![forbidden()]);
    assert_eq!(served.next(), "10.0.0.1:80");
    let word = served.next();
    assert!(word.contains(rule), "{word}");
    assert_eq!(served.next(), "10.0.0.1:80");
}

#[test]
fn answers_that_are_no_list_are_faults_and_the_next_list_counts() {
    let html = vec!["Content-Type: text/html".to_owned()];
    let moved = vec!["Location: /login".to_owned()];
    let lists = vec![
        Reply::Other(200, html, "<html>".to_owned()),
        Reply::Json("[".repeat(10_000)),
        Reply::Other(302, moved, String::new()),
        list("5", &[web("a", &["10.0.0.1"])]),
    ];
    let served = serve("no-list", None, lists, vec![]);
    let words = [served.next(), served.next()];
    assert!(words[0].contains("answers with text/html"), "{words:?}");
    assert!(words[1].contains("a list that cannot be read"), "{words:?}");
    assert!(words.iter().all(|word| word.contains(TRACED)), "{words:?}");
    // It is of the first one's kind, and so is not said again.
    assert_eq!(served.next(), "10.0.0.1:80");
}

/// A context of another cluster may lead to any server.
#[test]
fn faults_of_a_server_name_the_kubeconfig_that_leads_to_it() {
    let not_found = Reply::Other(404, Vec::new(), String::new());
    let lists = vec![not_found, Reply::Close, list("5", &[web("a", &["10.0.0.1"])])];
    let served = serve("traced", None, lists, vec![]);
    for says in ["answers 404", "gives no whole answer"] {
        let word = served.next();
        assert!(word.contains(says) && word.contains(TRACED), "{word}");
    }
    assert_eq!(served.next(), "10.0.0.1:80");
}

#[test]
fn a_port_that_is_missing_or_ambiguous_is_a_fault_that_names_those_there_are() {
    let two = slice("a", &[("http", 80), ("admin", 81)], &["10.0.0.1"]);
    let served = serve("ports", None, vec![list("5", std::slice::from_ref(&two))], vec![]);
    assert!(served.next().contains("several ports: \"admin\" (81), \"http\" (80)"));
    let port = Some(KubernetesPort::Number(81));
    let served = serve("port", port, vec![list("5", &[two])], vec![]);
    assert_eq!(served.next(), "10.0.0.1:81");
}

#[test]
fn a_token_that_is_renewed_on_disk_is_read_anew() {
    let fake = Fake::start(|question| {
        if !question.fields.contains("authorization: Bearer new\n") {
            return Reply::Other(401, Vec::new(), String::new());
        }
        match question.target.contains("&watch=1") {
            true => endless(),
            false => list("5", &[web("a", &["10.0.0.1"])]),
        }
    });
    let (source, folder) = source("token", &fake, None, "tokenFile: token");
    folder.write("token", "old\n");
    let (_registries, posted) = posted_by(source);
    assert!(next(&posted).contains("answers 401"));
    folder.write("new", "new\n");
    std::fs::rename(folder.path("new"), folder.path("token")).expect("a file");
    assert_eq!(next(&posted), "10.0.0.1:80#u10.0.0.1");
}

#[test]
fn fifty_slices_that_change_at_once_end_in_their_last_state() {
    let hosts: Vec<Vec<String>> =
        (0..50).map(|i| (0..100).map(|j| format!("10.0.{i}.{j}")).collect()).collect();
    let all = |word: &str| -> Vec<String> {
        let named = |hosts: &Vec<String>| hosts.iter().map(|host| format!("{host}{word}")).collect();
        let slices = hosts.iter().map(named).enumerate().map(|(i, endpoints): (usize, Vec<String>)| {
            web(&format!("web-{i}"), &endpoints.iter().map(String::as_str).collect::<Vec<_>>())
        });
        slices.collect()
    };
    let (out, lines) = channel();
    let served = serve("many", None, vec![list("5", &all(""))], vec![Reply::Lines(lines)]);
    let draining = |list: &str| list.split(' ').filter(|member| member.ends_with('!')).count();
    assert_eq!(draining(&served.next()), 0);
    for slice in all(" ending") {
        out.send(event("MODIFIED", "6", &slice)).expect("a watch");
    }
    // How many lists that takes is a matter of time.
    while draining(&served.next()) < 5000 {}
}
