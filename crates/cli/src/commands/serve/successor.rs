//! The process of a new binary. Under systemd it is no child of the old process but of systemd: a main process that is
//! not its child systemd kills when the unit is stopped, without the time to drain (`main_pid_alien` in its
//! `unit_kill_context`). So the program is started by a child that ends at once, and whose child systemd adopts.

use super::program;
use crate::failure::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Empty in the child that ends at once; in the program that it starts, the process number of that child.
const BETWEEN: &str = "WEIR_SUCCESSOR_OF";

/// The time in which that child says which process it has started.
const SPAWN: Duration = Duration::from_secs(10);

/// How often the new process looks whether it has been adopted.
const LOOK: Duration = Duration::from_millis(1);

/// The new process.
#[derive(Debug)]
pub(super) struct Successor {
    child: Child,
    /// Its process number and what it holds open until its end, if it is not the child.
    adopted: Option<(u32, UnixStream)>,
}

impl Successor {
    /// Starts the program: as a child of this process, or of the supervisor if there is one.
    pub(super) fn start(mut command: Command) -> io::Result<Successor> {
        if env::var_os("NOTIFY_SOCKET").is_none() {
            let child = command.env_remove(BETWEEN).stdin(Stdio::null()).spawn()?;
            return Ok(Successor { child, adopted: None });
        }
        let (ours, theirs) = UnixStream::pair()?;
        let child = command.env(BETWEEN, "").stdin(OwnedFd::from(theirs)).spawn()?;
        // Otherwise this process would hold it open too.
        drop(command);
        let adopted = adopted(ours).ok();
        Ok(Successor { child, adopted })
    }

    /// Its process number.
    pub(super) fn pid(&self) -> u32 {
        self.adopted.as_ref().map_or(self.child.id(), |(pid, _)| *pid)
    }

    /// How it has ended, if it has.
    pub(super) fn end(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten();
        match &mut self.adopted {
            None => status.map(|status| status.to_string()),
            Some((_, held)) => match held.read(&mut [0]) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => None,
                _ => Some("its supervisor knows how".to_owned()),
            },
        }
    }

    /// Ends it.
    pub(super) fn kill(&mut self) {
        // It may have ended just now.
        if let Some(pid) = self.adopted.as_ref().and_then(|(pid, _)| Pid::from_raw(i32::try_from(*pid).ok()?))
        {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process that the child has started, and what that holds open.
fn adopted(mut held: UnixStream) -> io::Result<(u32, UnixStream)> {
    held.set_read_timeout(Some(SPAWN))?;
    let mut pid = [0; 4];
    held.read_exact(&mut pid)?;
    held.set_nonblocking(true)?;
    Ok((u32::from_ne_bytes(pid), held))
}

/// What a process does for [`Successor`] as it starts; whether that was all that it is there for.
#[expect(clippy::disallowed_methods, reason = "nothing reports that a parent has ended, and it ends at once")]
pub(super) fn is_between() -> Result<bool, Failure> {
    let Some(between) = env::var_os(BETWEEN) else { return Ok(false) };
    if !between.is_empty() {
        while between.to_str() == Some(&parent_id().to_string()) {
            std::thread::sleep(LOOK);
        }
        return Ok(false);
    }
    let start = || {
        let mut program = Command::new(program::path()?);
        let held = io::stdin().as_fd().try_clone_to_owned()?;
        let started =
            program.args(env::args_os().skip(1)).env(BETWEEN, std::process::id().to_string()).spawn()?;
        UnixStream::from(held).write_all(&started.id().to_ne_bytes())
    };
    start().map(|()| true).map_err(|e| Failure::Environment(format!("the program cannot be started: {e}")))
}
