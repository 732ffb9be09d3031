//! Files of any content that are followed for real: only those that differ are news, whichever way they were changed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use weir_discovery::{FileNews, FollowedFiles, follow_files};

/// What is waited for comes long before.
const BOUND: Duration = Duration::from_secs(30);

/// A folder of a test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let temp = fs::canonicalize(std::env::temp_dir()).expect("a folder for temporary files");
        let path = temp.join(format!("weir-files-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes beside the file and renames over it.
    fn replace(&self, name: &str, text: &str) {
        fs::write(self.path("new"), text).expect("a file");
        fs::rename(self.path("new"), self.path(name)).expect("a file");
    }

    /// Lets a file lead to a folder that is swapped, as Kubernetes mounts it.
    fn mount(&self, name: &str, version: u32, text: &str) {
        let folder = format!("..{version}");
        fs::create_dir(self.path(&folder)).expect("a folder");
        fs::write(self.path(&folder).join(name), text).expect("a file");
        symlink(&folder, self.path("..new")).expect("a link");
        fs::rename(self.path("..new"), self.path("..data")).expect("a link");
        if version == 1 {
            symlink(format!("..data/{name}"), self.path(name)).expect("a link");
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The numbers of changed files; a system that is short of inotify makes tests later, not wrong.
fn follow(folder: &Folder, names: &[&str]) -> (FollowedFiles, Receiver<Vec<usize>>) {
    let (out, changes) = channel();
    let paths: Vec<PathBuf> = names.iter().map(|name| folder.path(name)).collect();
    let deliver = move |news| {
        if let FileNews::Changed(numbers) = news {
            drop(out.send(numbers));
        }
    };
    (follow_files(&paths, deliver).expect("a thread"), changes)
}

#[test]
fn only_what_differs_is_news() {
    let folder = Folder::new("news");
    folder.replace("a.pem", "1");
    folder.mount("c.pem", 1, "1");
    let (_followed, changes) = follow(&folder, &["a.pem", "b.pem", "c.pem"]);
    let next = || changes.recv_timeout(BOUND).expect("a change");
    assert_eq!(next(), [0, 1, 2], "at first all of them, though one is missing");
    folder.replace("a.pem", "2");
    assert_eq!(next(), [0]);
    folder.mount("c.pem", 2, "2");
    assert_eq!(next(), [2]);
    // The same bytes, in another file and behind another link.
    folder.replace("a.pem", "2");
    folder.mount("c.pem", 3, "2");
    folder.replace("b.pem", "1");
    assert_eq!(next(), [1]);
    fs::remove_file(folder.path("b.pem")).expect("a file");
    assert_eq!(next(), [1]);
    folder.replace("b.pem", "1");
    assert_eq!(next(), [1], "what was gone is there again");
}

#[test]
fn what_is_written_in_place_is_news() {
    let folder = Folder::new("place");
    folder.replace("a.pem", "1");
    let (_followed, changes) = follow(&folder, &["a.pem"]);
    assert_eq!(changes.recv_timeout(BOUND), Ok(vec![0]));
    for n in 2..6 {
        // A reading may come between, of which there is news too; the next change is behind the last of them.
        fs::write(folder.path("a.pem"), format!("{n}")).expect("a file");
        assert_eq!(changes.recv_timeout(BOUND), Ok(vec![0]));
    }
}

#[test]
fn a_dropped_one_ends() {
    let folder = Folder::new("ends");
    let (followed, changes) = follow(&folder, &["a.pem"]);
    assert_eq!(changes.recv_timeout(BOUND), Ok(vec![0]));
    drop(followed);
    assert_eq!(changes.recv_timeout(BOUND), Err(RecvTimeoutError::Disconnected));
}
