//! A run: the scenario's requests in order, each at its time.

use crate::cookies::Cookies;
use crate::expected::judge;
use crate::generator::parts::Parts;
use crate::generator::tally::{Second, Tally};
use crate::generator::{CannotConnect, Generator, Lane, Sender};
use crate::outcome::Outcome;
use crate::shape::{CannotSend, Host, key_sources, shapes};
use crate::target::{CannotReach, Target};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use weir_net::io::Core;
use weir_net::io::clock::Clock;
use weir_net::io::runtime::Runtime;
use weir_net::io::tcp::TcpSettings;
use weir_net::transport::tls;
use weir_plan::over_time::{self, MOST_PARTS, Unfit};
use weir_plan::{KeySource, Point, Scenario, Window, fixed};
use weir_stats::{Key, Ratio};
use weir_workload::{Load, Requests, load_unless};

/// The options of all TCP connections, as the balancer has them.
const TCP: TcpSettings = TcpSettings {
    user_timeout_ns: fixed::TCP_USER_TIMEOUT_NS,
    keepalive_ns: fixed::TCP_KEEPALIVE_NS,
    keepalive_interval_ns: fixed::TCP_KEEPALIVE_INTERVAL_NS,
    keepalive_probes: fixed::TCP_KEEPALIVE_PROBES,
    next_address_ns: fixed::NEXT_ADDRESS_NS,
};

/// How often the run checks whether to stop, ns.
const TICK_NS: u64 = 100_000_000;
/// Time between the start and the first request, ns: the first connections are made in it.
const HEAD_START_NS: u64 = 10_000_000;
/// In a verification a request without patience waits at least this long, ns: the language's default deadline.
const LOST_NS: u64 = 60_000_000_000;
/// The default limit of HTTP/1.1 connections.
const MOST_CONNECTIONS: usize = 10_000;

/// The version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    H1,
    /// HTTP/2: by ALPN over TLS, otherwise by prior knowledge.
    H2,
}

/// How a load is sent.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to.
    pub to: String,
    /// Seed of all random draws: the requests are those of a replication of a simulation with it.
    pub seed: u64,
    /// The replication, from 0.
    pub replication: u32,
    /// Number of requests, overriding the file.
    pub requests: Option<u64>,
    /// How long requests arrive, ns, instead of what the file says.
    pub duration_ns: Option<u64>,
    /// Speed-up factor.
    pub speed: f64,
    /// The length of the parts that the result has over time, ns of the run itself; `None`: it has none.
    pub every_ns: Option<u64>,
    /// The most connections at once; `None`: as many as requests need, up to 10,000.
    pub connections: Option<usize>,
    /// The version of HTTP.
    pub protocol: Protocol,
    /// Whether certificates are accepted without verification.
    pub insecure: bool,
    /// Whether each request is kept in [`Outcome::rows`].
    pub rows: bool,
    /// The run of a verification that this load belongs to.
    pub paired: Option<VerifyRun>,
}

/// A run of a verification, as its load is sent.
#[derive(Clone, Debug)]
pub struct VerifyRun {
    /// The secret of the run's processes.
    pub secret: u64,
    /// The event loops that requests meet: an address each.
    pub loops: Vec<SocketAddr>,
    /// Time 0 of the run, as `CLOCK_MONOTONIC` reads then, ns.
    pub begins_ns: u64,
}

