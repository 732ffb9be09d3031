//! The listeners of a file: bound when it is served first; of a file that is read again those stay whose address does
//! (`docs/spec/operating.md#listeners-over-a-reload`), and new ones are bound before anything else is changed.

use super::admission::Admission;
use super::adopt::Conf;
use super::certificates::Certificates;
use super::clients::{Clients, most_clients};
use super::start::{Error, Listening, Options};
use crate::exchange::NodeId;
use crate::graph::identity::inside;
use crate::log::AccessLog;
use crate::transport::bind::{self, Bound};
use crate::transport::listener::OwnProcessTrust;
use crate::transport::listening::LoopSocket;
use crate::transport::own::{Inner, InnerAddress, reached_at};
use crate::transport::socket_file::SocketFiles;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use weir_http1::Networks;
use weir_plan::{Http, Listen, LogFormat, Point, Spec, levels, with_inner};

/// The logs that are open, each once.
#[derive(Clone, Default)]
pub(super) struct Logs(Vec<(String, AccessLog)>);

impl Logs {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &AccessLog> {
        self.0.iter().map(|(_, log)| log)
    }

    /// The access log of a listener, and where histories of its requests go.
    fn of(&mut self, http: &Http) -> Result<(Option<AccessLog>, Option<AccessLog>), Error> {
        let log = http.access_log.as_deref().map(|to| self.open(to, http.log_format)).transpose()?;
        let traces = http.traces().map(|to| self.open(to, http.log_format)).transpose()?;
        Ok((log, traces))
    }

    fn open(&mut self, to: &str, format: LogFormat) -> Result<AccessLog, Error> {
        if let Some((_, log)) = self.0.iter().find(|(open, _)| open == to) {
            return Ok(log.clone().with_format(format));
        }
        let log = AccessLog::open(to, format).map_err(|e| Error::Log(to.to_owned(), e))?;
        self.0.push((to.to_owned(), log.clone()));
        Ok(log)
    }
}

/// What is open before anything runs.
pub(super) struct Opened {
    /// First, as the fields are dropped in this order: removed again while the sockets are open, should anything fail.
    pub files: Arc<SocketFiles>,
    pub listening: Vec<Listening>,
    /// By number.
    pub confs: BTreeMap<usize, Conf>,
    /// By loop: the listener's number and the socket.
    pub sockets: Vec<Vec<(usize, LoopSocket)>>,
    pub logs: Logs,
    /// Where those are reached that stand behind others.
    pub inner: Inner,
    /// The least number that no listener has had.
    pub next: usize,
    /// What only a new process can change, in words.
    pub waits: Vec<String>,
}

/// What is open already.
pub(super) struct Before<'a> {
    pub confs: &'a BTreeMap<usize, Conf>,
    pub inner: &'a Inner,
    pub logs: &'a Logs,
    pub next: usize,
    /// Event loops of the process.
    pub loops: usize,
}

/// Binds the listeners that are not there yet and opens their logs.
pub(super) fn open(
    point: &Point,
    (nodes, certificates): (&[NodeId], &Certificates),
    options: &Options,
    before: Option<&Before<'_>>,
) -> Result<Opened, Error> {
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
    let default = options.loops.unwrap_or_else(cores);
    let listens: Vec<(String, &Listen, NodeId)> = nodes.iter().filter_map(|id| listen(point, *id)).collect();
    let count = |l: &Listen| l.loops.map_or(default, |n| n as usize).max(1);
    let loops =
        before.map_or_else(|| listens.iter().map(|(_, l, _)| count(l)).max().unwrap_or(1), |b| b.loops);
    // Descriptors are the process's: listeners without a limit of their own share them.
    let mut common = None;
    if let Some(before) = before {
        common = before.confs.values().find_map(|conf| conf.admission.common.clone());
    }
    let common = common.unwrap_or_else(|| Clients::new(most_clients(), None, 0));
    let mut opened = Opened {
        files: Arc::default(),
        listening: Vec::new(),
        confs: BTreeMap::new(),
        sockets: (0..loops).map(|_| Vec::new()).collect(),
        logs: before.map(|before| before.logs.clone()).unwrap_or_default(),
        inner: Inner {
            own: before.map(|b| b.inner.own.clone()).unwrap_or_default(),
            tls: certificates.to_inner(),
            ..Inner::default()
        },
        next: before.map_or(0, |before| before.next),
        waits: Vec::new(),
    };
    let levels = levels(point);
    for (name, listen, node) in listens {
        let level = levels.get(&node).copied().unwrap_or(0);
        let wanted = count(listen);
        let kept = before.and_then(|before| kept(before, &opened, listen));
        let (number, port, reached, clients, has) = match kept {
            Some((number, conf)) => {
                if conf.loops != wanted {
                    opened.waits.push(format!("listener {name}: {} loops, not {wanted}", conf.loops));
                }
                (number, conf.port, conf.reached.clone(), Some(conf.admission.clients.clone()), conf.loops)
            }
            None => {
                let has = wanted.min(loops);
                if has != wanted {
                    opened.waits.push(format!("listener {name}: {has} loops, not {wanted}"));
                }
                let number = opened.next;
                opened.next += 1;
                let (port, reached) = bind(&mut opened, (&name, listen), (number, level, has), options)?;
                (number, port, reached, None, has)
            }
        };
        if let Some(reached) = reached.clone().filter(|_| level > 0) {
            opened.inner.at.insert(node, reached);
        }
        let own = listen.http.max_clients.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let clients = clients.unwrap_or_else(|| Clients::new(usize::MAX, None, has));
        let (log, traces) = opened.logs.of(&listen.http)?;
        let conf = Conf {
            name,
            tls: certificates.of(node),
            listen: listen.clone(),
            node,
            port,
            level,
            loops: has,
            reached,
            inner: None,
            admission: Admission { clients, common: own.is_none().then(|| common.clone()) },
            log,
            traces,
        };
        opened.confs.insert(number, conf);
    }
    believe(point, &mut opened);
    Ok(opened)
}

