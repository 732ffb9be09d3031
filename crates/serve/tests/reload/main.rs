//! Another file is served (`docs/spec/operating.md#reload`): no request is lost, and a target that stays keeps its
//! state.

#[path = "../health/support.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod support;

mod by_hand;
mod drains;
mod hand_over;
mod keys;
mod load;
mod replaced;
mod slow_start;
mod successor;
mod words;

use load::{Client, file, server, servers, two_loops, under_load};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use support::{Mode, Origin, Pending, RunningBalancer, pause, serve_whole, until};
use weir_serve::{Exposition, Options, SetTarget, TargetState};
use weir_topology::manual::missing_balancers;

#[test]
fn targets_come_and_go_under_load_with_every_balancer() {
    let origins: Vec<Origin> = ["a", "b", "c", "d"].iter().map(|name| Origin::new(name)).collect();
    let policies = [
        "lb.least_conn([SERVERS])",
        "lb.random([SERVERS])",
        "lb.round_robin([SERVERS])",
        "lb.p2c([SERVERS], scope = \"process\")",
        "lb.peak_ewma([SERVERS])",
        "lb.zuul([SERVERS], scope = \"process\")",
        "lb.prequal([SERVERS])",
        "lb.maglev([SERVERS], key = key.client())",
        "lb.ring_hash([SERVERS], key = key.client(), bound = 1.5)",
        "lb.least_conn([SERVERS], max_in_flight = 2, max_waiting = 100, eject = eject(consecutive = 5))",
    ];
    // `first` has no state that a reload could lose; `least_work` is never served.
    assert_eq!(missing_balancers(policies), ["lb.first", "lb.least_work"]);
    let of = |policy: &str, which: usize| {
        let three: Vec<&Origin> = (0..3).map(|i| &origins[(which + i) % 4]).collect();
        file(&policy.replace("SERVERS", &servers(&three)))
    };
    let x = serve_whole(&of(policies[1], 1), two_loops());
    let (asked, wrong) = under_load(x.addr(), false, |_| {
        for (round, policy) in policies.iter().cycle().take(4 * policies.len()).enumerate() {
            let before = x.remote().config().generation;
            let said = x.reload(&of(policy, round)).expect("it can be served");
            assert_eq!(x.remote().config().generation, before + 1, "{said}");
        }
    });
    assert!(wrong.is_empty(), "of {asked}: {wrong:?}");
    // No target is asked any more that is gone.
    x.reload(&of(policies[1], 1)).expect("it can be served");
    let gone = origins[0].requests();
    let bodies = x.bodies(60);
    assert!(bodies.iter().all(|name| ["b", "c", "d"].contains(&name.as_str())), "{bodies:?}");
    assert_eq!(origins[0].requests(), gone);
    until("connections to who is gone close", || origins[0].connections() == 0);
}

#[test]
fn counts_go_on_with_another_policy_and_other_targets() {
    let (a, b, c) = (Origin::new("a"), Origin::new("b"), Origin::new("c"));
    let of = |lb: &str, origins: &[&Origin]| file(&format!("{lb}([{}])", servers(origins)));
    let x =
        serve_whole(&of("lb.random", &[&a]), Options { loops: Some(1), quiet: true, ..Options::default() });
    a.answer(Mode::Hold);
    let held: Vec<_> = (0..3).map(|_| x.send("")).collect();
    until("they are there", || a.inside().0 == 3);
    // What the random balancer sent there counts for the one that follows it, wherever `a` is in the file.
    x.reload(&of("lb.least_conn", &[&b, &a, &c])).expect("it can be served");
    let bodies = x.bodies(12);
    assert!(!bodies.contains(&"a".to_owned()), "{bodies:?}");
    // `b` goes and comes back, while those at `a` go on.
    x.reload(&of("lb.least_conn", &[&a, &c])).expect("it can be served");
    assert!(x.bodies(6).iter().all(|name| name == "c"));
    x.reload(&of("lb.least_conn", &[&a, &c, &b])).expect("it can be served");
    a.answer(Mode::Status(200));
    for got in held {
        assert_eq!(got.wait().body, "a", "a request stays in the graph that it began in");
    }
    until("all take part", || x.bodies(12).contains(&"a".to_owned()));
}

