//! Files with models of failing, sharing and bursts: the plan, and the plan read back.

mod common;

use common::{last, plan, request, run};
use std::path::PathBuf;
use weir_model::{Dist, OnCancel, Traffic, warmup};
use weir_plan::{Clock, Edge, Faulty, Lb, Line, Mode, Plan, Recording, Spec};
use weir_plan::{Severity, offered_load};
use weir_policy::Kind;
use weir_policy::config::{Exclude, Methods, Retry, Work};
use weir_topology::{Request, evaluate};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

fn traffic(source: &str) -> Traffic {
    let plan = plan(&format!("scenario(\"x\", server(), {source}, requests=9)\n"));
    plan.points[0].scenarios[0].traffic.clone()
}

/// A line of each new thing.
const ALL: &str = r#"
def leaf():
    return concurrent(dist.exponential(80*ms), cores=2.5, contention=0.1, coherency=0.001, threads=16, on_cancel="finish")

racks = block(90*s, 10*s, pool(3, lambda: queue(delay(5*ms, server()), timeout=1*s, on_cancel="skip")), "crash", clock="lazy", starts="down", checks="pass", name="rack")
pair = [
    faulty(60*s, 1*s, leaf(), mode="slow", slow=3, together="power"),
    faulty(60*s, 1*s, cable(1*ms, leaf(), loss=0.01, resend=200*ms), mode="blackhole", together="power"),
]
front = sequence([lb.random(racks, pass_over=None), fanout(pair, need=1), flaky(0.5, warmup(server(), 8, requests=100, time=30*s), kind="reset")])
top = retry(3, timeout(2*s, front), on=["timeout", "reset"], backoff=10*ms)
scenario("mmpp", top, traffic.mmpp([(100, 10*s), (0, 1.5*s)]), duration=60*s, patience=5*s)
scenario("schedule", top, traffic.schedule([(0*s, 0), (10*s, 50.5), (10*s, 1)], repeat=True), requests=9, duration=60*s)
scenario("closed", top, traffic.closed(7, dist.exponential(1*s)), requests=9)
"#;

#[test]
fn a_plan_with_all_of_it_is_read_back_as_itself() {
    let plan = plan(ALL);
    let json = plan.to_json();
    let back = Plan::from_json(&json).expect("reads");
    assert_eq!(back, plan);
    assert_eq!(back.to_json(), json);
}

#[test]
fn nodes_come_out_as_written() {
    assert_eq!(last("timeout(2*s, server())"), Spec::Timeout { time_ns: Some(2 * S) });
    assert_eq!(last("timeout(None, server())"), Spec::Timeout { time_ns: None });
    let work = Dist::Fixed { ns: 80 * MS };
    let plain = Spec::Concurrent {
        work: work.clone(),
        cores: 1.0,
        contention: 0.0,
        coherency: 0.0,
        threads: None,
        min_threads: None,
        thread_cost_ns: 0,
        on_cancel: OnCancel::Stop,
    };
    assert_eq!(last("concurrent(80*ms)"), plain);
    assert_eq!(last("concurrent(80*ms, threads=None, cores=1)"), plain);
    let all = Spec::Concurrent {
        work,
        cores: 0.5,
        contention: 0.25,
        coherency: 1.0,
        threads: Some(4),
        min_threads: Some(2),
        thread_cost_ns: 5 * MS,
        on_cancel: OnCancel::Finish,
    };
    let text = "concurrent(80*ms, 0.5, 0.25, 1, 4, \"finish\", min_threads=2, thread_cost=5*ms)";
    assert_eq!(last(text), all);
    assert_eq!(last("warmup(server(), 4, requests=10)"), Spec::Warmup(warmup::Law::new(4.0, Some(10), None)));
    let law = warmup::Law {
        at_start: warmup::AtStart::Warm,
        prewarmed: 0.25,
        ..warmup::Law::new(4.0, None, Some(30 * S))
    };
    assert_eq!(last("warmup(server(), 4, time=30*s, at_start=\"warm\", prewarmed=0.25)"), Spec::Warmup(law));
    assert_eq!(last("flaky(0.3, server())"), Spec::Flaky { p: 0.3, kind: Kind::Status5xx });
    assert_eq!(last("flaky(1, server(), \"no_target\")"), Spec::Flaky { p: 1.0, kind: Kind::NoTarget });
    assert_eq!(last("sequence([server(), server()])"), Spec::Sequence);
    assert_eq!(last("fanout([server(), server()])"), Spec::Fanout { need: 2 });
    assert_eq!(last("fanout([server(), server()], need=1)"), Spec::Fanout { need: 1 });
    let time = Dist::Fixed { ns: MS };
    assert_eq!(
        last("cable(1*ms, server(), loss=0.25, resend=200*ms)"),
        Spec::Cable { time: time.clone(), loss: 0.25, resend_ns: Some(200 * MS) }
    );
    assert_eq!(last("cable(1*ms, server(), 1)"), Spec::Cable { time, loss: 1.0, resend_ns: None });
    assert_eq!(
        last("queue(server(), timeout=1*s, on_cancel=\"skip\")"),
        Spec::Queue { concurrency: 1, capacity: None, timeout_ns: Some(S), on_cancel: OnCancel::Skip }
    );
}

