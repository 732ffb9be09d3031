//! From the blocks of a scenario to the linear [`Code`] of the fast engine.

use crate::ahead;
use crate::blocks::{Draft, End, Layout, MOST, NOT, offset};
use crate::code::{
    Code, DrawSite, FaultSite, FlakySite, LbSite, LimitSite, Op, QueueSite, RateSite, RetrySite, ShareSite,
    Step, WaitSite,
};
use crate::draws::of_place as purpose;
use crate::guards::{Behind, is_plain, probed};
use crate::loops::loops;
use crate::lost::LossySite;
use crate::rare::LossSite;
use crate::reach::loses_for_good;
use std::collections::BTreeMap;
use weir_model::faulty::Law;
use weir_model::queue::Limits;
use weir_model::sampler::Sampler;
use weir_model::{Dist, OnCancel, concurrent, warmup};
use weir_policy::Kind;
use weir_policy::config::Exclude;
use weir_topology::plan::{Clock, Faulty, Lb, Line, Mode, Scenario, Scope, Spec, To};
use weir_topology::rewriting::Kinds;

/// Compiles a layout. With `members`, statistics are kept for every member.
pub(crate) fn compile(layout: Layout, scenario: &Scenario, members: bool) -> Result<Code, String> {
    let mut code = layout.code(members);
    code.patience_ns = scenario.patience_ns;
    code.takes_as_get = scenario.mix.is_empty();
    let shapes =
        Kinds::of(layout.point, scenario).ok_or("there are too many kinds of requests to simulate")?;
    code.loops = loops(&layout, scenario)?;
    code.cuts = code.loops > 1;
    let can_be_cut = layout.can_be_cut(scenario.patience_ns.is_some());
    let is_scaling = |spec: &Spec| match spec {
        Spec::Warmup { .. } => true,
        Spec::Faulty(fault) => fault.mode == Mode::Slow,
        _ => false,
    };
    let unreached = |spec: &Spec| match spec {
        Spec::Flaky { kind, .. } => *kind == Kind::ConnectFailed,
        Spec::Faulty(fault) => fault.mode == Mode::Crash,
        // Whoever stands outside hears that nobody is left inside.
        Spec::Lb(lb) => lb.health.is_some() || lb.eject.is_some() || lb.outlier.is_some(),
        _ => false,
    };
    let (scaled, unreached) = (layout.behind(false, is_scaling), layout.leads_to(unreached));
    let (warm_nodes, probed, checked) = (BTreeMap::new(), probed(&layout), layout.checked());
    let mut c = Compiler {
        layout,
        wait_ns: 0,
        code,
        shapes,
        can_be_cut,
        scaled,
        unreached,
        checked,
        probed,
        warm_nodes,
        here: false,
        scales: false,
    };
    c.find_kinds(scenario);
    c.find_failing_blocks();
    c.emit()?;
    c.find_restarts();
    c.find_repeated_places();
    let Compiler { layout, mut code, .. } = c;
    if code.guards.sites.iter().any(|site| site.watches) {
        code.guards.behind = Behind::of(layout.point, &code.guards.of_node, code.instances.len());
    }
    let lists: Vec<u32> = code.kinds.nodes.iter().map(|node| node.0).collect();
    let root_block = layout.finish(&mut code, &lists)?;
    code.guards.spares = code.guards.spare_nodes.iter().map(|&id| layout.target(id)).collect();
    code.notes = layout.loses();
    code.cuts |= code.details || code.notes;
    code.books = code.notes || code.goes_on;
    // Nothing leads to the root, so its block has one member and its return ends the request.
    let next = layout.drafts.get(root_block + 1).map_or(code.steps.len(), |d| d.pc as usize);
    code.steps[next - 1].op = Op::End;
    code.limit_depth += usize::from(code.patience_ns.is_some());
    let checks = code.guards.sites.iter().any(|site| site.around.health.check.is_some());
    code.ends_in_turn = checks || code.patience_ns.is_some();
    code.limit_depth += usize::from(checks);
    code.cuts |= code.limit_depth > 0;
    ahead::find(&mut code);
    Ok(code)
}

