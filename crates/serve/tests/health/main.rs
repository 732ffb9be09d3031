//! Health, limits, stickiness and names on real sockets: what `docs/spec/serving.md#loop-and-process` says is the
//! process's, with two loops.

mod dns;
mod limits;
mod models;
mod names;
mod removed;
#[allow(dead_code, reason = "the tests of reloads need more of it")]
mod support;

use std::time::{Duration, Instant};
use support::{Mode, Origin, nobody, pause, serve, until};
use weir_serve::Exposition;

/// Requests on connections of their own until both loops have surely had some.
const MANY: usize = 40;

#[test]
fn checks_take_a_dead_target_out_after_fall_and_back_after_rise() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let x = serve(
        &format!(
            r#"x = lb.random([server("a", addr="{}"), server("b", addr="{}")], health=health.http("/well", interval="50ms",
                   timeout="1s", rise=2, fall=3, jitter=0.0, expect="200-299", host="check.test"), panic=0.0)"#,
            a.addr, b.addr
        ),
        2,
    );
    let both = x.bodies(MANY);
    assert!(both.contains(&"a".to_owned()) && both.contains(&"b".to_owned()));
    // Its checks fail, though it answers requests.
    let (before, begun) = (a.checks(), Instant::now());
    a.answer_checks(Mode::Status(404));
    until("a is out on all loops", || x.share("a", MANY) == 0);
    assert!(
        a.checks() >= before + 3 && begun.elapsed() >= Duration::from_millis(90),
        "not before three have failed"
    );
    assert_eq!(x.share("b", MANY), MANY);
    let head = a.heads_of_checks().pop().expect("a check");
    for part in [
        "GET /well HTTP/1.1\r\n",
        "Host: check.test\r\n",
        "User-Agent: weir-health\r\n",
        "Connection: close\r\n",
    ] {
        assert!(head.contains(part), "{head}");
    }
    let before = a.checks();
    a.answer_checks(Mode::Status(204));
    until("a is back", || x.share("a", MANY) > 0);
    assert!(a.checks() >= before + 2);
    // A check without an answer has failed.
    a.answer_checks(Mode::Close);
    until("a is out again", || x.share("a", MANY) == 0);
}

#[test]
fn checks_of_tcp_want_a_connection_and_no_target_is_503() {
    let dead = nobody();
    let x = serve(
        &format!(
            r#"x = lb.random([server("a", addr="{dead}")], health=health.tcp(interval="30ms", fall=1, rise=1), panic=0.0)"#
        ),
        2,
    );
    until("down", || x.get().status == 503);
    let a = Origin::listen("a", &dead.to_string());
    until("up", || x.bodies(MANY).iter().all(|b| b == "a"));
    drop(a);
}

