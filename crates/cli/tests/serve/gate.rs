//! `weir gate` as a process, beside applications that are ready, late, broken, gone, or begin anew.

use crate::shared::common::{Scratch, run, weir};
use crate::shared::serve::{Origin, Stream, Weir, closed_port, free_port, reply, serve_fails, until};
use rustix::process::Signal;
use serde_json::Value;
use socket2::{Domain, SockAddr, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// `weir gate` beside this application, asked every 10 ms.
fn gate(url: &str, more: &[&str]) -> Weir {
    let mut command = weir();
    command
        .args(["gate", "--for", url, "--listen", "127.0.0.1:0", "--interval", "10ms", "--id", "a"])
        .args(more);
    Weir::run(command, Scratch::new("gate"), 1)
}

/// An application that answers this status, which may change.
fn application() -> (Origin, Arc<AtomicU32>) {
    let status = Arc::new(AtomicU32::new(200));
    let now = status.clone();
    let answer = move |_: &_| {
        format!("HTTP/1.1 {} Word\r\nContent-Length: 2\r\n\r\nok", now.load(SeqCst)).into_bytes()
    };
    (Origin::answering(answer), status)
}

fn url(origin: &Origin) -> String {
    format!("http://{}/health", origin.addr())
}

/// What an asker with this name is answered.
fn ask(gate: &Weir, name: &str) -> (u16, String) {
    let answer =
        gate.ask(&format!("GET /any HTTP/1.1\r\nHost: h\r\nX-Peer: {name}\r\n\r\n")).expect("an answer");
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    (answer.status(), answer.body_text())
}

fn status(gate: &Weir) -> Value {
    serde_json::from_str(&gate.get("/gate/status").body_text()).expect("JSON")
}

fn is_ready(gate: &Weir) -> bool {
    status(gate)["ready"] == true
}

/// The article's log, and from when each of its askers is let in (its rule in Guava 33.8.0).
#[test]
fn the_article_is_predicted_line_by_line() {
    let asked =
        ["172.26.51.36@0s", "172.26.51.107@0s", "172.26.51.136@9s", "172.26.51.254@14s", "172.26.51.107@59s"];
    let out = run(&[&["gate", "--flap", "article", "--dry-run"], &asked[..]].concat());
    let wanted = "\
gate: peer 172.26.51.36 hash 234237154 enabled 0.0 % denied
gate: peer 172.26.51.107 hash 652717793 enabled 0.0 % denied
gate: peer 172.26.51.136 hash 22700163 enabled 15.000001 % denied
gate: peer 172.26.51.254 hash 394429823 enabled 23.333334 % allowed
gate: peer 172.26.51.107 hash 652717793 enabled 98.333336 % allowed
";
    assert_eq!(out.succeeds(), wanted);
    let out = run(&[
        "gate",
        "--dry-run",
        "172.26.51.36",
        "172.26.51.254@14s",
        "--flap",
        "article",
        "--output",
        "json",
    ]);
    let wanted = "[{\"peer\":\"172.26.51.36\",\"hash\":234237154,\"share\":0.54,\"from_s\":33,\"time_s\":null,\
                  \"enabled_percent\":null,\"healthy\":null},{\"peer\":\"172.26.51.254\",\"hash\":394429823,\"share\":0.23,\
                  \"from_s\":14,\"time_s\":14.0,\"enabled_percent\":23.333334,\"healthy\":true}]\n";
    assert_eq!(out.succeeds(), wanted);
}

#[test]
fn an_even_ramp_is_predicted() {
    let out = run(&["gate", "--id", "a", "--dry-run", "127.0.0.1", "::ffff:10.0.0.1", "2001:DB8::1@30s"]);
    let lines: Vec<&str> = out.succeeds().lines().collect();
    assert!(lines[0].ends_with("share 35.1 % from 21.0 s"), "{lines:?}");
    assert!(
        lines[1].starts_with("gate: peer 10.0.0.1 ") && lines[1].ends_with("share 86.4 % from 51.8 s"),
        "{lines:?}"
    );
    assert!(
        lines[2].starts_with("gate: peer 2001:db8::1 ") && lines[2].ends_with("enabled 50.0 % denied"),
        "{lines:?}"
    );
}

/// Of eight askers none is let in before one whose place is earlier, all are in the end, and each stays.
#[test]
fn askers_are_let_in_one_after_the_other() {
    let (origin, _) = application();
    let names: Vec<String> = (0..8).map(|n| format!("asker-{n}")).collect();
    let mut order: Vec<(f64, &str)> = {
        let peers: Vec<&str> = names.iter().map(String::as_str).collect();
        let said = run(&[&["gate", "--id", "a", "--output", "json", "--dry-run"], &peers[..]].concat());
        let all: Vec<Value> = serde_json::from_str(said.succeeds()).expect("JSON");
        all.iter()
            .zip(&names)
            .map(|(one, name)| (one["share"].as_f64().expect("a share"), &name[..]))
            .collect()
    };
    // Asked from the last to the first: time goes on between.
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let gate = gate(&url(&origin), &["--ramp", "3s", "--key", "header:X-Peer"]);
    assert!(until(|| is_ready(&gate)));
    let mut inside = [false; 8];
    assert!(until(|| {
        for (at, (share, name)) in order.iter().enumerate() {
            let (status, line) = ask(&gate, name);
            assert!(status == 200 || !inside[at], "{name} was let in, and is not: {line}");
            let come = format!("you come at {:.1} %", share * 100.0);
            assert!(status == 200 || line.starts_with("ramp ") && line.contains(&come), "{line}");
            let earlier = at.checked_sub(1).is_some_and(|before| inside[before]);
            assert!(status == 200 || !earlier, "{name} comes before one that is let in");
            inside[at] = status == 200;
        }
        inside == [true; 8]
    }));
    let log = gate.err();
    assert!(log.contains("gate: peer asker-0 hash ") && log.contains(" % allowed\n"), "{log}");
    assert_eq!(status(&gate)["askers"].as_array().map(Vec::len), Some(8));
}

/// Who asks from where: the addresses of loopback.
#[test]
fn askers_are_known_by_their_address() {
    let (origin, _) = application();
    let gate = gate(&url(&origin), &[]);
    let to: SocketAddr = gate.listening[0].1.parse().expect("an address");
    for last in [2, 3, 2] {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket
            .bind(&SockAddr::from(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0)))
            .expect("loopback");
        socket.connect(&to.into()).expect("the gate accepts");
        Stream::tcp(socket.into()).ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").expect("an answer");
    }
    let askers = status(&gate)["askers"].clone();
    let known = |n: usize| (askers[n]["peer"].as_str(), askers[n]["asked"].as_u64());
    assert_eq!((known(0), known(1)), ((Some("127.0.0.2"), Some(2)), (Some("127.0.0.3"), Some(1))));
    let share = askers[0]["share"].as_f64().expect("a share");
    assert!((share - 0.516162).abs() < 5e-7, "{share}");
}

