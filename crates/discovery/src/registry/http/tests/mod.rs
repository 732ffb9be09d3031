//! A registry's answers on sockets: lists, and what is wrong, endless, slow or never comes.

mod lines;
mod proof;
mod tls;

use super::{
    Answer, Client, Credentials, Endpoint, FileReader, GivenTrust, LIST_TIME, Trust, body_time, trust,
};
use crate::fault::{Defect, FaultKind};
use crate::registry::fake::{BOUND, Fake, Reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::timeout;
use weir_net::transport::tls::NamedPem;

/// A time that the tests about it wait for.
const SHORT: Duration = Duration::from_millis(200);

/// The head of an answer with a body of two bytes.
const TWO: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n";

/// Runs a future as the thread of all registries does. It ends long before the bound.
fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let local = LocalSet::new();
    local.block_on(&runtime, async { timeout(BOUND, future).await.expect("it ends before") })
}

fn client(url: &str, trust: Trust, credentials: Option<Credentials>) -> Client {
    Client::new(Endpoint::parse(url).expect("an address"), trust, credentials, FileReader::default())
}

/// A client that proves nothing.
fn plain(fake: &Fake) -> Client {
    client(&fake.url, trust(None), None)
}

/// Asks once.
fn ask(fake: &Fake, within: Duration) -> Result<Answer, Defect> {
    run(async { plain(fake).get("/list?a=b", within).await })
}

/// An answer of these bytes, after which the connection ends.
fn raw(bytes: impl AsRef<[u8]>) -> Reply {
    let (out, parts) = channel();
    out.send(bytes.as_ref().to_vec()).expect("a channel");
    Reply::Raw(parts)
}

/// Sends a byte now and then, as long as there is a client.
fn drip(out: &Sender<Vec<u8>>, byte: u8) {
    let (_open, never) = channel::<()>();
    while out.send(vec![byte]).is_ok() {
        let _ = never.recv_timeout(Duration::from_millis(20));
    }
}

#[test]
fn whole_answers_are_read_below_the_path_of_the_address() {
    let fake = Fake::start(|question| Reply::Json(format!("[\"{}\"]", question.target)));
    let url = format!("{}/base/", fake.url);
    run(async {
        let mut client = client(&url, trust(None), None);
        for path in ["/list?a=b", "/other"] {
            let answer = client.get(path, BOUND).await.expect("an answer");
            assert_eq!(answer.json(), Ok(format!("[\"/base{path}\"]").as_str()));
        }
    });
}

