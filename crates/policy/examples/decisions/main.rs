//! What a decision costs: ns and allocations per pick and return, of every policy, bare and with all that stands around
//! it, beside a naive model of each. `bench/run --decisions` calls it; `bench/README.md` says how to read the tables.
//!
//! Steady state: as many requests in flight as there are targets; at each step one of them, drawn uniformly, comes back
//! and the next is picked, so that hold times are geometric. What the loop itself takes is measured and taken off.
// This program measures, so it may look at a clock and its arguments, which the library may not.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod count;
mod naive;

use naive::Naive;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::Thread;
use std::time::{Duration, Instant};
use weir_policy::config::{
    Balance, Eject, LeastConnArgs, LoopsArgs, MaglevArgs, P2cArgs, PeakEwmaArgs, PrequalArgs, RingHashArgs,
    RoundRobinArgs, Start, Subset, Ties, ZuulArgs,
};
use weir_policy::health::HealthConfig;
use weir_policy::prequal::Reading;
use weir_policy::upstream::UpstreamConfig;
use weir_policy::{Ask, Balancer, PickOutcome, SharedCounts, TargetId, Ticket, Upstream};
use weir_stats::Key;

/// From a pick to its return on average.
const HOLD_NS: u64 = 100_000_000;
/// What one measurement takes, about.
const BATCH: Duration = Duration::from_millis(6);
const NUMBERS: [usize; 3] = [10, 250, 10_000];
const COLUMNS: [&str; 8] = ["naive", "balancer", "upstream", "subset", "eject", "limit", "process", "lagged"];
/// How late counts of other loops are in the column `lagged`, ns.
const LAG_NS: u64 = 10_000_000;
/// The loops among which the targets are divided in the column `subset`, which is one of them.
const LOOPS: u32 = 32;

/// Something that decides.
trait Decide {
    fn pick(&mut self, draw: Key, now_ns: u64) -> Ticket;
    fn done(&mut self, now_ns: u64, ticket: Ticket);
}

/// The loop's own cost.
struct Nothing(u32);

impl Decide for Nothing {
    #[inline]
    fn pick(&mut self, _: Key, at_ns: u64) -> Ticket {
        Ticket { target: TargetId(self.0), probe: false, met: 0, at_ns }
    }
    #[inline]
    fn done(&mut self, _: u64, ticket: Ticket) {
        self.0 = self.0.wrapping_add(ticket.target.0);
    }
}

/// As the simulator's fast engine asks, and as it must where a policy looks at time.
struct Bare {
    lb: Balancer,
    measures: bool,
}

impl Decide for Bare {
    #[inline]
    fn pick(&mut self, draw: Key, now_ns: u64) -> Ticket {
        let target =
            if self.measures { self.lb.ask(&Ask::new(draw, now_ns)) } else { self.lb.pick(draw, &[]) };
        Ticket { target: target.unwrap_or(TargetId(0)), probe: false, met: 0, at_ns: now_ns }
    }
    #[inline]
    fn done(&mut self, now_ns: u64, ticket: Ticket) {
        if self.measures {
            self.lb.finished(now_ns, ticket.target, now_ns - ticket.at_ns, None);
        } else {
            self.lb.done(ticket.target, None);
        }
    }
}

impl Decide for Upstream {
    #[inline]
    fn pick(&mut self, draw: Key, now_ns: u64) -> Ticket {
        // As a loop that serves does before each pick.
        self.see_others(now_ns, |_| {});
        match Upstream::pick(self, &Ask::new(draw, now_ns)) {
            PickOutcome::Target(ticket) => ticket,
            other => unreachable!("{other:?}: half of all places are free"),
        }
    }
    #[inline]
    fn done(&mut self, now_ns: u64, ticket: Ticket) {
        Upstream::done(self, now_ns, ticket, None, Some(200));
    }
}

/// Prequal with its probes, which are a part of what it costs: each target says how many requests it has.
struct Probed<D> {
    lb: D,
    of: fn(&mut D) -> &mut Balancer,
    in_flight: Vec<u32>,
    out: Vec<TargetId>,
}

