//! The targets of SRV records that came from the name servers of `server=`. These are asked for the addresses of the targets,
//! too: the system's name servers may know nothing of them.
//!
//! - An answer may have addresses with it (RFC 2782), and only the families that it lacks are asked for.
//! - A target without an answer keeps the addresses that it had: a failure removes nothing. Where it had none here, as after a
//!   reload, the answer does not know the family.
//! - That a target does not exist, or has no address, is an answer, which lacks the members that it had.
//! - Not all may have their turn in time: targets without an address come first, then the others from where the last look-up
//!   stopped. Each family has turns of its own, since a server may be silent for one.

use super::answers::{Answer, Entry, Family};
use super::pool::Server;
use super::records::{Addresses, Kind, LocatedAnswer, Question, replace_hosts};
use super::resolver::absolute;
use crate::fault::{Defect, FaultKind};
use crate::list::Objection;
use hickory_resolver::proto::rr::Name;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use weir_plan::fixed::{DNS_MAX_BACKOFF_NS, DNS_MIN_BACKOFF_NS};
use weir_plan::http::short;

/// How long the targets of an answer may take together.
const ASK_WITHIN: Duration = Duration::from_secs(5);

/// How long the rest is waited for once each target has an address: a server may be silent for one family (RFC 8305 section 3
/// waits 50 ms; name servers that ask others take longer).
const REST_WITHIN: Duration = Duration::from_millis(500);

/// The most questions of one family that are asked at once. With those of the other they fit into a connection by TCP.
const MOST_AT_ONCE: usize = 16;

/// The answers for targets, one for each family.
type Replies = BTreeMap<(String, Family), Answer>;

/// What is known of the targets of a source.
#[derive(Default)]
pub(super) struct TargetAddresses {
    /// The addresses of each, from the last answer for it.
    known: Addresses,
    /// The target with which the next look-up begins, by family; `None`: the last one asked for all.
    next: BTreeMap<Family, Option<String>>,
    /// Look-ups in a row with a question that failed.
    failures: u32,
}

/// What the replies for all targets of an answer amount to.
#[derive(Default)]
struct Summary {
    objections: Vec<Objection>,
    /// The families of which a target may have addresses that are not known.
    unknown: BTreeSet<Family>,
    /// The first failure of a target without an address.
    failure: Option<Defect>,
    has_failed: bool,
}

impl TargetAddresses {
    /// The answer with addresses in place of all targets, and what is wrong with some targets. The first of these servers
    /// is asked first.
    pub(super) async fn locate(
        &mut self,
        located: LocatedAnswer,
        servers: &[Server],
    ) -> (Answer, Vec<Objection>) {
        let (entries, ttl_ns) = match located.answer {
            Answer::Found(entries, ttl_ns) => (entries, ttl_ns),
            other => return (other, Vec::new()),
        };
        let names: BTreeSet<String> =
            entries.iter().filter(|entry| !is_address(entry)).map(|entry| entry.host.clone()).collect();
        let mut replies = replies_of(&located.addresses);
        self.ask_all(&names, &mut replies, servers).await;
        let ttl_ns = replies.values().filter_map(Answer::ttl_ns).fold(ttl_ns, u64::min);
        let Summary { objections, unknown, failure, has_failed } = self.take(names, replies);
        let ttl_ns = ttl_ns.min(self.pause_ns(has_failed));
        let mut entries = replace_hosts(entries, &self.known);
        entries.retain(is_address);
        let answer = match failure {
            Some(defect) if entries.is_empty() => Answer::Failed(defect),
            _ if entries.is_empty() || unknown.is_empty() => Answer::new(entries, ttl_ns),
            _ => Answer::Partial(entries, ttl_ns, unknown.into_iter().collect()),
        };
        (answer, objections)
    }

    /// Asks for the families of these targets that there are no replies for, and adds the replies that come in time.
    async fn ask_all(&mut self, names: &BTreeSet<String>, replies: &mut Replies, servers: &[Server]) {
        let mut queues = Family::ALL.map(|family| {
            let next = self.next.get(&family).cloned().flatten();
            let is_asked = |name: &&String| !replies.contains_key(&((*name).clone(), family));
            let names = names.iter().filter(is_asked).cloned().collect();
            (family, arrange(names, next.as_deref(), &self.known), 0_usize)
        });
        let asking = async {
            // They end with this future.
            let mut questions = JoinSet::new();
            let has_address = |name: &&String| {
                let of = |family| replies.get(&((*name).clone(), family)).is_some_and(Answer::is_found);
                Family::ALL.into_iter().any(of)
            };
            let mut found: BTreeSet<String> = names.iter().filter(has_address).cloned().collect();
            let mut end = None;
            loop {
                for (family, queue, count) in &mut queues {
                    while *count < MOST_AT_ONCE
                        && let Some(name) = queue.pop_front()
                    {
                        questions.spawn(ask(name, *family, servers.to_vec()));
                        *count += 1;
                    }
                }
                let next = if found.len() < names.len() {
                    questions.join_next().await
                } else {
                    let end = *end.get_or_insert_with(|| Instant::now() + REST_WITHIN);
                    timeout_at(end, questions.join_next()).await.unwrap_or_default()
                };
                let Some(result) = next else { break };
                let Ok((name, family, answer)) = result else { continue };
                if answer.is_found() {
                    found.insert(name.clone());
                }
                for (_, _, count) in queues.iter_mut().filter(|(of, ..)| *of == family) {
                    *count -= 1;
                }
                replies.insert((name, family), answer);
            }
        };
        // Questions without an answer by then have failed.
        let _ = timeout(ASK_WITHIN, asking).await;
        self.next = queues.into_iter().map(|(family, mut queue, _)| (family, queue.pop_front())).collect();
    }

