//! The listeners of a file: bound when it is served first; on a reload those with the same address stay
//! (`docs/spec/operating.md#listeners-over-a-reload`), and new ones are bound before anything else is changed.

use super::options::{Error, Listening, Options};
use crate::exchange::NodeId;
use crate::graph::identity::inside;
use crate::log::AccessLog;
use crate::threads::admission::Admission;
use crate::threads::certificates::Certificates;
use crate::threads::clients::{Clients, most_clients};
use crate::threads::generation::Conf;
use crate::transport::bind::{self, Bound, CannotListen};
use crate::transport::holder::Holder;
use crate::transport::inherit::GivenSockets;
use crate::transport::inner::{Inner, InnerAddress, reached_at};
use crate::transport::listener::OwnProcessTrust;
use crate::transport::listening::LoopSocket;
use crate::transport::socket_file::SocketFiles;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_http1::Networks;
use weir_plan::loops::leads_to_subsets;
use weir_plan::{Http, Listen, LogFormat, Point, Spec, levels, with_inner};

/// The open logs, each once.
#[derive(Clone, Default)]
pub(crate) struct Logs(Vec<(String, AccessLog)>);

impl Logs {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &AccessLog> {
        self.0.iter().map(|(_, log)| log)
    }

    /// The access log of a listener, and the log of its requests' histories.
    fn open_both(&mut self, http: &Http) -> Result<(Option<AccessLog>, Option<AccessLog>), Error> {
        let log = http.access_log.as_deref().map(|to| self.open(to, http.log_format)).transpose()?;
        let log = log.map(|log| log.with_fields(&http.log_fields));
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

/// Everything that is opened before anything runs.
pub(crate) struct BoundListeners {
    /// First, since fields are dropped in this order: removed again while the sockets are open, should anything fail.
    pub files: Arc<SocketFiles>,
    pub listening: Vec<Listening>,
    /// By number.
    pub confs: BTreeMap<usize, Conf>,
    /// By loop: the listener's number and the socket.
    pub sockets: Vec<Vec<(usize, LoopSocket)>>,
    pub logs: Logs,
    /// Where listeners behind others are reached.
    pub inner: Inner,
    /// The least number that no listener has had.
    pub next: usize,
    /// Changes that only a new process can make, in words.
    pub waits: Vec<String>,
}

/// Everything that is open already.
pub(crate) struct PreviousListeners<'a> {
    pub confs: &'a BTreeMap<usize, Conf>,
    pub inner: &'a Inner,
    pub logs: &'a Logs,
    pub next: usize,
    /// Event loops of the process.
    pub loops: usize,
}

/// The listeners of a topology, and what they show by TLS.
pub(crate) struct ListenerSet<'a> {
    pub point: &'a Point,
    pub nodes: &'a [NodeId],
    pub certificates: &'a Certificates,
}

/// A listener that is being opened.
struct NewListener<'a> {
    name: String,
    listen: &'a Listen,
    node: NodeId,
    /// The number of listeners before it.
    level: u32,
    /// Loops that are to accept there.
    loops: usize,
}

/// Where a listener accepts: kept from before, or bound now.
struct Place {
    number: usize,
    port: Option<u16>,
    reached: Option<InnerAddress>,
    loops: usize,
    clients: Clients,
}

/// The loops of the listener that has most of them.
pub(crate) fn most_loops(point: &Point, nodes: &[NodeId], options: &Options) -> usize {
    let all = nodes.iter().filter_map(|id| listen(point, *id));
    all.map(|(_, listen, _)| loops_of(listen, options.default_loops())).max().unwrap_or(1)
}

fn loops_of(listen: &Listen, default: usize) -> usize {
    listen.loops.map_or(default, |n| n as usize).max(1)
}

