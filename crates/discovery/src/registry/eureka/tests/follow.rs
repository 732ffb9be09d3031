//! Tests by a registry on loopback.

use super::{application, hash, instance, registry, source};
use crate::registry::Posted;
use crate::registry::fake::{BOUND, Fake, Question, Reply, next, posted_by};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use weir_plan::{EurekaSource, SourceKind};

/// What a server knows.
#[derive(Default)]
struct Model {
    /// The address and the status of each instance, by its id.
    whole: BTreeMap<&'static str, (&'static str, &'static str)>,
    /// All changes since the start.
    delta: Vec<String>,
    has_no_delta: bool,
    /// What whole answers and deltas have in place of their hash.
    wrong_hash: Option<&'static str>,
    /// Paths that were asked for.
    targets: Vec<String>,
}

type SharedModel = Arc<Mutex<Model>>;

impl Model {
    /// Has an instance with this status; `DELETED`: none any more.
    fn change(&mut self, id: &'static str, ip: &'static str, status: &'static str) {
        let action = match status {
            "DELETED" => {
                self.whole.remove(id);
                self.delta.push(instance(id, ip, "UP", "DELETED"));
                return;
            }
            _ => self.whole.insert(id, (ip, status)).map_or("ADDED", |_| "MODIFIED"),
        };
        self.delta.push(instance(id, ip, status, action));
    }

    fn answer(&mut self, asked: &Question) -> Reply {
        self.targets.push(asked.target.clone());
        let hash = hash(self.whole.values().map(|(_, status)| *status));
        let hash = self.wrong_hash.unwrap_or(hash.as_str());
        let of = |instances: &[String]| Reply::Json(registry(hash, &[application("API", instances)]));
        match asked.target.as_str() {
            "/eureka/apps" => {
                let mut all: Vec<String> = Vec::new();
                for (id, (ip, status)) in self.whole.iter().rev() {
                    all.push(instance(id, ip, status, "ADDED"));
                }
                of(&all)
            }
            "/eureka/apps/delta" if !self.has_no_delta => of(&self.delta),
            _ => Reply::Other(404, Vec::new(), String::new()),
        }
    }
}

fn start(model: &SharedModel) -> Fake {
    let model = model.clone();
    Fake::start(move |asked| model.lock().expect("a model").answer(asked))
}

fn change(model: &SharedModel, id: &'static str, ip: &'static str, status: &'static str) {
    model.lock().expect("a model").change(id, ip, status);
}

/// Waits for a list while only the one before it comes: what is stated to be gone may change by itself.
fn wait(all: &Receiver<Posted>, before: &str, list: &str) {
    loop {
        let next = next(all);
        if next == list {
            return;
        }
        assert_eq!(next, before);
    }
}

/// Follows a registry through all that an instance can be.
fn follow_changes(model: Model) {
    let model = Arc::new(Mutex::new(model));
    change(&model, "i-2", "10.0.0.2", "UP");
    change(&model, "i-1", "10.0.0.1", "UP");
    let fake = start(&model);
    let (_registries, all) = posted_by(SourceKind::Eureka(source(&[&fake.url])));
    let mut before = "10.0.0.1:80#i-1 10.0.0.2:80#i-2";
    assert_eq!(next(&all), before);
    for (id, ip, status, list) in [
        ("i-2", "10.0.0.2", "OUT_OF_SERVICE", "10.0.0.1:80#i-1 10.0.0.2:80#i-2!drain"),
        ("i-3", "10.0.0.3", "STARTING", "10.0.0.1:80#i-1 10.0.0.2:80#i-2!drain 10.0.0.3:80#i-3!drain"),
        ("i-3", "10.0.0.3", "UP", "10.0.0.1:80#i-1 10.0.0.2:80#i-2!drain 10.0.0.3:80#i-3"),
        ("i-2", "10.0.0.2", "DOWN", "10.0.0.1:80#i-1 10.0.0.3:80#i-3"),
        ("i-1", "10.0.0.1", "DELETED", "10.0.0.3:80#i-3"),
        ("i-2", "10.0.0.2", "UP", "10.0.0.2:80#i-2 10.0.0.3:80#i-3"),
        ("i-2", "10.0.0.2", "UNKNOWN", "10.0.0.3:80#i-3"),
        ("i-3", "10.0.0.3", "DELETED", ""),
    ] {
        change(&model, id, ip, status);
        wait(&all, before, list);
        before = list;
    }
}

#[test]
fn members_follow_the_registry() {
    follow_changes(Model::default());
}

#[test]
fn a_server_without_deltas_is_asked_for_the_whole() {
    follow_changes(Model { has_no_delta: true, ..Model::default() });
}

#[test]
fn a_server_whose_hashes_are_wrong_is_followed_as_well() {
    follow_changes(Model { wrong_hash: Some("UP_99_"), ..Model::default() });
}

