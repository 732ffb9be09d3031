//! The name servers that are asked, and what an answer of one of them means.
//!
//! An answer that is cut off is asked for again by TCP.

use super::answers::Answer;
use super::records::{Kind, LocatedAnswer, MOST_ALIASES, Question};
use crate::fault::{Defect, FaultKind};
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::xfer::{DnsHandle, FirstAnswer};
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{DnsRequestOptions, DnsResponse, ResponseCode};
use hickory_resolver::proto::rr::Name;
use hickory_resolver::{NameServerPool, PoolContext, TlsConfig};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::task::JoinSet;
use tokio::time::timeout;
use weir_net::io::system::words;
use weir_plan::address::Address;
use weir_plan::http::short;
use weir_plan::source_ranges::MOST_NAME_SERVERS;

/// The least and the longest time that one server has for an answer, by each of UDP and TCP. One that another follows has the
/// least.
const ANSWER_WITHIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3));

/// How long the system may look for the address of a name server.
const SERVER_WITHIN: Duration = Duration::from_secs(3);

/// A name server.
#[derive(Clone)]
pub(super) struct Server {
    at: SocketAddr,
    pool: NameServerPool<TokioRuntimeProvider>,
}

impl Server {
    /// Asks all questions at once.
    pub(super) async fn ask(&self, name: &Name, kinds: &[Kind]) -> Vec<LocatedAnswer> {
        let lost = Defect::new(FaultKind::Unexpected, "the look-up broke off", "report this to weir");
        let mut answers = vec![LocatedAnswer::from(Answer::Failed(lost)); kinds.len()];
        // They end with this future.
        let mut questions = JoinSet::new();
        for (i, kind) in kinds.iter().enumerate() {
            let (server, question) = (self.clone(), Question::new(name.clone(), *kind));
            questions.spawn(async move { (i, server.pursue(question).await) });
        }
        while let Some(result) = questions.join_next().await {
            if let Ok((i, answer)) = result
                && let Some(place) = answers.get_mut(i)
            {
                *place = answer;
            }
        }
        answers
    }

    /// Asks until no alias leads on.
    pub(super) async fn pursue(&self, mut question: Question) -> LocatedAnswer {
        for _ in 0..MOST_ALIASES {
            let response = match self.send(&question).await {
                Ok(response) => response,
                Err(answer) => return answer.into(),
            };
            match question.read(&response.answers) {
                Some(answer) => return question.locate(answer, &response.additionals),
                None if response.response_code == ResponseCode::NXDomain => return Answer::Denied.into(),
                None => {}
            }
        }
        let problem = format!("the name server {} gives no end of aliases: {question}", self.at);
        Answer::Failed(Defect::new(FaultKind::Unexpected, problem, "see to the records of the name")).into()
    }

    /// Asks a question, by EDNS so that more addresses have room in an answer; a server that does not know it
    /// is asked without.
    async fn send(&self, question: &Question) -> Result<DnsResponse, Answer> {
        // By default with EDNS.
        let mut options = DnsRequestOptions::default();
        let mut result = self.pool.lookup(question.query(), options).first_answer().await;
        let knows_edns = match &result {
            Err(NetError::Dns(DnsError::ResponseCode(code))) => {
                !matches!(code, ResponseCode::FormErr | ResponseCode::NotImp)
            }
            _ => true,
        };
        if !knows_edns {
            options.use_edns = false;
            result = self.pool.lookup(question.query(), options).first_answer().await;
        }
        let response = result.map_err(|e| self.failure(question, &e))?;
        let code = response.response_code;
        match code {
            ResponseCode::NoError | ResponseCode::NXDomain => Ok(response),
            _ => Err(self.refusal(question, code)),
        }
    }

    /// What an answer without records means, or none.
    fn failure(&self, question: &Question, e: &NetError) -> Answer {
        match e {
            // A server that is asked for another's name neither has it nor denies it.
            NetError::Dns(DnsError::NoRecordsFound(none))
                if none.response_code == ResponseCode::NoError && none.soa.is_none() && none.ns.is_some() =>
            {
                let problem = format!("the name server {} refers to others for {question}", self.at);
                let remedy = "name a server that looks names up for its clients";
                Answer::Failed(Defect::new(FaultKind::Unexpected, problem, remedy))
            }
            NetError::Dns(DnsError::NoRecordsFound(_)) => Answer::Denied,
            NetError::Dns(DnsError::ResponseCode(code)) => self.refusal(question, *code),
            e => {
                let why = explain(e);
                let problem = format!("the name server {} does not answer for {question}: {why}", self.at);
                let remedy = "see to the name server and to the way there";
                Answer::Failed(Defect::new(FaultKind::Unreachable, problem, remedy))
            }
        }
    }