/// The limits of clients are those of these listeners from now on.
pub(super) fn limit(confs: &BTreeMap<usize, Conf>) {
    for conf in confs.values() {
        let http = &conf.listen.http;
        let own = http.max_clients.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        conf.admission.clients.limit_to(own.unwrap_or(usize::MAX), http.max_clients_per_address);
    }
}

/// The listener that is there already under this address: the first that no other has taken.
fn kept<'a>(before: &Before<'a>, opened: &Opened, listen: &Listen) -> Option<(usize, &'a Conf)> {
    let mut all = before.confs.iter();
    all.find(|(number, conf)| conf.listen.addr == listen.addr && !opened.confs.contains_key(number))
        .map(|(number, conf)| (*number, conf))
}

/// Binds a listener: its port, and where it is reached.
fn bind(
    opened: &mut Opened,
    (name, listen): (&str, &Listen),
    (number, level, loops): (usize, u32, usize),
    options: &Options,
) -> Result<(Option<u16>, Option<InnerAddress>), Error> {
    let given = options.inherited.as_ref().map(|all| all.take(&listen.addr)).unwrap_or_default();
    if !given.is_empty() {
        return take(opened, (name, listen), (number, level), given);
    }
    // In a verification ports are free ones, and each loop has one of its own, so that a request can meet the one that it meets in
    // the simulation.
    let at = if options.paired.is_some() { ANY_PORT } else { &listen.addr };
    let at_once = if options.paired.is_some() && level == 0 { 1 } else { loops };
    let (mut port, mut there) = (None, None);
    for first in (0..loops).step_by(at_once) {
        let bound = bind::bind(at, at_once, level, &opened.files).map_err(Error::Listen)?;
        let addr = match &bound {
            Bound::Tcp(_, address) => address.to_string(),
            Bound::Unix(..) => listen.addr.clone(),
        };
        if let Bound::Tcp(_, address) = &bound {
            port = Some(address.port());
        }
        there = Some(reached(&bound, &listen.addr));
        for (at, socket) in (first..).zip(bound.sockets()) {
            opened.sockets[at].push((number, socket));
        }
        opened.listening.push(Listening { name: name.to_owned(), addr, level });
    }
    Ok((port, there))
}

/// Sockets that a listener was given: each loop has one at least, and all of them are accepted from, whatever their number.
fn take(
    opened: &mut Opened,
    (name, listen): (&str, &Listen),
    (number, level): (usize, u32),
    given: Vec<OwnedFd>,
) -> Result<(Option<u16>, Option<InnerAddress>), Error> {
    let loops = opened.sockets.len().max(1);
    let mut more = Vec::new();
    for at in given.len()..loops {
        more.push(given[at % given.len()].try_clone()?);
    }
    let bound = bind::given(&listen.addr, given.into_iter().chain(more).collect(), level, &opened.files)
        .map_err(|e| Error::Listen(bind::CannotListen { addr: listen.addr.clone(), why: e.to_string() }))?;
    let (port, addr) = match &bound {
        Bound::Tcp(_, address) => (Some(address.port()), address.to_string()),
        Bound::Unix(..) => (None, listen.addr.clone()),
    };
    let there = Some(reached(&bound, &listen.addr));
    for (at, socket) in (0..).zip(bound.sockets()) {
        opened.sockets[at % loops].push((number, socket));
    }
    opened.listening.push(Listening { name: name.to_owned(), addr, level });
    Ok((port, there))
}

/// Listeners behind others believe their own process, as far as those before them believe their peers.
fn believe(point: &Point, opened: &mut Opened) {
    let believes = opened.confs.values().filter(|conf| !conf.listen.http.trusted.is_empty());
    let believes: Vec<_> =
        believes.map(|conf| (conf.listen.http.trusted.clone(), with_inner(point, &[conf.node]))).collect();
    for conf in opened.confs.values_mut().filter(|conf| conf.level > 0) {
        let before = believes.iter().filter(|(_, behind)| behind.contains(&conf.node));
        let mut trusted: Vec<String> = before.flat_map(|(trusted, _)| trusted.iter().cloned()).collect();
        // What its own process is taken for.
        trusted.push(Networks::UNIX.to_owned());
        let trusted = Networks::parse(&trusted).unwrap_or_default();
        conf.inner = Some(OwnProcessTrust { own: opened.inner.own.clone(), trusted });
    }
}

fn reached(bound: &Bound, addr: &str) -> InnerAddress {
    match bound {
        Bound::Tcp(_, address) => InnerAddress::Tcp(reached_at(*address)),
        Bound::Unix(..) => InnerAddress::Unix(addr.strip_prefix("unix:").unwrap_or(addr).into()),
    }
}

/// On loopback, whichever is free.
const ANY_PORT: &str = "127.0.0.1:0";

/// A listener of the plan: its name, its arguments, its node.
fn listen(point: &Point, id: NodeId) -> Option<(String, &Listen, NodeId)> {
    let node = &point.nodes[id as usize];
    match &point.specs[node.spec as usize] {
        Spec::Listen(listen) if inside(point, id) != id => {
            Some((node.name.clone().unwrap_or_default(), listen, id))
        }
        _ => None,
    }
}
