//! Bytes of HTTP/2 bodies that wait in this process, over all loops, and how many may (`docs/spec/serving.md#buffered-bytes`):
//! a part of the memory, or of what its control group allows. HTTP/1.1 needs no such count: of each connection a buffer waits
//! at most.

use std::fs::read_to_string;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use weir_plan::fixed::H2_BUFFERED_PART as PART;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: OnceLock<usize> = OnceLock::new();

/// Where a machine does not tell of its memory.
const UNKNOWN: usize = 1 << 30;

/// Bytes that count, until it is dropped.
#[derive(Debug, Default)]
pub struct Held(usize);

impl Held {
    /// So many more.
    pub fn new(bytes: usize) -> Held {
        HELD.fetch_add(bytes, Relaxed);
        Held(bytes)
    }

    /// It is so many now.
    pub fn set(&mut self, bytes: usize) {
        if bytes != self.0 {
            *self = Held::new(bytes);
        }
    }

    /// So many of them go on by themselves.
    pub fn split(&mut self, bytes: usize) -> Held {
        let bytes = bytes.min(self.0);
        self.0 -= bytes;
        Held(bytes)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(self.0, Relaxed);
    }
}

/// No more than so many may wait, instead of a part of the memory. Said once, before anything waits.
pub fn limit_to(bytes: usize) {
    let _ = MOST.set(bytes);
}

/// Whether more wait than may.
pub fn is_over() -> bool {
    HELD.load(Relaxed) > *MOST.get_or_init(most)
}

fn most() -> usize {
    let total = total(&read_to_string("/proc/meminfo").unwrap_or_default());
    let limit = read_to_string("/proc/self/cgroup").ok().and_then(|groups| limit(&groups));
    let memory = total.into_iter().chain(limit).min().unwrap_or(UNKNOWN as u64);
    usize::try_from(memory / PART).unwrap_or(usize::MAX)
}

/// The machine's memory, of /proc/meminfo.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse().ok().map(|kib: u64| kib * 1024)
}

/// The least that a group above this process allows, of /proc/self/cgroup: version 2, or version 1, which says a number beyond
/// all memory where it sets none.
fn limit(groups: &str) -> Option<u64> {
    let two = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let one = groups.lines().find_map(|line| line.split_once(":memory:")).map(|(_, path)| path);
    let two = two.and_then(|path| least("/sys/fs/cgroup", path, "memory.max"));
    let one = one.and_then(|path| least("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
    two.into_iter().chain(one).min()
}

/// The least that this file says in a group's folder and those above it.
fn least(root: &str, path: &str, file: &str) -> Option<u64> {
    let own = std::path::Path::new(root).join(path.trim_start_matches('/'));
    let above = own.ancestors().take_while(|at| at.starts_with(root));
    above.filter_map(|at| read_to_string(at.join(file)).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_given_back() {
        let mut held = Held::new(100);
        let part = held.split(30);
        assert_eq!((held.0, part.0), (70, 30));
        held.set(5);
        drop(part);
        assert_eq!(held.0, 5);
        assert_eq!(held.split(9).0, 5);
        assert_eq!(total("MemFree: 1 kB\nMemTotal:   2048 kB\n"), Some(2 << 20));
        assert_eq!(total(""), None);
        assert!(most() > 1 << 20);
    }
}
