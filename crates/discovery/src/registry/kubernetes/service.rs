//! A service while it is followed: its slices, and which members events took away.
//!
//! A watch states what is gone: its events come one by one, and each means what it says. A list read whole
//! states nothing by what it lacks, so that a service that is listed again begins without a past.

use super::merge::{Membership, merge};
use super::slices::{Progress, Slices};
use crate::fault::Defect;
use crate::list::{MOST_FINDINGS, MOST_MEMBERS, Registered, Snapshot, listed_with_stated};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;
use weir_plan::KubernetesPort;

/// How long a member that an event took away is stated to be gone: a list may be replaced by the next before
/// it is taken.
const STATED_TIME: Duration = Duration::from_secs(60);

/// A service that has been listed, and whose events are applied.
#[derive(Debug)]
pub(super) struct Service {
    slices: Slices,
    /// The version of its list to which it has been followed.
    version: String,
    /// The members of the last snapshot.
    members: Vec<Registered>,
    /// Members that events took away, and when.
    gone: Vec<(Instant, Registered)>,
}

impl Service {
    /// A service as a list has it.
    pub(super) fn new(slices: Slices, version: String) -> Service {
        Service { slices, version, members: Vec::new(), gone: Vec::new() }
    }

    /// From which version on its events are missing.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Applies an event. Returns whether a slice is another one.
    ///
    /// # Errors
    /// The watch cannot go on.
    pub(super) fn apply(&mut self, line: &[u8]) -> Result<bool, Defect> {
        let Progress { version, is_change } = self.slices.apply(line)?;
        if !version.is_empty() {
            self.version = version;
        }
        Ok(is_change)
    }

    /// Its list by this port.
    ///
    /// # Errors
    /// The port is not the right one, or there are too many members.
    pub(super) fn snapshot(
        &mut self,
        port: Option<&KubernetesPort>,
        now: Instant,
    ) -> Result<Snapshot, Defect> {
        let Membership { members, gone, unknown, findings } = merge(self.slices.all(), port)?;
        let listed: HashSet<_> = members.iter().map(identity).collect();
        let is_listed = |member: &Registered| listed.contains(&identity(member));
        let lost = self.members.drain(..).filter(|m| !is_listed(m) && !unknown.contains(&m.host));
        self.gone.extend(lost.map(|member| (now, member)));
        self.gone.retain(|(at, member)| now.duration_since(*at) < STATED_TIME && !is_listed(member));
        // A registry that gives ever new addresses must not fill the memory.
        let excess = self.gone.len().saturating_sub(MOST_MEMBERS);
        self.gone.drain(..excess);
        let stated = gone.into_iter().chain(self.gone.iter().map(|(_, member)| member.clone()));
        let mut list = listed_with_stated(members.iter().cloned(), stated)?;
        list.left_out_count += findings.len();
        let room = MOST_FINDINGS.saturating_sub(list.left_out.len());
        list.left_out.extend(findings.into_iter().take(room));
        self.members = members;
        Ok(list)
    }
}

/// What tells a member from all others.
fn identity(member: &Registered) -> (&str, i64, Option<&str>) {
    (member.host.as_str(), member.port, member.id.as_deref())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{event, page, slice};
    use super::*;

    fn service(all: &[String]) -> Service {
        let mut slices = Slices::default();
        let end = slices.add_page(&page("1", "", all)).expect("a page");
        Service::new(slices, end.version)
    }

    /// The hosts that are listed, and those that events took away.
    fn hosts(service: &mut Service, port: Option<&KubernetesPort>, now: Instant) -> (String, String) {
        let list = service.snapshot(port, now).expect("a list");
        let listed = list.members.iter().map(|m| m.addr.clone()).collect::<Vec<_>>().join(" ");
        (listed, service.gone.iter().map(|(_, m)| m.host.clone()).collect::<Vec<_>>().join(" "))
    }

    fn web(name: &str, endpoints: &[&str]) -> String {
        slice(name, &[("http", 80)], endpoints)
    }

    fn pair(listed: &str, gone: &str) -> (String, String) {
        (listed.to_owned(), gone.to_owned())
    }

    #[test]
    fn what_events_take_away_is_stated_for_a_minute_or_until_it_is_back() {
        let start = Instant::now();
        let mut service = service(&[web("a", &["10.0.0.1", "10.0.0.2"]), web("b", &["10.0.0.3"])]);
        assert_eq!(hosts(&mut service, None, start), pair("10.0.0.1:80 10.0.0.2:80 10.0.0.3:80", ""));
        let apply = |service: &mut Service, kind: &str, version: &str, slice: &str| {
            service.apply(event(kind, version, slice).as_bytes()).expect("an event")
        };
        assert!(apply(&mut service, "MODIFIED", "2", &web("a", &["10.0.0.1"])));
        assert_eq!(hosts(&mut service, None, start), pair("10.0.0.1:80 10.0.0.3:80", "10.0.0.2"));
        // Between two lists an address may move from slice to slice.
        assert!(apply(&mut service, "DELETED", "3", &web("b", &["10.0.0.3"])));
        assert!(apply(&mut service, "ADDED", "4", &web("c", &["10.0.0.3"])));
        assert_eq!(hosts(&mut service, None, start), pair("10.0.0.1:80 10.0.0.3:80", "10.0.0.2"));
        assert!(apply(&mut service, "MODIFIED", "5", &web("c", &["10.0.0.2"])));
        assert_eq!(hosts(&mut service, None, start), pair("10.0.0.1:80 10.0.0.2:80", "10.0.0.3"));
        assert!(!apply(&mut service, "BOOKMARK", "9", &web("", &[])));
        assert_eq!(service.version(), "9");
        let later = start + STATED_TIME;
        assert_eq!(hosts(&mut service, None, later), pair("10.0.0.1:80 10.0.0.2:80", ""));
    }

    #[test]
    fn another_pod_at_the_same_address_states_that_the_first_is_gone() {
        let now = Instant::now();
        let mut service = service(&[web("a", &["10.0.0.1"])]);
        assert_eq!(hosts(&mut service, None, now), pair("10.0.0.1:80", ""));
        let other = web("a", &["10.0.0.1"]).replace("u10.0.0.1", "another");
        service.apply(event("MODIFIED", "2", &other).as_bytes()).expect("an event");
        assert_eq!(hosts(&mut service, None, now), pair("10.0.0.1:80", "10.0.0.1"));
        let list = service.snapshot(None, now).expect("a list");
        assert_eq!(list.departures.len(), 1);
    }

    #[test]
    fn a_renamed_port_states_nothing() {
        let now = Instant::now();
        let port = KubernetesPort::Name("http".to_owned());
        let mut service = service(&[web("a", &["10.0.0.1"]), web("b", &["10.0.0.2"])]);
        assert_eq!(hosts(&mut service, Some(&port), now), pair("10.0.0.1:80 10.0.0.2:80", ""));
        let renamed = slice("b", &[("web", 80)], &["10.0.0.2"]);
        service.apply(event("MODIFIED", "2", &renamed).as_bytes()).expect("an event");
        assert_eq!(hosts(&mut service, Some(&port), now), pair("10.0.0.1:80", ""));
        let list = service.snapshot(Some(&port), now).expect("a list");
        assert_eq!((list.left_out_count, list.left_out.len()), (1, 1));
    }
}
