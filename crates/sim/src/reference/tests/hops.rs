//! Listeners behind others: the answer in front of one, the new request behind it, and agreement of both engines.

use super::core::random_file;
use super::engine::{agree, file};
use super::loops::any_file;
use super::random::{Draws, random_plan};
use super::{Case, options, plan};
use crate::results::run::{Options, run_with};
use std::sync::atomic::AtomicBool;
use weir_policy::Kind;

/// A listener behind another.
fn hop(node: &str) -> String {
    format!("listen(\":0\", {node}, name = \"inner\")")
}

/// The table in `docs/spec/language.md#kinds`: the answer that a client of weir sees, whether it is an error, and
/// what the listener itself records.
#[test]
fn what_fails_behind_a_listener_is_an_answer() {
    let dead = "faulty(9 * hours, 9 * hours, server(), mode = \"crash\", starts = \"down\")";
    let refused = "faulty(9 * hours, 9 * hours, server(), starts = \"down\")";
    for (node, kind, status) in [
        (dead, Kind::ConnectFailed, 503),
        (refused, Kind::Refused, 503),
        ("flaky(1.0, server(), kind = \"overloaded\")", Kind::Overloaded, 503),
        ("timeout(1 * ns, delay(1 * ms, server()))", Kind::Timeout, 504),
        ("flaky(1.0, server(), kind = \"reset\")", Kind::Reset, 502),
        ("flaky(1.0, server(), kind = \"bad_response\")", Kind::BadResponse, 502),
        ("flaky(1.0, server())", Kind::Status5xx, 500),
        ("respond(507)", Kind::Status5xx, 507),
        (
            "lb.first([cable(1 * ms, server())], health = health.tcp(initial = \"checked\"), panic = 0)",
            Kind::NoTarget,
            503,
        ),
        ("route([(when(path = \"/b\"), server())])", Kind::NoRoute, 404),
        ("respond(404)", Kind::Status5xx, 404),
        ("server()", Kind::Status5xx, 0),
    ] {
        let again =
            |on: &str| Case::new(&[0], &format!("root = listen(\":0\", retry(2, {}, on = {on}))", hop(node)));
        let attempts = |on: &str| again(on).run().result.attempts_per_request.value;
        let of_kind =
            "[\"connect_failed\", \"refused\", \"overloaded\", \"timeout\", \"reset\", \"bad_response\"]";
        assert_eq!(attempts(of_kind), Some(1.0), "{node}: no kind but status_5xx comes out");
        if status >= 400 {
            assert_eq!(attempts(&format!("[{status}]")), Some(2.0), "{node}");
        }
        let went = again("[\"status_5xx\"]").run();
        let failed = status >= 500;
        assert_eq!(went.result.attempts_per_request.value, Some(if failed { 2.0 } else { 1.0 }), "{node}");
        assert!(went.answers[0].ends_with(if failed { " status_5xx" } else { " ok" }), "{node}");
        if failed {
            assert_eq!((went.errors("inner", kind), went.errors("retry", Kind::Status5xx)), (2, 1), "{node}");
        }
        // Where requests come in, the result has the kind itself.
        let outermost = Case::new(&[0], &format!("root = listen(\":0\", {node})")).run();
        let told = if failed || kind == Kind::NoRoute { kind.name() } else { "ok" };
        assert!(outermost.answers[0].ends_with(told), "{node}: {:?}", outermost.answers);
    }
}

/// A rate limit answers 429, which is not a failure of the target, unlike a full queue.
#[test]
fn a_rate_limit_answers_429() {
    let root = |node: &str| {
        format!(
            "root = listen(\":0\", lb.first([{}, server(\"spare\")], eject = eject(consecutive = 1), panic = 0))",
            hop(node)
        )
    };
    let rate = "limit.rate(server(), 1, burst = 1)";
    let went = Case::new(&[0, 1, 2], &root(rate)).gives(&["0 ok"; 3]);
    assert_eq!((went.errors("inner", Kind::Overloaded), went.node("spare").requests), (2, 0));
    // A full queue behind it still fails as full.
    let queue = format!("sequence([{}, queue(delay(9 * ms, server()), capacity = 0)])", "respond(429)");
    let went = Case::new(&[0, 1, 2], &root(&queue)).gives(&["9 ok", "0 status_5xx", "0 ok"]);
    assert_eq!(went.node("spare").requests, 1, "a 503 ejects");
}

