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
    let result = json(&["load", &file, "--to", &to, "--output", "json", "--html", &html]);
    assert_eq!(result["requests"]["ok"], 200);
    let page = std::fs::read_to_string(&html).expect("it was written");
    assert!(
        page.contains("<h2>How long requests took</h2>")
            && page.contains("200 of 200 requests count; 100 % succeeded")
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