#[test]
fn backoffs_and_pass_overs_have_the_defaults_of_the_contract() {
    let backoff = |source: &str| match last(&format!("retry(2, server(), {source})")) {
        Spec::Retry(Retry { backoff_ns, backoff_max_ns, .. }) => (backoff_ns, backoff_max_ns),
        other => panic!("{other:?}"),
    };
    assert_eq!(backoff("backoff=5*ms"), (5 * MS, 50 * MS));
    assert_eq!(backoff("backoff=5*ms, backoff_max=None"), (5 * MS, 50 * MS));
    assert_eq!(backoff("backoff=5*ms, backoff_max=7*ms"), (5 * MS, 7 * MS));
    assert_eq!(backoff("backoff=None"), (0, 0));
    let Spec::Retry(whole) = last("retry(2, server())") else { panic!("a retry") };
    assert_eq!(
        (whole.exclude, whole.methods, whole.work),
        (Exclude::Tried, Methods::Idempotent, Work::Redraw)
    );
    let pass_over = |source: &str| match last(&format!("lb.random([server()]{source})")) {
        Spec::Lb(Lb { pass_over_ns, .. }) => pass_over_ns,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        ["", ", pass_over=None", ", pass_over=0*s", ", pass_over=3*s"].map(pass_over),
        [S, 0, 0, 3 * S]
    );
}

fn fault(mode: Mode, line: Line) -> Faulty {
    Faulty {
        mtbf_ns: 90 * S,
        up: None,
        down: None,
        mttr_ns: 10 * S,
        clock: Clock::Eager,
        mode,
        slow: 10.0,
        starts_up: true,
        checks_pass: false,
        line,
    }
}

#[test]
fn faults_follow_their_own_time_line_a_shared_one_or_a_blocks() {
    let of = |source: &str| last(&format!("faulty(90*s, 10*s, server(), {source})"));
    assert_eq!(of(""), Spec::Faulty(fault(Mode::Refuse, Line::Own)));
    assert_eq!(of("mode=\"blackhole\""), Spec::Faulty(fault(Mode::Blackhole, Line::Own)));
    assert_eq!(
        of("mode=\"slow\", slow=0.5, checks=\"pass\", starts=\"down\", clock=\"lazy\", together=\"a\""),
        Spec::Faulty(Faulty {
            clock: Clock::Lazy,
            slow: 0.5,
            starts_up: false,
            checks_pass: true,
            ..fault(Mode::Slow, Line::Together("a".to_owned()))
        })
    );
}

