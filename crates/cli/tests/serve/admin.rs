//! The admin interface: what it reports, which clients may change something, and that no client holds up another.

use crate::shared::common;
use crate::shared::common::run;
use crate::shared::serve;
use crate::shared::serve::admin::{addr, ask, get, json, target};
use crate::shared::serve::browser::Browser;
use crate::shared::serve::{Origin, Stream, Weir, closed_port, reply, tell, until};
use rustix::process::Signal;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two targets that answer, behind a balancer that ejects.
fn apps(of: &[&Origin]) -> String {
    let targets: Vec<String> = of
        .iter()
        .enumerate()
        .map(|(i, origin)| format!("server(\"app-{i}\", addr = \"{}\")", origin.addr()))
        .collect();
    format!(
        "listen(\"127.0.0.1:0\", lb.peak_ewma([{}], name = \"apps\", eject = eject(consecutive = 1, base = 60*s), pass_over = 0*s), name = \"web\")\n",
        targets.join(", ")
    )
}

fn answering() -> Origin {
    Origin::new(|peer| {
        loop {
            peer.request()?;
            peer.send(reply("here"))?;
        }
    })
}

/// A weir with an admin address and a control socket; where they are.
fn administered(file: &str, args: &[&str]) -> (Weir, String, String) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let control = std::env::temp_dir().join(format!("weir-admin-{}-{number}", std::process::id()));
    let control = control.to_str().expect("UTF-8");
    let mut all = vec!["--admin", "127.0.0.1:0", "--control", control, "--loops", "2"];
    all.extend(args);
    let weir = Weir::with(file, &all, file.matches("listen(").count());
    // What is killed leaves its socket behind.
    let (admin, control) = (addr(&weir, "admin"), addr(&weir, "control"));
    (weir, admin, control)
}

#[test]
fn each_path_says_what_it_is_for() {
    let origin = answering();
    let (weir, admin, control) = administered(&apps(&[&origin, &origin]), &[]);
    for _ in 0..6 {
        assert_eq!(weir.get("/").body_text(), "here");
    }
    for at in [&admin, &control] {
        assert_eq!(get(at, "/healthz"), (200, "well\n".to_owned()));
        assert_eq!(get(at, "/ready"), (200, "ready\n".to_owned()));
        let config = json(at, "/config");
        assert_eq!((&config["generation"], &config["last_reload"]), (&json!(0), &json!(null)));
        assert!(
            config["file"] == "topology.star" && config["plan"].as_str().is_some_and(|plan| plan.len() > 16)
        );
        let (status, page) = get(at, "/");
        assert!(status == 200 && page.contains("apps") && page.contains("all 2 targets are up"), "{page}");
        let metrics = ask(at, "GET /metrics", "", "");
        assert!(metrics.field("content-type").is_some_and(|t| t.starts_with("text/plain; version=0.0.4")));
        assert!(metrics.body_text().contains("weir_build_info"), "{}", metrics.body_text());
        let open = ask(at, "GET /metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n", "");
        assert!(open.field("content-type").is_some_and(|t| t.starts_with("application/openmetrics-text")));
    }
    let topology = json(&admin, "/topology");
    assert_eq!(topology["schema"], "weir.topology/1");
    assert_eq!(topology["listeners"][0]["addr"], weir.addr("web"));
    assert_eq!(
        (&topology["listeners"][0]["has_target"], topology["loops"].as_array().map(Vec::len)),
        (&json!(true), Some(2))
    );
    assert_eq!(topology["nodes"].as_array().map(Vec::len), Some(4));
    let one = target(&admin, "apps", "app-0");
    assert!(
        one["state"] == "up" && one["in_flight"] == 0 && one["admin"] == "file" && one["why"] == json!([]),
        "{one:#}"
    );
    assert!(one["estimate_ms"].is_f64() && one["loops"].as_array().map(Vec::len) == Some(2), "{one:#}");
    let attempts = |name| target(&admin, "apps", name)["attempts"].as_u64().expect("counted");
    assert_eq!(attempts("app-0") + attempts("app-1"), 6);
}

