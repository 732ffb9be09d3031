//! A load at a fixed rate, and an origin: the two ends of `bench/latency`.
//!
//! `open_loop origin PORT BYTES` answers every request with BYTES bytes. `open_loop load PORT RATE SECONDS CONNECTIONS`
//! sends RATE requests a second regardless of the answers; latency counts from the instant at which a request was due,
//! so a proxy that stalls cannot hide it ("coordinated omission").
#![forbid(unsafe_code)]

use rustix::event::Timespec;
use rustix::event::epoll;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args.get(i).and_then(|s| s.parse::<u64>().ok());
    match (args.first().map(String::as_str), number(1), number(2), number(3), number(4)) {
        (Some("origin"), Some(port), Some(bytes), _, _) => origin(port as u16, bytes as usize),
        (Some("load"), Some(port), Some(rate), Some(seconds), Some(connections)) => {
            load(port as u16, rate, seconds, connections as usize)
        }
        _ => Err(io::Error::other("usage: open_loop origin PORT BYTES | load PORT RATE SECONDS CONNECTIONS")),
    }
}

fn watch(epoll: &impl std::os::fd::AsFd, stream: &TcpStream, number: u64) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    Ok(epoll::add(epoll, stream, epoll::EventData::new_u64(number), epoll::EventFlags::IN)?)
}

fn origin(port: u16, bytes: usize) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(u64::MAX), epoll::EventFlags::IN)?;
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + bytes, b'x');
    let mut clients: Vec<Option<TcpStream>> = Vec::new();
    let mut events = Vec::with_capacity(256);
    let mut buffer = [0; 16384];
    loop {
        events.clear();
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let n = event.data.u64();
            if n == u64::MAX {
                while let Ok((stream, _)) = listener.accept() {
                    watch(&epoll, &stream, clients.len() as u64)?;
                    clients.push(Some(stream));
                }
                continue;
            }
            let Some(slot) = clients.get_mut(n as usize) else { continue };
            let Some(stream) = slot else { continue };
            match stream.read(&mut buffer) {
                Ok(got) if got > 0 => {
                    let requests = buffer[..got].windows(4).filter(|w| w == b"\r\n\r\n").count();
                    for _ in 0..requests {
                        stream.set_nonblocking(false)?;
                        stream.write_all(&answer)?;
                        stream.set_nonblocking(true)?;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                _ => *slot = None,
            }
        }
    }
}

struct Client {
    stream: TcpStream,
    due: Option<Instant>,
    left: usize,
}

fn load(port: u16, rate: u64, seconds: u64, connections: usize) -> io::Result<()> {
    const ASK: &[u8] =
        b"GET /64 HTTP/1.1\r\nHost: bench.example\r\nUser-Agent: open-loop\r\nAccept: */*\r\n\r\n";
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut clients = Vec::new();
    for n in 0..connections {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        watch(&epoll, &stream, n as u64)?;
        clients.push(Client { stream, due: None, left: 0 });
    }
    let mut free: Vec<usize> = (0..connections).collect();
    let (mut waiting, mut took, mut failed) = (VecDeque::new(), Vec::new(), 0u64);
    let gap = Duration::from_nanos(1_000_000_000 / rate.max(1));
    let begin = Instant::now();
    let total = rate * seconds;
    let mut sent = 0u64;
    let mut events = Vec::with_capacity(256);
    let mut buffer = vec![0; 1 << 17];
    while (took.len() as u64 + failed) < total && begin.elapsed() < Duration::from_secs(seconds + 10) {
        let now = Instant::now();
        while sent < total && begin + gap * sent as u32 <= now {
            waiting.push_back(begin + gap * sent as u32);
            sent += 1;
        }
        while let (Some(&due), Some(n)) = (waiting.front(), free.last().copied()) {
            waiting.pop_front();
            free.pop();
            clients[n].due = Some(due);
            clients[n].left = 0;
            if clients[n].stream.write_all(ASK).is_err() {
                failed += 1;
            }
        }
        let next = (begin + gap * sent as u32).saturating_duration_since(Instant::now());
        let most = if sent < total { next } else { Duration::from_millis(100) };
        let limit = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
        events.clear();
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&limit))?;
        for event in &events {
            let n = event.data.u64() as usize;
            let client = &mut clients[n];
            let Ok(got) = client.stream.read(&mut buffer) else { continue };
            let Some(due) = client.due else { continue };
            if client.left == 0 {
                let head = buffer[..got].windows(4).position(|w| w == b"\r\n\r\n").map_or(got, |p| p + 4);
                let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
                let length =
                    text.split("content-length: ").nth(1).and_then(|t| t.split("\r\n").next()?.parse().ok());
                if !text.starts_with("http/1.1 200") || length.is_none() {
                    return Err(io::Error::other(format!("an answer that is none: {text:.60}")));
                }
                client.left = head + length.unwrap_or(0usize);
            }
            client.left = client.left.saturating_sub(got);
            if client.left == 0 {
                took.push(due.elapsed().as_nanos() as u64);
                client.due = None;
                free.push(n);
            }
        }
    }
    took.sort_unstable();
    let at = |q: f64| {
        took.get(((took.len() as f64 * q) as usize).min(took.len().saturating_sub(1))).copied().unwrap_or(0)
    };
    println!(
        "{{\"requests\": {}, \"failed\": {}, \"p50_us\": {:.1}, \"p90_us\": {:.1}, \"p99_us\": {:.1}, \"p999_us\": {:.1}}}",
        took.len(),
        failed + (total - took.len() as u64 - failed),
        at(0.5) as f64 / 1e3,
        at(0.9) as f64 / 1e3,
        at(0.99) as f64 / 1e3,
        at(0.999) as f64 / 1e3
    );
    Ok(())
}
