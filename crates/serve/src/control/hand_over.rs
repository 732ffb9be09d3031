//! One process takes the place of another without a refused connection (`docs/spec/operating.md#replace`): it
//! receives the listening sockets, accepts, and reports that; only then the old one drains.
//!
//! Over a Unix socket: the new process sends [`MAGIC`]; the old one answers with a line of JSON ([`Offer`]) and the
//! sockets it names, in messages of a byte with as many descriptors as one may carry; the new one sends
//! [`ACCEPTING`]. If the connection ends before that, the old one continues unaffected.

use super::leftover;
use super::remote::Remote;
pub use crate::fleets::HandedFleet;
use crate::health::snapshot::Snapshot;
use crate::threads::process::Process;
use crate::transport::inherit::Inherited;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, getsockname, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The first bytes of a successor: no request begins with them.
pub const MAGIC: &[u8] = b"\0weir hand-over 1\n";
/// The message of a successor that accepts.
const ACCEPTING: &[u8] = b"accepting\n";
/// The time that a successor may take to start: names, certificates, a large file.
const PATIENCE: Duration = Duration::from_secs(120);

/// The time that a predecessor may take to make its offer.
const ANSWER: Duration = Duration::from_secs(10);
/// Descriptors of one message; Linux allows 253.
const AT_ONCE: usize = 64;
/// The longest snapshot, bytes.
const LONGEST: u64 = 256 << 20;

/// The offer of the old process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Offer {
    /// Addresses as written, once for each socket, in their order.
    sockets: Vec<String>,
    /// Whether the parent keeps each of them open; from an older process nothing.
    #[serde(default)]
    kept: Vec<bool>,
    /// The number of its generation.
    #[serde(default)]
    generation: u32,
    snapshot: Snapshot,
    /// The members of its fleets; from an older process none.
    #[serde(default)]
    fleets: Vec<HandedFleet>,
}

/// The predecessor, as its successor sees it.
#[derive(Debug)]
pub struct Predecessor {
    stream: UnixStream,
    /// Its listening sockets.
    pub sockets: Arc<Inherited>,
    /// The number of its generation, after which those of its successor are counted.
    pub generation: u32,
    pub(crate) snapshot: Snapshot,
    /// The members of its fleets, with which those of its successor begin.
    pub fleets: Vec<HandedFleet>,
}

/// Why one process does not take the place of the other, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOverError(String);

impl fmt::Display for HandOverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HandOverError {}

impl Predecessor {
    /// Asks the process at a path for its sockets; `None`: no process listens there.
    ///
    /// # Errors
    /// It is a process that cannot hand over, or it ended.
    pub fn ask(path: &Path) -> Result<Option<Predecessor>, HandOverError> {
        let failed = |what: &str, e: io::Error| {
            HandOverError(format!("the process at {} {what}: {e}", path.display()))
        };
        let mut stream = match UnixStream::connect(path) {
            Ok(stream) => stream,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(e) => return Err(failed("cannot be reached", e)),
        };
        stream.set_read_timeout(Some(ANSWER)).map_err(|e| failed("cannot be asked", e))?;
        stream.write_all(MAGIC).map_err(|e| failed("cannot be asked", e))?;
        let gone = |e: io::Error| match e.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => HandOverError(format!(
                "the process at {} does not answer: end it, and start again",
                path.display()
            )),
            _ => failed("went away before it had handed over, or is another kind of process", e),
        };
        let mut line = Vec::new();
        // Byte by byte would take long, and a buffer might swallow the data that descriptors come with: the length
        // comes first.
        let mut length = [0; 8];
        stream.read_exact(&mut length).map_err(gone)?;
        let length = u64::from_be_bytes(length);
        if length > LONGEST {
            return Err(gone(io::Error::other("it says nonsense")));
        }
        (&mut stream).take(length).read_to_end(&mut line).map_err(gone)?;
        let offer: Offer = weir_plan::json::from_slice(&line).map_err(|e| gone(io::Error::other(e)))?;
        let sockets = Arc::new(Inherited::default());
        let mut received = receive(&stream, offer.sockets.len()).map_err(gone)?.into_iter();
        for (at, written) in offer.sockets.into_iter().enumerate() {
            let Some(socket) = received.next() else { break };
            match offer.kept.get(at) {
                Some(true) => sockets.add_kept(socket).map_err(gone)?,
                _ => sockets.add(socket, Some(written)).map_err(gone)?,
            }
        }
        let Offer { generation, snapshot, fleets, .. } = offer;
        Ok(Some(Predecessor { stream, sockets, generation, snapshot, fleets }))
    }

    /// Reports that the new process accepts: the old one may drain. Until that has ended, clients of its sockets that
    /// no listener has taken are refused in words.
    ///
    /// # Errors
    /// It has ended already, which does not matter.
    pub fn relieve(mut self, by: &Remote) -> io::Result<()> {
        let reported = self.stream.write_all(ACCEPTING);
        leftover::refuse(self.sockets.take_left(), self.stream, by);
        reported
    }
}