/// An answer that is no good makes it unready and leaves the clock; a process that is gone begins it anew.
#[test]
fn the_clock_goes_on_for_a_bad_answer_and_begins_anew_for_a_new_process() {
    let at = free_port();
    let (status_now, serve) = (Arc::new(AtomicU32::new(200)), |now: Arc<AtomicU32>| {
        move |peer: &mut crate::shared::serve::Peer| loop {
            peer.request()?;
            peer.send(format!("HTTP/1.1 {} W\r\nContent-Length: 0\r\n\r\n", now.load(SeqCst)))?;
        }
    });
    let origin = Origin::bind(at, serve(status_now.clone()));
    let gate = gate(&url(&origin), &["--ramp", "1h"]);
    assert!(until(|| is_ready(&gate)));
    assert!(until(|| status(&gate)["since_s"].as_f64().is_some_and(|s| s > 0.1)));
    status_now.store(500, SeqCst);
    assert!(until(|| !is_ready(&gate)));
    let (code, why) = ask(&gate, "x");
    assert_eq!((code, &why[..]), (503, "--for answered 500\n"));
    let since = status(&gate)["since_s"].as_f64().expect("the clock goes on");
    assert!(since > 0.1, "{since}");
    status_now.store(200, SeqCst);
    assert!(until(|| is_ready(&gate)));
    drop(origin);
    assert!(until(|| status(&gate)["why"]
        .as_str()
        .is_some_and(|why| why.contains("refused the connection"))));
    assert_eq!(status(&gate)["since_s"], Value::Null);
    let _origin = Origin::bind(at, serve(status_now));
    assert!(until(|| is_ready(&gate)));
    assert!(status(&gate)["since_s"].as_f64().is_some_and(|s| s < since + 20.0));
}

/// An application that hangs is late; one that is another program does not speak HTTP.
#[test]
fn what_is_no_answer_is_said() {
    let hangs = Origin::new(|peer| {
        peer.request()?;
        peer.wait_for_end()
    });
    let other = Origin::new(|peer| {
        peer.send("SSH-2.0-OpenSSH_9.2\r\n")?;
        peer.wait_for_end()
    });
    let closed = closed_port();
    for (url, says) in [
        (url(&hangs), "did not answer in time"),
        (url(&other), "did not answer in HTTP"),
        (format!("http://{closed}/"), "refused the connection"),
        ("http://nowhere.invalid/".to_owned(), "the name cannot be resolved"),
        ("unix:/nowhere.sock:/".to_owned(), "cannot be connected to: no such file"),
    ] {
        let gate = gate(&url, &["--timeout", "50ms"]);
        let said = || status(&gate)["why"].as_str().unwrap_or_default().to_owned();
        assert!(until(|| said().contains(says)), "{says}: {}", said());
        assert_eq!(ask(&gate, "x").0, 503);
    }
}