#[test]
fn a_block_wraps_each_of_its_nodes_at_one_site() {
    let plan = plan(
        "def rack(n):\n    return block(90*s, 10*s, pool(n, server), mode=\"crash\", name=\"rack\")\n\
         scenario(\"x\", lb.random(rack(2) + rack(3)), traffic.poisson(rate=1), requests=9)\n",
    );
    let point = &plan.points[0];
    let wrapped: Vec<(&str, u32, Edge)> = point
        .nodes
        .iter()
        .filter_map(|n| match &point.specs[n.spec as usize] {
            Spec::Faulty(law) => {
                let Line::Block(k) = law.line else { panic!("{law:?}") };
                assert_eq!(*law, fault(Mode::Crash, Line::Block(k)));
                assert_eq!(n.name.as_deref(), Some("rack"));
                Some((point.sites[n.site as usize].label.as_str(), k, n.to))
            }
            _ => None,
        })
        .collect();
    let (first, second) = ("rack/block", "rack#2/block");
    assert_eq!(
        wrapped,
        [
            (first, 0, Edge::Node(0)),
            (first, 0, Edge::Node(1)),
            (second, 1, Edge::Node(4)),
            (second, 1, Edge::Node(5)),
            (second, 1, Edge::Node(6)),
        ]
    );
}

#[test]
fn traffic_comes_out_as_written() {
    assert_eq!(
        traffic("traffic.mmpp([(100, 10*s), (0.5, \"1s\")])"),
        Traffic::Mmpp { states: vec![(100.0, 10 * S), (0.5, S)] }
    );
    assert_eq!(
        traffic("traffic.schedule([(0*s, 0), (1*s, 5)])"),
        Traffic::Schedule { points: vec![(0, 0.0), (S, 5.0)], repeat: false }
    );
    assert_eq!(
        traffic("traffic.schedule([[0*s, 3]], repeat=False)"),
        Traffic::Schedule { points: vec![(0, 3.0)], repeat: false }
    );
    assert_eq!(
        traffic("traffic.closed(10, 1*s)"),
        Traffic::Closed { users: 10, think: Dist::Fixed { ns: S } }
    );
}

#[test]
fn a_scenario_ends_by_number_by_time_or_by_whichever_comes_first() {
    let of = |source: &str| {
        let plan = plan(&format!("scenario(\"x\", server(), traffic.poisson(rate=1), {source})\n"));
        let s = &plan.points[0].scenarios[0];
        (s.requests, s.duration_ns, s.patience_ns)
    };
    assert_eq!(of("requests=9"), (Some(9), None, None));
    assert_eq!(of("duration=5*s, patience=1*s"), (None, Some(5 * S), Some(S)));
    assert_eq!(of("requests=9, duration=5*s, patience=None"), (Some(9), Some(5 * S), None));
    assert_eq!(of("requests=9, duration=None"), (Some(9), None, None));
}

/// A separate folder for files that a test writes.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn in_folder(folder: &std::path::Path, source: &str) -> Request {
    Request { path: Some(folder.join("t.star")), ..request(source) }
}

#[test]
fn traces_are_read_beside_the_file_and_hashed_by_their_instants() {
    let folder = folder("traces");
    std::fs::create_dir_all(folder.join("sub")).expect("a folder");
    std::fs::write(folder.join("sub/a.csv"), "verb,arrival_ms\nGET,5\nGET,5\nPOST,7.5\n").expect("written");
    std::fs::write(folder.join("b.csv"), "arrival_us,duration_ms\n5000,1\n5000,2\n7500,3\n")
        .expect("written");
    std::fs::write(folder.join("sub/lib.star"), "load_a = traffic.trace(\"a.csv\")\n").expect("written");
    let of = |source: &str| {
        let source = format!("{source}\nscenario(\"x\", server(), arrivals, requests=3)\n");
        evaluate(&in_folder(&folder, &source)).expect("evaluates").plan
    };
    let (a, b) = (of("arrivals = traffic.trace(\"sub/a.csv\")"), of("arrivals = traffic.trace(\"b.csv\")"));
    let Traffic::Trace { file, arrivals_ns } = &a.points[0].scenarios[0].traffic else { panic!("a trace") };
    assert_eq!(
        (file.as_str(), arrivals_ns.as_slice()),
        ("sub/a.csv", [0, 0, 2_500_000].as_slice()),
        "the first instant is the start of the run"
    );
    let epoch = of("arrivals = traffic.trace(\"b.csv\", start=\"epoch\")");
    let Traffic::Trace { arrivals_ns: from_0, .. } = &epoch.points[0].scenarios[0].traffic else {
        panic!("a trace")
    };
    assert_eq!(from_0.as_slice(), [5 * MS, 5 * MS, 7_500_000]);
    assert_eq!(a.data_files.len(), 1);
    assert_eq!(a.hash, b.hash, "names of files mean nothing");
    let loaded = of("load(\"sub/lib.star\", \"load_a\")\narrivals = load_a");
    assert_eq!(
        loaded.points[0].scenarios[0].traffic.clone(),
        Traffic::Trace { file: "a.csv".to_owned(), arrivals_ns: arrivals_ns.clone() }
    );
    assert_eq!(Plan::from_json(&a.to_json()).expect("reads"), a);
    // One file may be both: arrivals and durations.
    let both = of("arrivals = traffic.trace(\"b.csv\")\nwork = dist.empirical(\"b.csv\")");
    assert_eq!(both.data_files.len(), 1);
}