    /// Takes the replies for these targets. What is known of others is forgotten.
    fn take(&mut self, names: BTreeSet<String>, mut replies: Replies) -> Summary {
        let mut before = std::mem::take(&mut self.known);
        let mut summary = Summary::default();
        for name in names {
            let both = Family::ALL.map(|family| {
                let reply = replies.remove(&(name.clone(), family));
                reply.unwrap_or_else(|| Answer::Failed(late(&name)))
            });
            let addresses = renew(before.remove(&name).unwrap_or_default(), &both);
            summary.add(&name, &addresses, &both);
            if !addresses.is_empty() {
                self.known.insert(name, addresses);
            }
        }
        summary
    }

    /// The longest time until the next look-up: 1, 2, 4 ... 30 s while questions fail.
    fn pause_ns(&mut self, has_failed: bool) -> u64 {
        if !has_failed {
            self.failures = 0;
            return u64::MAX;
        }
        let doubled = self.failures.min(5);
        self.failures = self.failures.saturating_add(1);
        (DNS_MIN_BACKOFF_NS << doubled).min(DNS_MAX_BACKOFF_NS)
    }
}

impl Summary {
    /// Adds a target that has these addresses after these replies.
    fn add(&mut self, name: &str, addresses: &BTreeSet<IpAddr>, replies: &[Answer; 2]) {
        let defect = replies.iter().find_map(Answer::defect);
        self.has_failed |= defect.is_some();
        let Some(defect) = defect else {
            if addresses.is_empty() {
                self.objections.push(object(name, None));
            }
            return;
        };
        if addresses.is_empty() {
            self.objections.push(object(name, Some(defect)));
            self.unknown.extend(Family::ALL);
            self.failure.get_or_insert_with(|| defect.clone());
            return;
        }
        let mut is_kept = !replies.iter().any(Answer::is_found);
        for (family, reply) in Family::ALL.into_iter().zip(replies) {
            if !reply.is_failed() {
                continue;
            }
            if addresses.iter().any(|ip| Family::from_ip(ip) == family) {
                is_kept = true;
            } else {
                self.unknown.insert(family);
            }
        }
        if is_kept {
            self.objections.push(object_to_silence(name, defect));
        }
    }
}

/// Whether the host of an entry is an address.
fn is_address(entry: &Entry) -> bool {
    entry.host.parse::<IpAddr>().is_ok()
}

/// The replies that addresses which came with an answer are. Their TTL is in that of the answer.
fn replies_of(addresses: &Addresses) -> Replies {
    let mut replies = Replies::new();
    for (name, ips) in addresses {
        for family in Family::ALL {
            let own = ips.iter().filter(|ip| Family::from_ip(ip) == family);
            let entry = |ip: &IpAddr| Entry { host: ip.to_string(), port: 0, weight: 0 };
            let entries: Vec<Entry> = own.map(entry).collect();
            if !entries.is_empty() {
                replies.insert((name.clone(), family), Answer::Found(entries, u64::MAX));
            }
        }
    }
    replies
}

/// These targets, which are sorted, in the order in which they are asked for: those without a known address first, each part
/// from `next` on.
fn arrange(mut names: Vec<String>, next: Option<&str>, known: &Addresses) -> VecDeque<String> {
    // Sorting is stable.
    names.sort_by_key(|name| (known.contains_key(name), next.is_some_and(|next| name.as_str() < next)));
    names.into()
}

