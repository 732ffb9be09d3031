//! hyper as a second opinion on responses: both read the same body, or ours refuses or finds it cut short.

use crate::generate::response;
use crate::hyper_requests::Wire;
use crate::way::{Event, Setup, at_once};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use weir_testkit::Random;

/// Status and body as hyper reads them; `None`: it finds an error.
fn by_hyper(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    let mut context = Context::from_waker(Waker::noop());
    let wire = Wire { bytes: bytes.to_vec(), at: 0, after_write: true };
    let Poll::Ready(Ok((mut sender, connection))) =
        pin!(hyper::client::conn::http1::handshake(wire)).poll(&mut context)
    else {
        return None;
    };
    let request = hyper::Request::get("/").header("host", "h").body(Empty::<Bytes>::new()).ok()?;
    let mut exchange = pin!(async move {
        let response = sender.send_request(request).await.ok()?;
        let status = response.status().as_u16();
        Some((status, response.into_body().collect().await.ok()?.to_bytes().to_vec()))
    });
    let mut connection = pin!(connection);
    let mut over = false;
    for _ in 0..200 {
        if let Poll::Ready(read) = exchange.as_mut().poll(&mut context) {
            return read;
        }
        over = over || connection.as_mut().poll(&mut context).is_ready();
    }
    None
}

/// The first final response as weir passes it on.
fn by_weir(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    at_once(&Setup::plain(), true, bytes).iter().find_map(|e| match e {
        Event::Whole { out, .. } => {
            let end = out.windows(4).position(|w| w == b"\r\n\r\n")?;
            let (head, mut rest) = (&out[..end], &out[end + 4..]);
            let status = std::str::from_utf8(&head[9..12]).ok()?.parse().ok()?;
            if status < 200 {
                return None;
            }
            if head.windows(28).any(|w| w == b"\r\nTransfer-Encoding: chunked") {
                let line = rest.iter().position(|&b| b == b'\r')?;
                let n = usize::from_str_radix(std::str::from_utf8(&rest[..line]).ok()?, 16).ok()?;
                rest = &rest[line + 2..][..n];
            }
            Some((status, rest.to_vec()))
        }
        _ => None,
    })
}

#[test]
fn agree_or_ours_refuses() {
    let (mut agreed, mut refused) = (0, 0);
    for seed in 0..60_000 {
        let mut random = Random::new(seed);
        let mut bytes = response(&mut random);
        random.mutate(&mut bytes, 2);
        let Some(ours) = by_weir(&bytes) else {
            refused += 1;
            continue;
        };
        agreed += 1;
        let theirs = by_hyper(&bytes);
        assert_eq!(Some(&ours), theirs.as_ref(), "seed {seed}:\n{}", String::from_utf8_lossy(&bytes));
    }
    assert!(agreed > 20_000 && refused > 5_000, "{agreed} agreed, {refused} refused");
}