fn receive(stream: &UnixStream, count: usize) -> io::Result<Vec<OwnedFd>> {
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0; 1];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let message = recvmsg(stream.as_fd(), &mut [IoSliceMut::new(&mut byte)], &mut control, flags)?;
        let before = all.len();
        for one in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = one {
                all.extend(descriptors);
            }
        }
        if message.bytes == 0 || all.len() == before {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(all)
}

fn send(stream: &UnixStream, sockets: &[OwnedFd]) -> io::Result<()> {
    for some in sockets.chunks(AT_ONCE) {
        let some: Vec<_> = some.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&some)) {
            return Err(io::Error::other("too many descriptors at once"));
        }
        sendmsg(stream.as_fd(), &[IoSlice::new(b"\n")], &mut control, SendFlags::empty())?;
    }
    Ok(())
}

impl Remote {
    /// Hands over to the process at the other end, which has sent [`MAGIC`], and drains once that accepts. `extra`:
    /// more listening sockets, with their addresses as written. It waits for the outcome; on failure this process
    /// continues.
    ///
    /// # Errors
    /// Why the hand-over failed, in a sentence.
    pub fn hand_over(
        &self,
        mut stream: UnixStream,
        extra: Vec<(String, OwnedFd)>,
    ) -> Result<(), HandOverError> {
        if self.is_draining() {
            return Err(HandOverError("this process is ending already".to_owned()));
        }
        let failed = |e: io::Error| {
            HandOverError(format!("the hand-over came to nothing ({e}): this process goes on"))
        };
        let mut all = listening(self.process());
        all.extend(extra);
        let kept = self.reloader.kept_sockets();
        // Of an address that the parent keeps, its socket alone: those of the loops are copies.
        all.retain(|(_, socket)| !kept.iter().any(|(_, other)| is_same_address(socket, other)));
        let are_kept = std::iter::repeat_n(false, all.len()).chain(kept.iter().map(|_| true)).collect();
        let (written, sockets): (Vec<String>, Vec<OwnedFd>) = all.into_iter().chain(kept).unzip();
        let (generation, snapshot) = (self.config().generation, self.snapshot());
        let fleets = self.reloader.hand_fleets();
        let offer = Offer { sockets: written, kept: are_kept, generation, snapshot, fleets };
        let line = serde_json::to_vec(&offer).map_err(|e| failed(e.into()))?;
        stream.set_nonblocking(false).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        stream
            .write_all(&(line.len() as u64).to_be_bytes())
            .and_then(|()| stream.write_all(&line))
            .map_err(failed)?;
        send(&stream, &sockets).map_err(failed)?;
        // The successor has them now: should it end, they close with it, and those of this process are unaffected.
        drop(sockets);
        let mut word = Vec::new();
        BufReader::new(&stream).read_until(b'\n', &mut word).map_err(failed)?;
        if word != ACCEPTING {
            return Err(failed(io::Error::other("the successor has ended before it accepted")));
        }
        // Its end tells the successor that this process has drained.
        let _ = self.process().successor.set(stream);
        self.give_place();
        Ok(())
    }
}

/// Whether two sockets listen at one address.
fn is_same_address(one: &OwnedFd, other: &OwnedFd) -> bool {
    matches!((getsockname(one), getsockname(other)), (Ok(one), Ok(other)) if one == other)
}

/// The listening sockets of all loops, with their addresses as written.
fn listening(process: &Process) -> Vec<(String, OwnedFd)> {
    process.ask_all(|lp| lp.listening()).into_iter().flatten().flatten().collect()
}