/// As access logs have it: the first instant is the start, to the nanosecond, and a run that would wait for 54 years
/// says so.
#[test]
fn traces_in_unix_time_start_with_the_run() {
    let folder = folder("traces-unix");
    let csv = "arrival_s\n1732600000.123456789\n1732600001.5\n";
    std::fs::write(folder.join("t.csv"), csv).expect("written");
    let of = |start: &str, more: &str| {
        let source =
            format!("scenario(\"x\", server(), traffic.trace(\"t.csv\"{start}), requests=2{more})\n");
        evaluate(&in_folder(&folder, &source)).expect("evaluates")
    };
    let first = of("", "");
    let Traffic::Trace { arrivals_ns, .. } = &first.plan.points[0].scenarios[0].traffic else {
        panic!("a trace")
    };
    assert_eq!(arrivals_ns.as_slice(), [0, 1_376_543_211]);
    assert!(first.warnings.is_empty(), "{:?}", first.warnings);
    for (more, said) in [
        (
            "",
            "the trace of scenario \"x\" begins 20053 days after the start of the run: checks and faults run",
        ),
        (
            ", duration=10*s",
            "after the start of the run, when its `duration` of 10s is over: no request arrives",
        ),
    ] {
        let warnings = of(", start=\"epoch\"", more).warnings;
        assert!(warnings.len() == 1 && warnings[0].message.contains(said), "{warnings:?}");
    }
}

/// The plan depends on the rows' content, not on the names of the file and of its other columns.
#[test]
fn traces_say_what_their_requests_are() {
    let folder = folder("traces-rows");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
    write("a.csv", "arrival_ms,path,key\n1,/a,ann\n2,/b,\n3,/a,bob\n");
    write("b.csv", "key,arrival_us,x,path\nann,1000,7,/a\n,2000,8,/b\nbob,3000,9,/a\n");
    write("c.csv", "arrival_ms,path,key\n1,/a,ann\n2,/b,\n3,/a,ann\n");
    let of = |traffic: &str| {
        let node = "route([(when(path=\"/a\"), server(\"a\"))], otherwise=server(\"rest\"))";
        let source = format!("scenario(\"x\", {node}, {traffic}, requests=3)\n");
        evaluate(&in_folder(&folder, &source)).map(|done| done.plan)
    };
    let plan = |name: &str| of(&format!("traffic.trace(\"{name}\")")).expect("evaluates");
    let (a, b, c) = (plan("a.csv"), plan("b.csv"), plan("c.csv"));
    let paths: Vec<(&str, f64)> =
        a.points[0].scenarios[0].mix.iter().map(|s| (s.path.as_str(), s.weight)).collect();
    assert_eq!(paths, [("/a", 2.0), ("/b", 1.0)]);
    assert_eq!(a.hash, b.hash);
    assert_ne!(a.hash, c.hash, "whose requests they are counts");
    assert_eq!(Plan::from_json(&a.to_json()).expect("reads"), a);
    // A plan edited by hand: kinds and keys that there are none of.
    for edit in [|r: &mut Recording| r.kinds[1] = 2, |r: &mut Recording| r.senders[0] = Some(2)] {
        let mut plan = a.clone();
        edit(plan.points[0].scenarios[0].recorded.as_mut().expect("rows"));
        let why = Plan::from_json(&plan.to_json()).expect_err("no such").to_string();
        assert!(why.contains("a row names a kind or a key that does not exist"), "{why}");
    }
    let twice = of("traffic.mix(traffic.trace(\"a.csv\"), [(1, request())])").expect_err("two say it");
    assert!(format!("{twice:?}").contains("already describes its requests"), "{twice:?}");
}

