//! Connections to origins that have gone silent, and clients that take nothing of their answers: neither may hold up
//! other requests.

use crate::common::{self, Conn, RunningBalancer, serve_node, until};
use crate::peer;
use crate::raw::{HEADERS, PREFACE, SETTINGS, frame};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const RST_STREAM: u8 = 3;
const PING: u8 = 6;
const ACK: u8 = 1;
const END: u8 = 5;
/// `:status: 200` by the static table of HPACK.
const OK: &[u8] = &[0x88];

/// What an origin does with the n-th request of its first connection; on others it answers all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Answer,
    /// Leaves it, and answers what comes later.
    Leave,
    /// From now on it neither reads nor writes.
    Fall,
}

/// What has come on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ObservedConnection {
    requests: usize,
    pings: usize,
    resets: usize,
    ended: bool,
}

/// An origin by hand.
struct Origin {
    addr: String,
    met: Arc<Mutex<Vec<ObservedConnection>>>,
}

impl Origin {
    fn new(steps: &'static [Step]) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address").to_string();
        let met = Arc::<Mutex<Vec<ObservedConnection>>>::default();
        let all = met.clone();
        std::thread::spawn(move || {
            for (at, stream) in listener.incoming().flatten().enumerate() {
                all.lock().expect("no panic").push(ObservedConnection::default());
                let (all, steps) = (all.clone(), if at == 0 { steps } else { &[] });
                std::thread::spawn(move || {
                    let _ =
                        connection(stream, steps, |change| change(&mut all.lock().expect("no panic")[at]));
                });
            }
        });
        Origin { addr, met }
    }

    fn met(&self) -> Vec<ObservedConnection> {
        self.met.lock().expect("no panic").clone()
    }

    fn node(&self) -> String {
        format!("server(\"origin\", addr=\"{}\", protocol=\"h2\")", self.addr)
    }
}

fn connection(
    mut weir: TcpStream,
    steps: &[Step],
    note: impl Fn(&dyn Fn(&mut ObservedConnection)),
) -> std::io::Result<()> {
    weir.read_exact(&mut vec![0; PREFACE.len()])?;
    weir.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    let mut steps = steps.iter();
    loop {
        let mut head = [0; 9];
        weir.read_exact(&mut head)?;
        let [_, a, b, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; usize::from(a) << 8 | usize::from(b)];
        weir.read_exact(&mut payload)?;
        match kind {
            SETTINGS if flags & ACK == 0 => weir.write_all(&frame(SETTINGS, ACK, 0, &[]))?,
            PING if flags & ACK == 0 => {
                note(&|met| met.pings += 1);
                weir.write_all(&frame(PING, ACK, 0, &payload))?;
            }
            RST_STREAM => note(&|met| met.resets += 1),
            HEADERS => {
                note(&|met| met.requests += 1);
                match steps.next().unwrap_or(&Step::Answer) {
                    Step::Answer => weir.write_all(&frame(HEADERS, END, u32::from_be_bytes(stream), OK))?,
                    Step::Leave => {}
                    Step::Fall => return fall(&mut weir, note),
                }
            }
            _ => {}
        }
    }
}

/// Does nothing until weir has closed the connection.
fn fall(weir: &mut TcpStream, note: impl Fn(&dyn Fn(&mut ObservedConnection))) -> std::io::Result<()> {
    // Only the end is looked for: nothing is answered.
    let _ = weir.read_to_end(&mut Vec::new());
    note(&|met| met.ended = true);
    Ok(())
}

fn status(served: &RunningBalancer, path: &str) -> u16 {
    common::get(&served.addr, path).status
}

/// With HTTP/1.1 the connection closes with the request that ran out of time, so one request fails; so it is here,
/// whichever limit ends it.
#[test]
fn a_silent_connection_costs_one_request() {
    use Step::{Answer, Fall};
    for limited in [
        |node: String| format!("timeout(200*ms, {node})"),
        |node: String| node.replace("protocol", "response_timeout=200*ms, protocol"),
    ] {
        let origin = Origin::new(&[Answer, Fall]);
        let served = serve_node(&limited(origin.node()));
        assert_eq!(status(&served, "/"), 200);
        let statuses: Vec<u16> = (0..6).map(|_| status(&served, "/")).collect();
        assert_eq!(statuses, [504, 200, 200, 200, 200, 200]);
        assert_eq!(origin.met().len(), 2);
        until(|| origin.met()[0].ended);
    }
}

