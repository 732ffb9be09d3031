//! Limits make room: at each of them idle clients go, busy ones stay, and a newcomer waits if none is idle.

use crate::shared::serve::{Fault, Origin, Stream, Weir, pause, reply, until};
use rustix::process::Signal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// Longer than a client must have been idle, and than the steps by which that is looked at.
const IDLE_MS: u64 = 200;

/// The two limits of a listener that make room among its clients.
const LIMITS: [&str; 2] = ["max_clients", "max_clients_per_address"];

/// A listener for two clients at most, by either limit, on `loops` loops.
fn for_two(limit: &str, node: &str, loops: u32) -> Weir {
    Weir::new(&format!(
        "listen(\"127.0.0.1:0\", {node}, name = \"web\", loops = {loops}, http = http({limit} = 2))\n"
    ))
}

fn asked(weir: &Weir) -> Stream {
    let mut client = weir.client();
    assert_eq!(client.get("/").expect("an answer").status(), 200);
    client
}

/// Lines on standard error that name the limit.
fn says(weir: &Weir, limit: &str) -> usize {
    weir.err().lines().filter(|l| l.contains(&format!("{limit} of listener \"web\""))).count()
}

#[test]
fn the_client_that_is_idle_longest_makes_room() {
    for (limit, loops) in LIMITS.iter().flat_map(|limit| [(limit, 1), (limit, 2)]) {
        let weir = for_two(limit, "respond(200)", loops);
        let mut first = asked(&weir);
        pause(IDLE_MS);
        let mut second = asked(&weir);
        pause(IDLE_MS);
        let mut third = weir.client();
        third.patience(Duration::from_secs(3));
        assert_eq!(third.get("/").expect("an answer though two are connected").status(), 200, "{limit}");
        first.patience(Duration::from_secs(3));
        if loops == 1 {
            assert_eq!(first.ending(), Fault::End, "{limit}: it ends in order");
            assert_eq!(second.get("/").expect("it goes on").status(), 200, "{limit}");
        } else {
            // First one of the accepting loop, which need not be the one that has been idle longest of all.
            let ended = [&mut first, &mut second].map(|client| {
                client.patience(Duration::from_millis(500));
                client.ending()
            });
            assert!(ended.contains(&Fault::End) && !ended.contains(&Fault::Reset), "{limit}: {ended:?}");
        }
        drop(third);
        // However often it is reached later on.
        for _ in 0..3 {
            pause(IDLE_MS);
            asked(&weir);
        }
        assert!(until(|| says(&weir, limit) > 0), "{}", weir.err());
        assert_eq!(says(&weir, limit), 1, "{}", weir.err());
    }
}

#[test]
fn a_busy_client_makes_no_room_and_the_newcomer_waits() {
    for limit in LIMITS {
        let may_answer = Arc::new(AtomicBool::new(false));
        let may = may_answer.clone();
        let origin = Origin::answering(move |_| {
            until(|| may.load(SeqCst));
            reply("late")
        });
        let weir = for_two(limit, &format!("server(addr = \"{}\")", origin.addr()), 1);
        let mut busy = [weir.client(), weir.client()];
        for (at, client) in busy.iter_mut().enumerate() {
            client.send(GET).expect("it is sent");
            assert!(until(|| origin.arrivals().len() == at + 1));
        }
        let mut third = weir.client();
        third.send(GET).expect("it is sent");
        third.patience(Duration::from_millis(600));
        assert_eq!(third.response("GET").expect_err("nobody is idle"), Fault::Silence, "{limit}");
        assert_eq!(origin.arrivals().len(), 2, "{limit}");
        may_answer.store(true, SeqCst);
        for client in &mut busy {
            assert_eq!(client.response("GET").expect("an answer").body_text(), "late", "{limit}");
        }
        // Now they are idle: one goes, and the third is served.
        third.patience(Duration::from_secs(5));
        assert_eq!(third.response("GET").expect("an answer").body_text(), "late", "{limit}");
    }
}

/// A client that has not asked yet is not idle: it has just come.
#[test]
fn a_client_that_has_not_asked_yet_stays() {
    let weir = for_two("max_clients", "respond(200)", 1);
    let mut fresh = [weir.client(), weir.client()];
    pause(IDLE_MS);
    let mut third = weir.client();
    third.send(GET).expect("it is sent");
    third.patience(Duration::from_millis(400));
    assert_eq!(third.response("GET").expect_err("nobody is idle"), Fault::Silence);
    for client in &mut fresh {
        assert_eq!(client.get("/").expect("an answer").status(), 200);
    }
    third.patience(Duration::from_secs(5));
    assert_eq!(third.response("GET").expect("an answer").status(), 200);
}

