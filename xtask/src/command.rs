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
pub(crate) type Done = Result<(), Stop>;

/// The cargo that runs this.
pub(crate) fn cargo_path() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Runs cargo in the folder of the workspace.
pub(crate) fn cargo(root: &Path, args: &[&str]) -> Done {
    run(Command::new(cargo_path()).args(args).current_dir(root))
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> Done {
    let shown = show(command);
    eprintln!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Stop::Failed(shown)),
        Err(e) => Err(Stop::Failed(format!("{shown}: {e}"))),
    }
}

/// Runs a program to its end, passes its standard error on, and gives back whether it ended well with that text.
pub(crate) fn run_and_read(command: &mut Command) -> Result<(bool, String), Stop> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let failed = |e: std::io::Error| Stop::Failed(format!("{shown}: {e}"));
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(failed)?;
    let heard = child.stderr.take().map(pass_on);
    let status = child.wait().map_err(failed)?;
    let mut text = String::new();
    // A process that the program left behind may hold its standard error open; then what came by now is all.
    while let Some(line) = heard.as_ref().and_then(|h| h.recv_timeout(Duration::from_secs(5)).ok()) {
        text.push_str(&line);
    }
    Ok((status.success(), text))
}

/// Copies a program's standard error to our own as it comes, and gives its lines.
fn pass_on(from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (lines, heard) = mpsc::channel();
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line).into_owned();
            let _ = std::io::stderr().write_all(text.as_bytes());
            let _ = lines.send(text);
            line.clear();
        }
    });
    heard
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
    fn what_a_program_says_is_read_with_how_it_ended() {
        let (well, said) =
            run_and_read(Command::new(cargo_path()).arg("no-such-recipe")).expect("cargo runs");
        assert!(!well && said.contains("no such command"), "{said}");
        assert!(
            run_and_read(Command::new(cargo_path()).arg("--version").stdout(Stdio::null()))
                .expect("cargo runs")
                .0
        );
    }
}