/// Refused, timeout and status apart, in the view and in the metrics, with the time since when.
#[test]
fn what_the_last_check_saw_is_shown_and_counted() {
    let (dead, late, wrong) = (nobody(), Origin::new("late"), Origin::new("wrong"));
    late.answer_checks(Mode::Hold);
    wrong.answer_checks(Mode::Status(418));
    let x = serve(
        &format!(
            r#"x = lb.random([server("dead", addr="{dead}"), server("late", addr="{}"), server("wrong", addr="{}")], name="x", panic=0.0,
                   health=health.http("/", interval="30ms", timeout="60ms", fall=1, expect="200"))"#,
            late.addr, wrong.addr
        ),
        2,
    );
    until("all are down", || x.remote().view(false).pools[0].eligible == 0);
    let view = x.remote().view(false);
    let seen: Vec<(&str, &str, bool)> = view.pools[0]
        .targets
        .iter()
        .map(|target| {
            let check = target.last_check.as_ref().expect("it was checked");
            (
                check.result,
                check.words.as_str(),
                target.since_unix_ms.is_some_and(|at| at <= check.at_unix_ms + 1000),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("refused", "connect refused", true),
            ("timeout", "no answer within 60ms", true),
            ("status", "status 418", true)
        ]
    );
    assert_eq!(view.pools[0].targets[0].addr, Some(dead.to_string()));
    assert_eq!(view.events.iter().map(|event| event.count).sum::<u32>(), 3, "{:?}", view.events);
    assert!(view.events.iter().all(|event| event.pool == "x" && event.state == "down"), "{:?}", view.events);
    let text = String::from_utf8_lossy(&x.remote().scrape(Exposition::Prometheus)).into_owned();
    for line in [
        "weir_ready 0",
        "weir_health_checks_total{pool=\"x\",target=\"dead\",result=\"refused\"}",
        "weir_health_checks_total{pool=\"x\",target=\"late\",result=\"timeout\"}",
        "weir_health_checks_total{pool=\"x\",target=\"wrong\",result=\"status\"}",
        "weir_target_changed_seconds{pool=\"x\",target=\"dead\"}",
        "weir_connections_limit{listener=",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

/// Requests of the last seconds are in the view of listener, balancer and target.
#[test]
fn the_last_seconds_are_in_the_view() {
    let a = Origin::new("a");
    let x = serve(&format!(r#"x = lb.random([server("a", addr="{}")], name="x")"#, a.addr), 2);
    assert!((0..10).all(|_| x.get().status == 200));
    a.answer(Mode::Status(503));
    assert!((0..10).all(|_| x.get().status == 503));
    until("all are counted", || x.remote().view(false).pools[0].targets[0].share_5xx == Some(0.5));
    let view = x.remote().view(false);
    for recent in [&view.listeners[0].recent, &view.pools[0].recent] {
        assert_eq!(recent.iter().map(|one| one.seconds).collect::<Vec<_>>(), [10, 300]);
        for one in recent {
            assert!(one.rate_per_s > 0.0 && one.share_5xx == Some(0.5), "{one:?}");
            assert!(one.p50_ms.is_some_and(|ms| ms > 0.0) && one.p99_ms >= one.p50_ms, "{one:?}");
        }
    }
    assert!(view.pools[0].targets[0].mean_ms.is_some_and(|ms| ms > 0.0));
}

#[test]
fn a_target_that_must_be_checked_first_waits_for_its_check() {
    let a = Origin::new("a");
    a.answer_checks(Mode::Hold);
    let x = serve(
        &format!(
            r#"x = lb.random([server("a", addr="{}")], panic=0.0,
                   health=health.http("/", interval="30ms", timeout="10s", initial="checked"))"#,
            a.addr
        ),
        2,
    );
    assert!((0..MANY).all(|_| x.get().status == 503));
    a.answer_checks(Mode::Status(200));
    until("up after one pass", || (0..MANY).all(|_| x.get().status == 200));
}

#[test]
fn a_check_that_takes_too_long_has_failed() {
    let a = Origin::new("a");
    a.answer_checks(Mode::Hold);
    let x = serve(
        &format!(
            r#"x = lb.random([server("a", addr="{}")], panic=0.0, health=health.http("/", interval="30ms", timeout="60ms", fall=2))"#,
            a.addr
        ),
        1,
    );
    until("down", || x.get().status == 503);
}

#[test]
fn panic_ignores_checks_where_too_few_are_left() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let x = serve(
        &format!(
            r#"x = lb.round_robin([server("a", addr="{}"), server("b", addr="{}")], panic=0.6, health=health.http("/", interval="30ms", fall=1, rise=1))"#,
            a.addr, b.addr
        ),
        2,
    );
    a.answer_checks(Mode::Status(500));
    let before = a.checks();
    until("checks of a fail", || a.checks() > before + 3);
    // One of two is less than 0.6, so both get requests.
    assert!((1..MANY).contains(&x.share("a", MANY)));
}

#[test]
fn a_balancer_behind_a_target_is_eligible_while_it_has_anyone() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let x = serve(
        &format!(
            r#"inner = lb.random([server("a", addr="{}")], panic=0.0, health=health.http("/", interval="30ms", fall=1, rise=1))
x = lb.random([inner, server("b", addr="{}")], panic=0.0)"#,
            a.addr, b.addr
        ),
        2,
    );
    until("a is picked", || x.share("a", MANY) > 0);
    a.answer_checks(Mode::Status(503));
    until("the inner balancer is out", || x.bodies(MANY).iter().all(|b| b == "b"));
    a.answer_checks(Mode::Status(200));
    until("it is back", || x.share("a", MANY) > 0);
}

#[test]
fn failures_in_a_row_count_over_all_loops_and_one_request_probes() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let x = serve(
        &format!(
            r#"x = lb.round_robin([server("a", addr="{}"), server("b", addr="{}")], panic=0.0, eject=eject(consecutive=10, base="2s", max="2s", max_percent=50))"#,
            a.addr, b.addr
        ),
        2,
    );
    a.answer(Mode::Status(500));
    until("a is ejected", || x.share("a", MANY) == 0);
    // Ten eject; what two loops had under way when it happened may come on top, but they count together.
    assert!((10..=14).contains(&a.requests()), "{}", a.requests());
    let (out, begun) = (a.requests(), Instant::now());
    a.answer(Mode::Hold);
    // Its ejection runs out, and one request tries it; that one hangs, and no other follows.
    let mut open = Vec::new();
    until("a probe", || {
        open.push(x.send(""));
        a.requests() > out
    });
    assert!(begun.elapsed() > Duration::from_millis(1000));
    assert_eq!(x.share("b", MANY), MANY, "only one request tries it, of whichever loop");
    assert_eq!(a.requests(), out + 1);
    a.answer(Mode::Status(200));
    until("a is back", || x.share("a", MANY) > 0);
    open.into_iter().for_each(|p| assert_eq!(p.wait().status, 200));
}

