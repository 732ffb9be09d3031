//! A source that gives no list: since when, and why.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use weir_discovery::{Fault, printable};

/// The most characters of a reason.
const MOST_REASON: usize = 400;

/// A time without lists of a fleet's source.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    /// When it began in this process, ns.
    since_ns: u64,
    /// How long it had lasted before, in processes whose place this one has taken, ns.
    before_ns: u64,
    /// Why, as it was last reported: a sentence with what to do, printable, at most [`MOST_REASON`] characters.
    pub reason: Arc<str>,
}

/// The same for a successor, which has a clock of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HandedOutage {
    /// How long it has lasted, ns.
    pub lasting_ns: u64,
    /// Why, as it was last reported.
    pub reason: String,
}

impl Outage {
    /// One that begins.
    pub fn new(now_ns: u64, fault: &Fault) -> Outage {
        Outage { since_ns: now_ns, before_ns: 0, reason: reason(fault) }
    }

    /// The same one after another fault.
    pub fn go_on(&self, fault: &Fault) -> Outage {
        Outage { reason: reason(fault), ..*self }
    }

    /// How long it has lasted, ns.
    pub fn lasting_ns(&self, now_ns: u64) -> u64 {
        self.before_ns.saturating_add(now_ns.saturating_sub(self.since_ns))
    }

    /// For a successor of this process.
    pub fn hand(&self, now_ns: u64) -> HandedOutage {
        HandedOutage { lasting_ns: self.lasting_ns(now_ns), reason: self.reason.to_string() }
    }

    /// A predecessor's.
    pub fn restored(now_ns: u64, handed: &HandedOutage) -> Outage {
        Outage {
            since_ns: now_ns,
            before_ns: handed.lasting_ns,
            reason: bounded(&printable(&handed.reason)).into(),
        }
    }
}

/// A fault as a page and a log have it. How long it has lasted is known better here.
fn reason(fault: &Fault) -> Arc<str> {
    let fault = Fault { lasting: Duration::ZERO, ..fault.clone() };
    bounded(&printable(&fault.to_string())).into()
}

/// The beginning of a text from outside.
fn bounded(text: &str) -> String {
    let mut rest = text.chars();
    let mut beginning: String = rest.by_ref().take(MOST_REASON).collect();
    if rest.next().is_some() {
        beginning.push_str("...");
    }
    beginning
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_discovery::{Defect, FaultKind};

    fn reason(problem: &str) -> String {
        let (problem, remedy) = (problem.to_owned(), "see to the registry".to_owned());
        let defect = Defect { kind: FaultKind::Unexpected, place: None, problem, remedy };
        let fault = Fault { subject: "consul web".to_owned(), defect, lasting: Duration::from_secs(310) };
        Outage::new(0, &fault).reason.to_string()
    }

    #[test]
    fn a_reason_is_printable_and_has_an_end() {
        assert_eq!(
            reason("http://a answers 500\u{1b}[1m\n"),
            "consul web: http://a answers 500\u{fffd}[1m\u{fffd}; see to the registry"
        );
        let long = reason(&"\u{e9}".repeat(5_000));
        assert_eq!(long.chars().count(), MOST_REASON + 3);
        assert!(long.starts_with("consul web: \u{e9}") && long.ends_with("\u{e9}..."), "{long}");
    }
}
