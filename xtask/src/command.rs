//! Runs programs: what is run is said first, and an exit other than 0 is a failure.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Why a recipe did not end well.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It found something.
    Failed(String),
    /// It could not be done here: what, and why.
    Skipped(String, String),
}

/// The outcome of a recipe.
pub(crate) type Outcome = Result<(), Stop>;

/// The cargo that runs this.
pub(crate) fn cargo_path() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Runs cargo in the folder of the workspace.
pub(crate) fn cargo(root: &Path, args: &[&str]) -> Outcome {
    run(Command::new(cargo_path()).args(args).current_dir(root))
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let shown = show(command);
    eprintln!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Stop::Failed(shown)),
        Err(e) => Err(Stop::Failed(format!("{shown}: {e}"))),
    }
}

/// How a program ended, and what it wrote.
pub(crate) struct Output {
    pub(crate) is_success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program to its end, and passes on what it writes.
pub(crate) fn run_and_read(command: &mut Command) -> Result<Output, Stop> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let failed = |e: std::io::Error| Stop::Failed(format!("{shown}: {e}"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let stdout = child.stdout.take().map(|from| pass_on(from, std::io::stdout()));
    let stderr = child.stderr.take().map(|from| pass_on(from, std::io::stderr()));
    let status = child.wait().map_err(failed)?;
    Ok(Output { is_success: status.success(), stdout: gather(stdout), stderr: gather(stderr) })
}

/// All lines until the end. A process that the program left behind may hold the pipe open; then only what has arrived
/// counts.
fn gather(lines: Option<mpsc::Receiver<String>>) -> String {
    let next = || lines.as_ref()?.recv_timeout(Duration::from_secs(5)).ok();
    std::iter::from_fn(next).collect()
}

/// Copies what arrives on a pipe as it comes, and gives its lines.
fn pass_on(from: impl Read + Send + 'static, mut to: impl Write + Send + 'static) -> mpsc::Receiver<String> {
    let (lines, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let _ = to.write_all(&line);
            let _ = lines.send(String::from_utf8_lossy(&line).into_owned());
            line.clear();
        }
    });
    receiver
}

/// Whether a program can be run with these arguments at all.
pub(crate) fn answers(root: &Path, program: &Path, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// What a program prints to standard output, if it ends well.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn show(command: &Command) -> String {
    let program =
        Path::new(command.get_program()).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let args = command.get_args().map(|a| a.to_string_lossy().into_owned());
    std::iter::once(program).chain(args).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_read_with_how_a_program_ended() {
        let failed = run_and_read(Command::new(cargo_path()).arg("no-such-recipe")).expect("cargo runs");
        assert!(!failed.is_success && failed.stderr.contains("no such command"), "{}", failed.stderr);
        let version = run_and_read(Command::new(cargo_path()).arg("--version")).expect("cargo runs");
        assert!(version.is_success && version.stdout.starts_with("cargo "), "{}", version.stdout);
    }
}
