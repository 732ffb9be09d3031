//! One run in reality: processes start, the load is sent, processes end and report.

use crate::against::ProxyProcess;
use crate::busy;
use crate::children::Child;
use crate::options::{Error, Options};
use crate::part::{ChildReport, Part, Row, Setup};
use crate::prepare::Arrangement;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_load::{Outcome, Protocol};
use weir_net::io::clock::monotonic_ns;
use weir_plan::ranges::MOST_LOOPS;
use weir_plan::{HttpVersion, NodeId, Scenario};
use weir_policy::Operation;
use weir_serve::BalancerCreated;
use weir_stats::{Histogram, Key};

/// The time between the start of the first process and time 0, ns; doubled if it was too short.
const LEAD_NS: u64 = 300_000_000;
/// All processes must be ready this long before time 0, ns.
const SPARE_NS: u64 = 20_000_000;
/// The longest lead; beyond it the machine is too busy, ns.
const MOST_LEAD_NS: u64 = 20_000_000_000;

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct RunOutcome {
    /// As the client saw it.
    pub load: Outcome,
    /// As the router saw it, request by request.
    pub routed: Vec<Row>,
    /// As the servers did.
    pub served: Vec<Row>,
    /// For how long threads of the run waited for a core, ns a request; `None`: the system does not say.
    pub waited_ns: Option<f64>,
    /// The same as a share of the time that the run took.
    pub waited_share: f64,
    /// The share of the cores that the host took for others.
    pub stolen: Option<f64>,
    /// One of ten timers of the servers rang later than this, ns after it was to.
    pub late_ns: Option<f64>,
    /// Requests that count and were sent to servers that are not weir's own.
    pub sent: Vec<(NodeId, u64)>,
    /// How often balancers ejected a target.
    pub ejections: u64,
    /// The connections of routers; `None`: another proxy does not say.
    pub connections: Option<RouterConnections>,
    /// The router's balancers as they were made, and all that was done to them.
    pub made: Vec<BalancerCreated>,
    pub did: Vec<(NodeId, u32, Operation)>,
}

/// The connections of routers to servers and other routers in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RouterConnections {
    pub opened: u64,
    /// How long it took to open them in all, s.
    pub connecting_s: f64,
    /// How many were open when the last request that counts arrived.
    pub open: u64,
}

impl RouterConnections {
    fn new(router: &ChildReport, load: &Outcome) -> RouterConnections {
        let selected = load.rows.iter().filter(|row| row.selected).map(|row| row.intended_ns);
        let last_ns = selected.max().unwrap_or_default();
        let until = |times: &[u64]| times.iter().filter(|at| **at <= last_ns).count() as u64;
        RouterConnections {
            opened: router.opened.len() as u64,
            connecting_s: router.connecting_s,
            open: until(&router.opened).saturating_sub(until(&router.closed)),
        }
    }
}

/// The most that threads may wait for a core: ns per request, and share of the median latency.
const MOST_WAITED: (f64, f64) = (300_000.0, 0.02);
/// Waiting for less than this share of the time is ignored, even with few requests.
const LEAST_WAITED: f64 = 0.05;
/// The host may take this share of the cores.
const MOST_STOLEN: f64 = 0.1;
/// The most by which the p90 lateness of servers' timers may exceed the calibrated one: ns, or by this share of the
/// median latency: a queue at three quarters makes four times as much of it.
const MOST_LATE: (f64, f64) = (200_000.0, 0.01);

impl RunOutcome {
    /// Why it says nothing of the model, if it does not: the machine was busy with something else. `late_ns`: as late
    /// one timer of ten rings when it is not.
    pub fn void(&self, late_ns: f64) -> Option<String> {
        let p50 = self.load.all.quantile(0.5).unwrap_or_default();
        let (most_ns, most_share) = MOST_WAITED;
        let waited = self.waited_ns.filter(|ns| *ns > most_ns && *ns > most_share * p50);
        let waited = waited.filter(|_| self.waited_share > LEAST_WAITED);
        let of_cores = |ns: f64| format!("its processes waited {:.2} ms a request for a core", ns / 1e6);
        let taken = || {
            let stolen = self.stolen.filter(|share| *share > MOST_STOLEN)?;
            Some(format!("the host gave {:.0} % of the cores to others", stolen * 100.0))
        };
        let (later_ns, share) = MOST_LATE;
        let most_late_ns = late_ns + later_ns.max(share * p50);
        let late = self.late_ns.filter(|ns| *ns > most_late_ns);
        let rang = |ns: f64| {
            format!(
                "one timer of ten fired more than {:.2} ms late, {:.2} in the calibration",
                ns / 1e6,
                late_ns / 1e6
            )
        };
        let first = self.load.void.clone().or_else(|| waited.map(of_cores));
        first.or_else(taken).or_else(|| late.map(rang))
    }
}

