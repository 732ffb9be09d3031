//! What the system says about folders: inotify, filtered to the names that lead to followed files.
//!
//! A watch is only a hint to read sooner. Where it cannot be had (no descriptors, too many watches, a network folder)
//! files are found changed by the look every few seconds, and what the system refuses is said once ([`Unwatched`]).
//!
//! The threads that read files share it. Each adds its own watches, since a network folder may hold that up, and no lock is
//! held meanwhile. So another one may remove a watch that was just added: then the next look adds it again.

use super::chain::Link;
use crate::fault::{Unwatched, UnwatchedKind};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What can change which bytes a path leads to, or whether they can be read.
const EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The number of events that are taken at once: a busy folder must not keep the thread from reading.
const MOST_EVENTS: usize = 4096;

/// A source's interest in a name of a watched folder.
#[derive(Debug, PartialEq, Eq)]
struct Interest {
    source: usize,
    name: OsString,
}

/// The calls by which the system is asked.
#[derive(Clone, Copy, Debug)]
struct Calls {
    init: fn() -> Result<OwnedFd, Errno>,
    add: fn(&OwnedFd, &Path) -> Result<i32, Errno>,
}

const CALLS: Calls = Calls {
    init: || inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC),
    add: |inotify, folder| inotify::add_watch(inotify, folder, EVENTS),
};

/// The watched folders of all sources.
#[derive(Debug)]
pub(crate) struct Watch {
    calls: Calls,
    /// Empty while the system refuses; it is asked again at each look.
    inotify: OnceLock<OwnedFd>,
    interests: Mutex<HashMap<i32, Vec<Interest>>>,
    refusals: Mutex<Refusals>,
}

/// What the system has refused.
#[derive(Debug, Default)]
struct Refusals {
    kinds: Vec<UnwatchedKind>,
    /// Those that have not been taken.
    new: Vec<Unwatched>,
}

impl Watch {
    /// Nothing is watched yet.
    pub(crate) fn new() -> Watch {
        Watch::with_calls(CALLS)
    }

    fn with_calls(calls: Calls) -> Watch {
        let (interests, refusals) = (Mutex::default(), Mutex::default());
        Watch { calls, inotify: OnceLock::new(), interests, refusals }
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what cannot be watched, once for each kind.
    fn refuse(&self, unwatched: Unwatched) {
        let mut refusals = self.refusals();
        if !refusals.kinds.contains(&unwatched.kind) {
            refusals.kinds.push(unwatched.kind);
            refusals.new.push(unwatched);
        }
    }

    /// Takes what the system refuses to watch and has not been said.
    pub(crate) fn take_refusals(&self) -> Vec<Unwatched> {
        std::mem::take(&mut self.refusals().new)
    }

    fn inotify(&self) -> Option<&OwnedFd> {
        if self.inotify.get().is_none() {
            match (self.calls.init)() {
                // Another thread may have been sooner.
                Ok(inotify) => drop(self.inotify.set(inotify)),
                Err(e) => self.refuse(Unwatched::instance(e)),
            }
        }
        self.inotify.get()
    }

    fn interests(&self) -> MutexGuard<'_, HashMap<i32, Vec<Interest>>> {
        self.interests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Becomes readable when there are events.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.get().map(AsFd::as_fd)
    }

    /// Watches these names for a source, and no others. A folder that is another one by now is watched anew.
    pub(super) fn follow(&self, source: usize, links: &[Link]) {
        let Some(inotify) = self.inotify() else { return };
        let mut watched = Vec::with_capacity(links.len());
        for Link { folder, name } in links {
            match (self.calls.add)(inotify, folder) {
                Ok(folder) => watched.push((folder, name)),
                // It has gone meanwhile, which the file's reader says.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(e) => self.refuse(Unwatched::folder(folder, e)),
            }
        }
        let mut all = self.interests();
        for interests in all.values_mut() {
            interests.retain(|interest| interest.source != source);
        }
        for (folder, name) in watched {
            all.entry(folder).or_default().push(Interest { source, name: name.clone() });
        }
        all.retain(|folder, interests| {
            if interests.is_empty() {
                // It fails where the folder is gone.
                let _ = inotify::remove_watch(inotify, *folder);
            }
            !interests.is_empty()
        });
    }

    /// Watches no name for a source any more.
    pub(crate) fn forget(&self, source: usize) {
        if self.inotify.get().is_some() {
            self.follow(source, &[]);
        }
    }

