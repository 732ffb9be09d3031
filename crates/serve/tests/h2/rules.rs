//! What a request must look like that came by HTTP/2: as one by HTTP/1.1.

use crate::common::{Origin, serve, serve_node, until};
use crate::peer::{Client, run};
use http::Request;

/// A request: method, target, fields.
type RequestLine<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// The statuses of requests, sent on one connection to an origin that answers with its name, and how many it saw.
fn statuses(requests: &[RequestLine<'_>]) -> (Vec<u16>, usize) {
    let origin = Origin::named("x");
    let served = serve_node(&format!("server(\"origin\", addr=\"{}\")", origin.addr));
    let statuses = run(async {
        let mut client = Client::new(&served.addr).await;
        let mut statuses = Vec::new();
        for (method, uri, fields) in requests {
            let mut request = Request::builder().method(*method).uri(*uri);
            for (name, value) in *fields {
                request = request.header(*name, *value);
            }
            let answer = client.ask(request.body(()).expect("a request")).await.expect("an answer");
            statuses.push(answer.status);
        }
        statuses
    });
    (statuses, origin.count())
}

#[test]
fn one_strictness_serves_both_versions() {
    let cases: [(RequestLine<'_>, u16); 11] = [
        (("GET", "http://a/", &[]), 200),
        (("GET", "http://a/", &[("host", "a")]), 200),
        (("GET", "http://a/", &[("host", "b")]), 400),
        (("GET", "http://a/", &[("host", "a"), ("host", "a")]), 400),
        (("GET", "http://a/%00", &[]), 400),
        (("GET", "http://a/", &[("x_forwarded_for", "1.2.3.4")]), 400),
        (("GET", "http://a/", &[("x-plain", "a b")]), 200),
        (("TRACE", "http://a/", &[]), 405),
        (("CONNECT", "a:443", &[]), 405),
        (("GET", "http://a/", &[("expect", "something")]), 417),
        (("OPTIONS", "http://a/*", &[]), 200),
    ];
    let (requests, expected): (Vec<_>, Vec<u16>) = cases.into_iter().unzip();
    let (statuses, reached) = statuses(&requests);
    assert_eq!(statuses, expected);
    assert_eq!(reached, expected.iter().filter(|status| **status == 200).count());
}

#[test]
fn limits_of_heads_are_the_listeners() {
    let served = serve("listen(\"127.0.0.1:0\", respond(200), http=http(max_headers=5, max_head=2*KiB))");
    run(async {
        let mut client = Client::new(&served.addr).await;
        for (count, length, status) in [(2, 10, 200), (9, 10, 431), (1, 1500, 200), (1, 3000, 431)] {
            let mut request = Request::get("http://a/");
            for n in 0..count {
                request = request.header(format!("x-{n}"), "v".repeat(length));
            }
            let answer = client.ask(request.body(()).expect("a request")).await.expect("an answer");
            assert_eq!(answer.status, status, "{count} of {length}");
        }
    });
}

/// What the library would refuse by itself leaves no line; up to twice what is allowed weir refuses it.
#[test]
fn a_head_that_is_too_large_is_logged() {
    let folder = std::env::temp_dir().join(format!("weir-h2-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let log = folder.join("access.log");
    let served = serve(&format!(
        "listen(\"127.0.0.1:0\", respond(200), http=http(max_head=2*KiB, access_log=\"{}\"))",
        log.display()
    ));
    run(async {
        let mut client = Client::new(&served.addr).await;
        let request = Request::get("http://a/large").header("x-a", "v".repeat(3000));
        assert_eq!(client.ask(request.body(()).expect("a request")).await.expect("an answer").status, 431);
    });
    until(|| std::fs::read_to_string(&log).is_ok_and(|text| text.contains("\"status\":431")));
    std::fs::remove_dir_all(&folder).expect("a folder");
}
