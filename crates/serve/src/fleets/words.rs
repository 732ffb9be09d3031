//! What the error log says of fleets: changes at most once a second, those between counted together.

use super::Changes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_discovery::Snapshot;
use weir_policy::fleet::MemberCounts;

/// Changes are said at most once in this time.
const APART: Duration = Duration::from_secs(1);

/// Lines that are to be written.
#[derive(Debug, Default)]
pub(super) struct Log {
    lines: Vec<String>,
    changes: BTreeMap<(Arc<str>, PathBuf), Changes>,
    said: Option<Instant>,
}

impl Log {
    /// Notes changes of a fleet.
    pub fn note(&mut self, fleet: &Arc<str>, path: &Path, changes: Changes) {
        *self.changes.entry((fleet.clone(), path.to_owned())).or_default() += changes;
    }

    /// Notes a line.
    pub fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Notes that a list is doubted.
    pub fn doubted(&mut self, fleet: &str, path: &Path, n: usize, was: MemberCounts, is: MemberCounts) {
        let before = was.up + was.drain + was.withdrawn;
        self.line(format!(
            "fleet {fleet}: the list has {n} members of {before}, which is too few to be believed at once: {} that it lacks \
            are picked until they fail, or their grace is over (file {})",
            is.withdrawn,
            path.display()
        ));
    }

    /// Notes entries of a list that do not count: the first of them.
    pub fn left_out(&mut self, fleet: &str, path: &Path, list: &Snapshot) {
        let Some(first) = list.left_out.first() else { return };
        let more = match list.left_out_count.saturating_sub(1) {
            0 => String::new(),
            1 => "; so is 1 more".to_owned(),
            n => format!("; so are {n} more"),
        };
        self.line(format!("fleet {fleet}: an entry is left out: {}:{first}{more}", path.display()));
    }

    /// When there is something to write; `None`: there is nothing.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        if !self.lines.is_empty() {
            return Some(Duration::ZERO);
        }
        (!self.changes.is_empty()).then(|| self.wait(now))
    }

    /// Writes what is due.
    pub fn write(&mut self, now: Instant, mut write: impl FnMut(String)) {
        self.lines.drain(..).for_each(&mut write);
        if self.changes.is_empty() || self.wait(now) > Duration::ZERO {
            return;
        }
        self.said = Some(now);
        for ((fleet, path), changes) in std::mem::take(&mut self.changes) {
            write(format!("fleet {fleet}: {} (file {})", changes.words(), path.display()));
        }
    }

    fn wait(&self, now: Instant) -> Duration {
        self.said.map_or(Duration::ZERO, |said| (said + APART).saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_said_once_a_second_and_summed() {
        let (mut log, start) = (Log::default(), Instant::now());
        let at = |log: &mut Log, ms, added| {
            let now = start + Duration::from_millis(ms);
            if added > 0 {
                log.note(&"api".into(), Path::new("api.json"), Changes { added, ..Changes::default() });
            }
            let mut lines = Vec::new();
            log.write(now, |line| lines.push(line));
            (lines, log.due(now))
        };
        let said = |words: &str| vec![format!("fleet api: {words} (file api.json)")];
        assert_eq!(at(&mut log, 0, 2), (said("+2 -0 members"), None));
        assert_eq!(at(&mut log, 400, 1), (vec![], Some(Duration::from_millis(600))));
        assert_eq!(at(&mut log, 600, 1), (vec![], Some(Duration::from_millis(400))));
        assert_eq!(at(&mut log, 1000, 0), (said("+2 -0 members"), None));
    }
}