#[test]
fn what_is_not_there_is_answered_with_what_is() {
    let origin = answering();
    let (_weir, admin, control) = administered(&apps(&[&origin]), &[]);
    let (status, says) = get(&admin, "/nothing");
    assert!(status == 404 && says.contains("/topology") && says.contains("POST /reload"), "{says}");
    let answer = ask(&admin, "GET /reload", "", "");
    assert!(answer.status() == 405 && answer.field("allow") == Some("POST"), "{}", answer.body_text());
    let answer = ask(&control, "POST /topology", "", "");
    assert!(answer.status() == 405 && answer.field("allow") == Some("GET"), "{}", answer.body_text());
    assert_eq!(ask(&control, "POST /nothing", "", "").status(), 404);
    let answer = ask(&admin, "GET /nothing", "Accept: application/json\r\n", "");
    assert!(answer.body_text().starts_with("{\"error\":"), "{}", answer.body_text());
    for (body, status) in [("{}", 400), ("{\"state\":\"sideways\"}", 400), (&"x".repeat(100_000)[..], 413)] {
        assert_eq!(ask(&control, "POST /targets/apps/app-0", "", body).status(), status, "{body:.20}");
    }
    for (path, says) in
        [("/targets/apps/nobody", "app-0"), ("/targets/nobody/app-0", "apps"), ("/targets/apps", "POOL")]
    {
        let answer = ask(&control, &format!("POST {path}"), "", "{\"state\":\"drain\"}");
        assert!(
            answer.status() == 404 && answer.body_text().contains(says),
            "{path}: {}",
            answer.body_text()
        );
    }
}

#[test]
fn only_those_who_may_are_obeyed() {
    let origin = answering();
    let token = common::Scratch::new("admin-token");
    let file = token.file("token", "s3cret\n");
    let args = ["--admin-token", &file, "--admin-host", "weir.example"];
    let (mut weir, admin, control) = administered(&apps(&[&origin]), &args);
    // By a name that leads here a page from elsewhere could read, and by a form of its own ask for changes.
    for (host, status) in
        [("evil.example", 403), ("weir.example", 200), ("127.0.0.1", 200), ("[::1]:9901", 200)]
    {
        assert_eq!(ask(&admin, "GET /ready", &format!("Host: {host}\r\n"), "").status(), status, "{host}");
    }
    assert_eq!(ask(&control, "GET /ready", "Host: evil.example\r\n", "").status(), 200);
    let answer = ask(&admin, "GET /ready", "Origin: http://evil.example\r\n", "");
    assert_eq!(answer.field("access-control-allow-origin"), None);
    let drained = "{\"state\":\"drain\"}";
    for (fields, status) in [
        ("", 403),
        ("Authorization: Bearer wrong\r\n", 403),
        ("Authorization: Basic s3cret\r\n", 403),
        ("Host: evil.example\r\nAuthorization: Bearer s3cret\r\n", 403),
        ("Authorization: Bearer s3cret\r\n", 200),
    ] {
        let answer = ask(&admin, "POST /targets/apps/app-0", fields, drained);
        assert_eq!(answer.status(), status, "{fields}: {}", answer.body_text());
    }
    assert!(until(|| target(&admin, "apps", "app-0")["state"] == "drain"));
    let one = target(&admin, "apps", "app-0");
    assert!(
        one["admin"] == "drain" && one["why"][0].as_str().is_some_and(|why| why.contains("by hand")),
        "{one:#}"
    );
    // No target is left behind the only listener.
    let (status, says) = get(&admin, "/ready");
    assert!(status == 503 && says.contains("web has no target"), "{says}");
    let taken_back = ask(&control, "POST /targets/apps/app-0", "", "{\"state\":\"file\"}");
    assert_eq!(taken_back.status(), 200, "{}", taken_back.body_text());
    assert!(until(|| get(&admin, "/ready").0 == 200));
    // Names come percent-encoded.
    assert_eq!(ask(&control, "POST /targets/%61pps/app%2D0", "", "{\"weight\": 3}").status(), 200);
    assert!(until(|| target(&admin, "apps", "app-0")["weight"] == 3.0));
    assert_eq!(target(&admin, "apps", "app-0")["file_weight"], 1.0);
    // A site means all that it has made.
    let site = json(&admin, "/topology")["nodes"][0]["site"]
        .as_str()
        .expect("a site")
        .replace('/', "%2F")
        .replace('<', "%3C")
        .replace('>', "%3E");
    assert_eq!(ask(&control, &format!("POST /targets/apps/{site}"), "", "{\"state\": \"up\"}").status(), 200);
    assert!(until(|| target(&admin, "apps", "app-0")["admin"] == "up"));
    weir.assert_alive();
    let (_other, admin, _) = administered(&apps(&[&origin]), &[]);
    let answer = ask(&admin, "POST /drain", "Authorization: Bearer s3cret\r\n", "");
    assert!(answer.status() == 403 && answer.body_text().contains("--admin-token"), "{}", answer.body_text());
}