#[test]
fn ejections_stay_and_nobody_goes_out_for_new_checks() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let of = |more: &str| {
        let list = servers(&[&a, &b]);
        file(&format!(
            "lb.round_robin([{list}], eject = eject(consecutive = 1, base = 3600 * s, max = 3600 * s){more})"
        ))
    };
    let x = serve_whole(&of(""), two_loops());
    a.answer(Mode::Close);
    until("a is ejected", || x.share("b", 10) == 10);
    a.answer(Mode::Status(200));
    x.reload(&of(", slow_start = slow_start(1 * s)")).expect("it can be served");
    assert_eq!(x.share("b", 20), 20, "its ejection lasts for an hour");
    let checked = ", health = health.http(\"/\", interval = 3600 * s, initial = \"down\")";
    x.reload(&of(checked)).expect("it can be served");
    assert_eq!(x.share("b", 20), 20, "b has served and goes on");
}

#[test]
fn limits_count_both_generations() {
    let a = Origin::new("a");
    let of = |concurrency: u32| {
        file(&format!("queue({}, concurrency = {concurrency}, name = \"slots\")", server(&a)))
    };
    let x = serve_whole(&of(3), two_loops());
    a.answer(Mode::Hold);
    let held: Vec<_> = (0..3).map(|_| x.send("")).collect();
    until("three are inside", || a.inside().0 == 3);
    x.reload(&of(1)).expect("it can be served");
    let waits = x.send("");
    x.reload(&of(2)).expect("it can be served");
    assert_eq!(a.inside(), (3, 3), "nobody comes in while there are more than may");
    // More room than ever: waiting requests learn of it.
    x.reload(&of(4)).expect("it can be served");
    until("the fourth is inside", || a.inside().0 == 4);
    a.answer(Mode::Status(200));
    held.into_iter().chain([waits]).for_each(|one| assert_eq!(one.wait().status, 200));
}

fn scraped(x: &RunningBalancer) -> String {
    String::from_utf8(x.remote().scrape(Exposition::Prometheus)).expect("text")
}

/// A limit that a reload brings counts what is at the target already, on whichever loop, and until that is back.
#[test]
fn a_new_limit_counts_what_is_in_flight() {
    let a = Origin::new("a");
    let of = |limit: &str| file(&format!("lb.random([{}], name = \"apps\"{limit})", server(&a)));
    let x = serve_whole(&of(""), two_loops());
    a.answer(Mode::Hold);
    let held: Vec<_> = (0..6).map(|_| x.send("")).collect();
    until("six are inside", || a.inside().0 == 6);
    x.reload(&of(", max_in_flight = 2, max_waiting = 1")).expect("it can be served");
    let waits = x.send("");
    until("it waits", || scraped(&x).contains("weir_queue_waiting{node=\"apps\"} 1\n"));
    assert_eq!(x.send("").wait().status, 503, "one may wait");
    assert_eq!(a.inside(), (6, 6), "nobody comes in while there are more than may");
    a.answer(Mode::Status(200));
    held.into_iter().chain([waits]).for_each(|one| assert_eq!(one.wait().status, 200));
    // All six have given their places back.
    a.answer(Mode::Hold);
    let held: Vec<_> = (0..2).map(|_| x.send("")).collect();
    until("two are inside", || a.inside().0 == 2);
    let waits = x.send("");
    a.answer(Mode::Status(200));
    held.into_iter().chain([waits]).for_each(|one| assert_eq!(one.wait().status, 200));
}