#[test]
fn a_probe_whose_client_leaves_frees_the_way_for_another() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let x = serve(
        &format!(
            r#"x = lb.round_robin([server("a", addr="{}"), server("b", addr="{}")], panic=0.0, eject=eject(consecutive=2, base="50ms", max="50ms", max_percent=50))"#,
            a.addr, b.addr
        ),
        2,
    );
    a.answer(Mode::Close);
    until("a is ejected", || x.share("a", MANY) == 0 && a.requests() >= 2);
    a.answer(Mode::Hold);
    let out = a.requests();
    let mut open = Vec::new();
    until("a probe", || {
        open.push(x.send(""));
        a.requests() > out
    });
    drop(open);
    let mut open = Vec::new();
    until("another probe", || {
        open.push(x.send(""));
        a.requests() > out + 1
    });
    a.answer(Mode::Status(200));
    until("a is back", || x.share("a", MANY) > 0);
}

#[test]
fn outliers_are_left_out_on_all_loops() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let x = serve(
        &format!(
            r#"x = lb.random([server("a", addr="{}"), server("b", addr="{}")], panic=0.0, eject=outlier(consecutive_5xx=3, interval="100ms", base_ejection_time="300ms", max_ejection_percent=50))"#,
            a.addr, b.addr
        ),
        2,
    );
    a.answer(Mode::Status(502));
    until("a is out", || x.share("a", MANY) == 0 && a.requests() >= 3);
    a.answer(Mode::Status(200));
    until("a is back", || x.share("a", MANY) > 0);
}

#[test]
fn slow_start_gives_a_growing_share() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let x = serve(
        &format!(
            r#"x = lb.random([server("a", addr="{}"), server("b", addr="{}")], panic=0.0, slow_start=slow_start("2s", min_weight=0.1),
                   health=health.http("/", interval="30ms", fall=1, rise=1))"#,
            a.addr, b.addr
        ),
        2,
    );
    a.answer_checks(Mode::Status(500));
    until("a is out", || x.share("a", MANY) == 0);
    a.answer_checks(Mode::Status(200));
    let mut begun = Instant::now();
    until("a is back", || {
        begun = Instant::now();
        x.share("a", 10) > 0
    });
    let early = x.share("a", 100);
    assert!(begun.elapsed() > Duration::from_millis(900) || early < 45, "{early} of 100 at once");
    until("its whole share", || begun.elapsed() > Duration::from_millis(2100));
    let late = x.share("a", 200);
    assert!((60..140).contains(&late), "{late} of 200 at the end");
}

#[test]
fn a_target_that_refuses_connections_is_passed_over() {
    let b = Origin::new("b");
    let dead = nobody();
    let x = serve(
        &format!(
            r#"x = retry(2, lb.round_robin([server("a", addr="{dead}"), server("b", addr="{}")], pass_over="300ms"))"#,
            b.addr
        ),
        2,
    );
    assert!((0..MANY).all(|_| x.get().status == 200));
    let again = Origin::listen("a", &dead.to_string());
    pause(Duration::from_millis(350));
    until("a is picked again", || x.share("a", MANY) > 0);
    drop(again);
}
