//! A name server for tests, on one port of loopback by UDP and TCP: a function gives its answers.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The most bytes of an answer by UDP, as without EDNS (RFC 1035, 4.2.1).
const MOST_UDP: usize = 512;

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const SRV: u16 = 33;

/// An answer.
#[derive(Clone)]
pub(super) enum Reply {
    /// Those of these records that have the type of the question, and all aliases.
    Records(Vec<Record>),
    /// The same of the first of these, with the others in the additional section.
    Both(Vec<Record>, Vec<Record>),
    /// As [`Reply::Records`], but a question for AAAA gets no answer.
    SilentV6(Vec<Record>),
    /// No record, and this code: 2 is a failure, 3 that there is no such name, 5 a refusal.
    Code(u8),
}

/// A record as it is on the wire.
#[derive(Clone)]
pub(super) struct Record {
    kind: u16,
    bytes: Vec<u8>,
}

/// The server. Its threads end with the process.
pub(super) struct FakeServer {
    /// `127.0.0.1:port`.
    pub(super) at: String,
    by_tcp: Arc<AtomicUsize>,
}

impl FakeServer {
    /// `answer` is given the name of a question, in small letters and without its final dot.
    pub(super) fn start(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> FakeServer {
        let (udp, tcp) = sockets();
        let at = tcp.local_addr().expect("an address").to_string();
        let answer = Arc::new(answer);
        let by_tcp = Arc::new(AtomicUsize::new(0));
        let answer_udp = answer.clone();
        std::thread::spawn(move || {
            let mut packet = [0; 1500];
            while let Ok((n, from)) = udp.recv_from(&mut packet) {
                if let Some(bytes) = respond(&packet[..n], &*answer_udp, MOST_UDP) {
                    // A client that has gone does not end the server.
                    let _ = udp.send_to(&bytes, from);
                }
            }
        });
        let count = by_tcp.clone();
        std::thread::spawn(move || {
            for stream in tcp.incoming().flatten() {
                let (answer, count) = (answer.clone(), count.clone());
                std::thread::spawn(move || serve(stream, &*answer, &count));
            }
        });
        FakeServer { at, by_tcp }
    }

    /// Questions by TCP so far.
    pub(super) fn count_by_tcp(&self) -> usize {
        self.by_tcp.load(SeqCst)
    }
}

/// An A or AAAA record with a TTL of a second.
pub(super) fn address(owner: &str, ip: &str) -> Record {
    match ip.parse().expect("an address") {
        IpAddr::V4(ip) => record(owner, A, &ip.octets()),
        IpAddr::V6(ip) => record(owner, AAAA, &ip.octets()),
    }
}

/// An SRV record with a TTL of a second.
pub(super) fn service(owner: &str, priority: u16, weight: u16, target: &str, port: u16) -> Record {
    let mut data: Vec<u8> = [priority, weight, port].iter().flat_map(|n| n.to_be_bytes()).collect();
    data.extend(encode(target));
    record(owner, SRV, &data)
}

/// A CNAME record with a TTL of a second.
pub(super) fn alias(owner: &str, target: &str) -> Record {
    record(owner, CNAME, &encode(target))
}

fn record(owner: &str, kind: u16, data: &[u8]) -> Record {
    let mut bytes = encode(owner);
    bytes.extend(kind.to_be_bytes());
    // The class of the Internet, and the TTL.
    bytes.extend([0, 1, 0, 0, 0, 1]);
    bytes.extend(u16::try_from(data.len()).expect("short data").to_be_bytes());
    bytes.extend(data);
    Record { kind, bytes }
}

/// A name as it is on the wire, not compressed.
fn encode(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).expect("a short label"));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

/// Sockets with one port that the system chooses.
fn sockets() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        // The port may be another's by UDP.
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().expect("an address")) {
            return (udp, tcp);
        }
    }
    panic!("no port is free by UDP and TCP");
}

/// Answers the questions of a connection, each after its length (RFC 1035, 4.2.2).
fn serve(mut stream: TcpStream, answer: &dyn Fn(&str) -> Reply, count: &AtomicUsize) {
    let mut length = [0; 2];
    while stream.read_exact(&mut length).is_ok() {
        let mut packet = vec![0; usize::from(u16::from_be_bytes(length))];
        if stream.read_exact(&mut packet).is_err() {
            return;
        }
        count.fetch_add(1, SeqCst);
        let Some(bytes) = respond(&packet, answer, usize::from(u16::MAX)) else { continue };
        let mut out = u16::try_from(bytes.len()).expect("a short answer").to_be_bytes().to_vec();
        out.extend(bytes);
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

/// The answer to a packet with one question (RFC 1035, 4), if it gets one; cut off above `most` bytes.
fn respond(packet: &[u8], answer: &dyn Fn(&str) -> Reply, most: usize) -> Option<Vec<u8>> {
    let (name, length) = decode(packet.get(12..)?)?;
    let question = packet.get(12..12 + length + 4)?;
    let kind = u16::from_be_bytes([question[length], question[length + 1]]);
    let (code, all, mut additional) = match answer(&name) {
        Reply::SilentV6(_) if kind == AAAA => return None,
        Reply::Records(all) | Reply::SilentV6(all) => (0, all, Vec::new()),
        Reply::Both(all, additional) => (0, all, additional),
        Reply::Code(code) => (code, Vec::new(), Vec::new()),
    };
    let is_wanted = |record: &Record| record.kind == kind || record.kind == CNAME;
    let mut records: Vec<Record> = all.into_iter().filter(is_wanted).collect();
    let bytes: usize = records.iter().chain(&additional).map(|record| record.bytes.len()).sum();
    let is_cut = 12 + question.len() + bytes > most;
    if is_cut {
        records.clear();
        additional.clear();
    }
    let mut out = packet[..2].to_vec();
    out.extend([if is_cut { 0x83 } else { 0x81 }, 0x80 | code, 0, 1]);
    out.extend(u16::try_from(records.len()).expect("few records").to_be_bytes());
    out.extend([0; 2]);
    out.extend(u16::try_from(additional.len()).expect("few records").to_be_bytes());
    out.extend(question);
    for record in records.iter().chain(&additional) {
        out.extend(&record.bytes);
    }
    Some(out)
}

/// The name at the start of these bytes, and its length there.
fn decode(bytes: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), 0);
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        let label = bytes.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += length;
    }
}
