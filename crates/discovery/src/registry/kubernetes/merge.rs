//! The members of a service: all of its slices together, by one port.
//!
//! An address may be in several slices for a while, with different conditions: what says most for it counts.
//! One that is ready and not terminating is up, one that terminates drains, one that is neither is off the
//! list as stated. Where none is up, those that serve while they terminate are, as in kube-proxy.

use super::slices::{Slice, SlicePort};
use crate::fault::{Defect, FaultKind, printable};
use crate::list::{Finding, Registered, State, Subject};
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::KubernetesPort;
use weir_plan::http::short;

/// The most ports that a message names.
const MOST_NAMED: usize = 10;

/// What the slices say of a service, in the order of addresses.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Membership {
    /// The members that are up or drain.
    pub(super) members: Vec<Registered>,
    /// Those that are stated to be neither ready nor terminating.
    pub(super) gone: Vec<Registered>,
    /// The hosts of slices without the port, of which nothing is said.
    pub(super) unknown: BTreeSet<String>,
    /// Those slices.
    pub(super) findings: Vec<Finding>,
}

/// How much a slice says for an address; the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Neither ready nor terminating.
    Unready,
    /// It terminates, and does not serve.
    Ending,
    /// It terminates, and serves.
    Serving,
    /// It is ready and does not terminate.
    Ready,
}

/// The members of these slices by this port.
///
/// # Errors
/// There are several ports and none is chosen, or no slice has the chosen one.
pub(super) fn merge(
    slices: &BTreeMap<String, Slice>,
    port: Option<&KubernetesPort>,
) -> Result<Membership, Defect> {
    let mut result = Membership::default();
    let mut ranks: BTreeMap<(&str, i64), (Rank, Option<&str>)> = BTreeMap::new();
    // A service without pods has a slice without ports.
    let filled = || slices.iter().enumerate().filter(|(_, (_, slice))| !slice.instances.is_empty());
    judge_ports(filled().map(|(_, (_, slice))| slice), port)?;
    for (i, (name, slice)) in filled() {
        let Some(number) = number(slice, port) else {
            result.unknown.extend(slice.instances.iter().map(|instance| instance.host.clone()));
            result.findings.push(lacking(i + 1, name, slice));
            continue;
        };
        for instance in &slice.instances {
            let rank = match (instance.is_ready, instance.is_terminating) {
                (_, true) if instance.is_serving => Rank::Serving,
                (_, true) => Rank::Ending,
                (true, false) => Rank::Ready,
                (false, false) => Rank::Unready,
            };
            let id = instance.id.as_deref();
            let known = ranks.entry((instance.host.as_str(), number)).or_insert((rank, id));
            if rank > known.0 {
                *known = (rank, id);
            }
        }
    }
    let is_any_ready = ranks.values().any(|(rank, _)| *rank == Rank::Ready);
    for ((host, port), (rank, id)) in ranks {
        let is_up = rank == Rank::Ready || (rank == Rank::Serving && !is_any_ready);
        let state = if is_up { State::Up } else { State::Drain };
        let (host, id) = (host.to_owned(), id.map(str::to_owned));
        let instance = Registered { host, port, id, weight: 1.0, state };
        let list = if rank == Rank::Unready { &mut result.gone } else { &mut result.members };
        list.push(instance);
    }
    Ok(result)
}

/// The number of the chosen port in a slice.
fn number(slice: &Slice, port: Option<&KubernetesPort>) -> Option<i64> {
    match port {
        None => slice.ports.iter().find_map(|port| port.number),
        Some(KubernetesPort::Name(name)) => {
            slice.ports.iter().find(|port| port.name == *name).and_then(|port| port.number)
        }
        Some(KubernetesPort::Number(number)) => {
            let number = i64::from(*number);
            slice.ports.iter().any(|port| port.number.is_none_or(|n| n == number)).then_some(number)
        }
    }
}

