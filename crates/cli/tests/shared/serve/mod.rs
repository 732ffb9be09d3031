//! What the tests of `weir serve` share: the running binary, origins that follow a script, and readers that forgive
//! nothing.

pub(crate) mod admin;
pub(crate) mod browser;
pub(crate) mod message;
pub(crate) mod origin;
pub(crate) mod running;
pub(crate) mod stream;

pub(crate) use message::{Framing, Message};
pub(crate) use origin::{Origin, Peer, closed_port, free_port, reply};
pub(crate) use running::{Weir, serve_fails};
pub(crate) use stream::{Fault, Stream};

use std::io::Write;
use std::time::{Duration, Instant};

/// Says something that the test runner does not swallow: what was run, what was skipped and why.
pub(crate) fn tell(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Lets time pass, where time itself is what is tested.
#[expect(clippy::disallowed_methods, reason = "a silent peer is one of the faults")]
pub(crate) fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// For how long tests wait for what must come, however busy the machine is. What weir would do anyway by then (an idle
/// connection to an origin ends after 4 s, a drain after 10) is set to a minute where it could be taken for what is
/// wanted.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until something holds; `false` if it does not for a long time.
pub(crate) fn until(mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() >= end {
            return false;
        }
        pause(5);
    }
    true
}
