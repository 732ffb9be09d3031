//! Nothing is allocated for a message once the buffers have grown.

use weir_http1::*;
use weir_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn none_for_the_second_message() {
    let limits = Limits::default();
    let networks = Networks::parse(&["127.0.0.1".into()]).unwrap();
    let hop = Hop {
        peer: Some("127.0.0.1".parse().unwrap()),
        https: true,
        port: Some(443),
        trusted: &networks,
        upgrades: &[],
        connect: &[],
        raw_paths: false,
        own: false,
    };
    let raw = b"POST http://h?q HTTP/1.1\r\nHost: h\r\nConnection: X-A, keep-alive\r\nX-A: 1\r\nX-Forwarded-For: 1.2.3.4\r\n\
        Cookie: a=1; b=2\r\nTE: trailers\r\nVia: 1.1 a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n";
    let answer = b"HTTP/1.1 200 OK\r\nDate: x\r\nConnection: X-B\r\nX-B: 1\r\nContent-Length: 5\r\n\r\nhello";
    let (mut request, mut response, mut out) = (Request::default(), Response::default(), Vec::new());
    let mut turn = || {
        out.clear();
        let end = Seek::default().request(raw, &limits).unwrap().unwrap();
        request.parse(&raw[..end], &limits).unwrap();
        assert_eq!(request.cookie("b"), Some(&b"2"[..]));
        let checked = check_request(&mut request, &hop).unwrap();
        render_request(&request, &checked, &hop, &Edits::default(), BodyOut::Chunked, &mut out);
        let (mut decoder, encoder, mut at) =
            (Decoder::new(request.framing(), &limits), Encoder::Chunked, end);
        while let Piece::Data(from, to) = decoder.next(raw, &mut at).unwrap() {
            encoder.before(to - from, &mut out);
            out.extend_from_slice(&raw[from..to]);
            encoder.after(&mut out);
        }
        encoder.end(Some(decoder.trailers()), &mut out);
        let end = Seek::default().response(answer, &limits).unwrap().unwrap();
        response.parse(&answer[..end], RequestInfo::default(), &limits).unwrap();
        let body = body_to_client(&response, Client::default());
        render_response(&response, Client::default(), &Edits::default(), &[], body, None, &mut out);
    };
    turn();
    let before = CountingAllocator::count();
    turn();
    assert_eq!(CountingAllocator::count(), before);
}
