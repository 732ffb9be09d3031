//! The counts by which a release is laid out: `cargo xtask pgo` makes them anew.
//!
//! Three steps: a build that counts what runs, a load that makes it run (`bench/train`), and what was counted, merged,
//! into `xtask/profile`, where the compiler of weir's own crates finds it (`xtask/profile/rustc`). In a release what
//! runs often then lies together, and what never ran lies apart. bench/README.md has what it gains; without the tools
//! the recipe is skipped.

use crate::command::{Outcome, Stop, answers, cargo_path, output, run};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the recipe needs of the toolchain.
struct Tools {
    /// The compiler's LLVM, in full: counts of another one are not used.
    llvm: String,
    /// Merges counts; of the compiler's LLVM or a later one, since their format changes between versions.
    profdata: PathBuf,
}

pub(crate) fn pgo(root: &Path) -> Outcome {
    let tools = tools(root)?;
    let profile = root.join("xtask/profile");
    let raw = root.join("target/counts");
    // Counts of an earlier build would be merged with these.
    let _ = fs::remove_dir_all(&raw);
    build(root, &[("RUSTC_WORKSPACE_WRAPPER", &profile.join("count")), ("WEIR_PROFILE_RAW", &raw)])?;
    run(Command::new(root.join("bench/train"))
        .arg(root.join("target/release/weir"))
        .env("LLVM_PROFILE_FILE", raw.join("%p.profraw")))?;
    // What never ran needs no place in the file.
    let (counts, merged) = (profile.join("weir.profdata"), root.join("target/weir.profdata"));
    run(Command::new(&tools.profdata).args(["merge", "--sparse", "-o"]).arg(&merged).arg(&raw))?;
    check_counts(&output(Command::new(&tools.profdata).arg("show").arg(&merged)).unwrap_or_default())?;
    let failed = |e: std::io::Error| Stop::Failed(format!("pgo: {}: {e}", profile.display()));
    fs::copy(&merged, &counts).map_err(failed)?;
    fs::write(profile.join("llvm"), format!("{}\n", tools.llvm)).map_err(failed)?;
    // cargo does not know that these crates depend on it.
    run(Command::new(cargo_path())
        .args(["clean", "--release", "--quiet", "--package", "weir", "--package", "weir-serve"])
        .args(["--package", "weir-http1", "--package", "weir-http2", "--package", "weir-net"])
        .args(["--package", "weir-policy", "--package", "weir-topology"])
        .args(["--package", "weir-model", "--package", "weir-stats", "--package", "weir-sim"])
        .args(["--package", "weir-report", "--package", "weir-plan"])
        .current_dir(root))?;
    build(root, &[])?;
    let _ = fs::remove_dir_all(&raw);
    eprintln!("{} is laid out by {}", root.join("target/release/weir").display(), counts.display());
    Ok(())
}

/// Whether counts can be those of half a minute. One that is beyond all others makes all others look rare, and a
/// release that takes a quarter more instructions for each request (2026-11-23).
fn check_counts(said: &str) -> Outcome {
    const MOST: u64 = 100_000_000_000;
    let most =
        said.lines().find_map(|l| l.strip_prefix("Maximum internal block count: ")?.trim().parse().ok());
    match most {
        Some(0..=MOST) => Ok(()),
        Some(n) => {
            Err(Stop::Failed(format!("pgo: a block that ran {n} times in half a minute: counts are wrong")))
        }
        None => Err(Stop::Failed("pgo: llvm-profdata does not say how often a block ran".into())),
    }
}

/// Builds the release.
fn build(root: &Path, env: &[(&str, &PathBuf)]) -> Outcome {
    let mut command = Command::new(cargo_path());
    command.args(["build", "--release", "--locked", "--package", "weir"]).envs(env.iter().copied());
    run(command.current_dir(root))
}

fn tools(root: &Path) -> Result<Tools, Stop> {
    let skipped = |why: String| Stop::Skipped("pgo".into(), why);
    if !answers(root, Path::new("python3"), &["--version"]) {
        return Err(skipped("there is no python3, which runs bench/train".into()));
    }
    let said = output(Command::new("rustc").arg("-vV").current_dir(root)).unwrap_or_default();
    let field = |name: &str| said.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
    let (Some(host), Some(full)) = (field("host:"), field("LLVM version:")) else {
        return Err(skipped("rustc -vV names no host and no version of LLVM".into()));
    };
    let llvm = major(full).unwrap_or_default();
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
        Some(profdata) => Ok(Tools { llvm: full.to_owned(), profdata }),
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
    fn counts_that_cannot_be_are_refused() {
        let said = |n: &str| format!("Total functions: 5004\nMaximum internal block count: {n}\n");
        assert!(check_counts(&said("17453595")).is_ok());
        assert!(check_counts(&said("19797745690478")).is_err() && check_counts("").is_err());
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(major(" 22.1.2-rust-1.95.0-stable\n"), Some(22));
        assert_eq!(major("none"), None);
        assert_eq!(version(Path::new("no-such-program")), None);
    }
}
