//! What cancellation cuts off, what it leaves behind, and what the next request finds.

use super::Case;
use weir_policy::Kind;

/// Work that ends exactly at its limit has ended in time: a delay, a crossing, a server's work, a wait in line.
#[test]
fn at_the_limit_is_in_time() {
    for (limit, says) in [(10, "10 ok"), (9, "9 timeout")] {
        for node in [
            "delay(10 * ms, server())",
            "delay(4 * ms, delay(6 * ms, server()))",
            "cable(5 * ms, server())",
            "concurrent(10 * ms)",
            "queue(concurrent(10 * ms, threads = 1))",
            "sequence([delay(4 * ms, server()), concurrent(6 * ms)])",
            "fanout([delay(4 * ms, server()), delay(10 * ms, server())])",
        ] {
            let root = format!("root = timeout({limit} * ms, {node})");
            Case::new(&[0], &root).gives(&[says]);
            Case::with(&[0], &format!("root = {node}"), &format!(", patience = {limit} * ms"))
                .gives(&[&says.replace("timeout", "cancelled")]);
        }
        let line = format!("root = queue(delay(10 * ms, server()), timeout = {limit} * ms)");
        let second = if limit == 10 { "20 ok" } else { "9 timeout" };
        Case::new(&[0, 0], &line).gives(&["10 ok", second]);
    }
}

/// `on_cancel` of a queue, and of a server with one thread, which is the same: a is served; at 15 ms b is inside and
/// c waits; d arrives at 16 ms and e at 36 ms. Busy and waiting are integrals over the 36 ms between first and last
/// arrival.
#[test]
fn on_cancel_of_queues_and_servers() {
    let at = [0, 0, 0, 16, 36];
    for queue in ["queue(delay(10 * ms, server()), ", "concurrent(10 * ms, threads = 1, "] {
        let kind = queue.split('(').next().unwrap();
        let with = |how: &str| format!("root = timeout(15 * ms, {queue}on_cancel = \"{how}\"))");
        // Both are gone: d finds the queue free.
        let went =
            Case::new(&at, &with("stop")).gives(&["10 ok", "15 timeout", "15 timeout", "10 ok", "10 ok"]);
        assert_eq!(went.busy_and_waiting(kind, 36.0), (15.0 + 10.0, 10.0 + 15.0), "{kind}");
        // b continues until 20 ms, and d waits for that.
        let went =
            Case::new(&at, &with("skip")).gives(&["10 ok", "15 timeout", "15 timeout", "14 ok", "10 ok"]);
        assert_eq!(went.busy_and_waiting(kind, 36.0), (20.0 + 10.0, 10.0 + 15.0 + 4.0), "{kind}");
        // Both continue, until 20 and 30 ms: d is inside when its limit strikes, and continues until 40 ms, before e.
        let went = Case::new(&at, &with("finish")).gives(&[
            "10 ok",
            "15 timeout",
            "15 timeout",
            "15 timeout",
            "14 ok",
        ]);
        assert_eq!(went.busy_and_waiting(kind, 36.0), (36.0, 10.0 + 20.0 + 14.0), "{kind}");
        assert_eq!(went.node(kind).queue_max, Some(2));
    }
}

/// Two requests that share a core are cut off at 15 ms with 3.33 ms of work left each; b arrived at 10 ms, has done
/// 1.67 ms, and is alone from then on. Where they continue, it gets a third until its own limit.
#[test]
fn what_shares_a_core_gets_it_back() {
    let with =
        |how: &str| format!("root = timeout(15 * ms, concurrent(10 * ms, cores = 1, on_cancel = \"{how}\"))");
    let cut = "15 timeout";
    Case::new(&[0, 0, 10], &with("stop")).gives(&[cut, cut, "13.333 ok"]);
    Case::new(&[0, 0, 10], &with("skip")).gives(&[cut, cut, cut]);
    Case::new(&[0, 0, 10], &with("finish")).gives(&[cut, cut, cut]);
}

