//! Messages on standard error about failed requests and targets: which, where and why, never more than can be read.

use crate::shared::common::Scratch;
use crate::shared::serve::{Origin, Weir, closed_port, until};
use std::io::Write as _;

/// What it says, once a line with all of these words is there.
#[track_caller]
fn says(weir: &Weir, words: &[&str]) -> String {
    let line = || weir.err().lines().find(|line| words.iter().all(|w| line.contains(w))).map(str::to_owned);
    assert!(until(|| line().is_some()), "no line with {words:?} in: {}", weir.err());
    line().expect("it was there")
}

fn bad() -> Origin {
    Origin::new(|peer| {
        let request = peer.request()?;
        match request.target() {
            "/wait" | "/slow" => peer.wait_for_end(),
            "/length" => peer.send("HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n"),
            "/head" => peer.send("HTTP/1.1 200 OK\r\nContent"),
            "/chunk" => {
                peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\nxyz\r\n")
            }
            "/cut" => peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome"),
            _ => peer.breaks(),
        }
    })
}

/// One line for each, with the server's name and address, why, and what the client got.
#[test]
fn a_request_that_fails_is_told_with_its_reason() {
    let (bad, dead) = (bad(), closed_port());
    let node = format!(
        "route([(when(path = \"/dead\"), server(\"a\", addr = \"{dead}\")), (when(path = \"/slow\"), timeout(\"100ms\", bad)), \
         (when(path = \"/404\"), respond(404)), (when(path = \"/full\"), limit.rate(bad, 1, burst = 1))], otherwise = bad)"
    );
    let weir = Weir::new(&format!(
        "bad = server(\"bad\", addr = \"{}\", response_timeout = \"200ms\")\nlisten(\"127.0.0.1:0\", {node}, name = \"web\")\n",
        bad.addr()
    ));
    let (a, bad) = (format!("server \"a\" ({dead}): "), format!("server \"bad\" ({}): ", bad.addr()));
    for (path, status, who, why) in [
        ("/dead", 503, &a, "cannot connect: Connection refused"),
        ("/reset", 502, &bad, "the connection ended before any byte of an answer"),
        ("/head", 502, &bad, "the connection ended in the head of the answer"),
        ("/length", 502, &bad, "length-invalid, RFC 9110"),
        ("/wait", 504, &bad, "no answer within response_timeout (200ms)"),
    ] {
        assert_eq!(weir.get(path).status(), status);
        says(&weir, &[&format!("weir: {who}"), why, &format!("; {status} to GET {path}")]);
    }
    assert_eq!(weir.get("/slow").status(), 504);
    let line = says(&weir, &["weir: listener \"web\": a timeout expired (100ms); 504 to GET /slow"]);
    assert!(line.ends_with(&format!(", last tried: {}", bad.trim_end_matches(": "))), "{line}");
    for (path, why) in [("/chunk", "chunk-size, RFC 9112"), ("/cut", "ended in the body")] {
        assert!(weir.get(path).cut.is_some());
        says(&weir, &[&bad, why, &format!("the answer to GET {path} is cut short after 4 bytes")]);
    }
}

/// An origin of HTTP/2 whose settings are empty; its address.
fn without_settings() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut weir in listener.incoming().flatten() {
            weir.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).expect("taken");
            open.push(weir);
        }
    });
    addr
}