/// The processes of a run.
struct Processes {
    servers: Option<Child>,
    router: Routes,
    /// Where the router's loops are reached.
    loops: Vec<SocketAddr>,
    secret: u64,
    begins_ns: u64,
    /// Whether one of them has ended early.
    gone: Arc<AtomicBool>,
}

impl Processes {
    /// The error of the process that ended early.
    fn early_end(self) -> Error {
        let servers = self.servers.map(Child::end).and_then(Result::err);
        let ended = servers.map(machine_failed).or_else(|| self.router.end().err());
        ended.unwrap_or_else(|| Error::System("a process of the run has ended".to_owned()))
    }
}

/// The machine failed.
fn machine_failed(why: impl fmt::Display) -> Error {
    Error::System(why.to_string())
}

/// The processes that route.
enum Routes {
    Weir(Vec<Child>),
    Proxy(ProxyProcess),
}

impl Routes {
    /// Ends it, and returns its report, if it makes one.
    fn end(self) -> Result<ChildReport, Error> {
        match self {
            Routes::Weir(children) => {
                let mut all = ChildReport { waited_ns: Some(0), ..ChildReport::default() };
                // The outermost first: what it has in progress the others have too.
                for (number, child) in (0..).zip(children.into_iter().rev()) {
                    // Each process has loops of its own, with their own state of a balancer that several have.
                    let on = |on_loop: u32| on_loop + number * MOST_LOOPS;
                    let told = child.end().map_err(machine_failed)?;
                    all.waited_ns = all.waited_ns.zip(told.waited_ns).map(|(all, one)| all + one);
                    all.ended.extend(told.ended);
                    all.sent.extend(told.sent);
                    all.ejections += told.ejections;
                    all.opened.extend(told.opened);
                    all.closed.extend(told.closed);
                    all.connecting_s += told.connecting_s;
                    let made = told.made.into_iter();
                    all.made.extend(made.map(|made| BalancerCreated { on_loop: on(made.on_loop), ..made }));
                    all.did.extend(told.did.into_iter().map(|(lb, on_loop, deed)| (lb, on(on_loop), deed)));
                }
                Ok(all)
            }
            Routes::Proxy(other) => {
                drop(other);
                Ok(ChildReport { waited_ns: Some(0), ..ChildReport::default() })
            }
        }
    }
}

/// Runs a scenario in reality; `None`: stopped, or a parallel run has `failed`.
pub(crate) fn trial(
    prepared: &Arrangement,
    scenario: &Scenario,
    options: &Options,
    replication: u32,
    stop: &Arc<AtomicBool>,
    failed: &Arc<AtomicBool>,
) -> Result<Option<RunOutcome>, Error> {
    if stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let processes = begin(prepared, options, replication)?;
    let load = make_load_options(prepared, options, replication, &processes)?;
    // The load is sent by this thread; others may send that of other runs.
    let (waited, stolen) = (busy::own_waited_ns(), busy::stolen());
    // The load stops as soon as a process of the run has ended, too.
    let halt = processes.gone.clone();
    let (wanted, beside, halts) = (stop.clone(), failed.clone(), halt.clone());
    let hear = move |_: &weir_load::Second| {
        if wanted.load(Ordering::Relaxed) || beside.load(Ordering::Relaxed) {
            halts.store(true, Ordering::Relaxed);
        }
    };
    let outcome = weir_load::run(&prepared.point, scenario, &load, hear, &halt);
    if stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let outcome = match outcome {
        Ok(outcome) if outcome.interrupted => return Err(processes.early_end()),
        Err(weir_load::Error::Interrupted) => return Err(processes.early_end()),
        Ok(outcome) => outcome,
        Err(e) => return Err(machine_failed(e)),
    };
    let waited = busy::own_waited_ns().zip(waited).map(|(now, before)| now.saturating_sub(before));
    let stolen = busy::stolen().zip(stolen).map(|(now, before)| (now.0 - before.0, now.1 - before.1));
    let took_ns = monotonic_ns().saturating_sub(processes.begins_ns).max(1);
    let router = processes.router.end()?;
    let servers = match processes.servers {
        Some(servers) => servers.end().map_err(machine_failed)?,
        None => ChildReport { waited_ns: Some(0), ..ChildReport::default() },
    };
    let waited = [waited, router.waited_ns, servers.waited_ns].into_iter().sum::<Option<u64>>();
    let mut late = Histogram::new();
    servers.late_ns.iter().for_each(|ns| late.record(*ns));
    Ok(Some(RunOutcome {
        waited_ns: waited.map(|ns| ns as f64 / outcome.requests.total.max(1) as f64),
        waited_share: waited.unwrap_or(0) as f64 / took_ns as f64,
        stolen: stolen.map(|(stolen, all)| stolen as f64 / all.max(1) as f64),
        late_ns: late.quantile(0.9),
        connections: prepared.against.is_none().then(|| RouterConnections::new(&router, &outcome)),
        load: outcome,
        routed: router.ended,
        served: servers.ended,
        sent: router.sent,
        ejections: router.ejections + servers.ejections,
        made: router.made,
        did: router.did,
    }))
}

