//! Looking a name up: at the name servers of `server=`, or by the system's rules (`/etc/hosts`, and the name
//! servers and search domains of `resolv.conf`, both read each time, on another thread). The targets of services are looked
//! up at the same name servers; by the system's rules they stay names, which are followed by these rules later.
//!
//! The questions are asked by hickory, whose `Resolver` is not used: it takes the target of a service for an
//! alias, so that services behind an alias are denied; it takes a failure of one family for its absence; and
//! it forgets a failure in one search domain when the next one denies.

use super::answers::Answer;
use super::pool::{Server, find_servers, pools, system_servers, unreadable};
use super::records::{Kind, LocatedAnswer, Question};
use super::targets::TargetAddresses;
use crate::fault::{Defect, FaultKind};
use crate::list::Objection;
use hickory_resolver::Hosts;
use hickory_resolver::config::{ResolverConfig, ResolverOpts};
use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::read_system_conf;
use std::time::Duration;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use weir_plan::http::short;
use weir_plan::{DnsRecords, DnsSource};

/// How long a look-up may take, with all servers and search domains.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(15);

/// Looks up the name of a source.
pub(super) struct Resolver {
    source: DnsSource,
    /// Which of the servers is asked first: the one that answered last, or the next after one that did not.
    first: usize,
    /// The reading of the system's files that has not ended: there is one at a time, however slow it is.
    reading: Option<JoinHandle<SystemFiles>>,
    /// What is known of the targets of services, where they are looked up here.
    targets: TargetAddresses,
}

/// The result of a look-up.
pub(super) struct LookUpResult {
    /// The answers to the questions of the source, always in the same order.
    pub(super) answers: Vec<Answer>,
    /// What is wrong with targets of services.
    pub(super) objections: Vec<Objection>,
}

/// The files by which the system looks names up.
struct SystemFiles {
    /// `/etc/hosts`, if there is one.
    hosts: Option<Hosts>,
    /// `resolv.conf`.
    settings: Result<(ResolverConfig, ResolverOpts), Defect>,
}

impl SystemFiles {
    /// Reads both, however long the file system takes.
    fn read() -> SystemFiles {
        let settings = read_system_conf().map_err(|e| unreadable(&e));
        SystemFiles { hosts: Hosts::from_system().ok(), settings }
    }
}

impl Resolver {
    pub(super) fn new(source: DnsSource) -> Resolver {
        Resolver { source, first: 0, reading: None, targets: TargetAddresses::default() }
    }