/// Where only a single path leads to the outermost listener, results have the kind. A retry or balancer in front gets
/// an answer.
#[test]
fn the_outermost_listener_is_where_requests_come_in() {
    let fails = "flaky(1.0, server(), kind = \"reset\")";
    for (root, says) in [
        (format!("cable(1 * ms, {})", hop(fails)), "2 reset"),
        (
            format!("timeout(9 * ms, rewrite(cable(1 * ms, {}), path = (\"/a\", \"/b\")))", hop(fails)),
            "2 reset",
        ),
        (format!("cable(1 * ms, listen(\":0\", {}))", hop(fails)), "2 status_5xx"),
        (format!("lb.first([{}])", hop(fails)), "0 status_5xx"),
        (format!("retry(2, {}, on = [502])", hop(fails)), "0 status_5xx"),
    ] {
        Case::new(&[0], &format!("root = {root}")).gives(&[says]);
    }
}

/// Cancellation travels through a listener: requests behind it are cut off or continue as elsewhere.
#[test]
fn cancellation_travels_through() {
    let root = |how: &str| {
        let queue = format!("queue(delay(10 * ms, server()), on_cancel = \"{how}\")");
        format!("root = listen(\":0\", timeout(4 * ms, {}))", hop(&queue))
    };
    Case::new(&[0, 5], &root("stop")).gives(&["4 timeout"; 2]);
    let went = Case::new(&[0, 5, 30], &root("skip")).gives(&["4 timeout"; 3]);
    assert_eq!(
        went.busy_and_waiting("queue", 30.0),
        (10.0, 4.0),
        "the second finds the first inside and leaves"
    );
    // A lost request stays lost, and a client that leaves has left.
    let lost = "cable(1 * ms, server(), loss = 1.0)";
    let case = Case::new(&[0], &format!("root = listen(\":0\", {})", hop(lost)));
    assert_eq!(case.run().answers, ["lost"]);
    Case::with(&[0], &format!("root = listen(\":0\", {})", hop(lost)), ", patience = 3 * ms")
        .gives(&["3 cancelled"]);
}

/// Each attempt is a new request to the nodes behind: it has tried no target yet, and earns what a first attempt
/// earns.
#[test]
fn behind_a_listener_a_request_is_a_new_one() {
    let pool = "lb.first([respond(503, name = \"bad\"), server(\"good\")])";
    let tried = |node: &str| {
        let root = format!("root = listen(\":0\", retry(3, {node}, on = [503], exclude = \"tried\"))");
        let went = Case::new(&[0], &root).run();
        (went.node("bad").requests, went.answers[0].clone())
    };
    assert_eq!(tried(pool), (1, "0 ok".to_owned()));
    assert_eq!(tried(&hop(pool)), (3, "0 status_5xx".to_owned()));
    // An inner retry excludes the targets that it tried, and the state of the outer one is restored behind it.
    let own = format!("retry(2, {pool}, on = [503])");
    assert_eq!(tried(&hop(&own)), (1, "0 ok".to_owned()));
    let both = format!("lb.first([{}, server(\"other\")])", hop(pool));
    assert_eq!(tried(&both), (1, "0 ok".to_owned()), "outside the tried one is left out");
    // Two tokens at first, one more from each incoming request: the inner retry tries again each time.
    let budget = "budget = budget(ratio = 1.0, min_per_s = 0, window = 10 * s)";
    let inner = format!("retry(2, respond(503, name = \"bad\"), on = [503], {budget})");
    let bad = |node: &str| {
        let root = format!("root = listen(\":0\", retry(3, {node}, on = [503]))");
        Case::new(&[0], &root).run().node("bad").requests
    };
    assert_eq!((bad(&inner), bad(&hop(&inner))), (4, 6));
}

/// A balancer does not see which targets are left behind a listener; it learns from answers.
#[test]
fn health_behind_a_listener_is_its_own() {
    let dead = "faulty(9 * hours, 9 * hours, server(\"dead\"), mode = \"crash\", starts = \"down\")";
    let inner = format!(
        "lb.first([{dead}], eject = eject(consecutive = 1, base = 9 * hours, max_percent = 100), panic = 0)"
    );
    let root = |node: &str| {
        let more = "eject = eject(consecutive = 3, base = 9 * hours, max_percent = 100), panic = 0";
        format!("root = listen(\":0\", lb.first([{node}, server(\"spare\")], {more}))")
    };
    let spare = |node: &str| Case::new(&[0, 1, 2, 3, 4], &root(node)).run().node("spare").requests;
    assert_eq!((spare(&inner), spare(&hop(&inner))), (4, 2), "three answers of 503 eject it");
}