#[test]
fn its_own_pages_and_other_requests() {
    let (origin, _) = application();
    let gate = gate(&url(&origin), &["--ramp", "0s"]);
    assert!(until(|| is_ready(&gate)));
    assert_eq!(ask(&gate, "x"), (200, "healthy\n".to_owned()));
    assert_eq!(gate.get("/gate/live").status(), 200);
    let metrics = gate.get("/gate/metrics").body_text();
    for line in [
        "weir_gate_ready 1\n",
        "weir_gate_enabled_ratio 1\n",
        "weir_gate_answers_total{result=\"healthy\"} 1\n",
        "weir_gate_answers_total{result=\"ramp\"} 0\n",
        "weir_gate_askers 1\n",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    let head = gate.client().ask("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n").expect("an answer");
    assert_eq!((head.status(), &head.body_text()[..]), (200, ""));
    let mut old = gate.client();
    old.send("GET / HTTP/1.0\r\n\r\n").expect("it reads");
    assert!(old.some().expect("an answer").starts_with(b"HTTP/1.0 200 OK\r\n"));
    let post = gate.ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").expect("an answer");
    assert_eq!((post.status(), post.field("allow")), (405, Some("GET, HEAD")));
    let long = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    assert!(gate.ask(&long).map_or(true, |answer| answer.status() >= 400));
    let mut half = gate.client();
    half.send("GET / HTTP/1.1\r\nHost:").expect("it reads");
    assert!(half.ends_within(crate::shared::serve::PATIENCE), "half a question is not waited for");
}

#[test]
fn a_unix_socket_and_haproxys_agent() {
    let scratch = Scratch::new("gate-unix");
    let origin = Origin::unix(scratch.path("app.sock").into(), |peer| {
        loop {
            let request = peer.request()?;
            assert_eq!(request.target(), "/health?deep");
            peer.send(reply("ok"))?;
        }
    });
    let mut command = weir();
    let url = format!("{}:/health?deep", origin.addr());
    let args = [
        "gate",
        "--for",
        &url,
        "--listen",
        "127.0.0.1:0",
        "--agent",
        "127.0.0.1:0",
        "--interval",
        "10ms",
        "--ramp",
        "1h",
    ];
    command.args(args);
    let gate = Weir::run(command, Scratch::new("gate"), 2);
    assert!(until(|| is_ready(&gate)), "{}", status(&gate));
    let said =
        |gate: &Weir| String::from_utf8_lossy(gate.connect("agent").some().expect("a line")).into_owned();
    assert_eq!(said(&gate), "up 1%\n");
    origin.read_only_http();
    drop(origin);
    assert!(until(|| !is_ready(&gate)));
    assert!(said(&gate).starts_with("down #--for "), "{}", said(&gate));
}

/// A counter without increments means not ready, one with increments ready; an unreadable counter decides nothing.
#[test]
fn without_requests_all_are_turned_away() {
    let (count, step) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(1_000)));
    let (now, by) = (count.clone(), step.clone());
    let origin = Origin::answering(move |request| match request.target() {
        "/metrics" => {
            let total = now.fetch_add(by.load(SeqCst), SeqCst);
            reply(&format!("other 1\nhttp_requests_total{{code=\"200\"}} {total}\n"))
        }
        _ => reply("ok"),
    });
    let page = format!("http://{}/metrics", origin.addr());
    let work = ["--ramp", "0s", "--min-requests", "5", "--grace", "0s", "--hold", "1h", "--requests-from"];
    let judged = gate(&url(&origin), &[&work[..], &[&page]].concat());
    assert!(until(|| status(&judged)["requests"].as_u64().is_some_and(|n| n > 2_000)));
    for _ in 0..20 {
        let before = status(&judged)["requests"].as_u64();
        assert_eq!(ask(&judged, "x").0, 200, "a thousand came in, or none is known of");
        assert!(until(|| status(&judged)["requests"].as_u64() > before));
    }
    step.store(0, SeqCst);
    assert!(until(|| {
        let (code, line) = ask(&judged, "x");
        code == 503 && line.contains("requests since you asked last, 5 wanted")
            || line.contains("turned away for")
    }));
    assert!(status(&judged)["held_s"].as_f64().is_some_and(|s| s > 3_000.0));
    let unread = gate(&url(&origin), &[&work[..], &[&format!("{page}#absent")]].concat());
    assert!(until(|| unread
        .err()
        .contains("no judgement by work: --requests-from has no samples of absent")));
    for _ in 0..3 {
        assert_eq!(ask(&unread, "x").0, 200);
    }
}

