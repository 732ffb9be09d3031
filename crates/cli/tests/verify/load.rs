//! `weir load`: the requests of a scenario, sent to a real server at their instants.

use crate::shared::certificates::Authority;
use crate::shared::common::{Scratch, interrupt, run, weir};
use crate::shared::serve;
use crate::shared::serve::Weir;
use serde_json::Value;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

/// Two kinds of requests, told apart by their paths.
const MIXED: &str = "
node = route([(when(path = \"/a\"), server(\"a\")), (when(path = \"/b/*\"), server(\"b\"))])
mix = traffic.mix(traffic.poisson(rate = 2000), [
    (3, request(path = \"/a\", key = keys.uniform(5))),
    (1, request(path = \"/b/c\", method = \"POST\", body = 70000, headers = {\"x-kind\": \"post\"})),
])
scenario(\"mixed\", node, mix, requests = 800, window = \"all\", deadline = 20*s)
";

fn json(args: &[&str]) -> Value {
    json_of(weir().args(args))
}

fn json_of(command: &mut Command) -> Value {
    let ran = command.output().expect("it starts");
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    // A busy machine may make a run void; its counts are right all the same.
    assert!(matches!(ran.status.code(), Some(0 | 1)), "{err}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out} {err}"))
}

fn requests_of(site: &str, result: &Value) -> u64 {
    let nodes = result["scenarios"][0]["nodes"].as_array().expect("nodes");
    let of = |n: &&Value| n["name"].as_str().is_some_and(|name| name == site);
    nodes.iter().find(of).and_then(|n| n["requests"].as_u64()).expect("a site")
}

/// A page of the run, which no input is overwritten with.
#[test]
fn a_run_has_a_page() {
    let scratch = Scratch::new("load-page");
    let source =
        "scenario(\"main\", server(), traffic.constant(every = 1*ms), requests = 200, window = \"all\")\n";
    let (file, html) = (scratch.file("main.star", source), scratch.path("load.html"));
    let served = Weir::new("listen(\"127.0.0.1:0\", respond(200), name = \"web\")\n");
    let to = format!("http://{}", served.addr("web"));
    let result = json(&["load", &file, "--to", &to, "--every", "50ms", "--output", "json", "--html", &html]);
    assert_eq!(result["requests"]["ok"], 200);
    let page = std::fs::read_to_string(&html).expect("it was written");
    assert!(
        page.contains("<h2>How long requests took</h2>")
            && page.contains("200 of 200 requests count; 100 % succeeded")
            && page.contains("<h2>Over time, part by part</h2>")
            && page.contains("<p>worst part: ")
    );
    run(&["load", &file, "--to", &to, "--html", &file]).fails(2, "would be overwritten");
}

/// The same kinds as simulated, request by request, over every protocol.
#[test]
fn what_is_simulated_is_sent() {
    let scratch = Scratch::new("load-mixed");
    let file = scratch.file("mixed.star", MIXED);
    let simulated = json(&["sim", &file, "--replications", "1", "--output", "json", "--nodes", "all"]);
    let (a, b) = (requests_of("a", &simulated), requests_of("b", &simulated));
    assert_eq!(a + b, 800);
    let authority = Authority::new("load");
    let tls = format!(", tls = tls.server({})", authority.words(&["127.0.0.1"]));
    for (scheme, tls, more) in [
        ("http", "", &[][..]),
        ("http", "", &["--h2"]),
        ("https", &tls, &["--insecure"]),
        ("https", &tls, &["--h2"]),
    ] {
        let log = scratch.path("access.log");
        let http = format!("http = http(access_log = \"{log}\", log_format = \"json\")");
        let mut served =
            Weir::new(&format!("listen(\"127.0.0.1:0\", respond(200), name = \"web\", {http}{tls})\n"));
        let to = format!("{scheme}://{}", served.addr("web"));
        let args = [&["load", &file, "--to", &to, "--output", "json", "--quiet"], more].concat();
        // The last one trusts the authority; the one before asks for nothing.
        let result = json_of(weir().args(&args).env("SSL_CERT_FILE", &authority.file));
        let counts = &result["requests"];
        assert_eq!(
            (counts["total"].as_u64(), counts["ok"].as_u64()),
            (Some(800), Some(800)),
            "{more:?}: {result}"
        );
        assert_eq!((result["schema"].as_str(), result["success"].as_f64()), (Some("weir.load/1"), Some(1.0)));
        assert!(result["latency_ms"]["all"]["p95"].as_f64().is_some_and(|ms| ms > 0.0), "{result}");
        served.signal(rustix::process::Signal::TERM);
        assert_eq!(served.ends(), Some(0));
        let text = std::fs::read_to_string(&log).expect("a log");
        let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
        std::fs::remove_file(&log).expect("it is there");
        let of = |path: &str| lines.iter().filter(|l| l["path"] == path).count() as u64;
        assert_eq!((of("/a"), of("/b/c")), (a, b), "{more:?}");
        let posts = lines.iter().filter(|l| l["method"] == "POST");
        assert!(posts.clone().all(|l| l["path"] == "/b/c"), "{more:?}");
        let version = if more.contains(&"--h2") { "2" } else { "1.1" };
        assert!(
            lines.iter().all(|l| l["version"].as_str().is_some_and(|v| v.starts_with(version))),
            "{more:?}: {:?}",
            lines.first()
        );
    }
}

/// What the file expects of the scenario is judged by what was measured; a run that is void says so instead.
#[test]
fn expectations_are_judged() {
    let scratch = Scratch::new("load-expect");
    let expect = "expect(\"s\", success=[\">=0.5\", \"<0.5\"], attempts_per_request=\"<2\")\n";
    let text = format!(
        "scenario(\"s\", server(), traffic.constant(rate = 100), requests = 50, window = \"all\")\n{expect}"
    );
    let file = scratch.file("expects.star", &text);
    let served = Weir::new("listen(\"127.0.0.1:0\", respond(200), name = \"web\")\n");
    let to = format!("http://{}", served.addr("web"));
    let ran = weir().args(["load", &file, "--to", &to, "--output", "json"]).output().expect("it starts");
    assert_eq!(ran.status.code(), Some(1), "one of them fails");
    let result: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let judged = result["expectations"].as_array().expect("a list");
    let of = |i: usize| (judged[i]["expect"].as_str(), judged[i]["holds"].as_bool());
    let is = |holds: bool| if result["void"].is_null() { Some(holds) } else { None };
    assert_eq!(judged.len(), 2, "{result}");
    assert_eq!(
        (of(0), of(1)),
        ((Some("success>=0.5"), is(true)), (Some("success<0.5"), is(false))),
        "{result}"
    );
    assert!(result["warnings"].to_string().contains("attempts_per_request<2"), "{result}");
    assert!(judged[0]["value"]["low"].as_f64().is_some_and(|low| low > 0.9), "{result}");
}

/// A server that drains says GOAWAY to a connection of HTTP/2 before its first request, which goes on another one.
#[test]
fn a_request_is_not_lost_on_a_connection_that_drains() {
    let scratch = Scratch::new("load-goaway");
    let file = scratch.file(
        "few.star",
        "scenario(\"s\", server(), traffic.constant(every = 5*ms), requests = 40, window = \"all\")\n",
    );
    let weir = Weir::before("server(\"app\", model = 1*ms)");
    let to = drains_first(2, weir.addr("web").to_owned());
    let result =
        json(&["load", &file, "--to", &format!("http://{to}"), "--h2", "--output", "json", "--quiet"]);
    assert_eq!(result["requests"]["ok"], 40, "{result}");
    assert_eq!(result["success"].as_f64(), Some(1.0), "{result}");
}

/// The address of a server whose first connections drain from their beginning; the others lead to `to`.
fn drains_first(count: usize, to: String) -> String {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = server.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for (number, client) in server.incoming().flatten().enumerate() {
            let to = to.clone();
            std::thread::spawn(move || if number < count { drain(client) } else { relay(client, &to) });
        }
    });
    addr
}

/// SETTINGS (100 streams) and GOAWAY (NO_ERROR, no stream was processed), then whatever comes until the client ends.
fn drain(mut client: TcpStream) -> io::Result<()> {
    let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100];
    let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    client.write_all(&[&settings[..], &goaway].concat())?;
    io::copy(&mut client, &mut io::sink()).map(drop)
}

fn relay(mut client: TcpStream, to: &str) -> io::Result<()> {
    let mut server = TcpStream::connect(to)?;
    let (mut back, mut from) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || io::copy(&mut from, &mut back));
    io::copy(&mut client, &mut server).map(drop)
}

/// A latency counts from the intended instant: with one connection, requests that come faster than they are answered
/// wait.
#[test]
fn latency_counts_from_the_intended_instant() {
    let scratch = Scratch::new("load-open");
    let file = scratch.file(
        "open.star",
        "scenario(\"s\", server(), traffic.constant(every = 5*ms), requests = 40, window = \"all\")\n",
    );
    let (rows, hgrm) = (scratch.path("rows.csv"), scratch.path("run.hgrm"));
    let weir = Weir::before("server(\"slow\", model = 20*ms)");
    let to = format!("http://{}", weir.addr("web"));
    let args = [
        "load",
        &file,
        "--to",
        &to,
        "--connections",
        "1",
        "--every",
        "100ms",
        "--output",
        "json",
        "--save",
        &rows,
        "--hgrm",
        &hgrm,
    ];
    let result = json(&args);
    // The last of 40 was to be sent at 195 ms and is answered at 800 ms at the earliest.
    assert!(result["latency_ms"]["all"]["max"].as_f64().is_some_and(|ms| ms >= 600.0), "{result}");
    assert!(result["latency_ms"]["all"]["min"].as_f64().is_some_and(|ms| ms >= 20.0), "{result}");
    assert_eq!(result["connections"], 1);
    let parts = &result["over_time"];
    assert_eq!(numbers(&parts["arrivals_per_s"]), [190.0, 210.0], "{parts}");
    // Ten answers fit into 200 ms, so of the rest it shows where it was due.
    assert!(numbers(&parts["responses_per_s"]).iter().sum::<f64>() <= 100.0, "{parts}");
    let most =
        [&parts["latency_ms"]["max"][0], &parts["latency_ms"]["p50"][1], &parts["latency_ms"]["max"][1]];
    assert!(most.iter().zip([280.0, 440.0, 600.0]).all(|(ms, least)| ms.as_f64() >= Some(least)), "{parts}");
    assert!(parts["latency_ms"]["p50"][0].is_null(), "19 requests have no median: {parts}");
    assert!(numbers(&parts["connections"]).iter().all(|n| (0.0..=1.0).contains(n)), "{parts}");
    assert!(result["warnings"].to_string().contains("waited for a free connection"), "{result}");
    let rows = std::fs::read_to_string(rows).expect("rows");
    assert_eq!(rows.lines().count(), 41);
    assert!(
        rows.starts_with("request,intended_ns,sent_ns,ended_ns,latency_ns,status,error,selected\n0,"),
        "{rows}"
    );
    let hgrm = std::fs::read_to_string(hgrm).expect("a distribution");
    let total = hgrm.lines().find(|l| l.starts_with("#[Max")).expect("its end");
    assert!(total.trim_end_matches(']').ends_with("40") && hgrm.contains("1.000000000000"), "{hgrm}");
}

fn numbers(list: &Value) -> Vec<f64> {
    let list = list.as_array().expect("a list");
    list.iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// The parts of a run have the arrivals of the simulated one, whatever the answers, and with a speed they come as much faster.
#[test]
fn a_run_part_by_part_has_the_arrivals_of_the_simulation() {
    let scratch = Scratch::new("load-parts");
    let source = "scenario(\"s\", server(), traffic.constant(every = 5*ms), duration = 500*ms, window = \"all\", every = 100*ms)\n";
    let file = scratch.file("parts.star", source);
    let simulated = json(&["sim", &file, "--replications", "1", "--output", "json"]);
    let due = numbers(&simulated["scenarios"][0]["over_time"]["arrivals_per_s"]);
    assert_eq!(due, [190.0, 200.0, 200.0, 200.0, 210.0]);
    let weir = Weir::before("respond(200)");
    let to = format!("http://{}", weir.addr("web"));
    for (more, every_s, factor, parts) in [
        (&[][..], 0.1, 1.0, 5),
        (&["--every", "250ms"], 0.25, 1.0, 2),
        (&["--every", "50ms", "--speed", "2"], 0.05, 2.0, 5),
        (&["--every", "1s", "--h2"], 1.0, 1.0, 1),
    ] {
        let result = json(&[&["load", &file, "--to", &to, "--output", "json"], more].concat());
        let of = &result["over_time"];
        assert_eq!((of["every_s"].as_f64(), result["requests"]["ok"].as_u64()), (Some(every_s), Some(100)));
        let (arrivals, ok) = (numbers(&of["arrivals_per_s"]), numbers(&of["ok"]));
        assert_eq!((arrivals.len(), &ok), (parts, &arrivals), "{more:?}: {of}");
        let length_s = 0.5 / factor / parts as f64;
        assert_eq!((ok.iter().sum::<f64>() * length_s).round(), 100.0, "{more:?}: {of}");
        if parts == due.len() {
            assert!(arrivals.iter().zip(&due).all(|(a, b)| (a - b * factor).abs() < 1e-6), "{more:?}: {of}");
        }
        assert_eq!((of["errors"].as_object().map(|of| of.len()), of.get("watched")), (Some(0), None));
        let greatest = numbers(&of["latency_ms"]["max"]).into_iter().fold(0.0, f64::max);
        assert_eq!(of["peak"]["max"]["value"].as_f64(), Some(greatest));
        assert_eq!(result["latency_ms"]["all"]["max"].as_f64(), Some(greatest), "{result}");
        let opened = numbers(&of["opened_per_s"]).into_iter().sum::<f64>() * length_s;
        let most = result["connections"].as_f64().expect("a number");
        assert!((1.0..=most).contains(&opened.round()), "{opened} opened: {result}");
        assert!(numbers(&of["connections"]).into_iter().any(|n| n > 0.0), "{result}");
    }
    let ran = weir_text(&["load", &file, "--to", &to]);
    assert!(ran.contains("\n  worst part: "), "{ran}");
}

/// What a command prints, also where a busy machine makes the run void.
fn weir_text(args: &[&str]) -> String {
    let ran = weir().args(args).output().expect("it starts");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[test]
fn parts_that_are_too_short_or_too_many_are_refused() {
    let scratch = Scratch::new("load-too-many");
    let source =
        "scenario(\"s\", server(), traffic.constant(every = 1*ms), duration = 100*s, every = 10*ms)\n";
    let file = scratch.file("parts.star", source);
    let weir = Weir::before("respond(200)");
    let to = format!("http://{}", weir.addr("web"));
    for (more, says) in [
        (&["--every", "1ms"][..], "--every must be 10ms or more, not 1ms; write `--every 10ms` or more"),
        (&["--every", "1ms", "--duration", "200s"], "write `--every 20ms` or more"),
        (
            &["--every", "10ms", "--duration", "200s"],
            "--every divides the run into 20000 parts, and there may be 10000",
        ),
        (&["--every", "20ms", "--duration", "200s", "--speed", "0.5"], "write `--every 40ms` or more"),
        (&["--every", "10ms", "--requests", "200000", "--speed", "0.1"], "write `--every 100ms` or more"),
        (&["--duration", "200s"], "the scenario's `every` divides the run into 20000 parts"),
        (&["--every", "10"], "it has no unit"),
        (&["--every", "0s"], "above 0"),
    ] {
        run(&[&["load", &file, "--to", &to], more].concat()).fails(2, says);
    }
}

/// Each user of a closed loop has one request on its way at most.
#[test]
fn a_closed_loop_waits_for_its_answers() {
    let scratch = Scratch::new("load-closed");
    let file = scratch.file(
        "closed.star",
        "scenario(\"s\", server(), traffic.closed(3, 1*ms), requests = 60, window = \"all\")\n",
    );
    let weir = Weir::before("server(\"slow\", model = 10*ms)");
    let to = format!("http://{}", weir.addr("web"));
    let result = json(&["load", &file, "--to", &to, "--output", "json"]);
    assert_eq!(result["requests"]["ok"], 60, "{result}");
    assert!(result["connections"].as_u64().is_some_and(|n| n <= 3), "{result}");
}

/// No load finds a window by itself.
#[test]
fn a_window_of_simulations_is_the_middle_half() {
    let scratch = Scratch::new("load-auto");
    let file = scratch.file(
        "auto.star",
        "scenario(\"s\", server(), traffic.constant(every = 1*ms), requests = 40, window = \"auto\")\n",
    );
    let weir = Weir::before("respond(200)");
    let result = json(&["load", &file, "--to", &format!("http://{}", weir.addr("web")), "--output", "json"]);
    let requests = &result["requests"];
    assert_eq!((&requests["total"], &requests["selected"]), (&Value::from(40), &Value::from(20)), "{result}");
    assert!(result["warnings"][0].as_str().is_some_and(|w| w.contains("middle half")), "{result}");
}

#[test]
fn failures_are_told_by_their_kinds() {
    let scratch = Scratch::new("load-fails");
    let file = scratch.file("f.star", "scenario(\"s\", server(), traffic.constant(every = 2*ms), requests = 20, window = \"all\", patience = 300*ms)\n");
    for (node, kind) in [("respond(503)", "status_5xx"), ("server(\"x\", model = 30*s)", "timeout")] {
        let weir = Weir::before(node);
        let to = format!("http://{}", weir.addr("web"));
        let result = json(&["load", &file, "--to", &to, "--output", "json"]);
        assert_eq!(result["requests"]["errors"][kind], 20, "{result}");
        assert_eq!(result["success"], 0.0);
    }
}

#[test]
fn what_cannot_be_sent_is_said_before_anything_runs() {
    let scratch = Scratch::new("load-wrong");
    let file =
        scratch.file("f.star", "scenario(\"s\", server(), traffic.constant(every = 2*ms), requests = 20)\n");
    let two = scratch.file("two.star", "a = server()\nscenario(\"x\", a, traffic.constant(rate = 9), requests = 20)\nscenario(\"y\", a, traffic.constant(rate = 9), requests = 20)\n");
    let none = scratch.file("none.star", "a = server()\n");
    let weir = Weir::before("respond(200)");
    let here = format!("http://{}", weir.addr("web"));
    let secure = format!("https://{}", weir.addr("web"));
    let dead = format!("http://{}", serve::closed_port());
    for (args, code, says) in [
        (&[file.as_str()][..], 2, "--to"),
        (&[&file, "--to", "localhost:80"], 2, "write http"),
        (&[&file, "--to", "http://a/b"], 2, "paths come from the scenario"),
        (&[&file, "--to", &dead], 3, "cannot connect"),
        (&[&file, "--to", "http://no-such-host.invalid"], 3, "no-such-host.invalid"),
        (&[&file, "--to", &secure], 3, "tls"),
        (&[&file, "other", "--to", &here], 2, "it has s"),
        (&[&two, "--to", &here], 2, "name one: x, y"),
        (&[&none, "--to", &here], 2, "has no scenario"),
        (&[&file, "--to", &here, "--speed", "0"], 2, "above 0"),
        (&[&file, "--to", &here, "--duration", "10"], 2, "duration"),
        (&[&file, "--to", &here, "--save", "/nowhere/rows.csv"], 3, "cannot write"),
    ] {
        run(&[&["load"], args].concat()).fails(code, says);
    }
}

#[test]
fn an_interrupt_ends_a_run() {
    let scratch = Scratch::new("load-interrupt");
    let file = scratch
        .file("f.star", "scenario(\"s\", server(), traffic.constant(every = 1*ms), duration = 10*minutes)\n");
    let weir_ = Weir::before("respond(200)");
    let to = format!("http://{}", weir_.addr("web"));
    let mut child = weir()
        .args(["load", &file, "--to", &to])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    interrupt(&child);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}
