//! Compiles the blocks of a scenario to the linear [`Code`] that the engine runs.
//!
//! It runs once per scenario and uses only `code`; nothing here is reached while a replication runs, apart from the
//! keys of event loops ([`loops`]).

mod attempts;
pub(crate) mod blocks;
mod connections;
pub(crate) mod ends;
mod fanout;
mod fault_timelines;
mod gates;
pub(crate) mod guards;
mod hedges;
mod hops;
mod load_reports;
mod lookahead;
pub(crate) mod loops;
pub(crate) mod owners;
mod pauses;
mod places;
mod plain;
mod reach;
pub(crate) mod request_kinds;
pub(crate) mod revisits;
mod sequence;
mod waits;
mod warmup;
mod work_ahead;

use crate::code::StageId;
use crate::code::changes::{Birth, ChangeTables};
use crate::code::connections::ConnectionTables;
use crate::code::guards::BalancerNesting;
use crate::code::revisits::VisitCounters;
use crate::code::{Code, ColdOp, NOT, Op, Step};
use crate::compile::blocks::{Draft, End, Layout, MOST};
use crate::compile::guards::probed;
use crate::compile::loops::Loops;
use crate::compile::revisits::passed_again;
use std::collections::BTreeMap;
use weir_model::draws::of_place as purpose;
use weir_model::queue::Limits;
use weir_model::{Dist, Traffic, concurrent};
use weir_plan::processes::process_of;
use weir_plan::rewriting::Kinds;
use weir_plan::{Line, Mode, NodeId, Scenario, Spec};
use weir_policy::Kind;

/// Compiles a layout. With `members`, statistics are kept for every member.
pub(crate) fn compile(layout: Layout, scenario: &Scenario, members: bool) -> Result<Code, String> {
    layout.refuse_unbuilt()?;
    let mut code = layout.code(members);
    code.patience_ns = scenario.patience_ns;
    code.every_ns = scenario.every_ns;
    code.takes_as_get = scenario.mix.is_empty();
    let shapes =
        Kinds::new(layout.point, scenario).ok_or("there are too many kinds of requests to simulate")?;
    let loops = Loops::new(&layout);
    (code.first_loops, code.loops) = (loops.first, loops.most);
    code.cuts = code.loops > 1;
    let can_be_cut = layout.find_cuttable(scenario.patience_ns.is_some());
    let (scaled, unreached) = (layout.behind(false, is_scaling), layout.leads_to(is_unreachable));
    let (again, loses) = (passed_again(&layout), layout.loses());
    let process_of = process_of(layout.point);
    let connections = ConnectionTables::new(&layout, loops.outermost, loops.first);
    let elsewhere = layout.open_elsewhere();
    let inside = layout.behind(false, |spec| matches!(spec, Spec::Lb(_)));
    let (beginnings, probed, checked) = (BTreeMap::new(), probed(&layout), layout.checked());
    let (known_work, reports) = (layout.known_work(), layout.reports());
    let mut c = Compiler {
        layout,
        wait_ns: 0,
        code,
        shapes,
        outermost: loops.outermost,
        can_be_cut,
        scaled,
        unreached,
        checked,
        probed,
        known_work,
        reports,
        again,
        elsewhere,
        inside,
        beginnings,
        here: false,
        scales: false,
        process_of,
        pause_lines: BTreeMap::new(),
        pause: None,
        loses,
        open_limits: Vec::new(),
        born: Vec::new(),
        connections,
    };
    c.find_kinds(scenario);
    c.find_failing_blocks();
    c.emit()?;
    c.find_restarts();
    c.find_repeated_places();
    link(c, scenario)
}

/// Whether work behind a node may take longer than elsewhere.
fn is_scaling(spec: &Spec) -> bool {
    match spec {
        Spec::Warmup(_) => true,
        Spec::Faulty(fault) => fault.mode == Mode::Slow,
        _ => false,
    }
}

