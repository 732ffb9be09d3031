//! A request's and a response's way through the whole crate.

use weir_http1::*;

fn hop<'a>(trusted: &'a Networks, upgrades: &'a [String]) -> Hop<'a> {
    Hop {
        peer: Some("127.0.0.1".parse().unwrap()),
        https: false,
        port: Some(80),
        trusted,
        upgrades,
        connect: &[],
        raw_paths: false,
        own: false,
    }
}

#[test]
fn a_request_goes_on() {
    let raw = b"POST /a?b HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nConnection: X-B, close\r\nX-B: 2\r\nx-c:3 \r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nX-T: 1\r\nHost: evil\r\n\r\nGET";
    let limits = Limits::default();
    let mut seek = Seek::default();
    let n = seek.request(raw, &limits).unwrap().unwrap();
    let mut request = Request::default();
    request.parse(&raw[..n], &limits).unwrap();
    let networks = Networks::default();
    let hop = hop(&networks, &[]);
    let checked = check_request(&mut request, &hop).unwrap();
    assert!(checked.close && !checked.upgrade && !checked.expect);
    let mut out = Vec::new();
    render_request(&request, &checked, &hop, &Edits::default(), BodyOut::Chunked, &mut out);
    assert_eq!(request.framing(), Framing::Chunked);
    let encoder = Encoder::new(BodyOut::Chunked);
    let mut decoder = Decoder::new(request.framing(), &limits);
    let mut at = n;
    loop {
        match decoder.next(raw, &mut at).unwrap() {
            Piece::Data(from, to) => {
                encoder.before(to - from, &mut out);
                out.extend_from_slice(&raw[from..to]);
                encoder.after(&mut out);
            }
            Piece::End => break,
            Piece::More => panic!("it is all there"),
        }
    }
    encoder.end(Some(decoder.trailers()), &mut out);
    assert_eq!(&raw[at..], b"GET");
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "POST /a?b HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-c: 3\r\nVia: 1.1 weir\r\nX-Forwarded-For: 127.0.0.1\r\n\
         X-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\nX-Forwarded-Port: 80\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"
    );
}

#[test]
fn a_response_comes_back() {
    let raw = b"HTTP/1.0 200 Fine\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nServer: o\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\nbody";
    let limits = Limits::default();
    let n = Seek::default().response(raw, &limits).unwrap().unwrap();
    let mut response = Response::default();
    response.parse(&raw[..n], RequestInfo::default(), &limits).unwrap();
    let to = Client::default();
    let body = body_to_client(&response, to);
    assert_eq!(body, Framing::Chunked);
    let mut out = Vec::new();
    let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
    render_response(&response, to, &Edits::default(), &[("x-a", b"1")], body, Some(date), &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "HTTP/1.1 200 Fine\r\nServer: o\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nx-a: 1\r\n\
         Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
}

fn head(raw: &str) -> Request {
    let mut request = Request::default();
    request.parse(raw.as_bytes(), &Limits::default()).unwrap();
    request
}

/// To a protocol that was asked for and let pass, by its name in any case, and to no other.
#[test]
fn an_origin_switches_only_to_what_was_asked_for() {
    let (networks, upgrades) = (Networks::default(), ["websocket".to_owned()]);
    let hop = hop(&networks, &upgrades);
    let request = head("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: foo, websocket\r\n\r\n");
    let asked = RequestInfo { upgrade: true, ..RequestInfo::default() };
    let switches = |rest: &str| {
        let mut response = Response::default();
        let raw = format!("{rest}Connection: Upgrade\r\n\r\n");
        response.parse(raw.as_bytes(), asked, &Limits::default()).unwrap();
        check_switch(&request, &hop, &response).is_ok()
    };
    assert!(switches("HTTP/1.1 101 S\r\nUpgrade: WebSocket\r\n"));
    for other in
        ["HTTP/1.1 101 S\r\nUpgrade: foo\r\n", "HTTP/1.1 101 S\r\nUpgrade: h2c\r\n", "HTTP/1.1 101 S\r\n"]
    {
        assert!(!switches(other), "{other}");
    }
    assert!(!switches("HTTP/1.0 101 S\r\nUpgrade: websocket\r\n"));
    assert!(!switches("HTTP/1.1 101 S\r\nUpgrade: websocket, h2c\r\n"));
}

#[test]
fn connect_goes_where_it_may() {
    let (networks, connect) =
        (Networks::default(), ["a.example:443", "*.b.example:80", "c.example:*"].map(String::from));
    let hop = Hop { connect: &connect, ..hop(&networks, &[]) };
    let may = |authority: &str| {
        let mut request = head(&format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"));
        check_request(&mut request, &hop).is_ok()
    };
    assert!(
        ["a.example:443", "A.Example:443", "x.y.b.example:80", "c.example:1"].map(may).iter().all(|may| *may)
    );
    for other in
        ["a.example:80", "b.example:80", ".b.example:80", "xb.example:80", "x.b.example:81", "d.c.example:1"]
    {
        assert!(!may(other), "{other}");
    }
}

#[test]
fn what_decides_is_what_goes_on() {
    let limits = Limits::default();
    let text = "GET http://a/ HTTP/1.1\r\nHost: b\r\nConnection: X-B, X-Forwarded-For\r\nX-B: 2\r\nX-Real-IP: 1.2.3.4\r\n\
        X-Forwarded-For: 1.2.3.4\r\nX-C: 3\r\nTE: gzip\r\nUpgrade: x\r\nExpect: 100-continue\r\nTracestate: a=1\r\n\r\n";
    let mut request = Request::default();
    let (none, all) = (Networks::default(), Networks::parse(&["127.0.0.0/8".to_owned()]).unwrap());
    for (trusted, real_ip) in [(&none, None), (&all, Some(&b"1.2.3.4"[..]))] {
        request.parse(text.as_bytes(), &limits).unwrap();
        let checked = check_request(&mut request, &hop(trusted, &[])).unwrap();
        assert_eq!(checked.client, "127.0.0.1".parse().ok(), "Connection names X-Forwarded-For");
        assert_eq!(request.field("x-real-ip"), real_ip);
        for gone in ["x-b", "connection", "te", "upgrade", "expect", "tracestate", "x-forwarded-for"] {
            assert_eq!(request.field(gone), None, "{gone}");
        }
        assert_eq!((request.field("x-c"), request.field("host")), (Some(&b"3"[..]), Some(&b"a"[..])));
    }
}
