//! The targets of SRV records that came from the name servers of `server=`. These are asked for the addresses of the targets,
//! too: the system's name servers may know nothing of them.
//!
//! - An answer may have addresses with it (RFC 2782), and only the other targets are asked for.
//! - A target without an answer keeps the addresses that it had: a failure removes nothing.
//! - That a target does not exist, or has no address, is an answer, which lacks the members that it had.

use super::answers::{Answer, Entry};
use super::pool::Server;
use super::records::{Addresses, Kind, replace_hosts};
use super::resolver::absolute;
use crate::fault::{Defect, FaultKind};
use crate::list::Objection;
use hickory_resolver::proto::rr::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;
use weir_plan::http::short;

/// How long the targets of an answer may take together.
const ASK_WITHIN: Duration = Duration::from_secs(5);

/// The most targets that are asked for at once.
const MOST_AT_ONCE: usize = 32;

/// The questions for a target. The port is that of its record.
const KINDS: [Kind; 2] = [Kind::V4(0), Kind::V6(0)];

/// What is known of the targets of a source.
#[derive(Default)]
pub(super) struct Targets {
    /// The addresses of each, from the last answer for it.
    known: Addresses,
}

impl Targets {
    /// The answer with addresses in place of all targets, and why some targets have none. The first of these servers
    /// is asked first.
    pub(super) async fn locate(&mut self, answer: Answer, servers: &[Server]) -> (Answer, Vec<Objection>) {
        let (entries, mut ttl_ns) = match answer {
            Answer::Found(entries, ttl_ns) => (entries, ttl_ns),
            other => return (other, Vec::new()),
        };
        let names: BTreeSet<String> =
            entries.iter().filter(|entry| !is_address(entry)).map(|entry| entry.host.clone()).collect();
        let mut replies = ask_all(&names, servers).await;
        let mut before = std::mem::take(&mut self.known);
        let (mut objections, mut failure) = (Vec::new(), None);
        for name in names {
            let replies = replies.remove(&name).unwrap_or_else(|| vec![Answer::Failed(late(&name))]);
            let ttls = replies.iter().filter_map(|reply| match reply {
                Answer::Found(_, ttl_ns) => Some(*ttl_ns),
                _ => None,
            });
            ttl_ns = ttls.fold(ttl_ns, u64::min);
            let addresses = renew(before.remove(&name).unwrap_or_default(), &replies);
            if !addresses.is_empty() {
                self.known.insert(name, addresses);
                continue;
            }
            let defect = replies.into_iter().find_map(|reply| match reply {
                Answer::Failed(defect) => Some(defect),
                _ => None,
            });
            objections.push(object(&name, defect.as_ref()));
            failure = failure.or(defect);
        }
        let mut entries = replace_hosts(entries, &self.known);
        entries.retain(is_address);
        let answer = match failure {
            Some(defect) if entries.is_empty() => Answer::Failed(defect),
            _ => Answer::new(entries, ttl_ns),
        };
        (answer, objections)
    }
}

/// Whether the host of an entry is an address.
fn is_address(entry: &Entry) -> bool {
    entry.host.parse::<IpAddr>().is_ok()
}

/// The answers for these names, as far as they come in time.
async fn ask_all(names: &BTreeSet<String>, servers: &[Server]) -> BTreeMap<String, Vec<Answer>> {
    let mut replies = BTreeMap::new();
    let mut waiting = names.iter();
    let asking = async {
        // They end with this future.
        let mut questions = JoinSet::new();
        loop {
            while questions.len() < MOST_AT_ONCE
                && let Some(name) = waiting.next()
            {
                questions.spawn(ask(name.clone(), servers.to_vec()));
            }
            let Some(result) = questions.join_next().await else { break };
            if let Ok((name, answers)) = result {
                replies.insert(name, answers);
            }
        }
    };
    // Targets without an answer by then have failed.
    let _ = timeout(ASK_WITHIN, asking).await;
    replies
}

/// Asks one server after the other for a target, until one has addresses or says that there are none.
async fn ask(name: String, servers: Vec<Server>) -> (String, Vec<Answer>) {
    let mut answers = Vec::new();
    match Name::from_str_relaxed(&name) {
        Err(_) => {
            let problem = format!("\"{}\" is no name", short(&name));
            let defect = Defect::new(FaultKind::Unexpected, problem, "see to the SRV records");
            answers.push(Answer::Failed(defect));
        }
        Ok(target) => {
            let target = absolute(&target);
            for server in &servers {
                answers = server.ask(&target, &KINDS).await;
                let is_over = answers.iter().any(Answer::is_found) || !answers.iter().any(Answer::is_failed);
                if is_over {
                    break;
                }
            }
        }
    }
    (name, answers)
}

/// The addresses of a target after these answers for both families. A family without an answer keeps its own; without any
/// address both do, since the target may have addresses of the family that has failed.
fn renew(mut addresses: BTreeSet<IpAddr>, replies: &[Answer]) -> BTreeSet<IpAddr> {
    if !replies.iter().any(Answer::is_found) && replies.iter().any(Answer::is_failed) {
        return addresses;
    }
    let families: [fn(&IpAddr) -> bool; 2] = [IpAddr::is_ipv4, IpAddr::is_ipv6];
    for (reply, is_of_family) in replies.iter().zip(families) {
        if reply.is_failed() {
            continue;
        }
        addresses.retain(|ip| !is_of_family(ip));
        if let Answer::Found(entries, _) = reply {
            addresses.extend(entries.iter().filter_map(|entry| entry.host.parse::<IpAddr>().ok()));
        }
    }
    addresses
}

fn late(name: &str) -> Defect {
    let problem = format!("{} was not looked up within {}s", short(name), ASK_WITHIN.as_secs());
    Defect::new(FaultKind::Unreachable, problem, "see to the name servers of `server`")
}

/// Why a target is left out; `defect`: there was no answer for it.
fn object(name: &str, defect: Option<&Defect>) -> Objection {
    let name = short(name);
    match defect {
        Some(Defect { problem, remedy, .. }) => Objection::new(
            format!("the target \"{name}\" of an SRV record has no address: {problem}"),
            remedy.clone(),
        ),
        None => Objection::new(
            format!("the target \"{name}\" of an SRV record has no address at the name servers of `server`"),
            "see to its A and AAAA records there",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ips: &str) -> Answer {
        let entry = |ip: &str| Entry { host: ip.to_owned(), port: 0, weight: 0 };
        Answer::new(ips.split_whitespace().map(entry).collect(), 1)
    }

    #[test]
    fn an_answer_for_a_target_counts_for_each_family_by_itself() {
        let failed = || Answer::Failed(late("a.test"));
        let addresses = |ips: &str| -> BTreeSet<IpAddr> {
            ips.split_whitespace().map(|ip| ip.parse::<IpAddr>().expect("an address")).collect()
        };
        let before = "10.0.0.1 fd00::1";
        for (v4, v6, after) in [
            (found("10.0.0.2"), found("fd00::2"), "10.0.0.2 fd00::2"),
            (found("10.0.0.2 10.0.0.3"), failed(), "10.0.0.2 10.0.0.3 fd00::1"),
            (found("10.0.0.2"), Answer::Denied, "10.0.0.2"),
            (Answer::Denied, failed(), before),
            (failed(), failed(), before),
            (Answer::Denied, Answer::Denied, ""),
        ] {
            assert_eq!(renew(addresses(before), &[v4, v6]), addresses(after));
        }
        // Without an answer within the time there is one failure for both families.
        assert_eq!(renew(addresses(before), &[failed()]), addresses(before));
    }
}
