//! Requests in flight, and the connections that they share.

pub(crate) mod closed;
mod h1;
mod h2;
pub(crate) mod job;
pub(crate) mod open;
pub(crate) mod parts;
mod sender;
pub(crate) mod tally;

pub(crate) use sender::Sender;

use crate::cookies::Cookies;
use crate::shape::{Shape, VariableFields};
use crate::target::Target;
use job::{Arrival, Ending, Job};
use open::Open;
use parts::Parts;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use tally::Tally;
use weir_model::draws::purpose;
use weir_model::way::Way;
use weir_net::io::Core;
use weir_net::io::system::is_exhausted;
use weir_net::io::timers::{Sleep, has_ended};
use weir_net::transport::socket::Socket;
use weir_net::transport::{connect, tls};
use weir_policy::{Kind, key};
use weir_workload::{Request, RequestDraws, RunRequest};

/// The time that the first connection may take, ns.
const FIRST_NS: u64 = 5_000_000_000;

/// The connections to one event loop, or to any.
#[derive(Default)]
pub(crate) struct Lane {
    pub h1: h1::Idle,
    pub h2: h2::Connections,
    /// Requests without a connection yet.
    pub waiting: RefCell<VecDeque<Job>>,
}

/// The state of a run.
pub(crate) struct Generator {
    pub core: Rc<Core>,
    pub target: Target,
    pub tls: Option<Arc<tls::Client>>,
    pub shapes: Vec<Shape>,
    /// The cookies that sticky balancers gave to senders.
    pub cookies: Cookies,
    /// When a request is given up, ns after its intended time.
    pub limit_ns: u64,
    /// The clock at the run's start.
    pub begun_ns: Cell<u64>,
    /// The most connections at once.
    pub most: usize,
    pub is_h2: bool,
    pub tally: RefCell<Tally>,
    /// The header by which the processes of a verification recognise requests of this run.
    pub secret: Option<u64>,
    /// By event loop that requests are to meet; one entry if it does not matter.
    pub lanes: Vec<Lane>,
    /// Connections that are open or being made, and all that were made.
    pub standing: Cell<usize>,
    pub connections: Cell<u64>,
    pub in_flight: Cell<u64>,
    /// Users of closed traffic whose request has ended, and the task that waits for them.
    pub answered: RefCell<Vec<u32>>,
    pub watcher: RefCell<Option<Waker>>,
    /// The rest of open traffic, and the time of its next request, ns after the run's start (`u64::MAX`: none).
    pub open: RefCell<Option<Open>>,
    pub due_ns: Cell<u64>,
}

/// A connection that was made; dropping it is its end.
pub(crate) struct OpenConnection(Rc<Generator>);

impl OpenConnection {
    fn new(g: &Rc<Generator>) -> OpenConnection {
        g.connections.set(g.connections.get() + 1);
        g.count_connection(Parts::open);
        OpenConnection(g.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.count_connection(Parts::close);
    }
}

/// Why no connection to the target can be made, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotConnect(String);

impl fmt::Display for CannotConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotConnect {}

impl Generator {
    /// Now, ns after the run's start.
    pub fn now(&self) -> u64 {
        self.core.now().saturating_sub(self.begun_ns.get())
    }

    /// Starts a request whose time has come.
    pub fn begin(self: &Rc<Self>, arrival: Arrival) {
        let Arrival { request, intended_ns, selected, user } = arrival;
        let lane = weir_model::loops::met(self.lanes.len() as u32, request.way.with(purpose::MEETS)) as usize;
        let lag_ns = Some(self.now().saturating_sub(intended_ns));
        let job = Job { lane, request, intended_ns, sent_ns: None, lag_ns, selected, user, again: 0 };
        self.tally.borrow_mut().arrives(&job);
        self.in_flight.set(self.in_flight.get() + 1);
        self.send(job);
    }

    /// Gives a request to a connection, or makes one.
    pub fn send(self: &Rc<Self>, job: Job) {
        if self.is_h2 { h2::send(self, job) } else { h1::send(self, job) }
    }

    /// Notes that a request is being written.
    pub fn on_sent(&self, job: &mut Job, was_free: bool) {
        let now = self.now();
        if was_free && job.sent_ns.is_none() {
            job.lag_ns = Some(now.saturating_sub(job.intended_ns));
        }
        job.sent_ns.get_or_insert(now);
    }

    /// Queues a request for a connection.
    pub fn wait(&self, job: Job) {
        self.lanes[job.lane].waiting.borrow_mut().push_back(job);
    }

    /// The request that has waited longest for a connection to a loop.
    pub fn next(&self, lane: usize) -> Option<Job> {
        self.lanes[lane].waiting.borrow_mut().pop_front()
    }

    /// Whether the run's time 0 is still to come.
    pub fn has_not_begun(&self) -> bool {
        self.core.now() <= self.begun_ns.get()
    }

