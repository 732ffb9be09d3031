//! The destination of the access log's lines, which are written whole or not at all.
//!
//! The buffer belongs to the log, and holds unwritten bytes: when writing fails, the lines in it are lost and
//! counted, and none of them appears later. A partially written line is cut back; where that is impossible, as in a
//! pipe, its rest stays in the buffer and is written before anything else.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::time::Duration;

/// Bytes that are gathered before they are written.
const PIECE: usize = 64 * 1024;

/// A file, a pipe or a terminal.
pub(super) struct Output<F = File> {
    file: F,
    buffer: Vec<u8>,
    /// Whether the buffer begins with the rest of a partially written line.
    is_torn: bool,
    /// Lines that were not written, and will not be.
    lost: u64,
    why: Option<io::Error>,
    blocked: bool,
}

/// The kind of output: it can be cut back, or not.
pub(super) trait Sink: Write {
    /// Removes the bytes written last.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}

impl Sink for File {
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        // If another process has written or cut meanwhile, the end is not ours.
        let end = self.stream_position()?;
        if self.metadata()?.len() != end || end < bytes {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.set_len(end - bytes)?;
        // Standard output may be a file that is not opened for appending.
        self.seek(SeekFrom::Start(end - bytes)).map(drop)
    }
}

impl Output {
    /// `stdout`, `stderr`, or a file that is appended to.
    pub fn open(to: &str) -> io::Result<Output> {
        // Not by the standard library's handles, which have a buffer of their own.
        let file = match to {
            "stdout" => standard(io::stdout().as_fd(), "/proc/self/fd/1")?,
            "stderr" => standard(io::stderr().as_fd(), "/proc/self/fd/2")?,
            path => without_waiting().create(true).append(true).open(path).map_err(without_reader)?,
        };
        Ok(Output::new(file))
    }

    /// Waits until the output is writable, at most for this time; regular files always are.
    pub fn wait(&self, most: Duration) {
        let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
        // Regardless of the result, writing is tried.
        let _ = poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(&most));
    }
}

/// Neither opening a pipe nor writing to it waits for a reader.
fn without_waiting() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NONBLOCK.bits() as i32);
    options
}

/// Standard output or error, reopened if it is a pipe or a terminal: other processes share it, and may want to wait.
fn standard(fd: BorrowedFd<'_>, path: &str) -> io::Result<File> {
    let file = File::from(fd.try_clone_to_owned()?);
    let kind = file.metadata()?.file_type();
    if !kind.is_fifo() && !kind.is_char_device() {
        return Ok(file);
    }
    Ok(without_waiting().append(true).open(path).unwrap_or(file))
}

/// A pipe without a reader cannot be opened: explained in words.
fn without_reader(e: io::Error) -> io::Error {
    match Errno::from_io_error(&e) {
        Some(Errno::NXIO) => io::Error::new(e.kind(), "no process reads this FIFO; start its reader first"),
        _ => e,
    }
}

impl<F: Sink> Output<F> {
    fn new(file: F) -> Output<F> {
        Output { file, buffer: Vec::new(), is_torn: false, lost: 0, why: None, blocked: false }
    }

    /// Lines, with their ends.
    pub fn put(&mut self, lines: &str) {
        self.buffer.extend_from_slice(lines.as_bytes());
        if self.buffer.len() >= PIECE {
            self.flush();
        }
    }

    /// Writes all lines, or loses them; those without room stay here ([`Output::is_blocked`]).
    pub fn flush(&mut self) {
        let mut written = 0;
        self.blocked = false;
        while written < self.buffer.len() {
            match self.file.write(&self.buffer[written..]) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return self.wait_for_room(written),
                Ok(0) => return self.lose(written, io::ErrorKind::WriteZero.into()),
                Ok(n) => written += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return self.lose(written, e),
            }
        }
        self.buffer.clear();
        self.is_torn = false;
    }

    /// Removes the written part of the buffer; the rest waits for room.
    fn wait_for_room(&mut self, written: usize) {
        self.blocked = true;
        if written > 0 {
            self.is_torn = self.buffer[written - 1] != b'\n';
            self.buffer.drain(..written);
        }
    }

    /// Whether lines wait for room, as in a pipe that is not read.
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Removes the written part of the buffer and drops the rest, except for a line that would be torn.
    fn lose(&mut self, written: usize, why: io::Error) {
        self.why = Some(why);
        let end = |at: usize| self.buffer[at..].iter().position(|b| *b == b'\n').map_or(at, |n| at + n + 1);
        let begun = self.buffer[..written].iter().rposition(|b| *b == b'\n').map(|n| n + 1);
        // The written part of the last line; for the line torn before, its start is not known any more.
        let part = match begun {
            Some(begun) => written - begun,
            None if self.is_torn => 0,
            None => written,
        };
        let tears = part > 0 || (self.is_torn && begun.is_none());
        self.is_torn = tears && (part == 0 || self.file.cut(part as u64).is_err());
        let kept = if self.is_torn { end(written) } else { written };
        self.lost += ends(&self.buffer[kept..]);
        self.buffer.truncate(kept);
        self.buffer.drain(..written);
    }

    /// Ends writing: a line with its rest still here is lost as well.
    pub fn give_up(&mut self) {
        self.lost += ends(&self.buffer);
        self.buffer.clear();
        (self.is_torn, self.blocked) = (false, false);
    }

    /// The number of lines lost since the last call, and the reason of the last.
    pub fn lost(&mut self) -> (u64, Option<io::Error>) {
        (std::mem::take(&mut self.lost), self.why.take())
    }
}

/// The number of lines that end in it.
fn ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|b| **b == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts this number of bytes more, and then none.
    struct Narrow {
        got: Vec<u8>,
        room: usize,
        can_cut: bool,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room);
            if n == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= n;
            self.got.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Narrow {
        fn cut(&mut self, bytes: u64) -> io::Result<()> {
            if !self.can_cut {
                return Err(io::ErrorKind::Unsupported.into());
            }
            self.got.truncate(self.got.len() - bytes as usize);
            self.room += bytes as usize;
            Ok(())
        }
    }

    /// For any room at any time: each line is there once or counted, and none is torn.
    #[test]
    fn every_line_is_whole_or_lost() {
        for can_cut in [true, false] {
            for rooms in (0..30).flat_map(|a| (0..30).map(move |b| [a, b])) {
                let mut out = Output::new(Narrow { got: Vec::new(), room: 0, can_cut });
                let mut number = 100;
                for room in rooms.into_iter().chain([1, 1000]) {
                    out.file.room = room;
                    for _ in 0..3 {
                        out.put(&format!("<{number}>\n"));
                        number += 1;
                    }
                    out.flush();
                }
                let text = String::from_utf8(out.file.got.clone()).unwrap();
                let lines: Vec<&str> = text.lines().collect();
                assert!(lines.iter().all(|l| l.len() == 5 && l.starts_with('<')), "{rooms:?}: {lines:?}");
                assert!(lines.is_sorted_by(|a, b| a < b), "{rooms:?}: {lines:?}");
                assert_eq!(out.lost().0 + lines.len() as u64, 12, "{rooms:?}: {lines:?}");
                assert!(out.buffer.is_empty() && !out.is_torn);
            }
        }
    }

    #[test]
    fn what_is_given_up_is_lost() {
        let mut out = Output::new(Narrow { got: Vec::new(), room: 2, can_cut: false });
        out.put("<1>\n");
        out.put("<2>\n");
        out.flush();
        assert_eq!(out.lost().0, 1);
        out.flush();
        assert_eq!(out.lost().0, 0);
        out.give_up();
        assert_eq!(out.lost().0, 1);
    }
}
