//! Evaluation in a child process under limits: memory, time, steps, depth of calls.
//!
//! The parent runs its own program with the single argument [`CHILD`], sends the request and reads the answer. Anything
//! the file does to the child (exhausts memory, overflows the stack, runs for ever), the parent answers with one
//! finding that names the file.

use crate::evaluate::{Evaluated, Request, evaluate_or_panic};
use crate::own_time::{Meter, OwnTime};
use crate::wire;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use std::error::Error;
use std::fmt;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use weir_plan::diagnostic::Diagnostic;

/// The argument that makes the program an evaluating child.
pub const CHILD: &str = "__evaluate";
/// The child's address space, bytes.
const MEMORY: u64 = 1 << 30;
/// The processor time that the file's own code may take, s: as much on a busy machine as on an idle one.
const CPU_S: u64 = 5;
/// How long an evaluation may take in all, also on a machine that hardly gets to it.
const TIME: Duration = Duration::from_secs(60);
/// How often the child looks at its time.
const GLANCE: Duration = Duration::from_millis(50);
/// The child's exit code when the file's code has taken too long.
const TOO_LONG: u8 = 5;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The file is wrong (exit code 2): all findings, warnings included.
    Wrong(Vec<Diagnostic>),
    /// The child could not be run (exit code 3).
    Environment(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Wrong(findings) => {
                for (i, finding) in findings.iter().enumerate() {
                    if i > 0 {
                        f.write_str("\n\n")?;
                    }
                    finding.fmt(f)?;
                }
                Ok(())
            }
            Failure::Environment(why) => write!(f, "error: {why}"),
        }
    }
}

impl Error for Failure {}

/// The remedy, if descriptors have run out.
fn remedy(e: &std::io::Error) -> &'static str {
    match rustix::io::Errno::from_io_error(e) {
        Some(rustix::io::Errno::MFILE) => "; raise the limit of open files with `ulimit -n`",
        _ => "",
    }
}

/// Evaluates a file in a child process: `exe __evaluate`, where `exe` is a program whose `main` calls [`child_main`]
/// for that argument (the running one: [`std::env::current_exe`]).
///
/// # Errors
/// [`Failure::Wrong`] where the file is wrong or passes a limit, [`Failure::Environment`] where no child can be run.
pub fn evaluate_in_child(request: &Request, exe: &Path) -> Result<Evaluated, Failure> {
    let environment = |why: String| {
        Failure::Environment(format!("cannot start a process to evaluate {}: {why}", request.name))
    };
    let bytes = wire::request(request).map_err(|e| environment(e.to_string()))?;
    let mut child = Command::new(exe)
        .arg(CHILD)
        .env_remove("RUST_BACKTRACE")
        .env("MALLOC_ARENA_MAX", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| environment(format!("{}: {e}{}", exe.display(), remedy(&e))))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let deadline = Instant::now() + TIME;
    let (sender, receiver) = mpsc::channel();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A child that died reads nothing: that shows in its answer.
            let _ = stdin.map(|mut s| s.write_all(&bytes));
        });
        let errors = scope.spawn(move || drain(stderr, 64 << 10));
        scope.spawn(move || {
            let mut answer = Vec::new();
            let read = stdout.map_or(Ok(0), |mut s| s.read_to_end(&mut answer));
            let _ = sender.send(read.map(|_| answer));
        });
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = receiver.recv_timeout(left);
        let late = answer.is_err();
        if late {
            let _ = child.kill();
        }
        let status = child.wait();
        (answer, late, status, errors.join().unwrap_or_default())
    });
    let limit = |message: String| Failure::Wrong(vec![Diagnostic::error(message).in_file(&request.name)]);
    match outcome {
        (_, true, ..) => {
            Err(limit(format!("evaluating {} takes longer than {} s", request.name, TIME.as_secs())))
        }
        (_, _, Ok(status), _) if status.code() == Some(i32::from(TOO_LONG)) => {
            Err(limit(format!("evaluating {} takes more than {CPU_S} s of processor time", request.name)))
        }
        (_, _, Err(e), _) => Err(environment(e.to_string())),
        (Ok(Ok(answer)), _, Ok(status), errors) if status.success() => {
            let _ = errors;
            wire::read_answer(&answer).map_err(|e| environment(e.to_string()))?.map_err(Failure::Wrong)
        }
        (_, _, Ok(status), errors) => Err(limit(death(&request.name, status, &errors))),
    }
}

/// The first bytes of a stream; the rest is read and dropped, so that the child does not wait.
fn drain(stream: Option<impl Read>, most: usize) -> String {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        let _ = stream.by_ref().take(most as u64).read_to_end(&mut kept);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Why a child died, from what it wrote.
fn death(name: &str, status: ExitStatus, errors: &str) -> String {
    if errors.contains("overflowed its stack") {
        return format!("{name} is nested too deeply to be evaluated");
    }
    let memory = [
        "memory allocation of",
        "capacity overflow",
        "AllocError",
        "out of memory",
        "Out of memory",
        "allocate",
    ];
    if memory.iter().any(|m| errors.contains(m)) {
        return format!("evaluating {name} needs more than {} GiB of memory", MEMORY >> 30);
    }
    let first = errors.lines().find(|l| !l.trim().is_empty()).unwrap_or("it wrote nothing");
    format!("evaluating {name} failed ({status}: {first})")
}

/// The whole of the child: limits, request, evaluation, answer. Called by `main` for the argument [`CHILD`].
pub fn child_main() -> ExitCode {
    match child() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(4)
        }
    }
}

/// Ends this process when the file's own code has taken too long, unless the sender of `evaluated` is dropped before.
fn end_in_time(own_time: &OwnTime, evaluated: &mpsc::Receiver<()>) {
    let mut meter = Meter::new(own_time);
    while evaluated.recv_timeout(GLANCE) == Err(mpsc::RecvTimeoutError::Timeout) {
        if meter.glance() > Duration::from_secs(CPU_S) {
            std::process::exit(i32::from(TOO_LONG));
        }
    }
}

fn child() -> Result<(), Box<dyn Error>> {
    let limit = |resource, most| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    // The parent may have been interrupted, so that the answer has no reader.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    limit(Resource::Core, 0)?;
    limit(Resource::As, MEMORY)?;
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    let request = wire::read_request(&bytes)?;
    drop(bytes);
    let own_time = Arc::new(OwnTime::counted());
    let watched = own_time.clone();
    let (_evaluating, evaluated) = mpsc::channel();
    std::thread::Builder::new().stack_size(64 << 10).spawn(move || end_in_time(&watched, &evaluated))?;
    let evaluated = evaluate_or_panic(&request, &own_time).ok_or("the evaluation panicked")?;
    let answer = wire::answer(evaluated)?;
    let mut out = std::io::stdout().lock();
    out.write_all(&answer)?;
    Ok(out.flush()?)
}