    fn refusal(&self, question: &Question, code: ResponseCode) -> Answer {
        let problem = format!("the name server {} answers for {question}: {code}", self.at);
        Answer::Failed(Defect::new(FaultKind::Unexpected, problem, "see to the name server"))
    }
}

/// The servers at these addresses, [`MOST_NAME_SERVERS`] at most, with the system's time for an answer within
/// bounds.
///
/// # Errors
/// There is none.
pub(super) fn pools(servers: &[SocketAddr], mut options: ResolverOpts) -> Result<Vec<Server>, Defect> {
    let (least, most) = ANSWER_WITHIN;
    let longest = options.timeout.clamp(least, most);
    let mut context = |within: Duration| {
        options.timeout = within;
        let tls = TlsConfig::new().map_err(|e| unreadable(&e))?;
        Ok::<_, Defect>(Arc::new(PoolContext::new(options.clone(), tls)))
    };
    let (brief, patient) = (context(least)?, context(longest)?);
    let count = servers.len().min(MOST_NAME_SERVERS);
    let server = |(i, at): (usize, &SocketAddr)| {
        let context = if i + 1 < count { &brief } else { &patient };
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
            connection.port = at.port();
            connection
        });
        let config = NameServerConfig::new(at.ip(), true, connections.to_vec());
        let runtime = TokioRuntimeProvider::default();
        Server { at: *at, pool: NameServerPool::from_config([config], context.clone(), runtime) }
    };
    let pools: Vec<Server> = servers.iter().take(count).enumerate().map(server).collect();
    if pools.is_empty() {
        let problem = "there is no name server to ask";
        return Err(Defect::new(FaultKind::Settings, problem, "name one in /etc/resolv.conf or by `server`"));
    }
    Ok(pools)
}

/// The name servers of `resolv.conf`.
pub(super) fn system_servers(config: &ResolverConfig) -> Vec<SocketAddr> {
    let port =
        |server: &NameServerConfig| server.connections.first().map_or(53, |connection| connection.port);
    config.name_servers().iter().map(|server| SocketAddr::new(server.ip, port(server))).collect()
}

/// The addresses of the name servers of `server=`; those without one are passed over while others remain.
///
/// # Errors
/// None has an address.
pub(super) async fn find_servers(servers: &[String]) -> Result<Vec<SocketAddr>, Defect> {
    let mut found = Vec::new();
    let mut defect = None;
    for server in servers {
        let problem = match Address::parse(server) {
            Some(Address::Ip(at)) => {
                found.push(at);
                continue;
            }
            Some(Address::Name(host, port)) => {
                match timeout(SERVER_WITHIN, lookup_host((host.as_str(), port))).await {
                    Ok(Ok(addresses)) => {
                        found.extend(addresses);
                        continue;
                    }
                    Ok(Err(e)) => words(&e),
                    Err(_) => format!("no answer within {}s", SERVER_WITHIN.as_secs()),
                }
            }
            _ => "it is not \"host:port\"".to_owned(),
        };
        let problem = format!("the name server \"{}\" cannot be found: {problem}", short(server));
        defect = Some(Defect::new(FaultKind::Unreachable, problem, "name it by its IP address"));
    }
    match defect {
        Some(defect) if found.is_empty() => Err(defect),
        _ => Ok(found),
    }
}

/// Why there is no answer.
fn explain(e: &NetError) -> String {
    let why = match e {
        NetError::Io(e) => return words(e),
        NetError::Timeout => "nothing came in time",
        NetError::Truncated => "what comes is cut off, by TCP too",
        NetError::Busy | NetError::NoConnections => "there is no connection to it",
        NetError::Proto(_) | NetError::ForeignClassRecord { .. } | NetError::QueryCaseMismatch => {
            "what it sends is no answer to that question"
        }
        _ => "the question broke off",
    };
    why.to_owned()
}

/// The system's settings cannot be read.
pub(super) fn unreadable(e: &NetError) -> Defect {
    let why = match e {
        NetError::Io(e) => format!(": {}", words(e)),
        _ => String::new(),
    };
    let problem = format!("the system's name servers are not known{why}");
    Defect::new(FaultKind::Settings, problem, "see to /etc/resolv.conf, or name servers by `server`")
}
