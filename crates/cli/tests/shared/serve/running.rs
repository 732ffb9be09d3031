//! `weir serve` as a child process: started, listened to, and never left behind.

use super::message::Message;
use super::stream::{Fault, Stream};
use super::until;
use crate::shared::common::{Scratch, weir};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a start may take on a busy machine.
const START: Duration = Duration::from_secs(20);

/// A running `weir serve`.
pub(crate) struct Weir {
    child: Child,
    /// Listeners: name and address.
    pub(crate) listening: Vec<(String, String)>,
    lines: Mutex<Receiver<String>>,
    err: Arc<Mutex<String>>,
    pub(crate) scratch: Scratch,
}

fn scratch() -> Scratch {
    Scratch::new("serve")
}

impl Weir {
    /// Serves this file.
    pub(crate) fn new(file: &str) -> Weir {
        Weir::with(file, &[], file.matches("listen(").count())
    }

    /// Serves a file that makes `listeners` listeners.
    pub(crate) fn listening(file: &str, listeners: usize) -> Weir {
        Weir::with(file, &[], listeners)
    }

    /// Serves it with these further arguments.
    pub(crate) fn with(file: &str, args: &[&str], listeners: usize) -> Weir {
        let scratch = scratch();
        let path = scratch.file("topology.star", file);
        let mut command = weir();
        command.args(["serve", &path]).args(args);
        Weir::run(command, scratch, listeners)
    }

    /// One listener `web` before this node.
    pub(crate) fn before(node: &str) -> Weir {
        Weir::new(&format!("listen(\"127.0.0.1:0\", {node}, name = \"web\")\n"))
    }

    /// One listener `web` with these settings before this node.
    pub(crate) fn set(http: &str, node: &str) -> Weir {
        Weir::new(&format!("listen(\"127.0.0.1:0\", {node}, name = \"web\", http = http({http}))\n"))
    }

    /// Serves it with at most `most` descriptors.
    pub(crate) fn with_descriptors(file: &str, most: u32) -> Weir {
        Weir::limited(file, &format!("ulimit -n {most}"))
    }

