//! Entry points for any bytes, with what must hold of them: run here on a corpus and generators, and by `fuzz/`.

use weir_http1::*;

/// A request head: found and read the same in any pieces, and what is written is read as the same.
pub fn request_head(bytes: &[u8]) {
    let limits = Limits::default();
    let at_once = Seek::default().request(bytes, &limits);
    let mut seek = Seek::default();
    let dripped = (1..=bytes.len())
        .map(|n| seek.request(&bytes[..n], &limits))
        .find(|found| *found != Ok(None))
        .unwrap_or(Ok(None));
    let mut request = Request::default();
    let end = match (at_once, dripped) {
        (Ok(at_once), Ok(dripped)) => {
            assert_eq!(at_once, dripped);
            at_once
        }
        // A fault that shows early is seen early, if the bytes come so.
        (Ok(Some(end)), Err(early)) => {
            assert_eq!(request.parse(&bytes[..end], &limits), Err(early));
            None
        }
        (at_once, dripped) => {
            assert_eq!(at_once, dripped);
            None
        }
    };
    let quick = Request::default().take(bytes, &limits);
    let Some(end) = end else {
        assert_eq!(quick, None);
        return;
    };
    let parsed = request.parse(&bytes[..end], &limits);
    // Empty lines before the head are not for the quick way.
    assert_eq!(quick, (parsed.is_ok() && !bytes.starts_with(b"\r")).then_some(end));
    if parsed.is_ok() {
        let out = rendered(&mut request);
        let mut again = Request::default();
        if request.host().is_empty() {
            return;
        }
        again.parse(&out, &roomy()).expect("what weir writes, it accepts");
        assert_eq!((again.method(), again.target()), (request.method(), request.target()));
        assert_eq!((again.host(), again.version()), (request.host(), Version::H11));
    }
}

/// A request target: only bytes that are allowed at their position are forwarded, and they are forwarded unchanged.
pub fn target(bytes: &[u8]) {
    let head = [b"GET ", bytes, b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
    let mut request = Request::default();
    if request.parse(&head, &Limits::default()).is_err() {
        return;
    }
    let target = request.target();
    assert!(target.starts_with(b"/") && target.starts_with(request.path()));
    assert!(target.iter().all(|b| b.is_ascii_graphic() && !b"\"<>#".contains(b)));
    assert!(request.path().iter().all(|b| !b"\\`{}".contains(b)));
    assert!(bytes.ends_with(target) || bytes.ends_with(&target[1..]));
    assert!(
        bytes == target
            || bytes[..7].eq_ignore_ascii_case(b"http://")
            || bytes[..8].eq_ignore_ascii_case(b"https://")
    );
}

/// Field lines of an untrusted client: the forwarded lines are clean.
pub fn sanitizer(bytes: &[u8]) {
    let head = [b"POST / HTTP/1.1\r\nHost: h\r\n", bytes, b"\r\n\r\n"].concat();
    let mut request = Request::default();
    if request.parse(&head, &Limits::default()).is_err() {
        return;
    }
    let out = rendered(&mut request);
    let mut origin = Request::default();
    origin.parse(&out, &roomy()).expect("what weir writes, it accepts");
    assert_eq!(
        origin.framing(),
        if request.framing() == Framing::None { Framing::Length(0) } else { request.framing() }
    );
    let all = |name: &str| {
        let named = origin.fields().filter(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes()));
        named.map(|(_, v)| v.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(all("host"), [b"h"]);
    assert_eq!(all("x-forwarded-for"), [b"192.0.2.1"]);
    assert_eq!(all("x-forwarded-proto"), [b"https"]);
    for gone in
        ["keep-alive", "proxy-connection", "upgrade", "http2-settings", "forwarded", "x-real-ip", "proxy"]
    {
        assert!(all(gone).is_empty(), "{gone}");
    }
    let own =
        ["via", "te", "connection", "content-length", "transfer-encoding", "host", "expect", "max-forwards"];
    for (name, _) in origin.fields() {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        if !own.contains(&&*name) && !name.starts_with("x-forwarded-") {
            assert!(!request.names(name.as_bytes()), "{name} is of the client's hop");
        }
    }
}

/// A chunked body: read the same in any pieces, and what is written is read as the same.
pub fn chunked(bytes: &[u8]) {
    let (data, end, trailers) = match read(&mut [bytes].into_iter()) {
        Ok(body) => body,
        Err(refusal) => {
            assert_eq!(read(&mut bytes.chunks(1)), Err(refusal));
            return;
        }
    };
    assert_eq!(read(&mut bytes.chunks(1)), Ok((data.clone(), end, trailers.clone())));
    let Some(_) = end else { return };
    let encoder = Encoder::new(Framing::Chunked);
    let mut out = Vec::new();
    encoder.before(data.len(), &mut out);
    if !data.is_empty() {
        out.extend_from_slice(&data);
        encoder.after(&mut out);
    }
    let mut passed = Trailers::default();
    trailers.iter().for_each(|(n, v)| passed.push(n, v, false));
    encoder.end(Some(&passed), &mut out);
    let (again, over, _) = read(&mut [&out[..]].into_iter()).expect("what weir writes, it accepts");
    assert_eq!((again, over), (data, Some(out.len())));
}

/// Data, where the body ended, and trailers.
type Body = (Vec<u8>, Option<usize>, Vec<(Vec<u8>, Vec<u8>)>);

fn read(pieces: &mut dyn Iterator<Item = &[u8]>) -> Result<Body, Refusal> {
    let mut decoder = Decoder::new(Framing::Chunked, &Limits::default());
    let (mut data, mut before) = (Vec::new(), 0);
    for piece in pieces {
        let mut at = 0;
        loop {
            match decoder.next(piece, &mut at)? {
                Piece::Data(from, to) => data.extend_from_slice(&piece[from..to]),
                Piece::More => break,
                Piece::End => {
                    let trailers =
                        decoder.trailers().fields().map(|(n, v)| (n.to_vec(), v.to_vec())).collect();
                    return Ok((data, Some(before + at), trailers));
                }
            }
        }
        assert_eq!(at, piece.len(), "all was taken");
        before += piece.len();
    }
    Ok((data, None, Vec::new()))
}

fn rendered(request: &mut Request) -> Vec<u8> {
    let trusted = Networks::default();
    let peer = Some("192.0.2.1".parse().expect("an address"));
    let hop = Hop {
        peer,
        https: true,
        port: Some(443),
        trusted: &trusted,
        upgrades: &[],
        connect: &[],
        raw_paths: true,
        own: false,
    };
    let body = match request.framing() {
        Framing::Length(n) => BodyOut::Length(n),
        Framing::Chunked => BodyOut::Chunked,
        Framing::None | Framing::Close => BodyOut::None,
    };
    let mut out = Vec::new();
    let checked = check_request(request, &hop).unwrap_or_default();
    render_request(request, &checked, &hop, &Edits::default(), body, &mut out);
    out
}

/// The fields that weir adds may exceed its limits for incoming messages.
fn roomy() -> Limits {
    Limits { max_headers: 120, max_head: 64 * 1024, max_target: 16 * 1024, ..Limits::default() }
}
