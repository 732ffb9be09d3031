//! Waiting for events of watched folders, for a bell, or for an instant.

use super::Watch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};

/// Waits until there are events, the bell (an eventfd) has rung, or the time is over; `None`: it has no end. The bell is
/// silent after that.
pub(crate) fn wait_for_change(watch: &Watch, bell: &OwnedFd, pause_ns: Option<u64>) {
    let pause = pause_ns
        .map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 });
    let mut fds = vec![PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)];
    fds.extend(watch.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    // A signal ends the wait too early, which does no harm.
    let _ = poll(&mut fds, pause.as_ref());
    // What it has rung for is there by now.
    let _ = rustix::io::read(bell, &mut [0; 8]);
}
