//! Running the real binary as a user would.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_testkit::assert_frozen;

/// The binary, in an environment that says nothing of colours or widths.
pub(crate) fn weir() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command
        .env_remove("RUST_BACKTRACE")
        .env_remove("COLUMNS")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::null());
    command
}

/// One finished command.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            err: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }

    /// It failed as it should: that code, nothing on standard output, no panic, and `says` in the message.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, says: &str) {
        assert_eq!(self.code, Some(code), "standard error: {}", self.err);
        assert_eq!(self.out, "", "an error writes nothing to standard output");
        assert!(!self.err.contains("panicked"), "{}", self.err);
        assert!(self.err.to_lowercase().contains(&says.to_lowercase()), "`{says}` is not in: {}", self.err);
    }

    /// It went well.
    #[track_caller]
    pub(crate) fn succeeds(&self) -> &str {
        assert_eq!(self.code, Some(0), "standard error: {}", self.err);
        &self.out
    }
}

/// Runs `weir` with these arguments.
pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Ran {
    Ran::of(weir().args(args).output().expect("the binary starts"))
}

/// The same with something on standard input.
pub(crate) fn run_with_input(args: &[&str], input: &str) -> Ran {
    let mut child = weir()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads its input");
    Ran::of(child.wait_with_output().expect("it ends"))
}

/// Sends the first Ctrl-C to a run, once its handler is in place: the process has marked the signal as caught.
#[cfg(unix)]
pub(crate) fn interrupt(child: &std::process::Child) {
    let began = std::time::Instant::now();
    let caught = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let mask = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).map(str::trim).unwrap_or("0");
        u64::from_str_radix(mask, 16).unwrap_or(0) & 2 != 0
    };
    while !caught() {
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "no handler was set");
        std::thread::yield_now();
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
}

/// Waits until a run has begun: while its file is evaluated, by a child, it takes no time itself.
#[cfg(target_os = "linux")]
pub(crate) fn works(child: &std::process::Child) {
    const TICKS: u64 = 20;
    let used = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        let behind_its_name = stat.rsplit(')').next().unwrap_or_default().split(' ');
        behind_its_name.skip(12).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>()
    };
    let began = std::time::Instant::now();
    while used() < TICKS {
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "it does not run");
        std::thread::yield_now();
    }
}

/// A folder of its own for one test, removed when it ends.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("weir-test-{}-{number}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary folder can be made");
        Scratch(dir)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.0.join(name), content).expect("a file can be written");
        self.path(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(&self.0)
            .expect("the folder is there")
            .map(|e| e.expect("readable").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `text` is what `tests/frozen/NAME` holds. `UPDATE=1 cargo test -p weir` writes it anew.
#[track_caller]
pub(crate) fn frozen(name: &str, text: &str) {
    assert_frozen(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frozen").join(name), text);
}
