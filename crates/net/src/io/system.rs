//! Errors of the system in words, with the remedy where descriptors have run out.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io;

/// The limit of this process's descriptors.
pub fn descriptors() -> usize {
    let now = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    usize::try_from(now).unwrap_or(usize::MAX)
}

/// The remedy for an error, if descriptors have run out.
pub fn remedy(e: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(e)? {
        Errno::MFILE => Some("raise the limit (`ulimit -n`, LimitNOFILE= of a systemd unit)"),
        Errno::NFILE => Some("the whole machine has run out: raise the sysctl fs.file-max"),
        _ => None,
    }
}

/// The system's words for an error, without Rust's `(os error 2)`.
pub fn words(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

/// The text of a system error, with the remedy if descriptors have run out.
pub fn explain(e: &io::Error) -> String {
    remedy(e).map_or_else(|| e.to_string(), |remedy| format!("{e}; {remedy}"))
}

/// Whether descriptors or ports of this machine have run out.
pub fn is_exhausted(e: &io::Error) -> bool {
    matches!(Errno::from_io_error(e), Some(Errno::MFILE | Errno::NFILE | Errno::ADDRNOTAVAIL | Errno::NOBUFS))
}

/// The error of a system without descriptors for this process.
pub fn exhausted() -> io::Error {
    Errno::MFILE.into()
}

/// Checks that this number of descriptors can still be opened.
///
/// # Errors
/// The error of opening one more.
pub fn ensure_descriptors(descriptors: usize) -> io::Result<()> {
    let some = || socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None);
    (0..descriptors).map(|_| some()).collect::<io::Result<Vec<_>>>().map(drop)
}
