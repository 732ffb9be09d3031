//! A target that is removed while requests are on their way to it: those that wait for a connection, and what the log
//! says of those that are cut.

use crate::support::{LIMIT, Mode, Origin, pause, serve_whole, until};
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use weir_serve::Options;

fn one_loop() -> Options {
    Options { loops: Some(1), ..Options::default() }
}

/// An address at which nothing answers a SYN, for as long as the rest lives. `None`: this system answers.
fn black_hole() -> Option<(SocketAddr, Socket, Vec<TcpStream>)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).ok()?;
    socket.listen(0).ok()?;
    let addr = socket.local_addr().ok()?.as_socket()?;
    let mut waiting = Vec::new();
    for _ in 0..16 {
        match TcpStream::connect_timeout(&addr, Duration::from_millis(300)) {
            Ok(stream) => waiting.push(stream),
            Err(_) => return Some((addr, socket, waiting)),
        }
    }
    None
}

/// Neither a request that connects to it nor one that waits for that connection waits for a `connect_timeout` that is
/// far away.
#[test]
fn who_waits_for_a_connection_to_a_removed_target_ends_or_moves() {
    let Some((hole, _socket, _waiting)) = black_hole() else { return };
    // Waiting at the balancer for the target's place, or at the target for a connection's.
    for limit in ["max_connections=1", "max_connections=1, max_in_flight=1", "max_in_flight=3"] {
        let b = Origin::new("b");
        let x = serve_whole(
            &format!(
                r#"both = [server("hole", addr="{hole}", connect_timeout="60s"), server("b", addr="{}")]
listen("127.0.0.1:0", lb.first(both, {limit}), http=http(drain_timeout="300ms"))"#,
                b.addr
            ),
            one_loop(),
        );
        let open: Vec<_> = (0..3).map(|_| x.send("")).collect();
        pause(Duration::from_millis(200));
        let begun = Instant::now();
        x.remove_target(0);
        for (number, request) in open.into_iter().enumerate() {
            let got = request.wait();
            // Cut off with the drain's end, or served by the other.
            assert!(got.status == 502 || got.status == 503 || got.body == "b", "{limit}, {number}: {got:?}");
        }
        assert!(begun.elapsed() < LIMIT / 4, "{limit}: {:?}", begun.elapsed());
        assert_eq!(x.get().body, "b", "{limit}");
    }
}

/// A file for a log, removed with what it holds.
struct LogFile(PathBuf);

impl LogFile {
    fn new(name: &str) -> LogFile {
        LogFile(std::env::temp_dir().join(format!("weir-removed-{}-{name}.log", std::process::id())))
    }

    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.0).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// weir has cut it: no client's leaving, which would be 499.
#[test]
fn what_is_cut_by_a_removal_is_said_to_be() {
    // Before a head and behind one: what the client saw is its status.
    for (mode, status) in [(Mode::Hold, 502), (Mode::Half, 200)] {
        let log = LogFile::new(if status == 502 { "head" } else { "body" });
        let (a, b) = (Origin::new("a"), Origin::new("b"));
        let x = serve_whole(
            &format!(
                r#"listen("127.0.0.1:0", lb.first([server("a", addr="{}"), server("b", addr="{}")]),
                    http=http(drain_timeout="200ms", access_log="{}"))"#,
                a.addr,
                b.addr,
                log.0.display()
            ),
            one_loop(),
        );
        a.answer(mode);
        let request = x.send("");
        if status == 502 {
            until("it is inside", || a.inside().0 == 1);
        } else {
            until("a part has come", || request.is_answered());
        }
        x.remove_target(0);
        assert_eq!(request.wait().status, status);
        until("its line is written", || log.lines().len() == 1);
        let line = log.lines().remove(0);
        for part in
            [format!("\"status\":{status},"), "\"error\":\"reset\"".to_owned(), "\"aborted\":true".to_owned()]
        {
            assert!(line.contains(&part), "{part} is not in {line}");
        }
        a.answer(Mode::Status(200));
        assert_eq!(x.get().status, 200);
        until("its line is written", || log.lines().len() == 2);
        assert!(log.lines()[1].contains("\"aborted\":false"), "{:?}", log.lines());
    }
}
