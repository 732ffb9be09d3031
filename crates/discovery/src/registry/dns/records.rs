//! Reading the records of an answer: where aliases lead, and which entries are listed at their end.

use super::answers::{Answer, Entry};
use crate::list::MOST_MEMBERS;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use weir_plan::http::short;

/// The most aliases that lead to an end.
pub(super) const MOST_ALIASES: usize = 8;

/// The addresses of hosts that are names.
pub(super) type Addresses = BTreeMap<String, BTreeSet<IpAddr>>;

/// An answer, with the addresses of its hosts that came with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocatedAnswer {
    pub(super) answer: Answer,
    pub(super) addresses: Addresses,
}

impl LocatedAnswer {
    /// Whether it lists an entry.
    pub(super) fn is_found(&self) -> bool {
        self.answer.is_found()
    }

    /// Whether it is none.
    pub(super) fn is_failed(&self) -> bool {
        self.answer.is_failed()
    }
}

impl From<Answer> for LocatedAnswer {
    fn from(answer: Answer) -> LocatedAnswer {
        LocatedAnswer { answer, addresses: Addresses::new() }
    }
}

/// The records that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// IPv4 addresses, with this port.
    V4(u16),
    /// IPv6 addresses, with this port.
    V6(u16),
    /// Services, with ports of their own.
    Services,
    /// The same, with the addresses of their hosts that come with an answer.
    LocatedServices,
}

impl Kind {
    fn record_type(self) -> RecordType {
        match self {
            Kind::V4(_) => RecordType::A,
            Kind::V6(_) => RecordType::AAAA,
            Kind::Services | Kind::LocatedServices => RecordType::SRV,
        }
    }
}

/// A question, which may go on at another name.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// The absolute name where the aliases so far end.
    name: Name,
    kind: Kind,
    /// The least TTL of those aliases, s.
    ttl_s: u32,
}

impl Question {
    /// A question for records of an absolute name.
    pub(super) fn new(name: Name, kind: Kind) -> Question {
        Question { name, kind, ttl_s: u32::MAX }
    }

    pub(super) fn query(&self) -> Query {
        Query::query(self.name.clone(), self.kind.record_type())
    }

    /// The answer that these records are. `None`: they lead to another name only, which is the question now.
    pub(super) fn read(&mut self, records: &[Record]) -> Option<Answer> {
        let is_led_on = self.follow_aliases(records);
        let kind = self.kind.record_type();
        let found: Vec<&Record> = records
            .iter()
            .filter(|record| record.record_type() == kind && record.name == self.name)
            .collect();
        if found.is_empty() && is_led_on {
            return None;
        }
        let ttl_s = found.iter().map(|record| record.ttl).fold(self.ttl_s, u32::min);
        let entries = match self.kind {
            Kind::V4(port) | Kind::V6(port) => addresses(&found, port),
            Kind::Services | Kind::LocatedServices => services(&found),
        };
        Some(Answer::new(entries, u64::from(ttl_s) * 1_000_000_000))
    }

    /// An answer to this question, for located services with the addresses of hosts that are in these records, which
    /// came with it. It holds as long as all of them do.
    pub(super) fn locate(&self, answer: Answer, additional: &[Record]) -> LocatedAnswer {
        let (entries, mut ttl_ns) = match answer {
            Answer::Found(entries, ttl_ns) if self.kind == Kind::LocatedServices => (entries, ttl_ns),
            other => return other.into(),
        };
        let hosts: BTreeSet<&str> = entries.iter().map(|entry| entry.host.as_str()).collect();
        let mut addresses = Addresses::new();
        for record in additional {
            let owner = host(&record.name);
            if let Some(ip) = record.data.ip_addr()
                && hosts.contains(owner.as_str())
            {
                addresses.entry(owner).or_default().insert(ip);
                ttl_ns = ttl_ns.min(u64::from(record.ttl) * 1_000_000_000);
            }
        }
        LocatedAnswer { answer: Answer::new(entries, ttl_ns), addresses }
    }