/// Judges whether one port is chosen, and a slice has it.
fn judge_ports<'a>(
    slices: impl Iterator<Item = &'a Slice>,
    port: Option<&KubernetesPort>,
) -> Result<(), Defect> {
    let mut ports: BTreeMap<&str, &SlicePort> = BTreeMap::new();
    let (mut has_slices, mut has_number) = (false, false);
    for slice in slices {
        has_slices = true;
        has_number |= number(slice, port).is_some();
        ports.extend(slice.ports.iter().map(|port| (port.name.as_str(), port)));
    }
    if !has_slices || (has_number && (port.is_some() || ports.len() == 1)) {
        return Ok(());
    }
    let named = list_ports(ports.into_values());
    let (problem, remedy) = match port {
        _ if named.is_empty() => {
            ("the service's endpoints have no TCP port".to_owned(), "give the service a port".to_owned())
        }
        None if has_number => {
            (format!("the service has several ports: {named}"), "write `port=` with one of them".to_owned())
        }
        None => (format!("the service's port has no number: {named}"), "write `port=8080`".to_owned()),
        Some(port) => {
            let port = match port {
                KubernetesPort::Name(name) => format!("\"{}\"", short(name)),
                KubernetesPort::Number(number) => number.to_string(),
            };
            let problem = format!("the service's endpoints have no port {port}, but {named}");
            (problem, "write `port=` with one of them: the pods' ports, not the service's own".to_owned())
        }
    };
    Err(Defect::new(FaultKind::Settings, problem, remedy))
}

/// A finding about a slice without the chosen port.
fn lacking(entry: usize, name: &str, slice: &Slice) -> Finding {
    let named = list_ports(slice.ports.iter());
    let named = if named.is_empty() { "none".to_owned() } else { named };
    let problem = format!("the EndpointSlice {} lacks the port; it has {named}", short(&printable(name)));
    let remedy = Some("write `port=` with a port of all of them, if this lasts".to_owned());
    Finding { place: None, subject: Subject::Entry(entry), problem, remedy }
}

