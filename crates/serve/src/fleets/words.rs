//! What the error log says of fleets: changes of all of them in one line at most once a second, those between counted
//! together; faults at once.

use super::Changes;
use super::changes::MemberNames;
use super::doubts::Doubts;
use super::gaps::{Gap, Gaps};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_discovery::{Snapshot, Subject};
use weir_plan::SourceKind;
use weir_policy::fleet::MemberCounts;

/// Changes are said at most once in this time.
const APART: Duration = Duration::from_secs(1);

/// The same of all that is said of a fleet's lists again.
pub(super) const AGAIN_APART: Duration = Duration::from_secs(10);

/// The most findings of a fleet in that time: in each list it may be another one.
const MOST_FINDINGS: usize = 8;

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
    changes: BTreeMap<(Arc<str>, SourceKind), (Changes, MemberNames)>,
    said: Option<Instant>,
    doubts: Doubts,
    /// Fleets of which it was said that they have no members.
    empty: BTreeMap<Arc<str>, EmptyNote>,
    /// Findings that were said lately, and when, by fleet.
    left_out: BTreeMap<Arc<str>, Vec<(Instant, String)>>,
    gaps: Gaps,
}

/// What was said of a fleet without members.
#[derive(Debug)]
struct EmptyNote {
    said: Instant,
    /// Whether it has had some since then.
    is_over: bool,
}

impl Log {
    /// Notes changes of a fleet, and of which members.
    pub fn note(&mut self, fleet: &Arc<str>, source: &SourceKind, changes: Changes, names: MemberNames) {
        let known = self.changes.entry((fleet.clone(), source.clone())).or_default();
        known.0 += changes;
        known.1 += names;
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
        let before = was.up + was.drain + was.withdrawn;
        let of = if n == 1 { "member" } else { "members" };
        let line = format!(
            "fleet {fleet}: the list has {n} {of} of {before}, which is too few to be believed at once: {} that it lacks \
            are picked until they fail, or their grace is over ({source})",
            is.withdrawn
        );
        self.doubts.begin(fleet, source, line);
    }

    /// Notes that no member of a fleet is in doubt.
    pub fn believed(&mut self, fleet: &Arc<str>, source: &SourceKind) {
        self.doubts.end(fleet, source);
    }

    /// Notes whether a registry has left a fleet without members, as it does if it does not know the service: said once,
    /// and again after there were some, but not at once: a service may come and go.
    pub fn note_members(&mut self, fleet: &Arc<str>, source: &SourceKind, has_members: bool, now: Instant) {
        let said = self.empty.get_mut(fleet);
        if has_members || matches!(source, SourceKind::File(_)) {
            if let Some(note) = said {
                note.is_over = true;
            }
        } else if said.is_none_or(|note| note.is_over && now >= note.said + AGAIN_APART) {
            self.empty.insert(fleet.clone(), EmptyNote { said: now, is_over: false });
            self.line(format!("fleet {fleet}: {source} has no members; is its name right?"));
        }
    }

    /// Notes entries of a list that do not count: the first of them. What was said lately is not said again. What is wrong with
    /// a part of the source is a line of its own, and so is its end.
    pub fn left_out(&mut self, fleet: &Arc<str>, source: &SourceKind, list: &Snapshot, now: Instant) {
        let (mut entries, mut parts) = (Vec::new(), Vec::new());
        for finding in &list.left_out {
            match finding.subject {
                Subject::Entry(_) => entries.push(finding),
                Subject::Part { recovery } => parts.push((finding, recovery)),
            }
        }
        let hidden = list.left_out_count.saturating_sub(list.left_out.len());
        let place = match source {
            SourceKind::File(path) => format!("{path}:"),
            _ => format!("{source}: "),
        };
        let (of_entries, of_parts) = if entries.is_empty() { (0, hidden) } else { (hidden, 0) };
        let gap = parts.first().map(|&(first, recovery)| {
            let more = match parts.len() - 1 + of_parts {
                0 => String::new(),
                n => format!(" (and {n} more)"),
            };
            Gap { line: format!("fleet {fleet}: {place}{first}{more}"), recovery }
        });
        self.gaps.note(fleet, source, gap);
        let Some(first) = entries.first() else { return };
        let more = match entries.len() - 1 + of_entries {
            0 => String::new(),
            1 => "; so is 1 more".to_owned(),
            n => format!("; so are {n} more"),
        };
        self.say_left_out(fleet, format!("fleet {fleet}: an entry is left out: {place}{first}{more}"), now);
    }