impl<D: Decide> Probed<D> {
    /// With a few answers in the pool.
    fn new(mut lb: D, of: fn(&mut D) -> &mut Balancer, n: usize) -> Probed<D> {
        if let Some(prequal) = of(&mut lb).prequal() {
            for t in 0..n.min(16) as u32 {
                let reading = Reading { in_flight: t % 5, latency_ns: 1000 * u64::from(t % 7) };
                prequal.probed(0, Key::new(1), TargetId(t), reading);
            }
        }
        Probed { lb, of, in_flight: vec![0; n], out: Vec::with_capacity(8) }
    }
}

impl<D: Decide> Decide for Probed<D> {
    fn pick(&mut self, draw: Key, now_ns: u64) -> Ticket {
        if let Some(prequal) = (self.of)(&mut self.lb).prequal() {
            prequal.to_probe(draw.nth(1), &mut self.out);
            for &t in &self.out {
                let in_flight = self.in_flight[t.index()];
                let reading = Reading { in_flight, latency_ns: u64::from(t.0) * 1000 };
                prequal.probed(now_ns, draw, t, reading);
            }
        }
        let ticket = self.lb.pick(draw, now_ns);
        self.in_flight[ticket.target.index()] += 1;
        ticket
    }
    fn done(&mut self, now_ns: u64, ticket: Ticket) {
        self.in_flight[ticket.target.index()] -= 1;
        self.lb.done(now_ns, ticket);
    }
}

/// What drives one of them.
struct Steady<D> {
    decide: D,
    open: Vec<Ticket>,
    step: u64,
    gap: u64,
}

trait Run {
    fn run(&mut self, steps: u64);
}

impl<D: Decide> Run for Steady<D> {
    #[inline(never)]
    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step += 1;
            let (draw, now) = (Key::from_bits(0x5eed).with(self.step), self.step * self.gap);
            let slot = draw.nth(99).below(self.open.len() as u64) as usize;
            self.decide.done(now, self.open[slot]);
            self.open[slot] = self.decide.pick(draw, now);
        }
    }
}

fn steady<D: Decide + 'static>(decide: D, n: usize) -> Box<dyn Run> {
    Box::new(in_steady_state(decide, n))
}

fn in_steady_state<D: Decide>(mut decide: D, n: usize) -> Steady<D> {
    let open = (0..n as u64).map(|i| decide.pick(Key::new(3).with(i), 0)).collect();
    Steady { decide, open, step: 0, gap: HOLD_NS / n as u64 }
}

/// A loop that counts with another one, which decides at the same time on a core of its own.
struct Beside {
    own: Steady<Upstream>,
    runs: Arc<AtomicBool>,
    other: Thread,
}

impl Beside {
    fn new(each: impl Fn(u32) -> Upstream, n: usize) -> Beside {
        let (own, mut other) = (in_steady_state(each(0), n), in_steady_state(each(1), n));
        let runs = Arc::new(AtomicBool::new(false));
        let told = runs.clone();
        let other = std::thread::spawn(move || {
            loop {
                if told.load(Relaxed) {
                    other.run(64);
                } else {
                    std::thread::park();
                }
            }
        });
        Beside { own, runs, other: other.thread().clone() }
    }
}

impl Run for Beside {
    fn run(&mut self, steps: u64) {
        self.runs.store(true, Relaxed);
        self.other.unpark();
        self.own.run(steps);
        self.runs.store(false, Relaxed);
    }
}

/// The weight of each target.
type Weights = fn(usize) -> f64;