    /// Goes to the end of the aliases. Returns whether there was one.
    fn follow_aliases(&mut self, records: &[Record]) -> bool {
        let mut is_led_on = false;
        for _ in 0..MOST_ALIASES {
            let alias = records.iter().find_map(|record| match &record.data {
                RData::CNAME(target) if record.name == self.name => Some((&target.0, record.ttl)),
                _ => None,
            });
            let Some((target, ttl_s)) = alias else { break };
            self.name = target.clone();
            self.ttl_s = self.ttl_s.min(ttl_s);
            is_led_on = true;
        }
        is_led_on
    }
}

impl fmt::Display for Question {
    /// In a few words, for messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.kind.record_type(), short(&host(&self.name)))
    }
}

/// The entries with the known addresses of their hosts: each is an entry with the port and the weight of its service. A host
/// of which none is known stays. One more than a list may have is the most.
pub(super) fn replace_hosts(entries: Vec<Entry>, addresses: &Addresses) -> Vec<Entry> {
    let replace = |entry: Entry| -> Vec<Entry> {
        match addresses.get(&entry.host) {
            Some(known) => known.iter().map(|ip| Entry { host: ip.to_string(), ..entry.clone() }).collect(),
            None => vec![entry],
        }
    };
    let mut all: Vec<Entry> = entries.into_iter().flat_map(replace).take(MOST_MEMBERS + 1).collect();
    // As of the services: of two for one place the greater weight counts.
    all.sort();
    all
}

fn addresses(records: &[&Record], port: u16) -> Vec<Entry> {
    let hosts = records.iter().filter_map(|record| record.data.ip_addr());
    hosts.map(|ip| Entry { host: ip.to_string(), port, weight: 0 }).collect()
}

/// The services of the lowest priority. A target that is only in a higher one is missing from the answer, and
/// `hold` applies to it. The root as target says that there is no service (RFC 2782).
fn services(records: &[&Record]) -> Vec<Entry> {
    let all = records.iter().filter_map(|record| match &record.data {
        RData::SRV(service) if !service.target.is_root() => Some(service),
        _ => None,
    });
    let lowest = all.clone().map(|service| service.priority).min();
    let mut entries: Vec<Entry> = all
        .filter(|service| Some(service.priority) == lowest)
        .map(|service| Entry { host: host(&service.target), port: service.port, weight: service.weight })
        .collect();
    // Of two records for one place the greater weight counts, whatever their order is.
    entries.sort();
    entries
}

