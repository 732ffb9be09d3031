//! Headers of the PROXY protocol from a corpus, mutated and cut everywhere, beside a reader of the specification that
//! is as plain as can be.

use super::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_testkit::{Random, corpus};

/// What these bytes say, by the words of sections 2.1 and 2.2: the length of the header, and the client. `None`: no
/// header, or not the whole of one.
fn plainly(bytes: &[u8]) -> Option<(usize, Option<SocketAddr>)> {
    if bytes.starts_with(b"PROXY ") { version_1(bytes) } else { version_2(bytes) }
}

fn version_1(bytes: &[u8]) -> Option<(usize, Option<SocketAddr>)> {
    let line = bytes.split_inclusive(|byte| *byte == b'\n').next()?;
    let end = line.strip_suffix(b"\r\n").filter(|_| line.len() <= 107)?.len();
    let line = String::from_utf8_lossy(&bytes[..end]);
    let words: Vec<&str> = line.split(' ').collect();
    if words.get(1) == Some(&"UNKNOWN") {
        return Some((end + 2, None));
    }
    let &[_, family, client, local, from, to] = &words[..] else { return None };
    let ip = |text: &str| match family {
        "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::from),
        "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::from),
        _ => None,
    };
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| port.to_string() == text);
    let (client, from) = (ip(client)?, port(from)?);
    ip(local).zip(port(to))?;
    Some((end + 2, Some((client, from).into())))
}

fn version_2(bytes: &[u8]) -> Option<(usize, Option<SocketAddr>)> {
    let rest = bytes.strip_prefix(b"\r\n\r\n\0\r\nQUIT\n")?;
    let &[command, family, a, b, ref rest @ ..] = rest else { return None };
    let length = usize::from(u16::from_be_bytes([a, b]));
    let addresses = rest.get(..length).filter(|_| 16 + length <= MOST)?;
    let least = match family >> 4 {
        0 => 0,
        1 => 12,
        2 => 36,
        3 => 216,
        _ => return None,
    };
    if command >> 4 != 2 || command & 0xf > 1 || family & 0xf > 2 || length < least {
        return None;
    }
    let port = |at: usize| u16::from_be_bytes([addresses[at], addresses[at + 1]]);
    let client = match family >> 4 {
        1 => Some((<[u8; 4]>::try_from(&addresses[..4]).ok()?, port(8)).into()),
        2 => Some((<[u8; 16]>::try_from(&addresses[..16]).ok()?, port(32)).into()),
        _ => None,
    };
    Some((16 + length, client.filter(|_| command & 0xf == 1)))
}

/// What was clear once stays so, however many bytes follow; and what is read is what is meant.
fn assert_read_alike(bytes: &[u8]) {
    let mut first = None;
    for cut in 0..=bytes.len() {
        let now = parse(&bytes[..cut]);
        match (&first, now) {
            (None, Ok(None)) => {}
            (None, clear) => first = Some(clear),
            (Some(Ok(said)), now) => assert_eq!(now, Ok(*said), "at {cut} of {}", bytes.escape_ascii()),
            (Some(Err(_)), now) => assert!(now.is_err(), "{now:?} at {cut} of {}", bytes.escape_ascii()),
        }
    }
    let said = match first {
        Some(Ok(said)) => said,
        _ => None,
    };
    let said = said.map(|said| (said.length, said.client));
    assert_eq!(said, plainly(bytes), "{}", bytes.escape_ascii());
}

#[test]
fn anything_may_come() {
    for (i, bytes) in corpus(include_str!("../../tests/corpus/proxy_protocol.hex")).into_iter().enumerate() {
        assert_read_alike(&bytes);
        for seed in 0..400 {
            let mut mutated = bytes.clone();
            Random::new(seed << 20 | i as u64).mutate(&mut mutated, 4);
            assert_read_alike(&mutated);
        }
    }
}
