//! Origins that do wrong in the handshake of TLS.

use crate::common::{RunningBalancer, serve_node, statuses_at_once, until};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;
use weir_serve::Exposition;

/// An origin that does this with each connection, and counts them.
fn origin(does: fn(TcpStream)) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address").to_string();
    let connections = Arc::<AtomicUsize>::default();
    let count = connections.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            count.fetch_add(1, SeqCst);
            std::thread::spawn(move || does(stream));
        }
    });
    (addr, connections)
}

fn served(addr: &str, timeout: &str) -> RunningBalancer {
    serve_node(&format!(
        "server(\"a\", addr=\"{addr}\", tls=tls.client(name=\"origin.test\"), connect_timeout={timeout})"
    ))
}

fn counts(served: &RunningBalancer, part: &str) -> bool {
    served.scrape(Exposition::Prometheus).lines().any(|line| line.contains(part) && !line.ends_with(" 0"))
}

/// A record of TLS: its kind and its content.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &(content.len() as u16).to_be_bytes(), content].concat()
}

/// ServerHello of TLS 1.2 (RFC 5246 §7.4.1.3), in which the choice of ALPN is not encrypted (RFC 7301 §3.1): `h3`, which no
/// client by TCP offers.
fn choose_h3(mut stream: TcpStream) {
    let mut head = [0; 5];
    let _ = stream.read_exact(&mut head);
    let _ = stream.read_exact(&mut vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))]);
    let alpn: &[u8] = &[0, 16, 0, 5, 0, 3, 2, b'h', b'3'];
    let extensions = [&[0xff, 1, 0, 1, 0][..], &[0, 23, 0, 0], alpn].concat();
    // Version, random, no session, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, no compression.
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &[0xc0, 0x2b],
        &[0],
        &(extensions.len() as u16).to_be_bytes(),
        &extensions,
    ]
    .concat();
    let hello = [&[2, 0, 0, body.len() as u8][..], &body].concat();
    let _ = stream.write_all(&record(22, &hello));
    let mut alert = Vec::new();
    let _ = stream.read_to_end(&mut alert);
    ALERT.store(alert.get(6).copied().map_or(0, usize::from), SeqCst);
}

/// The last alert that has come: its description (RFC 8446 §6).
static ALERT: AtomicUsize = AtomicUsize::new(0);
const ILLEGAL_PARAMETER: usize = 47;

#[test]
fn a_protocol_that_was_not_offered_is_a_failed_connection() {
    let (addr, connections) = origin(choose_h3);
    let served = served(&addr, "10*s");
    assert_eq!(statuses_at_once(&served, 40), BTreeMap::from([(503, 40)]));
    assert!(counts(&served, "kind=\"connect_failed\"}"));
    until(|| ALERT.load(SeqCst) == ILLEGAL_PARAMETER);
    assert!(counts(&served, "result=\"failed\"}") && !counts(&served, "result=\"full\"}"));
    // One failure holds for all that wait for the connection.
    assert!(connections.load(SeqCst) < 40, "{}", connections.load(SeqCst));
}

#[test]
fn a_handshake_that_hangs_ends_with_connect_timeout() {
    let (addr, connections) = origin(|mut stream| drop(stream.read_to_end(&mut Vec::new())));
    let served = served(&addr, "300*ms");
    let begun = Instant::now();
    assert_eq!(statuses_at_once(&served, 40), BTreeMap::from([(503, 40)]));
    let most = begun.elapsed().as_millis() as usize / 300 + 1;
    assert!(connections.load(SeqCst) <= most, "{}", connections.load(SeqCst));
    assert!(counts(&served, "kind=\"connect_failed\"}"));
}