/// Policies by the names of the table, with the weights that make the difference.
fn policies() -> Vec<(&'static str, Balance, Weights)> {
    let equal: Weights = |_| 1.0;
    let few: Weights = |i| [1.0, 2.0, 4.0][i % 3];
    let many: Weights = |i| 1.0 + (i % 97) as f64;
    let p2c = |bias| {
        Balance::P2c(P2cArgs { choices: 2, replacement: false, ties: Ties::Random, error_hold_ns: 0, bias })
    };
    let least = |ties| Balance::LeastConn(LeastConnArgs { ties, error_hold_ns: 0 });
    let turn = Balance::RoundRobin(RoundRobinArgs { start: Start::First });
    let second = 1_000_000_000;
    let zuul = ZuulArgs { load: String::new(), decay_ns: 30 * second, max_load: None };
    vec![
        ("random", Balance::Random, equal),
        ("random, weights", Balance::Random, few),
        ("round_robin", turn.clone(), equal),
        ("round_robin, 3 weights", turn.clone(), few),
        ("round_robin, 97 weights", turn, many),
        ("least_conn", least(Ties::Random), equal),
        ("least_conn, first", least(Ties::First), equal),
        ("least_conn, rotate", least(Ties::Rotate), equal),
        ("least_conn, 3 weights", least(Ties::Random), few),
        ("p2c", p2c(1.0), equal),
        ("p2c, weights, bias 2", p2c(2.0), few),
        ("first", Balance::First, equal),
        (
            "peak_ewma",
            Balance::PeakEwma(PeakEwmaArgs { decay_ns: 10 * second, default_rtt_ns: 30_000_000 }),
            equal,
        ),
        ("zuul", Balance::Zuul(zuul), equal),
        ("ring_hash", Balance::RingHash(RingHashArgs { bound: None }), equal),
        ("ring_hash, bound 1.25", Balance::RingHash(RingHashArgs { bound: Some(1.25) }), equal),
        ("maglev", Balance::Maglev(MaglevArgs { table_size: 65_537, bound: None }), equal),
        ("maglev, bound 1.25", Balance::Maglev(MaglevArgs { table_size: 65_537, bound: Some(1.25) }), equal),
        (
            "prequal, a pool at hand",
            Balance::Prequal(PrequalArgs {
                probes: 0.0,
                pool: 16,
                age_ns: u64::MAX,
                q_rif: 0.84,
                remove: 0.0,
                delta: 1.0,
            }),
            equal,
        ),
        (
            "prequal, three answers too",
            Balance::Prequal(PrequalArgs {
                probes: 3.0,
                pool: 16,
                age_ns: second,
                q_rif: 0.84,
                remove: 1.0,
                delta: 1.0,
            }),
            equal,
        ),
        ("least_work", Balance::LeastWork, equal),
    ]
}

fn around(column: &str) -> UpstreamConfig {
    let eject = Eject { consecutive: 5, base_ns: 1_000_000_000, max_ns: 60_000_000_000, max_percent: 50.0 };
    match column {
        "eject" => UpstreamConfig {
            health: HealthConfig { eject: Some(eject), ..HealthConfig::default() },
            ..UpstreamConfig::default()
        },
        "limit" => UpstreamConfig { max_in_flight: Some(2), ..UpstreamConfig::default() },
        _ => UpstreamConfig::default(),
    }
}

/// One figure of the table, ready to run; nothing where there is no naive model, or the policy takes no subset.
fn cell(balance: &Balance, weights: &[f64], column: &str) -> Option<Box<dyn Run>> {
    let n = weights.len();
    let names: Vec<String> = (0..n).map(|i| format!("10.0.{}.{}:80", i / 250, i % 250)).collect();
    let (probes, draw) = (balance.traits().probes, Key::new(2));
    Some(match column {
        "naive" => steady(Naive::new(balance, weights, &names)?, n),
        "balancer" => {
            let lb = Balancer::with_names(balance, weights, &names, draw);
            let lb = Bare { lb, measures: balance.traits().measures };
            if probes { steady(Probed::new(lb, |bare| &mut bare.lb, n), n) } else { steady(lb, n) }
        }
        "process" | "lagged" => {
            balance.shares_counts().then_some(())?;
            let (late_ns, counts) = (
                if column == "lagged" { LAG_NS } else { 0 },
                SharedCounts::default().with_room(n).with_followers(2),
            );
            let each = |number| {
                let mut lb = Upstream::new(balance, around(column), weights, &names, 0, draw);
                lb.share_counts(number, late_ns, counts.clone(), false);
                lb
            };
            Box::new(Beside::new(each, n))
        }
        _ => {
            let mut lb = Upstream::new(balance, around(column), weights, &names, 0, draw);
            if column == "subset" {
                let subset = Subset::Loops(LoopsArgs { min: 25, max: 50 });
                balance.takes_subsets().then(|| lb.keep_subsets(0, subset, LOOPS, &names, draw))?;
            }
            if probes { steady(Probed::new(lb, Upstream::balancer, n), n) } else { steady(lb, n) }
        }
    })
}

