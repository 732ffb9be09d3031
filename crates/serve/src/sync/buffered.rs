//! Bytes of HTTP/2 bodies that are buffered in this process, over all loops, and their limit
//! (`docs/spec/serving.md#buffered-bytes`): a part of the memory, or of the limit of the control group. HTTP/1.1 needs
//! no such count: each of its connections buffers at most one buffer.

use std::fs::read_to_string;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use weir_plan::fixed::H2_BUFFERED_PART as PART;

static BUFFERED: AtomicUsize = AtomicUsize::new(0);
static LIMIT: OnceLock<usize> = OnceLock::new();

/// Memory that is assumed where the machine does not report its own.
const UNKNOWN: usize = 1 << 30;

/// Bytes that count as buffered until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct BufferedBytes(usize);

impl BufferedBytes {
    /// Counts this number of bytes.
    pub fn new(bytes: usize) -> BufferedBytes {
        BUFFERED.fetch_add(bytes, Relaxed);
        BufferedBytes(bytes)
    }

    /// Replaces the number.
    pub fn set(&mut self, bytes: usize) {
        if bytes != self.0 {
            *self = BufferedBytes::new(bytes);
        }
    }
}

impl Drop for BufferedBytes {
    fn drop(&mut self) {
        BUFFERED.fetch_sub(self.0, Relaxed);
    }
}

/// Sets the limit, instead of a part of the memory; to be called before anything is buffered.
pub(crate) fn set_limit(bytes: usize) {
    let _ = LIMIT.set(bytes);
}

/// Whether more is buffered than the limit.
pub(crate) fn is_over_limit() -> bool {
    BUFFERED.load(Relaxed) > *LIMIT.get_or_init(default_limit)
}

fn default_limit() -> usize {
    let total = total(&read_to_string("/proc/meminfo").unwrap_or_default());
    let limit = read_to_string("/proc/self/cgroup").ok().and_then(|groups| limit(&groups));
    let memory = total.into_iter().chain(limit).min().unwrap_or(UNKNOWN as u64);
    usize::try_from(memory / PART).unwrap_or(usize::MAX)
}

/// The machine's memory in bytes, from the text of /proc/meminfo.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse().ok().map(|kib: u64| kib * 1024)
}

/// The smallest limit of the control groups that contain this process, from the text of /proc/self/cgroup: version 2,
/// or version 1, which shows a number beyond all memory where no limit is set.
fn limit(groups: &str) -> Option<u64> {
    let two = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let one = groups.lines().find_map(|line| line.split_once(":memory:")).map(|(_, path)| path);
    let two = two.and_then(|path| least("/sys/fs/cgroup", path, "memory.max"));
    let one = one.and_then(|path| least("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
    two.into_iter().chain(one).min()
}

/// The smallest number in this file, over a group's folder and those above it.
fn least(root: &str, path: &str, file: &str) -> Option<u64> {
    let own = std::path::Path::new(root).join(path.trim_start_matches('/'));
    let above = own.ancestors().take_while(|at| at.starts_with(root));
    above.filter_map(|at| read_to_string(at.join(file)).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffered_bytes_are_counted_once() {
        let mut held = BufferedBytes::new(100);
        held.set(5);
        assert_eq!(held.0, 5);
        assert_eq!(total("MemFree: 1 kB\nMemTotal:   2048 kB\n"), Some(2 << 20));
        assert_eq!(total(""), None);
        assert!(default_limit() > 1 << 20);
    }
}