/// `"http" (8080), 9090`, shortened.
fn list_ports<'a>(ports: impl Iterator<Item = &'a SlicePort>) -> String {
    let all: Vec<String> = ports
        .map(|SlicePort { name, number }| {
            let number = number.map_or_else(|| "any".to_owned(), |number| number.to_string());
            match name.as_str() {
                "" => number,
                name => format!("\"{}\" ({number})", short(&printable(name))),
            }
        })
        .collect();
    match all.get(..MOST_NAMED) {
        Some(first) if all.len() > MOST_NAMED => format!("{}, ...", first.join(", ")),
        _ => all.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::super::slices::Slices;
    use super::super::tests::{page, slice};
    use super::*;
    use weir_stats::Key;

    fn slices(all: &[String]) -> Slices {
        let mut slices = Slices::default();
        slices.add_page(&page("1", "", all)).expect("a page");
        slices
    }

    /// Members as `host:port`, `!` if they drain; then those that are stated gone.
    fn merged(all: &[String], port: Option<KubernetesPort>) -> Result<(String, String), String> {
        let result = merge(slices(all).all(), port.as_ref()).map_err(|defect| defect.to_string())?;
        let show = |list: &[Registered]| {
            let one = |r: &Registered| {
                let drain = if r.state == State::Drain { "!" } else { "" };
                format!("{}:{}{drain}", r.host, r.port)
            };
            list.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        Ok((show(&result.members), show(&result.gone).replace('!', "")))
    }

    fn web(name: &str, endpoints: &[&str]) -> String {
        slice(name, &[("http", 80)], endpoints)
    }

    fn pair(members: &str, gone: &str) -> Result<(String, String), String> {
        Ok((members.to_owned(), gone.to_owned()))
    }

    #[test]
    fn conditions_decide_and_the_best_word_of_several_slices_counts() {
        let one = web("a", &["10.0.0.1", "10.0.0.2 ending", "10.0.0.3 serving", "10.0.0.4 down"]);
        let expected = pair("10.0.0.1:80 10.0.0.2:80! 10.0.0.3:80!", "10.0.0.4:80");
        assert_eq!(merged(std::slice::from_ref(&one), None), expected);
        let other = web("b", &["10.0.0.1 down", "10.0.0.2", "10.0.0.4 ending"]);
        let expected = pair("10.0.0.1:80 10.0.0.2:80 10.0.0.3:80! 10.0.0.4:80!", "");
        assert_eq!(merged(&[one.clone(), other.clone()], None), expected);
        assert_eq!(merged(&[other, one], None), expected);
        assert_eq!(merged(&[], None), pair("", ""));
        assert_eq!(merged(&[slice("a", &[], &[])], None), pair("", ""));
    }

    #[test]
    fn where_none_is_ready_those_that_serve_while_they_terminate_are_up() {
        let all = [web("a", &["10.0.0.1 serving", "10.0.0.2 ending", "10.0.0.3 down"])];
        assert_eq!(merged(&all, None), pair("10.0.0.1:80 10.0.0.2:80!", "10.0.0.3:80"));
    }

    #[test]
    fn the_port_is_the_only_one_or_the_chosen_one() {
        let name = |name: &str| Some(KubernetesPort::Name(name.to_owned()));
        let two = slice("a", &[("http", 80), ("metrics", 9090)], &["10.0.0.1"]);
        let word = merged(std::slice::from_ref(&two), None).expect_err("several");
        assert!(word.contains("\"http\" (80), \"metrics\" (9090)"), "{word}");
        assert_eq!(merged(std::slice::from_ref(&two), name("metrics")), pair("10.0.0.1:9090", ""));
        let number = Some(KubernetesPort::Number(80));
        assert_eq!(merged(std::slice::from_ref(&two), number), pair("10.0.0.1:80", ""));
        let word = merged(std::slice::from_ref(&two), name("web")).expect_err("none");
        assert!(word.contains("no port \"web\", but \"http\" (80)"), "{word}");
        // The same name may have another number in another slice.
        let other = slice("b", &[("http", 8080)], &["10.0.0.2"]);
        assert_eq!(merged(&[two, other.clone()], name("http")), pair("10.0.0.1:80 10.0.0.2:8080", ""));
        assert_eq!(merged(&[web("a", &["10.0.0.1"]), other], None), pair("10.0.0.1:80 10.0.0.2:8080", ""));
        assert!(merged(&[slice("a", &[], &["10.0.0.1"])], None).expect_err("none").contains("no TCP port"));
    }

    #[test]
    fn a_slice_with_a_renamed_port_is_a_finding_and_says_nothing_of_its_addresses() {
        let renamed = slice("b", &[("web", 80)], &["10.0.0.2"]);
        let all = slices(&[web("a", &["10.0.0.1"]), renamed]);
        let result = merge(all.all(), Some(&KubernetesPort::Name("http".to_owned()))).expect("members");
        assert_eq!(result.members.len(), 1);
        assert_eq!(result.unknown, BTreeSet::from(["10.0.0.2".to_owned()]));
        let words: Vec<String> = result.findings.iter().map(Finding::to_string).collect();
        assert_eq!(
            words,
            ["entry 2: the EndpointSlice b lacks the port; it has \"web\" (80); \
              write `port=` with a port of all of them, if this lasts"]
        );
    }

    #[test]
    fn fifty_slices_of_a_hundred_endpoints_are_one_list() {
        let hosts: Vec<Vec<String>> =
            (0..50).map(|i| (0..100).map(|j| format!("10.0.{i}.{j}")).collect()).collect();
        let all: Vec<String> = hosts
            .iter()
            .enumerate()
            .map(|(i, hosts)| web(&format!("web-{i}"), &hosts.iter().map(String::as_str).collect::<Vec<_>>()))
            .collect();
        let result = merge(slices(&all).all(), None).expect("members");
        assert_eq!((result.members.len(), result.gone.len()), (5000, 0));
        assert!(result.members.iter().all(|member| member.state == State::Up));
    }

    /// The same by the definition, one address at a time.
    fn merge_naively(words: &BTreeMap<String, Vec<&str>>) -> (String, String) {
        let has = |said: &[&str], word: &str| said.contains(&word);
        let is_any_up = words.values().any(|said| has(said, "up"));
        let (mut members, mut gone) = (Vec::new(), Vec::new());
        for (host, said) in words {
            if has(said, "up") || (!is_any_up && has(said, "serving")) {
                members.push(format!("{host}:80"));
            } else if has(said, "serving") || has(said, "ending") {
                members.push(format!("{host}:80!"));
            } else {
                gone.push(format!("{host}:80"));
            }
        }
        (members.join(" "), gone.join(" "))
    }

    #[test]
    fn random_slices_are_merged_as_the_definition_says() {
        for round in 0..500 {
            let key = Key::new(48).with(round);
            let mut words: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            let mut all = Vec::new();
            for i in 0..key.with(0).below(5) {
                let mut endpoints = Vec::new();
                for j in 0..key.with(1).with(i).below(6) {
                    let draw = key.with(2).with(i).with(j);
                    let host = format!("10.0.0.{}", draw.with(0).below(8));
                    // Rounds differ in how many are up at all.
                    let ups = round % 4;
                    let kinds = ["serving", "ending", "down", "up", "up", "up"];
                    let kind = kinds[usize::try_from(draw.with(1).below(3 + ups)).expect("small")];
                    endpoints.push(format!("{host} {kind}"));
                    words.entry(host).or_default().push(kind);
                }
                all.push(web(&format!("web-{i}"), &endpoints.iter().map(String::as_str).collect::<Vec<_>>()));
            }
            assert_eq!(merged(&all, None), Ok(merge_naively(&words)), "round {round}");
        }
    }
}