#[test]
fn a_drain_shows_and_the_socket_goes() {
    let origin = answering();
    let file = apps(&[&origin]).replace("name = \"web\"", "name = \"web\", http = http(drain_delay = 60*s)");
    let (mut weir, admin, control) = administered(&file, &[]);
    let path = control.strip_prefix("unix:").expect("a path").to_owned();
    let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(ask(&control, "POST /drain", "", "").status(), 202);
    assert_eq!(get(&admin, "/ready"), (503, "draining\n".to_owned()));
    assert_eq!(get(&admin, "/healthz").0, 200);
    assert_eq!(json(&admin, "/topology")["draining"], true);
    assert!(get(&admin, "/").1.contains("draining"));
    // The second one ends it at once; two that come together are one.
    assert!(until(|| {
        let ended = weir.exit_code().is_some();
        if !ended {
            weir.signal(Signal::TERM);
        }
        ended
    }));
    assert!(!std::path::Path::new(&path).exists(), "its socket is left behind");
}

#[test]
fn the_end_removes_the_socket_and_a_stale_one_is_replaced() {
    let origin = answering();
    let scratch = common::Scratch::new("admin-stale");
    let path = scratch.path("control");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    let mut weir = Weir::with(&apps(&[&origin]), &["--control", &path], 1);
    assert_eq!(get(&addr(&weir, "control"), "/ready").0, 200);
    // It is in use: another one says so, and leaves it alone.
    let other = common::weir()
        .args(["serve", &weir.scratch.path("topology.star"), "--control", &path])
        .output()
        .expect("it starts");
    let says = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(other.status.code() == Some(3) && says.contains("something listens there already"), "{says}");
    assert_eq!(get(&format!("unix:{path}"), "/ready").0, 200);
    weir.signal(Signal::TERM);
    assert_eq!(weir.ends(), Some(0));
    assert!(!std::path::Path::new(&path).exists(), "its socket is left behind");
    let file = scratch.file("t.star", "x = 1\n");
    let ran = run(&["serve", &file, "--admin", "127.0.0.1:0", "--admin-token", &scratch.path("none")]);
    ran.fails(2, "listen");
}

