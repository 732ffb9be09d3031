//! A known load with known faults: every counter is what clients, origins and the access log have seen.

use super::common::{Conn, Origin, Reply, RunningBalancer, serve_with, until};
use super::format::promtool;
use super::peer::{Client, get, post, run};
use super::scraped::{LogFile, Scraped, field};
use http::Request;
use std::collections::BTreeMap;
use weir_serve::Exposition;

/// An origin that answers by the path, and is silent where that is `/silent`.
fn origin() -> Origin {
    Origin::new(|_, head| match head.split(' ').nth(1).unwrap_or_default() {
        "/missing" => Reply::Status(404),
        "/bad" => Reply::Status(500),
        "/silent" => Reply::After(60_000, Box::new(Reply::Close)),
        _ => Reply::Ok("hello".to_owned()),
    })
}

fn served(origin: &Origin, log: &LogFile) -> RunningBalancer {
    let addr = &origin.addr;
    let server = |name: &str| format!("server(\"{name}\", addr=\"{addr}\")");
    let pair = format!(
        "lb.first([server(\"dead\", addr=\"127.0.0.1:9\"), {}], name=\"pair\", pass_over=0*s)",
        server("b")
    );
    let text = format!(
        "listen(\"127.0.0.1:0\", name=\"edge\", http=http(access_log=\"{}\"), node=route([\n\
           (when(path=\"/retry\"), retry(2, {pair}, name=\"again\")),\n\
           (when(path=\"/once\"), retry(2, rewrite({}, path=(\"/once\", \"/bad\")), name=\"once\", on=[\"status_5xx\"])),\n\
           (when(path=\"/late\"), rewrite(timeout(30*ms, {}), path=(\"/late\", \"/silent\"))),\n\
           (when(path=\"/silent\"), queue({}, capacity=0, name=\"line\")),\n\
         ], otherwise=lb.round_robin([{}], name=\"apps\")))",
        log.path(),
        server("strict"),
        server("slow"),
        server("inside"),
        server("a"),
    );
    serve_with(&text, 2, false)
}

/// What clients saw: method, status, protocol; and the kind where it was an error.
#[derive(Default)]
struct ExpectedCounts {
    requests: BTreeMap<String, f64>,
    errors: BTreeMap<String, f64>,
    bodies: [f64; 2],
}

impl ExpectedCounts {
    fn note(&mut self, times: u32, of: (&str, u16, &str), kind: Option<&str>, bodies: [u32; 2]) {
        let (method, status, protocol) = of;
        let labels =
            format!("listener=\"edge\",method=\"{method}\",code=\"{status}\",protocol=\"{protocol}\"");
        *self.requests.entry(labels).or_default() += f64::from(times);
        if let Some(kind) = kind {
            *self.errors.entry(format!("listener=\"edge\",kind=\"{kind}\"")).or_default() += f64::from(times);
        }
        for (sum, bytes) in self.bodies.iter_mut().zip(bodies) {
            *sum += f64::from(times * bytes);
        }
    }

    fn count(&self) -> f64 {
        self.requests.values().sum()
    }
}

/// What is the same by both protocols: how often each is asked, and what comes of it.
fn expected(seen: &mut ExpectedCounts, protocol: &str) {
    seen.note(3, ("GET", 200, protocol), None, [0, 5]);
    seen.note(1, ("POST", 200, protocol), None, [4, 5]);
    seen.note(1, ("other", 200, protocol), None, [0, 5]);
    seen.note(2, ("GET", 404, protocol), None, [0, 3]);
    seen.note(1, ("GET", 500, protocol), Some("status_5xx"), [0, 3]);
    seen.note(1, ("POST", 500, protocol), Some("status_5xx"), [4, 3]);
    seen.note(2, ("GET", 200, protocol), None, [0, 5]);
    seen.note(1, ("GET", 504, protocol), Some("timeout"), [0, 0]);
    seen.note(1, ("GET", 503, protocol), Some("overloaded"), [0, 0]);
    seen.note(1, ("GET", 499, protocol), Some("cancelled"), [0, 0]);
}