/// Binds the missing listeners and opens their logs.
pub(crate) fn open(
    wanted: &ListenerSet<'_>,
    options: &Options,
    before: Option<&PreviousListeners<'_>>,
) -> Result<BoundListeners, Error> {
    let ListenerSet { point, nodes, certificates } = wanted;
    let default = options.default_loops();
    let levels = levels(point);
    let listeners: Vec<NewListener<'_>> = nodes
        .iter()
        .filter_map(|id| listen(point, *id))
        .map(|(name, listen, node)| NewListener {
            name,
            listen,
            node,
            level: levels.get(&node).copied().unwrap_or(0),
            loops: loops_of(listen, default),
        })
        .collect();
    let most = listeners.iter().map(|new| new.loops).max().unwrap_or(1);
    let mut opened = BoundListeners::new(before.map_or(most, |before| before.loops), certificates, before);
    // Descriptors belong to the process: listeners without a limit of their own share them.
    let common = before.and_then(|b| b.confs.values().find_map(|conf| conf.admission.common.clone()));
    let common = common.unwrap_or_else(|| Clients::new(most_clients(), None, 0));
    for new in listeners {
        let place = opened.place(&new, options, before)?;
        if let Some(reached) = place.reached.clone().filter(|_| new.level > 0) {
            opened.inner.at.insert(new.node, reached);
        }
        let own = new.listen.http.max_clients;
        let (log, traces) = opened.logs.open_both(&new.listen.http)?;
        let conf = Conf {
            name: new.name,
            tls: certificates.server(new.node),
            listen: new.listen.clone(),
            node: new.node,
            port: place.port,
            level: new.level,
            loops: place.loops,
            reached: place.reached,
            inner: None,
            admission: Admission { clients: place.clients, common: own.is_none().then(|| common.clone()) },
            log,
            traces,
        };
        opened.confs.insert(place.number, conf);
    }
    believe(point, &mut opened);
    Ok(opened)
}

impl BoundListeners {
    /// Nothing is bound yet; what is open already continues.
    fn new(
        loops: usize,
        certificates: &Certificates,
        before: Option<&PreviousListeners<'_>>,
    ) -> BoundListeners {
        BoundListeners {
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
        }
    }

    /// Where a listener accepts: at the socket that is open already, or at one that is bound now.
    fn place(
        &mut self,
        new: &NewListener<'_>,
        options: &Options,
        before: Option<&PreviousListeners<'_>>,
    ) -> Result<Place, Error> {
        if let Some((number, conf)) = before.and_then(|before| kept(before, self, new.listen)) {
            self.note_loops(new, conf.loops);
            return Ok(Place {
                number,
                port: conf.port,
                reached: conf.reached.clone(),
                loops: conf.loops,
                clients: conf.admission.clients.clone(),
            });
        }
        let loops = new.loops.min(self.sockets.len());
        self.note_loops(new, loops);
        let number = self.next;
        self.next += 1;
        let (port, reached) = bind(self, new, number, loops, options)?;
        Ok(Place { number, port, reached, loops, clients: Clients::new(usize::MAX, None, loops) })
    }

    /// Only a new process can accept on another number of loops.
    fn note_loops(&mut self, new: &NewListener<'_>, loops: usize) {
        if loops != new.loops {
            self.waits.push(format!("listener {}: {loops} loops, not {}", new.name, new.loops));
        }
    }
}

/// Applies these listeners' limits of clients, and how clients are divided among loops.
pub(crate) fn limit(confs: &BTreeMap<usize, Conf>, point: &Point) {
    let have_subsets = leads_to_subsets(point);
    for conf in confs.values() {
        let has_subsets = have_subsets.get(conf.node as usize).copied().unwrap_or_default();
        conf.admission.clients.divide_evenly(has_subsets);
        let http = &conf.listen.http;
        let own = http.max_clients.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        conf.admission.clients.limit_to(own.unwrap_or(usize::MAX), http.max_clients_per_address);
    }
}