    /// Serves it where this command of the shell has set limits.
    pub(crate) fn limited(file: &str, limits: &str) -> Weir {
        let scratch = scratch();
        let path = scratch.file("topology.star", file);
        let mut command = Command::new("sh");
        let script = format!("{limits} && exec \"$0\" serve \"$1\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_weir"), &path]).stdin(Stdio::null());
        Weir::run(command, scratch, file.matches("listen(").count())
    }

    /// Runs a command that ends in `weir serve`, up to the line of its last listener.
    pub(crate) fn run(command: Command, scratch: Scratch, listeners: usize) -> Weir {
        Weir::begin(command, scratch).wait_until_listening(listeners)
    }

    /// Starts a command that ends in `weir serve`.
    pub(crate) fn begin(mut command: Command, scratch: Scratch) -> Weir {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let out = child.stdout.take().expect("piped");
        let mut from = child.stderr.take().expect("piped");
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let err = Arc::new(Mutex::new(String::new()));
        let inside = err.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                inside.lock().expect("no panic").push_str(&String::from_utf8_lossy(&bytes[..n]));
            }
        });
        Weir { child, listening: Vec::new(), lines: Mutex::new(lines), err, scratch }
    }

    /// Waits for the line of its last listener.
    pub(crate) fn wait_until_listening(mut self, listeners: usize) -> Weir {
        let begun = Instant::now();
        let weir = &mut self;
        while weir.listening.len() < listeners {
            let told = weir.line(Duration::from_millis(20)).into_iter();
            let told: Vec<String> = told.chain(weir.listening_on_stderr(listeners)).collect();
            let ended = weir.child.try_wait().expect("it can be waited for");
            if told.is_empty() && (ended.is_some() || begun.elapsed() > START) {
                panic!("weir does not listen ({ended:?}): {}", weir.err());
            }
            for line in told {
                let words: Vec<&str> = line.trim_end().split(' ').collect();
                let ["listening", name, addr] = words[..] else {
                    panic!("not the line of a listener: {line}")
                };
                weir.listening.push((name.to_owned(), addr.to_owned()));
            }
        }
        self
    }

    /// Whether it has a handler for a signal.
    pub(crate) fn catches(&self, signal: Signal) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        mask & 1 << (signal.as_raw() - 1) != 0
    }

    /// The lines of `listeners` listeners on standard error, where they are if a log goes to standard output; none
    /// until all are.
    fn listening_on_stderr(&self, listeners: usize) -> Vec<String> {
        let err = self.err();
        let is_told = |l: &&str| l.starts_with("listening ") && l.ends_with('\n');
        let told: Vec<String> = err.split_inclusive('\n').filter(is_told).map(str::to_owned).collect();
        if told.len() < listeners { Vec::new() } else { told }
    }

    /// Where a listener listens.
    #[track_caller]
    pub(crate) fn addr(&self, name: &str) -> &str {
        let found = self.listening.iter().find(|(n, _)| n == name);
        &found.unwrap_or_else(|| panic!("no listener {name} in {:?}", self.listening)).1
    }

    /// A connection to a listener.
    #[track_caller]
    pub(crate) fn connect(&self, name: &str) -> Stream {
        Stream::connect(self.addr(name)).expect("weir accepts")
    }

    /// A connection to the first listener.
    #[track_caller]
    pub(crate) fn client(&self) -> Stream {
        Stream::connect(&self.listening[0].1).expect("weir accepts")
    }

    /// The answer to a GET on a fresh connection to the first listener.
    #[track_caller]
    pub(crate) fn get(&self, target: &str) -> Message {
        self.ask(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")).expect("an answer")
    }

    /// The answer to a request on a fresh connection to the first listener.
    #[track_caller]
    pub(crate) fn ask(&self, request: &str) -> Result<Message, Fault> {
        self.client().ask(request)
    }

    /// Writes the file anew, for the next reload.
    pub(crate) fn replace(&self, file: &str) {
        self.scratch.file("topology.star", file);
    }

    /// What it has said on standard error so far.
    pub(crate) fn err(&self) -> String {
        self.err.lock().expect("no panic").clone()
    }

    /// The next line of standard output after those of the listeners.
    pub(crate) fn line(&self, within: Duration) -> Option<String> {
        self.lines.lock().expect("no panic").recv_timeout(within).ok()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a process");
        kill_process(pid, signal).expect("it is there");
    }

    /// Its exit code, if it ends.
    pub(crate) fn ends(&mut self) -> Option<i32> {
        until(|| self.exit_code().is_some());
        self.exit_code()
    }

    /// Its exit code, if it has ended.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let ended = self.child.try_wait().expect("it can be waited for");
        ended.map(|c| c.code().unwrap_or(-1))
    }

    /// It is alive, and did not panic.
    #[track_caller]
    pub(crate) fn assert_alive(&mut self) {
        let ended = self.child.try_wait().expect("it can be waited for");
        assert!(ended.is_none(), "weir has ended ({ended:?}): {}", self.err());
        assert!(!self.err().contains("panicked"), "{}", self.err());
    }

    /// Resident memory, KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("Linux");
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).expect("a running process");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Time on a processor so far, ms.
    pub(crate) fn cpu_ms(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("Linux");
        let after = stat.rsplit_once(") ").expect("its name").1;
        let ticks = |i: usize| after.split(' ').nth(i).and_then(|t| t.parse::<u64>().ok()).expect("a number");
        // Ticks of a hundredth of a second, as on all that Linux runs on today.
        (ticks(11) + ticks(12)) * 10
    }

    /// From now on it may open no descriptor, or again as many as it likes; those it has stay open.
    pub(crate) fn allow_descriptors(&self, more: bool) {
        let pid = Pid::from_raw(self.child.id() as i32);
        let hard = getrlimit(Resource::Nofile).maximum;
        let current = if more { hard } else { Some(3) };
        prlimit(pid, Resource::Nofile, Rlimit { current, maximum: hard }).expect("its own child");
    }

    /// Open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("Linux").count()
    }
}

impl Drop for Weir {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let err = self.err();
        if std::thread::panicking() {
            eprintln!("weir said: {err}");
        } else {
            assert!(!err.contains("panicked"), "weir panicked: {err}");
        }
    }
}

/// `weir serve` of this file ends with that code, says so, and does not panic.
#[track_caller]
pub(crate) fn serve_fails(file: &str, code: i32, says: &[&str]) -> String {
    let scratch = scratch();
    let path = scratch.file("topology.star", file);
    let mut child = weir()
        .args(["serve", &path])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let ended = until(|| child.try_wait().expect("it can be waited for").is_some());
    if !ended {
        let _ = child.kill();
    }
    let output = child.wait_with_output().expect("it has ended");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(ended, "it serves: {err}");
    assert_eq!(output.status.code(), Some(code), "{err}");
    assert!(!err.contains("panicked"), "{err}");
    for word in says {
        assert!(err.contains(word), "`{word}` is not in: {err}");
    }
    err
}
