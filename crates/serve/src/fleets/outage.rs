//! A source that gives no list: since when, and why.

use std::sync::Arc;
use std::time::Duration;
use weir_discovery::Fault;

/// The most characters of a reason.
const MOST_REASON: usize = 400;

/// A time without lists of a fleet's source.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    /// When it began, ns.
    pub since_ns: u64,
    /// Why, as it was last reported: a sentence with what to do, printable, at most [`MOST_REASON`] characters.
    pub reason: Arc<str>,
}

impl Outage {
    pub fn new(since_ns: u64, fault: &Fault) -> Outage {
        // How long it has lasted is known better here.
        let fault = Fault { lasting: Duration::ZERO, ..fault.clone() };
        Outage { since_ns, reason: bounded(&fault.to_string()).into() }
    }
}

/// The beginning of a text from outside, safe for a terminal and a page.
fn bounded(text: &str) -> String {
    let mut rest = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
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
