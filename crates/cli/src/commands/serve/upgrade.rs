//! A new binary in the place of this one (`docs/spec/operating.md#supervision`): on SIGUSR2 or `weir admin upgrade` the
//! program at the path by which this process was started starts as its child, in the same control group, and takes over
//! with `--replace`.

use super::Serve;
use super::program;
use super::successor::Successor;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use weir_serve::Remote;

/// How often the new process is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The time that the new process has to accept; the hand-over itself has two minutes.
const PATIENCE: Duration = Duration::from_secs(130);

/// Variables about this process alone: its child has no descriptors of them, and its watchdog is its own.
const OWN_VARIABLES: [&str; 4] = ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_PID"];

/// Starts the program anew.
#[derive(Debug)]
pub(super) struct Upgrade {
    /// The path by which this process was started: by now another program may be there.
    program: io::Result<PathBuf>,
    arguments: Vec<OsString>,
    is_possible: Result<(), CannotUpgrade>,
    /// One at a time.
    running: Mutex<()>,
}

/// Why no new process has taken over.
#[derive(Debug)]
pub(super) enum CannotUpgrade {
    /// Without `--control` no process can take over.
    NoControl,
    /// The file was read from standard input.
    NoFile,
    /// The program cannot be started.
    NotStarted(PathBuf, io::Error),
    /// The new process has ended before it accepted.
    Ended(String),
    /// It did not accept in time, and was ended.
    Late,
    /// This process ends already.
    Draining,
}

impl fmt::Display for CannotUpgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotUpgrade::NoControl => f.write_str("a new process takes over by the control socket: start weir with --control PATH"),
            CannotUpgrade::NoFile => f.write_str("the topology came from standard input, which a new process cannot read again: start weir with a file"),
            CannotUpgrade::NotStarted(path, e) => write!(f, "{} cannot be started: {e}", path.display()),
            CannotUpgrade::Ended(how) => write!(f, "the new process ended ({how}) before it accepted; it wrote why to standard error"),
            CannotUpgrade::Late => write!(f, "the new process did not accept within {} s and was ended", PATIENCE.as_secs()),
            CannotUpgrade::Draining => f.write_str("this process is draining already"),
        }
    }
}

impl Upgrade {
    /// To be called as the process starts.
    pub(super) fn new(args: &Serve) -> Upgrade {
        let mut arguments: Vec<OsString> = env::args_os().skip(1).collect();
        if !args.replace {
            arguments.push("--replace".into());
        }
        let is_possible = match () {
            () if args.control.is_none() => Err(CannotUpgrade::NoControl),
            () if args.file.as_os_str() == "-" => Err(CannotUpgrade::NoFile),
            () => Ok(()),
        };
        Upgrade { program: program::path(), arguments, is_possible, running: Mutex::default() }
    }

    /// Starts the new process and waits until it accepts; then this one drains. Whatever fails, this one goes on.
    pub(super) fn run(&self, remote: &Remote) -> Result<String, String> {
        let result = self.replace(remote);
        if let Err(why) = &result {
            remote.say(&format!("upgrade: {why}; this process goes on"));
        }
        result.map_err(|why| why.to_string())
    }

    fn replace(&self, remote: &Remote) -> Result<String, CannotUpgrade> {
        let _one = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.is_possible {
            Ok(()) => {}
            Err(CannotUpgrade::NoFile) => return Err(CannotUpgrade::NoFile),
            Err(_) => return Err(CannotUpgrade::NoControl),
        }
        if remote.is_draining() {
            return Err(CannotUpgrade::Draining);
        }
        let not_started = |path: &PathBuf, e: io::Error| CannotUpgrade::NotStarted(path.clone(), e);
        let program = match &self.program {
            Ok(program) => program,
            Err(e) => return Err(not_started(&"the program of this process".into(), e.kind().into())),
        };
        let mut command = Command::new(program);
        command.args(&self.arguments);
        for name in OWN_VARIABLES {
            command.env_remove(name);
        }
        let successor = Successor::start(command).map_err(|e| not_started(program, e))?;
        remote.say(&format!("upgrade: process {} starts, to take over from this one", successor.pid()));
        accepts(successor, remote)
    }
}

/// Waits until the successor has taken over.
#[expect(clippy::disallowed_methods, reason = "std waits for a child with a limit of time in no other way")]
fn accepts(mut successor: Successor, remote: &Remote) -> Result<String, CannotUpgrade> {
    let end = Instant::now() + PATIENCE;
    loop {
        if remote.is_replaced() {
            return Ok(format!("process {} has taken over; this one drains", successor.pid()));
        }
        if let Some(how) = successor.end() {
            return Err(CannotUpgrade::Ended(how));
        }
        if Instant::now() >= end {
            successor.kill();
            return Err(CannotUpgrade::Late);
        }
        std::thread::sleep(LOOK);
    }
}
