//! Files that are followed for real: renamed, swapped, written in place, lost and found, and no files at all.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use weir_discovery::{Discovery, FaultKind, FollowedSource, News, Readers, Update, run};
use weir_plan::SourceKind;
use weir_stats::Key;
use weir_testkit::assert_frozen;

/// What is waited for comes long before.
const BOUND: Duration = Duration::from_secs(30);

/// A folder of a test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let temp = fs::canonicalize(std::env::temp_dir()).expect("a folder for temporary files");
        let path = temp.join(format!("weir-follow-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).expect("a file");
    }

    /// Writes beside the file and renames over it.
    fn replace(&self, name: &str, text: &str) {
        self.write("new", text);
        fs::rename(self.path("new"), self.path(name)).expect("a file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Sends on lists and faults; a system that is short of inotify makes tests later, not wrong.
fn only_updates(out: Sender<Update>) -> impl FnMut(News) + Send {
    move |news| {
        if let News::Update(update) = news {
            drop(out.send(update));
        }
    }
}

/// The source of a path.
fn file(path: &Path) -> FollowedSource {
    SourceKind::File(path.to_string_lossy().into_owned()).into()
}

/// A followed file, and its updates in short.
struct Followed {
    discovery: Option<Discovery>,
    updates: Receiver<Update>,
}

impl Followed {
    fn new(path: &Path) -> Followed {
        let (out, updates) = channel();
        let discovery = run(&[file(path)], &Readers::default(), Key::new(1), only_updates(out));
        Followed { discovery: Some(discovery.expect("a thread")), updates }
    }

    /// The next update: the addresses, or the kind of the fault.
    fn next(&self) -> Result<Vec<String>, FaultKind> {
        let update = self.updates.recv_timeout(BOUND).expect("an update");
        let snapshot = update.result.map_err(|fault| fault.defect.kind)?;
        Ok(snapshot.members.iter().map(|member| member.addr.clone()).collect())
    }

    /// Waits for this list; others and faults before it are as they are while it is written.
    fn wait(&self, list: &[&str]) {
        while self.next() != Ok(list.iter().map(|addr| (*addr).to_owned()).collect()) {}
    }
}

#[test]
fn a_file_is_followed_through_renames_over_it() {
    let folder = Folder::new("renames");
    folder.write("api.json", r#"["a:1"]"#);
    let file = Followed::new(&folder.path("api.json"));
    assert_eq!(file.next(), Ok(vec!["a:1".to_owned()]));
    // The same bytes are no update.
    folder.replace("api.json", r#"["a:1"]"#);
    folder.write("other.json", r#"["x:1"]"#);
    for list in ["b:2", "c:3", "d:4"] {
        folder.replace("api.json", &format!("[\"{list}\"]"));
        assert_eq!(file.next(), Ok(vec![list.to_owned()]));
    }
}

#[test]
fn swapped_links_are_followed_as_kubernetes_swaps_them() {
    let folder = Folder::new("kubernetes");
    let publish = |version: &str, list: &str| {
        fs::create_dir(folder.path(version)).expect("a folder");
        folder.write(&format!("{version}/api.json"), list);
        symlink(version, folder.path("..data_tmp")).expect("a link");
        fs::rename(folder.path("..data_tmp"), folder.path("..data")).expect("a link");
    };
    publish("..1", r#"["a:1"]"#);
    symlink("..data/api.json", folder.path("api.json")).expect("a link");
    let file = Followed::new(&folder.path("api.json"));
    assert_eq!(file.next(), Ok(vec!["a:1".to_owned()]));
    for version in 2..5 {
        publish(&format!("..{version}"), &format!("[\"a:{version}\"]"));
        fs::remove_dir_all(folder.path(&format!("..{}", version - 1))).expect("a folder");
        assert_eq!(file.next(), Ok(vec![format!("a:{version}")]));
    }
    // What the links lead to is followed as well.
    folder.write("..4/api.json", r#"["b:1"]"#);
    file.wait(&["b:1"]);
}

#[test]
fn a_file_that_is_written_in_place_in_pieces_is_read_whole() {
    use std::io::Write;
    let folder = Folder::new("pieces");
    folder.write("api.json", r#"["a:1"]"#);
    let file = Followed::new(&folder.path("api.json"));
    assert_eq!(file.next(), Ok(vec!["a:1".to_owned()]));
    let mut writer = fs::File::create(folder.path("api.json")).expect("a file");
    writer.write_all(br#"["b:2", "#).expect("writes");
    // An empty file, or the first piece alone, is no list.
    assert_eq!(file.next(), Err(FaultKind::Cut));
    writer.write_all(br#""c:3"]"#).expect("writes");
    assert_eq!(file.next(), Ok(vec!["b:2".to_owned(), "c:3".to_owned()]));
    drop(writer);
    // The list of before is an update after a fault.
    folder.write("api.json", r#"["b:2""#);
    assert_eq!(file.next(), Err(FaultKind::Cut));
    folder.write("api.json", r#"["b:2", "c:3"]"#);
    assert_eq!(file.next(), Ok(vec!["b:2".to_owned(), "c:3".to_owned()]));
}

#[test]
fn a_folder_is_found_that_was_missing_removed_or_replaced() {
    let folder = Folder::new("folder");
    let file = Followed::new(&folder.path("in/api.json"));
    assert_eq!(file.next(), Err(FaultKind::Missing));
    fs::create_dir(folder.path("in")).expect("a folder");
    folder.write("in/api.json", r#"["a:1"]"#);
    file.wait(&["a:1"]);
    fs::remove_dir_all(folder.path("in")).expect("a folder");
    assert_eq!(file.next(), Err(FaultKind::Missing));
    fs::create_dir(folder.path("in")).expect("a folder");
    folder.write("in/api.json", r#"["a:1"]"#);
    file.wait(&["a:1"]);
    // Another folder in its place.
    fs::create_dir(folder.path("next")).expect("a folder");
    folder.write("next/api.json", r#"["b:2"]"#);
    fs::rename(folder.path("in"), folder.path("gone")).expect("a folder");
    fs::rename(folder.path("next"), folder.path("in")).expect("a folder");
    file.wait(&["b:2"]);
    folder.replace("in/api.json", r#"["c:3"]"#);
    file.wait(&["c:3"]);
}

#[test]
fn a_change_that_no_watch_sees_is_found_by_a_look() {
    let folder = Folder::new("above");
    for (name, list) in [("a/b", r#"["a:1"]"#), ("c/b", r#"["b:2"]"#)] {
        fs::create_dir_all(folder.path(name)).expect("a folder");
        folder.write(&format!("{name}/api.json"), list);
    }
    let file = Followed::new(&folder.path("a/b/api.json"));
    assert_eq!(file.next(), Ok(vec!["a:1".to_owned()]));
    // Only the file's own folder is watched, which does not change.
    fs::rename(folder.path("a"), folder.path("gone")).expect("a folder");
    fs::rename(folder.path("c"), folder.path("a")).expect("a folder");
    file.wait(&["b:2"]);
}

#[test]
fn what_is_no_list_is_a_sentence_and_the_next_list_counts() {
    let folder = Folder::new("sentences");
    fs::create_dir(folder.path("folder")).expect("a folder");
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.path("fifo"), rustix::fs::Mode::RUSR).expect("a FIFO");
    let _socket = std::os::unix::net::UnixListener::bind(folder.path("socket")).expect("a socket");
    symlink("/dev/zero", folder.path("device")).expect("a link");
    symlink("circle", folder.path("circle")).expect("a link");
    symlink("nowhere", folder.path("dangling")).expect("a link");
    folder.write("plain", "[]");
    folder.write("cut", "[\"a:1\",\n \"b:");
    let large = fs::File::create(folder.path("large")).expect("a file");
    large.set_len((64 << 20) + 1).expect("a long file");
    let many: Vec<String> = (1..=200_000).map(|i| format!("\"a{i}:1\"")).collect();
    folder.write("many", format!("[{}]", many.join(",\n")));
    let names = [
        "missing",
        "no/folder",
        "plain/file",
        "folder",
        "fifo",
        "socket",
        "device",
        "circle",
        "dangling",
        "cut",
        "large",
        "many",
    ];
    let sources: Vec<FollowedSource> = names.iter().map(|name| file(&folder.path(name))).collect();
    let (out, updates) = channel();
    let _discovery = run(&sources, &Readers::default(), Key::new(1), only_updates(out)).expect("a thread");
    let mut page = String::new();
    // Each is read on a thread of its own.
    let first: BTreeMap<usize, Update> = (0..names.len())
        .map(|_| updates.recv_timeout(BOUND).expect("an update"))
        .map(|update| (update.source, update))
        .collect();
    for (i, name) in names.iter().enumerate() {
        let fault = first[&i].result.clone().map(|_| ()).expect_err("no list");
        let root = format!("{}/", folder.0.display());
        page += &format!("{name}\n    {}\n", fault.to_string().replace(&root, "./"));
    }
    assert_frozen(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frozen/files.txt"), &page);
    for (i, name) in names.iter().enumerate().skip(3) {
        let list = format!("[\"{name}:1\"]");
        let path = folder.path(name);
        if path.is_dir() {
            fs::remove_dir(&path).expect("a folder")
        }
        folder.replace(name, &list);
        // Between the folder and the file nothing is there.
        let addr = loop {
            let update = updates.recv_timeout(BOUND).expect("an update");
            assert_eq!(update.source, i);
            if let Ok(snapshot) = update.result {
                break snapshot.members[0].addr.clone();
            }
        };
        assert_eq!(addr, format!("{name}:1"));
    }
}

#[test]
fn a_writer_that_never_rests_is_read_ten_times_a_second_and_its_last_list_counts() {
    let folder = Folder::new("busy");
    folder.write("api.json", r#"["a0:1"]"#);
    let file = Followed::new(&folder.path("api.json"));
    assert_eq!(file.next(), Ok(vec!["a0:1".to_owned()]));
    let start = Instant::now();
    let (mut updates, mut writes) = (0, 0);
    // By looks alone it would take 100 s.
    while updates < 20 {
        assert!(start.elapsed() < 2 * BOUND, "{updates} updates after {writes} writes");
        writes += 1;
        folder.replace("api.json", &format!("[\"a{writes}:1\"]"));
        match file.updates.recv_timeout(Duration::from_millis(10)) {
            Ok(update) => updates += usize::from(update.result.is_ok()),
            Err(e) => assert_eq!(e, RecvTimeoutError::Timeout),
        }
    }
    writes += 1;
    let last = format!("a{writes}:1");
    folder.replace("api.json", &format!("[\"{last}\"]"));
    while file.next() != Ok(vec![last.clone()]) {
        updates += 1;
    }
    let most = start.elapsed().as_millis() / 100 + 2;
    assert!((updates as u128) < most, "{updates} updates, at most {most}");
}

#[test]
fn sources_of_one_folder_are_kept_apart_and_the_end_is_prompt() {
    let folder = Folder::new("several");
    folder.write("a.json", r#"["a:1"]"#);
    folder.write("b.json", r#"["b:1"]"#);
    let sources = ["a.json", "b.json", "a.json"].map(|name| file(&folder.path(name)));
    let (out, updates) = channel();
    let discovery = run(&sources, &Readers::default(), Key::new(1), only_updates(out)).expect("a thread");
    let next = || {
        let update = updates.recv_timeout(BOUND).expect("an update");
        format!("{} {}", update.source, update.result.expect("a list").members[0].addr)
    };
    let mut first = [next(), next(), next()];
    first.sort();
    assert_eq!(first, ["0 a:1", "1 b:1", "2 a:1"]);
    folder.replace("b.json", r#"["b:2"]"#);
    assert_eq!(next(), "1 b:2");
    folder.replace("a.json", r#"["a:2"]"#);
    let mut both = [next(), next()];
    both.sort();
    assert_eq!(both, ["0 a:2", "2 a:2"]);
    let start = Instant::now();
    drop(discovery);
    // The thread drops its side of the channel; the next look would be later.
    assert_eq!(updates.recv_timeout(BOUND).map(|update| update.source), Err(RecvTimeoutError::Disconnected));
    assert!(start.elapsed() < Duration::from_secs(4));
    // Of no sources there is nothing to follow, but that.
    let mut nothing = Followed::new(&folder.path("a.json"));
    nothing.discovery = None;
    while nothing.updates.recv_timeout(BOUND).is_ok() {}
}

#[test]
fn a_source_begins_and_ends_while_others_go_on() {
    let folder = Folder::new("each");
    folder.write("a.json", r#"["a:1"]"#);
    folder.write("b.json", r#"["b:1"]"#);
    let (out, updates) = channel();
    let discovery = Discovery::start(&Readers::default(), Key::new(1), only_updates(out));
    let mut discovery = discovery.expect("a thread");
    let next = || {
        let update: Update = updates.recv_timeout(BOUND).expect("an update");
        format!("{} {}", update.source, update.result.expect("a list").members[0].addr)
    };
    assert_eq!(discovery.follow(file(&folder.path("a.json"))).expect("a thread"), 0);
    assert_eq!(next(), "0 a:1");
    assert_eq!(discovery.follow(file(&folder.path("b.json"))).expect("a thread"), 1);
    // The first one gives nothing again.
    assert_eq!(next(), "1 b:1");
    discovery.forget(0);
    folder.replace("a.json", r#"["a:2"]"#);
    folder.replace("b.json", r#"["b:2"]"#);
    assert_eq!(next(), "1 b:2");
    // The same file is another source.
    assert_eq!(discovery.follow(file(&folder.path("a.json"))).expect("a thread"), 2);
    assert_eq!(next(), "2 a:2");
    // There is no such source, or not any more.
    discovery.forget(0);
    discovery.forget(9);
    folder.replace("a.json", r#"["a:3"]"#);
    assert_eq!(next(), "2 a:3");
}
