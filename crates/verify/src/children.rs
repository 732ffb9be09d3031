//! The processes of a run: each is this program with the argument [`CHILD`], controlled by lines on its standard
//! input and ended by the end of that, so that none outlives its parent.

use crate::busy::waited_ns;
use crate::part::{ChildAddresses, ChildReport, Part, Setup};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_plan::json;
use weir_plan::serving::serving_of;
use weir_plan::{NodeId, with_inner};
use weir_serve::{Options, PlayerMailbox, Running, VerifyRun, start};
use weir_stats::Key;

/// The argument that makes the program a process of a run.
pub const CHILD: &str = "__part";

/// The line that ends a process: it reports what happened, and exits.
const END: &str = "end\n";

/// The time in which a process must start, and must report at its end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The part of standard error that is kept, bytes.
const MOST_SAID: usize = 4096;

/// Why a process of a run fails, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChildError(String);

impl fmt::Display for ChildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChildError {}

/// A process of a run; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Child {
    what: &'static str,
    child: std::process::Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    said: Arc<Mutex<Vec<u8>>>,
}

impl Child {
    /// Starts a process and returns its addresses. `gone` becomes true when it has ended.
    pub fn begin(
        exe: &Path,
        what: &'static str,
        setup: &Setup,
        gone: &Arc<AtomicBool>,
    ) -> Result<(Child, ChildAddresses), ChildError> {
        let failed = |why: String| ChildError(format!("the {what} of the run cannot start: {why}"));
        let mut child = Command::new(exe)
            .arg(CHILD)
            // Ctrl-C is for the parent.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| failed(e.to_string()))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed("it has no pipes".to_owned()));
        };
        let (tell, lines) = channel();
        let gone = gone.clone();
        std::thread::spawn(move || {
            let _gone = EndFlag(gone);
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let said = Arc::new(Mutex::new(Vec::new()));
        let keeps = said.clone();
        std::thread::spawn(move || keep(stderr, &keeps));
        let mut child = Child { what, child, stdin: Some(stdin), lines, said };
        let mut line = serde_json::to_vec(setup).map_err(|e| failed(e.to_string()))?;
        line.push(b'\n');
        child.tell(&line);
        let begun = child.hear()?;
        Ok((child, begun))
    }

    /// Sends it a line. If it has ended, reading its answer fails.
    fn tell(&mut self, line: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(line);
        }
    }

    fn hear<T: DeserializeOwned>(&mut self) -> Result<T, ChildError> {
        let heard = match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => json::from_slice(line.as_bytes())
                .map_err(|e| format!("the {} sent an invalid message: {e}", self.what)),
            Err(RecvTimeoutError::Timeout) => Err(format!("the {} of the run does not answer", self.what)),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
                let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
                let said = String::from_utf8_lossy(&said);
                Err(format!("the {} of the run exited early ({status}) {}", self.what, said.trim()))
            }
        };
        heard.map_err(ChildError)
    }

    /// Ends it, and returns its report.
    pub fn end(mut self) -> Result<ChildReport, ChildError> {
        self.tell(END.as_bytes());
        self.hear()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sets a flag when dropped: the process has ended.
struct EndFlag(Arc<AtomicBool>);

impl Drop for EndFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Keeps the end of the standard error of a process.
fn keep(mut from: impl Read, said: &Mutex<Vec<u8>>) {
    let mut some = [0; 1024];
    while let Ok(n @ 1..) = from.read(&mut some) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&some[..n]);
        let beyond = said.len().saturating_sub(MOST_SAID);
        said.drain(..beyond);
    }
}

/// A process of a run, from its first line to its last.
pub fn child() -> ExitCode {
    match part() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "{why}");
            ExitCode::from(3)
        }
    }
}

fn failed(why: impl fmt::Display) -> ChildError {
    ChildError(why.to_string())
}

fn part() -> Result<(), ChildError> {
    let mut input = BufReader::new(std::io::stdin());
    let mut line = String::new();
    input.read_line(&mut line).map_err(failed)?;
    let setup: Setup = json::from_slice(line.as_bytes()).map_err(failed)?;
    let (tell, heard) = channel();
    let (running, begun) = begin(setup, tell)?;
    say(&begun)?;
    let before = waited_ns();
    line.clear();
    input.read_line(&mut line).map_err(failed)?;
    if line != END {
        // The parent is gone: no report.
        return Ok(());
    }
    let waited_ns = waited_ns().zip(before).map(|(now, before)| now.saturating_sub(before));
    running.remote().drain();
    running.join().map_err(failed)?;
    say(&ChildReport { waited_ns, ..heard.try_iter().collect() })
}

fn begin(setup: Setup, told: Sender<weir_serve::RunEvent>) -> Result<(Running, ChildAddresses), ChildError> {
    let Setup { mut point, fleets, timetable, listener, root, key, secret, begins_ns, records, part } = setup;
    point.fleets = fleets.map(Arc::new);
    let serving = serving_of(&point, &[listener], true).map_err(|_| failed("it cannot be served"))?;
    let (nodes, part) = match part {
        Part::Routes { servers, listeners } => {
            let apart: BTreeMap<NodeId, SocketAddr> = listeners.into_iter().collect();
            let mut own = with_inner(&point, &[listener]);
            own.retain(|id| !apart.contains_key(id));
            (own, weir_serve::RunRole::Routes { servers: servers.into_iter().collect(), listeners: apart })
        }
        Part::Serves(roots) => (Vec::new(), weir_serve::RunRole::Serves(roots)),
    };
    let key = Key::from_bits(key);
    let player = PlayerMailbox::default();
    let paired =
        VerifyRun { key, secret, root, begins_ns, role: part, timetable, records, events: told, player };
    let options =
        Options { quiet: true, loops: Some(1), paired: Some(Arc::new(paired)), ..Options::default() };
    let running = start(&Arc::new(point), &Arc::new(serving), &nodes, &options).map_err(failed)?;
    // Inner listeners without their own process are reached only from here.
    let outermost = running.listening.iter().map(|l| l.level).min().unwrap_or(0);
    let own = running.listening.iter().filter(|l| l.level == outermost);
    let loops = own.map(|l| l.addr.parse().map_err(|_| failed("no address of TCP")));
    let begun =
        ChildAddresses { loops: loops.collect::<Result<_, ChildError>>()?, servers: running.servers.clone() };
    Ok((running, begun))
}

fn say(what: &impl Serialize) -> Result<(), ChildError> {
    let mut line = serde_json::to_vec(what).map_err(failed)?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).map_err(failed)
}
