//! The order at one instant, and traffic that depends on answers.

use super::Case;
use weir_policy::Kind;

/// Ends of work come first, then ends of holds, then arrivals, then limits; within a kind the earlier request first.
#[test]
fn order_at_one_instant() {
    // The end at 10 ms makes room for the arrival at 10 ms.
    Case::new(&[0, 10, 20], "root = queue(delay(10 * ms, server()), capacity = 0)").gives(&["10 ok"; 3]);
    Case::new(&[0, 5, 10], "root = queue(delay(10 * ms, server()), capacity = 0)").gives(&[
        "10 ok",
        "0 overloaded",
        "10 ok",
    ]);
    // At 10 ms the hold ends before the third arrives; b is free by then as well, so the first is taken.
    let source = r#"
root = lb.least_conn([flaky(1.0, server("a")), delay(5 * ms, server("b"))], ties = "first", error_hold = 10 * ms)
"#;
    Case::new(&[0, 5, 10], source).gives(&["0 status_5xx", "5 ok", "0 status_5xx"]);
    // Two ends at one instant: the earlier request goes first, although its delay was scheduled later.
    let source = r#"
last = queue(delay(10 * ms, server()))
root = lb.round_robin([delay(4 * ms, delay(6 * ms, last)), delay(9 * ms, last)], start = "first")
"#;
    Case::new(&[0, 1], source).gives(&["20 ok", "29 ok"]);
    // A limit that strikes at 10 ms frees the slot only after the arrival of that instant has found it taken.
    let source = "root = timeout(10 * ms, queue(delay(50 * ms, server()), capacity = 0))";
    Case::new(&[0, 10, 11], source).gives(&["10 timeout", "0 overloaded", "10 timeout"]);
    // A slot that a limit frees goes to a request whose wait would expire at that very instant, if that request comes
    // later in order; if it comes earlier, its wait has already expired.
    let source = r#"
one = queue(delay(50 * ms, server()), timeout = 10 * ms)
root = lb.round_robin([timeout(10 * ms, one), one], start = "first")
"#;
    Case::new(&[0, 0], source).gives(&["10 timeout", "60 ok"]);
    let source = r#"
one = queue(delay(50 * ms, server()), timeout = 10 * ms)
root = lb.round_robin([delay(1 * ms, one), timeout(11 * ms, one)], start = "first")
"#;
    Case::new(&[0, 0], source).gives(&["11 timeout", "11 timeout"]);
}

/// Of one request the earlier attempt goes first, then the lower branch, whatever was scheduled first. Two branches
/// arrive at a queue at 10 ms; the second one answers only 100 ms after it was served.
#[test]
fn attempts_before_branches() {
    let both = |first: &str| {
        let source = format!(
            r#"
q = queue(delay(10 * ms, server()))
root = fanout([{first}, sequence([delay(10 * ms, server()), q, delay(100 * ms, server())])], need = 1)
"#
        );
        Case::new(&[0], &source)
    };
    both("sequence([delay(4 * ms, server()), delay(6 * ms, server()), q])").gives(&["20 ok"]);
    let fails = "flaky(1.0, delay(4 * ms, server()))";
    let attempts = format!(
        "retry(2, lb.round_robin([{fails}, sequence([delay(6 * ms, server()), q])], start = \"first\"), on = [\"status_5xx\"])"
    );
    both(&attempts).gives(&["30 ok"]);
}

