//! The state of a replication before its first event.

use super::Reference;
use crate::account::ledger::Ledger;
use crate::code::Code;
use crate::code::changes::{SeenTargets, at_start};
use crate::code::order::Class;
use crate::reference::balance::Instance;
use crate::reference::branch::Branches;
use crate::reference::build::Tables;
use crate::reference::clients::Clients;
use crate::reference::faults::Cells;
use crate::reference::servers::Server;
use crate::state::changes::Changes;
use crate::state::connections::Connections;
use crate::state::guards::COOKIES;
use crate::state::meter::Meter;
use crate::state::pending::Pending;
use crate::state::probes::Probes;
use crate::state::work_left::WorkLeft;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use weir_model::concurrent::Jobs;
use weir_model::draws::purpose;
use weir_model::faulty::Faulty;
use weir_model::pause::ProcessClock;
use weir_model::queue::{Links, Queue};
use weir_model::warmup::Warmup;
use weir_policy::Upstream;
use weir_policy::budget::Tokens;
use weir_policy::config::Balance;
use weir_policy::prequal::Busy;
use weir_policy::rate::RateLimit;
use weir_policy::sticky::{Jar, Simulated};
use weir_stats::Key;
use weir_workload::Load;

impl<'a> Reference<'a> {
    /// `key` is the replication's.
    pub fn new(code: &'a Code, tables: &'a Tables, load: Load, key: Key, stop: &'a AtomicBool) -> Self {
        let choice = |at, n: u32| key.with(purpose::CHOICE).with(place_key(code, at)).with(u64::from(n));
        let draw = |&(of, at): &(u64, u32)| key.with(purpose::DRAW).with(of).with(place_key(code, at));
        let (lines, clocks) = start_lines(code, tables, key.with(purpose::NODE));
        Reference {
            code,
            tables,
            boundary: u64::MAX,
            clients: Clients::new(load),
            pending: Pending::new(),
            branches: Branches::new(code),
            queues: vec![Queue::default(); tables.queue_count as usize],
            links: Links::default(),
            servers: vec![Server::default(); tables.server_count as usize],
            jobs: Jobs::default(),
            balancers: balancers(code, tables, key),
            choices: tables.choice_nodes.iter().map(|&(_, at, number)| choice(at, number)).collect(),
            limits: tables.rates.iter().map(RateLimit::new).collect(),
            budgets: tables.budgets.iter().map(|b| Tokens::new(b, 0)).collect(),
            busy: vec![Busy::default(); if tables.probes { code.members as usize } else { 0 }],
            jar: Jar::new(COOKIES),
            probes: Probes::default(),
            work_left: WorkLeft::new(code, |lb| tables.lbs[lb as usize].balance == Balance::LeastWork),
            checks_live: 0,
            checks_begun: 0,
            flips_since: vec![0; tables.lines.len()],
            flipped_since: Vec::new(),
            lines,
            clocks,
            cells: Cells::default(),
            warmups: vec![Warmup::default(); tables.warmup_count as usize],
            gates: tables.gates.open(),
            changes: Changes::new(code, key),
            connections: Connections::new(code),
            conns: BTreeMap::new(),
            holds: Vec::new(),
            spare_holds: Vec::new(),
            backoffs: tables.retry_nodes.iter().map(|&(at, number)| choice(at, number)).collect(),
            meters: vec![Meter::default(); code.gauge_count as usize],
            draw_keys: code.draw_keys.iter().map(draw).collect(),
            request_key: key.with(purpose::REQUEST),
            now_ns: 0,
            class: Class::Step,
            cut: None,
            stop,
            retried: 0,
            at_once: 0,
            unasked: 0,
            scheduled: 0,
            scratch: Vec::new(),
            excluded: Vec::new(),
            late: None,
            hopped: 0,
            ledger: ledger(code, tables),
            #[cfg(test)]
            sabotage: None,
            #[cfg(test)]
            patience: 0,
            #[cfg(test)]
            seen: Default::default(),
        }
    }
}

fn place_key(code: &Code, place: u32) -> u64 {
    code.place_keys[place as usize]
}

/// The timelines at their start, with the clocks of processes that pause.
fn start_lines(code: &Code, tables: &Tables, key: Key) -> (Vec<Faulty>, Vec<ProcessClock>) {
    tables.lines.iter().map(|line| line.start(code, key)).unzip()
}

/// The balancers at their start; `key` is the replication's.
fn balancers(code: &Code, tables: &Tables, key: Key) -> Vec<Instance> {
    let start = |((i, names), at): ((&crate::code::Instance, &Vec<String>), u32)| {
        let numbered =
            |purpose| key.with(purpose).with(code.place_keys[i.place as usize]).with(u64::from(i.number));
        let own = numbered(purpose::NODE);
        let site = &tables.lbs[i.lb as usize];
        let (weights, balance) = (&code.weights[i.list as usize], &site.balance);
        let view = code.changes.as_deref().and_then(|changes| changes.of_instance(at));
        let seen = view.map(|view| SeenTargets::new(view, weights.len()));
        let first = at_start(code.changes.as_deref(), at, weights.len());
        let (weights, names) = (&weights[..first], &names[..first.min(names.len())]);
        let mut upstream = Upstream::new(balance, site.around.clone(), weights, names, 0, own);
        for meets in 1..if site.shared { 1 } else { tables.loops.most } {
            upstream.add_loop(balance, weights, names, 0, crate::compile::loops::of_loop(own, meets));
        }
        site.counts_every_ns.into_iter().for_each(|every_ns| upstream.keep_counts(every_ns));
        if let Some(subset) = &tables.subsets[at as usize] {
            subset.divide(&mut upstream, names, own);
        }
        let cookie = site.sticky.as_ref();
        let sticky = cookie.map(|(name, file)| Simulated::new(name, file.as_deref(), names));
        let picks = numbered(purpose::CHOICE);
        Instance::new(upstream, sticky, picks, code.lists[i.list as usize], seen, i.lb)
    };
    code.instances.iter().zip(&tables.names).zip(0..).map(start).collect()
}

/// A ledger with the sums that only the reference keeps.
fn ledger(code: &Code, tables: &Tables) -> Ledger {
    Ledger {
        entries: vec![0; tables.entry_count as usize],
        spent: vec![0; code.part_count as usize],
        behind: vec![0; code.gauge_count as usize],
        ..Ledger::new(code)
    }
}
