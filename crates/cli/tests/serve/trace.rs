//! What the log records of a request beyond its line's first fields: its name, its trace, how long its parts took, its
//! targets; and the histories that `http(trace=...)` writes.

use crate::shared::common::Scratch;
use crate::shared::serve::{Origin, Weir, closed_port, pause, reply, until};
use rustix::process::Signal;
use serde_json::Value;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";

/// A weir before this node, with its log at this path.
fn weir(path: &str, more: &str, node: &str) -> Weir {
    // Lines of one loop are in order.
    let http = format!("http(access_log = \"{path}\"{more})");
    Weir::new(&format!("listen(\"127.0.0.1:0\", {node}, name = \"web\", http = {http}, loops = 1)\n"))
}

/// The log's lines, once weir has ended.
fn lines(weir: &mut Weir, path: &str) -> Vec<Value> {
    weir.signal(Signal::TERM);
    assert_eq!(weir.ends(), Some(0));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// An origin that answers with the fields of this name that it got, and has one of its own.
fn echo(name: &'static str) -> Origin {
    Origin::answering(move |request| {
        let got = request.all(name).join("|");
        format!("HTTP/1.1 200 OK\r\n{name}: of-the-origin\r\nContent-Length: {}\r\n\r\n{got}", got.len())
            .into_bytes()
    })
}

fn is_made(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[test]
fn a_request_has_one_name_from_end_to_end() {
    let scratch = Scratch::new("trace-name");
    let origin = echo("x-request-id");
    let app = format!("server(\"app\", addr=\"{}\")", origin.addr());
    let node = format!(
        "route([(when(path=\"/own\"), respond(200)), (when(path=\"/dead\"), server(\"dead\", addr=\"{}\"))], otherwise={app})",
        closed_port()
    );
    for trusted in [false, true] {
        let path = scratch.path(if trusted { "trusted" } else { "open" });
        let more = format!(
            ", request_id = \"X-Request-ID\"{}",
            if trusted { ", trusted = [\"127.0.0.0/8\"]" } else { "" }
        );
        let mut weir = weir(&path, &more, &node);
        let mut ids = Vec::new();
        for (target, given) in [
            ("/a", None),
            ("/a", Some("caller-1")),
            ("/own", None),
            ("/dead", None),
            ("/a", Some("two words")),
        ] {
            let field = given.map_or_else(String::new, |id| format!("x-request-id: {id}\r\n"));
            let answer =
                weir.ask(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n{field}\r\n")).expect("an answer");
            let [id] = answer.all("x-request-id")[..] else {
                panic!("{target}: {:?}", answer.all("x-request-id"))
            };
            if target == "/a" {
                assert_eq!(answer.body_text(), id, "what the origin got");
            }
            match given {
                Some("caller-1") if trusted => assert_eq!(id, "caller-1"),
                _ => assert!(is_made(id), "{target} {given:?}: {id}"),
            }
            ids.push(id.to_owned());
        }
        let logged: Vec<Value> =
            lines(&mut weir, &path).iter().map(|line| line["request_id"].clone()).collect();
        assert_eq!(logged, ids);
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 5);
    }
}

#[test]
fn a_trace_passes_unchanged_or_not_at_all() {
    let scratch = Scratch::new("trace-parent");
    let path = scratch.path("log");
    let origin = Origin::answering(|request| {
        reply(&format!("{}/{}", request.all("traceparent").join("|"), request.all("tracestate").join("|")))
    });
    let mut weir = weir(&path, "", &format!("server(\"app\", addr=\"{}\")", origin.addr()));
    let valid = format!("{PARENT}-00");
    let cases = [
        (valid.clone(), "a=1, b@c=2", format!("{valid}/a=1, b@c=2"), true),
        (valid.clone(), "A=1", format!("{valid}/"), true),
        (valid.to_uppercase(), "a=1", "/".to_owned(), false),
        (String::new(), "a=1", "/".to_owned(), false),
    ];
    for (parent, state, want, _) in &cases {
        let parent = if parent.is_empty() { String::new() } else { format!("traceparent: {parent}\r\n") };
        let request = format!("GET / HTTP/1.1\r\nHost: h\r\n{parent}tracestate: {state}\r\n\r\n");
        assert_eq!(&weir.ask(&request).expect("an answer").body_text(), want);
    }
    let logged = lines(&mut weir, &path);
    for ((.., traced), line) in cases.iter().zip(&logged) {
        let want: Value = if *traced { PARENT[3..35].into() } else { Value::Null };
        assert_eq!(line["trace_id"], want);
    }
    assert_eq!(logged.len(), cases.len());
}

#[test]
fn a_line_tells_whom_it_tried_and_where_the_time_went() {
    let scratch = Scratch::new("trace-parts");
    let path = scratch.path("log");
    let origin = Origin::answering(|_| {
        pause(300);
        reply("late")
    });
    let node = format!(
        "queue(retry(2, lb.first([server(\"dead\", addr=\"{}\"), server(\"app\", addr=\"{}\")], pass_over=0*s), backoff=30*ms))",
        closed_port(),
        origin.addr()
    );
    let mut weir =
        weir(&path, "", &format!("route([(when(path=\"/own\"), respond(200))], otherwise={node})"));
    let mut slow = weir.client();
    slow.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n1").expect("sent");
    // The head has been read once the origin has it.
    assert!(until(|| origin.arrivals().len() == 1));
    pause(40);
    slow.send("2").expect("sent");
    assert_eq!(slow.response("POST").expect("an answer").status(), 200);
    let mut two = [weir.client(), weir.client()];
    for client in &mut two {
        client.send("GET /b HTTP/1.1\r\nHost: h\r\n\r\n").expect("sent");
        assert!(until(|| origin.arrivals().len() > 1));
    }
    for client in &mut two {
        assert_eq!(client.response("GET").expect("an answer").status(), 200);
    }
    assert_eq!(weir.get("/own").status(), 200);
    let logged = lines(&mut weir, &path);
    let ms = |line: &Value, name: &str| line[name].as_f64().unwrap_or_else(|| panic!("{name}: {line}"));
    let [post, first, second, own] = &logged[..] else { panic!("{logged:?}") };
    assert!(ms(post, "request") >= 39.0 && ms(post, "total") >= ms(post, "request"), "{post}");
    let tried = |names: &[(&str, &str)]| -> Value {
        names
            .iter()
            .map(|(target, outcome)| serde_json::json!({"target": target, "outcome": outcome}))
            .collect()
    };
    for line in [post, first, second] {
        assert_eq!(line["tried"], tried(&[("dead", "connect_failed"), ("app", "ok")]), "{line}");
    }
    for line in [first, second] {
        assert_eq!(ms(line, "request"), 0.0);
        assert!(ms(line, "response") >= 299.0 && ms(line, "connect") == 0.0, "{line}");
        let parts: f64 = ["queue", "connect", "response"].iter().map(|part| ms(line, part)).sum();
        assert!(ms(line, "total") >= parts - 0.003, "{line}");
        assert_eq!(line["total"], line["duration_ms"]);
        assert_eq!(line["generation"], 0);
    }
    // The others went on the connection that it had made.
    assert!(ms(post, "connect") > 0.0, "{post}");
    assert_eq!(ms(first, "queue"), 0.0);
    assert!(ms(second, "queue") > 0.0, "{second}");
    assert_eq!((&own["tried"], &own["response"], &own["connect"]), (&tried(&[]), &Value::Null, &Value::Null));
}

/// The stages that count add up to the latency, with a queue, attempts that failed, a hedge that lost.
#[test]
fn a_history_adds_up() {
    let scratch = Scratch::new("trace-history");
    let path = scratch.path("log");
    let late = Origin::answering(|_| {
        pause(400);
        reply("late")
    });
    let quick = Origin::named("quick");
    let server = |name: &str, addr: &str| format!("server(\"{name}\", addr=\"{addr}\")");
    let node = format!(
        "route([(when(path=\"/hedge\"), hedge(30*ms, lb.round_robin([{}, {}], start=\"first\", name=\"pair\")))], otherwise=\
         queue(retry(2, lb.first([{}, {}], pass_over=0*s), backoff=20*ms, name=\"again\"), name=\"line\"))",
        server("late", late.addr()),
        server("quick", quick.addr()),
        server("dead", &closed_port().to_string()),
        server("app", quick.addr()),
    );
    let mut weir = weir(&path, ", trace = 1.0", &node);
    assert_eq!(weir.get("/hedge").status(), 200);
    assert_eq!(weir.get("/again").status(), 200);
    let logged = lines(&mut weir, &path);
    let histories: Vec<&Value> = logged.iter().filter(|line| line["schema"] == "weir.trace/1").collect();
    assert_eq!((histories.len(), logged.len()), (2, 4));
    for history in &histories {
        let stages = history["stages"].as_array().expect("stages");
        let took =
            |stage: &Value| stage["to_ns"].as_u64().unwrap_or(0) - stage["from_ns"].as_u64().unwrap_or(0);
        let sum: u64 = stages.iter().filter(|stage| stage["counts"] == true).map(took).sum();
        assert_eq!(history["latency_ns"], sum, "{history}");
        assert_eq!((&history["outcome"], &history["scenario"]), (&"ok".into(), &"web".into()));
    }
    let of = |history: &Value, target: &str| -> Value {
        let stages = history["stages"].as_array().expect("stages");
        stages
            .iter()
            .find(|stage| stage["target"] == target)
            .cloned()
            .unwrap_or_else(|| panic!("{target}: {history}"))
    };
    let lost = of(histories[0], "late");
    assert_eq!(
        (&lost["counts"], &lost["outcome"], &lost["what"]),
        (&false.into(), &"cancelled".into(), &"work".into())
    );
    assert_eq!(of(histories[0], "quick")["counts"], true);
    assert_eq!(of(histories[1], "dead")["outcome"], "connect_failed");
    let stages = histories[1]["stages"].as_array().expect("stages");
    let backoff = stages.iter().find(|stage| stage["what"] == "backoff").expect("a backoff");
    assert_eq!(backoff["member"], "again");
}

/// A small share is written, and all that its caller records; without `trace` nothing is.
#[test]
fn what_the_caller_records_is_written() {
    let scratch = Scratch::new("trace-sampled");
    let origin = Origin::named("some");
    let node = format!("server(\"app\", addr=\"{}\")", origin.addr());
    for (share, want) in [("1e-15", vec!["b"]), ("0.0", vec![])] {
        let path = scratch.path(share);
        let mut weir = weir(
            &path,
            &format!(", trace = {share}, request_id = \"x-id\", trusted = [\"127.0.0.1\"]"),
            &node,
        );
        for (id, flags) in [("a", "00"), ("b", "01")] {
            let request =
                format!("GET / HTTP/1.1\r\nHost: h\r\nx-id: {id}\r\ntraceparent: {PARENT}-{flags}\r\n\r\n");
            assert_eq!(weir.ask(&request).expect("an answer").status(), 200);
        }
        let logged = lines(&mut weir, &path);
        let histories = logged.iter().filter(|line| line["schema"] == "weir.trace/1");
        let ids: Vec<&Value> = histories.map(|line| &line["request_id"]).collect();
        assert_eq!(ids, want);
    }
}
