//! Nodes for the proxy, in virtual time: fixed answers and their statuses, rewriting, listeners with several loops.

use super::{Case, plan, run_reference};
use crate::results::run::{Options, run_with};
use std::sync::atomic::AtomicBool;
use weir_policy::Kind;

fn root(text: &str) -> Case {
    Case::new(&[0], &format!("root = {text}"))
}

#[test]
fn fixed_answers_are_errors_from_500_on() {
    for (node, says) in [
        ("respond(200, \"hello\")", "0 ok"),
        ("respond(404)", "0 ok"),
        ("respond(500)", "0 status_5xx"),
        ("redirect(\"/\")", "0 ok"),
        ("buffered(rewrite(respond(503), path=(\"/a\", \"/b\")), 64*KiB)", "0 status_5xx"),
    ] {
        let went = root(&format!("delay(3 * ms, {node})")).run();
        assert_eq!(went.answers, [format!("3{}", &says[1..])], "{node}");
    }
    root("listen(\":0\", respond(503))").gives(&["0 status_5xx"]);
    let went = root("respond(503, name=\"gone\")").gives(&["0 status_5xx"]);
    assert_eq!(went.errors("gone", Kind::Status5xx), 1);
}

/// A status is retried whether it is an error or not; a request without an answer has none, and the last answer
/// counts.
#[test]
fn retries_see_the_status_of_an_answer() {
    for (node, on, attempts) in [
        ("respond(503)", "[503]", 3.0),
        ("respond(503)", "[502, 504]", 1.0),
        ("respond(503)", "[\"status_5xx\"]", 3.0),
        ("respond(404)", "[404]", 3.0),
        ("redirect(\"/\")", "[302]", 3.0),
        ("flaky(1.0, respond(404))", "[404]", 1.0),
        ("flaky(1.0, respond(404))", "[500]", 3.0),
        ("flaky(1.0, respond(404), kind=\"reset\")", "[404, 500]", 1.0),
        ("timeout(9 * ms, respond(503))", "[503]", 3.0),
        ("timeout(2 * ms, cable(3 * ms, respond(503)))", "[503]", 1.0),
        ("hedge(9 * ms, respond(404))", "[404]", 3.0),
        ("sequence([respond(404), server()])", "[404]", 1.0),
        ("sequence([server(), respond(404)])", "[404]", 3.0),
        ("fanout([respond(404), respond(404)])", "[404]", 3.0),
        ("lb.first([respond(404)])", "[404]", 3.0),
    ] {
        let went = root(&format!("retry(3, {node}, on={on})")).run();
        let made = went.result.attempts_per_request.value;
        // A hedge makes no further attempt here: its first answer arrives at once.
        assert_eq!(made, Some(attempts), "{node} {on}");
    }
    // Further attempts begin anew: the 404 of the first is not an answer of the second.
    let went = root("retry(2, lb.first([respond(404), server()]), on=[404])").gives(&["0 ok"]);
    assert_eq!(went.node("server").requests, 1);
}

/// A status is retried only as far as the method permits.
#[test]
fn a_post_is_not_tried_again_for_its_status() {
    for (methods, attempts) in [("idempotent", 1.0), ("any", 2.0)] {
        let case = Case::from_file(&format!(
            "root = retry(2, respond(503), on=[503], methods=\"{methods}\")\n\
             scenario(\"s\", root, traffic.mix(traffic.constant(every=1*ms), [(1, request(method=\"POST\"))]), requests=1, window=\"all\")\n"
        ));
        assert_eq!(case.run().result.attempts_per_request.value, Some(attempts));
    }
}

/// An HTTP check reads the status, a connection check does not.
#[test]
fn checks_see_the_status_of_an_answer() {
    let sent = |status: u16, check: &str| {
        let case = Case::with(
            &[0, 50],
            &format!("root = lb.first([respond({status}, name=\"fixed\"), server()], health={check})"),
            "",
        );
        case.run().node("server").requests
    };
    let http = "health.http(\"/\", interval=10*ms, timeout=5*ms, fall=1, jitter=0)";
    assert_eq!(sent(200, http), 0);
    assert_eq!(sent(404, http), 2, "the first check comes before the first request");
    assert_eq!(sent(503, http), 2);
    assert_eq!(sent(404, &http.replace("jitter=0", "jitter=0, expect=\"404\"")), 0);
    assert_eq!(sent(503, "health.tcp(interval=10*ms, timeout=5*ms, fall=1, jitter=0)"), 0);
}

const ROUTED: &str = r#"
def routed(name):
    return route([(when(path = "/b/*"), server(name + " b")), (when(header = ("x-t", "g*")), server(name + " t"))], otherwise = server(name))
"#;

/// Behind a `rewrite` routes see the rewritten path, and beside it the original one.
#[test]
fn what_is_rewritten_is_routed_so() {
    let case = Case::from_file(&format!(
        "{ROUTED}\n\
         inner = rewrite(routed(\"two\"), path=(\"/b/\", \"/c/\"), set={{\"x-t\": \"g{{uri}}\"}})\n\
         outer = rewrite(sequence([routed(\"one\"), inner, routed(\"three\")]), path=(\"/a/\", \"/b/\"))\n\
         scenario(\"s\", sequence([outer, routed(\"four\")]), traffic.mix(traffic.constant(every=1*ms), \
         [(1, request(path=\"/a/x\")), (1, request(path=\"/other\"))]), requests=100, window=\"all\")\n"
    ));
    let went = case.run();
    let count =
        |name: &str| went.result.nodes.iter().filter(|n| n.name == name).map(|n| n.requests).sum::<u64>();
    let (a, other) = (count("one b"), count("one"));
    assert!(a > 20 && other > 20 && a + other == 100);
    assert_eq!((count("two b"), count("two t")), (0, 100), "the inner one has changed the path again");
    assert_eq!((count("three b"), count("three")), (a, other), "behind it no more");
    assert_eq!(count("four"), 100, "and outside nothing is changed");
}