#[test]
fn sequences_and_fanouts_pass_on_all_that_comes() {
    let done = run("def work(x):\n    return queue(delay(x*ms, server()))\n\
         shared = [work(10), work(20)]\n\
         scenario(\"both\", sequence([fanout(shared), lb.random(shared), concurrent(30*ms, cores=2)]), traffic.poisson(rate=20), requests=9)\n\
         scenario(\"around\", queue(fanout([sequence(shared), delay(5*ms, server())], need=2), concurrency=4), traffic.poisson(rate=20), requests=9)\n\
         scenario(\"closed\", shared[0], traffic.closed(3, 1*s), requests=9)\n");
    let loads = |i| {
        offered_load(&done.plan.points[0], i)
            .into_iter()
            .map(|l| (l.rate_per_s, (l.utilisation * 1e6).round() / 1e6))
            .collect::<Vec<_>>()
    };
    // Each queue of the two gets 20 per second from the fan-out and 10 from the balancer.
    assert_eq!(loads(0), [(30.0, 0.3), (30.0, 0.6), (20.0, 0.3)]);
    assert_eq!(loads(1), [(20.0, 0.2), (20.0, 0.4), (20.0, 20.0 * 0.030 / 4.0)]);
    assert!(loads(2).is_empty(), "nobody knows the rate of a closed loop beforehand");
}

/// A server that shares its cores can do what it can with the best number inside; a server with a model is offered what
/// its model is.
#[test]
fn contention_and_models_are_offered_load() {
    let done = run("def shared(**more):\n    return concurrent(8*ms, **more)\n\
         scenario(\"contended\", shared(cores=2, contention=0.2), traffic.poisson(rate=100), requests=9)\n\
         scenario(\"threads\", shared(cores=4, threads=1), traffic.poisson(rate=100), requests=9)\n\
         scenario(\"modelled\", lb.random([server(\"a\", addr=\"127.0.0.1:80\", model=lambda: queue(delay(30*ms, server())))]), traffic.poisson(rate=20), requests=9)\n");
    let loads = |i| {
        let loads = offered_load(&done.plan.points[0], i).into_iter();
        loads.map(|l| (l.rate_per_s, (l.utilisation * 1e6).round() / 1e6)).collect::<Vec<_>>()
    };
    // Two inside do 2/1.2 of a core's work, and that is the most; one thread does one core's.
    assert_eq!(loads(0), [(100.0, 0.48)]);
    assert_eq!(loads(1), [(100.0, 0.8)]);
    assert_eq!(loads(2), [(20.0, 0.6)]);
}

/// Whether a line is bounded: by itself, by what caps requests around it, or by what ends their time, unless they go
/// on.
#[test]
fn what_bounds_a_line_is_known() {
    let bounded = |node: &str, more: &str| {
        let done = run(&format!(
            "def q(**more):\n    return queue(delay(dist.exponential(10*ms), server()), **more)\n\
             scenario(\"x\", {node}, traffic.poisson(rate=200), requests=9{more})\n"
        ));
        offered_load(&done.plan.points[0], 0).last().expect("a load").bounded
    };
    for node in [
        "q(capacity=1)",
        "q(timeout=1*s)",
        "timeout(1*s, q())",
        "timeout(1*s, q(on_cancel=\"skip\"))",
        "queue(q(), concurrency=9, capacity=1)",
        "lb.random([q()], max_in_flight=5, max_waiting=0)",
        "timeout(1*s, queue(q(), concurrency=9, on_cancel=\"skip\"))",
    ] {
        assert!(bounded(node, ""), "{node}");
    }
    assert!(bounded("q()", ", patience=1*s"));
    for node in [
        "q()",
        "timeout(1*s, q(on_cancel=\"finish\"))",
        "queue(q(), concurrency=9)",
        "lb.random([q()], max_in_flight=5)",
        // One way around the limit is enough.
        "(lambda shared: split([(1, timeout(1*s, shared)), (1, shared)]))(q())",
    ] {
        assert!(!bounded(node, ""), "{node}");
    }
    assert!(!bounded("q(on_cancel=\"finish\")", ", patience=1*s"));
}

