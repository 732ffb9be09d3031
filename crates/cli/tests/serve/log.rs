//! The access log: a line for each exchange that any reader of its format takes, and never in the way of a request.

use crate::shared::common;
use crate::shared::common::Scratch;
use crate::shared::serve;
use crate::shared::serve::{Origin, Weir, pause, reply, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn set(log: &str, format: &str, node: &str) -> Weir {
    Weir::set(&format!("access_log = \"{log}\", log_format = \"{format}\""), node)
}

fn lines(path: &str) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn end(weir: &mut Weir) {
    weir.signal(Signal::TERM);
    assert_eq!(weir.ends(), Some(0));
}

const HOSTILE: &[&str] = &[
    "GET /%22%0a%5C HTTP/1.1\r\nHost: h\r\nReferer: \"\\ \u{e4}\t x\r\nUser-Agent: \\\"quote\r\n\r\n",
    "GET /\"quote\\back'<>`^{|} HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /a?b=\"\\\"&c=\\n\\u0000 HTTP/1.1\r\nHost: h\r\n\r\n",
    "G\"E\\T\u{1}\u{e4} / HTTP/1.1\r\nHost: h\r\n\r\n",
    "PUT /put HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 4\r\n\r\nbody",
    "GET /old HTTP/1.0\r\n\r\n",
];

#[test]
fn every_line_is_json() {
    let scratch = Scratch::new("log-json");
    let origin = Origin::named("some");
    let path = scratch.path("access.log");
    let mut weir = set(&path, "json", &format!("server(\"app\", addr = \"{}\")", origin.addr()));
    let mut want = Vec::new();
    for request in HOSTILE {
        let status = weir.ask(request).expect("an answer").status();
        want.push((request.split(' ').nth(1).expect("a target"), status));
    }
    end(&mut weir);
    let got: Vec<Value> =
        lines(&path).iter().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect();
    for (target, status) in want {
        // What is refused for its bytes alone has no path, but its first line.
        let of = |l: &&Value| l["path"] == target || l["line"].as_str().is_some_and(|l| l.contains(target));
        assert!(got.iter().find(of).is_some_and(|l| l["status"] == status), "{target} {status}: {got:?}");
    }
    let put = got.iter().find(|l| l["path"] == "/put").expect("its line");
    assert_eq!(
        (&put["method"], &put["host"], &put["version"]),
        (&"PUT".into(), &"[::1]:80".into(), &"1.1".into())
    );
    assert_eq!((&put["target"], &put["received"], &put["sent"]), (&"app".into(), &4.into(), &4.into()));
    assert_eq!(
        (&put["client"], &put["listener"], &put["attempts"]),
        (&"127.0.0.1".into(), &"web".into(), &1.into())
    );
    assert!(put["error"].is_null() && put["duration_ms"].as_f64().is_some_and(|ms| ms > 0.0 && ms < 5000.0));
}

/// A request refused for its head is logged by its head: never by a body, which may hold a password or imitate a line.
#[test]
fn no_body_stands_in_a_line() {
    let scratch = Scratch::new("log-body");
    for format in ["json", "combined"] {
        let path = scratch.path(format);
        let http = format!("max_body = 10, access_log = \"{path}\", log_format = \"{format}\"");
        let mut weir = Weir::set(&http, "respond(200, \"some\")");
        let body = "GET /forged?password=hunter2 HTTP/1.1";
        let mut want = Vec::new();
        for (field, status) in
            [("Accept: */*", 413), ("Expect: z", 417), ("Via: 1.1 weir", 0), ("Host: b", 400)]
        {
            let vias = if status == 0 { "Via: 1.1 weir\r\n".repeat(11) } else { String::new() };
            let n = body.len();
            let head =
                format!("POST /real HTTP/1.1\r\nHost: h\r\n{field}\r\n{vias}Content-Length: {n}\r\n\r\n");
            let answer = weir.ask(&(head + body)).expect("an answer");
            assert!(status == 0 || answer.status() == status, "{field}");
            want.push(answer.status());
        }
        end(&mut weir);
        let lines = lines(&path);
        assert_eq!(lines.len(), want.len());
        assert!(lines.iter().all(|l| !l.contains("forged") && l.contains("/real")), "{lines:?}");
        // In the order in which they ended.
        for status in want {
            let told = if format == "json" { format!("\"status\":{status}") } else { format!(" {status} ") };
            assert!(lines.iter().any(|l| l.contains(&told)), "{status}: {lines:?}");
        }
    }
}

#[test]
fn every_line_is_combined() {
    let scratch = Scratch::new("log-combined");
    let path = scratch.path("access.log");
    let mut weir = set(&path, "combined", "respond(200, \"some\")");
    for request in HOSTILE {
        weir.ask(request).expect("an answer");
    }
    end(&mut weir);
    let lines = lines(&path);
    assert_eq!(lines.len(), HOSTILE.len(), "{lines:?}");
    for line in &lines {
        let quotes: Vec<&str> = line.split('"').collect();
        // 127.0.0.1 - - [date] "METHOD target HTTP/1.1" 200 4 "referer" "agent": six quotes, however many were sent.
        assert_eq!(quotes.len(), 7, "{line}");
        assert!(quotes[0].starts_with("127.0.0.1 - - [") && quotes[0].ends_with(" +0000] "), "{line}");
        assert_eq!(quotes[1].rsplit(' ').next().map(|v| &v[..5]), Some("HTTP/"), "{line}");
        let [status, sent] = quotes[2].trim().split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert!(status.parse::<u16>().is_ok() && sent.parse::<u64>().is_ok(), "{line}");
    }
}

/// What went wrong is in the line: an operator reads it there first.
#[test]
fn failures_have_lines() {
    let scratch = Scratch::new("log-failures");
    let path = scratch.path("access.log");
    let bad = Origin::new(|peer| {
        let request = peer.request()?;
        match request.target() {
            "/cut" => peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome"),
            "/wait" => peer.wait_for_end(),
            _ => peer.breaks(),
        }
    });
    let mut weir = set(&path, "json", &format!("retry(2, server(\"bad\", addr = \"{}\"))", bad.addr()));
    assert_eq!(weir.get("/reset").status(), 502);
    assert!(weir.get("/cut").cut.is_some());
    let mut client = weir.client();
    client.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n").expect("it is sent");
    assert!(until(|| bad.arrivals().iter().any(|a| a == "GET /wait")));
    drop(client);
    assert!(until(|| bad.open() == 0));
    assert_eq!(weir.ask("TRACE /trace HTTP/1.1\r\nHost: h\r\n\r\n").expect("an answer").status(), 405);
    let answer = weir.ask("OPTIONS * HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n").expect("an answer");
    assert_eq!(answer.status(), 200);
    let answer = weir.ask("POST /bad HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    assert_eq!(answer.expect("an answer").status(), 400);
    end(&mut weir);
    let got: Vec<Value> = lines(&path).iter().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    let of =
        |path: &str| got.iter().find(|l| l["path"] == path).unwrap_or_else(|| panic!("{path} in {got:?}"));
    for (path, status, error, attempts) in [
        ("/reset", 502, Some("reset"), 2),
        ("/cut", 200, Some("reset"), 1),
        ("/wait", 499, Some("cancelled"), 1),
        ("/trace", 405, None, 0),
        ("*", 200, None, 0),
        ("/bad", 400, Some("bad_request"), 1),
    ] {
        let line = of(path);
        assert_eq!(line["status"], status, "{line}");
        assert!(error.is_none_or(|e| line["error"] == e), "{line}");
        assert_eq!(line["attempts"], attempts, "{line}");
    }
}

/// What was read ahead of a client that leaves was not sent.
#[test]
fn what_the_client_did_not_take_was_not_sent() {
    const BODY: usize = 16 << 20;
    let scratch = Scratch::new("log-sent");
    let path = scratch.path("access.log");
    let origin = Origin::answering(|_| reply(&"x".repeat(BODY)));
    let node = format!("buffered(server(\"app\", addr = \"{}\"), 32 * MiB)", origin.addr());
    let mut weir = set(&path, "json", &node);
    let mut client = weir.client();
    client.send("GET /left HTTP/1.1\r\nHost: h\r\n\r\n").expect("it is sent");
    pause(700);
    drop(client);
    assert!(until(|| lines(&path).len() == 1));
    assert_eq!(weir.get("/whole").body.len(), BODY);
    end(&mut weir);
    let got: Vec<Value> = lines(&path).iter().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!((&got[0]["status"], &got[0]["error"]), (&499.into(), &"cancelled".into()));
    assert!(got[0]["sent"].as_u64().is_some_and(|sent| sent > 0 && sent < 3 * BODY as u64 / 4), "{}", got[0]);
    assert_eq!((&got[1]["sent"], &got[1]["error"]), (&BODY.into(), &Value::Null));
}

/// What went each way in a tunnel is counted, and that it ends by silence is no error.
#[test]
fn a_tunnel_has_its_bytes_and_its_end() {
    let scratch = Scratch::new("log-tunnel");
    let path = scratch.path("access.log");
    let origin = Origin::new(|peer| {
        let request = peer.request()?;
        peer.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello",
        )?;
        if request.target() == "/breaks" {
            return peer.breaks();
        }
        peer.wait_for_end()
    });
    let http = format!("access_log = \"{path}\", tunnel_idle = 300*ms");
    let mut weir = Weir::set(&http, &format!("server(\"app\", addr = \"{}\")", origin.addr()));
    let mut tunnels = Vec::new();
    for (at, target) in ["/idle", "/closed", "/breaks"].iter().enumerate() {
        let mut client = weir.client();
        let ask =
            format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
        client.send(&ask).expect("it is sent");
        // With the first bytes of the other protocol right behind the head.
        assert!(until(|| origin.arrivals().len() == at + 1));
        let _ = client.send("0123456789");
        pause(100);
        // Read, so that closing is no reset.
        let _ = client.response("GET");
        if *target != "/closed" {
            tunnels.push(client);
        }
    }
    assert!(until(|| lines(&path).len() == 3), "{:?}", lines(&path));
    end(&mut weir);
    let got: Vec<Value> = lines(&path).iter().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    for (target, error) in [("/idle", None), ("/closed", None), ("/breaks", Some("reset"))] {
        let line = got.iter().find(|l| l["path"] == target).expect("its line");
        assert_eq!(line["status"], 101, "{line}");
        assert_eq!(line["error"].as_str(), error, "{line}");
        if error.is_none() {
            assert_eq!((&line["received"], &line["sent"]), (&10.into(), &5.into()), "{line}");
        }
    }
}

/// A limit of weir's that ends a request is named in the log, in the metrics, and in an answer of weir's own;
/// `cancelled` are clients that left, and only those.
#[test]
fn limits_are_named() {
    let scratch = Scratch::new("log-limits");
    let path = scratch.path("access.log");
    let origin = Origin::new(|peer| {
        let request = peer.request()?;
        match request.target() {
            "/large" => peer.send(reply(&"x".repeat(64 << 20))),
            "/half" => {
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome")?;
                peer.wait_for_end()
            }
            "/tunnel" => {
                peer.send(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
                )?;
                peer.wait_for_end()
            }
            _ => peer.wait_for_end(),
        }
    });
    let http = format!(
        "access_log = \"{path}\", head_timeout = 400*ms, body_timeout = 400*ms, write_timeout = 400*ms, tunnel_idle = 400*ms, max_body = 100"
    );
    let app = format!(
        "server(\"app\", addr = \"{}\", response_timeout = 400*ms, body_timeout = 400*ms)",
        origin.addr()
    );
    let node = format!(
        "route([(when(path = \"/line\"), queue({app}, timeout = 100*ms)), (when(path = \"/node\"), timeout(200*ms, {app})), (when(path = \"/*\"), {app})])"
    );
    let mut weir = Weir::set(&http, &node);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
    let post = |path: &str, length: u32| {
        format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n")
    };
    let mut held = Vec::new();
    for ask in [
        get("/large"),
        get("/tunnel").replace("\r\n\r\n", "\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
        get("/line"),
    ] {
        let mut client = weir.client();
        client.send(&ask).expect("it is sent");
        held.push(client);
    }
    assert!(until(|| origin.arrivals().iter().any(|asked| asked == "GET /line")));
    for (ask, status, limit) in [
        (get("/line"), 504, "queue_timeout"),
        (post("/late", 50), 408, "body_timeout"),
        (post("/long", 101), 413, "max_body"),
        (get("/silent"), 504, "response_timeout"),
        (get("/node"), 504, "timeout"),
        ("GET /head HTTP/1.1\r\n".to_owned(), 408, "head_timeout"),
        // It might have been another word; the listener speaks HTTP/2 as well.
        ("GET /version HT".to_owned(), 408, "head_timeout"),
    ] {
        let answer = weir.ask(&ask).expect("an answer");
        assert_eq!(answer.status(), status, "{ask}");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(text.contains(&format!("({limit})")), "{text} does not name {limit}");
    }
    assert!(weir.ask(&get("/half")).expect("a head").cut.is_some());
    let left = weir.client();
    assert!(until(|| lines(&path).iter().any(|line| line.contains("/tunnel"))));
    drop((left, held));
    end(&mut weir);
    let got: Vec<Value> = lines(&path).iter().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    for (target, status, error, limit) in [
        ("/large", 499, Some("timeout"), "write_timeout"),
        ("/tunnel", 101, None, "tunnel_idle"),
        ("/half", 200, Some("timeout"), "body_timeout"),
        ("/late", 408, Some("bad_request"), "body_timeout"),
        ("/long", 413, Some("bad_request"), "max_body"),
        ("/silent", 504, Some("timeout"), "response_timeout"),
        ("/node", 504, Some("timeout"), "timeout"),
    ] {
        let line = got.iter().find(|l| l["path"] == target).unwrap_or_else(|| panic!("{target} in {got:?}"));
        assert_eq!((&line["status"], line["error"].as_str()), (&status.into(), error), "{line}");
        assert_eq!(line["limit"], limit, "{line}");
    }
    assert!(got.iter().any(|l| l["path"] == "/line" && l["limit"] == "queue_timeout"), "{got:?}");
    for line in ["GET /head HTTP/1.1", "GET /version HT"] {
        let head = got.iter().find(|l| l["line"] == line).expect("its line");
        assert_eq!(head["limit"], "head_timeout", "{head}");
    }
}

/// Nothing that was answered before the end is missing from the log.
#[test]
fn the_last_lines_are_written() {
    let scratch = Scratch::new("log-last");
    for (run, log) in ["file", "stdout"].iter().enumerate() {
        let path = scratch.path(&format!("{run}.log"));
        let to = if *log == "file" { path.as_str() } else { log };
        let mut weir = set(to, "json", "respond(200)");
        let mut client = weir.client();
        for i in 0..500 {
            assert_eq!(client.get(&format!("/{i}")).expect("an answer").status(), 200);
        }
        drop(client);
        end(&mut weir);
        let written = match *log {
            "file" => lines(&path).len(),
            _ => std::iter::from_fn(|| weir.line(Duration::from_secs(1))).count(),
        };
        assert_eq!(written, 500, "{log}");
    }
}

#[test]
fn sigusr1_opens_the_file_anew() {
    let scratch = Scratch::new("log-reopen");
    let (path, old) = (scratch.path("access.log"), scratch.path("access.log.1"));
    let weir = set(&path, "json", "respond(200)");
    weir.get("/1");
    assert!(until(|| lines(&path).len() == 1));
    std::fs::rename(&path, &old).expect("it is there");
    weir.get("/2");
    assert!(until(|| lines(&old).len() == 2), "until it is told, it writes to where it wrote");
    weir.signal(Signal::USR1);
    assert!(until(|| std::fs::exists(&path).expect("readable")), "it is not opened anew");
    weir.get("/3");
    assert!(until(|| lines(&path).len() == 1));
    assert_eq!(lines(&old).len(), 2);
    assert!(lines(&path)[0].contains("\"/3\""));
    // A place that cannot be opened: it keeps the one it has.
    std::fs::rename(&path, &old).expect("it is there");
    std::fs::create_dir(&path).expect("a folder can be made");
    weir.signal(Signal::USR1);
    assert!(until(|| weir.err().contains("cannot reopen")), "it does not say that it cannot");
    assert_eq!(weir.get("/4").status(), 200);
    assert!(until(|| lines(&old).len() == 2));
}

/// What is cut off by the end of a drain has its line, as what is cut off otherwise.
#[test]
fn what_a_drain_cuts_has_a_line() {
    let origin = Origin::new(|peer| {
        let head = peer.head()?;
        if head.target() == "/begun" {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome")?;
        }
        peer.wait_for_end()
    });
    let scratch = Scratch::new("log-drain");
    let path = scratch.path("access.log");
    let http = format!("access_log = \"{path}\", drain_timeout = 300*ms");
    let mut weir = Weir::set(&http, &format!("server(addr = \"{}\")", origin.addr()));
    let (mut begun, mut waits) = (weir.client(), weir.client());
    begun.send("GET /begun HTTP/1.1\r\nHost: h\r\n\r\n").expect("it is sent");
    assert!(begun.skip(10).1.is_none());
    waits.send("GET /waits HTTP/1.1\r\nHost: h\r\n\r\n").expect("it is sent");
    assert!(until(|| origin.arrivals().len() == 2));
    weir.signal(Signal::TERM);
    assert_eq!(weir.ends(), Some(0));
    let mut got: Vec<_> = lines(&path)
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|l| {
            (l["path"].to_string(), l["status"].as_u64(), l["aborted"].as_bool(), l["error"].to_string())
        })
        .collect();
    got.sort();
    let cut = |path: &str, status| (format!("\"{path}\""), Some(status), Some(true), "\"reset\"".to_owned());
    assert_eq!(got, [cut("/begun", 200), cut("/waits", 502)]);
    let said: usize = weir
        .err()
        .lines()
        .filter(|l| l.starts_with("weir: drain_timeout (0.3 s) is over: ") && l.ends_with(" cut off"))
        .filter_map(|l| l.split(' ').find_map(|word| word.parse::<usize>().ok()))
        .sum();
    assert_eq!(said, 2, "{}", weir.err());
}

/// Without any traffic: a rotating program finds the new file, and the old one free.
#[test]
fn sigusr1_needs_no_request() {
    let scratch = Scratch::new("log-idle");
    let (path, old) = (scratch.path("access.log"), scratch.path("access.log.1"));
    let weir = set(&path, "json", "respond(200)");
    std::fs::rename(&path, &old).expect("it is there");
    weir.signal(Signal::USR1);
    assert!(until(|| std::fs::exists(&path).expect("readable")), "it waits for a request");
    std::fs::remove_file(&path).expect("it is there");
    std::fs::create_dir(&path).expect("a folder can be made");
    weir.signal(Signal::USR1);
    assert!(until(|| weir.err().contains("cannot reopen")), "it does not say that it cannot");
}

/// Lines that it says were lost, over all.
fn lost(err: &str) -> usize {
    let counts =
        err.lines().filter_map(|l| l.split(" lost ").nth(1)?.split(' ').next()?.parse::<usize>().ok());
    counts.sum()
}

#[test]
fn each_lost_line_is_counted_once() {
    let mut weir = set("/dev/full", "json", "respond(200)");
    for n in 0..5 {
        assert_eq!(weir.get(&format!("/{n}")).status(), 200);
        pause(20);
    }
    // No further line is needed for the count.
    assert!(until(|| lost(&weir.err()) == 5), "{}", weir.err());
    end(&mut weir);
    assert_eq!(lost(&weir.err()), 5, "{}", weir.err());
}

/// As on a disk that is full for a while: here the file may not grow, until it is emptied.
#[test]
fn a_full_disk_tears_and_doubles_no_line() {
    let scratch = Scratch::new("log-full");
    let path = scratch.path("access.log");
    let file = format!(
        "listen(\"127.0.0.1:0\", respond(200), name = \"web\", http = http(access_log = \"{path}\"))\n"
    );
    let mut weir = Weir::limited(&file, "trap '' XFSZ && ulimit -f 16");
    let mut client = weir.client();
    let mut ask = |paths: std::ops::Range<usize>| {
        for n in paths {
            assert_eq!(client.get(&format!("/{n}")).expect("an answer").status(), 200);
        }
    };
    ask(0..300);
    // Before the disk has room again, all is written or lost.
    assert!(until(|| lines(&path).len() + lost(&weir.err()) == 300), "{}", weir.err());
    let mut got = lines(&path);
    std::fs::OpenOptions::new().write(true).open(&path).and_then(|f| f.set_len(0)).expect("it is there");
    ask(300..310);
    end(&mut weir);
    got.extend(lines(&path));
    let number = |line: &String| {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        line["path"].as_str().and_then(|p| p[1..].parse::<usize>().ok()).expect("a number")
    };
    let numbers: Vec<usize> = got.iter().map(number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert!(numbers.ends_with(&[308, 309]), "{numbers:?}");
    assert_eq!(numbers.len() + lost(&weir.err()), 310, "{}", weir.err());
}

#[test]
fn a_file_that_cannot_be_opened_is_said_at_start() {
    let file = "listen(\"127.0.0.1:0\", respond(200), http = http(access_log = \"/no/such/folder/x.log\"))\n";
    serve::serve_fails(file, 3, &["/no/such/folder/x.log", "check its folder"]);
}

/// A pipe without a reader: requests are answered as before, and the process ends on a signal.
#[test]
fn a_full_pipe_is_in_nobodys_way() {
    let scratch = Scratch::new("log-pipe");
    let file = scratch.file(
        "t.star",
        "listen(\"127.0.0.1:0\", respond(200, \"some\"), http = http(access_log = \"stderr\"))\n",
    );
    let mut child = common::weir()
        .args(["serve", &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut out = child.stdout.take().expect("piped");
    let mut line = String::new();
    while !line.ends_with('\n') {
        let mut byte = [0];
        out.read_exact(&mut byte).expect("its listener");
        line.push(char::from(byte[0]));
    }
    let addr = line.trim().rsplit(' ').next().expect("an address").to_owned();
    let mut client = serve::Stream::connect(&addr).expect("weir accepts");
    let request = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(2000));
    let begun = Instant::now();
    // 20 MB of lines: a pipe takes 64 KiB, the queue 8192 lines.
    for _ in 0..10_000 {
        client.send(&request).expect("it is sent");
        assert_eq!(client.response("GET").expect("an answer").status(), 200);
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    drop(client);
    let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a process");
    rustix::process::kill_process(pid, Signal::TERM).expect("it is there");
    let ended = until(|| child.try_wait().expect("it can be waited for").is_some());
    let _ = child.kill();
    let status = child.wait().expect("it has ended");
    assert!(ended && status.code() == Some(0), "{status:?}");
}

/// The same line from each request of a slow origin: the time is that of the whole exchange.
#[test]
fn durations_are_those_of_the_exchange() {
    let scratch = Scratch::new("log-durations");
    let path = scratch.path("access.log");
    let origin = Origin::answering(|_| {
        pause(200);
        reply("late")
    });
    let weir = set(&path, "json", &format!("server(addr = \"{}\")", origin.addr()));
    weir.get("/");
    assert!(until(|| lines(&path).len() == 1));
    let line: Value = serde_json::from_str(&lines(&path)[0]).expect("JSON");
    let ms = line["duration_ms"].as_f64().expect("a number");
    assert!((200.0..1500.0).contains(&ms), "{line}");
}
