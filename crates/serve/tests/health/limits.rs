//! What is one for all loops: requests in flight at a target, a balancer's state, cookies; and targets that go.

use crate::support::{Mode, Origin, pause, serve, serve_whole, until};
use std::time::Duration;
use weir_serve::Options;

#[test]
fn max_in_flight_is_the_processs() {
    let a = Origin::new("a");
    let x = serve(
        &format!(r#"x = lb.random([server("a", addr="{}")], max_in_flight=3, max_waiting=20)"#, a.addr),
        2,
    );
    a.answer(Mode::Hold);
    let open: Vec<_> = (0..24).map(|_| x.send("")).collect();
    until("three are inside", || a.inside().0 == 3);
    until("twenty wait, and one more is too many", || open.iter().any(|p| p.is_answered()));
    a.answer(Mode::Status(200));
    let mut answers: Vec<_> = open.into_iter().map(|p| p.wait().status).collect();
    answers.sort_unstable();
    assert_eq!(answers, [vec![200; 23], vec![503]].concat());
    assert_eq!((a.inside(), a.requests()), ((0, 3), 23));
    // A client that leaves while waiting or inside leaves no trace.
    a.answer(Mode::Hold);
    let open: Vec<_> = (0..8).map(|_| x.send("")).collect();
    until("three are inside", || a.requests() == 26);
    drop(open);
    a.answer(Mode::Status(200));
    assert!((0..10).all(|_| x.get().status == 200));
}

#[test]
fn connections_that_are_idle_on_another_loop_make_room() {
    let a = Origin::new("a");
    let x = serve(
        &format!(r#"x = lb.random([server("a", addr="{}", idle_timeout="60s")], max_connections=1)"#, a.addr),
        2,
    );
    for _ in 0..40 {
        assert_eq!(x.get().status, 200);
        // The origin notices an end a little later than weir.
        until("one is left", || a.connections() <= 1);
    }
    assert!(a.accepted() > 1, "both loops had one");
    let open: Vec<_> = (0..20).map(|_| x.send("")).collect();
    assert!(open.into_iter().all(|p| p.wait().status == 200));
    assert_eq!(a.inside().1, 1);
}

#[test]
fn one_state_for_all_loops() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let x = serve(
        &format!(
            r#"x = lb.round_robin([server("a", addr="{}"), server("b", addr="{}")], start="first", scope="process")"#,
            a.addr, b.addr
        ),
        2,
    );
    let want: Vec<_> = ["a", "b"].into_iter().cycle().take(40).collect();
    assert_eq!(x.bodies(40), want, "the cycle is one, whichever loop a request meets");
}

#[test]
fn one_state_counts_what_all_loops_have_in_flight() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let x = serve(
        &format!(
            r#"x = lb.least_conn([server("a", addr="{}"), server("b", addr="{}")], ties="first", scope="process", max_in_flight=5)"#,
            a.addr, b.addr
        ),
        2,
    );
    for round in 1..=3 {
        a.answer(Mode::Hold);
        b.answer(Mode::Hold);
        let open: Vec<_> = (0..14).map(|_| x.send("")).collect();
        // A client that left in the second round may have come in first: those the origins hold still.
        until("both are full", || a.inside().0 >= 5 && b.inside().0 >= 5);
        if round == 2 {
            // All leave: nothing stays counted, neither of those inside nor of those that wait.
            drop(open);
            a.answer(Mode::Close);
            b.answer(Mode::Close);
            until("empty", || (a.inside().0, b.inside().0) == (0, 0));
            continue;
        }
        a.answer(Mode::Status(200));
        b.answer(Mode::Status(200));
        assert!(open.into_iter().all(|p| p.wait().status == 200), "round {round}");
        if round == 1 {
            // Later on the origins still hold what weir has already given up.
            assert_eq!((a.inside().1, b.inside().1), (5, 5));
        }
    }
}

