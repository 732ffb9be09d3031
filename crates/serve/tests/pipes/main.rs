//! Large answers go from socket to socket through pipes: as they are, and no more pipes than a loop may have.

#[path = "../common/mod.rs"]
mod common;

use common::{RunningBalancer, serve_node, until};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A body that a few pipes do not hold.
const LARGE: usize = 24 << 20;

/// The only test that runs: pipes are counted by their descriptors, which are the process's.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves this origin.
fn serve(origin: impl std::fmt::Display) -> RunningBalancer {
    serve_node(&format!("server(\"o\", addr=\"{origin}\")"))
}

/// The descriptors of pipes that this process has.
fn pipes() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
    let targets = all.filter_map(|fd| std::fs::read_link(fd.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("pipe:")).count()
}

/// Bytes that differ from place to place.
fn body(length: usize) -> Vec<u8> {
    (0..length as u32 / 4).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect()
}

/// An origin that announces `length` bytes and sends those of `body`, then ends the connection if they are fewer.
fn origin(body: Vec<u8>, length: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address").to_string();
    let answer = [format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes(), body].concat();
    let is_whole = answer.ends_with(b"last");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || {
                while is_asked(&mut stream) && stream.write_all(&answer).is_ok() && is_whole {}
            });
        }
    });
    addr
}

/// Reads one request without a body; `false`: there is none.
fn is_asked(stream: &mut TcpStream) -> bool {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

fn ask(addr: &str) -> TcpStream {
    let mut conn = TcpStream::connect(addr).expect("a connection");
    conn.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    ask_again(&mut conn);
    conn
}

fn ask_again(conn: &mut TcpStream) {
    conn.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("it asks");
}

/// Reads an answer, whose body is to have this length.
fn read_answer(conn: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut read = Vec::new();
    let mut some = vec![0; 100_000];
    loop {
        let head = read.windows(4).take(2000).position(|four| four == b"\r\n\r\n");
        if let Some(head) = head
            && read.len() >= head + 4 + length
        {
            return read.split_off(head + 4);
        }
        let n = conn.read(&mut some).expect("bytes");
        assert!(n > 0, "the connection has ended after {} bytes", read.len());
        read.extend_from_slice(&some[..n]);
    }
}

/// A body with an end that says so.
fn whole() -> Vec<u8> {
    let mut whole = body(LARGE);
    whole.extend(b"last");
    whole
}

#[test]
fn a_large_answer_arrives_as_it_was_sent() {
    let _alone = alone();
    let sent = whole();
    let served = serve(origin(sent.clone(), sent.len()));
    let mut conn = ask(&served.addr);
    // Again on the same connections: nothing of the first is left in a pipe.
    for _ in 0..3 {
        assert!(read_answer(&mut conn, sent.len()) == sent, "other bytes than were sent");
        ask_again(&mut conn);
    }
    assert!(read_answer(&mut conn, sent.len()) == sent, "other bytes than were sent");
}

#[test]
fn an_answer_that_breaks_off_ends_the_connection_there() {
    let _alone = alone();
    let sent = body(LARGE / 2);
    let served = serve(origin(sent.clone(), LARGE));
    let mut conn = ask(&served.addr);
    let mut read = Vec::new();
    // A reset is an end as well.
    let _ = conn.read_to_end(&mut read);
    let head = read.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    assert!(sent.starts_with(&read[head..]), "other bytes than were sent");
    assert!(read.len() - head > LARGE / 4, "{} bytes", read.len());
}

/// Clients that do not read hold a pipe each, up to a limit; behind it bodies are copied. All are whole.
#[test]
fn clients_that_do_not_read_hold_few_pipes() {
    let _alone = alone();
    let sent = whole();
    let served = serve(origin(sent.clone(), sent.len()));
    let before = pipes();
    let mut silent: Vec<TcpStream> = (0..80).map(|_| ask(&served.addr)).collect();
    until(|| pipes() >= before + 2 * 64);
    assert_eq!(pipes(), before + 2 * 64);
    let mut last = silent.split_off(78);
    drop(silent);
    // Pipes with bytes in them are closed, and what is left of the others is kept for the next.
    until(|| pipes() <= before + 2 * 10);
    for conn in &mut last {
        assert!(read_answer(conn, sent.len()) == sent, "other bytes than were sent");
    }
}

/// The other way: what a client uploads.
#[test]
fn a_large_upload_arrives_as_it_was_sent() {
    let _alone = alone();
    let sent = whole();
    let (listener, (to, from)) =
        (TcpListener::bind("127.0.0.1:0").expect("a port"), std::sync::mpsc::channel());
    let served = serve(listener.local_addr().expect("an address"));
    let length = sent.len();
    let origin = std::thread::spawn(move || {
        let (mut conn, _) = listener.accept().expect("a connection");
        // Again on the same connections: nothing of the first is left in a pipe.
        for _ in 0..2 {
            assert!(is_asked(&mut conn));
            let mut got = vec![0; length];
            conn.read_exact(&mut got).expect("a body");
            to.send(got).expect("a test that waits");
            conn.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("it answers");
        }
    });
    let mut conn = TcpStream::connect(&served.addr).expect("a connection");
    conn.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    for _ in 0..2 {
        write!(conn, "PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n").expect("it asks");
        conn.write_all(&sent).expect("it sends");
        assert!(
            from.recv_timeout(Duration::from_secs(60)).expect("a body") == sent,
            "other bytes than were sent"
        );
        assert_eq!(read_answer(&mut conn, 2), b"ok");
    }
    origin.join().expect("an origin");
}
