//! Members from DNS: each address of a name (A and AAAA), or each target of its service records (SRV).
//!
//! - [`resolver`] looks the name up, by the system's rules or at the name servers of `server=`.
//! - [`pool`] asks a name server.
//! - [`records`] reads the records of an answer.
//! - [`targets`] finds the addresses of the targets of service records, at the name servers that named them.
//! - [`answers`] decides what an answer, or none, does to the members, and when the name is looked up again.

mod answers;
mod pool;
mod records;
mod resolver;
mod targets;

#[cfg(test)]
mod server;
#[cfg(test)]
mod tests;

use super::Post;
use crate::list::{Registered, Snapshot, State, Subject, listed};
use answers::{Answers, Entry, Step};
use resolver::{LookUpResult, Resolver};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use weir_plan::address::Address;
use weir_plan::fixed::DNS_MAX_BACKOFF_NS;
use weir_plan::{DnsRecords, DnsSource};

/// The longest pause after a failure.
const MOST_PAUSE: Duration = Duration::from_nanos(DNS_MAX_BACKOFF_NS);

/// The sentence for when each target of the SRV records has been looked up, after one that could not be.
const RECOVERY: &str = "the addresses of all targets are looked up without a fault again";

/// Looks the name up for ever. `last`: the list of before, whose members are held as those of an answer.
pub(super) async fn follow(source: DnsSource, last: Option<Arc<Snapshot>>, mut post: Post) {
    let mut answers = Answers::new(source.hold_ns);
    if let Some(last) = last {
        answers.seed(known_entries(&last, source.records));
    }
    let mut resolver = Resolver::new(source);
    loop {
        let LookUpResult { answers: found, objections } = resolver.look_up().await;
        let wait_ns = match answers.apply(post.now_ns(), found, post.draw()) {
            Step::Listed { wait_ns } => wait_ns,
            Step::Failed(defect) => {
                post.fail(defect, MOST_PAUSE).await;
                continue;
            }
        };
        match listed(members(answers.entries())) {
            Ok(mut list) => {
                for objection in objections {
                    // It names its target, which is no entry of a number.
                    list.leave_out(Subject::Part { recovery: RECOVERY }, objection, || None);
                }
                post.list(list).await;
                sleep(Duration::from_nanos(wait_ns)).await;
            }
            Err(defect) => post.fail(defect, MOST_PAUSE).await,
        }
    }
}

/// The members that these entries are. A weight of 0 among others means "a very small chance" (RFC 2782), so
/// it counts as a hundredth of the least of them; where all are 0, as those of addresses, no entry is
/// preferred. Both are in the range of weights: a service's is at most 65535.
fn members(entries: Vec<Entry>) -> Vec<Registered> {
    let least = entries.iter().map(|entry| entry.weight).filter(|weight| *weight > 0).min();
    let member = |Entry { host, port, weight }| {
        let weight = match (weight, least) {
            (_, None) => 1.0,
            (0, Some(least)) => f64::from(least) / 100.0,
            (weight, Some(_)) => f64::from(weight),
        };
        Registered { host, port: i64::from(port), id: None, weight, state: State::Up }
    };
    entries.into_iter().map(member).collect()
}

/// The entries that the members of a list were, those of each question: the reverse of [`members`]. A weight that
/// is no whole number was 0.
fn known_entries(list: &Snapshot, records: DnsRecords) -> Vec<Vec<Entry>> {
    let (mut entries, mut entries_v6) = (Vec::new(), Vec::new());
    for member in &list.members {
        let (host, port, is_v6) = match Address::parse(&member.addr) {
            Some(Address::Ip(at)) => (at.ip().to_string(), at.port(), at.is_ipv6()),
            Some(Address::Name(host, port)) => (host, port, false),
            _ => continue,
        };
        let weight = if member.weight.fract() == 0.0 { member.weight as u16 } else { 0 };
        let entry = Entry { host, port, weight };
        if is_v6 { entries_v6.push(entry) } else { entries.push(entry) }
    }
    match records {
        DnsRecords::Addresses { .. } => vec![entries, entries_v6],
        DnsRecords::Services => {
            entries.extend(entries_v6);
            vec![entries]
        }
    }
}