/// A limit that a reload takes away limits no request any more: neither later ones, nor those that wait because of it.
#[test]
fn an_old_limit_is_forgotten() {
    let a = Origin::new("a");
    let of = |limit: &str| file(&format!("lb.least_conn([{}], name = \"apps\"{limit})", server(&a)));
    for loops in [1, 2] {
        let options = Options { loops: Some(loops), ..two_loops() };
        let x = serve_whole(&of(", max_in_flight = 1"), options);
        for limit in ["", ", max_in_flight = 4"] {
            a.answer(Mode::Hold);
            let before = a.inside().0;
            let first = x.send("");
            until("one is inside", || a.inside().0 == before + 1);
            let waits = x.send("");
            until("one waits", || scraped(&x).contains("weir_queue_waiting{node=\"apps\"} 1\n"));
            x.reload(&of(limit)).expect("it can be served");
            until("who waits comes in", || a.inside().0 == before + 2);
            let new = x.send("");
            until("who comes as well", || a.inside().0 == before + 3);
            a.answer(Mode::Status(200));
            [first, waits, new].into_iter().for_each(|one| assert_eq!(one.wait().status, 200));
            x.reload(&of(", max_in_flight = 1")).expect("it can be served");
        }
    }
}

#[test]
fn listeners_come_and_go() {
    let a = Origin::new("a");
    let free = || TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
    let second = free();
    let both = format!("{}listen(\"{second}\", {}, name = \"second\")\n", file(&server(&a)), server(&a));
    let x = serve_whole(&file(&server(&a)), two_loops());
    let mut first = Client::new(x.addr());
    assert_eq!(first.get(), Some((200, "a".to_owned())));
    let said = x.reload(&both).expect("it can be served");
    assert!(said.contains("listener second: new"), "{said}");
    let mut other = Client::new(second);
    assert_eq!(other.get(), Some((200, "a".to_owned())));
    let said = x.reload(&file(&server(&a))).expect("it can be served");
    assert!(said.contains("listener second: removed"), "{said}");
    until("nobody is let in any more", || TcpStream::connect(second).is_err());
    assert_eq!(other.get(), Some((200, "a".to_owned())), "it is answered once more");
    assert_eq!(other.get(), None, "and ends with its listener");
    assert_eq!(first.get(), Some((200, "a".to_owned())), "the other is as before");
}

#[test]
fn what_cannot_be_had_changes_nothing() {
    let a = Origin::new("a");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let x = serve_whole(&file(&server(&a)), two_loops());
    let addr = taken.local_addr().expect("its address");
    let wrong = format!(
        "listen(\"{addr}\", respond(200, \"other\"), name = \"taken\")\n{}",
        file("respond(200, \"other\")")
    );
    let why = x.reload(&wrong).expect_err("the port is another's");
    assert!(why.0.contains("something listens there already"), "{why}");
    assert_eq!((x.get().body, x.remote().config().generation), ("a".to_owned(), 0));
}

#[test]
fn built_in_servers_change_too() {
    let of = |names: &[&str]| {
        let servers =
            names.iter().map(|n| format!("queue(delay(1 * ms, server(\"{n}\")))")).collect::<Vec<_>>();
        file(&format!("lb.round_robin([{}])", servers.join(", ")))
    };
    let x = serve_whole(&of(&["a", "b"]), two_loops());
    let (asked, wrong) = under_load(x.addr(), false, |_| {
        for names in [&["b", "c"][..], &["c"], &["a", "b", "c", "d"], &["d", "a"]] {
            x.reload(&of(names)).expect("it can be served");
        }
    });
    assert!(wrong.is_empty(), "of {asked}: {wrong:?}");
    let bodies = x.bodies(8);
    assert!(bodies.iter().all(|b| b.contains('d') || b.contains('a')), "{bodies:?}");
}

#[test]
fn too_many_old_generations_end() {
    let a = Origin::new("a");
    let of = |i: usize| {
        let front =
            format!("listen(\"127.0.0.1:0\", rewrite({}, set = {{\"x-generation\": \"{i}\"}}), ", server(&a));
        format!("{front}name = \"front\", http = http(drain_timeout = 200 * ms))\n")
    };
    let x = serve_whole(&of(0), two_loops());
    a.answer(Mode::Hold);
    let held: Vec<_> = (1..=9)
        .map(|i| {
            let one = x.send("");
            until("it is there", || a.inside().0 == i as u32);
            x.reload(&of(i)).expect("it can be served");
            one
        })
        .collect();
    a.answer(Mode::Status(200));
    let answered = held.into_iter().map(|one| one.wait().status).collect::<Vec<_>>();
    assert!(answered[0] == 502 && answered[2..].iter().all(|status| *status == 200), "{answered:?}");
}

