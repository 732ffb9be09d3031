//! The engine and its reference against their specification: in any topology (`random`), and to the nanosecond in
//! cases worked out by hand (`cut`, `fail`, `order`). Every self-check is shown to fire.

mod connections;
mod core;
mod cut;
mod draws;
mod engine;
mod fail;
mod fleets;
mod history;
mod hops;
mod lists;
mod loops;
mod order;
mod over_time;
mod processes;
mod random;
mod relayed;
mod served;

use super::branch::Phase;
use super::build::Act;
use super::run::{Reference, Sabotage};
use crate::code::SlotId;
use crate::code::bounds::Cut;
use crate::results::replicate::program;
use crate::results::result::ScenarioResult;
use crate::results::run::{Options, run_with};
use crate::state::source::load;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use weir_model::Traffic;
use weir_plan::{Mode, Plan};
use weir_policy::{Kind, Outcome};
use weir_stats::Key;
use weir_topology::{Request, evaluate};

/// The place of a cut: the kind of node, what the branch did there, and whether a crash killed it.
type Place = (&'static str, &'static str, bool);

/// What a replication exposes to tests only.
#[derive(Default)]
pub(crate) struct Observations {
    /// Request (its place in the order of events), arrival, latency (none if lost) and outcome, in order of their ends.
    pub answers: Vec<(u64, u64, Option<u64>, Outcome)>,
    /// How many branches were cut off at each place.
    pub cuts: BTreeMap<Place, u64>,
    /// How many branches were left behind at each place, because a queue or server finishes its requests.
    pub left: BTreeMap<Place, u64>,
}

impl Reference<'_> {
    /// No two branches of one request that it waits for, and that can have an event pending, have the same rank.
    pub(super) fn see_ranks(&self) {
        if !self.ledger.events.is_multiple_of(16) || self.branches.live > 200 {
            return;
        }
        let waits = |b: &&super::branch::Branch| {
            b.live && b.wanted && b.phase != Phase::Children && b.check == super::build::NONE
        };
        let mut ranks: Vec<_> = self.branches.slots.iter().filter(waits).map(|b| (b.order, b.rank)).collect();
        ranks.sort_unstable();
        assert!(ranks.windows(2).all(|w| w[0] != w[1]), "two branches have one rank");
    }

    /// Called for every branch that is about to be cut off.
    pub(super) fn see_cut(&mut self, slot: SlotId, force: bool) {
        let branch = &self.branches.slots[slot.index()];
        let kind = match self.tables.nodes[branch.stage as usize].act {
            Act::Pass => "pass",
            Act::Answer { .. } => "answer",
            Act::Rewrite { .. } => "rewrite",
            Act::Work { .. } => "delay",
            Act::Cable { .. } => "cable",
            Act::Queue { .. } => "queue",
            Act::Share { .. } => "concurrent",
            Act::Retry { .. } => "retry",
            Act::Fault { fault } => match self.tables.faults[fault as usize].mode {
                Mode::Refuse => "refuse",
                Mode::Crash => "crash",
                Mode::Blackhole => "blackhole",
                Mode::Slow => "slow",
                Mode::Pause => "pause",
            },
            Act::Flaky { .. } => "flaky",
            Act::Warmup { .. } => "warmup",
            Act::Gate { .. } => "gate",
            Act::Timeout { .. } => "timeout",
            Act::Balance { .. } => "lb",
            Act::Sequence { .. } => "sequence",
            Act::Fanout { .. } => "fanout",
            Act::Choose { .. } => "choose",
            Act::Limit { .. } => "limit",
            Act::Hedge { .. } => "hedge",
            Act::Hop { .. } => "hop",
            Act::Connect { .. } => "connection",
        };
        let doing = match branch.phase {
            Phase::Begin => "begins",
            Phase::Out => "out",
            Phase::Back => "back",
            Phase::Line => "line",
            Phase::Inside => "inside",
            Phase::Children => "children",
            Phase::Backoff => "backoff",
            Phase::Cut => "cut",
            Phase::Retake => "retake",
            Phase::Lost => "lost",
        };
        let goes_on = !force && self.outermost_that_goes_on(slot).is_some();
        let of = if goes_on { &mut self.seen.left } else { &mut self.seen.cuts };
        *of.entry((kind, doing, force)).or_default() += 1;
    }
}

fn plan(source: &str) -> Plan {
    evaluate(&request(source)).unwrap_or_else(|e| panic!("{}\n{source}", e[0])).plan
}

/// The plan of a file, unless something is wrong with it.
fn plan_if_valid(source: &str) -> Option<Plan> {
    evaluate(&request(source)).ok().map(|evaluated| evaluated.plan)
}

fn request(source: &str) -> Request {
    Request { name: "test.star".into(), source: source.as_bytes().to_vec(), ..Request::default() }
}

fn options() -> Options {
    Options {
        seed: 1,
        first: 0,
        replications: 1,
        settled_over: None,
        stretch: 1,
        requests: None,
        threads: 1,
        members: false,
        connections: false,
        scenarios: Vec::new(),
    }
}

/// One replication of a plan's only scenario, seed 1. A run of more than 65,536 events is an error: no case here is
/// that long, unless it does not end.
fn run_reference(
    plan: &Plan,
    members: bool,
    sabotage: Option<Sabotage>,
) -> Result<(Observations, Vec<String>), Cut> {
    let (point, scenario) = plan.points[0].grown(&plan.points[0].scenarios[0]);
    let (point, scenario) = point.connected(scenario, false);
    let program = program(point, scenario, members, false, Key::new(1).with(0)).unwrap();
    let key = Key::new(1).with(0);
    let load = load(scenario, scenario.requests, key);
    let (requests, selected) = load.expected();
    let stop = AtomicBool::new(true);
    let mut reference = Reference::new(&program.code, program.tables.as_ref().unwrap(), load, key, &stop);
    reference.sabotage = sabotage;
    // The flag is read every 65,536 events. Requests that wait for a target's health wait for ten thousand changes of it.
    reference.patience = 15;
    reference.run()?;
    let violations = reference.violations(requests, selected);
    Ok((std::mem::take(&mut reference.seen), violations))
}

