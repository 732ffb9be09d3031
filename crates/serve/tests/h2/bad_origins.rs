//! Origins of HTTP/2 that do wrong from the start: each request ends with the right failure, and connections are made one
//! after the other.

use crate::common::{self, RunningBalancer, serve_node, statuses_at_once};
use crate::raw::{GOAWAY, HEADERS, PREFACE, SETTINGS, frame};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;
use weir_serve::Exposition;

const ACK: u8 = 1;
const END: u8 = 5;
/// `:status: 200` by the static table of HPACK.
const OK: &[u8] = &[0x88];

/// What an origin does with each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It speaks HTTP/1.1 alone.
    H1,
    /// It closes at once.
    Closes,
    /// It says nothing.
    Hangs,
    /// It begins with GOAWAY, for which no request was begun.
    GoesAway,
    /// It closes behind each answer, without GOAWAY.
    AnswersOnce,
}

/// Connections of an origin: all, and how many were being opened at once.
#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    opening: AtomicUsize,
    most_opening: AtomicUsize,
}

struct Origin {
    addr: String,
    counts: Arc<Counts>,
}

impl Origin {
    fn new(does: Does) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address").to_string();
        let origin = Origin { addr, counts: Arc::default() };
        let counts = origin.counts.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counts.connections.fetch_add(1, SeqCst);
                let opening = counts.opening.fetch_add(1, SeqCst) + 1;
                counts.most_opening.fetch_max(opening, SeqCst);
                let counts = counts.clone();
                std::thread::spawn(move || drop(connection(stream, does, &counts)));
            }
        });
        origin
    }

    fn node(&self, more: &str) -> String {
        format!("server(\"origin\", addr=\"{}\", protocol=\"h2\"{more})", self.addr)
    }

    fn connections(&self) -> usize {
        self.counts.connections.load(SeqCst)
    }

    fn most_opening(&self) -> usize {
        self.counts.most_opening.load(SeqCst)
    }
}

fn connection(mut weir: TcpStream, does: Does, counts: &Counts) -> std::io::Result<()> {
    // Long enough to see others that are opened meanwhile.
    common::pause(5);
    let is_over = || {
        counts.opening.fetch_sub(1, SeqCst);
    };
    match does {
        Does::H1 => {
            weir.read_exact(&mut vec![0; PREFACE.len()])?;
            is_over();
            weir.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
        }
        Does::Closes => is_over(),
        Does::Hangs => {
            weir.read_to_end(&mut Vec::new())?;
            is_over();
        }
        Does::GoesAway => {
            weir.read_exact(&mut vec![0; PREFACE.len()])?;
            is_over();
            weir.write_all(&[frame(SETTINGS, 0, 0, &[]), frame(GOAWAY, 0, 0, &[0; 8])].concat())?;
            weir.shutdown(Shutdown::Write)?;
            weir.read_to_end(&mut Vec::new())?;
        }
        Does::AnswersOnce => {
            weir.read_exact(&mut vec![0; PREFACE.len()])?;
            is_over();
            weir.write_all(&frame(SETTINGS, 0, 0, &[]))?;
            answer_once(&mut weir)?;
            // A close with bytes unread would take the answer with it.
            weir.shutdown(Shutdown::Write)?;
            weir.read_to_end(&mut Vec::new())?;
        }
    }
    Ok(())
}

fn answer_once(weir: &mut TcpStream) -> std::io::Result<()> {
    loop {
        let mut head = [0; 9];
        weir.read_exact(&mut head)?;
        let [_, a, b, kind, flags, stream @ ..] = head;
        weir.read_exact(&mut vec![0; usize::from(a) << 8 | usize::from(b)])?;
        match kind {
            SETTINGS if flags & ACK == 0 => weir.write_all(&frame(SETTINGS, ACK, 0, &[]))?,
            HEADERS => return weir.write_all(&frame(HEADERS, END, u32::from_be_bytes(stream), OK)),
            _ => {}
        }
    }
}

/// The failures that were counted, by kind.
fn kinds(served: &RunningBalancer) -> Vec<String> {
    let text = served.scrape(Exposition::Prometheus);
    let lines =
        text.lines().filter(|line| line.starts_with("weir_request_errors_total{") && !line.ends_with(" 0"));
    lines.filter_map(|line| line.split("kind=\"").nth(1)?.split('"').next().map(str::to_owned)).collect()
}

/// Its one failure holds for all that wait for the connection.
#[test]
fn an_origin_that_speaks_no_http_2_is_not_connected_to() {
    for does in [Does::H1, Does::Closes] {
        let origin = Origin::new(does);
        let served = serve_node(&origin.node(", connect_timeout=10*s"));
        let statuses = statuses_at_once(&served, 40);
        assert_eq!(statuses, BTreeMap::from([(503, 40)]), "{does:?}");
        assert_eq!(kinds(&served), ["connect_failed"], "{does:?}");
        assert_eq!(origin.most_opening(), 1, "{does:?}");
    }
}

/// Each request has its `connect_timeout`, and so has each connection; the first request was sent with the preface.
#[test]
fn an_origin_that_hangs_in_its_handshake_holds_requests_for_a_while() {
    let origin = Origin::new(Does::Hangs);
    let served = serve_node(&origin.node(", connect_timeout=300*ms"));
    let begun = Instant::now();
    let statuses = statuses_at_once(&served, 40);
    let took = begun.elapsed();
    assert!(statuses.keys().all(|status| [503, 504].contains(status)), "{statuses:?}");
    let most = took.as_millis() as usize / 300 + 1;
    assert!(origin.connections() <= most, "{} in {took:?}", origin.connections());
}

/// A request is sent once more, since nothing was done, and not for ever.
#[test]
fn an_origin_that_goes_away_at_once_gets_one_connection_at_a_time() {
    let origin = Origin::new(Does::GoesAway);
    let served = serve_node(&origin.node(", connect_timeout=10*s"));
    let statuses = statuses_at_once(&served, 20);
    assert_eq!(statuses, BTreeMap::from([(503, 20)]));
    assert_eq!(kinds(&served), ["refused"]);
    assert!(origin.connections() <= 40, "{}", origin.connections());
    assert_eq!(origin.most_opening(), 1);
}

#[test]
fn an_origin_that_closes_behind_each_answer_is_asked_one_by_one() {
    let origin = Origin::new(Does::AnswersOnce);
    let served = serve_node(&origin.node(", connect_timeout=10*s"));
    for _ in 0..20 {
        assert_eq!(common::get(&served.addr, "/").status, 200);
    }
    assert!(origin.connections() <= 40);
    // Those that share a connection with the one that is answered are cut off.
    let statuses = statuses_at_once(&served, 20);
    assert!(statuses.keys().all(|status| [200, 502].contains(status)), "{statuses:?}");
    assert!(kinds(&served).iter().all(|kind| kind == "reset"), "{:?}", kinds(&served));
    assert_eq!(origin.most_opening(), 1);
}