/// Each user thinks first, then sends, and thinks again after the answer; at one instant the lower user goes first.
#[test]
fn a_closed_loop() {
    let closed = |users: u32, more: &str| {
        Case::from_file(&format!(
            "scenario(\"s\", queue(delay(10 * ms, server())), traffic.closed({users}, 10 * ms), {more})\n"
        ))
    };
    // Both arrive at 10 ms; user 1 waits for user 0. From then on they alternate.
    let went = closed(2, "requests = 6, window = \"all\"")
        .gives(&["10 ok", "10 ok", "10 ok", "20 ok", "10 ok", "10 ok"]);
    assert_eq!(went.busy_and_waiting("queue", 50.0), (50.0, 10.0));
    // Arrivals at 10, 30, 50, 70, 90 and at 10, 40, 60, 80, 100: those of the middle half of the time count.
    let went = closed(2, "duration = 100 * ms").run();
    assert_eq!((went.result.requests.total, went.result.requests.selected), (10, 5));
    // Both ends of the window belong to it: 30 and 90 ms.
    let went = closed(2, "duration = 120 * ms").run();
    assert_eq!((went.result.requests.total, went.result.requests.selected), (12, 7));
    let went = closed(2, "duration = 100 * ms, window = \"all\"").run();
    assert_eq!((went.result.requests.total, went.result.requests.selected), (10, 10));
    // The middle half of eight, in order of arrival: the third to the sixth.
    let went = closed(2, "requests = 8").run();
    assert_eq!((went.result.requests.total, went.result.requests.selected), (8, 4));
    // A user that leaves thinks again: the client's patience ends, not the work at the server.
    let went = Case::from_file(
        "scenario(\"s\", delay(30 * ms, server()), traffic.closed(1, 10 * ms), requests = 3, window = \"all\", patience = 20 * ms)\n",
    )
    .gives(&["20 cancelled"; 3]);
    assert!((went.result.request_rate_per_s.value.unwrap() - 3.0 / 0.06).abs() < 1e-9);
}

/// A run ends with its requests or its time, whichever comes first, and requests that have begun are followed to
/// their end.
#[test]
fn duration() {
    let of = |more: &str| {
        Case::from_file(&format!(
            "scenario(\"s\", timeout(1 * hours, delay(15 * ms, server())), traffic.constant(every = 10 * ms), window = \"all\", {more})\n"
        ))
        .run()
    };
    assert_eq!(of("duration = 95 * ms").answers, ["15 ok"; 9]);
    assert_eq!(of("duration = 95 * ms, requests = 5").answers, ["15 ok"; 5]);
    assert_eq!(of("duration = 95 * ms, requests = 50").answers, ["15 ok"; 9]);
}

/// A closed loop with a duration ends although processes continue failing; and so does a run in which a request is lost
/// for good inside a process that no request enters any more.
#[test]
fn runs_end_though_nodes_go_on_failing() {
    let crash = "faulty(5 * ms, 1 * ms, delay(2 * ms, server()), mode = \"crash\")";
    Case::from_file(&format!(
        "scenario(\"s\", {crash}, traffic.closed(2, 3 * ms), duration = 500 * ms, window = \"all\")\n"
    ))
    .run();
    // All users are lost.
    let hole = "faulty(1 * ms, 100000 * hours, server(), mode = \"blackhole\", starts = \"down\")";
    Case::from_file(&format!(
        "scenario(\"s\", sequence([{crash}, {hole}]), traffic.closed(2, 3 * ms), requests = 100, window = \"all\")\n"
    ))
    .run();
    let lazy = format!("faulty(1 * s, 1 * ms, {hole}, mode = \"crash\", clock = \"lazy\")");
    Case::new(&[0, 1, 2], &format!("root = lb.round_robin([{crash}, {lazy}])")).run();
}

/// A process found dead on the way in resets every request that was inside, even the one that found it dead: here
/// another node on the same timeline surrounds it.
#[test]
fn who_finds_itself_dead_is_reset() {
    let source = r#"
def dies(node):
    return faulty(5 * ms, 5 * ms, node, mode = "crash", clock = "lazy", together = "x")

root = dies(delay(4 * ms, dies(delay(1 * ms, server()))))
"#;
    let at: Vec<u64> = (0..300).map(|i| 2 * i).collect();
    let went = Case::new(&at, source).run();
    for says in ["5 ok", "reset", "0 connect_failed"] {
        assert!(went.answers.iter().any(|a| a.ends_with(says)), "{says}: {:?}", went.answers);
    }
}

