//! What the error log says of connections. Standard error belongs to a process, so what happens does so in another one.

use crate::common::{Conn, pause, serve_node};
use crate::frames::{RawPeer, data};
use crate::raw::{GOAWAY, frame};
use std::net::TcpListener;
use std::process::Command;

/// Standard error of a test of this program.
fn errors_of(test: &str) -> String {
    let program = std::env::current_exe().expect("this program");
    let run = Command::new(program).args(["--exact", test, "--ignored", "--nocapture"]).output();
    String::from_utf8_lossy(&run.expect("it runs").stderr).into_owned()
}

#[test]
fn the_log_says_why_connections_end() {
    let text = errors_of("log_lines::connections_end");
    let line = |part: &str| {
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(part)).collect();
        assert_eq!(lines.len(), 1, "{part}\n{text}");
        lines[0]
    };
    let client = line("the connection of 127.0.0.1:");
    assert!(client.starts_with("weir: listener \""), "{client}");
    assert!(client.ends_with(
        "ends (HTTP/2): A frame comes on an idle stream (RFC 9113 section 5.1) (PROTOCOL_ERROR), rule connection-protocol"
    ), "{client}");
    let goaway = line("ENHANCE_YOUR_CALM");
    assert!(goaway.starts_with("weir: server \"origin\" (127.0.0.1:"), "{goaway}");
    let said = format!(": GOAWAY (HTTP/2, ENHANCE_YOUR_CALM): \"too_many_pings\\n{}\"", "x".repeat(85));
    assert!(goaway.ends_with(&said), "{goaway}");
    let broken = line("weir ended the connection (HTTP/2)");
    assert!(broken.starts_with("weir: server \"origin\" (127.0.0.1:"), "{broken}");
    assert!(broken.ends_with("(FLOW_CONTROL_ERROR), rule connection-window"), "{broken}");
    assert!(!text.contains("NO_ERROR"), "{text}");
}

#[test]
#[ignore = "another test runs it, in a process of its own"]
fn connections_end() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    let served = serve_node(&format!("server(\"origin\", addr=\"{addr}\", protocol=\"h2\")"));
    let mut client = RawPeer::client(&served.addr);
    client.send(&data(1, true, b"x"));
    while client.try_next().is_some() {}
    let long = [&[0, 0, 0, 9, 0, 0, 0, 11][..], b"too_many_pings\n", &[b'x'; 5000]].concat();
    let calm = frame(GOAWAY, 0, 0, &long);
    let leaving = frame(GOAWAY, 0, 0, &[&[0, 0, 0, 9, 0, 0, 0, 0][..], b"max_age"].concat());
    let overflow = frame(8, 0, 0, &[0x7f, 255, 255, 255]);
    for last in [calm, leaving, overflow] {
        let mut client = Conn::new(&served.addr);
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut origin = RawPeer::origin(&listener, &[]);
        origin.next_request();
        origin.send(&last);
        pause(20);
        drop(origin);
        assert_eq!(client.response().status, 502);
    }
    // Another thread writes.
    pause(300);
}