/// Keys read rewritten headers; one that is set to the client's address leaves the request its own key.
#[test]
fn keys_read_what_is_rewritten() {
    let used = |set: &str| {
        let case = Case::from_file(&format!(
            "root = rewrite(lb.ring_hash(pool(20, lambda i: server(\"s%d\" % i)), key=key.header(\"x-user\")), set={set})\n\
             scenario(\"s\", root, traffic.mix(traffic.constant(every=1*ms), [(1, request(key=keys.uniform(5), headers={{\"x-user\": \"u\"}}))]), \
             requests=200, window=\"all\")\n"
        ));
        let run = run_with(
            &case.plan,
            &Options { members: true, ..super::options() },
            &|_, _| {},
            &AtomicBool::new(false),
            false,
        );
        run.expect("runs").scenarios[0].nodes.iter().filter(|n| n.kind == "server" && n.requests > 0).count()
    };
    assert_eq!(used("{\"x-user\": \"all\"}"), 1);
    assert_eq!(used("{}"), 1);
    assert!((2..=5).contains(&used("{\"x-user\": \"{client}\"}")));
}

/// Each loop rotates by itself, a balancer of the whole process does not.
#[test]
fn loops_have_balancers_of_their_own() {
    let run = |loops: u32, more: &str| {
        let source = format!(
            "root = listen(\":0\", lb.round_robin(pool(4, lambda i: server(\"s%d\" % i)), start=\"first\"{more}), loops={loops})\n\
             scenario(\"s\", root, traffic.constant(every=1*ms), requests=4000, window=\"all\")\n"
        );
        let plan = plan(&source);
        let options = Options { members: true, ..super::options() };
        let run = run_with(&plan, &options, &|_, _| {}, &AtomicBool::new(false), true).expect("runs");
        let nodes = &run.scenarios[0].nodes;
        nodes.iter().filter(|n| n.kind == "server").map(|n| n.requests).collect::<Vec<_>>()
    };
    assert_eq!(run(1, ""), [1000; 4]);
    assert_eq!(run(3, ", scope=\"process\""), [1000; 4]);
    let three = run(3, "");
    assert!(three.iter().sum::<u64>() == 4000 && three.iter().all(|n| n.abs_diff(1000) <= 2), "{three:?}");
    assert_ne!(three, [1000; 4], "three cursors end where they end");
}

/// Queues are one for all loops: with one place, one request is inside.
#[test]
fn loops_share_what_is_the_process_s() {
    let case = |loops: u32| {
        Case::new(
            &[0, 0, 0, 0],
            &format!(
                "root = listen(\":0\", lb.least_conn([queue(delay(5 * ms, server()), capacity=2)]), loops={loops})"
            ),
        )
    };
    for loops in [1, 2, 8] {
        case(loops).gives(&["5 ok", "10 ok", "15 ok", "0 overloaded"]);
    }
}

/// The traffic decides the loop of a request; with least connections two loops see half each.
#[test]
fn loops_are_met_evenly_and_alike() {
    let source = |loops: u32| {
        format!(
            "def f():\n    return queue(delay(dist.exponential(8*ms), server()))\n\
             root = listen(\":0\", lb.least_conn(pool(10, f)), loops={loops})\n\
             scenario(\"s\", root, traffic.poisson(every=1*ms), requests=20000)\n"
        )
    };
    let waits = |loops: u32| {
        let run =
            run_with(&plan(&source(loops)), &super::options(), &|_, _| {}, &AtomicBool::new(false), true);
        let run = run.expect("runs");
        run.scenarios[0]
            .nodes
            .iter()
            .find(|n| n.kind == "queue")
            .and_then(|n| n.wait_ms.value)
            .expect("waits")
    };
    let (one, two, eight) = (waits(1), waits(2), waits(8));
    assert!(one < two && two < eight, "who knows less picks worse: {one} {two} {eight}");
    let (seen, violations) =
        run_reference(&plan(&source(4)), false, None).unwrap_or_else(|cut| panic!("{cut:?}"));
    assert!(violations.is_empty() && !seen.answers.is_empty());
}

/// An endless overload ends with a warning and without figures: in the engine and its reference, and where requests
/// multiply.
#[test]
fn too_many_on_their_way_have_no_figures() {
    for (node, fast) in [
        ("queue(delay(9 * hours, server()))", true),
        ("delay(9 * hours, server())", false),
        ("timeout(9 * hours, delay(9 * hours, server()))", true),
        ("fanout(pool(100, lambda: delay(9 * hours, server())))", true),
        ("queue(delay(9 * hours, server()))", false),
    ] {
        let source =
            format!("root = {node}\nscenario(\"s\", root, traffic.constant(every=1*us), requests=300000)\n");
        let run = run_with(&plan(&source), &super::options(), &|_, _| {}, &AtomicBool::new(false), fast);
        let s = &run.unwrap_or_else(|e| panic!("{node}: {e:?}")).scenarios[0];
        assert!(
            s.warnings[0].contains("overloaded beyond what can be simulated"),
            "{node}: {:?}",
            s.warnings
        );
        assert_eq!((s.latency_all.mean.value, s.requests.total), (None, 0), "{node}");
    }
}
