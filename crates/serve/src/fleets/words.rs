//! What the error log says of fleets: changes of all of them in one line at most once a second, those between counted
//! together; faults at once.

use super::Changes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_discovery::Snapshot;
use weir_plan::SourceKind;
use weir_policy::fleet::MemberCounts;

/// Changes are said at most once in this time.
const APART: Duration = Duration::from_secs(1);

/// The same of a fleet's lists that are doubted.
const DOUBTS_APART: Duration = Duration::from_secs(10);

/// A line of the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Something is wrong.
    Fault(String),
    /// Members have changed.
    Change(String),
}

/// Lines that are to be written.
#[derive(Debug, Default)]
pub(super) struct Log {
    faults: Vec<String>,
    changes: BTreeMap<(Arc<str>, SourceKind), Changes>,
    said: Option<Instant>,
    /// When a list was last said to be doubted, by fleet.
    doubted: BTreeMap<Arc<str>, Instant>,
    /// Fleets of which it was said that they have no members.
    empty: BTreeSet<Arc<str>>,
}

impl Log {
    /// Notes changes of a fleet.
    pub fn note(&mut self, fleet: &Arc<str>, source: &SourceKind, changes: Changes) {
        *self.changes.entry((fleet.clone(), source.clone())).or_default() += changes;
    }

    /// Notes a fault.
    pub fn line(&mut self, line: String) {
        self.faults.push(line);
    }

    /// Notes that a list is doubted.
    pub fn doubted(
        &mut self,
        fleet: &Arc<str>,
        source: &SourceKind,
        n: usize,
        was: MemberCounts,
        is: MemberCounts,
    ) {
        let now = Instant::now();
        if self.doubted.get(fleet).is_some_and(|said| now < *said + DOUBTS_APART) {
            return;
        }
        self.doubted.insert(fleet.clone(), now);
        let before = was.up + was.drain + was.withdrawn;
        self.line(format!(
            "fleet {fleet}: the list has {n} members of {before}, which is too few to be believed at once: {} that it lacks \
            are picked until they fail, or their grace is over ({source})",
            is.withdrawn
        ));
    }

    /// Notes whether a registry has left a fleet without members, as it does if it does not know the service: said once,
    /// and again after there were some.
    pub fn note_members(&mut self, fleet: &Arc<str>, source: &SourceKind, has_members: bool) {
        if has_members || matches!(source, SourceKind::File(_)) {
            self.empty.remove(fleet);
        } else if self.empty.insert(fleet.clone()) {
            self.line(format!("fleet {fleet}: {source} has no members; is its name right?"));
        }
    }

    /// Notes entries of a list that do not count: the first of them.
    pub fn left_out(&mut self, fleet: &str, source: &SourceKind, list: &Snapshot) {
        let Some(first) = list.left_out.first() else { return };
        let more = match list.left_out_count.saturating_sub(1) {
            0 => String::new(),
            1 => "; so is 1 more".to_owned(),
            n => format!("; so are {n} more"),
        };
        let place = match source {
            SourceKind::File(path) => format!("{path}:"),
            _ => format!("{source}: "),
        };
        self.line(format!("fleet {fleet}: an entry is left out: {place}{first}{more}"));
    }

    /// When there is something to write; `None`: there is nothing.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        if !self.faults.is_empty() {
            return Some(Duration::ZERO);
        }
        (!self.changes.is_empty()).then(|| self.wait(now))
    }

    /// Writes what is due.
    pub fn write(&mut self, now: Instant, mut write: impl FnMut(Line)) {
        self.faults.drain(..).for_each(|fault| write(Line::Fault(fault)));
        if self.changes.is_empty() || self.wait(now) > Duration::ZERO {
            return;
        }
        self.said = Some(now);
        let mut changes = std::mem::take(&mut self.changes).into_iter();
        let Some(((fleet, source), first)) = changes.next() else { return };
        let mut line = format!("fleet {fleet}: {} ({source})", first.words());
        let (mut others, mut of_others) = (0, Changes::default());
        for (_, changes) in changes {
            others += 1;
            of_others += changes;
        }
        if others > 0 {
            let of = if others == 1 { "another fleet".to_owned() } else { format!("{others} other fleets") };
            line.push_str(&format!("; {of}: {}", of_others.words()));
        }
        write(Line::Change(line));
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
                log.note(
                    &"api".into(),
                    &SourceKind::File("api.json".to_owned()),
                    Changes { added, ..Changes::default() },
                );
            }
            let mut lines = Vec::new();
            log.write(now, |line| lines.push(line));
            (lines, log.due(now))
        };
        let said = |words: &str| vec![Line::Change(format!("fleet api: {words} (file api.json)"))];
        assert_eq!(at(&mut log, 0, 2), (said("+2 -0 members"), None));
        assert_eq!(at(&mut log, 400, 1), (vec![], Some(Duration::from_millis(600))));
        assert_eq!(at(&mut log, 600, 1), (vec![], Some(Duration::from_millis(400))));
        assert_eq!(at(&mut log, 1000, 0), (said("+2 -0 members"), None));
    }
    #[test]
    fn a_registry_without_members_is_said_once_and_again_after_some() {
        let mut log = Log::default();
        let consul = SourceKind::Consul(weir_plan::ConsulSource {
            url: "http://127.0.0.1:8500".to_owned(),
            service: "web".to_owned(),
            tag: None,
            datacenter: None,
            passing: true,
            stale: true,
            token: None,
            tls: None,
        });
        for has_members in [false, false, true, false] {
            log.note_members(&"api".into(), &consul, has_members);
        }
        log.note_members(&"file".into(), &SourceKind::File("a.json".to_owned()), false);
        let mut lines = Vec::new();
        log.write(Instant::now(), |line| lines.push(line));
        let word = "fleet api: consul web has no members; is its name right?";
        assert_eq!(lines, [word, word].map(|word| Line::Fault(word.to_owned())));
    }

    /// However many fleets change, and however many lists are doubted.
    #[test]
    fn all_fleets_have_one_line_and_doubts_are_rare() {
        let mut log = Log::default();
        for n in 0..25 {
            let changes = Changes { added: 1, ..Changes::default() };
            log.note(&format!("f{n:02}").into(), &SourceKind::File("a.json".to_owned()), changes);
            log.doubted(
                &"api".into(),
                &SourceKind::File("b.json".to_owned()),
                0,
                MemberCounts::default(),
                MemberCounts::default(),
            );
        }
        let mut lines = Vec::new();
        log.write(Instant::now(), |line| lines.push(line));
        assert!(
            matches!(&lines[0], Line::Fault(line) if line.starts_with("fleet api: the list has 0 members"))
        );
        let change = "fleet f00: +1 -0 member (file a.json); 24 other fleets: +24 -0 members";
        assert_eq!(lines[1..], [Line::Change(change.to_owned())]);
    }
}
