//! `weir verify`: what is simulated is what runs. Nothing here leans on how fast the machine is: what is checked is
//! which requests went where, which a busy machine does not change, and what the client and the servers saw for
//! themselves.

use crate::shared::certificates::Authority;
use crate::shared::common::{Scratch, interrupt, run, weir};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use weir_topology::manual::missing_balancers;

/// Six servers, and the nodes before them.
const APPS: &str = "apps = pool(6, lambda: queue(delay(dist.exponential(4*ms), server(\"app\"))))\n";
const PLAIN: &str = "traffic.poisson(rate = 900)";
const TRACE: &str = "traffic.trace(\"clients.csv\")";
const KEYED: &str = "traffic.mix(traffic.poisson(rate = 900), [(1, request(key = keys.zipf(50, 1.1)))])";

/// A scenario of 400 requests.
fn scenario(name: &str, lb: &str, traffic: &str) -> String {
    format!("scenario(\"{name}\", {lb}, {traffic}, requests = 400, window = \"all\")\n")
}

/// What happened in the first run of each scenario of a file, verified with two. Done again, the picks are the same.
pub(crate) fn recorded(scratch: &Scratch, scenarios: &str) -> BTreeMap<String, Vec<Value>> {
    let file = scratch.file("t.star", format!("{APPS}{scenarios}"));
    let record = scratch.path("record");
    let ran = run(&["verify", &file, "--runs", "2", "--record", &record, "--output", "json", "--quiet"]);
    // On a busy machine runs are void, and differences of latencies large.
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(found["schema"], "weir.verify/1");
    let replayed = run(&["verify", "--replay", &record]);
    assert_eq!(replayed.code, Some(0), "{}{}", replayed.out, replayed.err);
    assert!(replayed.out.contains("picks are the same"), "{}", replayed.out);
    let text = std::fs::read_to_string(&record).expect("a record");
    let mut runs: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut of = None;
    for line in text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")) {
        match line.get("run") {
            Some(run) => of = (run[1] == 0).then(|| run[0].as_str().expect("a name").to_owned()),
            None => runs.entry(of.clone().unwrap_or_default()).or_default().push(line),
        }
    }
    runs
}

/// Requests that came to each server, by the order of the servers' nodes.
pub(crate) fn served(run: &[Value]) -> Vec<u64> {
    let mut counts = BTreeMap::<u64, u64>::new();
    for line in run.iter().filter_map(|line| line.get("served")) {
        *counts.entry(line["server"].as_u64().expect("a node")).or_default() += 1;
    }
    counts.into_values().collect()
}

/// Every policy's picks are the same when its deeds are done again.
#[test]
fn picks_are_the_same_again() {
    let scratch = Scratch::new("verify-replay");
    let failing = "retry(3, lb.least_conn(pool(4, lambda: flaky(0.2, server(\"bad\"))), eject = eject(consecutive = 2)), \
                   on = [\"refused\", \"status_5xx\"])";
    let all = [
        ("random", "lb.random(apps)", PLAIN),
        ("round_robin", "lb.round_robin(apps)", PLAIN),
        ("first", "lb.first(apps)", PLAIN),
        ("least_first", "lb.least_conn(apps, ties = \"first\")", PLAIN),
        ("least_random", "lb.least_conn(apps, ties = \"random\")", PLAIN),
        ("least_rotate", "lb.least_conn(apps, ties = \"rotate\")", PLAIN),
        ("p2c", "lb.p2c(apps)", PLAIN),
        ("peak_ewma", "lb.peak_ewma(apps)", PLAIN),
        ("zuul", "lb.zuul(apps)", PLAIN),
        (
            "zuul_failing",
            "timeout(6*ms, lb.zuul(pool(4, lambda: flaky(0.2, queue(delay(4*ms, server(\"bad\"))))), max_load = 0.5))",
            PLAIN,
        ),
        ("prequal", "lb.prequal(apps)", PLAIN),
        (
            "prequal_far",
            "lb.prequal(pool(6, lambda: cable(2*ms, queue(delay(4*ms, server(\"far\"))))))",
            PLAIN,
        ),
        ("maglev", "lb.maglev(apps, key = key.client())", KEYED),
        ("ring", "lb.ring_hash(apps, key = key.header(\"x-user\"), bound = 1.25)", KEYED),
        ("limited", "lb.least_conn(apps, max_in_flight = 1)", PLAIN),
        ("held", "lb.least_conn(pool(4, lambda: flaky(0.2, server(\"bad\"))), error_hold = 20*ms)", PLAIN),
        ("ejecting", failing, PLAIN),
    ];
    assert_eq!(missing_balancers(all.map(|(_, lb, _)| lb)), ["lb.least_work"], "it is never served");
    let text: String = all.iter().map(|(name, lb, traffic)| scenario(name, lb, traffic)).collect();
    let runs = recorded(&scratch, &text);
    for (name, ..) in all {
        let picks = runs[name].iter().filter(|line| line["did"][2].get("pick").is_some()).count();
        assert!(picks >= 400, "{name}: {picks}");
    }
    // A record with other picks is recognised.
    let text = std::fs::read_to_string(scratch.path("record")).expect("a record");
    let (from, to) = ("\"picked\":{\"target\":0}", "\"picked\":{\"target\":1}");
    let wrong = scratch.file("wrong.record", text.replacen(from, to, 1));
    run(&["verify", "--replay", &wrong]).code.map_or_else(|| panic!("it ends"), |code| assert_eq!(code, 1));
}