#[test]
fn malformed_traces_are_refused_with_row_and_column() {
    let folder = folder("bad_traces");
    let says = |csv: &str| {
        std::fs::write(folder.join("a.csv"), csv).expect("written");
        let findings = evaluate(&in_folder(&folder, "x = traffic.trace(\"a.csv\")\n")).expect_err("refused");
        assert_eq!((findings.len(), findings[0].line, findings[0].column), (1, 1, 5));
        findings[0].message.clone()
    };
    let instant = "an instant must be finite, not negative and at most 292 years";
    for (csv, said) in [
        ("", "is empty: it needs a header and values".to_owned()),
        ("arrival_s\n", "has no values below its header: it needs at least one".to_owned()),
        ("1\n2\n", "has no column `arrival_ms` (or `_s`, `_us`, `_ns`); its columns are 1".to_owned()),
        (
            "arrival,path\n1,/\n",
            "has a column `arrival` without a unit: call it `arrival_ms`, `arrival_s`, `arrival_us` or `arrival_ns`"
                .to_owned(),
        ),
        (
            "arrival_min\n1\n",
            "has no column `arrival_ms` (or `_s`, `_us`, `_ns`); its columns are arrival_min".to_owned(),
        ),
        ("arrival_s,arrival_ms\n1,1000\n", "has several columns `arrival_...`: keep one".to_owned()),
        (
            "path,arrival_s\n/,1\n/,3\n/,2\n",
            "holds 2 in row 4, column `arrival_s`, which is before the instant above it: sort the rows by `arrival_s`"
                .to_owned(),
        ),
        ("arrival_s\n-1\n", format!("holds -1 in row 2, column `arrival_s`: {instant}")),
        ("arrival_s\nnan\n", format!("holds nan in row 2, column `arrival_s`: {instant}")),
        ("arrival_s\nsoon\n", "holds \"soon\" in row 2, column `arrival_s`: it must be a number".to_owned()),
        ("path,arrival_s\n/,1\n/\n", "has no column `arrival_s` in row 3".to_owned()),
        // A row is known by the line that it begins in, regardless of the lines above it.
        (
            "note,arrival_s\r\n\"a\r\nb\",1\r\n\r\n  \r\nc,x\r\n",
            "holds \"x\" in row 6, column `arrival_s`: it must be a number".to_owned(),
        ),
        ("arrival_s\n\"1\n2\"\n", "holds \"1\\n2\" in row 2, column `arrival_s`: it must be a number".to_owned()),
        (
            "arrival_s,path\n0,/\n1,\"/a\n2,/\n",
            "has a quote that does not close in row 3: close it, and double the quotes inside".to_owned(),
        ),
        (
            "arrival_s,\"path\n0,/\n",
            "has a quote that does not close in row 1: close it, and double the quotes inside".to_owned(),
        ),
        (
            "arrival_s,path\n0, \"/a\"\n",
            "has a blank before the quotes in row 2, column `path`: remove it".to_owned(),
        ),
        (
            "arrival_s, \"path\"\n0,/a\n",
            "has a blank before the quotes in row 1, column `\"path\"`: remove it".to_owned(),
        ),
    ] {
        assert_eq!(says(csv), format!("the data file \"a.csv\" {said}"), "{csv:?}");
    }
}

