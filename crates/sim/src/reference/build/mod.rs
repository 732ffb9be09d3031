//! Compiles the blocks of a scenario to what each of their stages does.

mod nodes;
mod sites;

use crate::code::MemberId;
use crate::code::StageId;
use crate::code::changes::{Birth, ChangeTables};
use crate::code::connections::ConnectionTables;
use crate::code::{Code, NOT};
use crate::compile::blocks::{Draft, End, Layout, MOST, inside, offset, spare};
use crate::compile::loops::Loops;
use crate::compile::owners::Owners;
use std::collections::{BTreeMap, BTreeSet};
use weir_model::concurrent;
use weir_model::draws::of_place as purpose;
use weir_model::queue::Limits;
use weir_model::sampler::Sampler;
use weir_plan::processes::process_of;
use weir_plan::rewriting::Kinds;
use weir_plan::serving::named_server;
use weir_plan::{Clock, Connecting, Edge, Faulty, Line, Mode, Scenario, Spec};
use weir_policy::Kind;

pub(crate) use sites::*;

/// Builds the tables of stages. With `members`, statistics are kept for every member.
pub(crate) fn build(layout: Layout, scenario: &Scenario, members: bool) -> Result<(Code, Tables), String> {
    layout.refuse_unbuilt()?;
    let code = Code { every_ns: scenario.every_ns, ..layout.code(members) };
    let blocks = layout.reached().filter_map(|(id, spec)| match spec {
        Spec::Faulty(Faulty { line: Line::Block(block), .. }) => Some((layout.place(id), *block)),
        _ => None,
    });
    let (blocks, lines, beginnings) = (blocks.collect(), BTreeMap::new(), BTreeMap::new());
    let (tables, instances) = (Tables { loops: Loops::new(&layout), ..Tables::default() }, BTreeMap::new());
    let kinds =
        Kinds::new(layout.point, scenario).ok_or("there are too many kinds of requests to simulate")?;
    let (process_of, pause_lines) = (process_of(layout.point), BTreeMap::new());
    let connections = ConnectionTables::new(&layout, tables.loops.outermost, tables.loops.first);
    let reports = layout.reports();
    let mut b = Builder {
        layout,
        code,
        tables,
        lines,
        process_of,
        pause_lines,
        reports,
        blocks,
        beginnings,
        instances,
        scenario,
        kinds,
        born: Vec::new(),
        connections,
    };
    b.mix();
    b.place_blocks()?;
    b.find_repeated_places();
    b.find_repeated_choices();
    b.find_restarts();
    b.find_outside();
    b.find_births();
    b.find_connections();
    let Builder { layout, mut code, mut tables, .. } = b;
    let lists: Vec<u32> =
        tables.group_lists.iter().copied().chain(tables.choice_nodes.iter().map(|c| c.0)).collect();
    layout.finish(&mut code, &lists)?;
    tables.spares = tables.spare_nodes.iter().map(|&id| layout.target(id)).collect();
    tables.notes |= tables.loses;
    // The steps of call targets are stages here.
    (tables.start, tables.start_member) = (code.start.pc, code.start.member);
    Ok((code, tables))
}

pub(super) struct Builder<'a> {
    pub(super) layout: Layout<'a>,
    pub(super) code: Code,
    pub(super) tables: Tables,
    /// Timelines that several nodes share.
    lines: BTreeMap<Line, u32>,
    /// By plan node: the node whose pauses stop it, and the timeline of each that pauses.
    process_of: Vec<Option<u32>>,
    pause_lines: BTreeMap<u32, u32>,
    /// By plan node: whether it reports its load; empty where no balancer reads that.
    reports: Vec<bool>,
    /// Site and number of every `block(...)` that requests can reach.
    blocks: BTreeSet<(u32, u32)>,
    /// What begins with each plan node, and anew with its process.
    beginnings: BTreeMap<u32, Birth>,
    /// The balancer of each plan node that is one.
    pub(super) instances: BTreeMap<u32, u32>,
    pub(super) scenario: &'a Scenario,
    /// The kinds of the scenario's requests.
    pub(super) kinds: Kinds,
    /// What begins with a node, where it joins during the run.
    born: Vec<(u32, Birth)>,
    connections: ConnectionTables,
}