/// Without the end of a record it is unknown whether all of its picks are the same; without picks it is unknown as
/// well.
#[test]
fn a_record_is_whole_and_has_picks() {
    let scratch = Scratch::new("verify-cut");
    let file = scratch.file("t.star", one("traffic.constant(rate = 400)"));
    let record = scratch.path("record");
    let ran = run(&["verify", &file, "--runs", "2", "--record", &record, "--quiet"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    let text = std::fs::read_to_string(&record).expect("a record");
    let lines: Vec<&str> = text.lines().collect();
    let without = |unwanted: &str| {
        lines.iter().filter(|line| !line.contains(unwanted)).copied().collect::<Vec<_>>().join("\n")
    };
    for (name, text, says) in [
        ("cut", lines[..lines.len() / 2].join("\n"), "it is truncated"),
        ("short", lines[..lines.len() - 1].join("\n"), "it is truncated"),
        ("picks", without("\"pick\""), "contains no picks"),
    ] {
        let replayed = run(&["verify", "--replay", &scratch.file(name, text)]);
        assert_eq!(replayed.code, Some(2), "{name}: {}{}", replayed.out, replayed.err);
        assert!(replayed.err.contains(says), "{name}: {}", replayed.err);
    }
}

/// What fails tells its kind at the outermost listener, also where a client takes it for an answer; and a request
/// enters there, whatever listens behind.
#[test]
fn kinds_and_attempts_are_those_of_the_simulation() {
    let scratch = Scratch::new("verify-kinds");
    let source = "\
a = listen(\"127.0.0.1:0\", server(\"a\"), name = \"a\")
b = listen(\"127.0.0.1:0\", server(\"b\"), name = \"b\")
half = traffic.mix(traffic.constant(rate = 500), [(1, request(path = \"/a\")), (1, request(path = \"/b\"))])
scenario(\"inner\", lb.round_robin([a, b]), traffic.constant(rate = 500), requests = 200)
scenario(\"no_route\", route([(when(path = \"/a\"), server(\"c\"))]), half, requests = 200)
scenario(\"limited\", limit.rate(server(\"d\"), per_s = 0.001, burst = 100), traffic.constant(rate = 500), requests = 200)
scenario(\"deadline\", delay(5*ms, server(\"e\")), traffic.constant(rate = 500), requests = 200, deadline = 1*ms)
";
    let file = scratch.file("t.star", source);
    let ran = run(&["verify", &file, "--runs", "2", "--output", "json", "--quiet"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).expect("JSON");
    let scenarios = found["scenarios"].as_array().expect("scenarios");
    // On a machine that was too busy for every run of a scenario, there is nothing to compare.
    for scenario in scenarios.iter().filter(|s| s["runs"] != 0) {
        for name in ["success", "attempts"] {
            let statistics = scenario["statistics"].as_array().expect("statistics");
            let of = statistics.iter().find(|s| s["name"] == name).expect("the statistic");
            // The same counts: what is predicted is a mean of several of them.
            let difference = of["difference"]["value"].as_f64().expect("a difference");
            assert!(difference.abs() < 1e-9, "{}: {of}", scenario["name"]);
        }
    }
}

/// Where picks do not hang on time, each server gets just the requests that it gets in the simulation.
#[test]
fn requests_go_where_the_simulation_sends_them() {
    let scratch = Scratch::new("verify-paired");
    let retried = "retry(4, lb.random([flaky(0.5, app) for app in apps]), on = [\"refused\"])";
    let all = [
        ("random", "lb.random(apps)", PLAIN, "queue"),
        ("routers", "lb.random(pool(3, lambda: cable(1*ms, lb.random(apps))))", PLAIN, "queue"),
        ("round_robin", "lb.round_robin(apps)", "traffic.constant(rate = 300)", "queue"),
        ("hashed", "lb.maglev(apps, key = key.client())", KEYED, "queue"),
        ("split", "split([(1, lb.random(apps)), (2, lb.random(apps))])", PLAIN, "queue"),
        ("retried", retried, "traffic.poisson(rate = 500)", "flaky"),
        ("hedged", "hedge(60*s, lb.random(apps))", "traffic.poisson(rate = 500)", "queue"),
        ("sticky", "lb.random(pool(3, lambda: lb.random(apps, sticky = \"to\")))", TRACE, "queue"),
        ("sticky_failing", "lb.random([flaky(0.5, app) for app in apps], sticky = \"to\")", TRACE, "flaky"),
    ];
    // Each client asks every 180 ms: it has its cookie by then.
    let rows: String = (0..400).map(|i| format!("{},client {}\n", 3 * i, i % 60)).collect();
    scratch.file("clients.csv", format!("arrival_ms,key\n{rows}"));
    let text: String = all.iter().map(|(name, lb, traffic, _)| scenario(name, lb, traffic)).collect();
    let runs = recorded(&scratch, &text);
    let file = scratch.path("t.star");
    let simulated = ["sim", &file, "--replications", "1", "--nodes", "all", "--output", "json", "--quiet"];
    let simulated: Value = serde_json::from_str(run(&simulated).succeeds()).expect("JSON");
    for (name, .., kind) in all {
        let scenarios = simulated["scenarios"].as_array().expect("scenarios");
        let of = scenarios.iter().find(|s| s["name"] == name).expect("it was simulated");
        let nodes = of["nodes"].as_array().expect("nodes").iter().filter(|n| n["kind"] == kind);
        // What a built-in server begins with: the queue, or the node before it.
        let want: Vec<u64> = nodes.filter_map(|n| n["requests"].as_u64()).filter(|n| *n > 0).collect();
        assert_eq!(served(&runs[name]), want, "{name}");
    }
}

/// Connections are predicted: of requests that come one after the other there is one to the router, and one to each
/// server.
#[test]
fn connections_are_those_of_the_simulation() {
    let scratch = Scratch::new("verify-connections");
    // One at a time, however slow the machine is: two that overlap need two connections.
    let user = "traffic.closed(users = 1, think = 40*ms)";
    let apps = "pool(3, lambda: delay(1*ms, server(\"app\")))";
    let text = format!(
        "scenario(\"one\", lb.round_robin({apps}), {user}, requests = 30)\n\
         scenario(\"two\", listen(\"127.0.0.1:0\", lb.round_robin({apps}), loops = 2), {user}, requests = 30)\n"
    );
    let file = scratch.file("t.star", text);
    let ran = run(&["verify", &file, "--runs", "2", "--output", "json", "--quiet"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).expect("JSON");
    let scenarios = found["scenarios"].as_array().expect("scenarios");
    // On a machine that was too busy for every run of a scenario, there is nothing to compare.
    for (scenario, loops) in scenarios.iter().zip([1.0, 2.0]).filter(|(s, _)| s["runs"] != 0) {
        for (who, want) in [("client", loops), ("server", 3.0 * loops)] {
            let of = &scenario["connections"][who];
            let value = |world: &str| of[world]["value"].as_f64();
            assert_eq!((value("simulated"), value("real")), (Some(want), Some(want)), "{who}: {scenario}");
        }
    }
}

/// A loop's requests to a server share a connection of HTTP/2.
#[test]
fn built_in_servers_are_spoken_to_by_http_2() {
    let scratch = Scratch::new("verify-http-2");
    let apps = "pool(3, lambda: delay(20*ms, server(\"app\", protocol=\"h2\")))";
    let text = format!(
        "scenario(\"one\", listen(\"127.0.0.1:0\", lb.round_robin({apps}), loops = 2), traffic.closed(users = 12, think = 40*ms), \
         requests = 200)\n"
    );
    let file = scratch.file("t.star", text);
    let ran = run(&["verify", &file, "--runs", "2", "--output", "json", "--quiet"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).expect("JSON");
    let scenario = &found["scenarios"][0];
    // On a machine that was too busy for every run there is nothing to see.
    if scenario["runs"] != 0 {
        assert_eq!(scenario["connections"]["server"]["real"]["value"].as_f64(), Some(6.0), "{scenario}");
    }
}

/// A crash ends the connections of a built-in server, and none is made while its process is down: 10 ms and more lie between
/// an answer and a crash, 20 between a repair and a request.
#[test]
fn a_crash_ends_connections_in_both_worlds() {
    let scratch = Scratch::new("verify-crashes");
    let file = |protocol: &str| {
        let server = format!("delay(30*ms, server(\"app\", protocol = \"{protocol}\"))");
        let apps = format!(
            "pool(3, lambda: faulty(dist.fixed(1060*ms), dist.fixed(600*ms), {server}, mode = \"crash\"))"
        );
        format!(
            "scenario(\"{protocol}\", lb.round_robin({apps}), traffic.constant(every = 100*ms), requests = 26, window = \"all\")\n"
        )
    };
    let file = scratch.file("t.star", file("h1") + &file("h2"));
    let ran = run(&["verify", &file, "--runs", "2", "--output", "json", "--quiet"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).expect("JSON");
    // On a machine that was too busy for every run there is nothing to compare.
    for scenario in found["scenarios"].as_array().expect("scenarios").iter().filter(|s| s["runs"] != 0) {
        let of = |world: &str| scenario["connections"]["server"][world]["value"].as_f64();
        let (simulated, real) = of("simulated").zip(of("real")).expect("openings");
        assert_eq!(simulated, 6.0, "three, and three after the crash: {scenario}");
        assert!((simulated - real).abs() < 1.5, "{simulated} simulated, {real} real: {scenario}");
    }
}

/// An origin that answers every request; its address.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut to = stream.try_clone().expect("a socket");
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    if line.is_empty()
                        && to.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err()
                    {
                        break;
                    }
                }
            });
        }
    });
    addr
}

/// Real servers get the requests that the simulation sends them, and the connections.
#[test]
fn real_servers_get_what_the_simulation_sends_them() {
    let scratch = Scratch::new("verify-real");
    let servers: String =
        (0..3).map(|i| format!("server(\"a{i}\", addr = \"{}\", model = 100*us), ", origin())).collect();
    let text =
        format!("scenario(\"a\", lb.random([{servers}]), traffic.constant(rate = 100), requests = 100)\n");
    let file = scratch.file("t.star", text);
    let ran = run(&["verify", &file, "--real", "--runs", "2", "--output", "json", "--quiet"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).expect("JSON");
    let scenario = &found["scenarios"][0];
    // On a machine that was too busy for every run there is nothing to compare.
    if scenario["runs"] != 0 {
        let targets = scenario["targets"].as_array().expect("targets");
        assert_eq!(targets.len(), 3, "{scenario}");
        for of in targets {
            let [simulated, real] =
                ["simulated_share", "real_share"].map(|world| of[world]["value"].as_f64());
            let (simulated, real) = simulated.zip(real).expect("shares");
            assert!((simulated - real).abs() < 1e-9 && real > 0.1, "{scenario}");
        }
        let servers = &scenario["connections"]["server"];
        assert_eq!((&servers["simulated"]["value"], &servers["real"]["value"]), (&3.0.into(), &3.0.into()));
    }
}

/// A server that is not there is reported before anything is measured, with its address.
#[test]
fn a_real_server_must_be_there() {
    let scratch = Scratch::new("verify-gone");
    let gone = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
    let server = format!("server(\"a\", addr = \"{gone}\", model = 1*ms)");
    let file = scratch
        .file("t.star", scenario("a", &format!("lb.random([{server}])"), "traffic.constant(rate = 400)"));
    let ran = run(&["verify", &file, "--real", "--runs", "2"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains(&gone.to_string()), "{}", ran.err);
}

/// A listener with TLS behind another is reached, in the same process and in one of its own: it knows it by its files.
#[test]
fn an_inner_listener_may_have_tls() {
    let (scratch, authority) = (Scratch::new("verify-tls"), Authority::new("verify"));
    let inner = format!(
        "listen(\"127.0.0.1:0\", server(\"app\"), tls = tls.server({}))",
        authority.words(&["inner.test"])
    );
    let outer = format!("listen(\"127.0.0.1:0\", lb.random([{inner}]))");
    let file = scratch.file("t.star", scenario("one", &outer, "traffic.constant(rate = 400)"));
    let record = scratch.path("record");
    for more in [&[][..], &["--processes"]] {
        let verify = ["verify", &file, "--runs", "2", "--record", &record, "--quiet"];
        let ran = run(&[&verify, more].concat());
        assert!(matches!(ran.code, Some(0 | 1)), "{more:?}: {}", ran.err);
        let text = std::fs::read_to_string(&record).expect("a record");
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let statuses: Vec<u64> =
            lines.filter_map(|line| line.get("asked").and_then(|asked| asked["status"].as_u64())).collect();
        assert!(statuses.len() >= 400 && statuses.iter().all(|s| *s == 200), "{more:?}: {statuses:?}");
    }
}

/// A pick and what was known of it from outside: which was asked first, and between which instants.
struct Flight {
    server: u64,
    /// It was picked between these instants: after its client sent it, before its server saw it.
    picked: (u64, u64),
    /// The balancer knew of its end between these: after its server's, before its client's.
    back: (u64, u64),
}

fn flights(record: &[Value]) -> Vec<Flight> {
    let of_run = || record.iter();
    let number = |value: &Value| value.as_u64().expect("a number");
    let asked: BTreeMap<u64, (u64, u64)> = of_run()
        .filter_map(|line| line.get("asked"))
        .map(|a| (number(&a["request"]), (number(&a["intended_ns"]), number(&a["ended_ns"]))))
        .collect();
    of_run()
        .filter_map(|line| line.get("served"))
        .map(|s| {
            let (sent, ended) = asked[&number(&s["request"])];
            Flight {
                server: number(&s["server"]),
                picked: (sent, number(&s["begun_ns"])),
                back: (number(&s["ended_ns"]), ended),
            }
        })
        .collect()
}

/// From the client's and the servers' own logs: the picked server may have had the fewest requests in flight. Not a
/// line of weir's policies is used here.
#[test]
fn a_naive_model_allows_every_pick() {
    let scratch = Scratch::new("verify-naive");
    let least = |ties: &&str| scenario(ties, &format!("lb.least_conn(apps, ties = \"{ties}\")"), PLAIN);
    let all = ["first", "random", "rotate"];
    let runs = recorded(&scratch, &all.iter().map(least).collect::<String>());
    for ties in all {
        let flights = flights(&runs[ties]);
        assert_eq!(flights.len(), 400);
        let mut servers: Vec<u64> = flights.iter().map(|f| f.server).collect();
        servers.sort_unstable();
        servers.dedup();
        for flight in &flights {
            let (from, to) = flight.picked;
            // Surely in flight through all that time, and perhaps in flight at some of it.
            let surely = |server: u64| {
                flights.iter().filter(|f| f.server == server && f.picked.1 < from && f.back.0 > to).count()
            };
            let perhaps = |server: u64| {
                let meets = |f: &&Flight| f.server == server && f.picked.0 <= to && f.back.1 >= from;
                flights.iter().filter(meets).count()
            };
            let least = surely(flight.server);
            let fewer = servers.iter().find(|other| perhaps(**other) < least);
            assert!(fewer.is_none(), "{ties}: {} had {least} in flight, and {fewer:?} fewer", flight.server);
        }
    }
}

fn one(traffic: &str) -> String {
    APPS.to_owned() + &scenario("one", "lb.random(apps)", traffic)
}

/// What cannot be verified is said before anything runs.
#[test]
fn what_cannot_be_verified_is_said() {
    let scratch = Scratch::new("verify-wrong");
    let cases = [
        (
            "real",
            "scenario(\"a\", server(\"x\", addr = \"10.0.0.1:80\"), traffic.constant(rate = 10), requests = 10)",
            "leads to a real server (10.0.0.1:80)",
        ),
        ("none", "respond(200)", "has no scenario"),
        (
            "never",
            "scenario(\"a\", lb.least_work([server(\"x\")]), traffic.constant(rate = 10), requests = 10)",
            "least_work",
        ),
        (
            "fast",
            "scenario(\"a\", lb.random([server(\"x\")]), traffic.constant(rate = 5000000), requests = 100000)",
            "requests a second",
        ),
    ];
    for (name, source, says) in cases {
        let file = scratch.file(&format!("{name}.star"), source);
        let ran = run(&["verify", &file]);
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.err);
        assert!(ran.err.contains(says), "{name}: {}", ran.err);
    }
    let line = scratch.file(
        "line.star",
        one("traffic.constant(rate = 100)").replace("random(apps", "random(apps, max_waiting = 1"),
    );
    let file = scratch.file("fine.star", one("traffic.constant(rate = 100)"));
    for (args, says) in [
        (&[&file[..], "other"][..], "has no scenario `other`; it has one"),
        (&[&file, "--tolerance", "p42=1%"], "there is no statistic `p42`"),
        (&[&file, "--runs", "1"], "1 is not in 2..=1000"),
        (&[&line, "--against", "haproxy"], "`max_waiting`"),
        (&["--replay", &file], "line 1"),
        (&[], "required"),
    ] {
        let ran = run(&[&["verify"], args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(says), "{args:?}: {}", ran.err);
    }
}

/// Where the scenario's `duration` ends the runs, `--requests` is not what makes them longer.
#[test]
fn a_duration_ends_runs_whatever_is_asked() {
    let scratch = Scratch::new("verify-duration");
    let file = scratch
        .file("t.star", one("traffic.constant(rate = 100)").replace("requests = 400", "duration = 1*s"));
    let ran = run(&["verify", &file, "--runs", "2", "--requests", "5000", "--output", "json", "--quiet"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).expect("JSON");
    let scenario = &found["scenarios"][0];
    // On a machine that was too busy for every run there is nothing to compare.
    if scenario["runs"] != 0 {
        let warnings = scenario["warnings"].as_array().expect("warnings");
        let of = |text: &str| warnings.iter().any(|w| w.as_str().is_some_and(|w| w.contains(text)));
        assert!(of("the scenario's `duration` of 1s ends its runs, whatever --requests is"), "{scenario}");
        assert!(!of("send more"), "{scenario}");
    }
}

/// A long verification under way, with the processes of its run.
#[expect(clippy::disallowed_methods, reason = "processes tell nobody when they begin")]
fn under_way(scratch: &Scratch) -> (Child, Vec<String>) {
    let source = one("traffic.constant(rate = 100)").replace("requests = 400", "requests = 100000");
    let file = scratch.file("long.star", &source);
    let child = weir()
        .args(["verify", &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Runs that go on beside each other are begun by threads of their own.
    let children = || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
        let lists =
            threads.map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
        let mut all: Vec<String> =
            lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
        all.sort();
        all
    };
    let until = Instant::now() + Duration::from_secs(120);
    // Past the calibration each run has the same two processes for long.
    let (mut of_run, mut same) = (Vec::new(), 0);
    while same < 60 && Instant::now() < until {
        let now = children();
        same = if now.len() >= 2 && now == of_run { same + 1 } else { 0 };
        of_run = now;
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(same == 60 && of_run.len() % 2 == 0, "{of_run:?}");
    (child, of_run)
}

/// Waits until these processes have ended.
#[expect(clippy::disallowed_methods, reason = "processes tell nobody when they end")]
fn have_ended(processes: &[String]) {
    let lives = |pid: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains("(weir)") && !stat.contains(" Z ")
    };
    let until = Instant::now() + Duration::from_secs(30);
    while processes.iter().any(lives) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!processes.iter().any(lives), "{processes:?} are left behind");
}

/// Ctrl-C in the middle: nothing is left behind.
#[test]
fn an_interrupt_ends_all_processes() {
    let scratch = Scratch::new("verify-interrupt");
    let (mut child, of_run) = under_way(&scratch);
    interrupt(&child);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    have_ended(&of_run);
}

/// A process of the run that dies ends the verification in words.
#[test]
fn a_process_that_dies_is_told_of() {
    let scratch = Scratch::new("verify-dies");
    for which in [0, 1] {
        let (child, of_run) = under_way(&scratch);
        let pid = of_run[which].parse().ok().and_then(rustix::process::Pid::from_raw).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");
        let ran = child.wait_with_output().expect("it ends");
        let err = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(3), "{err}");
        assert!(err.contains("of the run exited early (signal: 9"), "{err}");
        have_ended(&of_run);
    }
}