/// A connection to a listener succeeds whatever is behind it; an answer needs a live node there.
#[test]
fn checks_of_a_listener() {
    let spare = |check: &str| {
        let down = "faulty(9 * hours, 9 * hours, server(), starts = \"down\")";
        let root =
            format!("root = listen(\":0\", lb.first([{}, server(\"spare\")], health = {check}))", hop(down));
        Case::new(&[0, 50], &root).run().node("spare").requests
    };
    assert_eq!(spare("health.tcp(interval = 10 * ms, timeout = 5 * ms, fall = 1, jitter = 0)"), 0);
    assert_eq!(spare("health.http(\"/\", interval = 10 * ms, timeout = 5 * ms, fall = 1, jitter = 0)"), 2);
}

/// Targets are hashed by the addresses of listeners: the nodes behind do not matter.
#[test]
fn listeners_are_hashed_by_their_address() {
    let counts = |target: &str| {
        let source = format!(
            "def target(i):\n    return {target}\n\n\
             root = listen(\":0\", lb.ring_hash(pool(5, target), key = key.client()))\n\
             scenario(\"s\", root, traffic.mix(traffic.constant(every = 1 * ms), [(1, request(key = keys.uniform(500)))]), \
             requests = 2000, window = \"all\")\n"
        );
        let options = Options { members: true, ..options() };
        let run =
            run_with(&plan(&source), &options, &|_, _| {}, &AtomicBool::new(false), true).expect("runs");
        let of = run.scenarios[0].nodes.iter().filter(|n| n.kind == "respond");
        of.map(|n| n.requests).collect::<Vec<_>>()
    };
    let by_listener = counts("listen(\"10.0.0.1:%d\" % (i + 1), respond(200))");
    assert!(by_listener.iter().all(|n| *n > 100), "{by_listener:?}");
    let cable = counts("cable(0 * ms, listen(\"10.0.0.1:%d\" % (i + 1), lb.first([respond(200)])))");
    assert_eq!(by_listener, cable);
}

/// The loop of an inner listener is drawn by the request's way and the place: the loops of two places are used evenly
/// and independently, and those of the outermost are unaffected.
#[test]
fn loops_of_inner_listeners_have_balancers_of_their_own() {
    let run = |outer: u32, inner: u32, more: &str| {
        let source = format!(
            "inner = listen(\":0\", lb.round_robin(pool(4, lambda i: server(\"s%d\" % i)), start = \"first\"{more}), loops = {inner})\n\
             root = listen(\":0\", lb.round_robin([inner], start = \"first\"), loops = {outer})\n\
             scenario(\"s\", root, traffic.constant(every = 1 * ms), requests = 4000, window = \"all\")\n"
        );
        agree(&plan(&source), &source);
        let options = Options { members: true, ..options() };
        let run =
            run_with(&plan(&source), &options, &|_, _| {}, &AtomicBool::new(false), true).expect("runs");
        let nodes = &run.scenarios[0].nodes;
        nodes.iter().filter(|n| n.kind == "server").map(|n| n.requests).collect::<Vec<_>>()
    };
    assert_eq!(run(1, 1, ""), [1000; 4]);
    assert_eq!(run(3, 1, ""), [1000; 4], "the loops outside are not its own");
    assert_eq!(run(1, 3, ", scope = \"process\""), [1000; 4]);
    let three = run(1, 3, "");
    assert!(three.iter().sum::<u64>() == 4000 && three.iter().all(|n| n.abs_diff(1000) <= 2), "{three:?}");
    assert_ne!(three, [1000; 4], "three cursors end where they end");
    assert_ne!(three, run(3, 3, "").iter().map(|n| n + 9).collect::<Vec<_>>());
}

/// Turns some nodes of a file into listeners.
fn layered(source: &str, seed: u64) -> String {
    let mut d = Draws::new(seed.wrapping_add(1 << 42));
    let lines = source.lines().map(|line| match line.split_once(" = ") {
        Some((name, node)) if name.starts_with('n') && d.number(5) < 2 => {
            format!("{name} = listen(\":0\", {node}, loops = {})\n", 1 + d.number(3))
        }
        _ => format!("{line}\n"),
    });
    let statuses = "[\"refused\", \"overloaded\", \"timeout\", \"status_5xx\", 502, 503, 429]";
    let more = lines.collect::<String>();
    more.replace("[\"refused\", \"overloaded\", \"timeout\"]", statuses)
}

/// The random files of a seed with listeners in them.
pub(super) fn layers(seed: u64) -> [String; 4] {
    let files = [random_file(seed), random_plan(seed).1, file(seed), any_file(seed, 1 + seed % 3)];
    files.map(|source| layered(&source, seed))
}

/// Any nodes before and behind listeners, and limits that strike anywhere.
#[test]
fn both_engines_agree_on_layers() {
    for seed in super::engine::seeds(300) {
        for source in layers(seed) {
            agree(&plan(&source), &format!("layers seed {seed}:\n{source}"));
        }
    }
}
