//! A build whose code lies as a training run has used it: `cargo xtask pgo` makes `target/pgo/weir`.
//!
//! Three steps: a build that counts what runs, a load that makes it run (`bench/train`), and a build from these counts, in
//! which what runs often lies together and what never ran lies apart. A release takes it where it can be had; without the
//! tools the recipe is skipped, and `cargo build --release` is the same program. bench/README.md has what it gains.

use crate::command::{Done, Stop, answers, cargo_path, output, run};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the recipe needs of the toolchain.
struct Tools {
    /// The target triple of this machine. Given to cargo, it keeps the flags away from build scripts.
    host: String,
    /// Merges counts; of the compiler's LLVM or a later one, since their format changes between versions.
    profdata: PathBuf,
}

pub(crate) fn pgo(root: &Path) -> Done {
    let tools = tools(root)?;
    let dir = root.join("target/pgo");
    let (raw, counts, made) = (dir.join("raw"), dir.join("weir.profdata"), dir.join("weir"));
    // Counts of an earlier build would be merged with these.
    let _ = fs::remove_dir_all(&raw);
    let counting = build(root, &tools, &format!("-Cprofile-generate={}", raw.display()))?;
    run(Command::new(root.join("bench/train"))
        .arg(&counting)
        .env("LLVM_PROFILE_FILE", raw.join("%p.profraw")))?;
    run(Command::new(&tools.profdata).arg("merge").arg("-o").arg(&counts).arg(&raw))?;
    let _ = fs::remove_dir_all(&raw);
    let used = build(root, &tools, &format!("-Cprofile-use={}", counts.display()))?;
    fs::copy(&used, &made).map_err(|e| Stop::Failed(format!("pgo: {}: {e}", made.display())))?;
    eprintln!("made {}", made.display());
    Ok(())
}

/// Builds the release with a flag for the compiler; gives the program, which the next build replaces.
fn build(root: &Path, tools: &Tools, flag: &str) -> Result<PathBuf, Stop> {
    let flags = [std::env::var("RUSTFLAGS").unwrap_or_default(), flag.to_owned()].join(" ");
    let target = root.join("target");
    eprintln!("RUSTFLAGS: {flags}");
    let mut command = Command::new(cargo_path());
    command.args(["build", "--release", "--locked", "--package", "weir", "--target", &tools.host]);
    run(command.arg("--target-dir").arg(&target).env("RUSTFLAGS", flags).current_dir(root))?;
    Ok(target.join(&tools.host).join("release/weir"))
}

fn tools(root: &Path) -> Result<Tools, Stop> {
    let skipped = |why: String| Stop::Skipped("pgo".into(), why);
    if !answers(root, Path::new("python3"), &["--version"]) {
        return Err(skipped("there is no python3, which runs bench/train".into()));
    }
    let said = output(Command::new("rustc").arg("-vV").current_dir(root)).unwrap_or_default();
    let field = |name: &str| said.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
    let (Some(host), Some(llvm)) = (field("host:"), field("LLVM version:").and_then(major)) else {
        return Err(skipped("rustc -vV names no host and no version of LLVM".into()));
    };
    let sysroot =
        output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root)).unwrap_or_default();
    let of_toolchain = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin/llvm-profdata");
    let candidates = [
        std::env::var_os("LLVM_PROFDATA").unwrap_or_default(),
        of_toolchain.into_os_string(),
        OsString::from(format!("llvm-profdata-{llvm}")),
        OsString::from("llvm-profdata"),
    ];
    let found =
        candidates.into_iter().map(PathBuf::from).find(|p| version(p).is_some_and(|found| found >= llvm));
    match found {
        Some(profdata) => Ok(Tools { host: host.to_owned(), profdata }),
        None => Err(skipped(format!(
            "there is no llvm-profdata of LLVM {llvm} or later; `rustup component add llvm-tools` brings it, or \
             `apt install llvm-{llvm}`, or name one in LLVM_PROFDATA"
        ))),
    }
}

/// The major version of LLVM that a program of it says it has.
fn version(program: &Path) -> Option<u32> {
    let said = output(Command::new(program).arg("--version"))?;
    major(said.split("LLVM version ").nth(1)?)
}

/// 22 for "22.1.2-rust-1.95.0-stable".
fn major(version: &str) -> Option<u32> {
    version.trim().split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(major(" 22.1.2-rust-1.95.0-stable\n"), Some(22));
        assert_eq!(major("none"), None);
        assert_eq!(version(Path::new("no-such-program")), None);
    }
}