/// Asks one server after the other for the addresses of a target, until one has some or says that there are none.
async fn ask(name: String, family: Family, servers: Vec<Server>) -> (String, Family, Answer) {
    let Ok(target) = Name::from_str_relaxed(&name) else {
        let problem = format!("\"{}\" is no name", short(&name));
        let defect = Defect::new(FaultKind::Unexpected, problem, "see to the SRV records");
        return (name, family, Answer::Failed(defect));
    };
    let target = absolute(&target);
    // The port is that of its record.
    let kind = match family {
        Family::V4 => Kind::V4(0),
        Family::V6 => Kind::V6(0),
    };
    let mut answer = Answer::Failed(late(&name));
    for server in &servers {
        answer = server.pursue(Question::new(target.clone(), kind)).await.answer;
        if !answer.is_failed() {
            break;
        }
    }
    (name, family, answer)
}

/// The addresses of a target after these answers for both families. A family without an answer keeps its own; without any
/// address both do, since the target may have addresses of the family that has failed.
fn renew(mut addresses: BTreeSet<IpAddr>, replies: &[Answer; 2]) -> BTreeSet<IpAddr> {
    if !replies.iter().any(Answer::is_found) && replies.iter().any(Answer::is_failed) {
        return addresses;
    }
    for (family, reply) in Family::ALL.into_iter().zip(replies) {
        if reply.is_failed() {
            continue;
        }
        addresses.retain(|ip| Family::from_ip(ip) != family);
        if let Answer::Found(entries, _) = reply {
            addresses.extend(entries.iter().filter_map(|entry| entry.host.parse::<IpAddr>().ok()));
        }
    }
    addresses
}

fn late(name: &str) -> Defect {
    let problem = format!("{} was not looked up in time", short(name));
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

/// Why a target has the addresses that it had.
fn object_to_silence(name: &str, Defect { problem, remedy, .. }: &Defect) -> Objection {
    let name = short(name);
    let problem =
        format!("the target \"{name}\" of an SRV record gives no answer; its last addresses stay: {problem}");
    Objection::new(problem, remedy.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ips: &str) -> Answer {
        let entry = |ip: &str| Entry { host: ip.to_owned(), port: 0, weight: 0 };
        Answer::new(ips.split_whitespace().map(entry).collect(), 1)
    }

    fn failed() -> Answer {
        Answer::Failed(late("a.test"))
    }

    fn addresses(ips: &str) -> BTreeSet<IpAddr> {
        ips.split_whitespace().map(|ip| ip.parse::<IpAddr>().expect("an address")).collect()
    }

    #[test]
    fn an_answer_for_a_target_counts_for_each_family_by_itself() {
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
    }

    #[test]
    fn a_failure_is_said_where_addresses_stay_and_hides_a_family_where_there_are_none() {
        let summary = |after: &str, v4: Answer, v6: Answer| {
            let mut summary = Summary::default();
            summary.add("a.test", &addresses(after), &[v4, v6]);
            let words = summary.objections.iter().map(|one| one.problem.clone()).collect::<String>();
            let what = if words.contains("stay: a.test was not looked up") {
                "stays"
            } else if words.contains("has no address") {
                "none"
            } else {
                words.as_str()
            };
            (what.to_owned(), summary.unknown.len(), summary.failure.is_some(), summary.has_failed)
        };
        let of = |what: &str, unknown, is_none, has_failed| (what.to_owned(), unknown, is_none, has_failed);
        assert_eq!(summary("10.0.0.1", found("10.0.0.1"), Answer::Denied), of("", 0, false, false));
        assert_eq!(summary("", Answer::Denied, Answer::Denied), of("none", 0, false, false));
        assert_eq!(summary("", failed(), failed()), of("none", 2, true, true));
        assert_eq!(summary("", Answer::Denied, failed()), of("none", 2, true, true));
        assert_eq!(summary("10.0.0.1", found("10.0.0.1"), failed()), of("", 1, false, true));
        assert_eq!(summary("10.0.0.1 fd00::1", found("10.0.0.1"), failed()), of("stays", 0, false, true));
        assert_eq!(summary("10.0.0.1", failed(), failed()), of("stays", 1, false, true));
        assert_eq!(summary("10.0.0.1", Answer::Denied, failed()), of("stays", 1, false, true));
    }

    #[test]
    fn targets_without_an_address_come_first_and_then_those_that_had_no_turn() {
        let names = || ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let known: Addresses =
            ["a", "c", "d"].map(|name| (name.to_owned(), addresses("10.0.0.1"))).into_iter().collect();
        let arranged = |next| Vec::from(arrange(names(), next, &known)).concat();
        assert_eq!(arranged(None), "beacd");
        assert_eq!(arranged(Some("c")), "ebcda");
        assert_eq!(arranged(Some("z")), "beacd");
    }

    #[test]
    fn look_ups_with_failures_are_closer_together_at_first() {
        let mut targets = TargetAddresses::default();
        let pauses = [true; 7].map(|has_failed| targets.pause_ns(has_failed) / 1_000_000_000);
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(targets.pause_ns(false), u64::MAX);
        assert_eq!(targets.pause_ns(true), DNS_MIN_BACKOFF_NS);
    }
}