/// A place that a request passes again, on ways of the same number, draws anew each time.
#[test]
fn ways_that_follow_each_other_differ() {
    let twice = |x: &str, both: &str| {
        let ms = |root: &str| -> f64 {
            let source = format!("x = {x}\nroot = {root}");
            let answers = Case::new(&[0, 1, 2], &source).run().answers;
            answers.iter().map(|a| a.split(' ').next().unwrap().parse::<f64>().unwrap()).sum()
        };
        let (both, once) = (ms(both), ms("sequence([x])"));
        assert!((both - 2.0 * once).abs() > 0.1, "{x}: {both} is twice {once}");
    };
    let work = "delay(dist.exponential(10 * ms), server())";
    twice(work, "sequence([x, x])");
    twice(&format!("timeout(1 * hours, {work})"), "sequence([x, x])");
    twice(&format!("fanout([{work}, {work}])"), "sequence([x, x])");
    // Only its second attempt takes time.
    let second = format!(
        "retry(2, lb.round_robin([flaky(1.0, server()), {work}], start = \"first\"), on = [\"status_5xx\"])"
    );
    twice(&second, "sequence([x, x])");
    twice(&format!("timeout(1 * hours, {second})"), "sequence([x, x])");
}

/// The branches of a fan-out draw differently at one place: the first is not the last.
#[test]
fn branches_differ() {
    let of = |need: u32| {
        let source =
            format!("x = delay(dist.exponential(10 * ms), server())\nroot = fanout([x, x], need = {need})");
        Case::new(&[0], &source).run().answers
    };
    assert_ne!(of(1), of(2));
}

/// After a retry a request is on the way on which it came, with the visits of its first attempt; with `work="same"`
/// each attempt brings the work of the first one.
#[test]
fn visits_of_attempts() {
    let ms = |root: &str| -> f64 {
        let source = format!("x = delay(dist.exponential(10 * ms), server())\nroot = {root}");
        let answer = Case::new(&[0], &source).run().answers.remove(0);
        answer.split(' ').next().unwrap().parse().unwrap()
    };
    let fails = "sequence([x, flaky(1.0, server())])";
    let retried =
        format!("retry(2, lb.round_robin([{fails}, server()], start = \"first\"), on = [\"status_5xx\"])");
    assert_eq!(ms(&format!("sequence([{retried}, x])")), ms("sequence([x, x])"));
    let fails = "sequence([x, x, flaky(1.0, server())])";
    let same = format!("retry(2, {fails}, on = [\"status_5xx\"], work = \"same\")");
    assert!((ms(&same) - 2.0 * ms(fails)).abs() < 0.002, "to the microsecond");
    assert!((ms(&same.replace("same", "redraw")) - 2.0 * ms(fails)).abs() > 0.1);
}

/// Two consecutive retries draw their backoffs independently.
#[test]
fn backoffs_of_two_retries_differ() {
    let ms = |retries: u32| -> f64 {
        let source = format!(
            r#"
def fails_once():
    node = lb.round_robin([flaky(1.0, server()), server()], start = "first")
    return retry(2, node, on = ["status_5xx"], backoff = 100 * ms)

root = sequence(pool({retries}, fails_once))
"#
        );
        let answers = Case::new(&[0, 1], &source).run().answers;
        answers.iter().map(|a| a.strip_suffix(" ok").unwrap().parse::<f64>().unwrap()).sum()
    };
    let (once, twice) = (ms(1), ms(2));
    assert!(once > 0.0 && (twice - 2.0 * once).abs() > 0.1, "{twice} is twice {once}");
}