/// A case worked out by hand.
struct Case {
    plan: Plan,
}

/// The outcome of a case: the answer of each request, in order of arrival, and the figures.
struct CaseOutcome {
    answers: Vec<String>,
    result: ScenarioResult,
}

impl Case {
    /// `root` in this source, with requests at these instants, ms.
    fn new(at_ms: &[u64], source: &str) -> Case {
        Case::with(at_ms, source, "")
    }

    /// The same with further arguments of the scenario.
    fn with(at_ms: &[u64], source: &str, more: &str) -> Case {
        let mut case = Case::from_file(&format!(
            "{source}\nscenario(\"s\", root, traffic.constant(every = 1 * ms), requests = {}, window = \"all\"{more})\n",
            at_ms.len()
        ));
        let arrivals_ns = at_ms.iter().map(|ms| ms * 1_000_000).collect();
        case.plan.points[0].scenarios[0].traffic = Traffic::Trace { file: "t.csv".into(), arrivals_ns };
        case
    }

    /// A whole file with one scenario.
    fn from_file(source: &str) -> Case {
        Case { plan: plan(source) }
    }

    fn run(&self) -> CaseOutcome {
        let (seen, violations) = run_reference(&self.plan, false, None).expect("it ends");
        assert_eq!(violations, Vec::<String>::new());
        let run = |fast| run_with(&self.plan, &options(), &|_, _| {}, &AtomicBool::new(false), fast).unwrap();
        let (mut slow, engine) = (run(false), run(true));
        slow.events = engine.events;
        assert_eq!(slow, engine, "the engine differs");
        let result = slow.scenarios.remove(0);
        let mut answers = seen.answers;
        answers.sort_unstable_by_key(|a| a.0);
        let answers = answers.into_iter().map(|(_, _, latency, outcome)| {
            let said = outcome.map_or("ok", Kind::name);
            match latency {
                Some(ns) => format!("{} {said}", (ns as f64 / 1e3).round() / 1e3),
                None => said.to_owned(),
            }
        });
        CaseOutcome { answers: answers.collect(), result }
    }

    /// Checks the answer of every request: "latency in ms, outcome".
    #[track_caller]
    fn gives(&self, answers: &[&str]) -> CaseOutcome {
        let went = self.run();
        assert_eq!(went.answers, answers);
        went
    }
}

impl CaseOutcome {
    /// The node of that kind (the outermost, if there are several) or name.
    #[track_caller]
    fn node(&self, which: &str) -> &crate::NodeResult {
        let found = self.result.nodes.iter().find(|n| n.name == which || n.kind == which);
        found.unwrap_or_else(|| panic!("no node {which}"))
    }

    /// Its part of the mean latency, ms, to the nanosecond.
    #[track_caller]
    fn part(&self, which: &str) -> f64 {
        (self.node(which).latency_part_ms.value.unwrap() * 1e6).round() / 1e6
    }

    /// Busy slots (or cores), and waiting requests, times ms between the first and last arrival, which were
    /// `apart_ms` apart.
    #[track_caller]
    fn busy_and_waiting(&self, which: &str, apart_ms: f64) -> (f64, f64) {
        let node = self.node(which);
        let ms = |share: Option<f64>| (share.unwrap() * apart_ms * 1e6).round() / 1e6;
        (ms(node.utilisation.value), ms(node.queue_mean.value))
    }

    /// How many errors of that kind a node had.
    #[track_caller]
    fn errors(&self, which: &str, kind: Kind) -> u64 {
        self.node(which).errors.iter().find(|e| e.0 == kind).map_or(0, |e| e.1)
    }
}

/// Each self-check of the reference fires when what it guards is broken.
#[test]
fn every_self_check_fires() {
    let source = r#"
def dyno():
    return queue(timeout(9 * ms, queue(delay(dist.exponential(8 * ms), server()), on_cancel = "skip")))

scenario("s", timeout(12 * ms, lb.least_conn(pool(3, dyno))), traffic.poisson(every = 5 * ms), requests = 500, window = "all")
"#;
    let plan = plan(source);
    let violations = |sabotage| run_reference(&plan, false, sabotage).expect("it ends").1.join("; ");
    assert_eq!(violations(None), "");
    for (sabotage, law) in [
        (Sabotage::LoseBranch, "nothing loses any"),
        (Sabotage::LeakSlot, "left in queues"),
        (Sabotage::LeakCount, "balancers still count"),
        (Sabotage::KeepChild, "conservation: of 500 requests 500 arrived, 6"),
        (Sabotage::ForgetBehind, "utilisation law"),
        (Sabotage::StretchLatency, "Little's law"),
        (Sabotage::StretchLatency, "parts of the latency"),
        (Sabotage::SkipRecord, "of 500 selected requests were counted"),
        (Sabotage::TurnClockBack, "time went back"),
        (Sabotage::ForgetTime, "parts of the latency"),
        (Sabotage::ForgetTime, "utilisation law"),
    ] {
        let said = violations(Some(sabotage));
        assert!(said.contains(law), "{sabotage:?}: {said:?} lacks {law:?}");
    }
}