#[test]
fn a_cookie_means_the_same_target_on_all_loops() {
    let all = ["a", "b", "c"].map(Origin::new);
    let [a, b, c] = &all;
    let x = serve(
        &format!(
            r#"x = lb.random([server("a", addr="{}"), server("b", addr="{}"), server("c", addr="{}")], sticky="srv", panic=0.0,
                   health=health.http("/", interval="30ms", fall=1, rise=1))"#,
            a.addr, b.addr, c.addr
        ),
        2,
    );
    let first = x.get();
    let cookie = set_cookie(&first.head).expect("a new client gets a cookie");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{cookie}");
    let pair = cookie.split(';').next().expect("a pair").to_owned();
    let field = format!("Cookie: other=1; {pair}\r\n");
    for _ in 0..40 {
        let got = x.get_with(&field);
        assert_eq!((got.body, set_cookie(&got.head)), (first.body.clone(), None));
    }
    assert!(set_cookie(&x.get_with("Cookie: srv=0123456789abcdef\r\n").head).is_some(), "made up");
    let own = all.iter().zip(["a", "b", "c"]).find(|(_, name)| *name == first.body).expect("it answered").0;
    own.answer_checks(Mode::Status(500));
    until("another takes over", || x.get_with(&field).body != first.body);
    let other = x.get_with(&field);
    assert!(
        set_cookie(&other.head).is_some_and(|c| !c.starts_with(&pair)),
        "the client is given the new one"
    );
}

fn set_cookie(head: &str) -> Option<String> {
    head.lines().find_map(|l| l.strip_prefix("Set-Cookie: ")).map(str::to_owned)
}

#[test]
fn a_target_that_is_removed_ends_what_it_has_and_gets_no_more() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let x = serve(
        &format!(
            r#"x = lb.round_robin([server("a", addr="{}", idle_timeout="60s"), server("b", addr="{}")], max_in_flight=50)"#,
            a.addr, b.addr
        ),
        2,
    );
    assert!(x.share("a", 40) > 0 && a.connections() > 0);
    a.answer(Mode::Hold);
    let mut open = Vec::new();
    until("one is inside", || {
        open.push(x.send(""));
        a.inside().0 > 0
    });
    x.remove_target(0);
    until("no new picks", || {
        let all_have_arrived = |open: &[_]| a.requests() + b.requests() == 40 + open.len() as u32;
        until("those before have arrived", || all_have_arrived(&open));
        let before = a.requests();
        open.extend((0..20).map(|_| x.send("")));
        until("all have arrived", || all_have_arrived(&open));
        a.requests() == before
    });
    a.answer(Mode::Status(200));
    assert!(open.into_iter().all(|p| p.wait().status == 200), "what is in flight ends");
    until("no connection is kept", || a.connections() == 0);
}

/// What waits at the balancer asks again, what the other target has goes on.
#[test]
fn what_a_removed_target_still_has_ends_with_the_drain_timeout() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let x = serve_whole(
        &format!(
            r#"both = [server("a", addr="{}"), server("b", addr="{}")]
listen("127.0.0.1:0", lb.round_robin(both, start="first", max_in_flight=1), http=http(drain_timeout="400ms"))"#,
            a.addr, b.addr
        ),
        Options { loops: Some(1), ..Options::default() },
    );
    a.answer(Mode::Hold);
    b.answer(Mode::Hold);
    let (first, second) = (x.send(""), x.send(""));
    until("both are busy", || (a.inside().0, b.inside().0) == (1, 1));
    let waits = x.send("");
    x.remove_target(0);
    let begun = std::time::Instant::now();
    let first = first.wait();
    assert_eq!(first.status, 502, "cut off");
    assert!(begun.elapsed().as_millis() >= 350, "not before its time");
    b.answer(Mode::Status(200));
    let (second, waits) = (second.wait(), waits.wait());
    assert_eq!((second.body.as_str(), waits.body.as_str()), ("b", "b"), "who waited got the other");
    assert_eq!((a.requests(), b.requests()), (1, 2));
    assert!(x.bodies(5).iter().all(|body| body == "b"));
}

