//! The first message of a handshake, from real clients (OpenSSL, curl), mutated and cut: nothing disturbs the listener,
//! and pieces say what the whole does.

use crate::common::certificates::Authority;
use crate::common::configs::client;
use crate::{connect, listen, status};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use weir_testkit::{Random, corpus};

/// How the listener answers these bytes before their end: with nothing, an alert and its number, a handshake, or in
/// cleartext.
#[derive(Debug, PartialEq, Eq)]
enum FirstAnswer {
    Nothing,
    Alert(u8),
    Handshake,
    Cleartext,
}

/// What it says to these pieces and the end of the stream.
fn said(addr: &str, pieces: &[&[u8]]) -> FirstAnswer {
    let mut stream = TcpStream::connect(addr).expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
    for piece in pieces {
        // It may have been enough already.
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    // Bytes that were not wanted any more may end it by a reset.
    let ended = stream.read_to_end(&mut answer);
    let waits = ended.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock);
    assert!(!waits, "the connection stays open");
    match answer[..] {
        [] => FirstAnswer::Nothing,
        [0x15, _, _, 0, 2, _, number, ..] => FirstAnswer::Alert(number),
        [0x16, ..] => FirstAnswer::Handshake,
        _ => FirstAnswer::Cleartext,
    }
}

#[test]
fn anything_may_come_first() {
    let authority = Authority::new("hello");
    let served = listen(&authority.words(&["a.test"]));
    let mut kinds = [0; 4];
    for (i, hello) in corpus(include_str!("../corpus/client_hello.hex")).into_iter().enumerate() {
        let whole = said(&served.addr, &[&hello]);
        // A client of TLS 1.1 has no cipher that is left.
        // That one offers TLS 1.1 at most.
        assert_eq!(whole, if i == 4 { FirstAnswer::Alert(40) } else { FirstAnswer::Handshake }, "{i}");
        let bytes: Vec<&[u8]> = hello.chunks(1).collect();
        assert_eq!(said(&served.addr, &bytes), whole, "{i}, byte by byte");
        for cut in [1, 5, 6, 43, hello.len() / 2, hello.len() - 1] {
            assert_eq!(said(&served.addr, &[&hello[..cut], &hello[cut..]]), whole, "{i} at {cut}");
            assert_eq!(said(&served.addr, &[&hello[..cut]]), FirstAnswer::Nothing, "{i} up to {cut}");
        }
        for seed in 0..60 {
            let mut random = Random::new(seed << 20 | i as u64);
            let mut mutated = hello.clone();
            random.mutate(&mut mutated, 4);
            let whole = said(&served.addr, &[&mutated]);
            let (a, b) = mutated.split_at(random.below(mutated.len()));
            assert_eq!(said(&served.addr, &[a, b]), whole, "{i} {seed}");
            kinds[match whole {
                FirstAnswer::Nothing => 0,
                FirstAnswer::Alert(_) => 1,
                FirstAnswer::Handshake => 2,
                FirstAnswer::Cleartext => 3,
            }] += 1;
        }
    }
    assert!(kinds.iter().all(|n| *n > 0), "the mutations reach all ways: {kinds:?}");
    let config = Arc::new(client(&authority));
    assert_eq!(status(&mut connect(&config, &served.addr, "a.test"), "a.test"), 200);
}