/// The requests that are still on it end with it, and are not sent again.
#[test]
fn what_is_on_a_silent_connection_is_reset() {
    use Step::{Answer, Fall, Leave};
    let origin = Origin::new(&[Answer, Leave, Fall]);
    let node = origin.node();
    let served =
        serve_node(&format!("route([(when(path=\"/short\"), timeout(200*ms, {node}))], otherwise={node})"));
    assert_eq!(status(&served, "/"), 200);
    let mut long = Conn::new(&served.addr);
    long.send("GET /long HTTP/1.1\r\nHost: h\r\n\r\n");
    until(|| origin.met()[0].requests == 2);
    assert_eq!(status(&served, "/short"), 504);
    let answer = long.response();
    assert_eq!(answer.status, 502, "{}", answer.body);
    until(|| origin.met()[0].ended);
    // Connections that have ended are counted when the target next looks over its own.
    until(|| served.scrape(weir_serve::Exposition::Prometheus).contains("reason=\"silent\"} 1"));
}

/// A slow request is not a silent origin: its connection answers the PING and goes on.
#[test]
fn a_connection_that_answers_goes_on() {
    use Step::{Answer, Leave};
    let origin = Origin::new(&[Answer, Leave]);
    let served = serve_node(&format!("timeout(200*ms, {})", origin.node()));
    assert_eq!((status(&served, "/"), status(&served, "/")), (200, 504));
    until(|| {
        assert_eq!(status(&served, "/"), 200);
        origin.met()[0].requests >= 6
    });
    let first = origin.met()[0];
    assert_eq!((first.pings, first.ended), (1, false));
}

/// gRPC servers end a connection at the third PING without an answer between (`too_many_pings`).
#[test]
fn pings_without_an_answer_between_them_are_few() {
    use Step::{Answer, Leave};
    let origin = Origin::new(&[Answer, Leave, Leave, Answer, Leave, Leave, Leave]);
    let served = serve_node(&format!("timeout(100*ms, {})", origin.node()));
    let expected = [200, 504, 504, 200, 504, 504, 504, 200, 200];
    for (at, expected) in expected.into_iter().enumerate() {
        assert_eq!(status(&served, "/"), expected, "request {at}");
        // The answer to the PING makes the connection good again.
        common::pause(50);
    }
    let met = origin.met();
    assert_eq!((met.len(), met[0].requests, met[0].pings), (2, 7, 4));
}

/// Nothing is asked of a connection whose requests were merely given up by their clients.
#[test]
fn a_client_that_leaves_casts_no_doubt() {
    use Step::{Answer, Leave};
    let origin = Origin::new(&[Answer, Leave, Answer]);
    let served = serve_node(&origin.node());
    assert_eq!(status(&served, "/"), 200);
    let mut leaves = Conn::new(&served.addr);
    leaves.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    until(|| origin.met()[0].requests == 2);
    drop(leaves);
    for _ in 0..5 {
        assert_eq!(status(&served, "/"), 200);
    }
    let met = origin.met();
    assert_eq!((met.len(), met[0].pings), (1, 0));
}

/// Servers end a connection on which a client has reset many streams, and with it what others have there: Envoy does so at
/// the 250th. How many it may be is tested in `weir_http2`; a cancellation that comes late counts less.
#[test]
fn a_connection_whose_requests_are_mostly_cancelled_takes_nothing_new() {
    use Step::{Answer, Leave};
    static STEPS: [Step; 400] = {
        let mut steps = [Leave; 400];
        steps[0] = Answer;
        steps
    };
    let origin = Origin::new(&STEPS);
    let served = serve_node(&origin.node());
    assert_eq!(status(&served, "/"), 200);
    let mut other = Conn::new(&served.addr);
    other.send("GET /other HTTP/1.1\r\nHost: h\r\n\r\n");
    until(|| origin.met()[0].requests == 2);
    let cancelled = (1..350).find(|n| {
        let mut leaves = Conn::new(&served.addr);
        leaves.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        until(|| origin.met()[0].requests == n + 2 || origin.met().len() == 2);
        drop(leaves);
        until(|| origin.met()[0].resets == *n || origin.met().len() == 2);
        origin.met().len() == 2
    });
    assert!(cancelled.is_some_and(|n| (100..=301).contains(&n)), "{cancelled:?}");
    assert_eq!((status(&served, "/"), origin.met().len()), (200, 2));
    assert!(!origin.met()[0].ended, "the other's request goes on");
}

/// Each of these clients takes nothing, so that its stream's window stays full; together they have more than a MiB.
#[test]
fn clients_that_take_nothing_hold_up_no_other() {
    let origin = peer::Origin::new(100, |_, got| {
        let length = if got.uri.path() == "/large" { 8 << 20 } else { 10 };
        peer::Reply::Ok(&[], vec![b'x'; length], None)
    });
    let served = serve_node(&format!("server(\"origin\", addr=\"{}\", protocol=\"h2\")", origin.addr));
    let idle: Vec<Conn> = (0..24)
        .map(|_| {
            let mut client = Conn::new(&served.addr);
            client.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
            client
        })
        .collect();
    until(|| origin.got().len() == idle.len());
    for _ in 0..20 {
        assert_eq!(common::get(&served.addr, "/small").body.len(), 10);
        common::pause(20);
    }
    assert_eq!(origin.connections(), 1);
}