/// Why there is no run.
#[derive(Debug)]
pub enum Error {
    /// The URL leads nowhere.
    Target(CannotReach),
    /// No connection can be made.
    Connect(CannotConnect),
    /// The scenario cannot be sent.
    Scenario(CannotSend),
    /// The parts of the run would be too short, or too many.
    Parts(Unfit),
    /// The machine lacks what a runtime needs.
    System(io::Error),
    /// TLS cannot be set up.
    Tls(tls::CannotUse),
    /// It was stopped before anything was sent.
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Target(why) => why.fmt(f),
            Error::Connect(why) => why.fmt(f),
            Error::Scenario(why) => why.fmt(f),
            Error::Parts(Unfit { why, .. }) => write!(f, "the length of a part {why}"),
            Error::Tls(why) => why.fmt(f),
            Error::System(e) => e.fmt(f),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

/// Sends a scenario's requests and waits for all answers. `tell` is called every second; `stop` ends the run.
///
/// # Errors
/// [`Error`]; failed requests are results, not errors.
pub fn run(
    point: &Point,
    scenario: &Scenario,
    options: &Options,
    tell: impl Fn(&Second) + 'static,
    stop: &Arc<AtomicBool>,
) -> Result<Outcome, Error> {
    let scenario = apply_options(scenario, options);
    let speed = Ratio::near(options.speed);
    check_parts(&scenario, options.every_ns, speed).map_err(Error::Parts)?;
    let mut target = Target::resolve(&options.to).map_err(Error::Target)?;
    let sources = key_sources(point);
    let host = Host { https: target.https, authority: &target.authority };
    let shapes = shapes(&scenario, &sources, &host).map_err(Error::Scenario)?;
    let tls = target.https.then(|| client(options.insecure)).transpose().map_err(Error::Tls)?;
    let key = Key::new(options.seed).with(u64::from(options.replication));
    let load = load_unless(&scenario, scenario.requests, key, stop).ok_or(Error::Interrupted)?;
    let parts = options.every_ns.map(|every_ns| Parts::new(every_ns, until_ns(&load, speed)));
    let runtime = Runtime::new().map_err(Error::System)?;
    let paired = options.paired.as_ref();
    if let Some(run) = paired {
        target.addresses.clone_from(&run.loops);
    }
    let lanes = paired.map_or(1, |run| run.loops.len().max(1));
    let clock = paired.map_or_else(Clock::start, |run| Clock::beginning(run.begins_ns));
    let core = Core::new(runtime.clone(), clock, key, TCP).map_err(Error::System)?;
    let g = Rc::new(Generator {
        begun_ns: Cell::default(),
        core,
        tls,
        shapes,
        cookies: Cookies::new(point, &scenario),
        limit_ns: limit_ns(&scenario, paired.is_some()),
        most: options.connections.unwrap_or(MOST_CONNECTIONS),
        is_h2: options.protocol == Protocol::H2,
        tally: RefCell::new(Tally::new(options.rows, parts)),
        secret: paired.map(|run| run.secret),
        lanes: (0..lanes).map(|_| Lane::default()).collect(),
        standing: Cell::new(0),
        connections: Cell::new(0),
        in_flight: Cell::new(0),
        answered: RefCell::default(),
        watcher: RefCell::default(),
        open: RefCell::default(),
        due_ns: Cell::new(u64::MAX),
        target,
    });
    let sender = Sender { g: g.clone(), load: load.clone(), requests: Requests::new(&scenario, key), speed };
    let done = runtime.block_on(send_all(sender, stop.clone(), tell)).map_err(Error::System)??;
    let unsent = sources.contains(&KeySource::Client) && scenario.mix.iter().any(|kind| kind.key.is_some());
    let end_ns = load.end_ns(g.tally.borrow().requests.total, u64::MAX);
    let end_ns = (done && end_ns < u64::MAX).then(|| speed.divide(end_ns));
    let parts = g.tally.borrow_mut().parts.take();
    let mut outcome = outcome(&g, &scenario, options, !done, unsent);
    parts.into_iter().for_each(|parts| add_parts(&mut outcome, parts, end_ns));
    if paired.is_none() {
        outcome.params.clone_from(&point.params);
        judge(point, &scenario, &mut outcome);
    }
    Ok(outcome)
}

/// The scenario with what the options say instead of the file.
fn apply_options(scenario: &Scenario, options: &Options) -> Scenario {
    let mut scenario = scenario.clone();
    if options.duration_ns.is_some() {
        (scenario.duration_ns, scenario.requests) = (options.duration_ns, None);
    }
    scenario.requests = options.requests.or(scenario.requests);
    scenario
}

/// When arrivals end at the latest, ns after the run's start; `u64::MAX`: when there are enough of them.
fn until_ns(load: &Load, speed: Ratio) -> u64 {
    if load.until_ns == u64::MAX { u64::MAX } else { speed.divide(load.until_ns) }
}

/// When a request is given up, ns after its intended time.
fn limit_ns(scenario: &Scenario, in_verification: bool) -> u64 {
    // In a simulation a deadline stops nothing; here a request without an answer must end at last.
    let deadline_ns = if in_verification { scenario.deadline_ns.max(LOST_NS) } else { scenario.deadline_ns };
    scenario.patience_ns.unwrap_or(deadline_ns)
}

/// Whether the parts of a run would be neither too short nor, as far as its length is known, too many.
fn check_parts(scenario: &Scenario, every_ns: Option<u64>, speed: Ratio) -> Result<(), Unfit> {
    let Some(every_ns) = every_ns else { return Ok(()) };
    let length_ns = over_time::length_ns(scenario).map_or(0, |ns| speed.divide(ns));
    over_time::divides(length_ns, every_ns)
}

/// Adds the results over time. `end_ns`: when arrivals ended, if not with the last one.
fn add_parts(outcome: &mut Outcome, parts: Parts, end_ns: Option<u64>) {
    outcome.over_time = parts.finish(end_ns);
    if outcome.over_time.is_none() {
        // Arrivals are drawn, or come after answers, so that could not be known before.
        let what = "it has no results over time: it had more than";
        outcome.warnings.push(format!("{what} {MOST_PARTS} parts; write a longer --every"));
    }
}

fn client(insecure: bool) -> Result<Arc<tls::Client>, tls::CannotUse> {
    let client =
        if insecure { tls::Client::unverified() } else { tls::Client::read(&tls::ClientFiles::default()) };
    client.map(Arc::new)
}

fn outcome(
    g: &Generator,
    scenario: &Scenario,
    options: &Options,
    interrupted: bool,
    unsent: bool,
) -> Outcome {
    let tally = g.tally.take();
    let mut warnings = tally.warnings(options.paired.is_none());
    if interrupted {
        let what = "it was stopped before its end: the figures cover the requests that had ended by then";
        warnings.push(what.to_owned());
    }
    if unsent {
        let what =
            "`key.client()` reads the client's address, which is the same for all requests of this run";
        warnings.push(what.to_owned());
    }
    if scenario.window == Window::Auto {
        let what = "`window=\"auto\"` is found in simulations only: these are figures of the middle half of the requests";
        warnings.push(what.to_owned());
    }
    Outcome {
        to: options.to.clone(),
        scenario: scenario.name.clone(),
        seed: options.seed,
        rate_per_s: tally.rate_per_s(),
        lag: tally.lag(),
        connections: g.connections.get(),
        void: tally.void(),
        warnings,
        interrupted,
        requests: tally.requests,
        all: tally.all,
        ok: tally.ok,
        rows: tally.rows.unwrap_or_default(),
        over_time: None,
        params: Vec::new(),
        expectations: Vec::new(),
    }
}

/// Sends all requests and waits for their ends; `false`: stopped before.
async fn send_all(
    sender: Sender,
    stop: Arc<AtomicBool>,
    tell: impl Fn(&Second) + 'static,
) -> Result<bool, Error> {
    let core = sender.g.core.clone();
    core.runtime.spawn(core.timers.clone().run(core.runtime.clone()));
    sender.g.try_to_connect().await.map_err(Error::Connect)?;
    // In a verification the run begins when its clock does.
    sender.g.begun_ns.set(if sender.g.secret.is_some() { 0 } else { core.now() + HEAD_START_NS });
    let ticking = sender.g.clone();
    core.runtime.spawn(async move { tick(&ticking, tell).await });
    let mut sending = std::pin::pin!(sender.send());
    let mut next = core.timers.after(TICK_NS);
    poll_fn(|cx| {
        while next.poll_ended(cx).is_ready() {
            if stop.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(false));
            }
            next = core.timers.after(TICK_NS);
        }
        sending.as_mut().poll(cx).map(|()| Ok(true))
    })
    .await
}

/// Reports each second.
async fn tick(g: &Generator, tell: impl Fn(&Second)) {
    for second in 1.. {
        g.core.timers.sleep_until(g.begun_ns.get() + second * 1_000_000_000).await;
        let heard = g.tally.borrow_mut().second(second, g.in_flight.get());
        tell(&heard);
    }
}
