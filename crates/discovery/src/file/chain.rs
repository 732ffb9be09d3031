//! The way that the system goes from a path to its file: through which folders, by which names.
//!
//! Kubernetes mounts a file as `api.json -> ..data/api.json` and `..data -> ..2026_11_27`, and changes it by a new
//! `..data`. So what must be watched is each folder that has a symbolic link of the way, for that name, and the folder
//! of the file itself. Where something is missing, its folder is watched for it to come.

use crate::fault::{Defect, FaultKind};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The system follows no more symbolic links.
const MOST_LINKS: usize = 40;

/// A name in a folder that decides which file the path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) folder: PathBuf,
    pub(super) name: OsString,
}

/// The way from a path to its file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) links: Vec<Link>,
    /// The file, without symbolic links, or why there is none.
    pub(super) end: Result<PathBuf, Defect>,
}

/// Goes the way of an absolute path.
pub(super) fn walk(path: &Path) -> Chain {
    let mut links = Vec::new();
    let end = follow(path, &mut links);
    Chain { links, end }
}

fn follow(path: &Path, links: &mut Vec<Link>) -> Result<PathBuf, Defect> {
    let mut here = PathBuf::from("/");
    let mut rest = names(path);
    let mut count = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&name);
        let found = std::fs::symlink_metadata(&next);
        if rest.is_empty() || found.as_ref().map_or(true, |found| found.is_symlink()) {
            links.push(Link { folder: here.clone(), name });
        }
        let found = found.map_err(|e| explain(&e, path, &next, rest.is_empty()))?;
        if !found.is_symlink() {
            here = next;
            continue;
        }
        count += 1;
        if count > MOST_LINKS {
            return Err(circle(&next.display().to_string()));
        }
        let target = std::fs::read_link(&next).map_err(|e| explain(&e, path, &next, rest.is_empty()))?;
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        names(&target).into_iter().rev().for_each(|name| rest.push_front(name));
    }
    Ok(here)
}

/// The names of a path; `.` and the root are none.
fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

fn circle(link: &str) -> Defect {
    let problem = format!("symbolic links lead in a circle at {link}");
    Defect::new(FaultKind::Circle, problem, "let them lead to a file")
}

/// Why the way ends at `there`.
fn explain(e: &std::io::Error, path: &Path, there: &Path, is_last: bool) -> Defect {
    let what = there.display();
    match Errno::from_io_error(e) {
        Some(Errno::NOENT) if there == path => Defect::new(
            FaultKind::Missing,
            "there is no such file",
            "write one, with [] if there are no members",
        ),
        Some(Errno::NOENT) if is_last => Defect::new(
            FaultKind::Missing,
            format!("it leads to {what}, which does not exist"),
            "let its symbolic link lead to a file",
        ),
        Some(Errno::NOENT) => Defect::new(
            FaultKind::Missing,
            format!("there is no folder {what}"),
            "make it, with the file in it; weir looks every 5s",
        ),
        Some(Errno::NOTDIR) => {
            let folder = there.parent().unwrap_or(there).display();
            Defect::new(FaultKind::Missing, format!("{folder} is not a folder"), "name a file in a folder")
        }
        _ => unreadable(e, &what.to_string()),
    }
}

/// Why the system does not let weir see something.
pub(super) fn unreadable(e: &std::io::Error, what: &str) -> Defect {
    match Errno::from_io_error(e) {
        Some(Errno::ACCESS | Errno::PERM) => Defect::new(
            FaultKind::Forbidden,
            format!("weir may not read {what}"),
            "let weir's user read the file and enter its folders",
        ),
        Some(Errno::LOOP) => circle(what),
        Some(Errno::NOENT) => {
            let remedy = "write one, with [] if there are no members";
            Defect::new(FaultKind::Missing, "there is no such file", remedy)
        }
        _ => Defect::new(
            FaultKind::Unreadable,
            format!("{what} cannot be read: {e}"),
            "see to its file system; weir looks every 5s",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::folder::Folder;
    use std::os::unix::fs::symlink;

    fn shown(folder: &Folder, name: &str) -> String {
        let root = folder.path("").display().to_string();
        let chain = walk(&folder.path(name));
        let mut lines: Vec<String> = Vec::new();
        for link in &chain.links {
            lines.push(format!("{} {}", link.folder.display(), link.name.display()));
        }
        lines.push(match chain.end {
            Ok(path) => path.display().to_string(),
            Err(defect) => defect.to_string(),
        });
        lines.join("\n").replace(root.trim_end_matches('/'), "")
    }

    #[test]
    fn each_folder_with_a_link_of_the_way_is_found() {
        let folder = Folder::new("chain");
        std::fs::create_dir(folder.path("..1")).expect("a folder");
        folder.write("..1/api.json", "[]");
        symlink("..1", folder.path("..data")).expect("a link");
        symlink("..data/api.json", folder.path("api.json")).expect("a link");
        assert_eq!(shown(&folder, "..1/api.json"), "/..1 api.json\n/..1/api.json");
        assert_eq!(shown(&folder, "api.json"), " api.json\n ..data\n/..1 api.json\n/..1/api.json");
        symlink(folder.path("..data"), folder.path("folder")).expect("a link");
        assert_eq!(
            shown(&folder, "..1/../folder/./api.json"),
            " folder\n ..data\n/..1 api.json\n/..1/api.json"
        );
    }

    #[test]
    fn what_is_missing_is_waited_for_in_the_folder_that_is_there() {
        let folder = Folder::new("missing");
        folder.write("plain", "[]");
        symlink("away/api.json", folder.path("lost")).expect("a link");
        symlink("api.json", folder.path("dangling")).expect("a link");
        symlink("circle", folder.path("circle")).expect("a link");
        let sentence = |name| shown(&folder, name).lines().last().map(str::to_owned).unwrap_or_default();
        assert_eq!(
            shown(&folder, "a/b/api.json"),
            " a\nthere is no folder /a; make it, with the file in it; weir looks every 5s"
        );
        assert_eq!(
            shown(&folder, "api.json"),
            " api.json\nthere is no such file; write one, with [] if there are no members"
        );
        assert_eq!(sentence("plain/api.json"), "/plain is not a folder; name a file in a folder");
        assert_eq!(
            sentence("lost"),
            "there is no folder /away; make it, with the file in it; weir looks every 5s"
        );
        assert_eq!(
            sentence("dangling"),
            "it leads to /api.json, which does not exist; let its symbolic link lead to a file"
        );
        assert_eq!(sentence("circle"), "symbolic links lead in a circle at /circle; let them lead to a file");
    }

    #[test]
    fn errors_of_the_system_have_words() {
        let words = |errno: Errno| unreadable(&errno.into(), "the file").to_string();
        assert_eq!(
            words(Errno::ACCESS),
            "weir may not read the file; let weir's user read the file and enter its folders"
        );
        assert_eq!(
            words(Errno::STALE),
            "the file cannot be read: Stale file handle (os error 116); see to its file system; weir looks every 5s"
        );
        assert_eq!(
            words(Errno::LOOP),
            "symbolic links lead in a circle at the file; let them lead to a file"
        );
    }
}
