//! What the sources of the chosen fleets have said so far, and what is said of it.

use super::PATIENCE;
use std::sync::Arc;
use weir_discovery::{Fault, Member, Snapshot, Subject, Update};
use weir_plan::{DnsRecords, SourceKind};
use weir_report::ListedFleet;

/// The chosen fleets, and the answers of their sources.
pub(super) struct Answers {
    fleets: Vec<AskedFleet>,
    /// Each source once, however many fleets it lists.
    sources: Vec<Answer>,
}

/// A chosen fleet.
struct AskedFleet {
    name: String,
    /// The index of its source.
    source: usize,
}

/// What a source has said so far.
struct Answer {
    kind: SourceKind,
    /// The source in a few words.
    words: String,
    /// The last list.
    list: Option<Arc<Snapshot>>,
    /// Why there is none now.
    fault: Option<Fault>,
}

/// An update that was taken: of which source, and what that had said before.
pub(super) struct Step {
    pub source: usize,
    list: Option<Arc<Snapshot>>,
    had_fault: bool,
}

impl Answers {
    /// No answer of any source yet; fleets by name, in the order of the file.
    pub fn new(chosen: &[(&str, &SourceKind)]) -> Answers {
        let mut answers = Answers { fleets: Vec::new(), sources: Vec::new() };
        for (name, kind) in chosen {
            let known = answers.sources.iter().position(|answer| answer.kind == **kind);
            let source = known.unwrap_or(answers.sources.len());
            if known.is_none() {
                answers.sources.push(Answer {
                    kind: (*kind).clone(),
                    words: kind.to_string(),
                    list: None,
                    fault: None,
                });
            }
            answers.fleets.push(AskedFleet { name: (*name).to_owned(), source });
        }
        answers
    }

    /// The sources to ask; their indices are those of updates.
    pub fn sources(&self) -> Vec<SourceKind> {
        self.sources.iter().map(|answer| answer.kind.clone()).collect()
    }

    /// Whether every source has given a list.
    pub fn is_whole(&self) -> bool {
        self.sources.iter().all(|answer| answer.list.is_some())
    }

    /// Takes what a source says; `None`: it is none of these.
    pub fn take(&mut self, update: Update) -> Option<Step> {
        let Update { source, result } = update;
        let answer = self.sources.get_mut(source)?;
        let step = Step { source, list: answer.list.clone(), had_fault: answer.fault.is_some() };
        match result {
            Ok(list) => (answer.list, answer.fault) = (Some(list), None),
            Err(fault) => answer.fault = Some(fault),
        }
        Some(step)
    }

    /// The fleets for a report. Where a source has given a list and then none, that list counts, and
    /// `is_current` says whether the fault is reported beside it.
    pub fn listed(&self, is_current: bool) -> Vec<ListedFleet<'_>> {
        let listed = self.fleets.iter().filter_map(|fleet| {
            let answer = self.sources.get(fleet.source)?;
            Some(ListedFleet {
                fleet: &fleet.name,
                source: &answer.words,
                members: members(answer.list.as_deref()),
                error: answer.error(is_current),
            })
        });
        listed.collect()
    }

    /// What an update has changed, in words; `None`: nothing that is worth a line.
    pub fn change(&self, step: &Step) -> Option<String> {
        let answer = self.sources.get(step.source)?;
        if let Some(fault) = &answer.fault {
            return Some(format!("no list: {}", answer.reason(fault)));
        }
        let list = answer.list.as_deref()?;
        let changes = weir_report::find_changes(members(step.list.as_deref()), &list.members);
        changes.or_else(|| match step.list {
            None => Some("a list without members".to_owned()),
            Some(_) if step.had_fault => Some("a list again, with the same members".to_owned()),
            Some(_) => None,
        })
    }

    /// The names of the fleets that a source lists.
    pub fn names(&self, source: usize) -> impl Iterator<Item = &str> {
        self.fleets.iter().filter(move |fleet| fleet.source == source).map(|fleet| fleet.name.as_str())
    }

    /// What is said beside the lists that all sources have given, on standard error.
    pub fn all_notes(&self) -> Vec<String> {
        (0..self.sources.len()).flat_map(|source| self.notes_since(source, None)).collect()
    }

    /// The same of an update, as far as it is not as before.
    pub fn notes(&self, step: &Step) -> Vec<String> {
        self.notes_since(step.source, step.list.as_deref())
    }

    /// A service that the source does not know, and entries that do not count.
    fn notes_since(&self, source: usize, before: Option<&Snapshot>) -> Vec<String> {
        let Some(answer) = self.sources.get(source) else { return Vec::new() };
        let Some(list) = answer.list.as_deref() else { return Vec::new() };
        let mut said = Vec::new();
        if is_empty(list) && !before.is_some_and(is_empty) {
            said.extend(unknown(&answer.kind));
        }
        if before.is_none_or(|before| before.left_out != list.left_out) {
            said.extend(list.left_out.iter().map(|finding| match finding.subject {
                Subject::Entry(_) => format!("an entry is left out: {finding}"),
                Subject::Part { .. } => finding.to_string(),
            }));
            match list.left_out_count.saturating_sub(list.left_out.len()) {
                0 => {}
                1 => said.push("1 more entry is left out".to_owned()),
                n => said.push(format!("{n} more entries are left out")),
            }
        }
        let line = |name: &str, what: &String| format!("warning: {name} ({}): {what}", answer.words);
        self.names(source).flat_map(|name| said.iter().map(move |what| line(name, what))).collect()
    }
}