/// Whether a node may be one to which no connection can be had.
fn is_unreachable(spec: &Spec) -> bool {
    match spec {
        Spec::Flaky { kind, .. } => *kind == Kind::ConnectFailed,
        Spec::Faulty(fault) => fault.mode == Mode::Crash,
        // The balancers outside are notified when no target is left inside.
        Spec::Lb(lb) => lb.health.is_some() || lb.eject.is_some() || lb.outlier.is_some(),
        Spec::Connection(connecting) => connecting.may_fail(),
        _ => false,
    }
}

/// Connects the blocks, once all are emitted, and finds what holds for the whole code.
fn link(c: Compiler, scenario: &Scenario) -> Result<Code, String> {
    let Compiler { layout, mut code, again, loses, mut born, beginnings, mut connections, .. } = c;
    born.extend(beginnings);
    code.changes = ChangeTables::new(layout.point, scenario, &code.instances, &born, &code.lines.driven);
    VisitCounters::find(&layout, &mut code, &again);
    if code.guards.sites.iter().any(|site| site.watches) {
        code.guards.behind = BalancerNesting::new(layout.point, &code.guards.of_node, code.instances.len());
    }
    let lists: Vec<u32> =
        code.kinds.nodes.iter().map(|node| node.0).chain(code.groups.lists.iter().copied()).collect();
    let root_block = layout.finish(&mut code, &lists)?;
    code.guards.spares = code.guards.spare_nodes.iter().map(|&id| layout.target(id)).collect();
    code.loses = loses;
    code.notes = code.loses || code.branches;
    code.details |= code.branches;
    code.goes_on |= code.branches;
    let closed = matches!(scenario.traffic, Traffic::Closed { .. });
    code.cuts |= code.details || code.notes || closed;
    code.charges = code.notes || code.goes_on;
    if !connections.sites.is_empty() {
        code.cuts = true;
        let eager = |line: &u32| code.lines.lines[*line as usize].eager;
        let lines = code.lines.crashing.iter().copied().filter(|(_, line)| eager(line)).collect();
        connections.finish(&layout, &code, &lines);
        code.connections = Some(Box::new(connections));
    }
    // Nothing leads to the root, so its block has one member and its return ends the request.
    let next = layout.drafts.get(root_block + 1).map_or(code.steps.len(), |d| d.pc as usize);
    code.steps[next - 1].op = Op::End;
    code.limit_depth += usize::from(code.patience_ns.is_some());
    let checks = code.guards.sites.iter().any(|site| site.checks());
    code.ends_in_turn = checks;
    code.limit_depth += usize::from(checks);
    code.cuts |= code.limit_depth > 0;
    if !closed {
        lookahead::find(&mut code);
    }
    Ok(code)
}

pub(crate) struct Compiler<'a> {
    pub layout: Layout<'a>,
    /// The constant waits before the next step.
    wait_ns: u64,
    pub code: Code,
    /// The kinds of the scenario's requests.
    pub shapes: Kinds,
    /// The listener where requests come in.
    outermost: Option<u32>,
    /// By plan node: whether it can be cut off, whether nodes around lengthen its work, and whether a failed
    /// connection may be reported from behind it.
    can_be_cut: Vec<bool>,
    scaled: Vec<bool>,
    unreached: Vec<bool>,
    /// Whether health checks may reach it.
    checked: Vec<bool>,
    /// Whether a balancer probes it; empty where none does.
    probed: Vec<bool>,
    /// Whether a balancer uses its work.
    pub known_work: Vec<bool>,
    /// Whether it reports its load to a balancer that reads that; empty where none does.
    reports: Vec<bool>,
    /// Whether one way can pass it more than once, and it chooses.
    pub again: Vec<bool>,
    /// Whether other branches of a request may determine the targets that it excludes.
    pub elsewhere: Vec<bool>,
    /// Whether it is behind a balancer.
    inside: Vec<bool>,
    /// What begins with each plan node, and anew with its process.
    pub beginnings: BTreeMap<u32, Birth>,
    /// Whether requests can be cut off at the stage that is being emitted, and whether its work may be lengthened.
    pub here: bool,
    scales: bool,
    /// By plan node: the node whose pauses stop it, and the timeline of each that pauses.
    pub process_of: Vec<Option<NodeId>>,
    pub pause_lines: BTreeMap<NodeId, u32>,
    /// The pauses that stop the stage that is being emitted ([`DrawSite::pause`](crate::code::DrawSite::pause)).
    pub pause: Option<u32>,
    /// Whether requests can be lost.
    loses: bool,
    /// Limits whose way back is not emitted yet, the innermost last.
    pub open_limits: Vec<u32>,
    /// What begins with a node, where it joins during the run.
    pub born: Vec<(NodeId, Birth)>,
    pub connections: ConnectionTables,
}

