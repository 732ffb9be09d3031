//! What is given to people: `cargo xtask dist` makes the release binary stripped, with its debug lines in a file beside
//! it that debuggers find, completions and man pages; `cargo xtask static` the same without any library of the system,
//! for images that have nothing else.

use crate::command::{Outcome, Stop, answers, cargo_path, output, run};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The target of the static binary.
const MUSL: &str = "x86_64-unknown-linux-musl";

pub(crate) fn dist(root: &Path) -> Outcome {
    build(root, &[])?;
    strip(&root.join("target/release/weir"), &root.join("target/dist"))
}

pub(crate) fn static_binary(root: &Path) -> Outcome {
    let skipped = |why: &str| Err(Stop::Skipped("static".into(), why.into()));
    if !answers(root, Path::new("musl-gcc"), &["--version"]) {
        return skipped("there is no musl-gcc, which builds the C of TLS (Debian: musl-tools)");
    }
    if !answers(root, Path::new("rustup"), &["target", "add", MUSL]) {
        return skipped("rustup cannot add the target x86_64-unknown-linux-musl");
    }
    build(root, &["--target", MUSL])?;
    strip(&root.join("target").join(MUSL).join("release/weir"), &root.join("target/static"))
}

fn build(root: &Path, more: &[&str]) -> Outcome {
    let mut command = Command::new(cargo_path());
    run(command.args(["build", "--release", "--locked", "--package", "weir"]).args(more).current_dir(root))
}

/// What the binary says of itself, for shells and for `man`.
fn beside(weir: &Path, folder: &Path) -> Outcome {
    let failed = |e: std::io::Error| Stop::Failed(format!("dist: {}: {e}", folder.display()));
    let (completions, man) = (folder.join("completions"), folder.join("man"));
    fs::create_dir_all(&completions).map_err(failed)?;
    fs::create_dir_all(&man).map_err(failed)?;
    for (shell, name) in [("bash", "weir.bash"), ("zsh", "_weir"), ("fish", "weir.fish")] {
        let text = output(Command::new(weir).args(["completions", shell]))
            .ok_or_else(|| Stop::Failed(format!("dist: weir completions {shell}")))?;
        fs::write(completions.join(name), text).map_err(failed)?;
    }
    run(Command::new(weir).arg("man").arg(&man))
}

/// The binary without debug lines in a folder, and these in a file beside it.
fn strip(binary: &Path, folder: &Path) -> Outcome {
    let failed = |e: std::io::Error| Stop::Failed(format!("dist: {}: {e}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    let (to, debug) = (folder.join("weir"), folder.join("weir.debug"));
    run(Command::new("objcopy").arg("--only-keep-debug").arg(binary).arg(&debug))?;
    run(Command::new("objcopy").arg("--strip-all").arg(binary).arg(&to))?;
    run(Command::new("objcopy").arg("--add-gnu-debuglink=weir.debug").arg("weir").current_dir(folder))?;
    beside(&to, folder)?;
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len() >> 20);
    eprintln!("{} ({} MiB), {} ({} MiB)", to.display(), size(&to), debug.display(), size(&debug));
    Ok(())
}