pub(crate) struct Compiler<'a> {
    pub layout: Layout<'a>,
    /// Constant waits that the next step will stand behind.
    wait_ns: u64,
    pub code: Code,
    /// The kinds of the scenario's requests.
    pub shapes: Kinds,
    /// By node of the plan: whether it can be cut off, is behind something that makes work longer, and may come back with the
    /// news that a connection failed.
    can_be_cut: Vec<bool>,
    scaled: Vec<bool>,
    unreached: Vec<bool>,
    /// Whether health checks may come to it.
    checked: Vec<bool>,
    /// Whether a balancer asks it how busy it is; empty where none does.
    probed: Vec<bool>,
    /// Warm-up of each node of the plan that is one.
    pub warm_nodes: BTreeMap<u32, u32>,
    /// Whether requests can be cut off at the stage that is being emitted, and whether its work may be made longer.
    pub here: bool,
    scales: bool,
}

/// What a stage does on the way back.
pub(crate) enum Post {
    Op(Op),
    /// Crosses once more.
    Wait(Dist, Option<(f64, Option<u64>)>),
    /// Comes from the node that it chose.
    Chosen,
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
            // Who waits too long in line has not come to what is behind it either.
            if *here || matches!(spec, Spec::Queue { timeout_ns: Some(_), .. }) {
                self.layout.add_cuts(&mut self.code, first + i as u32, draft);
            }
            self.scales = draft.nodes[i].iter().any(|&n| self.scaled[n as usize]);
            inner.push(self.emit_stage(first + i as u32, draft, i));
        }
        if draft.end == End::Call {
            let call = self.layout.add_call(&mut self.code, draft);
            self.op(Op::Call { call }, &[]);
            self.op(Op::Back, &[]);
        }
        let mut waiting = Vec::new();
        for (i, post) in inner.into_iter().enumerate().rev() {
            self.here = cuttable[i];
            if self.here && matches!(post, Some(Post::Wait(..))) && !waiting.is_empty() {
                // Whoever is cut off on the way back has failed at what is behind already.
                self.op(Op::Pass, &waiting);
                waiting.clear();
            }
            waiting.push(first + i as u32);
            match post {
                None => {}
                Some(Post::Wait(time, loss)) => {
                    let (site, _) = draft.chain[i];
                    let place = self.layout.point.sites[site as usize].place;
                    let loss = self.loss(purpose::LOSS_BACK, place, loss, first + i as u32);
                    self.wait(&time, purpose::BACK, place, first + i as u32, false, loss);
                }
                Some(Post::Chosen) => {
                    self.op(Op::Back, &[]);
                    self.op(Op::Pass, &waiting);
                    waiting.clear();
                    self.patch_skip(first + i as u32);
                }
                Some(Post::Op(
                    op @ (Op::Tried { .. } | Op::Limited | Op::Survived { .. } | Op::Flaky { .. }),
                )) => {
                    // The nodes inside fail with each attempt, the retry itself with the last one only. Those inside of
                    // a limit that strikes do not come back at all.
                    let itself = waiting.pop();
                    self.op(op, &waiting);
                    waiting = itself.into_iter().collect();
                    self.patch_skip(first + i as u32);
                }
                Some(Post::Op(op)) => {
                    self.op(op, &waiting);
                    waiting.clear();
                    self.patch_skip(first + i as u32);
                }
            }
        }
        self.here = cuttable.first().is_some_and(|here| *here);
        self.op(Op::Return, &waiting);
        self.find_around(start);
    }

    /// Fills in [`Code::around`] for the steps of a block.
    fn find_around(&mut self, start: usize) {
        let mut held = Vec::new();
        for pc in (start..self.code.steps.len()).rev() {
            match self.code.steps[pc].op {
                Op::Leave { .. } => held.push(pc as u32),
                Op::Enter { .. } => _ = held.pop(),
                _ => {}
            }
            self.code.around[pc] = held.last().copied().unwrap_or(NOT);
        }
    }

    pub(crate) fn op(&mut self, op: Op, covers: &[u32]) {
        let from = self.code.cover_list.len() as u32;
        self.code.cover_list.extend(covers);
        self.code.covers.push((from, self.code.cover_list.len() as u32));
        let wait_ns = std::mem::take(&mut self.wait_ns);
        self.code.steps.push(Step { wait_ns, op });
        self.code.around.push(NOT);
        self.code.can_be_cut.push(self.here);
    }

    /// The step after the one just emitted is where a request that the stage refused goes on.
    fn patch_skip(&mut self, stage: u32) {
        let next = self.code.steps.len() as u32;
        match self.code.steps.last().map(|s| s.op) {
            Some(Op::Leave { queue }) => self.code.queues[queue as usize].skip = next,
            Some(Op::Done { lb } | Op::Told { lb }) => self.code.lbs[lb as usize].skip = next,
            Some(Op::Limited) => {
                if let Some(limit) = self.code.limits.iter_mut().rev().find(|l| l.end == NOT) {
                    limit.end = next;
                }
            }
            Some(Op::Survived { down }) => self.code.lines.sites[down as usize].skip = next,
            Some(Op::Pass | Op::Cool { .. }) => {
                let downs = &mut self.code.lines.sites;
                if let Some(down) = downs.iter_mut().rev().find(|d| d.stage == stage) {
                    down.skip = next;
                }
                if let Some(fault) = self.code.faults.iter_mut().rev().find(|f| f.stage == stage) {
                    fault.skip = next;
                }
                if let Some(rate) = self.code.rate_sites.iter_mut().rev().find(|r| r.stage == stage) {
                    rate.skip = next;
                }
                if let Some(choice) = self.code.kinds.choices.iter_mut().rev().find(|c| c.stage == stage) {
                    choice.skip = next;
                }
            }
            _ => {}
        }
    }

    /// Emits what the stage does on the way in; returns what it does on the way back.
    fn emit_stage(&mut self, stage: u32, draft: &Draft, position: usize) -> Option<Post> {
        let (site, spec) = draft.chain[position];
        let place = self.layout.point.sites[site as usize].place;
        let point = self.layout.point;
        match &point.specs[spec as usize] {
            Spec::Delay { time } => {
                self.wait(time, purpose::WORK, place, stage, true, None);
                None
            }
            Spec::Cable { time, loss, resend_ns } => {
                let lossy = (*loss > 0.0).then_some((*loss, *resend_ns));
                let loss = self.loss(purpose::LOSS_OUT, place, lossy, stage);
                self.wait(time, purpose::OUT, place, stage, true, loss);
                Some(Post::Wait(time.clone(), lossy))
            }
            Spec::Server { .. }
                if draft.end == End::Leaf
                    && draft.nodes[position].iter().any(|&n| self.checked[n as usize]) =>
            {
                self.op(Op::Serve, &[]);
                None
            }
            Spec::Rewrite(_) => self.rewrite(spec),
            Spec::Redirect { status, .. } | Spec::Respond { status, .. } => self.answer(*status),
            specs @ (Spec::Route { .. } | Spec::Split { .. }) => self.choice(stage, specs, draft, position),
            Spec::Warmup { factor, requests, time_ns } => {
                let law = warmup::Law::new(*factor, *requests, *time_ns);
                self.warmup(law, draft.base, &draft.nodes[position])
            }
            Spec::Queue { concurrency, capacity, timeout_ns, on_cancel } => {
                let limits = Limits { concurrency: *concurrency, capacity: capacity.unwrap_or(u64::MAX) };
                Some(Post::Op(self.queue(stage, draft, limits, *timeout_ns, *on_cancel)))
            }
            Spec::Concurrent { work, cores, contention, coherency, threads, on_cancel } => {
                let law = concurrent::Law::new(*cores, *contention, *coherency, *threads);
                Some(Post::Op(self.share(stage, draft, law, *cores, work, place, *on_cancel)))
            }
            Spec::Rate { rate, key } => {
                let key = key.as_ref().map(|key| self.key_source(key));
                let offset = (self.code.rates.len() as u32).wrapping_sub(draft.base);
                self.code.rates.extend(draft.nodes[0].iter().map(|_| rate.clone()));
                self.layout.add_refusals(&mut self.code, stage, draft);
                self.code.rate_sites.push(RateSite { key, offset, stage, skip: NOT });
                self.op(Op::Token { rate: self.code.rate_sites.len() as u32 - 1 }, &[]);
                Some(Post::Op(Op::Pass))
            }
            Spec::Flaky { p, kind } => {
                let key = self.layout.draw_key(&mut self.code, purpose::FAILURE, place);
                let site = FlakySite { p: *p, kind: *kind, key, visits: None };
                self.code.flaky.push(site);
                Some(Post::Op(Op::Flaky { flaky: self.code.flaky.len() as u32 - 1 }))
            }
            Spec::Timeout { time_ns: Some(ns) } => {
                let limit = self.code.limits.len() as u32;
                self.code.limits.push(LimitSite { ns: *ns, end: NOT });
                self.op(Op::Limit { limit }, &[]);
                Some(Post::Op(Op::Limited))
            }
            Spec::Retry(config) => {
                let retry = self.code.retries.len() as u32;
                self.code.excludes |= config.exclude != Exclude::None;
                self.op(Op::Try { retry }, &[]);
                let again = self.code.steps.len() as u32;
                if config.backoff_ns > 0 || config.budget.is_some() {
                    self.code.cuts = true;
                    self.op(Op::Again { retry }, &[]);
                }
                let nodes = (self.code.retry_nodes.len() as u32).wrapping_sub(draft.base);
                let numbered = draft.nodes[position].iter().map(|&n| (place, self.layout.number[n as usize]));
                self.code.retry_nodes.extend(numbered);
                let budget = config.budget.as_ref().map(|budget| {
                    let offset = (self.code.budgets.len() as u32).wrapping_sub(draft.base);
                    self.code.budgets.extend(draft.nodes[0].iter().map(|_| budget.clone()));
                    offset
                });
                let in_turn = self.here || !config.on_status.is_empty();
                self.code.details |= !config.on_status.is_empty();
                let repeats = self.code.repeat_count.wrapping_sub(draft.base);
                self.code.repeat_count += draft.nodes[0].len() as u32;
                self.code.stages[stage as usize].repeats = Some(repeats);
                self.code.retries.push(RetrySite {
                    config: config.clone(),
                    again,
                    repeats,
                    stage,
                    nodes,
                    budget,
                    in_turn,
                });
                Some(Post::Op(Op::Tried { retry }))
            }
            Spec::Faulty(fault)
                if fault.mode != Mode::Refuse || fault.line != Line::Own || self.layout.loses() =>
            {
                self.down(stage, fault, draft, position)
            }
            Spec::Faulty(Faulty { mtbf_ns, mttr_ns, clock, starts_up, checks_pass, .. }) => {
                let fault = self.code.faults.len() as u32;
                let offset = (self.code.fault_nodes.len() as u32).wrapping_sub(draft.base);
                let law = Law::new(*mtbf_ns, *mttr_ns, *clock == Clock::Lazy, *starts_up);
                self.code.faults.push(FaultSite { law, offset, stage, skip: NOT, checks_pass: *checks_pass });
                let numbers =
                    draft.nodes[position].iter().map(|&n| (fault, place, self.layout.number[n as usize]));
                self.code.fault_nodes.extend(numbers);
                self.layout.add_refusals(&mut self.code, stage, draft);
                self.op(Op::Fault { fault }, &[]);
                Some(Post::Op(Op::Pass))
            }
            Spec::Lb(lb) if self.is_guarded(lb, &draft.nodes[position]) => {
                self.guard(stage, lb, draft, position)
            }
            Spec::Lb(Lb { balance, scope, .. }) => {
                let lb = self.code.lbs.len() as u32;
                let offset = self.layout.add_instances(&mut self.code, draft, position, lb);
                let (ordered, counts) = (balance.remembers_picks() || self.here, balance.counts_in_flight());
                let can_be_cut = self.here;
                let site = LbSite {
                    balance: balance.clone(),
                    offset,
                    stage,
                    skip: NOT,
                    ordered,
                    counts,
                    can_be_cut,
                    shared: *scope == Scope::Process || self.code.loops == 1,
                    guard: None,
                };
                self.code.lbs.push(site);
                self.op(Op::Pick { lb }, &[]);
                Some(Post::Op(Op::Done { lb }))
            }
            _ => None,
        }
    }

    /// A server that shares its cores ends its block.
    #[allow(clippy::too_many_arguments, reason = "the fields of a spec")]
    fn share(
        &mut self,
        stage: u32,
        draft: &Draft,
        law: concurrent::Law,
        cores: f64,
        work: &Dist,
        place: u32,
        on_cancel: OnCancel,
    ) -> Op {
        let (share, members) = (self.code.shares.len() as u32, draft.nodes[0].len() as u32);
        let gauge = self.gauge(stage, draft, cores);
        let key = self.layout.draw_key(&mut self.code, purpose::WORK, place);
        let (part, work) = (self.code.stages[stage as usize].part, Sampler::new(work));
        let scaled = self.scales;
        let site = DrawSite {
            sampler: work,
            part,
            key,
            visits: None,
            stage,
            inwards: true,
            scaled,
            loss: None,
            crosses: false,
        };
        self.code.draws.push(site);
        let (work, base) = (self.code.draws.len() as u32 - 1, draft.base);
        let offset = (self.code.servers.len() as u32).wrapping_sub(base);
        self.code.servers.extend((base..base + members).map(|member| (share, member)));
        self.code.goes_on |= self.here && on_cancel != OnCancel::Stop;
        let site = ShareSite { law, work, on_cancel, offset, gauge, stage, base, members };
        self.code.shares.push(site);
        self.op(Op::Share { share }, &[]);
        Op::Shared { share }
    }

    fn gauge(&mut self, stage: u32, draft: &Draft, slots: f64) -> u32 {
        let gauge = offset(self.code.gauge_count, draft.base, self.code.mask);
        self.code.gauge_count += if self.code.mask == 0 { 1 } else { draft.nodes[0].len() as u32 };
        let entry = &mut self.code.stages[stage as usize];
        entry.gauge = Some(gauge);
        entry.slots = slots;
        gauge
    }

    fn queue(
        &mut self,
        stage: u32,
        draft: &Draft,
        limits: Limits,
        timeout_ns: Option<u64>,
        on_cancel: OnCancel,
    ) -> Op {
        let members = draft.nodes[0].len() as u32;
        let block = self.code.stages[stage as usize].block;
        let queue = self.code.queues.len() as u32;
        // The block's first queue stands with its member; further ones behind all members.
        let first = self.code.queues.last().is_none_or(|q| self.code.stages[q.stage as usize].block != block);
        let slot = if first { 0 } else { self.code.queue_count.wrapping_sub(draft.base) };
        if !first {
            self.code.queue_count += members;
        }
        let gauge = self.gauge(stage, draft, f64::from(limits.concurrency));
        self.code.goes_on |= self.here && on_cancel != OnCancel::Stop;
        self.code.queues.push(QueueSite {
            limits,
            offset: slot,
            gauge,
            part: self.code.stages[stage as usize].part,
            stage,
            skip: NOT,
            ahead: false,
            members,
            base: draft.base,
            can_be_cut: self.here,
            on_cancel,
            timeout_ns,
        });
        if limits.capacity != u64::MAX {
            self.layout.add_refusals(&mut self.code, stage, draft);
        }
        self.op(Op::Enter { queue }, &[]);
        Op::Leave { queue }
    }

    /// A wait: a constant one stands before the next step, a drawn one is a step, and so are all that can be cut off.
    fn wait(&mut self, time: &Dist, purpose: u64, place: u32, stage: u32, inwards: bool, loss: Option<u32>) {
        let crosses = purpose != purpose::WORK;
        let scaled = self.scales && !crosses;
        let sampler = Sampler::new(time);
        let entry = &mut self.code.stages[stage as usize];
        let part = entry.part;
        let constant = sampler.constant().filter(|_| !scaled && loss.is_none());
        if let (Some(ns), true) = (constant, self.here) {
            if ns > 0 {
                self.code.waits.push(WaitSite { ns, part, stage, inwards, crosses });
                self.op(Op::Stand { wait: self.code.waits.len() as u32 - 1 }, &[]);
            }
        } else if let Some(ns) = constant {
            entry.wait_ns = entry.wait_ns.saturating_add(ns);
            self.wait_ns = self.wait_ns.saturating_add(ns);
        } else {
            let key = self.layout.draw_key(&mut self.code, purpose, place);
            let draw = self.code.draws.len() as u32;
            if let Some(Op::Lossy { lossy }) = self.code.steps.last().map(|step| step.op) {
                self.code.lossy[lossy as usize].time = Some(draw);
            }
            self.code.draws.push(DrawSite {
                sampler,
                part,
                key,
                visits: None,
                stage,
                inwards,
                scaled,
                loss,
                crosses,
            });
            self.op(
                if self.here || scaled || loss.is_some() {
                    Op::StandDrawn { draw }
                } else {
                    Op::Draw { draw }
                },
                &[],
            );
        }
    }

    /// What a crossing loses.
    fn loss(
        &mut self,
        purpose: u64,
        place: u32,
        lossy: Option<(f64, Option<u64>)>,
        stage: u32,
    ) -> Option<u32> {
        let (loss, resend_ns) = lossy?;
        let key = self.layout.draw_key(&mut self.code, purpose, place);
        if loses_for_good(loss, resend_ns) {
            // The wait follows, if there is one.
            self.code.lossy.push(LossySite {
                loss,
                key,
                visits: None,
                time: None,
                stage,
                inwards: purpose == purpose::LOSS_OUT,
            });
            self.code.details = true;
            self.op(Op::Lossy { lossy: self.code.lossy.len() as u32 - 1 }, &[]);
            return None;
        }
        self.code.losses.push(LossSite { loss, resend_ns, key, visits: None });
        self.code.details = true;
        Some(self.code.losses.len() as u32 - 1)
    }

    /// Whether something stands around a balancer, or may come to do so: an error that says who was not reached, nobody to
    /// pick from, others who ask how busy its targets are.
    fn is_guarded(&self, lb: &Lb, nodes: &[u32]) -> bool {
        let point = self.layout.point;
        let weight = |id: u32| match point.specs[point.nodes[id as usize].spec as usize] {
            Spec::Weight { weight } => weight,
            _ => 1.0,
        };
        let must_be = |node: &u32| match point.nodes[*node as usize].to {
            To::List(list) => {
                let targets = &point.lists[list as usize];
                let is_probed = |t: &u32| self.probed.get(*t as usize).is_some_and(|probed| *probed);
                !targets.iter().any(|&t| weight(t) > 0.0) || targets.iter().any(is_probed)
            }
            _ => false,
        };
        !is_plain(lb) || nodes.iter().any(|n| self.unreached[*n as usize] || must_be(n))
    }

    /// Gives a counter to each place that a request can pass more than once on one way.
    fn find_repeated_places(&mut self) {
        let mut stages_of = vec![0u32; self.code.draw_keys.len()];
        let keys = self.code.draws.iter().map(|d| d.key).chain(self.code.flaky.iter().map(|f| f.key));
        let keys = keys.chain(self.code.losses.iter().map(|l| l.key));
        let keys = keys.chain(self.code.lossy.iter().map(|l| l.key));
        keys.for_each(|key| stages_of[key as usize] += 1);
        for key in 0..stages_of.len() as u32 {
            // A place in a single block repeats only where members of that block lead to one another, which takes a
            // loop in the file; those are rare enough to look at them all.
            let looped = self.layout.drafts.iter().any(|d| d.end == End::Lb && d.nodes[0].len() > 1);
            if stages_of[key as usize] < 2 && !looped {
                continue;
            }
            let (_, place) = self.code.draw_keys[key as usize];
            if self.layout.most_visits(place) > 1 {
                let counter = Some(self.code.visits as u32);
                self.code.visits += 1;
                self.code.draws.iter_mut().filter(|d| d.key == key).for_each(|d| d.visits = counter);
                self.code.flaky.iter_mut().filter(|f| f.key == key).for_each(|f| f.visits = counter);
                self.code.losses.iter_mut().filter(|l| l.key == key).for_each(|l| l.visits = counter);
                self.code.lossy.iter_mut().filter(|l| l.key == key).for_each(|l| l.visits = counter);
            }
        }
    }
}
