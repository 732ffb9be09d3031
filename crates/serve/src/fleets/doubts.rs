//! What the error log says of fleets whose lists are doubted: that a doubt begins and that it ends, but of a fleet not at once
//! after another line. So a doubt that lasts is said in the end, and what is said last is so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_plan::SourceKind;

/// The least time between two lines of a fleet.
const APART: Duration = Duration::from_secs(10);

/// The doubts by fleet.
#[derive(Debug, Default)]
pub(super) struct Doubts(BTreeMap<Arc<str>, DoubtNote>);

/// What is so of the lists of a fleet, and what was said of them.
#[derive(Debug)]
struct DoubtNote {
    source: SourceKind,
    /// The line about the doubt; `None`: lists are believed.
    line: Option<String>,
    /// The same as it was said last, and when.
    said: Option<String>,
    said_at: Option<Instant>,
}

impl DoubtNote {
    /// How long until its line is written; `None`: it is.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let wait = |at: Instant| (at + APART).saturating_duration_since(now);
        (self.said != self.line).then(|| self.said_at.map_or(Duration::ZERO, wait))
    }
}

impl Doubts {
    /// Notes that a list is doubted, in a line.
    pub fn begin(&mut self, fleet: &Arc<str>, source: &SourceKind, line: String) {
        let new = || DoubtNote { source: source.clone(), line: None, said: None, said_at: None };
        let note = self.0.entry(fleet.clone()).or_insert_with(new);
        note.source = source.clone();
        note.line = Some(line);
    }

    /// Notes that no member of a fleet is in doubt.
    pub fn end(&mut self, fleet: &Arc<str>, source: &SourceKind) {
        let Some(note) = self.0.get_mut(fleet).filter(|note| note.line.is_some()) else { return };
        note.source = source.clone();
        note.line = None;
    }

    /// When there is a line to write; `None`: there is none.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        self.0.values().filter_map(|note| note.wait(now)).min()
    }

    /// Takes the lines that are due.
    pub fn take(&mut self, now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        for (fleet, note) in &mut self.0 {
            if note.wait(now) == Some(Duration::ZERO) {
                (note.said, note.said_at) = (note.line.clone(), Some(now));
                let end = || format!("fleet {fleet}: its list is believed again ({})", note.source);
                lines.push(note.line.clone().unwrap_or_else(end));
            }
        }
        lines
    }

    /// Forgets other fleets than these.
    pub fn retain(&mut self, fleets: &BTreeSet<Arc<str>>) {
        self.0.retain(|fleet, _| fleets.contains(fleet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also one that begins soon after another one ended.
    #[test]
    fn a_doubt_that_lasts_is_said_and_so_is_its_end() {
        let (mut doubts, start, api) = (Doubts::default(), Instant::now(), Arc::<str>::from("api"));
        let source = SourceKind::File("a.json".to_owned());
        let mut said = |s: u64, line: Option<&str>| {
            let now = start + Duration::from_secs(s);
            match line {
                Some(line) => doubts.begin(&api, &source, line.to_owned()),
                None => doubts.end(&api, &source),
            }
            (doubts.take(now), doubts.due(now).map(|due| due.as_secs()))
        };
        let lines = |line: &str| vec![line.to_owned()];
        let end = lines("fleet api: its list is believed again (file a.json)");
        assert_eq!(said(0, None), (vec![], None));
        assert_eq!(said(1, Some("0 of 4")), (lines("0 of 4"), None));
        assert_eq!(said(3, None), (vec![], Some(8)));
        assert_eq!(said(4, Some("1 of 4")), (vec![], Some(7)));
        assert_eq!(said(11, Some("1 of 4")), (lines("1 of 4"), None));
        assert_eq!(said(15, None), (vec![], Some(6)));
        assert_eq!(said(21, None), (end.clone(), None));
        assert_eq!(said(22, None), (vec![], None));
        // One that ends and begins again meanwhile is as it was said.
        assert_eq!(said(40, Some("1 of 4")), (lines("1 of 4"), None));
        assert_eq!(said(41, None), (vec![], Some(9)));
        assert_eq!(said(42, Some("1 of 4")), (vec![], None));
        assert_eq!(said(60, None), (end, None));
    }
}