/// SIGTERM turns all away for a while; the exit code is 0. A second one does not wait.
#[test]
fn it_lingers_before_it_ends() {
    let (origin, _) = application();
    let mut gate = gate(&url(&origin), &["--ramp", "0s", "--linger", "1h"]);
    assert!(until(|| is_ready(&gate)));
    assert_eq!(ask(&gate, "x").0, 200);
    gate.signal(Signal::TERM);
    assert!(until(|| ask(&gate, "x") == (503, "the gate ends\n".to_owned())));
    gate.assert_alive();
    gate.signal(Signal::TERM);
    assert_eq!(gate.ends(), Some(0));
}

#[test]
fn wrong_usage_is_refused_with_the_remedy() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().expect("bound").to_string();
    let good = ["gate", "--for", "http://127.0.0.1:1/", "--listen", "127.0.0.1:0"];
    let with = |more: &[&'static str]| [&good[..], more].concat();
    for (args, code, says) in [
        (vec!["gate", "--listen", ":0"], 2, "--for"),
        (vec!["gate", "--for", "http://a/"], 2, "--listen"),
        (vec!["gate", "--for", "app:80", "--listen", ":0"], 2, "write http://127.0.0.1:8080/health"),
        (vec!["gate", "--for", "http://a/", "--listen", "8081x"], 2, "write :8081"),
        (vec!["gate", "--for", "http://a/", "--listen", "unix:/x"], 2, "a gate knows its askers by address"),
        (vec!["gate", "--for", "http://a/", "--listen", &taken], 3, "something listens there already"),
        (
            vec!["gate", "--for", "http://a/", "--listen", ":7171", "--listen", "127.0.0.1:7171"],
            2,
            "want one port",
        ),
        (with(&["--min-requests", "5"]), 2, "--requests-from"),
        (with(&["--min-requests", "0", "--requests-from", "http://a/"]), 2, "0 is not in 1.."),
        (with(&["--dry-run", "10.0.0.1"]), 2, "cannot be used with"),
        (vec!["gate", "--dry-run", "10.0.0.1@soon"], 2, "is not a duration"),
        (
            vec!["gate", "--dry-run", "10.0.0.1", "--ramp", "500ms", "--flap", "article"],
            2,
            "must be 1s or more",
        ),
        (with(&["--ramp=-1s"]), 2, "0 or more"),
        (with(&["--expect", "2xx"]), 2, "200-399"),
        (with(&["--key", "cookie:a"]), 2, "write peer or header:NAME"),
        (with(&["--output", "json"]), 2, "--dry-run"),
    ] {
        // One that is not refused would answer for ever.
        let mut command = weir();
        command.args(&args);
        let mut gate = Weir::begin(command, Scratch::new("gate"));
        assert_eq!(gate.ends(), Some(code), "{args:?}");
        assert!(until(|| gate.err().contains(says)), "`{says}` is not in: {}", gate.err());
    }
}

/// Two balancers that check from addresses of their own are two askers; an address that this host does not have is none.
#[test]
fn weirs_ask_from_their_source() {
    let (origin, _) = application();
    let gate = gate(&url(&origin), &["--ramp", "0s"]);
    let at = gate.listening[0].1.rsplit_once(':').expect("a port").1.to_owned();
    let file = |source: &str| {
        format!(
            "check = health.http(\"/\", interval=50*ms, timeout=50*ms, port={at}, initial=\"checked\", source=\"{source}\")\n\
             listen(\"127.0.0.1:0\", lb.round_robin([server(addr=\"{}\")], health=check), name=\"web\")\n",
            origin.addr()
        )
    };
    let weirs = ["127.0.0.2", "127.0.0.3"].map(|source| Weir::new(&file(source)));
    for weir in &weirs {
        assert!(until(|| weir.get("/").status() == 200));
    }
    let askers = status(&gate)["askers"].clone();
    let peers: Vec<_> =
        askers.as_array().expect("askers").iter().map(|asker| asker["peer"].clone()).collect();
    assert_eq!(peers, ["127.0.0.2", "127.0.0.3"]);
    serve_fails(
        &file("192.0.2.1"),
        3,
        &["health checks cannot be sent from 192.0.2.1", "write an address of this host"],
    );
    serve_fails(&file("192.0.2.1:80"), 2, &["is not an address without a port", "write \"192.0.2.1\""]);
}