impl Answer {
    /// Why there is no list.
    fn error(&self, is_current: bool) -> Option<String> {
        match (&self.fault, &self.list) {
            (Some(_), Some(_)) if !is_current => None,
            (Some(fault), _) => Some(self.reason(fault)),
            (None, Some(_)) => None,
            (None, None) => {
                let s = PATIENCE.as_secs();
                Some(format!("it has not answered within {s}s; see to it and to the way there"))
            }
        }
    }

    /// A fault without the source's name, which is beside it.
    fn reason(&self, fault: &Fault) -> String {
        let text = fault.to_string();
        let bare = text.strip_prefix(self.words.as_str()).and_then(|rest| rest.strip_prefix(": "));
        bare.map(str::to_owned).unwrap_or(text)
    }
}

/// The members of a list, if there is one.
fn members(list: Option<&Snapshot>) -> &[Member] {
    list.map(|list| list.members.as_slice()).unwrap_or_default()
}

/// Whether a source lists nothing at all.
fn is_empty(list: &Snapshot) -> bool {
    list.members.is_empty() && list.left_out_count == 0
}

/// What an empty list of a registry means; `None`: nothing but that.
fn unknown(kind: &SourceKind) -> Option<String> {
    let why = match kind {
        SourceKind::File(_) => return None,
        SourceKind::Dns(source) => {
            let records = match source.records {
                DnsRecords::Addresses { .. } => "address",
                DnsRecords::Services => "SRV record",
            };
            format!("DNS knows no name `{}`, or no {records} of it", source.name)
        }
        SourceKind::Eureka(source) => {
            format!("Eureka knows no application `{}`, or no instance of it is up", source.app)
        }
        SourceKind::Consul(source) => {
            let tag = source.tag.as_ref().map(|tag| format!(" with the tag `{tag}`")).unwrap_or_default();
            let passing = if source.passing { ", or no instance of it passes its checks" } else { "" };
            format!("Consul knows no service `{}`{tag}{passing}", source.service)
        }
        SourceKind::Kubernetes(source) => {
            let namespace = source.namespace.as_ref().map(|name| format!(" in the namespace `{name}`"));
            let namespace = namespace.unwrap_or_default();
            format!("Kubernetes knows no service `{}`{namespace}, or no endpoint of it", source.service)
        }
    };
    Some(format!("the list is empty: {why}; see whether the name is right"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_discovery::{Defect, FaultKind, Finding, State};
    use weir_plan::DnsSource;

    fn dns() -> SourceKind {
        let records = DnsRecords::Addresses { port: 80 };
        SourceKind::Dns(DnsSource { name: "web".to_owned(), records, hold_ns: 0, servers: Vec::new() })
    }

    fn file() -> SourceKind {
        SourceKind::File("a.json".to_owned())
    }

    fn list(addrs: &[&str]) -> Result<Arc<Snapshot>, Fault> {
        let member =
            |addr: &&str| Member { addr: (*addr).to_owned(), id: None, weight: 1.0, state: State::Up };
        Ok(Arc::new(Snapshot { members: addrs.iter().map(member).collect(), ..Snapshot::default() }))
    }

    fn fault() -> Result<Arc<Snapshot>, Fault> {
        let defect = Defect {
            kind: FaultKind::Unreachable,
            place: None,
            problem: "it is gone".to_owned(),
            remedy: "start it".to_owned(),
        };
        Err(Fault { subject: dns().to_string(), defect, lasting: Duration::ZERO })
    }

    fn take(answers: &mut Answers, source: usize, result: Result<Arc<Snapshot>, Fault>) -> Step {
        answers.take(Update { source, result }).expect("a known source")
    }

    #[test]
    fn equal_sources_are_asked_once_and_list_all_their_fleets() {
        let (dns, file) = (dns(), file());
        let mut answers = Answers::new(&[("a", &dns), ("b", &file), ("c", &dns)]);
        assert_eq!(answers.sources(), [dns, file]);
        let step = take(&mut answers, 0, list(&["x:1"]));
        assert!(!answers.is_whole());
        assert_eq!(answers.names(step.source).collect::<Vec<_>>(), ["a", "c"]);
        take(&mut answers, 1, list(&[]));
        assert!(answers.is_whole());
        let counts: Vec<(&str, usize)> =
            answers.listed(false).iter().map(|listed| (listed.fleet, listed.members.len())).collect();
        assert_eq!(counts, [("a", 1), ("b", 0), ("c", 1)]);
        assert!(answers.take(Update { source: 2, result: fault() }).is_none());
    }

    #[test]
    fn a_list_counts_though_a_fault_follows() {
        let dns = dns();
        let mut answers = Answers::new(&[("a", &dns)]);
        let error = |answers: &Answers, is_current| answers.listed(is_current)[0].error.clone();
        assert!(error(&answers, false).is_some_and(|why| why.contains("within 3s")));
        take(&mut answers, 0, fault());
        // The source is not named twice.
        assert_eq!(error(&answers, false).as_deref(), Some("it is gone; start it"));
        take(&mut answers, 0, list(&["x:1"]));
        assert_eq!((error(&answers, false), error(&answers, true)), (None, None));
        take(&mut answers, 0, fault());
        assert_eq!(error(&answers, false), None);
        assert_eq!(error(&answers, true).as_deref(), Some("it is gone; start it"));
        assert_eq!(answers.listed(true)[0].members.len(), 1);
    }

    #[test]
    fn each_change_is_a_few_words() {
        let dns = dns();
        let mut answers = Answers::new(&[("a", &dns)]);
        let mut change = |result| {
            let step = take(&mut answers, 0, result);
            answers.change(&step).unwrap_or_default()
        };
        assert_eq!(change(fault()), "no list: it is gone; start it");
        assert_eq!(change(list(&[])), "a list without members");
        assert_eq!(change(list(&["x:1"])), "+ x:1");
        assert_eq!(change(list(&["x:1"])), "");
        assert_eq!(change(fault()), "no list: it is gone; start it");
        assert_eq!(change(list(&["x:1"])), "a list again, with the same members");
        assert_eq!(change(fault()), "no list: it is gone; start it");
        assert_eq!(change(list(&["y:1"])), "+ y:1  - x:1");
    }

    #[test]
    fn what_is_odd_about_a_list_is_said_once() {
        let (dns, file) = (dns(), file());
        let mut answers = Answers::new(&[("a", &dns), ("b", &file), ("c", &dns)]);
        let why = "DNS knows no name `web`, or no address of it; see whether the name is right";
        let empty = format!("the list is empty: {why}");
        let wanted = ["a", "c"].map(|name| format!("warning: {name} (dns web:80): {empty}"));
        let step = take(&mut answers, 0, list(&[]));
        take(&mut answers, 1, list(&[]));
        assert_eq!(answers.notes(&step), wanted);
        assert_eq!(answers.all_notes(), wanted, "an empty file is no surprise");
        let step = take(&mut answers, 0, list(&[]));
        assert!(answers.notes(&step).is_empty());
        let (subject, problem) = (Subject::Entry(2), "it is odd".to_owned());
        let finding = Finding { place: None, subject, problem, remedy: None };
        let odd = Snapshot { left_out: vec![finding], left_out_count: 3, ..Snapshot::default() };
        let step = take(&mut answers, 1, Ok(Arc::new(odd)));
        let wanted = ["an entry is left out: entry 2: it is odd", "2 more entries are left out"]
            .map(|what| format!("warning: b (file a.json): {what}"));
        assert_eq!(answers.notes(&step), wanted);
        let step = take(&mut answers, 1, fault());
        assert!(answers.notes(&step).is_empty());
    }

    #[test]
    fn an_unknown_service_is_named_with_what_was_asked_for() {
        let said = |kind: &SourceKind| unknown(kind).unwrap_or_default();
        let records = DnsRecords::Services;
        let srv = DnsSource { name: "_web._tcp".to_owned(), records, hold_ns: 0, servers: Vec::new() };
        assert!(said(&SourceKind::Dns(srv)).contains("no SRV record"));
        assert_eq!(unknown(&file()), None);
    }
}
