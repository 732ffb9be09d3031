//! Lists of registries, whose instances have a host and a port by themselves.

use super::{Builder, Departure, Member, Objection, Snapshot, State};
use crate::fault::Defect;
use std::net::IpAddr;
use weir_plan::address::{self, Address};
use weir_plan::http::short;
use weir_plan::ranges::wrong_weight;

/// An instance as a registry has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Registered {
    /// A name, or an address without brackets.
    pub(crate) host: String,
    /// Its port as the registry writes it.
    pub(crate) port: i64,
    /// What tells it from another that had its address before.
    pub(crate) id: Option<String>,
    pub(crate) weight: f64,
    pub(crate) state: State,
}

/// The list of these instances. One that cannot be a member is left out.
///
/// # Errors
/// There are too many.
pub(crate) fn listed(instances: impl IntoIterator<Item = Registered>) -> Result<Snapshot, Defect> {
    listed_with_stated(instances, [])
}

/// The same, with instances that the registry says are gone.
///
/// # Errors
/// There are too many.
pub(crate) fn listed_with_stated(
    instances: impl IntoIterator<Item = Registered>,
    gone: impl IntoIterator<Item = Registered>,
) -> Result<Snapshot, Defect> {
    let mut list = Builder::default();
    for (i, instance) in instances.into_iter().enumerate() {
        let objection = match place(&instance) {
            Err(objection) => Some(objection),
            Ok((address, addr)) => {
                let Registered { id, weight, state, .. } = instance;
                list.add(address, Member { addr, id, weight, state })?
            }
        };
        if let Some(objection) = objection {
            list.leave_out(i + 1, objection, || None);
        }
    }
    for instance in gone {
        // One without an address was no member.
        if let Ok((_, addr)) = place(&instance) {
            list.depart(Departure { addr, id: instance.id });
        }
    }
    Ok(list.finish())
}

/// Whether an instance can have this address: not one of none, of many, or of a link that it does not name.
fn is_reachable(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let [first, ..] = ip.octets();
            first != 0 && first < 224
        }
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_unicast_link_local(),
    }
}

/// Where an instance is.
fn place(instance: &Registered) -> Result<(Address, String), Objection> {
    let name = instance.id.as_deref().map(|id| format!(" of \"{}\"", short(id))).unwrap_or_default();
    let wrong = |problem: String, remedy: &str| Objection::new(problem, remedy);
    let host = instance.host.trim_start_matches('[').trim_end_matches(']');
    if !(1..=65_535).contains(&instance.port) {
        let problem = format!("the port{name} is {}", instance.port);
        return Err(wrong(problem, "register it with a port from 1 to 65535"));
    }
    if let Some(word) = wrong_weight(instance.weight) {
        return Err(wrong(format!("the weight{name} {word}"), "register it with another weight"));
    }
    let text = match host.parse::<IpAddr>() {
        Ok(ip) if !is_reachable(ip) => {
            let problem = format!("the address{name} is {ip}, which is that of no instance");
            return Err(wrong(problem, "register it with the address by which it is reached"));
        }
        Ok(ip) => std::net::SocketAddr::new(ip, instance.port as u16).to_string(),
        Err(_) => format!("{host}:{}", instance.port),
    };
    let address = address::server(&text).ok().and_then(|()| Address::parse(&text));
    match address {
        Some(address) => Ok((address, text)),
        None => {
            let problem = format!("\"{}\"{name} is no address", short(host));
            Err(wrong(problem, "register it with a host name or an IP address"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(host: &str, port: i64, weight: f64) -> Result<String, String> {
        let id = Some("i-1".to_owned());
        let one = Registered { host: host.to_owned(), port, id, weight, state: State::Up };
        let list = listed([one]).expect("a list");
        match (list.members.first(), list.left_out.first()) {
            (Some(member), None) => Ok(member.addr.clone()),
            (None, Some(finding)) => Err(finding.to_string()),
            both => panic!("{both:?}"),
        }
    }

    #[test]
    fn hosts_and_ports_become_addresses_or_are_left_out_with_the_instance() {
        assert_eq!(one("10.0.0.1", 80, 1.0), Ok("10.0.0.1:80".to_owned()));
        assert_eq!(one("fd00::1", 80, 1.0), Ok("[fd00::1]:80".to_owned()));
        assert_eq!(one("[fd00::1]", 80, 1.0), Ok("[fd00::1]:80".to_owned()));
        assert_eq!(one("api.internal", 8080, 0.0), Ok("api.internal:8080".to_owned()));
        for (host, port) in [
            ("10.0.0.1", 0),
            ("10.0.0.1", 70_000),
            ("0.0.0.0", 80),
            ("::", 80),
            ("224.0.0.1", 80),
            ("::ffff:0.0.0.0", 80),
            ("0.1.2.3", 80),
            ("255.255.255.255", 80),
            ("fe80::1", 80),
            ("a b", 80),
            ("", 80),
        ] {
            let word = one(host, port, 1.0).expect_err(host);
            assert!(word.starts_with("entry 1: ") && word.contains("i-1"), "{word}");
        }
        for weight in [-1.0, f64::NAN, 1e308] {
            assert!(one("10.0.0.1", 80, weight).is_err());
        }
    }

    #[test]
    fn departures_are_sorted_and_none_is_listed_or_named_twice() {
        let of = |host: &str, id: Option<&str>, port: i64| {
            let id = id.map(str::to_owned);
            Registered { host: host.to_owned(), port, id, weight: 1.0, state: State::Up }
        };
        let drains = Registered { state: State::Drain, ..of("10.0.0.2", None, 80) };
        let gone = [
            of("fd00::9", None, 80),
            of("10.0.0.9", None, 80),
            // Another one at the address of a listed one, and both that are listed.
            of("10.0.0.1", Some("b"), 80),
            of("10.0.0.1", Some("a"), 80),
            of("10.0.0.2", None, 80),
            // Twice, and no members at all.
            of("[fd00::9]", None, 80),
            of("10.0.0.9", None, 80),
            of("10.0.0.3", None, 0),
            of("", None, 80),
        ];
        let list = listed_with_stated([of("10.0.0.1", Some("a"), 80), drains], gone).expect("a list");
        let departure =
            |addr: &str, id: Option<&str>| Departure { addr: addr.to_owned(), id: id.map(str::to_owned) };
        let want = [
            departure("10.0.0.1:80", Some("b")),
            departure("10.0.0.9:80", None),
            departure("[fd00::9]:80", None),
        ];
        assert_eq!(list.departures, want);
        assert_eq!((list.members.len(), list.left_out_count), (2, 0));
    }
}