/// The site of a stage in a list, which is in the order of stages, as they are emitted.
fn of_stage<T>(sites: &mut [T], stage: StageId, of: impl Fn(&T) -> StageId) -> Option<&mut T> {
    let at = sites.partition_point(|site| of(site) < stage);
    sites.get_mut(at).filter(|site| of(site) == stage)
}

/// What a stage does on the way back.
pub(crate) enum Post {
    Op(Op),
    /// Crosses once more.
    Wait(Dist, Option<(f64, Option<u64>)>),
    /// Leaves a process that may be pausing.
    Pause {
        pause: u32,
    },
    /// Returns from the node that it chose.
    Chosen,
    /// Its branches return.
    Parts {
        group: u32,
    },
}

impl Compiler<'_> {
    fn emit(&mut self) -> Result<(), String> {
        let mut drafts = std::mem::take(&mut self.layout.drafts);
        for (block, draft) in drafts.iter_mut().enumerate() {
            draft.pc = self.code.steps.len() as u32;
            self.emit_block(block as u32, draft);
            if self.code.steps.len() > MOST || self.code.part_count as usize > MOST {
                return Err("the topology has too many different nodes to simulate".into());
            }
        }
        self.layout.drafts = drafts;
        Ok(())
    }

    fn emit_block(&mut self, block: u32, draft: &Draft) {
        let first = self.layout.add_stages(&mut self.code, block, draft);
        let start = self.code.steps.len();
        let cuttable: Vec<bool> =
            draft.nodes.iter().map(|nodes| nodes.iter().any(|&n| self.can_be_cut[n as usize])).collect();
        let mut inner: Vec<Option<Post>> = Vec::new();
        for (i, here) in cuttable.iter().enumerate() {
            self.here = *here;
            let (_, spec) = draft.chain[i];
            let spec = &self.layout.point.specs[spec as usize];
            // A request that waits too long in line has not reached what is behind it either.
            if *here || matches!(spec, Spec::Queue { timeout_ns: Some(_), .. } | Spec::Connection(_)) {
                self.layout.add_cuts(&mut self.code, StageId(first + i as u32), draft);
            }
            self.scales = draft.nodes[i].iter().any(|&n| self.scaled[n as usize]);
            self.pause = self.pauses_of(draft, i);
            inner.push(self.emit_stage(StageId(first + i as u32), draft, i));
        }
        if draft.end == End::Call {
            let call = self.layout.add_call(&mut self.code, draft);
            self.op(Op::Call { call }, &[]);
            self.op(Op::CallReturn, &[]);
        }
        let waiting = self.emit_way_back(first, draft, &cuttable, inner);
        self.here = cuttable.first().is_some_and(|here| *here);
        self.op(Op::Return, &waiting);
        self.find_gives_back(start);
    }

    /// Emits what the stages of a block do on the way back; returns those whose errors are not counted yet.
    fn emit_way_back(
        &mut self,
        first: u32,
        draft: &Draft,
        cuttable: &[bool],
        inner: Vec<Option<Post>>,
    ) -> Vec<StageId> {
        let mut waiting = Vec::new();
        for (i, post) in inner.into_iter().enumerate().rev() {
            self.here = cuttable[i];
            if self.here && matches!(post, Some(Post::Wait(..) | Post::Pause { .. })) && !waiting.is_empty() {
                // A request that is cut off on the way back has already failed at what is behind.
                self.op(Op::CountErrors, &waiting);
                waiting.clear();
            }
            waiting.push(StageId(first + i as u32));
            match post {
                None => {}
                Some(Post::Wait(time, loss)) => {
                    let (site, _) = draft.chain[i];
                    let place = self.layout.point.sites[site as usize].place;
                    let loss = self.loss(purpose::LOSS_BACK, place, loss, StageId(first + i as u32));
                    self.wait(&time, purpose::BACK, place, StageId(first + i as u32), false, loss);
                }
                Some(Post::Pause { pause }) => {
                    self.wait_for_process(pause, StageId(first + i as u32), draft.chain[i].0, false);
                    self.op(Op::CountErrors, &waiting);
                    waiting.clear();
                    self.backpatch(StageId(first + i as u32));
                }
                Some(Post::Chosen) => {
                    self.op(Op::CallReturn, &[]);
                    self.op(Op::CountErrors, &waiting);
                    waiting.clear();
                    self.backpatch(StageId(first + i as u32));
                }
                Some(Post::Parts { group }) => {
                    self.op(Op::Cold(ColdOp::EndBranch { group }), &[]);
                    self.op(Op::CountErrors, &waiting);
                    waiting.clear();
                }
                Some(Post::Op(
                    op @ (Op::Cold(ColdOp::LeaveHedge { .. })
                    | Op::EndAttempt { .. }
                    | Op::LeaveLimit
                    | Op::LeaveFaulty { .. }
                    | Op::Flaky { .. }),
                )) => {
                    // The nodes inside fail with each attempt, the retry itself only with the last one. Those inside
                    // of a limit that strikes do not return at all.
                    let itself = waiting.pop();
                    self.op(op, &waiting);
                    waiting = itself.into_iter().collect();
                    self.backpatch(StageId(first + i as u32));
                }
                Some(Post::Op(op)) => {
                    self.op(op, &waiting);
                    waiting.clear();
                    self.backpatch(StageId(first + i as u32));
                    self.report_load(op, &draft.nodes[i]);
                }
            }
        }
        waiting
    }

    /// Fills in [`Code::gives_back`] for the steps of a block.
    fn find_gives_back(&mut self, start: usize) {
        let mut held = Vec::new();
        for pc in (start..self.code.steps.len()).rev() {
            match self.code.steps[pc].op {
                Op::LeaveQueue { .. } | Op::Cold(ColdOp::ReturnConnection { .. }) => held.push(pc as u32),
                Op::EnterQueue { .. } | Op::Cold(ColdOp::TakeConnection { .. }) => _ = held.pop(),
                _ => {}
            }
            self.code.gives_back[pc] = held.last().copied().unwrap_or(NOT);
        }
    }

    pub(crate) fn op(&mut self, op: Op, covers: &[StageId]) {
        let from = self.code.cover_list.len() as u32;
        self.code.cover_list.extend(covers);
        self.code.covers.push((from, self.code.cover_list.len() as u32));
        let wait_ns = std::mem::take(&mut self.wait_ns);
        self.code.steps.push(Step { wait_ns, op });
        self.code.gives_back.push(NOT);
        self.code.can_be_cut.push(self.here);
    }

    /// Lets requests that the stage refused go on at the step after the one just emitted.
    fn backpatch(&mut self, stage: StageId) {
        let next = self.code.steps.len() as u32;
        match self.code.steps.last().map(|s| s.op) {
            Some(Op::LeaveQueue { queue }) => self.code.queues[queue as usize].skip = next,
            Some(Op::ReturnTarget { lb } | Op::Cold(ColdOp::TellGuard { lb })) => {
                self.code.lbs[lb as usize].skip = next
            }
            Some(Op::LeaveLimit) => {
                if let Some(limit) = self.open_limits.pop() {
                    self.code.limits[limit as usize].end = next;
                }
            }
            Some(Op::Cold(ColdOp::ReturnConnection { at })) => {
                self.connections.sites[at as usize].skip = next
            }
            Some(Op::Cold(ColdOp::LeaveListener { hop })) => self.code.hops[hop as usize].end = next,
            Some(Op::Cold(ColdOp::LeaveHedge { hedge })) => self.code.hedges[hedge as usize].end = next,
            Some(Op::LeaveFaulty { down }) => self.code.lines.sites[down as usize].skip = next,
            Some(Op::CountErrors | Op::Cold(ColdOp::LeaveScaled { .. } | ColdOp::LeaveGate { .. })) => {
                let Code { lines, faults, rate_sites, kinds, .. } = &mut self.code;
                of_stage(&mut lines.sites, stage, |d| d.stage).into_iter().for_each(|d| d.skip = next);
                of_stage(faults, stage, |f| f.stage).into_iter().for_each(|f| f.skip = next);
                of_stage(rate_sites, stage, |r| r.stage).into_iter().for_each(|r| r.skip = next);
                of_stage(&mut kinds.choices, stage, |c| c.stage).into_iter().for_each(|c| c.skip = next);
            }
            _ => {}
        }
    }

    /// Emits what the stage does on the way in; returns what it does on the way back.
    fn emit_stage(&mut self, stage: StageId, draft: &Draft, position: usize) -> Option<Post> {
        let (site, spec) = draft.chain[position];
        let place = self.layout.point.sites[site as usize].place;
        let point = self.layout.point;
        match &point.specs[spec as usize] {
            Spec::Delay { time } => self.delay(time, place, stage, &draft.nodes[position]),
            Spec::Cable { time, loss, resend_ns } => {
                self.cable(time, (*loss > 0.0).then_some((*loss, *resend_ns)), place, stage)
            }
            Spec::Server { .. }
                if draft.end == End::Leaf
                    && position + 1 == draft.chain.len()
                    && draft.nodes[position].iter().any(|&n| self.checked[n as usize]) =>
            {
                self.op(Op::Serve, &[]);
                None
            }
            Spec::Rewrite(_) => self.rewrite(spec),
            Spec::Redirect { status, .. } | Spec::Respond { status, .. } => self.answer(*status),
            specs @ (Spec::Route { .. } | Spec::Split { .. }) => self.choice(stage, specs, draft, position),
            Spec::Listen(listen) if self.outermost != draft.nodes[position].first().copied() => {
                self.hop(listen.loops.unwrap_or(1), place, draft, position)
            }
            Spec::Warmup(law) => self.warmup(*law, draft.base, &draft.nodes[position]),
            Spec::Gate(args) => self.gate(args, draft.base, &draft.nodes[position]),
            Spec::Queue { concurrency, capacity, timeout_ns, on_cancel } => {
                let limits = Limits { concurrency: *concurrency, capacity: capacity.unwrap_or(u64::MAX) };
                let leaves = self.queue(stage, draft, limits, *timeout_ns, *on_cancel);
                Some(self.entered(draft, position, false, leaves))
            }
            spec @ Spec::Concurrent { work, cores, contention, coherency, threads, on_cancel, .. } => {
                let law = concurrent::Law::new(*cores, *contention, *coherency, *threads);
                let law = self.with_threads(law, spec, &draft.nodes[position]);
                let leaves = self.share(stage, draft, law, *cores, work, place, *on_cancel);
                Some(self.entered(draft, position, true, leaves))
            }
            Spec::Rate { rate, key } => self.rate(rate, key.as_ref(), stage, draft),
            Spec::Connection(connecting) => self.connection(stage, connecting, draft, position),
            Spec::Flaky { p, kind } => Some(self.flaky(*p, *kind, place)),
            Spec::Timeout { time_ns: Some(ns) } => Some(self.limit(*ns, draft, position)),
            Spec::Retry(config) => self.retry(stage, draft, position, config),
            Spec::Faulty(fault) if fault.mode != Mode::Refuse || fault.line != Line::Own || self.loses => {
                self.down(stage, fault, draft, position)
            }
            Spec::Faulty(fault) => self.fault(stage, fault, draft, position),
            Spec::Fanout { need } => self.fanout(stage, draft, position, *need),
            Spec::Hedge(hedged) => self.hedge(stage, hedged, draft),
            Spec::Sequence => self.sequence(stage, draft, position),
            Spec::Lb(lb) if self.is_guarded(lb, &draft.nodes[position]) => {
                self.guard(stage, lb, draft, position)
            }
            Spec::Lb(lb) => self.balancer(stage, lb, draft, position),
            // Nothing happens here in virtual time.
            Spec::Server { .. }
            | Spec::Listen(_)
            | Spec::Buffered { .. }
            | Spec::Timeout { time_ns: None }
            | Spec::Weight { .. }
            | Spec::Fleet(_) => None,
        }
    }
}