/// What a client asks just before it would be closed is answered: no request is lost by it.
#[test]
fn a_request_that_comes_as_room_is_made_is_answered() {
    let weir = for_two("max_clients", "respond(200)", 1);
    let mut lost = Vec::new();
    for round in 0..10 {
        let mut two = [asked(&weir), asked(&weir)];
        pause(IDLE_MS);
        let mut third = weir.client();
        third.send(GET).expect("it is sent");
        for client in &mut two {
            let _ = client.send(GET);
        }
        assert_eq!(third.response("GET").expect("an answer").status(), 200);
        for client in &mut two {
            match client.response("GET") {
                Ok(answer) => assert_eq!(answer.status(), 200),
                // In order: a client knows that it was not served, and may ask again.
                Err(Fault::End) => {}
                Err(fault) => lost.push((round, fault)),
            }
        }
    }
    assert!(lost.is_empty(), "{lost:?}");
}

/// A listener that sends `/n` to the n-th origin, whose connections stay open.
fn by_path(origins: &[Origin]) -> String {
    let rule = |(n, origin): (usize, &Origin)| {
        format!("(when(path = \"/{n}\"), server(addr = \"{}\", idle_timeout = 60*s))", origin.addr())
    };
    let rules: Vec<String> = origins.iter().enumerate().map(rule).collect();
    format!("listen(\"127.0.0.1:0\", route([{}]), name = \"web\", loops = 1)\n", rules.join(", "))
}

/// Idle connections to origins go where descriptors run out: with 120 of them all requests to ten origins are answered.
#[test]
fn idle_origin_connections_make_room_for_descriptors() {
    const ORIGINS: usize = 10;
    const CLIENTS: usize = 14;
    let origins: Vec<Origin> = (0..ORIGINS).map(|_| Origin::named("fine")).collect();
    let mut weir = Weir::with_descriptors(&by_path(&origins), 120);
    let mut clients: Vec<Stream> = (0..CLIENTS).map(|_| weir.client()).collect();
    for round in 0..3 {
        for n in 0..ORIGINS {
            // All at once, so that as many connections to this origin are open, and idle when the next one's turn
            // comes.
            for client in &mut clients {
                client.send(format!("GET /{n} HTTP/1.1\r\nHost: h\r\n\r\n")).expect("it is sent");
            }
            for client in &mut clients {
                let answer = client.response("GET").expect("an answer");
                assert_eq!(answer.status(), 200, "round {round}, origin {n}: {}", weir.err());
            }
        }
    }
    let opened: usize = origins.iter().map(Origin::accepted).sum();
    assert!(opened > 100, "{opened} connections: they never ran out");
    weir.assert_alive();
}

/// Idle connections to origins leave the reserve of descriptors alone: clients that come then are served, and a reload
/// has what it needs.
#[test]
fn idle_origin_connections_leave_a_reserve() {
    const ORIGINS: usize = 12;
    const CLIENTS: usize = 12;
    const MOST: usize = 120;
    /// A quarter of what is above 64 is kept, but for what other threads open for a moment.
    const RESERVE: usize = (MOST - 64) / 4 - 4;
    let origins: Vec<Origin> = (0..ORIGINS).map(|_| Origin::named("fine")).collect();
    let mut weir = Weir::with_descriptors(&by_path(&origins), MOST as u32);
    let mut clients: Vec<Stream> = (0..CLIENTS).map(|_| weir.client()).collect();
    for n in 0..ORIGINS {
        for client in &mut clients {
            client.send(format!("GET /{n} HTTP/1.1\r\nHost: h\r\n\r\n")).expect("it is sent");
        }
        for client in &mut clients {
            assert_eq!(
                client.response("GET").expect("an answer").status(),
                200,
                "origin {n}: {}",
                weir.err()
            );
        }
        let open = weir.descriptors();
        assert!(open <= MOST - RESERVE, "{open} of {MOST} are open after origin {n}");
    }
    let opened: usize = origins.iter().map(Origin::accepted).sum();
    assert!(opened > MOST, "{opened} connections: they never ran out");
    // Each closes one idle connection, and none waits.
    for _ in 0..4 {
        let mut client = weir.client();
        client.send("GET /0 HTTP/1.1\r\nHost: h\r\n\r\n").expect("it is sent");
        assert_eq!(client.response("GET").expect("an answer").status(), 200, "{}", weir.err());
        clients.push(client);
    }
    weir.signal(Signal::HUP);
    assert!(until(|| weir.err().contains("nothing has changed")), "{}", weir.err());
    assert!(!weir.err().contains("Too many open files"), "{}", weir.err());
    weir.assert_alive();
}

/// Clients that linger have descriptors, too: of more than may be connected the oldest are closed, and each newcomer is
/// served.
#[test]
fn clients_that_linger_count_as_connected() {
    /// By 160 descriptors.
    const MOST: usize = 16;
    let mut weir = Weir::with_descriptors("listen(\"127.0.0.1:0\", respond(200), loops = 1)\n", 160);
    let none = weir.descriptors();
    // What follows the last request is never read as one, so the connection lingers.
    let lingering: Vec<Stream> = (0..4 * MOST)
        .map(|n| {
            let mut client = weir.client();
            client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nmore").expect("it is sent");
            assert_eq!(
                client.response("GET").expect("an answer").status(),
                200,
                "client {n}: {}",
                weir.err()
            );
            client
        })
        .collect();
    let most = weir.descriptors() - none;
    assert!(most <= MOST, "{most} connections of {} clients", lingering.len());
    weir.assert_alive();
}
