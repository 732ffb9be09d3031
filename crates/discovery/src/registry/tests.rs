//! Registries that begin and end while others are asked.

use super::fake::{BOUND, Fake, Reply};
use super::{Notice, Posted, Registries, start};
use crate::source::FollowedSource;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use weir_plan::{ConsulSource, SourceKind};
use weir_stats::Key;

/// A Consul with another list at each question, whose index lets the next one come at once.
fn restless() -> Fake {
    let port = AtomicUsize::new(1);
    Fake::start(move |_| {
        let port = port.fetch_add(1, Ordering::SeqCst);
        let node = r#""Node": {"Node": "n", "Address": "10.0.0.1"}"#;
        let list = format!(r#"[{{{node}, "Service": {{"ID": "s", "Port": {port}}}}}]"#);
        Reply::Other(200, vec!["X-Consul-Index: 7".to_owned()], list)
    })
}

fn consul(fake: &Fake, service: &str) -> FollowedSource {
    SourceKind::Consul(ConsulSource::new(fake.url.as_str(), service)).into()
}

fn registries() -> (Registries, Receiver<(usize, Posted)>) {
    let (out, all) = channel();
    let give = move |number, notice: Notice| {
        if let Notice::Posted(posted) = notice {
            drop(out.send((number, posted)));
        }
    };
    (start(Key::new(1), give).expect("a thread"), all)
}

#[test]
fn registries_begin_and_end_while_others_are_asked() {
    let fake = restless();
    let (registries, all) = registries();
    let number = || all.recv_timeout(BOUND).expect("a list").0;
    let ask = |number| registries.ask(number, consul(&fake, "api")).expect("a thread");
    ask(0);
    assert_eq!(number(), 0);
    // An equal one is another one.
    ask(1);
    while number() != 1 {}
    registries.forget(0);
    // What was on its way comes before two more lists of the other: between those is a tenth of a second.
    all.try_iter().for_each(drop);
    let mut others = 0;
    while others < 2 {
        others += usize::from(number() == 1);
    }
    let numbers: Vec<usize> = (0..3).map(|_| number()).collect();
    assert_eq!(numbers, [1, 1, 1]);
    registries.forget(7);
    registries.forget(1);
    ask(2);
    while number() != 2 {}
    drop(registries);
    while all.recv_timeout(BOUND).is_ok() {}
}

#[test]
fn a_registry_that_is_forgotten_leaves_no_connection() {
    let (begun, connections) = channel();
    let (ended, ends) = channel();
    let fake = Fake::accept("http", move |mut socket| {
        let _ = begun.send(());
        // Until the client closes.
        let _ = std::io::copy(&mut socket, &mut std::io::sink());
        let _ = ended.send(());
    });
    let (registries, _all) = registries();
    registries.ask(0, consul(&fake, "api")).expect("a thread");
    connections.recv_timeout(BOUND).expect("a connection");
    // Its answer never comes, and is waited for.
    registries.forget(0);
    ends.recv_timeout(BOUND).expect("the end of the connection");
    drop(registries);
}
