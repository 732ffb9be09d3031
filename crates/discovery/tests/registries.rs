//! Many registries of one process, asked for real: one thread asks them all, and ends with them.
//!
//! The test is by itself here, since it counts the threads of its process.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use weir_discovery::{FollowedSource, News, Readers, run};
use weir_plan::{ConsulSource, SourceKind};
use weir_stats::Key;

/// What is waited for comes long before.
const BOUND: Duration = Duration::from_secs(30);

/// A service of the Consul at this port.
fn consul(port: u16, service: &str) -> FollowedSource {
    SourceKind::Consul(ConsulSource::new(format!("http://127.0.0.1:{port}"), service)).into()
}

/// The number of threads that ask registries. One that ends meanwhile may not count.
fn count_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("threads");
    let names = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("comm")));
    names.flatten().filter(|name| name.trim_end() == "weir-registries").count()
}

#[test]
fn a_hundred_registries_have_one_thread_which_ends_with_them() {
    // It ends each connection at once, so that every source has something to say, again and again.
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    std::thread::spawn(move || server.incoming().for_each(drop));
    let mut sources = vec![consul(port, "same"); 2];
    sources.extend((0..100).map(|n| consul(port, &format!("api-{n}"))));
    let (out, updates) = channel();
    let deliver = move |news| {
        if let News::Update(update) = news {
            let _ = out.send(update.source);
        }
    };
    assert_eq!(count_threads(), 0);
    let discovery = run(&sources, &Readers::default(), Key::new(1), deliver).expect("threads");
    let mut reported = BTreeSet::new();
    while reported.len() < sources.len() {
        reported.insert(updates.recv_timeout(BOUND).expect("a fault of each source"));
    }
    assert_eq!(count_threads(), 1);
    drop(discovery);
    // Both threads end: of the one that gives the news its side of the channel, of the other its name.
    let end = loop {
        if let Err(end) = updates.recv_timeout(BOUND) {
            break end;
        }
    };
    assert_eq!(end, RecvTimeoutError::Disconnected);
    let start = Instant::now();
    while count_threads() > 0 {
        assert!(start.elapsed() < BOUND, "the thread goes on");
        std::thread::yield_now();
    }
}