/// Removed with what it has in the middle of a body. What came to the same server by another way goes on.
#[test]
fn a_body_is_cut_by_its_target_and_not_by_its_server() {
    for other in ["a", "lb.random([a])", "respond(404)"] {
        let (a, b) = (Origin::new("a"), Origin::new("b"));
        let x = serve_whole(
            &format!(
                r#"a = server("a", addr="{}")
other = {other}
both = lb.first([a, server("b", addr="{}")])
listen("127.0.0.1:0", route([(when(header=[("X-Other", "1")]), other)], otherwise=both), http=http(drain_timeout="200ms"))"#,
                a.addr, b.addr
            ),
            Options { loops: Some(1), ..Options::default() },
        );
        a.answer(Mode::Half);
        let (first, second) = (x.send(""), x.send("X-Other: 1\r\n"));
        until("a part has come", || first.is_answered() && second.is_answered());
        x.remove_target(0);
        let (first, second) = (first.wait(), second.wait());
        assert_eq!((first.status, first.body.as_str()), (200, "half and"), "{other}");
        assert!(second.status == 404 || second.body == "half and half", "{other}: {}", second.body);
        a.answer(Mode::Status(200));
        assert_eq!(x.get().body, "b");
        let second = x.get_with("X-Other: 1\r\n");
        assert!(second.status == 404 || second.body == "a", "{other}: {}", second.body);
    }
}

/// An attempt that is cut off says nothing of the one beside it, and where none is left the last error is the answer.
#[test]
fn a_hedge_goes_on_when_the_target_of_one_attempt_is_removed() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let whole = |targets: &str| {
        let both = format!("hedge(\"10ms\", lb.round_robin([{targets}], start=\"first\"))");
        let http = "http(drain_timeout=\"200ms\")";
        let file = format!("listen(\"127.0.0.1:0\", {both}, http={http})");
        serve_whole(&file, Options { loops: Some(1), ..Options::default() })
    };
    let (to_a, to_b) =
        (format!(r#"server("a", addr="{}")"#, a.addr), format!(r#"server("b", addr="{}")"#, b.addr));
    let x = whole(&format!("{to_a}, {to_b}"));
    a.answer(Mode::Hold);
    b.answer(Mode::Hold);
    let first = x.send("");
    until("both attempts are open", || (a.inside().0, b.inside().0) == (1, 1));
    x.remove_target(0);
    pause(Duration::from_millis(500));
    assert!(!first.is_answered(), "the other attempt is still open");
    b.answer(Mode::Status(200));
    let first = first.wait();
    assert_eq!((first.status, first.body.as_str()), (200, "b"));

    a.answer(Mode::Close);
    b.answer(Mode::Hold);
    let before = b.requests();
    let x = whole(&format!("{to_a}, {to_b}"));
    let first = x.send("");
    until("the second attempt is open", || b.requests() > before);
    x.remove_target(1);
    assert_eq!(first.wait().status, 502, "the first one's error");

    b.answer(Mode::Status(200));
    b.answer(Mode::Hold);
    let before = b.requests();
    let x = whole(&to_b);
    let first = x.send("");
    until("both attempts are open", || b.requests() == before + 2);
    x.remove_target(0);
    assert_eq!(first.wait().status, 502, "all are cut off");
}

#[test]
fn a_shared_balancer_serves_until_the_last_loop_has_ended() {
    let a = Origin::new("a");
    let file = format!(
        r#"x = retry(2, lb.random([server("a", addr="{}")], scope="process"), on=["status_5xx"], backoff="100ms")"#,
        a.addr
    );
    let x = serve(&file, 2);
    a.answer(Mode::Hold);
    let open: Vec<_> = (0..12).map(|_| x.send("")).collect();
    until("all are inside", || a.inside().0 == 12);
    x.drain();
    // First attempts fail, and the second ones ask the owner again while it drains.
    a.answer(Mode::Status(503));
    until("first attempts have failed", || a.inside().0 == 0);
    a.answer(Mode::Status(200));
    let answers: Vec<_> = open.into_iter().map(|p| p.wait().status).collect();
    assert!(
        answers.iter().all(|s| [200, 503].contains(s)) && a.requests() == 24,
        "{answers:?}, {}",
        a.requests()
    );
}
