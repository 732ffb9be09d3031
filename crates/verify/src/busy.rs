//! How busy the machine is: for how long the threads of this process were ready and waited for a core, and what the host took.

use std::fs;

/// For how long all threads of this process that live have waited for a core, ns; `None`: the system does not say.
pub(crate) fn waited_ns() -> Option<u64> {
    let threads = fs::read_dir("/proc/self/task").ok()?;
    let waited = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Some(waited.sum())
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
        let before = super::waited_ns();
        assert!(before <= super::waited_ns(), "it only grows while no thread ends");
        assert!(super::stolen().is_none_or(|(stolen, all)| stolen <= all));
    }
}