impl Builder<'_> {
    /// Finds the changes of fleets, and what begins with newcomers.
    fn find_births(&mut self) {
        self.born.extend(self.beginnings.iter().map(|(&node, &birth)| (node, birth)));
        let (point, instances) = (self.layout.point, &self.code.instances);
        self.code.changes =
            ChangeTables::new(point, self.scenario, instances, &self.born, &self.tables.driven);
    }

    fn place_blocks(&mut self) -> Result<(), String> {
        let mut drafts = std::mem::take(&mut self.layout.drafts);
        for (block, draft) in drafts.iter_mut().enumerate() {
            let first = self.layout.add_stages(&mut self.code, block as u32, draft);
            draft.pc = first;
            let calls = (draft.end == End::Call).then(|| self.layout.add_call(&mut self.code, draft));
            for position in 0..draft.chain.len() {
                let stage = first + position as u32;
                let act = self.act(StageId(stage), draft, position);
                if let Act::Queue { .. } | Act::Share { .. } = act {
                    let shares = matches!(act, Act::Share { .. });
                    self.connections.add_entrance(draft, position, stage, shares);
                }
                let last = position + 1 == draft.chain.len();
                let next = match calls {
                    _ if !last => Next::Stage,
                    Some(call) => Next::Call(call),
                    None => Next::Leaf,
                };
                let stage = &mut self.code.stages[first as usize + position];
                let entries = self.tables.entry_count.wrapping_sub(draft.base);
                self.tables.entry_count += draft.nodes[0].len() as u32;
                stage.entries = Some(entries);
                self.tables.nodes.push(Node { act, next, first, part: stage.part, entries });
            }
            if self.tables.entry_count as usize > MOST {
                return Err("the topology has too many different nodes to simulate".into());
            }
        }
        self.layout.drafts = drafts;
        Ok(())
    }

    /// Whether the answers of a stage report its load.
    fn reports_load(&self, draft: &Draft, position: usize) -> bool {
        draft.nodes[position].iter().any(|&node| self.reports.get(node as usize) == Some(&true))
    }

    fn act(&mut self, stage: StageId, draft: &Draft, position: usize) -> Act {
        let (site, spec) = draft.chain[position];
        let point = self.layout.point;
        let place = point.sites[site as usize].place;
        let (pause, reports) = (self.pauses_of(draft, position), self.reports_load(draft, position));
        let is_outermost = self.tables.loops.outermost == draft.nodes[position].first().copied();
        match &point.specs[spec as usize] {
            Spec::Server { .. }
            | Spec::Weight { .. }
            | Spec::Fleet(_)
            | Spec::Timeout { time_ns: None }
            | Spec::Buffered { .. } => Act::Pass,
            Spec::Listen(_) if is_outermost => Act::Pass,
            Spec::Listen(listen) => self.hop(listen.loops.unwrap_or(1), place, draft, position),
            Spec::Connection(connecting) => self.connection(stage, connecting, draft, position),
            Spec::Rewrite(_) => self.rewrite(spec),
            Spec::Redirect { status, .. } | Spec::Respond { status, .. } => Act::Answer { status: *status },
            Spec::Timeout { time_ns: Some(ns) } => Act::Timeout { ns: *ns },
            Spec::Delay { time } => {
                let draw = Draw { pause, ..self.draw(time, purpose::WORK, place) };
                self.tables.draws.push(draw);
                Act::Work { draw: self.tables.draws.len() as u32 - 1 }
            }
            Spec::Cable { time, loss, resend_ns } => self.cable(time, *loss, *resend_ns, place),
            Spec::Queue { concurrency, capacity, timeout_ns, on_cancel } => {
                if capacity.is_some() {
                    self.layout.add_refusals(&mut self.code, stage, draft);
                }
                let limits = Limits { concurrency: *concurrency, capacity: capacity.unwrap_or(u64::MAX) };
                self.queue(limits, *timeout_ns, *on_cancel, stage, draft, reports)
            }
            spec @ Spec::Concurrent { work, cores, contention, coherency, threads, on_cancel, .. } => {
                let law = concurrent::Law::new(*cores, *contention, *coherency, *threads);
                let law = self.with_threads(law, spec, &draft.nodes[position]);
                let gauge = self.gauge(stage, draft, *cores);
                let work = Draw { pause, ..self.draw(work, purpose::WORK, place) };
                self.share(law, work, *on_cancel, gauge, draft, reports)
            }
            Spec::Retry(config) => self.retry(config, draft, position),
            Spec::Faulty(fault) => self.fault(fault, stage, draft, position),
            Spec::Flaky { p, kind } => self.flaky(*p, *kind, place),
            Spec::Warmup(law) => self.warmup(*law, draft, position),
            Spec::Gate(args) => self.gate(args, draft, position),
            Spec::Lb(lb) => self.balance(lb, draft, position),
            Spec::Route { .. } | Spec::Split { .. } => {
                self.choice(&point.specs[spec as usize], draft, position)
            }
            Spec::Rate { rate, key } => {
                self.layout.add_refusals(&mut self.code, stage, draft);
                self.limit(rate.clone(), key.as_ref(), draft)
            }
            Spec::Hedge(hedged) => {
                self.code.stages[stage.index()].parallel = true;
                self.hedge(hedged, draft)
            }
            Spec::Sequence => Act::Sequence { group: self.group(draft, position, 0) },
            Spec::Fanout { need } => {
                self.tables.notes = true;
                Act::Fanout { group: self.group(draft, position, *need) }
            }
        }
    }

    fn connection(&mut self, stage: StageId, spec: &Connecting, draft: &Draft, position: usize) -> Act {
        let nodes = &draft.nodes[position];
        let server = nodes.first().and_then(|node| named_server(self.layout.point, *node));
        let Some(server) = server else { return Act::Pass };
        let key = self.key(purpose::CONNECT, self.layout.place(server)).key;
        self.layout.add_refusals(&mut self.code, stage, draft);
        Act::Connect { at: self.connections.add_site(&self.layout, spec, nodes, draft.base, stage, key) }
    }

    /// Finds what follows from all servers and listeners.
    fn find_connections(&mut self) {
        let mut lines = BTreeMap::new();
        for stage in 0..self.code.stages.len() {
            let Act::Fault { fault } = self.tables.nodes[stage].act else { continue };
            let site = &self.tables.faults[fault as usize];
            let stage = &self.code.stages[stage];
            let base = self.code.blocks[stage.block as usize].base;
            for (&node, member) in stage.nodes.iter().zip((base..).map(MemberId)) {
                let line = self.tables.fault_lines[member.index_from(site.offset)];
                if site.mode == Mode::Crash && self.tables.lines[line as usize].eager_crash {
                    lines.insert(node, line);
                }
            }
        }
        let mut connections = std::mem::take(&mut self.connections);
        if !connections.sites.is_empty() {
            connections.finish(&self.layout, &self.code, &lines);
            self.code.connections = Some(Box::new(connections));
        }
    }

    fn hop(&mut self, loops: u32, place: u32, draft: &Draft, position: usize) -> Act {
        let key = self.key(purpose::HOP, place);
        let offset = self.connections.add_instances(&draft.nodes[position], loops, draft.base);
        self.tables.hops.push(HopSite { loops, key, offset });
        Act::Hop { hop: self.tables.hops.len() as u32 - 1 }
    }

    fn flaky(&mut self, p: f64, kind: Kind, place: u32) -> Act {
        let key = self.key(purpose::FAILURE, place);
        self.tables.flaky.push(FlakySite { p, kind, key });
        Act::Flaky { flaky: self.tables.flaky.len() as u32 - 1 }
    }

    fn gauge(&mut self, stage: StageId, draft: &Draft, slots: f64) -> u32 {
        let gauge = offset(self.code.gauge_count, draft.base, self.code.mask);
        self.code.gauge_count += if self.code.mask == 0 { 1 } else { draft.nodes[0].len() as u32 };
        let stage = &mut self.code.stages[stage.index()];
        stage.gauge = Some(gauge);
        stage.slots = slots;
        gauge
    }

    fn key(&mut self, purpose: u64, place: u32) -> DrawKey {
        DrawKey { key: self.layout.draw_key(&mut self.code, purpose, place), visits: None }
    }

    fn draw(&mut self, time: &weir_model::Dist, purpose: u64, place: u32) -> Draw {
        Draw { sampler: Sampler::new(time), key: self.key(purpose, place), pause: None }
    }

    /// The pauses that stop a stage, where any does.
    fn pauses_of(&mut self, draft: &Draft, position: usize) -> Option<u32> {
        let processes: Vec<Option<u32>> =
            draft.nodes[position].iter().map(|&node| self.process_of[node as usize]).collect();
        if processes.iter().all(Option::is_none) {
            return None;
        }
        self.tables.scales = true;
        let offset = (self.tables.pauses.len() as u32).wrapping_sub(draft.base);
        for process in processes {
            let line = process.map_or(NONE, |process| self.pause_line(process));
            self.tables.pauses.push(line);
        }
        Some(offset)
    }

    /// The timeline of a node that pauses.
    fn pause_line(&mut self, node: u32) -> u32 {
        if let Some(&known) = self.pause_lines.get(&node) {
            return known;
        }
        let point = self.layout.point;
        let Spec::Faulty(fault) = &point.specs[point.nodes[node as usize].spec as usize] else { return NONE };
        let line = self.line(fault, node);
        self.pause_lines.insert(node, line);
        line
    }

    fn fault(&mut self, fault: &Faulty, stage: StageId, draft: &Draft, position: usize) -> Act {
        let offset = (self.tables.fault_lines.len() as u32).wrapping_sub(draft.base);
        for &node in &draft.nodes[position] {
            let line = if fault.mode == Mode::Pause { self.pause_line(node) } else { self.line(fault, node) };
            self.tables.lines[line as usize].eager_crash |=
                fault.mode == Mode::Crash && fault.clock == Clock::Eager;
            self.tables.fault_lines.push(line);
        }
        match fault.mode {
            Mode::Refuse | Mode::Crash => self.layout.add_refusals(&mut self.code, stage, draft),
            Mode::Blackhole => self.tables.loses = true,
            Mode::Slow | Mode::Pause => self.tables.scales = true,
        }
        let (mode, slow, checks_pass) = (fault.mode, fault.slow, fault.checks_pass);
        self.tables.faults.push(FaultSite { mode, slow, checks_pass, offset });
        Act::Fault { fault: self.tables.faults.len() as u32 - 1 }
    }

    /// The timeline of a faulty node.
    fn line(&mut self, fault: &Faulty, node: u32) -> u32 {
        if let Some(&known) = self.lines.get(&fault.line) {
            return known;
        }
        let place = self.layout.place(node);
        let key = match &fault.line {
            Line::Own | Line::Driven(_) => LineKey::Node(place, self.layout.number[node as usize]),
            Line::Together(name) => LineKey::Name(name.clone()),
            // Numbered among those of their site: what the file creates elsewhere changes nothing.
            Line::Block(block) => {
                LineKey::Node(place, self.blocks.range((place, 0)..(place, *block)).count() as u32)
            }
        };
        let law = fault.law();
        let line = self.tables.lines.len() as u32;
        let is_driven = matches!(fault.line, Line::Driven(_));
        self.tables.lines.push(LineSite { law, key, eager_crash: false, is_driven, anew: Vec::new() });
        match fault.line {
            Line::Driven(_) => self.tables.driven.push((node, line)),
            Line::Own => self.born.push((node, Birth::Line(line))),
            Line::Block(_) => {
                self.born.push((node, Birth::Line(line)));
                self.lines.insert(fault.line.clone(), line);
            }
            Line::Together(_) => _ = self.lines.insert(fault.line.clone(), line),
        }
        line
    }

    fn group(&mut self, draft: &Draft, position: usize, need: u32) -> u32 {
        let offset = (self.tables.group_lists.len() as u32).wrapping_sub(draft.base);
        for &node in &draft.nodes[position] {
            let Edge::List(list) = self.layout.point.nodes[node as usize].to else { continue };
            self.tables.group_lists.push(list);
        }
        self.tables.groups.push(GroupSite { need, offset });
        self.tables.groups.len() as u32 - 1
    }

    /// Gives a visit counter to each place that a request can pass more than once on one way.
    fn find_repeated_places(&mut self) {
        let mut counters: Vec<Option<u32>> = vec![None; self.code.draw_keys.len()];
        let mut of_place: BTreeMap<u32, bool> = BTreeMap::new();
        for (counter, &(_, place)) in counters.iter_mut().zip(&self.code.draw_keys) {
            if *of_place.entry(place).or_insert_with(|| self.layout.most_visits(place) > 1) {
                *counter = Some(self.code.visits as u32);
                self.code.visits += 1;
            }
        }
        let give = |key: &mut DrawKey| key.visits = counters[key.key as usize];
        self.tables.draws.iter_mut().for_each(|d| give(&mut d.key));
        self.tables.servers.iter_mut().for_each(|s| give(&mut s.work.key));
        self.tables.flaky.iter_mut().for_each(|f| give(&mut f.key));
        self.tables.hops.iter_mut().for_each(|h| give(&mut h.key));
        self.connections.sites.iter_mut().for_each(|c| c.visits = counters[c.key as usize]);
        for cable in &mut self.tables.cables {
            for key in [&mut cable.out.key, &mut cable.back.key, &mut cable.lost_out, &mut cable.lost_back] {
                give(key);
            }
        }
    }

    /// Gives a visit counter to each choosing node that one request can pass twice (only behind a `sequence`).
    fn find_repeated_choices(&mut self) {
        if !self.layout.reached().any(|(_, spec)| matches!(spec, Spec::Sequence)) {
            return;
        }
        for stage in 0..self.code.stages.len() {
            let of_stage = match self.tables.nodes[stage].act {
                Act::Balance { lb } => (&mut self.tables.visits_of_lbs, self.tables.lbs[lb as usize].offset),
                Act::Choose { choice } => {
                    (&mut self.tables.visits_of_choices, self.tables.choices[choice as usize].offset)
                }
                Act::Retry { retry } => {
                    (&mut self.tables.visits_of_retries, self.tables.retries[retry as usize].offset)
                }
                _ => continue,
            };
            let (counters, offset) = of_stage;
            let stage = &self.code.stages[stage];
            let base = self.code.blocks[stage.block as usize].base;
            for (&node, member) in stage.nodes.iter().zip((base..).map(MemberId)) {
                if self.layout.most_visits_of(|id| id == node) > 1 {
                    counters.insert(member.number_from(offset), self.code.visits as u32);
                    self.code.visits += 1;
                }
            }
        }
    }

    /// Finds what begins anew when a process restarts that changes drive: what belongs to it alone.
    fn restart_driven(&mut self) {
        let is_crash = |node: u32| matches!(self.layout.point.spec(node), Some(Spec::Faulty(of)) if of.mode == Mode::Crash);
        let driven = self.tables.driven.iter().copied();
        let driven: BTreeMap<u32, u32> = driven.filter(|(node, _)| is_crash(*node)).collect();
        let owners = Owners::new(&self.layout, &driven.keys().copied().collect());
        for (&node, &birth) in &self.beginnings {
            for entrance in owners.around(node) {
                self.tables.lines[driven[&entrance] as usize].anew.push(birth);
            }
        }
    }

    /// Finds what begins anew when a process restarts.
    fn find_restarts(&mut self) {
        if self.beginnings.is_empty() {
            return;
        }
        self.restart_driven();
        let point = self.layout.point;
        let faults = (0..self.code.stages.len()).filter_map(|s| match self.tables.nodes[s].act {
            Act::Fault { fault } if self.tables.faults[fault as usize].mode == Mode::Crash => {
                Some((s, fault))
            }
            _ => None,
        });
        for (stage, fault) in faults.collect::<Vec<_>>() {
            let stage = &self.code.stages[stage];
            let base = self.code.blocks[stage.block as usize].base;
            for (&node, member) in stage.nodes.iter().zip((base..).map(MemberId)) {
                let site = &self.tables.faults[fault as usize];
                let line = self.tables.fault_lines[member.index_from(site.offset)];
                if self.tables.lines[line as usize].is_driven {
                    continue;
                }
                let mut seen = BTreeSet::new();
                let mut stack = vec![node];
                while let Some(id) = stack.pop() {
                    if !seen.insert(id) {
                        continue;
                    }
                    self.tables.lines[line as usize].anew.extend(self.beginnings.get(&id));
                    stack.extend(spare(point, id));
                    match inside(point, id) {
                        Edge::None => {}
                        Edge::Node(child) => stack.push(child),
                        Edge::List(l) => stack.extend(&point.lists[l as usize]),
                    }
                }
            }
        }
        for line in &mut self.tables.lines {
            line.anew.sort_unstable();
            line.anew.dedup();
        }
    }
}

/// No branch, cell or stage.
pub(crate) const NONE: u32 = NOT;
