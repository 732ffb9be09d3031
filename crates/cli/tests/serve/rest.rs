//! `weir serve` at rest: nothing wakes it, and what is due still comes.

use crate::shared::serve::{Origin, Weir, pause, until};
use std::time::Duration;

/// How often the threads of a process have gone to sleep so far.
#[cfg(target_os = "linux")]
fn sleeps(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let of = |thread: std::fs::DirEntry| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    threads.map(of).sum()
}

/// Four loops after a request each: in a second the watchdog looks twice, and nothing else happens. (It was 34 times with
/// one loop, ten more with each other.)
#[cfg(target_os = "linux")]
#[test]
fn at_rest_nothing_wakes_a_loop() {
    let origin = Origin::named("a");
    let node = format!("lb.least_conn([server(\"a\", addr=\"{}\")])", origin.addr());
    let weir = Weir::new(&format!("listen(\"127.0.0.1:0\", {node}, loops=4)\n"));
    let mut clients: Vec<_> = (0..8).map(|_| weir.client()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").expect("an answer").body_text(), "a");
    }
    let mut fewest = u64::MAX;
    let rested = until(|| {
        let before = sleeps(weir.pid());
        pause(1_000);
        fewest = fewest.min(sleeps(weir.pid()) - before);
        fewest <= 4
    });
    assert!(rested, "{fewest} times a second");
}

/// A loop that rests wakes for the deadline of an idle client, and for a client that comes.
#[test]
fn what_is_due_ends_a_rest() {
    let origin = Origin::named("a");
    let node = format!("server(addr=\"{}\")", origin.addr());
    let weir = Weir::set("idle_timeout = 2*s", &node);
    for _ in 0..2 {
        let mut client = weir.client();
        client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").expect("an answer");
        assert!(client.ends_within(Duration::from_secs(20)), "nothing else happens meanwhile");
    }
}
