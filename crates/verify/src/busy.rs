//! The load of the machine: the time that ready threads waited for a core, and the share that the host took.

use std::fs;

/// The time that all live threads of this process have waited for a core, ns; `None`: the system does not report it.
pub(crate) fn waited_ns() -> Option<u64> {
    let threads = fs::read_dir("/proc/self/task").ok()?;
    let waited = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Some(waited.sum())
}

/// The same for this thread alone.
pub(crate) fn own_waited_ns() -> Option<u64> {
    fs::read_to_string("/proc/thread-self/schedstat").ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// Ticks of the machine's cores: those that the host took for others, and all.
pub(crate) fn stolen() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    Some((*ticks.get(7)?, ticks.iter().take(8).sum()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_system_says_how_long_threads_wait() {
        // What threads of other tests waited goes with them, so that sums of two moments say nothing.
        let tells = std::path::Path::new("/proc/self/schedstat").exists();
        assert_eq!((super::waited_ns().is_some(), super::own_waited_ns().is_some()), (tells, tells));
        assert!(super::stolen().is_none_or(|(stolen, all)| stolen <= all));
    }
}