    /// Takes the events that are there. Returns the sources that they concern.
    pub(crate) fn take_changes(&self) -> Vec<usize> {
        let mut changed = Vec::new();
        let Some(inotify) = self.inotify.get() else { return changed };
        let mut all = self.interests();
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(inotify, &mut buffer);
        let mut taken = 0;
        // Events in the buffer have left the system, and would be lost.
        while taken < MOST_EVENTS || !reader.is_buffer_empty() {
            let Ok(event) = reader.next() else { break };
            taken += 1;
            let flags = event.events();
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                changed.extend(all.values().flatten().map(|interest| interest.source));
                continue;
            }
            let Some(interests) = all.get(&event.wd()) else { continue };
            // An event without a name is one of the folder itself.
            let concerned = interests.iter().filter(|interest| name.is_none_or(|name| interest.name == name));
            changed.extend(concerned.map(|interest| interest.source));
            if flags.contains(ReadFlags::IGNORED) {
                all.remove(&event.wd());
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::super::chain::walk;
    use super::*;
    use crate::file::folder::Folder;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// The system queues an event before the call returns that causes it, so that nothing is waited for.
    fn sees(watch: &Watch, folder: &Folder, change: impl FnOnce(&Folder)) -> Vec<usize> {
        watch.follow(4, &walk(&folder.path("api.json")).links);
        watch.take_changes();
        change(folder);
        watch.take_changes()
    }

    #[test]
    fn every_way_to_change_a_file_is_seen_and_nothing_else() {
        let (watch, folder) = (Watch::new(), Folder::new("watch"));
        let sees = |change: fn(&Folder)| sees(&watch, &folder, change);
        assert_eq!(sees(|folder| folder.write("api.json", "[]")), [4]);
        assert_eq!(sees(|folder| folder.write("api.json", "[ ]")), [4]);
        assert_eq!(sees(|folder| folder.write("other", "[]")), [0; 0]);
        assert_eq!(sees(|folder| fs::rename(folder.path("other"), folder.path("api.json")).unwrap()), [4]);
        let private = |folder: &Folder| {
            fs::set_permissions(folder.path("api.json"), fs::Permissions::from_mode(0o600)).unwrap();
        };
        assert_eq!(sees(private), [4]);
        assert_eq!(sees(|folder| fs::remove_file(folder.path("api.json")).unwrap()), [4]);
        fs::create_dir(folder.path("..1")).unwrap();
        fs::create_dir(folder.path("..2")).unwrap();
        symlink("..1", folder.path("..data")).unwrap();
        symlink("..2", folder.path("new")).unwrap();
        assert_eq!(sees(|folder| symlink("..data/api.json", folder.path("api.json")).unwrap()), [4]);
        assert_eq!(sees(|folder| folder.write("..1/api.json", "[]")), [4]);
        assert_eq!(sees(|folder| folder.write("..2/api.json", "[]")), [0; 0]);
        assert_eq!(sees(|folder| fs::rename(folder.path("new"), folder.path("..data")).unwrap()), [4]);
        // Behind the swap only the new folder counts.
        assert_eq!(sees(|folder| folder.write("..1/api.json", "[ ]")), [0; 0]);
        assert_eq!(sees(|folder| folder.write("..2/api.json", "[ ]")), [4]);
        assert_eq!(sees(|folder| fs::remove_dir_all(folder.path("..2")).unwrap()), [4]);
        assert_eq!(sees(|folder| fs::create_dir(folder.path("..2")).unwrap()), [4]);
    }

    #[test]
    fn a_source_that_is_forgotten_sees_nothing_and_others_do() {
        let (watch, folder) = (Watch::new(), Folder::new("forgotten"));
        for source in [1, 2] {
            watch.follow(source, &walk(&folder.path("api.json")).links);
        }
        watch.take_changes();
        watch.forget(1);
        folder.write("api.json", "[]");
        assert_eq!(watch.take_changes(), [2]);
        watch.forget(2);
        assert!(watch.interests().is_empty());
        // Where nothing can be watched there is nothing to forget.
        let none = Calls { init: || Err(Errno::MFILE), ..CALLS };
        let watch = Watch::with_calls(none);
        watch.forget(1);
        assert!(watch.take_refusals().is_empty());
    }

    /// The sentences that a watch leaves behind by two looks for two files.
    fn refused(watch: &Watch, folder: &Folder) -> Vec<String> {
        for (source, name) in [(0, "a.json"), (1, "b.json"), (0, "a.json")] {
            watch.follow(source, &walk(&folder.path(name)).links);
        }
        let said = watch.take_refusals().iter().map(Unwatched::to_string).collect();
        assert!(watch.take_refusals().is_empty(), "once");
        said
    }

    #[test]
    fn what_the_system_refuses_is_said_once_with_the_remedy() {
        let folder = Folder::new("refused");
        let none = Calls { init: || Err(Errno::MFILE), ..CALLS };
        assert_eq!(
            refused(&Watch::with_calls(none), &folder),
            [
                "lists are not watched, but looked at every 5s: no inotify instance is left: Too many open files (os error 24); \
              raise fs.inotify.max_user_instances, or the limit of open files"
            ]
        );
        let full = Calls { add: |_, _| Err(Errno::NOSPC), ..CALLS };
        assert_eq!(
            refused(&Watch::with_calls(full), &folder),
            [
                "some lists are not watched, but looked at every 5s: no inotify watch is left: No space left on device (os error 28); \
              raise fs.inotify.max_user_watches"
            ]
        );
        let other = Calls { add: |_, _| Err(Errno::OPNOTSUPP), ..CALLS };
        let said = refused(&Watch::with_calls(other), &folder);
        let root = folder.path("").display().to_string();
        assert_eq!(
            said.iter().map(|said| said.replace(root.trim_end_matches('/'), "FOLDER")).collect::<Vec<_>>(),
            [
                "some lists are not watched, but looked at every 5s: the folder FOLDER cannot be watched: Operation not supported (os error 95); see to its file system, or move the file to another one"
            ]
        );
        assert_eq!(refused(&Watch::new(), &folder), [""; 0]);
        // A folder that has gone is no refusal.
        assert_eq!(
            refused(&Watch::with_calls(Calls { add: |_, _| Err(Errno::NOENT), ..CALLS }), &folder),
            [""; 0]
        );
    }

    #[test]
    fn a_busy_folder_overflows_into_a_change_of_all() {
        let (watch, folder) = (Watch::new(), Folder::new("overflow"));
        let most: usize =
            fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
        let seen = sees(&watch, &folder, |folder| {
            for i in 0..=most.min(50_000) {
                folder.write(&format!("{}", i % 2), "");
            }
        });
        assert!(seen.is_empty());
        let mut seen = seen;
        for _ in 0..=most / MOST_EVENTS {
            seen.extend(watch.take_changes());
        }
        assert!(seen == [4] || most > 50_000, "{seen:?}");
    }
}
