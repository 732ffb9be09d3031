//! The protocol of systemd and compatible parents (`docs/spec/operating.md#supervision`): takes listening sockets
//! (`LISTEN_FDS`) and reports the state of this process (`NOTIFY_SOCKET`). Without such a parent it does nothing.

use crate::failure::Failure;
use listenfd::ListenFd;
use sd_notify::NotifyState::{self, MainPid, Ready, Reloading, Status, Stopping, Watchdog};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use weir_serve::{Inherited, ReloadError, Remote};

/// The sockets that the parent has opened; `None`: none. Must be called before any child starts, which would inherit
/// them.
pub(super) fn inherited() -> Result<Option<Arc<Inherited>>, Failure> {
    let mut given = ListenFd::from_env();
    let all = Inherited::default();
    for at in 0..given.len() {
        let tcp = given.take_tcp_listener(at).ok().flatten().map(Into::into);
        let socket = tcp.or_else(|| given.take_unix_listener(at).ok().flatten().map(Into::into));
        let added = socket.map(|socket| all.add_kept(socket));
        if !matches!(added, Some(Ok(()))) {
            return Err(Failure::Environment(format!(
                "socket {} of LISTEN_FDS is not a listening stream socket; weir accepts sockets of ListenStream= only",
                at + 3
            )));
        }
    }
    Ok((given.len() > 0).then(|| Arc::new(all)))
}

/// Fails if an inherited socket belongs to no listener.
pub(super) fn all_taken(given: Option<&Arc<Inherited>>) -> Result<(), Failure> {
    match given.map(|given| given.left()).unwrap_or_default().as_slice() {
        [] => Ok(()),
        left => Err(Failure::Environment(format!(
            "LISTEN_FDS has a socket at {}, but no listener of the file has that address; remove it from \
                the socket unit, or give a listener that address",
            left.join(", ")
        ))),
    }
}

/// Notifies the parent, if it listens.
fn say(states: &[NotifyState<'_>]) {
    // A parent that does not listen misses nothing.
    let _ = sd_notify::notify(states);
}

/// Reports that this process accepts.
pub(super) fn ready(listeners: usize) {
    let of = if listeners == 1 { "" } else { "s" };
    say(&[Ready, Status(&format!("serving {listeners} listener{of}"))]);
}

/// Reports that this process accepts in place of another, and is the main process.
pub(super) fn relieves() {
    say(&[MainPid(std::process::id()), Ready]);
}

/// Reports that the file is being reloaded.
pub(super) fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        say(&[Reloading, now]);
    }
}

/// Reports the result of a reload.
pub(super) fn reloaded(result: &Result<String, ReloadError>) {
    let words = match result {
        Ok(changes) => changes.clone(),
        Err(wrong) => format!("serves as before: {}", wrong.0.lines().next().unwrap_or_default()),
    };
    say(&[Ready, Status(&words)]);
}

/// Reports that this process drains.
pub(super) fn stopping() {
    say(&[Stopping, Status("draining")]);
}

/// Sends watchdog notifications while all loops answer; stops when dropped.
pub(super) struct Watched(#[allow(dead_code, reason = "dropped, it ends the thread")] Option<Sender<()>>);

impl Watched {
    /// Starts at a third of the interval that the parent requires, if it requires one.
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