/// HTTP/2 carries an upgrade where the origin allows that, and the line names the setting.
#[test]
fn an_upgrade_that_a_setting_rules_out_is_told_with_it() {
    let scratch = Scratch::new("errors-upgrade");
    let (log, origin) = (scratch.path("access.log"), without_settings());
    let node = format!("retry(3, server(\"a\", addr = \"{origin}\", protocol = \"h2\"))");
    let weir = Weir::set(&format!("access_log = \"{log}\""), &node);
    let upgrade = "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    assert_eq!(weir.ask(upgrade).expect("an answer").status(), 501);
    let why = "an upgrade by HTTP/2 needs SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441), which the origin does not send; with \
               protocol=\"auto\" it goes by HTTP/1.1 where the origin speaks that";
    says(&weir, &[&format!("weir: server \"a\" ({origin}): {why}; 501 to GET /ws")]);
    assert_eq!(weir.err().lines().count(), 1, "{}", weir.err());
    let line = || std::fs::read_to_string(&log).unwrap_or_default();
    assert!(until(|| line().ends_with('\n')));
    let line: serde_json::Value = serde_json::from_str(&line()).expect("JSON");
    assert_eq!((&line["status"], &line["error"]), (&501.into(), &"bad_request".into()));
    assert_eq!((&line["target"], &line["attempts"]), (&"a".into(), &1.into()));
}

/// What is the client's fault, or an answer, is none of it; nor is any body.
#[test]
fn what_is_not_to_be_told_is_not() {
    let dead = closed_port();
    let weir = Weir::new(&format!(
        "listen(\"127.0.0.1:0\", route([(when(path = \"/dead*\"), server(\"a\", addr = \"{dead}\")), (when(path = \"/503\"), respond(503))]), name = \"web\")\n"
    ));
    assert_eq!([weir.get("/nowhere").status(), weir.get("/503").status()], [404, 503]);
    assert_eq!(weir.ask("GET / HTTP/1.1\r\n\r\n").expect("an answer").status(), 400);
    let vias = "Via: 1.1 weir\r\n".repeat(11);
    let looped = weir.ask(&format!("GET /loop HTTP/1.1\r\nHost: h\r\n{vias}\r\n")).expect("an answer");
    assert_eq!(looped.status(), 508);
    says(&weir, &["weir: listener \"web\": ", "via-loop", "; 508 to GET /loop"]);
    let post = "POST /dead?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\nhunter2";
    assert_eq!(weir.ask(post).expect("an answer").status(), 503);
    says(&weir, &["503 to POST /dead?x=1"]);
    let err = weir.err();
    assert!(!err.contains("hunter2") && !err.contains("nowhere") && !err.contains("GET /503"), "{err}");
    assert_eq!(err.lines().count(), 2, "{err}");
}

/// However many fail: ten lines a second, and how many were left out, without another that would tell it.
#[test]
fn a_flood_of_failures_is_counted() {
    let weir = Weir::before(&format!("server(\"a\", addr = \"{}\")", closed_port()));
    let mut client = weir.client();
    for _ in 0..300 {
        assert_eq!(client.get("/").expect("an answer").status(), 503);
    }
    assert!(until(|| weir.err().lines().last().is_some_and(|l| l.ends_with(" left out"))), "{}", weir.err());
    let (mut told, mut left_out) = (0, 0);
    for line in weir.err().lines() {
        told += u64::from(line.contains("503 to GET /"));
        let words: Vec<&str> = line.split([' ', '(']).collect();
        let counts = words.windows(2).filter(|pair| pair[1].starts_with("line"));
        left_out += counts.filter_map(|pair| pair[0].parse::<u64>().ok()).sum::<u64>();
    }
    assert_eq!(told + left_out, 300, "{}", weir.err());
    assert!(told <= 40, "{told}");
}

/// A target's line names its server, and failures do not crowd it out; `--quiet` leaves errors.
#[test]
fn a_target_is_told_by_its_server() {
    let dead = closed_port();
    for quiet in [false, true] {
        let file = format!(
            "listen(\"127.0.0.1:0\", lb.random([server(\"a\", addr = \"{dead}\")], health = health.http(\"/\", interval = \"50ms\", fall = 1), panic = 0.0), name = \"web\")\n"
        );
        let weir = Weir::with(&file, if quiet { &["--quiet"] } else { &[] }, 1);
        assert!(until(|| weir.get("/").status() == 503));
        says(&weir, &["503 to GET /"]);
        let target = format!("server \"a\" ({dead}), a target of ");
        if quiet {
            assert!(!weir.err().contains(&target), "{}", weir.err());
        } else {
            says(&weir, &[&target, "is down"]);
        }
    }
}
