//! The system's figures of the process, by the names that all exporters use, and process-wide counts.

use super::families::Id;
use super::sample::{Samples, Value};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// The result of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reload {
    Applied,
    /// The file, or one that it names, is wrong: nothing has changed.
    Failed,
}

/// Process-wide counts, and the last counts of each thread.
#[derive(Default)]
pub(crate) struct ProcessMetrics {
    /// The generation of the topology that is served.
    pub generation: AtomicU64,
    reloads: [AtomicU64; 2],
    /// By thread. Held for the length of a scrape: a second one waits.
    pub said: Mutex<Vec<Option<Arc<Samples>>>>,
}

impl ProcessMetrics {
    /// Counts a reload.
    pub fn reloaded(&self, result: Reload) {
        self.reloads[result as usize].fetch_add(1, Relaxed);
    }

    /// The figures of the process.
    pub fn gather(&self, out: &mut Samples) {
        out.add(Id::BuildInfo, [env!("CARGO_PKG_VERSION").into()], 1);
        out.add(Id::ConfigGeneration, [], self.generation.load(Relaxed));
        for (count, result) in self.reloads.iter().zip(["applied", "failed"]) {
            let count = count.load(Relaxed);
            if count > 0 {
                out.add(Id::ConfigReloads, [result.into()], count);
            }
        }
        for (family, value) in of_system().into_iter().flatten() {
            out.add(family, [], value);
        }
    }
}

/// The time, ms since 1970.
pub(crate) fn now_unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Descriptors that are open, and that may be; `None`: the system does not say.
pub(crate) fn descriptors() -> Option<(u64, u64)> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    // The folder that is being read is one of them.
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as u64;
    Some((open, limit))
}

/// Reads `/proc`; missing figures are left out.
fn of_system() -> [Option<(Id, Value)>; 7] {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let stat = read("/proc/self/stat").unwrap_or_default();
    // The name, which may have blanks and brackets in it, ends with the last bracket; what follows it counts from 3.
    let fields: Vec<u64> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split(' ')
        .map(|f| f.parse().unwrap_or_default())
        .collect();
    let field = |number: usize| fields.get(number - 2).copied();
    let ticks = |n: u64| n as f64 / rustix::param::clock_ticks_per_second() as f64;
    let page = rustix::param::page_size() as u64;
    let begun = read("/proc/stat").and_then(|stat| {
        let booted = stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<f64>().ok()?;
        Some(booted + ticks(field(22)?))
    });
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    // The folder that is being read is one of them.
    let open = std::fs::read_dir("/proc/self/fd").map(|all| all.count().saturating_sub(1) as u64).ok();
    [
        field(14).zip(field(15)).map(|(user, system)| (Id::ProcessCpu, ticks(user + system).into())),
        field(24).map(|pages| (Id::ProcessResident, (pages * page).into())),
        field(23).map(|bytes| (Id::ProcessVirtual, bytes.into())),
        open.map(|open| (Id::ProcessOpenFds, open.into())),
        limit.map(|limit| (Id::ProcessMaxFds, limit.into())),
        field(20).map(|threads| (Id::ProcessThreads, threads.into())),
        begun.map(|begun| (Id::ProcessStart, begun.into())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_knows_this_process() {
        let all = of_system();
        let value = |id: Id| all.iter().flatten().find(|(of, _)| *of == id).map(|(_, value)| value);
        assert!(all.iter().all(Option::is_some), "{all:?}");
        assert!(matches!(value(Id::ProcessThreads), Some(Value::Whole(1..10_000))), "{all:?}");
        assert!(matches!(value(Id::ProcessResident), Some(Value::Whole(100_000..))), "{all:?}");
        assert!(matches!(value(Id::ProcessStart), Some(Value::Real(at)) if *at > 1e9), "{all:?}");
    }
}