/// Cutting one off in the middle of a line keeps the order of the others, and a limit of the wait in line does not
/// affect a request inside.
#[test]
fn a_line_keeps_its_order() {
    // b leaves the line at 5 ms (its own limit is behind the balancer), c takes its turn.
    let source = r#"
one = queue(delay(10 * ms, server()))
root = lb.round_robin([one, timeout(5 * ms, one), one], start = "first")
"#;
    Case::new(&[0, 0, 0], source).gives(&["10 ok", "5 timeout", "20 ok"]);
    // Waits that expire: c and d leave at 15 ms; e, which arrived at 16 ms, is next after b.
    let source = "root = queue(delay(10 * ms, server()), timeout = 15 * ms)";
    let went =
        Case::new(&[0, 0, 0, 0, 16], source).gives(&["10 ok", "20 ok", "15 timeout", "15 timeout", "14 ok"]);
    assert_eq!(went.errors("queue", Kind::Timeout), 2);
    assert_eq!(went.busy_and_waiting("queue", 16.0), (16.0, 10.0 + 15.0 + 15.0));
}

/// A place in a bounded line is free at once when the request there is cut off.
#[test]
fn room_in_a_line_is_free_at_once() {
    let source = r#"
one = queue(delay(10 * ms, server()), capacity = 1)
root = lb.round_robin([one, timeout(5 * ms, one), one, one], start = "first")
"#;
    Case::new(&[0, 0, 4, 6], source).gives(&["10 ok", "5 timeout", "0 overloaded", "14 ok"]);
}

/// A balancer forgets a request that is cut off, at once; behind a queue that finishes the request it keeps counting
/// it until the end. a takes 50 ms, b 5 ms, the first on ties.
#[test]
fn balancers_count_what_goes_on() {
    let two = r#"lb.least_conn([delay(50 * ms, server("a")), delay(5 * ms, server("b"))], ties = "first")"#;
    // At exactly 10 ms the arrival comes before the limit.
    let free = format!("root = timeout(10 * ms, {two})");
    Case::new(&[0, 10, 21], &free).gives(&["10 timeout", "5 ok", "10 timeout"]);
    let kept = format!("root = timeout(10 * ms, queue({two}, concurrency = 9, on_cancel = \"finish\"))");
    Case::new(&[0, 11, 51], &kept).gives(&["10 timeout", "5 ok", "10 timeout"]);
    let skip = kept.replace("finish", "skip");
    Case::new(&[0, 11, 51], &skip).gives(&["10 timeout", "5 ok", "10 timeout"]);
    let stop = kept.replace("finish", "stop");
    Case::new(&[0, 11, 51], &stop).gives(&["10 timeout"; 3]);
    // The request in a queue behind the balancer continues, but the balancer does not count it.
    let behind = r#"
slow = queue(delay(50 * ms, server("a")), on_cancel = "finish")
root = timeout(10 * ms, lb.least_conn([slow, delay(5 * ms, server("b"))], ties = "first"))
"#;
    Case::new(&[0, 11, 22, 90], behind).gives(&["10 timeout"; 4]);
}

/// An error holds a count, a cancelled request does not.
#[test]
fn what_is_cancelled_is_not_held() {
    let two = |a: &str| {
        format!("lb.least_conn([{a}, delay(5 * ms, server(\"b\"))], ties = \"first\", error_hold = 100 * ms)")
    };
    let outside = format!("root = timeout(10 * ms, {})", two("delay(50 * ms, server(\"a\"))"));
    Case::new(&[0, 11], &outside).gives(&["10 timeout", "10 timeout"]);
    let inside = format!("root = {}", two("timeout(10 * ms, delay(50 * ms, server(\"a\")))"));
    Case::new(&[0, 11], &inside).gives(&["10 timeout", "5 ok"]);
}

/// The shorter of two limits strikes; a node's errors are those that pass it.
#[test]
fn limits_within_limits() {
    let nested = |outer: u32, inner: u32| {
        format!(
            "root = timeout({outer} * ms, timeout({inner} * ms, delay(15 * ms, server()), name = \"inner\"), name = \"outer\")"
        )
    };
    let went = Case::new(&[0, 1], &nested(20, 10)).gives(&["10 timeout"; 2]);
    assert_eq!((went.errors("inner", Kind::Timeout), went.errors("outer", Kind::Timeout)), (2, 2));
    let went = Case::new(&[0, 1], &nested(10, 20)).gives(&["10 timeout"; 2]);
    assert_eq!((went.errors("inner", Kind::Timeout), went.errors("outer", Kind::Timeout)), (0, 2));
    Case::new(&[0], &nested(20, 15)).gives(&["15 ok"]);
}