/// A name as a member's host: in small letters, since servers answer in the letters of any question, and
/// without its final dot.
fn host(name: &Name) -> String {
    let text = name.to_lowercase().to_ascii();
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_resolver::proto::rr::rdata::{A, CNAME, SRV};

    fn name(text: &str) -> Name {
        Name::from_ascii(text).expect("a name")
    }

    fn alias(owner: &str, target: &str, ttl_s: u32) -> Record {
        Record::from_rdata(name(owner), ttl_s, RData::CNAME(CNAME(name(target))))
    }

    fn address(owner: &str, ip: [u8; 4], ttl_s: u32) -> Record {
        Record::from_rdata(name(owner), ttl_s, RData::A(A(ip.into())))
    }

    fn service(priority: u16, weight: u16, port: u16, target: &str) -> Record {
        let data = RData::SRV(SRV::new(priority, weight, port, name(target)));
        Record::from_rdata(name("api.test."), 9, data)
    }

    /// The answer as text: places with weights, and the TTL, s.
    fn shown(answer: Option<Answer>) -> String {
        match answer {
            Some(Answer::Found(entries, ttl_ns)) => {
                let place = |entry: &Entry| format!("{}:{}*{}", entry.host, entry.port, entry.weight);
                let places: Vec<String> = entries.iter().map(place).collect();
                format!("{} for {}s", places.join(" "), ttl_ns / 1_000_000_000)
            }
            Some(other) => format!("{other:?}"),
            None => "on".to_owned(),
        }
    }

    fn read(kind: Kind, records: &[Record]) -> String {
        shown(Question::new(name("api.test."), kind).read(records))
    }

    #[test]
    fn aliases_lead_to_the_records_in_whatever_order() {
        let all = [
            address("c.test.", [10, 0, 0, 1], 30),
            alias("b.test.", "C.test.", 5),
            alias("API.test.", "b.test.", 60),
            address("other.test.", [10, 0, 0, 2], 1),
        ];
        assert_eq!(read(Kind::V4(80), &all), "10.0.0.1:80*0 for 5s");
        assert_eq!(read(Kind::V4(80), &all[..1]), "Denied");
        let mut question = Question::new(name("api.test."), Kind::V4(80));
        assert_eq!(question.read(&all[1..]), None);
        assert_eq!(question.to_string(), "A of c.test");
        assert_eq!(shown(question.read(&all[..1])), "10.0.0.1:80*0 for 5s");
        // The name that an alias leads to has no such records.
        assert_eq!(question.read(&[]), Some(Answer::Denied));
        let circle = [alias("api.test.", "b.test.", 1), alias("b.test.", "api.test.", 1)];
        assert_eq!(read(Kind::V4(80), &circle), "on");
    }

    #[test]
    fn services_are_those_of_the_lowest_priority() {
        let all = [
            service(20, 1, 80, "far.test."),
            service(10, 7, 8080, "B.test."),
            service(10, 0, 8081, "a.test."),
            service(10, 9, 8080, "b.test."),
            service(0, 9, 0, "."),
        ];
        assert_eq!(
            read(Kind::Services, &all),
            "a.test:8081*0 b.test:8080*7 b.test:8080*9 for 9s",
            "the last of two counts"
        );
        assert_eq!(read(Kind::Services, &all[4..]), "Denied");
        assert_eq!(read(Kind::V6(80), &all), "Denied");
    }

    #[test]
    fn addresses_of_their_hosts_come_with_services() {
        let all =
            [service(10, 7, 8080, "B.test."), service(10, 1, 80, "a.test."), service(10, 2, 80, "c.test.")];
        let additional = [
            address("b.test.", [10, 0, 0, 2], 30),
            address("B.TEST.", [10, 0, 0, 1], 5),
            address("c.test.", [10, 0, 0, 2], 30),
            address("other.test.", [10, 0, 0, 3], 1),
        ];
        let located = |kind| {
            let question = Question::new(name("api.test."), kind);
            let answer = question.clone().read(&all).expect("an answer");
            let LocatedAnswer { answer, addresses } = question.locate(answer, &additional);
            let of = |(host, ips): (&String, &BTreeSet<IpAddr>)| format!("{host} {ips:?}");
            (shown(Some(answer)), addresses.iter().map(of).collect::<Vec<_>>().join("; "))
        };
        let services = "a.test:80*1 b.test:8080*7 c.test:80*2 for";
        let addresses = "b.test {10.0.0.1, 10.0.0.2}; c.test {10.0.0.2}".to_owned();
        assert_eq!(located(Kind::LocatedServices), (format!("{services} 5s"), addresses));
        assert_eq!(located(Kind::Services), (format!("{services} 9s"), String::new()));
    }

    #[test]
    fn more_addresses_than_members_end_early() {
        let ips = (0..1_000u32).map(|n| IpAddr::from((0x0a00_0000 + n).to_be_bytes()));
        let addresses = Addresses::from([("a.test".to_owned(), ips.collect())]);
        let entry = |port| Entry { host: "a.test".to_owned(), port, weight: 0 };
        let entries = (1..=1_000).map(entry).collect();
        assert_eq!(replace_hosts(entries, &addresses).len(), MOST_MEMBERS + 1);
    }
}
