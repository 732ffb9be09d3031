//! One run for real: processes begin, the load is sent, processes end and tell.

use crate::children::Child;
use crate::part::{Part, Row, Setup, Told};
use crate::prepare::Prepared;
use crate::run::{Error, Options};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_load::{Outcome, Protocol};
use weir_net::io::clock::monotonic_ns;
use weir_policy::Deed;
use weir_serve::Made;
use weir_stats::Key;
use weir_topology::plan::{HttpVersion, NodeId, Scenario};

/// The run begins so long after its first process, ns, for the first time; longer where that was too short.
const LEAD_NS: u64 = 300_000_000;
/// All must be ready so long before, ns.
const SPARE_NS: u64 = 20_000_000;
/// Beyond this the machine is too busy to begin anything in time, ns.
const MOST_LEAD_NS: u64 = 20_000_000_000;

/// A run as it went.
#[derive(Debug)]
pub(crate) struct Real {
    /// As the client saw it.
    pub load: Outcome,
    /// As the router saw it, request by request.
    pub routed: Vec<Row>,
    /// As the servers did.
    pub served: Vec<Row>,
    /// The router's balancers as they were made, and all that was done to them.
    pub made: Vec<Made>,
    pub did: Vec<(NodeId, u32, Deed)>,
}

/// The processes of a run.
struct Processes {
    servers: Option<Child>,
    router: Child,
    /// Where the router's loops are reached.
    loops: Vec<SocketAddr>,
    secret: u64,
    begins_ns: u64,
}

/// Runs a scenario for real; `None`: told to stop.
pub(crate) fn trial(
    prepared: &Prepared,
    scenario: &Scenario,
    options: &Options,
    replication: u32,
    stop: &Arc<AtomicBool>,
) -> Result<Option<Real>, Error> {
    let processes = begin(prepared, options, replication)?;
    let listen = prepared.listen();
    let scheme = if listen.is_some_and(|listen| listen.tls.is_some()) { "https" } else { "http" };
    let Some(first) = processes.loops.first() else {
        return Err(Error::System("the router of the run has no address".to_owned()));
    };
    let is_h1 = listen.is_none_or(|listen| listen.http.versions.contains(&HttpVersion::H1));
    let load = weir_load::Options {
        to: format!("{scheme}://{first}"),
        seed: options.seed,
        replication,
        requests: options.requests,
        duration_ns: None,
        speed: 1.0,
        connections: None,
        protocol: if is_h1 { Protocol::H1 } else { Protocol::H2 },
        insecure: true,
        rows: true,
        paired: Some(weir_load::Paired {
            secret: processes.secret,
            loops: processes.loops.clone(),
            begins_ns: processes.begins_ns,
        }),
    };
    let outcome = match weir_load::run((&prepared.point, scenario), &load, |_| {}, stop) {
        Ok(outcome) if outcome.interrupted => return Ok(None),
        Err(weir_load::Error::Interrupted) => return Ok(None),
        Ok(outcome) => outcome,
        Err(e) => return Err(Error::System(e.to_string())),
    };
    let Told { ended: routed, made, did } = processes.router.end().map_err(Error::System)?;
    let served = match processes.servers {
        Some(servers) => servers.end().map_err(Error::System)?.ended,
        None => Vec::new(),
    };
    Ok(Some(Real { load: outcome, routed, served, made, did }))
}

/// Begins the processes of a run: the servers first, who routes knows them then.
fn begin(prepared: &Prepared, options: &Options, replication: u32) -> Result<Processes, Error> {
    let key = Key::new(options.seed).with(u64::from(replication)).bits();
    let secret = getrandom::u64().map_err(|e| Error::System(e.to_string()))?;
    let mut lead_ns = LEAD_NS;
    loop {
        let begins_ns = monotonic_ns() + lead_ns;
        let setup = |part: Part| Setup {
            point: (*prepared.point).clone(),
            listener: prepared.listener,
            root: prepared.root,
            key,
            secret,
            begins_ns,
            records: options.records,
            part,
        };
        let mut addresses: Vec<(NodeId, SocketAddr)> = Vec::new();
        let mut servers = None;
        if !prepared.servers.is_empty() {
            let serves = setup(Part::Serves(prepared.servers.clone()));
            let (child, begun) =
                Child::begin(&options.exe, "server process", &serves).map_err(Error::System)?;
            (servers, addresses) = (Some(child), begun.servers);
        }
        let routes = setup(Part::Routes(addresses));
        let (router, begun) = Child::begin(&options.exe, "router", &routes).map_err(Error::System)?;
        if monotonic_ns() + SPARE_NS < begins_ns {
            return Ok(Processes { servers, router, loops: begun.loops, secret, begins_ns });
        }
        lead_ns *= 2;
        if lead_ns > MOST_LEAD_NS {
            return Err(Error::System("this machine is too busy to begin a run in time".to_owned()));
        }
    }
}
