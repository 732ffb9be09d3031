//! Errors of the system in words, with the remedy where descriptors have run out.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io;

/// How many descriptors this process may have.
pub fn descriptors() -> usize {
    let now = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    usize::try_from(now).unwrap_or(usize::MAX)
}

/// What can be done where descriptors have run out.
pub fn remedy(e: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(e)? {
        Errno::MFILE => Some("raise the limit (`ulimit -n`, LimitNOFILE= of a systemd unit)"),
        Errno::NFILE => Some("the whole machine has no more: raise the sysctl fs.file-max"),
        _ => None,
    }
}

/// An error of the system, with the remedy where descriptors have run out.
pub fn explain(e: &io::Error) -> String {
    remedy(e).map_or_else(|| e.to_string(), |remedy| format!("{e}; {remedy}"))
}

/// Whether descriptors or ports of this machine have run out.
pub fn is_exhausted(e: &io::Error) -> bool {
    matches!(Errno::from_io_error(e), Some(Errno::MFILE | Errno::NFILE | Errno::ADDRNOTAVAIL | Errno::NOBUFS))
}

/// Whether so many descriptors could still be opened.
///
/// # Errors
/// Why not.
pub fn ensure_descriptors(descriptors: usize) -> io::Result<()> {
    let some = || socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None);
    (0..descriptors).map(|_| some()).collect::<io::Result<Vec<_>>>().map(drop)
}
