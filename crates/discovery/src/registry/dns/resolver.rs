//! Looking a name up: at the name servers of `server=`, or by the system's rules (`/etc/hosts`, and the name
//! servers and search domains of `resolv.conf`, both read each time).
//!
//! The questions are asked by hickory, whose `Resolver` is not used: it takes the target of a service for an
//! alias, so that services behind an alias are denied; it takes a failure of one family for its absence; and
//! it forgets a failure in one search domain when the next one denies.

use super::answers::Answer;
use super::pool::{Server, find_servers, pools, system_servers, unreadable};
use super::records::{Kind, Question};
use crate::fault::{Defect, FaultKind};
use hickory_resolver::Hosts;
use hickory_resolver::config::{ResolverConfig, ResolverOpts};
use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::read_system_conf;
use std::time::Duration;
use tokio::time::timeout;
use weir_plan::http::short;
use weir_plan::{DnsRecords, DnsSource};

/// How long a look-up may take, with all servers and search domains.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(15);

/// Looks up the name of a source.
pub(super) struct Resolver {
    source: DnsSource,
    /// Which of the servers answered last: it is asked first.
    first: usize,
}

impl Resolver {
    pub(super) fn new(source: DnsSource) -> Resolver {
        Resolver { source, first: 0 }
    }

    /// The answers to the questions of the source, always in the same order.
    pub(super) async fn look_up(&mut self) -> Vec<Answer> {
        let kinds = match self.source.records {
            DnsRecords::Addresses { port } => vec![Kind::V4(port), Kind::V6(port)],
            DnsRecords::Services => vec![Kind::Services],
        };
        let result = match timeout(LOOK_UP_WITHIN, self.try_names(&kinds)).await {
            Ok(result) => result,
            Err(_) => {
                let problem = format!(
                    "{} was not looked up within {}s",
                    short(&self.source.name),
                    LOOK_UP_WITHIN.as_secs()
                );
                Err(Defect::new(FaultKind::Unreachable, problem, "see to the name servers"))
            }
        };
        result.unwrap_or_else(|defect| vec![Answer::Failed(defect); kinds.len()])
    }

    /// Asks for each name that may be meant, until one has records. A failure for one of them is remembered:
    /// that the others do not exist does not say that there are none.
    async fn try_names(&mut self, kinds: &[Kind]) -> Result<Vec<Answer>, Defect> {
        let name = Name::from_str_relaxed(&self.source.name).map_err(|e| {
            let problem = format!("\"{}\" is no name: {e}", short(&self.source.name));
            Defect::new(FaultKind::Settings, problem, "write it as \"api.example.com\"")
        })?;
        let (servers, names) = if self.source.servers.is_empty() {
            if let Some(answers) = in_hosts_file(&absolute(&name), kinds) {
                return Ok(answers);
            }
            let (config, options) = read_system_conf().map_err(|e| unreadable(&e))?;
            let names = candidates(&name, &config, options.ndots);
            (pools(&system_servers(&config), options)?, names)
        } else {
            let servers = find_servers(&self.source.servers).await?;
            (pools(&servers, ResolverOpts::default())?, vec![absolute(&name)])
        };
        let mut result = Vec::new();
        for name in &names {
            let answers = self.ask_in_turn(&servers, name, kinds).await;
            if answers.iter().any(Answer::is_found) {
                return Ok(answers);
            }
            if !result.iter().any(Answer::is_failed) {
                result = answers;
            }
        }
        Ok(result)
    }

    /// Asks one server after the other, until one gives records or says that there are none.
    async fn ask_in_turn(&mut self, servers: &[Server], name: &Name, kinds: &[Kind]) -> Vec<Answer> {
        let first = self.first;
        let mut answers = Vec::new();
        for i in 0..servers.len() {
            let index = (first + i) % servers.len();
            let Some(server) = servers.get(index) else { break };
            answers = server.ask(name, kinds).await;
            if answers.iter().any(Answer::is_found) || !answers.iter().any(Answer::is_failed) {
                self.first = index;
                break;
            }
        }
        answers
    }
}

/// The name itself, without search domains.
fn absolute(name: &Name) -> Name {
    let mut name = name.clone();
    name.set_fqdn(true);
    name
}

/// The names that may be meant, as the system tries them: with fewer dots than `ndots`, a name in each search
/// domain comes before the name itself, otherwise after it.
fn candidates(name: &Name, config: &ResolverConfig, ndots: usize) -> Vec<Name> {
    if name.is_fqdn() {
        return vec![name.clone()];
    }
    // The host's own domain counts only without a list.
    let domains = match config.search() {
        [] => config.domain().into_iter().collect::<Vec<_>>(),
        search => search.iter().collect(),
    };
    let mut names: Vec<Name> =
        domains.into_iter().filter_map(|domain| name.clone().append_domain(domain).ok()).collect();
    let dots = usize::from(name.num_labels()).saturating_sub(1);
    let position = if dots >= ndots { 0 } else { names.len() };
    names.insert(position, absolute(name));
    names
}

/// The addresses that `/etc/hosts` has for a name. A family that it does not have there has none.
fn in_hosts_file(name: &Name, kinds: &[Kind]) -> Option<Vec<Answer>> {
    let hosts = Hosts::from_system().ok()?;
    let answer = |kind: &Kind| {
        let mut question = Question::new(name.clone(), *kind);
        let lookup = hosts.lookup_static_host(&question.query());
        lookup.and_then(|lookup| question.read(lookup.answers())).unwrap_or(Answer::Denied)
    };
    let answers: Vec<Answer> = kinds.iter().map(answer).collect();
    answers.iter().any(Answer::is_found).then_some(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(name: &str, search: &[&str], domain: Option<&str>, ndots: usize) -> String {
        let read = |text: &str| Name::from_str_relaxed(text).expect("a name");
        let search = search.iter().copied().map(read).collect();
        let config = ResolverConfig::from_parts(domain.map(read), search, Vec::new());
        let names = candidates(&read(name), &config, ndots);
        names.iter().map(Name::to_ascii).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn search_domains_are_tried_as_the_system_tries_them() {
        let search = ["ns.svc.test", "test"];
        assert_eq!(tried("api.", &search, None, 5), "api.");
        assert_eq!(tried("api", &search, None, 1), "api.ns.svc.test. api.test. api.");
        assert_eq!(
            tried("api.ns", &search, Some("host.test"), 1),
            "api.ns. api.ns.ns.svc.test. api.ns.test."
        );
        assert_eq!(
            tried("_http._tcp.api", &[], Some("host.test"), 5),
            "_http._tcp.api.host.test. _http._tcp.api."
        );
        assert_eq!(tried("api", &[], None, 1), "api.");
    }
}
