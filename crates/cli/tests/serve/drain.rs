//! What a drain waits for beside clients that are connected: what goes on without its client.

use crate::shared::serve::{Origin, Weir, pause, reply, until};
use rustix::process::Signal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const GET: &str = "GET /report HTTP/1.1\r\nHost: h\r\n\r\n";

/// An origin that sends its answer in two parts, the second once it may, and notes that all of it was taken.
struct Slow {
    origin: Origin,
    may_end: Arc<AtomicBool>,
    has_sent: Arc<AtomicBool>,
}

/// More than any buffer on the way holds: sent whole means read whole, but for the last pieces.
const BODY: usize = 32 << 20;

fn slow() -> Slow {
    let (may_end, has_sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (may, has) = (may_end.clone(), has_sent.clone());
    let origin = Origin::new(move |peer| {
        peer.request()?;
        until(|| may.load(SeqCst));
        peer.send(reply(&"x".repeat(BODY)))?;
        has.store(true, SeqCst);
        peer.wait_for_end()
    });
    Slow { origin, may_end, has_sent }
}

/// A weir whose only client has left, and which gets a signal to end while its request continues.
fn left(slow: &Slow, on_cancel: &str, drain_timeout: &str) -> (Weir, Instant) {
    let node = format!("queue(server(addr = \"{}\"), on_cancel = \"{on_cancel}\")", slow.origin.addr());
    let weir = Weir::set(&format!("drain_timeout = {drain_timeout}"), &node);
    let mut client = weir.client();
    client.send(GET).expect("it is sent");
    assert!(until(|| slow.origin.arrivals().len() == 1));
    drop(client);
    // So that the client is noticed to have gone before the drain begins.
    pause(200);
    weir.signal(Signal::TERM);
    (weir, Instant::now())
}

#[test]
fn what_goes_on_without_its_client_is_served_to_its_end() {
    for on_cancel in ["finish", "skip"] {
        let slow = slow();
        let (mut weir, _) = left(&slow, on_cancel, "30*s");
        pause(700);
        assert_eq!(weir.exit_code(), None, "{on_cancel}: it ends before what it was asked for has");
        assert!(!slow.has_sent.load(SeqCst) && slow.origin.open() == 1, "{on_cancel}");
        slow.may_end.store(true, SeqCst);
        assert_eq!(weir.ends(), Some(0), "{on_cancel}: it does not end");
        assert!(until(|| slow.has_sent.load(SeqCst)), "{on_cancel}: the answer was not read");
        slow.origin.read_only_http();
    }
}

#[test]
fn what_goes_on_for_too_long_ends_with_the_drain_timeout() {
    let slow = slow();
    let (mut weir, begun) = left(&slow, "finish", "1*s");
    assert_eq!(weir.ends(), Some(0));
    let took = begun.elapsed();
    assert!((Duration::from_millis(950)..Duration::from_secs(9)).contains(&took), "{took:?}");
    slow.may_end.store(true, SeqCst);
}

/// Work that ends with its client delays no drain.
#[test]
fn what_was_cancelled_is_not_waited_for() {
    let slow = slow();
    let (mut weir, begun) = left(&slow, "stop", "30*s");
    assert_eq!(weir.ends(), Some(0), "it waits for {:?}", begun.elapsed());
    slow.may_end.store(true, SeqCst);
}
