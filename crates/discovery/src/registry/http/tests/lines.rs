//! Answers that go on line by line, in frames of any sizes.

use super::super::Lines;
use super::{SHORT, drip, plain, raw, run};
use crate::fault::FaultKind;
use crate::registry::fake::{BOUND, Fake, Reply};
use hyper::StatusCode;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use tokio::time::timeout;

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The end of an answer.
const END: &str = "0\r\n\r\n";

/// The most bytes of a line.
const MOST_LINE: usize = 8 << 20;

/// A registry whose only answer goes on with what is sent, until the sender is dropped.
fn start() -> (Fake, Sender<Vec<u8>>) {
    let (out, parts) = channel();
    let parts = Mutex::new(Some(parts));
    let fake = Fake::start(move |_| {
        let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.take().map_or(Reply::Close, Reply::Raw)
    });
    out.send(HEAD.into()).expect("a registry");
    (fake, out)
}

/// Sends these bytes as a frame.
fn send(out: &Sender<Vec<u8>>, frame: impl AsRef<[u8]>) {
    let frame = frame.as_ref();
    let mut bytes = format!("{:x}\r\n", frame.len()).into_bytes();
    bytes.extend_from_slice(frame);
    bytes.extend_from_slice(b"\r\n");
    out.send(bytes).expect("a registry");
}

async fn open(fake: &Fake) -> Lines {
    plain(fake).watch("/watch", BOUND).await.expect("an answer").expect("lines")
}

/// The next line, if there is one.
async fn next(lines: &mut Lines) -> Option<Vec<u8>> {
    lines.next(BOUND).await.expect("a line or the end")
}

fn line(bytes: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    Some(bytes.as_ref().to_vec())
}

#[test]
fn lines_are_the_same_in_all_frames() {
    let (fake, out) = start();
    // Two lines in one frame, a line in three, an empty one, and ends of lines by themselves.
    for frame in ["a\nb\n", "c", "d", "e\nf", "\n", "\n", "\r\n", "last"] {
        send(&out, frame);
    }
    out.send(END.into()).expect("a registry");
    run(async {
        let mut lines = open(&fake).await;
        for text in ["a", "b", "cde", "f", "", "\r", "last"] {
            assert_eq!(next(&mut lines).await, line(text));
        }
        assert_eq!(next(&mut lines).await, None);
    });
}

/// What is no UTF-8 is a matter of the caller, which also gets a character whole that two frames share.
#[test]
fn lines_are_bytes() {
    let (fake, out) = start();
    let frames: [&[u8]; 4] = [b"\xff\xfe\n", b"\xc3", b"\xa9\n", b"\0\n"];
    frames.iter().for_each(|frame| send(&out, frame));
    run(async {
        let mut lines = open(&fake).await;
        assert_eq!(next(&mut lines).await, line(b"\xff\xfe"));
        assert_eq!(next(&mut lines).await, line("\u{e9}"));
        assert_eq!(next(&mut lines).await, line(b"\0"));
    });
}

#[test]
fn an_answer_that_is_cut_in_a_line_is_a_fault_after_its_whole_lines() {
    // Between two frames, and within one.
    for rest in ["", "5\r\ncd"] {
        let (fake, out) = start();
        send(&out, "a\nb");
        out.send(rest.into()).expect("a registry");
        drop(out);
        run(async {
            let mut lines = open(&fake).await;
            assert_eq!(next(&mut lines).await, line("a"));
            let defect = lines.next(BOUND).await.expect_err("half a line");
            assert_eq!(defect.kind, FaultKind::Cut, "{defect}");
            assert!(defect.to_string().contains("/watch gives no whole answer"), "{defect}");
        });
    }
}

#[test]
fn a_line_has_a_limit() {
    let (fake, out) = start();
    let piece = vec![b'a'; 1 << 20];
    let send_pieces = |count: usize| (0..count).for_each(|_| send(&out, &piece));
    send_pieces(MOST_LINE / piece.len());
    send(&out, "\nb\n");
    send_pieces(2 * MOST_LINE / piece.len());
    run(async {
        let mut lines = open(&fake).await;
        assert_eq!(next(&mut lines).await.map(|line| line.len()), Some(MOST_LINE));
        assert_eq!(next(&mut lines).await, line("b"));
        let defect = lines.next(BOUND).await.expect_err("a longer line");
        assert_eq!(defect.kind, FaultKind::TooLarge, "{defect}");
        assert!(defect.to_string().contains("/watch has more than 8 MiB"), "{defect}");
    });
}

#[test]
fn a_wait_that_ends_early_loses_nothing() {
    let (fake, out) = start();
    send(&out, "a\nb");
    run(async {
        let mut lines = open(&fake).await;
        assert_eq!(next(&mut lines).await, line("a"));
        // It is dropped while it waits, and it ends by its own time.
        timeout(SHORT, lines.next(BOUND)).await.expect_err("half a line");
        let defect = lines.next(SHORT).await.expect_err("half a line");
        assert_eq!(defect.kind, FaultKind::Late, "{defect}");
        send(&out, "c\nd\n");
        assert_eq!(next(&mut lines).await, line("bc"));
        assert_eq!(next(&mut lines).await, line("d"));
    });
}

#[test]
fn a_watch_that_does_not_begin_is_an_answer_or_a_fault() {
    let gone = "HTTP/1.1 410 Gone\r\nContent-Length: 7\r\n\r\nexpired";
    let fake = Fake::start(move |_| raw(gone));
    let answer = run(async { plain(&fake).watch("/watch", BOUND).await });
    let answer = answer.expect("an answer").expect_err("no lines");
    assert_eq!((answer.status, &answer.body[..]), (StatusCode::GONE, &b"expired"[..]));
    let fake = Fake::start(|_| Reply::Other(302, vec!["Location: /a".to_owned()], String::new()));
    let defect = run(async { plain(&fake).watch("/watch", BOUND).await }).expect_err("a redirection");
    assert!(defect.to_string().contains("redirects to /a"), "{defect}");
    // A head that does not end.
    let fake = Fake::start(|_| {
        let (out, parts) = channel();
        out.send(b"HTTP/1.1 200 OK\r\nX: ".to_vec()).expect("a channel");
        std::thread::spawn(move || drip(&out, b'a'));
        Reply::Raw(parts)
    });
    let defect = run(async { plain(&fake).watch("/watch", SHORT).await }).expect_err("no head");
    assert_eq!(defect.kind, FaultKind::Late, "{defect}");
}

#[test]
fn a_refusal_without_an_end_is_a_fault() {
    let fake = Fake::start(|_| {
        let (out, parts) = channel();
        out.send(b"HTTP/1.1 403 No\r\n\r\n".to_vec()).expect("a channel");
        std::thread::spawn(move || drip(&out, b' '));
        Reply::Raw(parts)
    });
    let defect = run(async { plain(&fake).watch("/watch", SHORT).await }).expect_err("no end");
    assert_eq!(defect.kind, FaultKind::Late, "{defect}");
}
