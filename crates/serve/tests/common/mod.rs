//! A served topology from a text, a tiny blocking client, and origins that follow a script. Loopback and free ports
//! only; every wait is bounded.
#![allow(dead_code, unused_imports)]

pub mod certificates;
mod client;
pub mod configs;
mod origin;
mod text;
mod translate;
pub mod transport;

pub use client::{Conn, Response, get, get_with, send};
pub use origin::{Origin, Reply};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_plan::serving::serving;
use weir_plan::{Point, listeners};
use weir_serve::{Exposition, NewTopology, Options, Running, start};
use weir_topology::{Request, evaluate};

/// What runs; dropped, it drains.
pub struct RunningBalancer {
    /// Of the first listener.
    pub addr: String,
    /// Of each listener.
    pub addrs: Vec<String>,
    running: Option<Running>,
}

/// What a text evaluates to.
pub fn point(text: &str) -> Point {
    let request =
        Request { name: "test.star".to_owned(), source: text.as_bytes().to_vec(), ..Request::default() };
    let evaluated = evaluate(&request).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"));
    evaluated.plan.points.into_iter().next().expect("a point")
}

/// Serves a text with one loop.
pub fn serve(text: &str) -> RunningBalancer {
    serve_with(text, 1, false)
}

/// Serves a text with this number of loops, and with models before real servers or without.
pub fn serve_with(text: &str, loops: usize, inject: bool) -> RunningBalancer {
    let mut point = point(text);
    transport::adapt(&mut point);
    let serving = serving(&point, inject).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"));
    let nodes = listeners(&point);
    let options = Options { loops: Some(loops), ..Options::default() };
    let running = start(&Arc::new(point), &Arc::new(serving), &nodes, &options);
    let running = running.unwrap_or_else(|e| panic!("{e}"));
    let addrs: Vec<String> = running.listening.iter().map(|l| l.addr.clone()).collect();
    addrs.iter().for_each(|addr| transport::listens(addr));
    RunningBalancer { addr: addrs[0].clone(), addrs, running: Some(running) }
}

/// Serves one node behind a listener.
pub fn serve_node(node: &str) -> RunningBalancer {
    serve(&format!("listen(\"127.0.0.1:0\", {node})"))
}

impl RunningBalancer {
    /// What it says of itself.
    pub fn scrape(&self, format: Exposition) -> String {
        let remote = self.running.as_ref().expect("it runs").remote();
        String::from_utf8(remote.scrape(format)).expect("text")
    }

    /// Its warnings about certificates.
    pub fn warnings(&self) -> Vec<String> {
        self.running.as_ref().expect("it runs").remote().config().warnings
    }

    /// Serves another text from now on.
    pub fn reload(&self, text: &str) {
        let mut point = point(text);
        transport::adapt(&mut point);
        let serving = Arc::new(serving(&point, false).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}")));
        let nodes = listeners(&point);
        let next = NewTopology {
            point: Arc::new(point),
            serving,
            nodes,
            plan: String::new(),
            is_same_text: true,
            notes: Vec::new(),
        };
        let remote = self.running.as_ref().expect("it runs").remote();
        remote.serve_instead(next).expect("it can be served");
    }
}

impl Drop for RunningBalancer {
    fn drop(&mut self) {
        self.addrs.iter().for_each(|addr| transport::ends(addr));
        if let Some(running) = self.running.take() {
            running.remote().drain();
        }
    }
}

/// Milliseconds that something takes, and what it gives.
pub fn timed<T>(what: impl FnOnce() -> T) -> (f64, T) {
    let begun = Instant::now();
    let result = what();
    (begun.elapsed().as_secs_f64() * 1e3, result)
}

/// Sends so many requests at once, each on a connection of its own; returns how many ended with each status.
pub fn statuses_at_once(served: &RunningBalancer, count: usize) -> BTreeMap<u16, usize> {
    let clients: Vec<Conn> = (0..count)
        .map(|_| {
            let mut client = Conn::new(&served.addr);
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            client
        })
        .collect();
    let mut statuses = BTreeMap::new();
    for mut client in clients {
        *statuses.entry(client.response().status).or_default() += 1;
    }
    statuses
}

/// Waits until it holds, 20 s at most.
pub fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it did not come to that in 20 s");
        pause(1);
    }
}

/// Sleeps for this number of milliseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "a scripted peer takes its time; nothing but time is waited for"
)]
pub fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Whether a time in ms is what was asked for, given a machine that others keep busy: never too early, and not by far
/// too late.
#[track_caller]
pub fn near(ms: f64, want: f64) {
    assert!(ms >= want - 0.2 && ms < want + 400.0, "{ms} ms, want {want}");
}

/// The least that something takes in this number of tries, ms: what a busy machine adds is not always there.
pub fn least(tries: u32, time: impl FnMut(u32) -> f64) -> f64 {
    (0..tries).map(time).fold(f64::MAX, f64::min)
}