/// The later picks of a branch left behind do not depend on what the request that reuses its slot has tried.
#[test]
fn what_is_left_behind_has_tried_what_it_has_tried() {
    // The first request continues in the queue and picks at 30 ms, long after it was answered.
    let source = r#"
targets = lb.least_conn([delay(1 * ms, server("a")), delay(1 * ms, server("b"))], ties = "first")
late = queue(timeout(1 * hours, delay(30 * ms, targets)), on_cancel = "finish")
root = retry(2, lb.round_robin([timeout(5 * ms, late), delay(20 * ms, targets)], start = "first"), on = ["reset"])
"#;
    let went = Case::new(&[0, 6], source).run();
    assert_eq!(went.answers, ["5 timeout", "21 ok"]);
    assert_eq!((went.node("a").requests, went.node("b").requests), (2, 0));
}

/// Limits that strike at one instant do so from the outside in, whatever was scheduled first: the client's patience,
/// then the outer node's, then the inner one's, then a wait in line. So no node inside counts an error.
#[test]
fn limits_strike_from_the_outside_in() {
    let inner = r#"timeout(10 * ms, queue(delay(1 * hours, server()), timeout = 10 * ms, name = "line"), name = "inner")"#;
    let other = "timeout(10 * ms, timeout(7 * ms, timeout(6 * ms, timeout(5 * ms, timeout(4 * ms, timeout(3 * ms, server()))))))";
    for first in ["", "timeout(10 * ms, server())", other] {
        // The first request fixes which waits have a lane of their own.
        let source = format!(
            "root = lb.round_robin([{}timeout(20 * ms, delay(10 * ms, {inner}), name = \"outer\")], start = \"first\")",
            if first.is_empty() { String::new() } else { format!("{first}, ") }
        );
        let went = Case::new(&[0, 0], &source).run();
        assert_eq!(went.answers[1], "20 timeout");
        let errors = ["outer", "inner", "line"].map(|node| went.errors(node, Kind::Timeout));
        assert_eq!(errors, [if first.is_empty() { 2 } else { 1 }, 0, 0], "{first:?}");
        let gone = Case::with(&[0, 0], &source, ", patience = 20 * ms").run();
        assert_eq!(gone.answers[1], "20 cancelled");
    }
}

/// Work that ends at the instant of its arrival continues after events that come before arrivals: here the end of a
/// pass-over.
#[test]
fn work_of_no_length_ends_in_its_turn() {
    for nothing in ["delay(0 * s, server())", "concurrent(0 * s)"] {
        let source = format!(
            r#"
down = faulty(1 * ms, 100000 * hours, server(), mode = "crash", starts = "down")
root = sequence([{nothing}, lb.least_conn([down, delay(5 * ms, server())], ties = "first", pass_over = 100 * ms)])
"#
        );
        Case::new(&[0, 50, 100], &source).gives(&["0 connect_failed", "5 ok", "0 connect_failed"]);
    }
}

/// How often a request has been at a place does not depend on what was cut off around it, or in which attempt: the
/// way back over the first cable is the second crossing back at its place on that way, in each of these.
#[test]
fn visits_outlive_what_is_cut_off() {
    let answers = |inside: &str| {
        let source = format!(
            r#"
def link(x):
    return cable(dist.exponential(10 * ms), x)

root = link(timeout(1 * s, {inside}))
"#
        );
        Case::new(&[0, 3000], &source).run().answers
    };
    let stuck = "delay(9 * hours, server())";
    let once = answers(&format!("sequence([link(server()), {stuck}])"));
    assert_eq!(answers(&format!("timeout(1 * hours, sequence([link(server()), {stuck}]))")), once);
    let retried = format!(
        "retry(2, lb.least_conn([sequence([link(server()), flaky(1.0, server())]), {stuck}], ties = \"first\"), on = [\"status_5xx\"])"
    );
    assert_eq!(answers(&retried), once);
    let within = format!(
        "retry(2, timeout(1 * hours, {}), on = [\"status_5xx\"])",
        retried.replace("retry(2", "retry(1")
    );
    assert_eq!(answers(&within), once);
    assert_ne!(answers(stuck), once);
    // When both are killed at the same instant, the one that has been at the place before takes another time back
    // than the other.
    let dies = |node: &str| answers(&format!("faulty(50 * ms, 100000 * hours, {node}, mode = \"crash\")"));
    assert_ne!(dies(&format!("sequence([link(server()), {stuck}])"))[0], dies(stuck)[0]);
}

