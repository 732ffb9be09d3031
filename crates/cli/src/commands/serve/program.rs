//! The path of this program as it was started. A new process is started by the same path, so that a symbolic link which
//! was switched meanwhile leads to the new program (`docs/spec/operating.md#supervision`).

use std::env;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The path by which this process was started, from the root on. To be called as the process starts: later the working
/// folder or the links may be others. The first argument may be anything, so its path counts only if this program is
/// there; otherwise it is the path of this program's file.
pub(super) fn path() -> io::Result<PathBuf> {
    let file = env::current_exe()?;
    let name = env::args_os().next().unwrap_or_default();
    let here = env::current_dir().unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    // Not by `file`: that may be deleted already.
    let own = fs::metadata("/proc/self/exe").ok();
    let identity = |of: Metadata| (of.dev(), of.ino());
    let is_own = |there: &PathBuf| {
        there.is_absolute()
            && own.is_some()
            && fs::metadata(there).ok().map(identity) == own.clone().map(identity)
    };
    Ok(candidates(Path::new(&name), &here, &path).into_iter().find(is_own).unwrap_or(file))
}

/// Where a program of this name may be.
fn candidates(name: &Path, here: &Path, path: &OsStr) -> Vec<PathBuf> {
    if name.as_os_str().as_bytes().contains(&b'/') {
        return vec![here.join(name)];
    }
    env::split_paths(path).map(|folder| here.join(folder).join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_and_a_path_is_not() {
        let at = |name: &str| {
            let all = candidates(Path::new(name), Path::new("/home"), OsStr::new("/bin:own::/usr/bin"));
            all.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(at("/opt/current/weir"), ["/opt/current/weir"]);
        assert_eq!(at("current/weir"), ["/home/current/weir"]);
        assert_eq!(at("weir"), ["/bin/weir", "/home/own/weir", "/home/weir", "/usr/bin/weir"]);
    }
}