#[test]
fn an_answer_that_is_no_list_is_a_sentence() {
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 6\r\n\r\n<html>";
    let cases: [(&[u8], FaultKind, &str); 6] = [
        (page.as_bytes(), FaultKind::Unexpected, "answers with text/html"),
        (b"HTTP/1.1 401 No\r\nContent-Length: 6\r\n\r\nsecret", FaultKind::Forbidden, "answers 401"),
        (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", FaultKind::Forbidden, "another user or token"),
        (b"HTTP/1.1 503 No\r\nContent-Length: 6\r\n\r\nsecret", FaultKind::Unexpected, "answers 503"),
        (b"HTTP/1.1 204 No\r\n\r\n", FaultKind::Unexpected, "answers 204"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe", FaultKind::Encoding, "is not UTF-8"),
    ];
    for (bytes, kind, words) in cases {
        let fake = Fake::start(move |_| raw(bytes));
        let answer = ask(&fake, BOUND).expect("an answer");
        let defect = answer.json().expect_err(words);
        let text = defect.to_string();
        assert_eq!(defect.kind, kind, "{text}");
        assert!(text.contains(words) && text.contains("/list?a=b"), "{text}");
        // What a registry sends is no part of it.
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn a_redirection_to_itself_is_a_fault_and_asked_for_once() {
    let count = Arc::new(AtomicUsize::new(0));
    let questions = count.clone();
    let fake = Fake::start(move |question| {
        questions.fetch_add(1, Ordering::SeqCst);
        Reply::Other(302, vec![format!("Location: {}", question.target)], String::new())
    });
    let defect = ask(&fake, BOUND).expect_err("no list");
    let text = defect.to_string();
    assert_eq!((defect.kind, count.load(Ordering::SeqCst)), (FaultKind::Unexpected, 1));
    assert!(text.contains("redirects to /list?a=b") && text.contains("write the address"), "{text}");
    let far = format!("Location: /{}", "a".repeat(2000));
    let fake = Fake::start(move |_| Reply::Other(301, vec![far.clone()], String::new()));
    let text = ask(&fake, BOUND).expect_err("no list").to_string();
    assert!(text.len() < 300, "{text}");
}

#[test]
fn a_body_without_an_end_is_cut_off_at_the_limit() {
    for length in ["Content-Length: 10000000000\r\n", ""] {
        let fake = Fake::start(move |_| {
            let (more, parts) = sync_channel(1);
            more.send(format!("HTTP/1.1 200 OK\r\n{length}\r\n").into_bytes()).expect("a channel");
            // It ends when the connection does, and with it what takes the bytes.
            std::thread::spawn(move || while more.send(vec![b' '; 1 << 20]).is_ok() {});
            Reply::Raw(parts)
        });
        let defect = ask(&fake, BOUND).expect_err("no list");
        assert_eq!(defect.kind, FaultKind::TooLarge, "{defect}");
        assert!(defect.to_string().contains("more than 64 MiB"), "{defect}");
    }
}

#[test]
fn an_answer_that_does_not_end_in_time_is_late_and_the_next_one_is_read() {
    // Nothing at all, and a head and a body byte by byte.
    let slow = [
        ("", None),
        ("HTTP/1.1 200 OK\r\nX: ", Some(b'a')),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", Some(b' ')),
    ];
    for (begin, byte) in slow {
        let fake = Fake::start(move |question| {
            if question.target == "/quick" {
                return Reply::Json("[]".to_owned());
            }
            let (out, parts) = channel();
            out.send(begin.as_bytes().to_vec()).expect("a channel");
            match byte {
                Some(byte) => drop(std::thread::spawn(move || drip(&out, byte))),
                None => std::mem::forget(out),
            }
            Reply::Raw(parts)
        });
        run(async {
            let mut client = plain(&fake);
            let defect = client.get("/slow", SHORT).await.expect_err("it takes too long");
            assert_eq!(defect.kind, FaultKind::Late, "{defect}");
            let text = defect.to_string();
            let has = |words: &str| text.contains(words);
            assert!(has("/slow was not answered within") || has("/slow did not end in time"), "{text}");
            let answer = client.get("/quick", BOUND).await.expect("an answer");
            assert_eq!(answer.json(), Ok("[]"));
        });
    }
}

#[test]
fn a_body_has_what_is_left_or_the_time_of_a_list_after_a_question_that_waits() {
    let s = Duration::from_secs;
    assert_eq!(body_time(SHORT, Duration::from_millis(50)), Duration::from_millis(150));
    assert_eq!(body_time(LIST_TIME, s(10)), s(20));
    assert_eq!(body_time(LIST_TIME, s(31)), Duration::ZERO);
    assert_eq!((body_time(s(320), s(1)), body_time(s(320), s(319))), (LIST_TIME, LIST_TIME));
}

#[test]
fn secrets_are_not_in_debug_output() {
    let pem = || NamedPem { name: "a key".to_owned(), pem: b"hush".to_vec() };
    let given = GivenTrust { certificate: Some((pem(), pem())), ..GivenTrust::default() };
    let token = Credentials::Token("hush".to_owned());
    let client = client("http://a", Trust::Given(given.clone()), Some(token.clone()));
    for text in [format!("{given:?}"), format!("{token:?}"), format!("{client:?}")] {
        // Bytes would be there as numbers.
        assert!(!text.contains("hush") && !text.contains("104"), "{text}");
    }
}

#[test]
fn an_answer_that_is_cut_off_is_a_fault() {
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(100_000));
    let cases = [
        String::new(),
        "HTTP/1.1 200 OK\r\nContent-Le".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[]".to_owned(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[]".to_owned(),
        "no HTTP at all\r\n\r\n".to_owned(),
        endless,
    ];
    for bytes in cases {
        let fake = Fake::start(move |_| raw(&bytes));
        let defect = ask(&fake, BOUND).expect_err("no list");
        assert_eq!(defect.kind, FaultKind::Cut, "{defect}");
        let text = defect.to_string();
        assert!(text.contains("gives no whole answer: ") && text.len() < 300, "{text}");
    }
}

#[test]
fn a_kept_connection_that_the_server_has_closed_is_replaced() {
    let count = Arc::new(AtomicUsize::new(0));
    let questions = count.clone();
    let fake = Fake::start(move |_| {
        // Two bytes, after which the connection ends without a word.
        raw(format!("{TWO}{:02}", questions.fetch_add(1, Ordering::SeqCst)))
    });
    run(async {
        let mut client = plain(&fake);
        for n in 0..20 {
            let answer = client.get("/list", BOUND).await.expect("an answer");
            assert_eq!(answer.json(), Ok(format!("{n:02}").as_str()));
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), 20);
}