#[test]
fn slow_readers_and_half_requests_hold_nobody_up() {
    let origin = answering();
    let (mut weir, admin, control) = administered(&apps(&[&origin]), &[]);
    // As many as may be connected, each with half a request, or with many that it never reads the answers of.
    let mut held = Vec::new();
    for number in 0..60 {
        let mut stream = Stream::connect(&admin).expect("it listens");
        match number % 2 {
            0 => stream.send("GET /topology HTTP/1.1\r\nHost: local").expect("sent"),
            _ => stream
                .send("GET /topology?loops=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(50))
                .expect("sent"),
        }
        held.push(stream);
    }
    // The rest of the places, the control socket, and clients are as before.
    assert_eq!(get(&admin, "/healthz").0, 200);
    assert_eq!(get(&control, "/ready").0, 200);
    assert_eq!(weir.get("/").body_text(), "here");
    // A hundred more wait before the socket, and cost others nothing either.
    held.extend((0..100).map(|_| Stream::connect(&admin).expect("it listens")));
    assert_eq!(get(&control, "/ready").0, 200);
    assert_eq!(weir.get("/").body_text(), "here");
    drop(held);
    assert!(until(|| get(&admin, "/ready").0 == 200));
    weir.assert_alive();
}

#[test]
fn events_tell_what_has_changed() {
    let origin = answering();
    let (_weir, admin, control) = administered(&apps(&[&origin]), &[]);
    let mut events = TcpStream::connect(&admin).expect("it listens");
    events.set_read_timeout(Some(serve::PATIENCE)).expect("a socket");
    events.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    // Lines of the chunked body that are events' data.
    let mut lines = BufReader::new(events).lines();
    let mut next = move || loop {
        let line = lines.next().expect("it goes on").expect("UTF-8");
        if let Some(data) = line.strip_prefix("data: ") {
            break serde_json::from_str::<serde_json::Value>(data).expect("an object");
        }
    };
    let first = next();
    for part in ["status", "drawing", "pool-0-rows", "shape"] {
        assert!(first.get(part).is_some(), "{part} is not in {first:#}");
    }
    let second = next();
    assert!(
        second.get("shape").is_none() && second.get("listeners").is_none(),
        "it is as it was: {second:#}"
    );
    assert_eq!(ask(&control, "POST /targets/apps/app-0", "", "{\"state\":\"eject\"}").status(), 200);
    let changed = std::iter::repeat_with(next).take(20).find(|parts| parts.get("pool-0-rows").is_some());
    let rows = changed.expect("it changes")["pool-0-rows"].as_str().map(str::to_owned).expect("HTML");
    assert!(rows.contains("out by hand") && rows.contains("class=\"bad\""), "{rows}");
}

#[test]
fn the_command_does_the_same_by_hand() {
    let origin = answering();
    let (mut weir, admin, control) = administered(&apps(&[&origin, &origin]), &[]);
    let (url, control) =
        (format!("http://{admin}"), control.strip_prefix("unix:").expect("a path").to_owned());
    let status = run(&["admin", "status", "--url", &url]);
    let text = status.succeeds();
    assert!(
        text.starts_with("topology.star: ready\n") && text.contains("apps") && text.contains("2 of 2"),
        "{text}"
    );
    let targets = run(&["admin", "targets", "--control", &control]);
    let text = targets.succeeds();
    assert!(
        text.lines().count() == 3 && text.contains(origin.addr()) && text.contains("last check"),
        "{text}"
    );
    let json = run(&["admin", "targets", "--control", &control, "--output", "json"]);
    let pools: serde_json::Value = serde_json::from_str(json.succeeds()).expect("JSON");
    assert_eq!(pools[0]["targets"][1]["name"], "app-1");
    let set = ["admin", "set", "apps", "app-1", "--state", "drain", "--control", &control];
    assert_eq!(run(&set).succeeds(), "app-1 of apps: drain\n");
    assert!(until(|| target(&admin, "apps", "app-1")["state"] == "drain"));
    assert!(run(&["admin", "status", "--control", &control]).succeeds().contains("drained by hand"));
    let set = ["admin", "set", "apps", "app-1", "--weight", "3", "--for", "1h", "--control", &control];
    assert_eq!(run(&set).succeeds(), "app-1 of apps: weight 3 for 3600 s\n");
    assert!(run(&["admin", "targets", "--control", &control]).succeeds().contains("drain, weight 3"));
    let set = ["admin", "set", "apps", "app-1", "--weight", "file", "--control", &control];
    assert_eq!(run(&set).succeeds(), "app-1 of apps: the weight of the file\n");
    assert_eq!(target(&admin, "apps", "app-1")["admin"], "drain", "it is another setting");
    let set = ["admin", "set", "apps", "app-1", "--weight", "1e19", "--control", &control];
    run(&set).fails(1, "from 0.001 to 1000000");
    run(&["admin", "set", "apps", "app-9", "--state", "up", "--control", &control]).fails(1, "app-0");
    run(&["admin", "set", "apps", "app-1", "--state", "up", "--url", &url]).fails(1, "--admin-token");
    run(&["admin", "status", "--url", &format!("http://{}", closed_port())])
        .fails(3, "nothing listens there");
    run(&["admin", "status", "--control", "/nowhere/control"]).fails(3, "nothing listens there");
    let reloaded = run(&["admin", "reload", "--control", &control]);
    assert_eq!(reloaded.succeeds(), "generation 0: nothing has changed\n");
    let text = std::fs::read_to_string(weir.scratch.path("topology.star")).expect("it is there");
    weir.scratch.file("topology.star", format!("{text}# more\n"));
    let reloaded = run(&["admin", "reload", "--control", &control]);
    assert!(reloaded.succeeds().starts_with("generation 1: "), "{}", reloaded.out);
    assert_eq!(serve::admin::json(&admin, "/config")["generation"], 1);
    // A wrong file changes nothing, and what is wrong is said.
    weir.scratch.file("topology.star", "listen(\n");
    run(&["admin", "reload", "--control", &control]).fails(1, "topology.star");
    let config = serve::admin::json(&admin, "/config");
    assert!(config["generation"] == 1 && config["last_reload"]["failed"].is_string(), "{config:#}");
    assert!(get(&admin, "/").1.contains("the last reload changed nothing"));
    let (status, ready) = get(&admin, "/ready");
    assert!(status == 200 && ready.starts_with("ready; the last reload failed"), "{ready}");
    assert_eq!(target(&admin, "apps", "app-1")["state"], "drain", "what was set by hand stays");
    assert_eq!(run(&["admin", "drain", "--control", &control]).succeeds(), "draining\n");
    assert_eq!(weir.ends(), Some(0));
}

/// The word, its colour and the reason of the row of a target on the page.
const ROW: &str = "(() => { const row = [...document.querySelectorAll('#pool-0-rows tr')].find(r => r.textContent.startsWith('app-1'));
    const state = row.cells[1].firstChild; return [state.textContent, getComputedStyle(state).color, row.cells[0].textContent]; })()";