#[test]
fn the_whole_is_asked_for_every_tenth_time_however_wrong_hashes_are() {
    for wrong_hash in [None, Some("UP_99_")] {
        let model = Arc::new(Mutex::new(Model { wrong_hash, ..Model::default() }));
        change(&model, "i-1", "10.0.0.1", "UP");
        let (out, targets) = channel();
        let fake = Fake::start(move |asked| {
            let _ = out.send(asked.target.clone());
            model.lock().expect("a model").answer(asked)
        });
        let (_registries, all) = posted_by(SourceKind::Eureka(source(&[&fake.url])));
        assert_eq!(next(&all), "10.0.0.1:80#i-1");
        let asked: Vec<String> = (0..21).map(|_| targets.recv_timeout(BOUND).expect("a question")).collect();
        for (i, target) in asked.iter().enumerate() {
            let is_whole = i % 10 == 0;
            assert_eq!(target, if is_whole { "/eureka/apps" } else { "/eureka/apps/delta" }, "{asked:?}");
        }
    }
}

#[test]
fn after_a_failure_the_next_server_is_asked() {
    let dead = [Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false))];
    let server = |ip: &'static str, dead: &Arc<AtomicBool>| {
        let (mut model, dead) = (Model::default(), dead.clone());
        model.change("i-1", ip, "UP");
        let model = Mutex::new(model);
        Fake::start(move |asked| match dead.load(Ordering::Relaxed) {
            true => Reply::Close,
            false => model.lock().expect("a model").answer(asked),
        })
    };
    let (one, two) = (server("10.0.0.1", &dead[0]), server("10.0.0.2", &dead[1]));
    let (_registries, all) = posted_by(SourceKind::Eureka(source(&[&one.url, &two.url])));
    let lists = ["10.0.0.1:80#i-1", "10.0.0.2:80#i-1"];
    let first = next(&all);
    let drawn = lists.iter().position(|list| *list == first).expect("one of both");
    let other = 1 - drawn;
    dead[drawn].store(true, Ordering::Relaxed);
    let fault = next(&all);
    assert!(fault.starts_with("eureka Api: http://127.0.0.1:"), "{fault}");
    assert_eq!(next(&all), lists[other]);
    dead[drawn].store(false, Ordering::Relaxed);
    dead[other].store(true, Ordering::Relaxed);
    // A fault of this kind was reported just now, and is again only after ten seconds.
    let mut last = next(&all);
    while last.starts_with("eureka Api: ") {
        last = next(&all);
    }
    assert_eq!(last, lists[drawn]);
}

#[test]
fn what_is_no_registry_is_a_fault() {
    let html = || {
        let fields = vec!["Content-Type: text/html".to_owned()];
        Reply::Other(200, fields, "<html></html>".to_owned())
    };
    let redirect = || Reply::Other(302, vec!["Location: /eureka/apps".to_owned()], String::new());
    type Answer = fn() -> Reply;
    let cases: [(Answer, &str); 6] = [
        (html, "answers with text/html, not with JSON"),
        (redirect, "redirects to /eureka/apps, which weir does not follow"),
        (|| Reply::Json("[".repeat(10_000)), "of Eureka: it has another form than Eureka's lists, at"),
        (|| Reply::Json("{\"applications\":".repeat(10_000)), "is no registry of Eureka"),
        (|| Reply::Json("{}".to_owned()), "another form than Eureka's lists, at its line 1 and column"),
        (|| Reply::Other(503, Vec::new(), String::new()), "answers 503"),
    ];
    for (reply, words) in cases {
        let fake = Fake::start(move |_| reply());
        let (_registries, all) = posted_by(SourceKind::Eureka(source(&[&fake.url])));
        let fault = next(&all);
        assert!(fault.contains(words), "{fault}");
        assert!(fault.len() < 400, "{fault}");
    }
}

#[test]
fn an_address_that_is_none_is_a_fault_of_the_topology() {
    let cases: [&[&str]; 3] = [&["ftp://a"], &["http://127.0.0.1:1", "a"], &[]];
    for urls in cases {
        let (_registries, all) = posted_by(SourceKind::Eureka(source(urls)));
        let fault = next(&all);
        assert!(fault.contains("address of a registry"), "{fault}");
    }
}

#[test]
fn a_password_is_read_anew_after_it_was_missing_or_refused() {
    let path = std::env::temp_dir().join(format!("weir-eureka-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let model = Mutex::new(Model::default());
    model.lock().expect("a model").change("i-1", "10.0.0.1", "UP");
    let proof = format!("authorization: Basic {}\n", data_encoding::BASE64.encode(b"weir:right"));
    let fake = Fake::start(move |asked| match asked.fields.contains(&proof) {
        true => model.lock().expect("a model").answer(asked),
        false => Reply::Other(401, Vec::new(), String::new()),
    });
    let auth = Some(path.to_string_lossy().into_owned());
    let (_registries, all) = posted_by(SourceKind::Eureka(EurekaSource { auth, ..source(&[&fake.url]) }));
    let fault = next(&all);
    assert!(fault.contains("cannot be used"), "{fault}");
    std::fs::write(&path, "weir:wrong\n").expect("a file");
    // While the file is written it may be empty, which is the same kind of fault.
    let fault = next(&all);
    assert!(fault.contains("answers 401"), "{fault}");
    std::fs::write(&path, "weir:right\n").expect("a file");
    assert_eq!(next(&all), "10.0.0.1:80#i-1");
    let _ = std::fs::remove_file(&path);
}