/// A cell that has run in: how many steps make a batch, and what was measured.
struct Measured {
    cell: Box<dyn Run>,
    batch: u64,
    ns: Vec<f64>,
    steps: u64,
    allocations: u64,
}

impl Measured {
    fn new(mut cell: Box<dyn Run>, n: usize) -> Measured {
        let (mut batch, begun) = (16, Instant::now());
        // Until it has been warm for a batch and, unless that takes too long, each request has come back some times.
        let mut run = 0;
        let batch = loop {
            let start = Instant::now();
            cell.run(batch);
            let took = start.elapsed();
            run += batch;
            if took < BATCH / 2 {
                batch *= 2;
            } else if run > 8 * n as u64 || begun.elapsed() > 20 * BATCH {
                break batch;
            }
        };
        Measured { cell, batch, ns: Vec::with_capacity(1000), steps: 0, allocations: 0 }
    }

    fn measure(&mut self) {
        let (before, start) = (count::allocations(), Instant::now());
        self.cell.run(self.batch);
        self.ns.push(start.elapsed().as_nanos() as f64 / self.batch as f64);
        self.allocations += count::allocations() - before;
        self.steps += self.batch;
    }

    fn median(&mut self) -> f64 {
        self.ns.sort_by(f64::total_cmp);
        self.ns[self.ns.len() / 2]
    }
}

fn table(n: usize, rounds: usize, only: &str) {
    let mut empty = Measured::new(steady(Nothing(0), n), n);
    let mut rows: Vec<(&str, Vec<Option<Measured>>)> = Vec::new();
    for (name, balance, weight) in policies().into_iter().filter(|p| p.0.contains(only)) {
        let weights: Vec<f64> = (0..n).map(weight).collect();
        let measured = |column| cell(&balance, &weights, column).map(|cell| Measured::new(cell, n));
        rows.push((name, COLUMNS.into_iter().map(measured).collect()));
    }
    for _ in 0..rounds {
        empty.measure();
        rows.iter_mut().flat_map(|row| row.1.iter_mut().flatten()).for_each(Measured::measure);
    }
    let own = empty.median();
    println!("{n} targets (ns; the loop's own {own:.1} taken off):\n");
    println!("| policy | {} | allocations |\n|{}", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len() + 2));
    for (name, cells) in &mut rows {
        print!("| {name} |");
        for cell in cells.iter_mut() {
            match cell {
                Some(cell) => print!(" {:.0} |", (cell.median() - own).max(0.0)),
                None => print!(" – |"),
            }
        }
        // The naive models may allocate.
        let most =
            cells[1..].iter().flatten().map(|c| c.allocations as f64 / c.steps as f64).fold(0.0, f64::max);
        println!(" {} |", if most == 0.0 { "0".into() } else { format!("{most:.6}") });
    }
    println!();
}

/// `decisions [--rounds N] [--only POLICY]`, or for profilers `decisions POLICY COLUMN TARGETS STEPS`.
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [policy, column, n, steps] = &args[..]
        && !policy.starts_with("--")
    {
        let (n, steps) = (n.parse().expect("a number of targets"), steps.parse().expect("a number of steps"));
        let found = policies().into_iter().find(|p| p.0 == policy);
        let cell = match found {
            Some((_, balance, weight)) => cell(&balance, &(0..n).map(weight).collect::<Vec<_>>(), column),
            None if policy == "nothing" => Some(steady(Nothing(0), n)),
            None => None,
        };
        return cell.expect("a policy and a column of the table, or `nothing`").run(steps);
    }
    let after = |name| args.iter().position(|a| a == name).and_then(|at| args.get(at + 1));
    let rounds = after("--rounds").map_or(9, |r| r.parse().expect("a number of rounds")).max(1);
    NUMBERS.into_iter().for_each(|n| table(n, rounds, after("--only").map_or("", |o| o)));
}