/// A generation that nothing cuts while a test runs.
fn patient(a: &Origin, i: usize) -> String {
    let front =
        format!("listen(\"127.0.0.1:0\", rewrite({}, set = {{\"x-generation\": \"{i}\"}}), ", server(a));
    format!("{front}name = \"front\", http = http(drain_timeout = 60 * s))\n")
}

/// Nine requests held in nine graphs, and the file of the graph after them.
fn nine_graphs_held(a: &Origin) -> (RunningBalancer, Vec<Pending>, String) {
    let of = |i| patient(a, i);
    let x = serve_whole(&of(0), two_loops());
    a.answer(Mode::Hold);
    let held = (1..=9)
        .map(|i| {
            let one = x.send("");
            until("it is there", || a.inside().0 == i as u32);
            if i < 9 {
                x.reload(&of(i)).expect("it can be served");
            }
            one
        })
        .collect();
    (x, held, of(9))
}

#[test]
fn a_reload_waits_until_an_old_generation_ends() {
    let a = Origin::new("a");
    let (x, held, next) = nine_graphs_held(&a);
    let (begin, ended) = (Instant::now(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let release = scope.spawn(|| {
            pause(Duration::from_millis(100));
            let has_ended = ended.load(SeqCst);
            a.answer(Mode::Status(200));
            has_ended
        });
        x.reload(&next).expect("it can be served");
        ended.store(true, SeqCst);
        assert!(!release.join().expect("it ends"), "nine generations had requests");
    });
    assert!(begin.elapsed() < Duration::from_secs(30), "nothing but the drain timeout ended it");
    assert!(held.into_iter().all(|one| one.wait().status == 200));
}

#[test]
fn a_drain_ends_a_reload_that_waits() {
    let a = Origin::new("a");
    let (x, held, next) = nine_graphs_held(&a);
    let remote = x.remote();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            pause(Duration::from_millis(100));
            remote.drain();
        });
        let ended = x.reload(&next);
        assert!(ended.as_ref().is_err_and(|why| why.0.contains("draining")), "{ended:?}");
    });
    a.answer(Mode::Status(200));
    assert!(held.into_iter().all(|one| one.wait().status == 200));
}

#[test]
fn reloads_without_requests_do_not_wait() {
    let a = Origin::new("a");
    let x = serve_whole(&patient(&a, 0), two_loops());
    let begin = Instant::now();
    for i in 1..30 {
        assert_eq!(x.get().status, 200);
        x.reload(&patient(&a, i)).expect("it can be served");
    }
    assert!(
        begin.elapsed() < Duration::from_secs(30),
        "nothing but the drain timeout ended an old generation"
    );
}

#[test]
fn what_is_set_by_hand_stays_over_reloads() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let of = |policy: &str| file(&format!("{policy}([{}], name = \"apps\")", servers(&[&a, &b])));
    let x = serve_whole(&of("lb.round_robin"), two_loops());
    let drained = SetTarget { state: Some(TargetState::Drain), ..SetTarget::default() };
    let wrong = x.remote().set_target("apps", "c", drained).expect_err("there is none");
    assert!(wrong.to_string().contains(&a.addr.to_string()), "{wrong}");
    x.remote().set_target("apps", &a.addr.to_string(), drained).expect("it is there");
    until("a is drained", || x.share("b", 10) == 10);
    x.reload(&of("lb.random")).expect("it can be served");
    assert_eq!(x.share("b", 20), 20);
    let file = SetTarget { state: Some(TargetState::File), ..SetTarget::default() };
    x.remote().set_target("apps", &a.addr.to_string(), file).expect("it is there");
    until("a is back", || x.share("a", 10) > 0);
}