/// Attempts that time out begin anew until the limit around them strikes; at one instant the earlier attempt's event
/// comes first, so the outer limit strikes and no further attempt begins.
#[test]
fn attempts_within_a_limit() {
    let of = |outer: u32, attempts: u32| {
        format!(
            "root = timeout({outer} * ms, retry({attempts}, timeout(10 * ms, delay(15 * ms, server())), on = [\"timeout\"]))"
        )
    };
    for (outer, attempts, says, began) in
        [(25, 3, "25 timeout", 3.0), (20, 3, "20 timeout", 2.0), (99, 3, "30 timeout", 3.0)]
    {
        let went = Case::new(&[0, 100], &of(outer, attempts)).gives(&[says; 2]);
        assert_eq!(went.result.attempts_per_request.value, Some(began), "{outer}");
    }
}

/// A client that leaves frees what its request holds, whatever node is between, and gets no answer.
#[test]
fn patience() {
    let case = |root: &str| Case::with(&[0, 11], &format!("root = {root}"), ", patience = 10 * ms");
    case("delay(15 * ms, server())").gives(&["10 cancelled"; 2]);
    case("queue(delay(15 * ms, server()))").gives(&["10 cancelled"; 2]);
    case("queue(delay(8 * ms, server()))").gives(&["8 ok"; 2]);
    // The first continues until 15 ms; the second waits for that, and has 6 ms left.
    case("queue(delay(15 * ms, server()), on_cancel = \"skip\")").gives(&["10 cancelled"; 2]);
    case("queue(delay(12 * ms, server()), on_cancel = \"skip\")").gives(&["10 cancelled", "10 cancelled"]);
    Case::with(
        &[0, 13],
        "root = queue(delay(12 * ms, server()), on_cancel = \"finish\")",
        ", patience = 12 * ms",
    )
    .gives(&["12 ok", "12 ok"]);
    case("retry(9, flaky(1.0, delay(4 * ms, server())), on = [\"status_5xx\"])").gives(&["10 cancelled"; 2]);
    // The client's own limit comes before those of the nodes.
    case("timeout(10 * ms, delay(15 * ms, server()))").gives(&["10 cancelled"; 2]);
}

/// Of two queues that finish their requests the outer one keeps its slot as well: everything behind it continues as if
/// nothing had happened.
#[test]
fn the_outermost_queue_goes_on() {
    let source = r#"
inner = queue(delay(50 * ms, server()), on_cancel = "finish", name = "inner")
root = timeout(10 * ms, queue(inner, on_cancel = "finish", name = "outer"))
"#;
    let went = Case::new(&[0, 5, 60], source).gives(&["10 timeout"; 3]);
    assert_eq!(went.busy_and_waiting("outer", 60.0), (60.0, 45.0));
    assert_eq!(went.busy_and_waiting("inner", 60.0), (60.0, 0.0));
}

/// A request left behind in a queue whose slot is inside of another's does not occupy the outer slot.
#[test]
fn a_slot_around_what_is_left_behind_is_free() {
    let source = r#"
inner = queue(delay(50 * ms, server()), on_cancel = "finish", name = "inner")
root = queue(timeout(20 * ms, inner), name = "outer")
"#;
    // The first holds the outer slot until 20 ms and the inner one until 50; the second has both limits before it.
    let went = Case::new(&[0, 5, 60], source).gives(&["20 timeout", "35 timeout", "20 timeout"]);
    assert_eq!(went.busy_and_waiting("outer", 60.0), (40.0, 15.0));
    assert_eq!(went.busy_and_waiting("inner", 60.0), (60.0, 30.0));
}

