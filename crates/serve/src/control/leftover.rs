//! Listening sockets of a predecessor for which the new file has no listener. While the predecessor drains, clients
//! there are refused in words (503, `Connection: close`), so that none waits before a socket that nothing accepts from;
//! then the sockets close (`docs/spec/operating.md#replace`).
//!
//! A thread of its own serves all of them: nothing here is on the path of a request that a listener takes.

use super::remote::Remote;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags, accept_with, recv, send, shutdown};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 24\r\n\
Connection: close\r\n\r\n503 Service Unavailable\n";

/// The time that a refused client has to send its head and to read the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most clients at once; for one more the oldest is closed.
const MOST: usize = 256;

/// The first byte of a TLS client, for which there is no answer without a certificate.
const TLS_HANDSHAKE: u8 = 0x16;

/// Refuses clients until the predecessor has ended, which `stream` shows.
pub(super) fn refuse(left: Vec<(String, OwnedFd)>, stream: UnixStream, by: &Remote) {
    if left.is_empty() {
        return;
    }
    let (mut names, sockets): (Vec<String>, Vec<OwnedFd>) = left.into_iter().unzip();
    names.dedup();
    let names = names.join(", ");
    by.say(&format!(
        "no listener has the address {names}, which the replaced process accepted at: clients there get 503 until that \
         process has drained"
    ));
    let remote = by.clone();
    let mut leftover = Leftover { sockets, clients: Vec::new() };
    let run = move || {
        while leftover.turn(&stream) {}
        drop(leftover);
        remote.say(&format!("{names} is closed: the replaced process has ended"));
    };
    // Without a thread the sockets close now.
    drop(std::thread::Builder::new().name("weir-leftover".to_owned()).spawn(run));
}

struct Leftover {
    sockets: Vec<OwnedFd>,
    clients: Vec<Client>,
}

struct Client {
    socket: OwnedFd,
    until: Instant,
    is_answered: bool,
}

impl Leftover {
    /// Waits until something happens and serves it; `false`: the predecessor has ended.
    fn turn(&mut self, stream: &UnixStream) -> bool {
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        let ready: Vec<bool> = {
            let all = [stream.as_fd()].into_iter().chain(self.sockets.iter().map(AsFd::as_fd));
            let all = all.chain(self.clients.iter().map(|client| client.socket.as_fd()));
            let mut polled: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            let timeout = if self.clients.is_empty() { None } else { Some(&second) };
            // Interrupted, or out of memory: nothing is ready.
            let _ = poll(&mut polled, timeout);
            polled.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        if ready[0] {
            return false;
        }
        let (sockets, clients) = ready[1..].split_at(self.sockets.len());
        let now = Instant::now();
        let mut is_ready = clients.iter();
        self.clients.retain_mut(|client| {
            let is_ready = is_ready.next().is_some_and(|ready| *ready);
            client.until > now && (!is_ready || client.reads())
        });
        for (socket, _) in self.sockets.iter().zip(sockets).filter(|(_, ready)| **ready) {
            if let Ok(accepted) = accept_with(socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                if self.clients.len() >= MOST {
                    self.clients.remove(0);
                }
                self.clients.push(Client { socket: accepted, until: now + PATIENCE, is_answered: false });
            }
        }
        true
    }
}

impl Client {
    /// Reads what there is; at the first bytes it answers. `false`: it has ended.
    fn reads(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let Ok((count, _)) = recv(&self.socket, &mut bytes[..], RecvFlags::empty()) else { return false };
        if count == 0 || !self.is_answered && bytes[0] == TLS_HANDSHAKE {
            return false;
        }
        if !std::mem::replace(&mut self.is_answered, true) {
            // As in a lingering close: bytes that arrive after the answer must not reset the connection.
            let sent = send(&self.socket, REFUSAL, SendFlags::NOSIGNAL);
            return sent.is_ok() && shutdown(&self.socket, Shutdown::Write).is_ok();
        }
        true
    }
}