#[test]
fn wrong_plans_are_refused() {
    let text = String::from_utf8(plan(ALL).to_json()).expect("UTF-8");
    for (from, to, part) in [
        ("\"cores\":2.5", "\"cores\":0", "cores must be finite and above 0"),
        ("\"contention\":0.1", "\"contention\":-0.1", "contention must be finite and not negative"),
        ("\"coherency\":0.001", "\"coherency\":-1", "coherency"),
        ("\"threads\":16", "\"threads\":0", "threads must be at least 1"),
        ("\"on_cancel\":\"finish\"", "\"on_cancel\":\"abort\"", "unknown variant"),
        ("\"timeout_ns\":1000000000", "\"timeout_ns\":0", "timeout_ns must be above 0"),
        ("\"mode\":\"crash\"", "\"mode\":\"burn\"", "unknown variant"),
        ("\"mttr_ns\":10000000000", "\"mttr_ns\":0", "mtbf and mttr must be above 0"),
        ("\"slow\":3.0", "\"slow\":-3.0", "slow must be finite and above 0"),
        ("\"mttr_ns\":1000000000,", "\"mttr_ns\":2000000000,", "it shares the timeline of specs["),
        ("{\"together\":\"power\"}", "{\"together\":\"\"}", "together must be 1 to 200"),
        ("\"loss\":0.01", "\"loss\":1.01", "loss must be between 0 and 1"),
        ("\"loss\":0.01", "\"loss\":1", "never arrives"),
        ("\"resend_ns\":200000000", "\"resend_ns\":0", "resend_ns must be above 0"),
        ("\"p\":0.5", "\"p\":-0.5", "p must be between 0 and 1"),
        ("\"error\":\"reset\"", "\"error\":\"lost\"", "no node fails with \"lost\""),
        ("\"factor\":8.0", "\"factor\":0.0", "factor must be finite and above 0"),
        ("\"requests\":100,\"time_ns\":30000000000", "\"requests\":null,\"time_ns\":null", "there must be"),
        ("\"requests\":100,", "\"requests\":0,", "requests must be at least 1"),
        ("\"need\":1", "\"need\":0", "need must be at least 1"),
        ("\"need\":1", "\"need\":3", "it needs 3 of 2 nodes"),
        ("\"time_ns\":2000000000", "\"time_ns\":0", "time_ns must be above 0"),
        ("\"backoff_ns\":10000000", "\"backoff_ns\":0", "must both be 0, or both above 0"),
        ("\"pass_over_ns\":0", "\"pass_over_ns\":18446744073709551615", "longer than 292 years"),
        ("[100.0,10000000000]", "[-100.0,10000000000]", "a rate must be 0, or between"),
        ("[100.0,10000000000]", "[0.0,10000000000]", "all rates are 0"),
        ("[100.0,10000000000]", "[100.0,0]", "a mean stay must be longer than 0"),
        ("[10000000000,50.5]", "[90000000000,50.5]", "must not go back in time"),
        ("[10000000000,50.5]", "[10000000000,0]", "its rate is 0 all the time"),
        ("\"users\":7", "\"users\":0", "users must be 1 to 10000000"),
        (
            "\"requests\":null,\"duration_ns\":60000000000",
            "\"requests\":null,\"duration_ns\":null",
            "there must be",
        ),
        ("\"duration_ns\":60000000000", "\"duration_ns\":0", "duration_ns: must be above 0"),
        ("\"patience_ns\":5000000000", "\"patience_ns\":0", "patience_ns: must be above 0"),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        let why = Plan::from_json(text.replacen(from, to, 1).as_bytes()).expect_err(from).to_string();
        assert!(why.contains(part), "{from} -> {to}: {why}");
    }
}

#[test]
fn wrong_traces_and_shapes_of_plans_are_refused() {
    let folder = folder("plan_traces");
    std::fs::write(folder.join("a.csv"), "arrival_ns\n5\n7\n").expect("written");
    let source =
        "scenario(\"x\", sequence([server()]), traffic.trace(\"a.csv\", start=\"epoch\"), requests=2)\n";
    let plan = evaluate(&in_folder(&folder, source)).expect("evaluates").plan;
    let text = String::from_utf8(plan.to_json()).expect("UTF-8");
    for (from, to, part) in [
        ("[5,7]", "[7,5]", "must be ascending"),
        ("[5,7]", "[]", "at least one instant"),
        ("[5,7]", "[5,18446744073709551615]", "longer than 292 years"),
        ("{\"list\":0}", "{\"node\":0}", "a `sequence` leads to a list"),
        (
            "{\"kind\":\"sequence\"}",
            "{\"kind\":\"timeout\",\"time_ns\":null}",
            "a `timeout` leads to one node",
        ),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        let why = Plan::from_json(text.replacen(from, to, 1).as_bytes()).expect_err(from).to_string();
        assert!(why.contains(part), "{from} -> {to}: {why}");
    }
}