    /// Asks the questions of the source.
    pub(super) async fn look_up(&mut self) -> LookUpResult {
        let kinds = match self.source.records {
            DnsRecords::Addresses { port } => vec![Kind::V4(port), Kind::V6(port)],
            DnsRecords::Services if self.source.servers.is_empty() => vec![Kind::Services],
            DnsRecords::Services => vec![Kind::LocatedServices],
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
        result.unwrap_or_else(|defect| LookUpResult::new(vec![Answer::Failed(defect); kinds.len()]))
    }

    /// Asks for each name that may be meant, until one has records. A failure for one of them is remembered:
    /// that the others do not exist does not say that there are none.
    async fn try_names(&mut self, kinds: &[Kind]) -> Result<LookUpResult, Defect> {
        let name = Name::from_str_relaxed(&self.source.name).map_err(|_| {
            let problem = format!("\"{}\" is no name that DNS can have", short(&self.source.name));
            Defect::new(FaultKind::Settings, problem, "write it as \"api.example.com\"")
        })?;
        let (servers, names) = if self.source.servers.is_empty() {
            let files = self.read_system().await?;
            let hosts = files.hosts.as_ref();
            if let Some(answers) = hosts.and_then(|hosts| in_hosts_file(hosts, &absolute(&name), kinds)) {
                return Ok(LookUpResult::new(answers));
            }
            let (config, options) = files.settings?;
            let names = candidates(&name, &config, options.ndots);
            (pools(&system_servers(&config), options)?, names)
        } else {
            let servers = find_servers(&self.source.servers).await?;
            (pools(&servers, ResolverOpts::default())?, vec![absolute(&name)])
        };
        let mut result = Vec::new();
        for name in &names {
            let answers = self.ask_in_turn(&servers, name, kinds).await;
            if answers.iter().any(LocatedAnswer::is_found) {
                return Ok(self.locate(answers, servers, kinds).await);
            }
            if !result.iter().any(LocatedAnswer::is_failed) {
                result = answers;
            }
        }
        Ok(LookUpResult::new(result.into_iter().map(|one| one.answer).collect()))
    }

    /// Puts addresses in place of the targets of located services. The server that answered for the services is asked first.
    async fn locate(
        &mut self,
        answers: Vec<LocatedAnswer>,
        mut servers: Vec<Server>,
        kinds: &[Kind],
    ) -> LookUpResult {
        if !kinds.contains(&Kind::LocatedServices) {
            return LookUpResult::new(answers.into_iter().map(|one| one.answer).collect());
        }
        let first = self.first.checked_rem(servers.len()).unwrap_or_default();
        servers.rotate_left(first);
        let mut result = LookUpResult::new(Vec::new());
        for answer in answers {
            let (answer, objections) = self.targets.locate(answer, &servers).await;
            result.answers.push(answer);
            result.objections.extend(objections);
        }
        result
    }

    /// Reads the system's files on a thread that may wait. Where a look-up ends meanwhile, the next one waits for
    /// the same reading.
    async fn read_system(&mut self) -> Result<SystemFiles, Defect> {
        let reading = self.reading.get_or_insert_with(|| spawn_blocking(SystemFiles::read));
        let result = reading.await;
        self.reading = None;
        result.map_err(|_| {
            let problem = "the reading of the system's name servers broke off";
            Defect::new(FaultKind::Unexpected, problem, "report this to weir")
        })
    }

    /// Asks one server after the other, until one gives records or says that there are none.
    async fn ask_in_turn(&mut self, servers: &[Server], name: &Name, kinds: &[Kind]) -> Vec<LocatedAnswer> {
        let first = self.first;
        let mut answers = Vec::new();
        for i in 0..servers.len() {
            let index = (first + i) % servers.len();
            let Some(server) = servers.get(index) else { break };
            // The limit of the look-up may end it here, too: the next one goes on with the other servers.
            self.first = (index + 1) % servers.len();
            answers = server.ask(name, kinds).await;
            if answers.iter().any(LocatedAnswer::is_found) || !answers.iter().any(LocatedAnswer::is_failed) {
                self.first = index;
                break;
            }
        }
        answers
    }
}

impl LookUpResult {
    /// The result that has everything of these answers.
    fn new(answers: Vec<Answer>) -> LookUpResult {
        LookUpResult { answers, objections: Vec::new() }
    }
}

/// The name itself, without search domains.
pub(super) fn absolute(name: &Name) -> Name {
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
fn in_hosts_file(hosts: &Hosts, name: &Name, kinds: &[Kind]) -> Option<Vec<Answer>> {
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
    use crate::registry::dns::server::{FakeServer, Reply, address};
    use std::future::poll_fn;
    use std::net::SocketAddr;
    use std::pin::pin;
    use std::task::Poll;
    use tokio::sync::mpsc::unbounded_channel;

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

    #[test]
    fn a_look_up_goes_on_after_the_servers_that_the_one_before_asked_in_vain() {
        let (out, mut questions) = unbounded_channel();
        let refusing = FakeServer::start(|_| Reply::Code(5));
        let silent = FakeServer::start(move |_| {
            let _ = out.send(());
            loop {
                std::thread::park();
            }
        });
        let knowing = FakeServer::start(|name| Reply::Records(vec![address(name, "10.0.0.1")]));
        let addresses = [&refusing, &silent, &knowing].map(|fake| fake.at.parse::<SocketAddr>());
        let addresses = addresses.map(|at| at.expect("an address"));
        let records = DnsRecords::Addresses { port: 80 };
        let source = DnsSource { name: "api.test".to_owned(), records, hold_ns: 0, servers: Vec::new() };
        let name = Name::from_str_relaxed("api.test.").expect("a name");
        let mut resolver = Resolver::new(source);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let servers = pools(&addresses, ResolverOpts::default()).expect("servers");
            let kinds = [Kind::V4(80)];
            {
                let mut asking = pin!(resolver.ask_in_turn(&servers, &name, &kinds));
                // It ends while the second server is asked, as by its limit.
                let begun = poll_fn(|cx| match asking.as_mut().poll(cx) {
                    Poll::Ready(_) => Poll::Ready(None),
                    Poll::Pending => questions.poll_recv(cx),
                });
                assert_eq!(begun.await, Some(()), "the second server is asked");
            }
            assert_eq!(resolver.first, 2);
            let answers = resolver.ask_in_turn(&servers, &name, &kinds).await;
            assert!(answers.iter().all(LocatedAnswer::is_found), "{answers:?}");
            assert_eq!(resolver.first, 2);
        });
    }
}