/// A `timeout` around a balancer is an error of the target at which a request was, also of one that is tried again
/// after its ejection. The client's patience, limits with more between, and limits behind another balancer are not.
#[test]
fn a_timeout_around_a_balancer_ejects() {
    let lb = |eject: &str| {
        format!(
            "lb.first([delay(1 * hours, server()), delay(5 * ms, server(\"well\"))], eject = {eject}, panic = 0)"
        )
    };
    let lasts = lb("eject(consecutive = 2, base = 1 * hours)");
    let at = [0, 20, 40, 60];
    let (cut, none) = ("10 timeout", ["10 timeout"; 4]);
    let ejects = [cut, cut, "5 ok", "5 ok"];
    for root in [
        format!("timeout(10 * ms, {lasts})"),
        format!("retry(2, timeout(10 * ms, {lasts}, name = \"limit\"))"),
        format!("timeout(10 * ms, retry(3, retry(2, {lasts})))"),
        format!("timeout(50 * ms, queue(timeout(10 * ms, {lasts}), concurrency = 9))"),
    ] {
        Case::new(&at, &format!("root = {root}")).gives(&ejects);
    }
    let outlier =
        lb("outlier(consecutive_5xx = 2, base_ejection_time = 1 * hours, max_ejection_percent = 100)");
    Case::new(&at, &format!("root = timeout(10 * ms, {outlier})")).gives(&ejects);
    for root in [
        format!("timeout(10 * ms, queue({lasts}, concurrency = 9))"),
        format!("timeout(10 * ms, timeout(50 * ms, {lasts}))"),
        format!("timeout(10 * ms, lb.first([{lasts}]))"),
        format!(
            "timeout(10 * ms, lb.first([server()], health = health.tcp(interval = 1 * hours, initial = \"down\", rise = 2), on_empty = {lasts}))"
        ),
    ] {
        Case::new(&at, &format!("root = {root}")).gives(&none);
    }
    Case::with(&at, &format!("root = {lasts}"), ", patience = 10 * ms").gives(&["10 cancelled"; 4]);
    // Out from 30 to 60 ms, then from 80 to 140.
    let again = format!("root = timeout(10 * ms, {})", lb("eject(consecutive = 2, base = 30 * ms)"));
    let at = [0, 20, 40, 70, 90, 130, 150];
    Case::new(&at, &again).gives(&[cut, cut, "5 ok", cut, "5 ok", "5 ok", cut]);
}

/// The members of one site are timeouts around different nodes, and a request that goes on without its client was cut
/// off all the same.
#[test]
fn a_timeout_counts_by_what_it_is_around() {
    let source = r#"
hole = queue(delay(1 * hours, server()), concurrency = 9, on_cancel = "finish")
lb1 = lb.first([hole, server("well")], eject = eject(consecutive = 1, base = 1 * hours), panic = 0)
lb2 = lb.first([hole, server("good")], eject = eject(consecutive = 1, base = 1 * hours), panic = 0)
behind = [lb1, queue(lb2, concurrency = 9)]
root = lb.round_robin([timeout(10 * ms, behind[i]) for i in range(2)], start = "first")
"#;
    let cut = "10 timeout";
    Case::new(&[0, 0, 20, 20, 40, 40], source).gives(&[cut, cut, "0 ok", cut, "0 ok", cut]);
}

/// Two of ten targets take requests and never answer: by a `timeout` around the balancer they are ejected, and only the
/// requests that found that out are late.
#[test]
fn black_holes_are_ejected_by_a_timeout_around() {
    let p99 = |eject: &str| {
        let source = format!(
            r#"
def app():
    return queue(delay(dist.exponential(10 * ms), server("app")))
apps = block(dist.fixed(1 * s), dist.fixed(100 * s), pool(2, app), mode = "blackhole") + pool(8, app)
root = retry(3, timeout(1 * s, lb.p2c(apps, eject = {eject})), on = ["timeout"])
scenario("s", root, traffic.poisson(rate = 300), duration = 20 * s, window = "all")
"#
        );
        Case::from_file(&source).run().result.latency_all.p99.value.unwrap()
    };
    let (without, with) = (p99("None"), p99("eject(consecutive = 3)"));
    assert!(without > 1000.0 && with < 100.0, "{without} ms, {with} ms");
}