/// A branch left behind excludes what the request had tried before: a, where the first attempt was cut off.
#[test]
fn what_is_left_behind_keeps_in_mind_what_was_tried() {
    for limit in ["", "timeout(1 * hours, "] {
        let late = format!(
            "queue({limit}delay(30 * ms, targets){}, on_cancel = \"finish\")",
            if limit.is_empty() { "" } else { ")" }
        );
        let source = format!(
            r#"
targets = lb.least_conn([delay(10 * ms, server("a")), delay(10 * ms, server("b"))], ties = "first")
root = retry(2, timeout(5 * ms, lb.round_robin([targets, {late}], start = "first")), on = ["timeout"])
"#
        );
        let went = Case::new(&[0], &source).gives(&["10 timeout"]);
        assert_eq!((went.node("a").requests, went.node("b").requests), (0, 1));
    }
}

/// Events at one instant follow the order of `docs/spec/language.md#order-at-one-instant`, whatever was scheduled
/// first: a delay in front that changes only the time changes nothing else.
#[test]
fn attempts_of_hedges_and_retries_have_ranks_of_their_own() {
    let case = |before: &str| {
        let source = format!(
            r#"
q = queue(delay(40 * ms, server()), capacity = 0)
attempt = retry(2, sequence([delay(5 * ms, server()), flaky(0.5, server()), q]), on = ["overloaded", "status_5xx"], backoff = 10 * ms)
root = delay({before}, hedge(5 * ms, timeout(100 * ms, attempt), attempts = 3))
"#
        );
        Case::new(&[0, 10, 20, 30, 40, 50, 60, 70, 80, 90], &source).run().answers
    };
    let later = |answers: Vec<String>, ms: f64| -> Vec<String> {
        let move_on = |a: String| {
            let (at, what) = a.split_once(' ').unwrap();
            format!("{:.3} {what}", at.parse::<f64>().unwrap() + ms)
        };
        answers.into_iter().map(move_on).collect()
    };
    assert_eq!(later(case("1 * ms"), 0.0), later(case("0 * ms"), 1.0));
}

/// A fan-out with more branches than a rank has bits for: an error in words, or an order.
#[test]
fn large_fan_outs_have_ranks_or_are_refused() {
    let file = |n: u32, node: &str| {
        format!(
            "scenario(\"s\", fanout(pool({n}, lambda: {node})), traffic.constant(every = 1 * ms), requests = 1)\n"
        )
    };
    let run = |source: &str| {
        super::run_with(
            &super::plan(source),
            &super::options(),
            &|_, _| {},
            &std::sync::atomic::AtomicBool::new(false),
            false,
        )
    };
    assert!(run(&file(20_000, "timeout(9 * ms, delay(1 * ms, server()))")).is_ok());
    let said = run(&file(300, "fanout(pool(300, lambda: delay(1 * ms, server())))"));
    assert!(
        matches!(&said, Err(crate::Error::Plan(why)) if why.contains("65535 branches at once")),
        "{said:?}"
    );
}

/// Branches that a fan-out left behind come before those of the next one where both are in one queue at one instant,
/// in both engines.
#[test]
fn branches_left_behind_keep_their_ranks() {
    for rate in 60..120 {
        let source = format!(
            r#"
def e(m):
    return dist.rounded(dist.exponential(m * ms), 1 * ms)

a = queue(delay(e(2), server("a")), 2, on_cancel = "skip")
b = queue(concurrent(e(3), cores = 2), 3, on_cancel = "finish")
both = fanout([a, b, a], need = 1)
root = sequence([both, delay(1 * ms, server()), lb.zuul([a, both], decay = 40 * ms), both])
scenario("s", root, traffic.poisson(rate = {rate}), requests = 400)
"#
        );
        super::engine::agree(&super::plan(&source), &source);
    }
}
