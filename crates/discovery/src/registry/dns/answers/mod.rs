//! What the answers to a name amount to: time and draws are arguments.
//!
//! - An entry that an answer lacks stays until all answers of `hold` lacked it. The time begins with the
//!   first answer that lacks it, so a single one that is cut short removes nothing, however long the one
//!   before held. Only an answer removes: the name is looked up again when the time is over.
//! - That there is no such name, or that it has no records, lacks every entry. Such denials are subject to
//!   `hold` as other answers are and, as for names of origins, count only after [`DNS_DENIALS`] in a row:
//!   entries go when both are so. A name that never had an entry has an empty list at once.
//! - The entries of a list from before the first answer here are held as if an answer just had them: to begin
//!   anew, as a reload does, removes nothing.
//! - A failure is no answer. It removes nothing and begins no time; it interrupts a row of denials.
//! - The addresses of both families are one list of two parts. If one family fails and the other has
//!   addresses, that is an answer about the other family only. If the other is denied, it is no answer: the
//!   name may be of the first family.
//! - An answer that may lack addresses of a family, since a question for a target failed, says nothing about the other entries
//!   of that family: they stay, and no time begins.
//! - The order of an answer has no meaning: entries are sorted.

#[cfg(test)]
mod tests;

use crate::fault::Defect;
use crate::list::MOST_MEMBERS;
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_plan::fixed::{DNS_DENIALS, DNS_MAX_BACKOFF_NS, DNS_MAX_TTL_NS, DNS_MIN_BACKOFF_NS, DNS_MIN_TTL_NS};

/// A place that an answer lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    /// An address, or a name without its final dot.
    pub(super) host: String,
    pub(super) port: u16,
    /// The weight of a service record; that of an address is 0.
    pub(super) weight: u16,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    /// Both.
    pub(super) const ALL: [Family; 2] = [Family::V4, Family::V6];

    /// The family of an address.
    pub(super) fn from_ip(ip: &IpAddr) -> Family {
        if ip.is_ipv4() { Family::V4 } else { Family::V6 }
    }
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// At least one entry, and their TTL, ns.
    Found(Vec<Entry>, u64),
    /// The same, but there may be more addresses of these families: a question for them has failed.
    Partial(Vec<Entry>, u64, Vec<Family>),
    /// The name does not exist, or has no such records.
    Denied,
    /// There is no answer.
    Failed(Defect),
}

impl Answer {
    /// The answer that lists these entries.
    pub(super) fn new(entries: Vec<Entry>, ttl_ns: u64) -> Answer {
        if entries.is_empty() { Answer::Denied } else { Answer::Found(entries, ttl_ns) }
    }

    /// Whether it lists an entry.
    pub(super) fn is_found(&self) -> bool {
        matches!(self, Answer::Found(..) | Answer::Partial(..))
    }

    /// The TTL of its entries, ns, if it lists any.
    pub(super) fn ttl_ns(&self) -> Option<u64> {
        match self {
            Answer::Found(_, ttl_ns) | Answer::Partial(_, ttl_ns, _) => Some(*ttl_ns),
            Answer::Denied | Answer::Failed(_) => None,
        }
    }

    /// Why there is none, if there is none.
    pub(super) fn defect(&self) -> Option<&Defect> {
        match self {
            Answer::Failed(defect) => Some(defect),
            _ => None,
        }
    }

    /// Whether it is none.
    pub(super) fn is_failed(&self) -> bool {
        matches!(self, Answer::Failed(_))
    }
}

/// The consequence of the answers of a look-up.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// [`Answers::entries`] are the list. The name is looked up again after this time, ns.
    Listed { wait_ns: u64 },
    /// There is no list.
    Failed(Defect),
}

/// What all answers so far amount to.
#[derive(Debug)]
pub(super) struct Answers {
    hold_ns: u64,
    /// One for each question.
    parts: Vec<Part>,
    /// Denials in a row.
    denials: u32,
}

impl Answers {
    /// A name without any answer yet. `hold_ns`: how long answers lack an entry before it goes.
    pub(super) fn new(hold_ns: u64) -> Answers {
        Answers { hold_ns, parts: Vec::new(), denials: 0 }
    }

    /// Begins with the entries of a list of before, those of each question, as if a look-up just had them.
    pub(super) fn seed(&mut self, entries: Vec<Vec<Entry>>) {
        self.parts = entries.into_iter().map(Part::new).collect();
    }

    /// Applies the answers of a look-up, always to the same questions. `draw` is between 0 and 1.
    pub(super) fn apply(&mut self, now_ns: u64, answers: Vec<Answer>, draw: f64) -> Step {
        let ttl_ns = answers.iter().filter_map(Answer::ttl_ns).min();
        if ttl_ns.is_none()
            && let Some(defect) = answers.iter().find_map(Answer::defect)
        {
            self.denials = 0;
            return Step::Failed(defect.clone());
        }
        self.denials = if ttl_ns.is_some() { 0 } else { self.denials.saturating_add(1) };
        let may_remove = ttl_ns.is_some() || self.denials >= DNS_DENIALS;
        self.parts.resize_with(self.parts.len().max(answers.len()), Part::default);
        for (part, answer) in self.parts.iter_mut().zip(answers) {
            let (entries, unknown) = match answer {
                Answer::Found(entries, _) => (entries, Vec::new()),
                Answer::Partial(entries, _, unknown) => (entries, unknown),
                Answer::Denied => (Vec::new(), Vec::new()),
                Answer::Failed(_) => continue,
            };
            part.apply(now_ns, entries, &unknown);
            if may_remove {
                part.remove_missing(now_ns, self.hold_ns, &unknown);
            }
        }
        Step::Listed { wait_ns: self.wait_ns(now_ns, ttl_ns, draw) }
    }