fn by_http_1(served: &RunningBalancer, origin: &Origin, seen: &mut ExpectedCounts) {
    let mut conn = Conn::new(&served.addr);
    (0..3).for_each(|_| assert_eq!(conn.get("/ok", "").status, 200));
    for (path, status) in [("/ok", 200), ("/once", 500)] {
        conn.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"));
        assert_eq!(conn.response().status, status);
    }
    conn.send("BREW /ok HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(conn.response().status, 200);
    for (path, status) in
        [("/missing", 404), ("/missing", 404), ("/bad", 500), ("/retry", 200), ("/retry", 200)]
    {
        assert_eq!(conn.get(path, "").status, status, "{path}");
    }
    let own = conn.get("/late", "");
    assert_eq!(own.status, 504);
    seen.bodies[1] += own.body.len() as f64;
    let before = origin.count();
    let mut held = Conn::new(&served.addr);
    held.send("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
    until(|| origin.count() > before);
    assert_eq!(Scraped::new(served).get("weir_queue_inside{node=\"line\"}"), 1.0);
    let own = conn.get("/silent", "");
    assert_eq!(own.status, 503);
    seen.bodies[1] += own.body.len() as f64;
    assert_eq!(Scraped::new(served).get("weir_requests_in_flight{listener=\"edge\"}"), 1.0);
    drop(held);
    // What is refused for its head alone: one that says what it was, one that does not.
    for (text, method, status) in [
        ("GET / HTTP/1.1\r\nHost: a\r\nExpect: much\r\n\r\n", "GET", 417),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n", "other", 400),
    ] {
        let mut conn = Conn::new(&served.addr);
        conn.send(text);
        let own = conn.response();
        assert_eq!(own.status, status, "{text}");
        seen.note(1, (method, status, "1.1"), Some("bad_request"), [0, own.body.len() as u32]);
    }
}

fn by_http_2(served: &RunningBalancer, origin: &Origin, seen: &mut ExpectedCounts) {
    run(async {
        let mut client = Client::new(&served.addr).await;
        for (path, status) in [
            ("/ok", 200),
            ("/ok", 200),
            ("/ok", 200),
            ("/missing", 404),
            ("/missing", 404),
            ("/bad", 500),
            ("/retry", 200),
            ("/retry", 200),
        ] {
            assert_eq!(client.get(path).await.status, status, "{path}");
        }
        for (path, status) in [("/ok", 200), ("/once", 500)] {
            let answer = client.send(post(path), b"body", None).await.expect("an answer");
            assert_eq!(answer.status, status, "{path}");
        }
        let brew = Request::builder().method("BREW").uri("http://a/ok").body(()).expect("a request");
        assert_eq!(client.ask(brew).await.expect("an answer").status, 200);
        let own = client.get("/late").await;
        assert_eq!(own.status, 504);
        seen.bodies[1] += own.body.len() as f64;
        let before = origin.count();
        let mut held = Client::new(&served.addr).await;
        let (answer, _) = held.begin(get("/silent"), true).await;
        while origin.count() == before {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let own = client.get("/silent").await;
        assert_eq!(own.status, 503);
        seen.bodies[1] += own.body.len() as f64;
        drop((answer, held));
        // The reset is sent by the connection's own task.
        while Scraped::new(served).get("weir_requests_in_flight{listener=\"edge\"}") > 0.0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn counters_are_what_clients_and_the_access_log_have_seen() {
    let (origin, log) = (origin(), LogFile::new("counts"));
    let served = served(&origin, &log);
    let mut seen = ExpectedCounts::default();
    by_http_1(&served, &origin, &mut seen);
    expected(&mut seen, "1.1");
    by_http_2(&served, &origin, &mut seen);
    expected(&mut seen, "2");
    until(|| log.lines().len() as f64 >= seen.count());
    let now = Scraped::new(&served);
    requests(&now, &seen);
    agrees_with_log(&now, &log.lines());
    attempts(&now);
    connections(&now, &origin);
    assert_eq!(now.all("weir_bad_requests_total").len(), 2, "{:?}", now.all("weir_bad_requests_total"));
    until(|| Scraped::new(&served).sum("weir_connections", "") == 0.0);
    let end = Scraped::new(&served);
    let accepted = end.sum("weir_connections_accepted_total", "");
    assert_eq!((accepted, end.sum("weir_connections_closed_total", "")), (6.0, 6.0));
    promtool(&served.scrape(Exposition::Prometheus));
}

fn requests(now: &Scraped, seen: &ExpectedCounts) {
    assert_eq!(now.all("weir_requests_total"), seen.requests);
    assert_eq!(now.all("weir_request_errors_total"), seen.errors);
    let edge = "{listener=\"edge\"}";
    let get = |name: &str| now.get(&format!("{name}{edge}"));
    assert_eq!(get("weir_request_duration_seconds_count"), seen.count());
    let last = "weir_request_duration_seconds_bucket{listener=\"edge\",le=\"+Inf\"}";
    assert_eq!(now.get(last), seen.count());
    assert_eq!([get("weir_request_bytes_total"), get("weir_response_bytes_total")], seen.bodies);
    assert_eq!(get("weir_requests_in_flight"), 0.0);
}

/// Line by line, for any requests.
fn agrees_with_log(now: &Scraped, lines: &[String]) {
    let (mut requests, mut errors) = (BTreeMap::<String, f64>::new(), BTreeMap::<String, f64>::new());
    let mut sums = [0.0; 2];
    for line in lines {
        let status = field(line, "status").expect("a status");
        let method = match field(line, "method") {
            Some("BREW") | None => "other",
            Some(method) => method,
        };
        let version = field(line, "version").unwrap_or("1.1");
        let labels =
            format!("listener=\"edge\",method=\"{method}\",code=\"{status}\",protocol=\"{version}\"");
        *requests.entry(labels).or_default() += 1.0;
        let of_status = || status.parse::<u16>().is_ok_and(|s| s >= 500).then_some("status_5xx");
        if let Some(kind) = field(line, "error").or_else(of_status) {
            *errors.entry(format!("listener=\"edge\",kind=\"{kind}\"")).or_default() += 1.0;
        }
        for (sum, name) in sums.iter_mut().zip(["received", "sent"]) {
            *sum += field(line, name).and_then(|n| n.parse::<f64>().ok()).expect("bytes");
        }
    }
    assert_eq!(now.all("weir_requests_total"), requests);
    assert_eq!(now.all("weir_request_errors_total"), errors);
    let counted = ["weir_request_bytes_total", "weir_response_bytes_total"].map(|name| now.sum(name, ""));
    assert_eq!(counted, sums);
}

/// By both protocols the same again.
fn attempts(now: &Scraped) {
    let of = |pool: &str, target: &str, outcome: &str| {
        format!("pool=\"{pool}\",target=\"{target}\",outcome=\"{outcome}\"")
    };
    let expected: BTreeMap<String, f64> = [
        // Three, the POST, the other method, two that are missing; one that is bad.
        (of("apps", "a", "ok"), 14.0),
        (of("apps", "a", "status_5xx"), 2.0),
        (of("pair", "dead", "connect_failed"), 4.0),
        (of("pair", "b", "ok"), 4.0),
        (of("strict", "strict", "status_5xx"), 2.0),
        (of("slow", "slow", "cancelled"), 2.0),
        (of("inside", "inside", "cancelled"), 2.0),
    ]
    .into();
    assert_eq!(now.all("weir_attempts_total"), expected);
    assert!(now.each("weir_attempts_in_flight").all(|(_, value)| value == 0.0));
    let durations: Vec<f64> = ["apps", "pair", "slow"]
        .map(|p| now.get(&format!("weir_attempt_duration_seconds_count{{pool=\"{p}\"}}")))
        .into();
    assert_eq!(durations, [16.0, 4.0, 0.0], "those with a head");
    assert_eq!(
        now.all("weir_retries_total"),
        [("node=\"again\",kind=\"connect_failed\"".to_owned(), 4.0)].into()
    );
    assert_eq!(
        now.all("weir_retries_denied_total"),
        [("node=\"once\",reason=\"method\"".to_owned(), 2.0)].into()
    );
    let line = "{node=\"line\"}";
    assert_eq!(now.get(&format!("weir_queue_inside{line}")), 0.0);
    assert_eq!(now.get(&format!("weir_queue_waiting{line}")), 0.0);
    assert_eq!(now.get("weir_queue_rejected_total{node=\"line\",reason=\"full\"}"), 2.0);
    assert_eq!(now.get(&format!("weir_queue_wait_seconds_count{line}")), 2.0);
}

fn connections(now: &Scraped, origin: &Origin) {
    let opened = now.sum("weir_upstream_connections_opened_total", "");
    assert_eq!(opened, origin.connections() as f64);
    let (closed, open) =
        (now.sum("weir_upstream_connections_closed_total", ""), now.sum("weir_upstream_connections", ""));
    assert_eq!(opened, closed + open);
    assert_eq!(now.sum("weir_upstream_connections", "active"), 0.0);
    assert_eq!(now.sum("weir_upstream_open", ""), open);
    assert_eq!((now.sum("weir_upstream_open", "h2"), now.sum("weir_upstream_streams", "")), (0.0, 0.0));
    let connected: f64 = now.sum("weir_connect_duration_seconds_count", "");
    assert_eq!(connected, opened);
    // Each request that came whole went by one that was new, or by one that was not.
    let reused = now.sum("weir_upstream_connections_reused_total", "");
    assert_eq!(opened + reused, origin.count() as f64);
}