    /// Notes a line about an entry that does not count, unless it was said lately, or many others were.
    fn say_left_out(&mut self, fleet: &Arc<str>, line: String, now: Instant) {
        let said = self.left_out.entry(fleet.clone()).or_default();
        said.retain(|(at, _)| now < *at + AGAIN_APART);
        if said.len() < MOST_FINDINGS && said.iter().all(|(_, text)| *text != line) {
            said.push((now, line.clone()));
            self.line(line);
        }
    }

    /// Forgets what was said of other fleets than these.
    pub fn retain(&mut self, fleets: &BTreeSet<Arc<str>>) {
        self.doubts.retain(fleets);
        self.empty.retain(|fleet, _| fleets.contains(fleet));
        self.left_out.retain(|fleet, _| fleets.contains(fleet));
        self.gaps.retain(fleets);
    }

    /// When there is something to write; `None`: there is nothing.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        if !self.faults.is_empty() {
            return Some(Duration::ZERO);
        }
        let changes = (!self.changes.is_empty()).then(|| self.wait(now));
        let changes = changes.into_iter().chain(self.doubts.due(now));
        changes.chain(self.gaps.due(now)).min()
    }

    /// Writes what is due.
    pub fn write(&mut self, now: Instant, mut write: impl FnMut(Line)) {
        self.faults.extend(self.gaps.take_lines(now));
        self.faults.extend(self.doubts.take(now));
        self.faults.drain(..).for_each(|fault| write(Line::Fault(fault)));
        if self.changes.is_empty() || self.wait(now) > Duration::ZERO {
            return;
        }
        self.said = Some(now);
        let mut changes = std::mem::take(&mut self.changes).into_iter();
        let Some(((fleet, source), (first, names))) = changes.next() else { return };
        let mut line = format!("fleet {fleet}: {} ({source})", first.words());
        let names = names.words();
        if !names.is_empty() {
            line.push_str(&format!(": {names}"));
        }
        let (mut others, mut of_others) = (0, Changes::default());
        for (_, (changes, _)) in changes {
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
    use super::super::changes::MemberEvent;
    use super::super::fleet::MemberKey;
    use super::*;
    use weir_discovery::Finding;
    use weir_plan::{ConsulSource, DnsRecords, DnsSource};

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
                    MemberNames::default(),
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

    fn lines(log: &mut Log) -> Vec<Line> {
        let mut lines = Vec::new();
        log.write(Instant::now(), |line| lines.push(line));
        lines
    }

    /// A list of which one entry does not count.
    fn wrong(problem: &str) -> Snapshot {
        let (subject, problem) = (Subject::Entry(1), problem.to_owned());
        let finding = Finding { place: None, subject, problem, remedy: None };
        Snapshot { left_out: vec![finding], left_out_count: 1, ..Snapshot::default() }
    }

    #[test]
    fn a_finding_about_a_part_is_a_sentence_of_its_own() {
        let (mut log, source) = (Log::default(), SourceKind::File("a.json".to_owned()));
        let api: Arc<str> = "api".into();
        let mut list = wrong("it is odd");
        log.left_out(&api, &source, &list, Instant::now());
        list.left_out[0].subject = Subject::Part { recovery: "it is even" };
        list.left_out_count = 3;
        log.left_out(&api, &source, &list, Instant::now());
        let all = lines(&mut log);
        let said = all.iter().map(|line| match line {
            Line::Fault(line) | Line::Change(line) => line.as_str(),
        });
        let wanted = [
            "fleet api: an entry is left out: a.json:entry 1: it is odd",
            "fleet api: a.json:it is odd (and 2 more)",
        ];
        assert_eq!(said.collect::<Vec<_>>(), wanted);
    }

    /// It may come and go more often than it is said; what is said last is so.
    #[test]
    fn that_all_targets_of_a_name_have_answers_again_is_said() {
        let records = DnsRecords::Services;
        let dns = DnsSource { name: "api.test".to_owned(), records, hold_ns: 0, servers: Vec::new() };
        let (mut log, start, source) = (Log::default(), Instant::now(), SourceKind::Dns(dns));
        let api: Arc<str> = "api".into();
        let fault = |problem: &str| {
            let mut list = wrong(problem);
            list.left_out[0].subject = Subject::Part { recovery: "all of them are looked up" };
            list
        };
        let mut said = |s: u64, list: Option<&Snapshot>| {
            let now = start + Duration::from_secs(s);
            if let Some(list) = list {
                log.left_out(&api, &source, list, now);
            }
            let mut lines = Vec::new();
            log.write(now, |line| lines.push(line));
            (lines, log.due(now).map(|due| due.as_secs()))
        };
        let line = |text: &str| vec![Line::Fault(format!("fleet api: {text}"))];
        let begun = |what: &str| line(&format!("dns SRV api.test: {what}"));
        let end = "all of them are looked up (dns SRV api.test)";
        let whole = Snapshot::default();
        assert_eq!(said(0, Some(&whole)), (vec![], None));
        assert_eq!(said(1, Some(&fault("a"))), (begun("a"), None));
        assert_eq!(said(2, Some(&whole)), (vec![], Some(9)));
        assert_eq!(said(3, Some(&fault("a"))), (vec![], None));
        assert_eq!(said(4, Some(&fault("b"))), (vec![], Some(7)));
        assert_eq!(said(5, Some(&whole)), (vec![], Some(6)));
        assert_eq!(said(11, None), (line(end), None));
        assert_eq!(said(30, Some(&fault("b"))), (begun("b"), None));
        assert_eq!(said(50, Some(&whole)), (line(end), None));
        assert_eq!(said(70, Some(&whole)), (vec![], None));
    }

    #[test]
    fn what_is_left_out_again_and_again_is_said_rarely() {
        let (mut log, start, source) =
            (Log::default(), Instant::now(), SourceKind::File("a.json".to_owned()));
        let api: Arc<str> = "api".into();
        let said = |log: &mut Log, s: u64, problem: &str| {
            log.left_out(&api, &source, &wrong(problem), start + Duration::from_secs(s));
            lines(log).len()
        };
        let pairs = [(0, "a"), (1, "a"), (2, "b"), (9, "a"), (10, "a"), (11, "b"), (12, "b"), (13, "a")];
        let counts = pairs.map(|(s, problem)| said(&mut log, s, problem));
        assert_eq!(counts, [1, 0, 1, 0, 1, 0, 1, 0]);
        // Each list has another one.
        let many = (0..100).map(|n| said(&mut log, 30, &n.to_string())).sum::<usize>();
        assert_eq!((many, said(&mut log, 40, "99")), (MOST_FINDINGS, 1));
        // Another fleet of that name begins anew.
        log.retain(&BTreeSet::from(["web".into()]));
        assert!(log.left_out.is_empty());
        assert_eq!(said(&mut log, 40, "99"), 1);
    }

    #[test]
    fn a_registry_without_members_is_said_once_and_after_some_again_but_not_at_once() {
        let (mut log, start) = (Log::default(), Instant::now());
        let consul = SourceKind::Consul(ConsulSource::new("http://127.0.0.1:8500", "web"));
        // One that comes and goes is said again with the first list after a while that is empty.
        let flaps = [(0, false), (1, true), (1, false), (2, true), (3, false), (30, false), (31, false)];
        let mut said = Vec::new();
        for (s, has_members) in flaps {
            let before = log.faults.len();
            log.note_members(&"api".into(), &consul, has_members, start + Duration::from_secs(s));
            if log.faults.len() > before {
                said.push(s);
            }
        }
        assert_eq!(said, [0, 30]);
        log.note_members(&"file".into(), &SourceKind::File("a.json".to_owned()), false, start);
        let lines = lines(&mut log);
        let word = "fleet api: consul web has no members; is its name right?";
        assert_eq!(lines, [word, word].map(|word| Line::Fault(word.to_owned())));
    }

    /// However many fleets change, and however many lists are doubted.
    #[test]
    fn all_fleets_have_one_line_and_doubts_are_rare() {
        let mut log = Log::default();
        for n in 0..25 {
            let changes = Changes { added: 1, ..Changes::default() };
            let mut names = MemberNames::default();
            names.note(MemberEvent::Added, &MemberKey { addr: format!("h{n}:1"), id: None });
            log.note(&format!("f{n:02}").into(), &SourceKind::File("a.json".to_owned()), changes, names);
            log.doubted(
                &"api".into(),
                &SourceKind::File("b.json".to_owned()),
                0,
                MemberCounts::default(),
                MemberCounts::default(),
            );
        }
        let lines = lines(&mut log);
        assert!(
            matches!(&lines[0], Line::Fault(line) if line.starts_with("fleet api: the list has 0 members"))
        );
        let change = "fleet f00: +1 -0 member (file a.json): + h0:1; 24 other fleets: +24 -0 members";
        assert_eq!(lines[1..], [Line::Change(change.to_owned())]);
    }
}