#[test]
fn a_killed_target_is_seen_red_with_the_reason_within_two_events() {
    let (origin, killed) = (answering(), answering());
    let (weir, admin, _) = administered(&apps(&[&origin, &killed]), &[]);
    let Some(mut browser) = Browser::open(&format!("http://{admin}/")) else {
        return tell("skipped: there is no Chromium here");
    };
    assert!(until(|| browser.value("document.getElementById('live').textContent") == "live"));
    let well = browser.value(ROW);
    assert!(well[0].as_str().is_some_and(|word| word.ends_with("up")), "{well}");
    // An event comes once a second.
    browser.value("window.seen = 0; source.addEventListener('message', () => window.seen++)");
    drop(killed);
    assert!(until(|| {
        // Ten at once, so that the balancer asks both.
        let mut asked: Vec<Stream> = (0..10).map(|_| weir.client()).collect();
        asked.iter_mut().for_each(|stream| drop(stream.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")));
        asked.iter_mut().for_each(|stream| drop(stream.response("GET")));
        target(&admin, "apps", "app-1")["state"] == "ejected"
    }));
    let before = browser.value("window.seen").as_u64().expect("a number");
    let mut row = well;
    assert!(
        until(|| {
            row = browser.value(ROW);
            row[0].as_str().is_some_and(|word| word.ends_with("ejected"))
        }),
        "{row}"
    );
    let after = browser.value("window.seen").as_u64().expect("a number");
    assert!(after - before <= 2, "it took {} events", after - before);
    assert!(
        row[1] == "rgb(192, 42, 42)" && row[2].as_str().is_some_and(|why| why.contains("failed")),
        "{row}"
    );
    assert_eq!(browser.value("document.querySelectorAll('svg.graph .is-warn').length > 0"), true);
}

/// Ends a flood, also if the test panics.
struct Flood(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Flood {
    /// Clients that are renewed without end, 300 at a time of each kind: silent ones, half requests, and `/events` that
    /// nothing reads; at the control socket silent ones.
    fn begin(admin: &str, control: &str) -> Flood {
        let ends = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let heads: [&[u8]; 3] = [
            b"",
            b"GET /healthz HTTP/1.1\r\nHost: 127.0",
            b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        ];
        let (ended, admin, control) = (ends.clone(), admin.to_owned(), control.to_owned());
        std::thread::spawn(move || {
            let (mut remote, mut local) =
                (std::collections::VecDeque::new(), std::collections::VecDeque::new());
            while !ended.load(Ordering::SeqCst) {
                for head in heads {
                    if let Ok(mut stream) = TcpStream::connect(&admin) {
                        // One that was closed already takes nothing.
                        let _ = stream.write_all(head);
                        remote.push_back(stream);
                    }
                }
                local.extend(std::os::unix::net::UnixStream::connect(&control));
                remote.drain(..remote.len().saturating_sub(900));
                local.drain(..local.len().saturating_sub(300));
                // Some hundred a second of each: a test that takes all of a core shows nothing else.
                serve::pause(5);
            }
        });
        Flood(ends)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn silent_clients_keep_nobody_out() {
    let origin = answering();
    let (weir, admin, control) = administered(&apps(&[&origin]), &[]);
    let path = control.strip_prefix("unix:").expect("a path");
    let flood = Flood::begin(&admin, path);
    for _ in 0..10 {
        assert_eq!(get(&admin, "/healthz").0, 200);
        assert_eq!(get(&admin, "/ready").0, 200);
        run(&["admin", "status", "--control", path]).succeeds();
    }
    drop(flood);
    assert_eq!(weir.get("/").body_text(), "here");
}
