//! Parts of sources that give no answer, as one target of the SRV records of a name: the list has the rest. The log says when
//! that begins, and when it ends, but of a fleet not at once after another: such parts come and go.

use super::words::AGAIN_APART;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_plan::SourceKind;

/// What is wrong with parts of sources, by fleet.
#[derive(Debug, Default)]
pub(super) struct Gaps(BTreeMap<Arc<str>, GapNote>);

/// A part of a source that gives no answer.
#[derive(Clone, Debug)]
pub(super) struct Gap {
    /// The line about it.
    pub line: String,
    /// The sentence for its end.
    pub recovery: &'static str,
}

/// What is known of a fleet's source, and what was said of it.
#[derive(Debug)]
struct GapNote {
    source: SourceKind,
    /// What is wrong now.
    gap: Option<Gap>,
    /// What was wrong last.
    recovery: &'static str,
    /// The line about what was wrong when it was said last, and when that was.
    said: (Option<String>, Option<Instant>),
}

impl GapNote {
    /// What is wrong now, in a line.
    fn line(&self) -> Option<&str> {
        self.gap.as_ref().map(|gap| gap.line.as_str())
    }

    /// How long until its line is written; `None`: it is.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let (line, at) = &self.said;
        let wait = || at.map_or(Duration::ZERO, |at| (at + AGAIN_APART).saturating_duration_since(now));
        (line.as_deref() != self.line()).then(wait)
    }
}

impl Gaps {
    /// Notes what is wrong with a part of a fleet's source now; `None`: nothing is.
    pub fn note(&mut self, fleet: &Arc<str>, source: &SourceKind, gap: Option<Gap>) {
        if let Some(note) = self.0.get_mut(fleet).filter(|note| note.source == *source) {
            note.recovery = gap.as_ref().map_or(note.recovery, |gap| gap.recovery);
            note.gap = gap;
            return;
        }
        match gap {
            None => _ = self.0.remove(fleet),
            Some(gap) => {
                let recovery = gap.recovery;
                let note = GapNote { source: source.clone(), gap: Some(gap), recovery, said: (None, None) };
                self.0.insert(fleet.clone(), note);
            }
        }
    }

    /// The lines that are due: each beginning and each end.
    pub fn take_lines(&mut self, now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        for (fleet, note) in &mut self.0 {
            if note.wait(now) != Some(Duration::ZERO) {
                continue;
            }
            let line = note.line().map(str::to_owned);
            let end = || format!("fleet {fleet}: {} ({})", note.recovery, note.source);
            lines.push(line.clone().unwrap_or_else(end));
            note.said = (line, Some(now));
        }
        lines
    }

    /// When there is a line; `None`: there is none.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        self.0.values().filter_map(|note| note.wait(now)).min()
    }

    /// Forgets other fleets than these.
    pub fn retain(&mut self, fleets: &BTreeSet<Arc<str>>) {
        self.0.retain(|fleet, _| fleets.contains(fleet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each source has its own end; that of another source of the fleet is not said.
    #[test]
    fn the_end_is_said_in_the_words_of_what_was_wrong() {
        let (mut gaps, start) = (Gaps::default(), Instant::now());
        let [a, b] = ["a.json", "b.json"].map(|path| SourceKind::File(path.to_owned()));
        let (api, web): (Arc<str>, Arc<str>) = ("api".into(), "web".into());
        let gap = |what: &str, recovery| Some(Gap { line: what.to_owned(), recovery });
        gaps.note(&api, &a, gap("half of it is gone", "all of it is there"));
        gaps.note(&web, &b, gap("a part is silent", "no part is silent"));
        assert_eq!(gaps.take_lines(start), ["half of it is gone", "a part is silent"]);
        gaps.note(&api, &a, None);
        gaps.note(&web, &b, None);
        assert_eq!((gaps.take_lines(start), gaps.due(start)), (vec![], Some(AGAIN_APART)));
        let ends =
            ["fleet api: all of it is there (file a.json)", "fleet web: no part is silent (file b.json)"];
        assert_eq!(gaps.take_lines(start + AGAIN_APART), ends);
        gaps.note(&api, &a, gap("half of it is gone", "all of it is there"));
        gaps.note(&api, &b, None);
        assert_eq!(gaps.due(start + 3 * AGAIN_APART), None);
    }
}
