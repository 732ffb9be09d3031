//! Emits code for nodes whose whole state is one site: links, limits, plain faults, balancers without a guard.

use super::{Compiler, Post};
use crate::code::StageId;
use crate::code::changes::Birth;
use crate::code::{FaultSite, FlakySite, LbSite, LimitSite, NOT, Op, RateSite};
use crate::compile::blocks::Draft;
use crate::compile::guards::is_one;
use weir_model::Dist;
use weir_model::draws::of_place as purpose;
use weir_plan::{Faulty, KeySource, Lb, NodeId, timed_balancer};
use weir_policy::Kind;
use weir_policy::config::Rate;

impl Compiler<'_> {
    /// A link: a wait on the way in and one on the way back. `lossy`: the share of crossings that are lost, and when
    /// they are sent again.
    pub(super) fn cable(
        &mut self,
        time: &Dist,
        lossy: Option<(f64, Option<u64>)>,
        place: u32,
        stage: StageId,
    ) -> Option<Post> {
        let loss = self.loss(purpose::LOSS_OUT, place, lossy, stage);
        self.wait(time, purpose::OUT, place, stage, true, loss);
        Some(Post::Wait(time.clone(), lossy))
    }

    /// A limit of the rate of requests, by a key or of all.
    pub(super) fn rate(
        &mut self,
        rate: &Rate,
        key: Option<&KeySource>,
        stage: StageId,
        draft: &Draft,
    ) -> Option<Post> {
        let key = key.map(|key| self.key_source(key));
        let offset = (self.code.rates.len() as u32).wrapping_sub(draft.base);
        self.code.rates.extend(draft.nodes[0].iter().map(|_| rate.clone()));
        self.layout.add_refusals(&mut self.code, stage, draft);
        self.code.rate_sites.push(RateSite { key, offset, stage, skip: NOT });
        self.op(Op::TakeToken { rate: self.code.rate_sites.len() as u32 - 1 }, &[]);
        Some(Post::Op(Op::CountErrors))
    }

    /// A node that fails a share of answers on their way back.
    pub(super) fn flaky(&mut self, p: f64, kind: Kind, place: u32) -> Post {
        let key = self.layout.draw_key(&mut self.code, purpose::FAILURE, place);
        self.code.flaky.push(FlakySite { p, kind, key, visits: None });
        Post::Op(Op::Flaky { flaky: self.code.flaky.len() as u32 - 1 })
    }

    /// A time limit for what is behind.
    pub(super) fn limit(&mut self, ns: u64, draft: &Draft, position: usize) -> Post {
        let limit = self.code.limits.len() as u32;
        let offset = (self.code.timed.len() as u32).wrapping_sub(draft.base);
        self.code.limits.push(LimitSite { ns, end: NOT, offset });
        self.open_limits.push(limit);
        let timed = |&id: &NodeId| timed_balancer(self.layout.point, id).is_some();
        self.code.timed.extend(draft.nodes[position].iter().map(timed));
        self.op(Op::EnterLimit { limit }, &[]);
        Post::Op(Op::LeaveLimit)
    }

    /// A node that refuses while it is down, by a timeline of its own.
    pub(super) fn fault(
        &mut self,
        stage: StageId,
        fault: &Faulty,
        draft: &Draft,
        position: usize,
    ) -> Option<Post> {
        let place = self.layout.point.sites[draft.chain[position].0 as usize].place;
        let (law, checks_pass) = (fault.law(), fault.checks_pass);
        let fault = self.code.faults.len() as u32;
        let offset = (self.code.fault_nodes.len() as u32).wrapping_sub(draft.base);
        self.code.faults.push(FaultSite { law, offset, stage, skip: NOT, checks_pass });
        let numbers = draft.nodes[position].iter().map(|&n| (fault, place, self.layout.number[n as usize]));
        let first = self.code.fault_nodes.len() as u32;
        self.code.fault_nodes.extend(numbers);
        let births = (first..).map(Birth::Fault);
        self.born.extend(draft.nodes[position].iter().copied().zip(births));
        self.layout.add_refusals(&mut self.code, stage, draft);
        self.op(Op::Fault { fault }, &[]);
        Some(Post::Op(Op::CountErrors))
    }

    /// A balancer without a guard.
    pub(super) fn balancer(
        &mut self,
        stage: StageId,
        config: &Lb,
        draft: &Draft,
        position: usize,
    ) -> Option<Post> {
        let lb = self.code.lbs.len() as u32;
        let offset = self.layout.add_instances(&mut self.code, draft, position, lb);
        let traits = config.balance.traits();
        let changes = self.sees_changes(&draft.nodes[position]);
        let site = LbSite {
            balance: config.balance.clone(),
            offset,
            stage,
            skip: NOT,
            ordered: traits.remembers || self.here || changes,
            counts: traits.counts,
            can_be_cut: self.here,
            shared: is_one(config) || self.code.loops == 1,
            guard: None,
            changes,
        };
        self.code.lbs.push(site);
        self.op(Op::PickTarget { lb }, &[]);
        Some(Post::Op(Op::ReturnTarget { lb }))
    }
}
