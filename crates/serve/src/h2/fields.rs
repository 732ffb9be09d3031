//! Field lines between the two versions: heads are rendered once, by `weir_http1`, and then read into what the `h2`
//! crate sends.

use bytes::Bytes;
use http::header::{CONNECTION, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::header::{HOST, TE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use weir_http1::Trailers;

/// Converts a rendered head of a response; returns the index of its body.
pub(crate) fn response(status: u16, rendered: &[u8]) -> (Response<()>, usize) {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    *response.version_mut() = Version::HTTP_2;
    let fields = response.headers_mut();
    let end = read(rendered, |name, value| {
        fields.append(name, value);
    });
    (response, end)
}

/// Converts a rendered head of a request; `None`: the library does not accept its target or host.
pub(crate) fn request(rendered: &[u8], connect: bool, https: bool) -> Option<Request<()>> {
    let line = rendered.split(|b| *b == b'\r').next()?;
    let mut words = line.split(|b| *b == b' ');
    let (method, target) = (words.next()?, words.next()?);
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(method).ok()?;
    let (mut host, fields) = (None, request.headers_mut());
    read(rendered, |name, value| match name {
        HOST => host = Some(value),
        // Nothing but `trailers` may be said (RFC 9113 §8.2.2).
        TE if value != "trailers" => {}
        name => {
            fields.append(name, value);
        }
    });
    let mut parts = http::uri::Parts::default();
    if connect {
        parts.authority = Some(Authority::try_from(target).ok()?);
    } else {
        parts.path_and_query = Some(PathAndQuery::try_from(target).ok()?);
        if let Some(host) = host.filter(|host| !host.is_empty()) {
            parts.authority = Some(Authority::try_from(host.as_bytes()).ok()?);
            parts.scheme = Some(if https { Scheme::HTTPS } else { Scheme::HTTP });
        }
    }
    // An HTTP/1.0 request without a host has no authority, which the library takes of an older version only.
    *request.version_mut() = if parts.authority.is_some() { Version::HTTP_2 } else { Version::HTTP_11 };
    *request.uri_mut() = Uri::from_parts(parts).ok()?;
    Some(request)
}

/// Reads the lines of a rendered head, without the fields of an HTTP/1.1 hop (RFC 9113 §8.2.2); returns the end of
/// the head.
fn read(rendered: &[u8], mut take: impl FnMut(HeaderName, HeaderValue)) -> usize {
    let end = rendered.windows(4).position(|w| w == b"\r\n\r\n").map_or(rendered.len(), |at| at + 4);
    let head = Bytes::copy_from_slice(&rendered[..end]);
    let mut at = line_end(&head, 0);
    loop {
        let next = line_end(&head, at);
        let line = &head[at..next.saturating_sub(2).max(at)];
        let Some(colon) = line.iter().position(|b| *b == b':') else { return end };
        // The rendered lines were checked; any that the library does not accept are left out.
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_maybe_shared(head.slice((at + colon + 2).min(next)..at + line.len()));
        if let (Ok(name), Ok(value)) = (name, value)
            && ![CONNECTION, TRANSFER_ENCODING, UPGRADE].contains(&name)
        {
            take(name, value);
        }
        at = next;
    }
}

/// The index after the line that begins at `at`.
fn line_end(head: &[u8], at: usize) -> usize {
    head[at..].iter().position(|b| *b == b'\n').map_or(head.len(), |n| at + n + 1)
}

/// Converts trailers for the `h2` crate, without those that may not be forwarded; `None`: there are none.
pub(crate) fn trailers(trailers: &Trailers, named: impl Fn(&[u8]) -> bool) -> Option<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, value) in trailers.passed_on(named) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            map.append(name, value);
        }
    }
    (!map.is_empty()).then_some(map)
}

/// Converts received trailers.
pub(crate) fn read_trailers(map: &HeaderMap) -> Trailers {
    let mut trailers = Trailers::default();
    for (name, value) in map {
        trailers.push(name.as_str().as_bytes(), value.as_bytes().trim_ascii());
    }
    trailers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rendered_request_becomes_one() {
        let rendered = b"POST /a?b HTTP/1.1\r\nHost: h:1\r\nX: y\r\nTransfer-Encoding: chunked\r\n\
            Connection: TE\r\nTE: trailers\r\n\r\n";
        let asked = request(rendered, false, false).expect("lawful");
        assert_eq!((asked.uri().to_string(), asked.method().as_str()), ("http://h:1/a?b".to_owned(), "POST"));
        let fields: Vec<_> = asked.headers().iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(fields, ["x", "te"]);
        let tunnel = request(b"CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n", true, true).expect("lawful");
        assert_eq!((tunnel.uri().to_string(), tunnel.uri().scheme()), ("h:1".to_owned(), None));
        let old = request(b"OPTIONS * HTTP/1.1\r\nHost: \r\n\r\n", false, false).expect("lawful");
        assert_eq!((old.uri().path(), old.version()), ("*", Version::HTTP_11));
        // All that weir takes of a target.
        for target in ["/|[]^", "/a?{}\\`|", "/%20;a=b,c!$&'()*+:@~"] {
            let rendered = format!("GET {target} HTTP/1.1\r\nHost: a_b\r\n\r\n");
            let asked = request(rendered.as_bytes(), false, true).expect(target);
            assert_eq!(asked.uri().scheme_str(), Some("https"));
            assert_eq!(asked.uri().path_and_query().map(|p| p.as_str()), Some(target));
        }
    }

    #[test]
    fn a_rendered_head_becomes_a_map() {
        let rendered = b"HTTP/1.1 200 OK\r\nA: b\r\nSet-Cookie: 1\r\nset-cookie: 2\r\nEmpty: \r\n\
            Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nbody: x\r\n";
        let (response, end) = response(200, rendered);
        let fields: Vec<_> =
            response.headers().iter().map(|(n, v)| (n.as_str(), v.to_str().expect("text"))).collect();
        assert_eq!(fields, [("a", "b"), ("set-cookie", "1"), ("set-cookie", "2"), ("empty", "")]);
        assert_eq!((&rendered[end..], response.status().as_u16()), (&b"body: x\r\n"[..], 200));
        assert_eq!(super::response(204, b"HTTP/1.1 204 No Content\r\n\r\n").0.headers().len(), 0);
    }
}