#[test]
fn single_bytes_changed_never_panic() {
    let json = plan(ALL).to_json();
    let mut state = 3u64;
    for _ in 0..3000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut bytes = json.clone();
        let at = (state >> 33) as usize % bytes.len();
        bytes[at] = (state >> 24) as u8;
        if let Ok(plan) = Plan::from_json(&bytes) {
            assert_eq!(Plan::from_json(&plan.to_json()).expect("reads"), plan);
            for i in 0..plan.points[0].scenarios.len() {
                let _ = offered_load(&plan.points[0], i);
            }
        }
    }
}

#[test]
fn every_argument_belongs_to_the_meaning() {
    let before = plan(ALL).hash;
    for (from, to) in [
        ("cores=2.5", "cores=2"),
        ("contention=0.1", "contention=0.2"),
        ("threads=16", "threads=17"),
        ("on_cancel=\"finish\"", "on_cancel=\"skip\""),
        ("timeout=1*s", "timeout=2*s"),
        ("\"crash\"", "\"refuse\""),
        ("checks=\"pass\"", "checks=\"fail\""),
        ("slow=3", "slow=4"),
        ("loss=0.01", "loss=0.02"),
        ("resend=200*ms", "resend=100*ms"),
        ("pass_over=None", "pass_over=1*s"),
        ("need=1", "need=2"),
        ("kind=\"reset\"", "kind=\"refused\""),
        ("requests=100,", "requests=101,"),
        ("time=30*s", "time=31*s"),
        ("timeout(2*s", "timeout(3*s"),
        ("backoff=10*ms", "backoff=11*ms"),
        ("(100, 10*s)", "(100, 11*s)"),
        ("(10*s, 1)", "(10*s, 2)"),
        ("repeat=True", "repeat=False"),
        ("closed(7", "closed(8"),
        ("patience=5*s", "patience=6*s"),
        ("requests=9, duration=60*s", "requests=9"),
    ] {
        assert!(ALL.contains(from), "{from}");
        assert_ne!(plan(&ALL.replacen(from, to, 1)).hash, before, "{from} -> {to}");
    }
    assert_eq!(plan(&ALL.replace("pass_over=None", "pass_over=0*s")).hash, before);
    let many = ["backoff=10*ms", "backoff=10*ms, backoff_max=100*ms"];
    assert_eq!(plan(&ALL.replace(many[0], many[1])).hash, before, "a default written out changes nothing");
}

#[test]
fn a_hint_is_said_once_and_kept_out_of_the_plan() {
    let done =
        run("scenario(\"x\", retry(2, timeout(1*s, server())), traffic.poisson(rate=1), requests=9)\n");
    assert_eq!(done.warnings.len(), 1);
    assert_eq!(done.warnings[0].severity, Severity::Hint);
    assert!(done.plan.points[0].warnings.is_empty());
}

#[test]
fn shared_nodes_take_the_worst_of_all_ways() {
    let said =
        |source: &str| run(source).warnings.into_iter().map(|f| (f.line, f.message)).collect::<Vec<_>>();
    // Two routers share one list; only the second comes without a limit.
    let found = said(
        "dynos = pool(3, lambda: faulty(9*s, 1*s, server(), mode=\"blackhole\"))\n\
         a = timeout(1*s, lb.random(dynos))\n\
         b = lb.random(dynos)\n\
         scenario(\"safe\", a, traffic.poisson(rate=1), requests=900)\n\
         scenario(\"open\", sequence([a, b]), traffic.poisson(rate=1), requests=900)\n",
    );
    assert!(found.len() == 1 && found[0].0 == 1 && found[0].1.contains("scenario \"open\""), "{found:?}");
    // The same through the model of a server, and with the greater product by the second way.
    let found = said(
        "inner = server(addr=\"a:1\", model=retry(6, server()))\n\
         scenario(\"x\", lb.random([retry(2, inner), retry(5, retry(4, inner))]), traffic.poisson(rate=1), requests=9)\n",
    );
    assert!(found.len() == 1 && found[0].0 == 1, "{found:?}");
    assert!(found[0].1.contains("120 attempts") && found[0].1.ends_with("(5 x 4 x 6)"), "{found:?}");
}