    /// The fields of a request that its kind does not fix.
    pub fn said<'a>(&self, job: &'a Job) -> VariableFields<'a> {
        let sender = job.request.sender.as_deref();
        VariableFields { sender, cookies: self.cookies.field(sender), drawn: self.drawn(job) }
    }

    /// The field that identifies a request to the processes of its run.
    fn drawn(&self, job: &Job) -> Option<String> {
        let Request { ordinal, way, sender, .. } = &job.request;
        let hash =
            sender.as_ref().map_or_else(|| key::hash_number(*ordinal), |text| key::hash(text.as_bytes()));
        let of_run = RunRequest { ordinal: *ordinal, selected: job.selected, sender: Some(hash) };
        let drawn = RequestDraws { of_run, factor: 1.0, way: Way::new(*way) };
        self.secret.map(|secret| drawn.value(secret))
    }

    /// Whether another connection may be made; if so, it is counted.
    pub fn may_open(&self) -> bool {
        let room = self.standing.get() < self.most;
        self.standing.set(self.standing.get() + usize::from(room));
        room
    }

    /// The deadline of a request.
    pub fn limit(&self, job: &Job) -> Sleep {
        let at = self.begun_ns.get().saturating_add(job.intended_ns).saturating_add(self.limit_ns);
        self.core.timers.sleep_until(at)
    }

    /// Ends a request.
    pub fn end(&self, job: &Job, went: &Ending) {
        let now = self.now();
        self.tally.borrow_mut().ends(job, went, now);
        self.in_flight.set(self.in_flight.get() - 1);
        let watched = if let Some(user) = job.user {
            self.answered.borrow_mut().push(user);
            true
        } else {
            self.in_flight.get() == 0
        };
        if watched && let Some(waker) = self.watcher.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Sends the requests that have become due meanwhile, so that reading many answers delays none.
    pub fn send_due(self: &Rc<Self>) {
        if self.due_ns.get() < u64::MAX {
            open::send_due(self, self.now());
        }
    }

    /// A connection has ended, or was never made: waiting requests go elsewhere.
    pub fn on_closed(self: &Rc<Self>) {
        self.standing.set(self.standing.get() - 1);
        if let Some(job) = (0..self.lanes.len()).find_map(|lane| self.next(lane)) {
            self.send(job);
        }
    }

    /// Counts a change of the number of connections, in a run with results over time.
    fn count_connection(&self, change: fn(&mut Parts, u64)) {
        if let Some(parts) = &mut self.tally.borrow_mut().parts {
            change(parts, self.now());
        }
    }

    /// A connection, before the request that it is made for is given up.
    pub async fn connect(self: &Rc<Self>, job: &Job) -> Result<(Socket, OpenConnection), Kind> {
        let mut limit = Some(self.limit(job));
        let mut dialling = pin!(self.dial(job.lane));
        let made = poll_fn(|cx| match dialling.as_mut().poll(cx) {
            Poll::Ready(made) => Poll::Ready(Some(made)),
            Poll::Pending if has_ended(&mut limit, cx) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await;
        match made {
            Some(Ok(socket)) => Ok((socket, OpenConnection::new(self))),
            Some(Err(why)) => {
                self.tally.borrow_mut().no_connection.get_or_insert(why.0);
                Err(Kind::ConnectFailed)
            }
            None => Err(Kind::Timeout),
        }
    }

    /// Checks before the run that a connection can be made at all.
    pub async fn try_to_connect(&self) -> Result<(), CannotConnect> {
        let mut limit = Some(self.core.timers.after(FIRST_NS));
        let mut dialling = pin!(self.dial(0));
        poll_fn(|cx| match dialling.as_mut().poll(cx) {
            Poll::Ready(made) => Poll::Ready(made.map(drop)),
            Poll::Pending if has_ended(&mut limit, cx) => {
                Poll::Ready(Err(CannotConnect("no answer within 5 s".to_owned())))
            }
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    async fn dial(&self, lane: usize) -> Result<Socket, CannotConnect> {
        let all = &self.target.addresses;
        let addresses = if self.secret.is_some() { all.get(lane..=lane).unwrap_or(all) } else { all };
        let made = connect::tcp(&self.core, addresses).await;
        let made = made.inspect_err(|e| {
            if is_exhausted(e) {
                self.tally.borrow_mut().exhausted.get_or_insert_with(|| e.to_string());
            }
        });
        let socket = made.map(Socket::Tcp).map_err(|e| CannotConnect(e.to_string()))?;
        let Some(tls) = &self.tls else { return Ok(socket) };
        let offers: &[&str] = if self.is_h2 { &["h2"] } else { &["http/1.1"] };
        let secured = tls.connect(&self.core, socket, &self.target.host, offers, &tls.target(0)).await;
        let socket = secured.map_err(|why| CannotConnect(format!("TLS: {why}")))?;
        if self.is_h2 && !socket.is_h2() {
            return Err(CannotConnect("the server does not choose HTTP/2 (ALPN)".to_owned()));
        }
        Ok(socket)
    }
}