    /// The entries that are listed: those of each question sorted by host and port.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let known = self.parts.iter().flat_map(|part| &part.known);
        let entry = |((host, port), known): (&(String, u16), &KnownEntry)| Entry {
            host: host.clone(),
            port: *port,
            weight: known.weight,
        };
        known.map(entry).collect()
    }

    /// The time until the next look-up: the TTL or, after a denial, 1, 2, 4 ... 30 s less up to a half, but
    /// no longer than until the first missing entry may go. It is never less than the least TTL, whatever a
    /// server says.
    fn wait_ns(&self, now_ns: u64, ttl_ns: Option<u64>, draw: f64) -> u64 {
        let usual_ns = match ttl_ns {
            Some(ttl_ns) => ttl_ns.min(DNS_MAX_TTL_NS),
            None => {
                let doubled = self.denials.saturating_sub(1).min(5);
                let longest_ns = (DNS_MIN_BACKOFF_NS << doubled).min(DNS_MAX_BACKOFF_NS);
                longest_ns - (longest_ns as f64 / 2.0 * draw) as u64
            }
        };
        let ends = self.parts.iter().filter_map(|part| part.first_end_ns(now_ns, self.hold_ns));
        let wait_ns = ends.min().map_or(usual_ns, |end_ns| usual_ns.min(end_ns - now_ns));
        wait_ns.max(DNS_MIN_TTL_NS)
    }
}

/// What the answers to one question amount to.
#[derive(Debug, Default)]
struct Part {
    known: BTreeMap<(String, u16), KnownEntry>,
    /// Whether all are those of a list in which each member has the weight 1. Entries that all have the weight 0
    /// make such a list, too, so the next answer with entries says which weight they have.
    is_even: bool,
}

/// An entry that is listed, by its host and port.
#[derive(Clone, Copy, Debug)]
struct KnownEntry {
    weight: u16,
    /// Since when all answers have lacked it; `None`: the last one has it.
    missing_ns: Option<u64>,
}

impl Part {
    /// The entries of a list of before.
    fn new(entries: Vec<Entry>) -> Part {
        let is_even = entries.iter().all(|entry| entry.weight == 1);
        let known = |Entry { host, port, weight }| ((host, port), KnownEntry { weight, missing_ns: None });
        Part { known: entries.into_iter().map(known).collect(), is_even }
    }

    /// Notes which entries an answer has, and which it lacks. Of two entries for one place the last counts. Those of
    /// `unknown` families it does not lack, unless there are more than a list may have.
    fn apply(&mut self, now_ns: u64, entries: Vec<Entry>, unknown: &[Family]) {
        let is_full = self.known.len() + entries.len() > MOST_MEMBERS;
        for ((host, _), known) in &mut self.known {
            if is_full || !is_of(host, unknown) {
                known.missing_ns.get_or_insert(now_ns);
            }
        }
        if self.is_even && !entries.is_empty() {
            self.is_even = false;
            let weight = u16::from(entries.iter().any(|entry| entry.weight > 0));
            self.known.values_mut().for_each(|known| known.weight = weight);
        }
        for Entry { host, port, weight } in entries {
            self.known.insert((host, port), KnownEntry { weight, missing_ns: None });
        }
        self.forget_excess();
    }

    /// Removes what has been missing for `hold_ns`, but nothing of `unknown` families.
    fn remove_missing(&mut self, now_ns: u64, hold_ns: u64, unknown: &[Family]) {
        let stays = |since_ns: u64| now_ns.saturating_sub(since_ns) < hold_ns;
        self.known.retain(|(host, _), known| known.missing_ns.is_none_or(stays) || is_of(host, unknown));
    }

    /// When the first missing entry may go, later than now.
    fn first_end_ns(&self, now_ns: u64, hold_ns: u64) -> Option<u64> {
        let missing = self.known.values().filter_map(|known| known.missing_ns);
        missing.map(|since_ns| since_ns.saturating_add(hold_ns)).filter(|end_ns| *end_ns > now_ns).min()
    }

    /// Removes those that have been missing longest where there are more than a list may have: a server may
    /// give other entries each time.
    fn forget_excess(&mut self) {
        let excess = self.known.len().saturating_sub(MOST_MEMBERS);
        if excess == 0 {
            return;
        }
        let since = |(place, known): (&(String, u16), &KnownEntry)| Some((known.missing_ns?, place.clone()));
        let mut missing: Vec<_> = self.known.iter().filter_map(since).collect();
        missing.sort();
        for (_, place) in missing.iter().take(excess) {
            self.known.remove(place);
        }
    }
}

/// Whether a host is an address of one of these families.
fn is_of(host: &str, families: &[Family]) -> bool {
    !families.is_empty() && host.parse::<IpAddr>().is_ok_and(|ip| families.contains(&Family::from_ip(&ip)))
}
