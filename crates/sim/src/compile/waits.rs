//! Emits code for everything that takes time: shared servers, queues, waits and crossings.

use super::Compiler;
use crate::code::StageId;
use crate::code::changes::Birth;
use crate::code::{ColdOp, NOT, Op, QueueSite, ShareSite};
use crate::code::{DrawSite, LossSite, LossySite, WaitSite};
use crate::compile::blocks::{Draft, offset};
use crate::compile::reach::loses_for_good;
use weir_model::draws::of_place as purpose;
use weir_model::queue::Limits;
use weir_model::sampler::Sampler;
use weir_model::{Dist, OnCancel, concurrent};
use weir_plan::Spec;

impl Compiler<'_> {
    /// A law with the threads of its spec, which begin with the process.
    pub(super) fn with_threads(
        &mut self,
        law: concurrent::Law,
        spec: &Spec,
        nodes: &[u32],
    ) -> concurrent::Law {
        let Spec::Concurrent { min_threads, thread_cost_ns, .. } = spec else { return law };
        let law = law.with_threads(*min_threads, *thread_cost_ns);
        if law.makes_threads() {
            let servers = (self.code.servers.len() as u32..).map(Birth::Threads);
            self.beginnings.extend(nodes.iter().copied().zip(servers));
        }
        law
    }

    /// A server that shares its cores ends its block.
    #[allow(clippy::too_many_arguments, reason = "the fields of a spec")]
    pub(super) fn share(
        &mut self,
        stage: StageId,
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
        let (part, work) = (self.code.stages[stage.index()].part, Sampler::new(work));
        let (scaled, pause) = (self.scales, self.pause);
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
            pause: None,
        };
        self.code.draws.push(site);
        let (work, base) = (self.code.draws.len() as u32 - 1, draft.base);
        let offset = (self.code.servers.len() as u32).wrapping_sub(base);
        self.code.servers.extend((base..base + members).map(|member| (share, member)));
        self.code.goes_on |= self.here && on_cancel != OnCancel::Stop;
        let site = ShareSite { law, work, on_cancel, offset, gauge, stage, base, members, pause };
        self.code.shares.push(site);
        self.op(Op::EnterShare { share }, &[]);
        Op::LeaveShare { share }
    }

    pub(super) fn gauge(&mut self, stage: StageId, draft: &Draft, slots: f64) -> u32 {
        let gauge = offset(self.code.gauge_count, draft.base, self.code.mask);
        self.code.gauge_count += if self.code.mask == 0 { 1 } else { draft.nodes[0].len() as u32 };
        let entry = &mut self.code.stages[stage.index()];
        entry.gauge = Some(gauge);
        entry.slots = slots;
        gauge
    }

    pub(super) fn queue(
        &mut self,
        stage: StageId,
        draft: &Draft,
        limits: Limits,
        timeout_ns: Option<u64>,
        on_cancel: OnCancel,
    ) -> Op {
        let members = draft.nodes[0].len() as u32;
        let block = self.code.stages[stage.index()].block;
        let queue = self.code.queues.len() as u32;
        // The block's first queue is numbered by its member; further ones come behind all members.
        let first = self.code.queues.last().is_none_or(|q| self.code.stages[q.stage.index()].block != block);
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
            part: self.code.stages[stage.index()].part,
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
        self.op(Op::EnterQueue { queue }, &[]);
        Op::LeaveQueue { queue }
    }

    /// A wait: a constant one is added before the next step, a drawn one is a step, and so are all that can be cut
    /// off.
    pub(crate) fn wait(
        &mut self,
        time: &Dist,
        purpose: u64,
        place: u32,
        stage: StageId,
        inwards: bool,
        loss: Option<u32>,
    ) {
        let crosses = purpose != purpose::WORK;
        let pause = self.pause.filter(|_| !crosses);
        let scaled = self.scales && !crosses || pause.is_some();
        let sampler = Sampler::new(time);
        let entry = &mut self.code.stages[stage.index()];
        let part = entry.part;
        let constant = sampler.constant().filter(|_| !scaled && loss.is_none());
        if let (Some(ns), true) = (constant, self.here) {
            if ns > 0 {
                self.code.waits.push(WaitSite { ns, part, stage, inwards, crosses });
                self.op(Op::Wait { wait: self.code.waits.len() as u32 - 1 }, &[]);
            }
        } else if let Some(ns) = constant {
            entry.wait_ns = entry.wait_ns.saturating_add(ns);
            self.wait_ns = self.wait_ns.saturating_add(ns);
        } else {
            let key = self.layout.draw_key(&mut self.code, purpose, place);
            let draw = self.code.draws.len() as u32;
            if let Some(Op::Cold(ColdOp::LossyCrossing { lossy })) =
                self.code.steps.last().map(|step| step.op)
            {
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
                pause,
            });
            self.op(
                if self.here || scaled || loss.is_some() {
                    Op::WaitDrawn { draw }
                } else {
                    Op::Draw { draw }
                },
                &[],
            );
        }
    }

    /// The loss of a crossing.
    pub(super) fn loss(
        &mut self,
        purpose: u64,
        place: u32,
        lossy: Option<(f64, Option<u64>)>,
        stage: StageId,
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
            self.op(Op::Cold(ColdOp::LossyCrossing { lossy: self.code.lossy.len() as u32 - 1 }), &[]);
            return None;
        }
        self.code.losses.push(LossSite { loss, resend_ns, key, visits: None });
        self.code.details = true;
        Some(self.code.losses.len() as u32 - 1)
    }
}