/// The open listener with this address: the first that no other has taken.
fn kept<'a>(
    before: &PreviousListeners<'a>,
    opened: &BoundListeners,
    listen: &Listen,
) -> Option<(usize, &'a Conf)> {
    let mut all = before.confs.iter();
    all.find(|(number, conf)| conf.listen.addr == listen.addr && !opened.confs.contains_key(number))
        .map(|(number, conf)| (*number, conf))
}

/// Binds a listener: its port, and the address where it is reached.
fn bind(
    opened: &mut BoundListeners,
    new: &NewListener<'_>,
    number: usize,
    loops: usize,
    options: &Options,
) -> Result<(Option<u16>, Option<InnerAddress>), Error> {
    let NewListener { name, listen, level, .. } = new;
    let given = options.inherited.as_ref().map(|all| all.take(&listen.addr)).transpose()?.unwrap_or_default();
    if !given.sockets.is_empty() {
        return take(opened, new, number, given);
    }
    // In a verification ports are free ones, and each loop has one of its own, so that a request can meet the loop
    // that it meets in the simulation.
    let at = if options.paired.is_some() { ANY_PORT } else { &listen.addr };
    let at_once = if options.paired.is_some() && *level == 0 { 1 } else { loops };
    let (mut port, mut there) = (None, None);
    for first in (0..loops).step_by(at_once) {
        let bound = bind::bind(at, at_once, *level, &opened.files);
        let bound = bound.map_err(|e| Error::Listen(named(e, &opened.listening)))?;
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
        opened.listening.push(Listening { name: name.clone(), addr, level: *level });
    }
    Ok((port, there))
}

/// The same error, with the listener of this file that has the address, if one has.
fn named(mut error: CannotListen, listening: &[Listening]) -> CannotListen {
    let port = |addr: &str| addr.rsplit_once(':').map(|(_, port)| port.to_owned());
    if error.holder == Some(Holder::Own) {
        let one = listening.iter().find(|one| port(&one.addr) == port(&error.addr));
        error.holder = Some(one.map_or(Holder::OwnAdmin, |one| Holder::OwnListener(one.name.clone())));
    }
    error
}

/// Sockets that a listener inherits: each loop has one at least, and all of them are accepted from, regardless of
/// their number.
fn take(
    opened: &mut BoundListeners,
    new: &NewListener<'_>,
    number: usize,
    mut given: GivenSockets,
) -> Result<(Option<u16>, Option<InnerAddress>), Error> {
    let NewListener { name, listen, level, .. } = new;
    let loops = opened.sockets.len().max(1);
    let count = given.sockets.len();
    for at in count..loops {
        given.sockets.push(given.sockets[at % count].try_clone()?);
    }
    let bound = bind::given(&listen.addr, given, *level, &opened.files)
        .map_err(|e| Error::Listen(CannotListen::new(&listen.addr, e.to_string())))?;
    let (port, addr) = match &bound {
        Bound::Tcp(_, address) => (Some(address.port()), address.to_string()),
        Bound::Unix(..) => (None, listen.addr.clone()),
    };
    let there = Some(reached(&bound, &listen.addr));
    for (at, socket) in (0..).zip(bound.sockets()) {
        opened.sockets[at % loops].push((number, socket));
    }
    opened.listening.push(Listening { name: name.clone(), addr, level: *level });
    Ok((port, there))
}

/// Listeners behind others trust their own process as far as those before them trust their peers.
fn believe(point: &Point, opened: &mut BoundListeners) {
    let believes = opened.confs.values().filter(|conf| !conf.listen.http.trusted.is_empty());
    let believes: Vec<_> =
        believes.map(|conf| (conf.listen.http.trusted.clone(), with_inner(point, &[conf.node]))).collect();
    for conf in opened.confs.values_mut().filter(|conf| conf.level > 0) {
        let before = believes.iter().filter(|(_, behind)| behind.contains(&conf.node));
        let mut trusted: Vec<String> = before.flat_map(|(trusted, _)| trusted.iter().cloned()).collect();
        // The address by which its own process is recognised.
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

/// On loopback, any free port.
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