/// The load goes to the first of the router's loops, by the lowest version of HTTP that its listener takes.
fn make_load_options(
    prepared: &Arrangement,
    options: &Options,
    replication: u32,
    processes: &Processes,
) -> Result<weir_load::Options, Error> {
    let listen = prepared.listen();
    let scheme = if listen.is_some_and(|listen| listen.tls.is_some()) { "https" } else { "http" };
    let Some(first) = processes.loops.first() else {
        return Err(Error::System("the router of the run has no address".to_owned()));
    };
    let is_h1 = listen.is_none_or(|listen| listen.http.versions.contains(&HttpVersion::H1));
    Ok(weir_load::Options {
        to: format!("{scheme}://{first}"),
        seed: options.seed,
        replication,
        requests: options.requests,
        duration_ns: None,
        speed: 1.0,
        every_ns: None,
        connections: None,
        protocol: if is_h1 { Protocol::H1 } else { Protocol::H2 },
        insecure: true,
        rows: true,
        paired: Some(weir_load::VerifyRun {
            secret: processes.secret,
            loops: processes.loops.clone(),
            begins_ns: processes.begins_ns,
        }),
    })
}

/// Starts the processes of a run: the servers first, so that routers have their addresses.
fn begin(prepared: &Arrangement, options: &Options, replication: u32) -> Result<Processes, Error> {
    let key = Key::new(options.seed).with(u64::from(replication));
    let timetable =
        weir_sim::timetable(&prepared.point, &prepared.scenario, key).map_err(Error::Simulated)?;
    let secret = getrandom::u64().map_err(machine_failed)?;
    let mut lead_ns = LEAD_NS;
    loop {
        let begins_ns = monotonic_ns() + lead_ns;
        // The processes of an attempt that was too late end as well; their flag is not used.
        let gone = Arc::new(AtomicBool::new(false));
        let setup = |part: Part| Setup {
            point: (*prepared.point).clone(),
            fleets: prepared.point.fleets.as_deref().cloned(),
            timetable: timetable.clone(),
            listener: prepared.listener,
            root: prepared.root,
            key: key.bits(),
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
                Child::begin(&options.exe, "server process", &serves, &gone).map_err(machine_failed)?;
            (servers, addresses) = (Some(child), begun.servers);
        }
        let (router, loops) = match &prepared.against {
            Some(asked) => {
                let other = asked.begin(&addresses).map_err(machine_failed)?;
                let address = other.address;
                (Routes::Proxy(other), vec![address])
            }
            None => {
                let mut routers = Vec::new();
                let mut listeners: Vec<(NodeId, SocketAddr)> = Vec::new();
                let apart = if options.processes { prepared.inner() } else { Vec::new() };
                // Inner listeners start before those in front of them.
                for listener in apart.into_iter().chain([prepared.listener]) {
                    let part = Part::Routes { servers: addresses.clone(), listeners: listeners.clone() };
                    let routes = Setup { listener, ..setup(part) };
                    let (router, begun) =
                        Child::begin(&options.exe, "router", &routes, &gone).map_err(machine_failed)?;
                    listeners.extend(begun.loops.first().map(|address| (listener, *address)));
                    routers.push((router, begun.loops));
                }
                let (all, loops): (Vec<Child>, Vec<_>) = routers.into_iter().unzip();
                (Routes::Weir(all), loops.into_iter().next_back().unwrap_or_default())
            }
        };
        if monotonic_ns() + SPARE_NS < begins_ns {
            return Ok(Processes { servers, router, loops, secret, begins_ns, gone });
        }
        lead_ns *= 2;
        if lead_ns > MOST_LEAD_NS {
            return Err(Error::System("this machine is too busy to start a run in time".to_owned()));
        }
    }
}
