//! What systemd, or any parent that does as it does, gives and is told (`docs/spec/operating.md#supervision`): sockets that
//! listen (`LISTEN_FDS`), and how far this process is (`NOTIFY_SOCKET`). Without such a parent nothing happens here.

use crate::failure::Failure;
use listenfd::ListenFd;
use sd_notify::NotifyState::{self, MainPid, Ready, Reloading, Status, Stopping, Watchdog};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use weir_serve::{Inherited, Remote};

/// The sockets that the parent has opened; `None`: none. To be called before any child begins, who would inherit them.
pub(super) fn inherited() -> Result<Option<Arc<Inherited>>, Failure> {
    let mut given = ListenFd::from_env();
    let all = Inherited::default();
    for at in 0..given.len() {
        let tcp = given.take_tcp_listener(at).ok().flatten().map(Into::into);
        let socket = tcp.or_else(|| given.take_unix_listener(at).ok().flatten().map(Into::into));
        let added = socket.map(|socket| all.add(socket, None));
        if !matches!(added, Some(Ok(()))) {
            return Err(Failure::Environment(format!(
                "socket {} of LISTEN_FDS is no stream socket that listens; weir takes sockets of ListenStream= only",
                at + 3
            )));
        }
    }
    Ok((given.len() > 0).then(|| Arc::new(all)))
}

/// That a socket which was given fits no listener, if one does.
pub(super) fn all_taken(given: Option<&Arc<Inherited>>) -> Result<(), Failure> {
    match given.map(|given| given.left()).unwrap_or_default().as_slice() {
        [] => Ok(()),
        left => Err(Failure::Environment(format!(
            "LISTEN_FDS has a socket at {}, and no listener of the file has that address; leave it out of the socket unit, \
             or give a listener that address",
            left.join(", ")
        ))),
    }
}

/// Says something to the parent, if it listens.
fn say(states: &[NotifyState<'_>]) {
    // Who does not listen need not hear it.
    let _ = sd_notify::notify(states);
}

/// It accepts.
pub(super) fn ready(listeners: usize) {
    let of = if listeners == 1 { "" } else { "s" };
    say(&[Ready, Status(&format!("serving {listeners} listener{of}"))]);
}

/// It accepts in place of another, and is the main process from now on.
pub(super) fn relieves() {
    say(&[MainPid(std::process::id()), Ready]);
}

/// The file is read again.
pub(super) fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        say(&[Reloading, now]);
    }
}

/// It was, and this came of it.
pub(super) fn reloaded(result: &Result<String, String>) {
    let words = match result {
        Ok(changes) => changes.clone(),
        Err(wrong) => format!("serves as before: {}", wrong.lines().next().unwrap_or_default()),
    };
    say(&[Ready, Status(&words)]);
}

/// It drains.
pub(super) fn stopping() {
    say(&[Stopping, Status("draining")]);
}

/// Says again and again that it lives, while all loops answer; until it is dropped.
pub(super) struct Watched(#[allow(dead_code, reason = "dropped, it ends the thread")] Option<Sender<()>>);

impl Watched {
    /// By the interval that the parent wants, if it wants any.
    pub fn start(remote: Remote) -> Watched {
        let Some(most) = sd_notify::watchdog_enabled() else { return Watched(None) };
        let (sender, ended) = channel::<()>();
        let every = most / 3;
        let began = std::thread::Builder::new().name("weir-watchdog".to_owned()).spawn(move || {
            while ended.recv_timeout(every.max(Duration::from_millis(10))).is_err_and(|e| e == TIMEOUT) {
                if remote.all_answer() {
                    say(&[Watchdog]);
                }
            }
        });
        Watched(began.is_ok().then_some(sender))
    }
}

const TIMEOUT: std::sync::mpsc::RecvTimeoutError = std::sync::mpsc::RecvTimeoutError::Timeout;
