//! Builds the sites of nodes that take time, hold requests or try again.

use super::{Act, Builder, CableSite, Draw, QueueSite, RetrySite, ShareSite, WarmupSite};
use crate::code::StageId;
use crate::code::changes::Birth;
use crate::compile::blocks::Draft;
use weir_model::draws::of_place as purpose;
use weir_model::queue::Limits;
use weir_model::{Dist, OnCancel, concurrent, warmup};
use weir_plan::Spec;
use weir_policy::config::{Exclude, GateArgs, Retry};

impl Builder<'_> {
    pub(super) fn rewrite(&mut self, spec: u32) -> Act {
        let all = 0..self.kinds.shapes.len() as u32;
        self.tables.rewrites.push(all.map(|kind| self.kinds.behind(spec, kind)).collect());
        Act::Rewrite { rewrite: self.tables.rewrites.len() as u32 - 1 }
    }

    pub(super) fn cable(&mut self, time: &Dist, loss: f64, resend_ns: Option<u64>, place: u32) -> Act {
        let site = CableSite {
            out: self.draw(time, purpose::OUT, place),
            back: self.draw(time, purpose::BACK, place),
            loss,
            resend_ns,
            lost_out: self.key(purpose::LOSS_OUT, place),
            lost_back: self.key(purpose::LOSS_BACK, place),
        };
        self.tables.loses |= loss > 0.0 && resend_ns.is_none();
        self.tables.cables.push(site);
        Act::Cable { cable: self.tables.cables.len() as u32 - 1 }
    }

    pub(super) fn queue(
        &mut self,
        limits: Limits,
        timeout_ns: Option<u64>,
        on_cancel: OnCancel,
        stage: StageId,
        draft: &Draft,
        reports: bool,
    ) -> Act {
        let gauge = self.gauge(stage, draft, f64::from(limits.concurrency));
        let offset = self.tables.queue_count.wrapping_sub(draft.base);
        let (base, members) = (draft.base, draft.nodes[0].len() as u32);
        self.tables.queue_count += members;
        self.tables.queues.push(QueueSite {
            limits,
            timeout_ns,
            on_cancel,
            offset,
            gauge,
            base,
            members,
            reports,
        });
        Act::Queue { queue: self.tables.queues.len() as u32 - 1 }
    }

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
            let servers = (self.tables.server_count..).map(Birth::Threads);
            self.beginnings.extend(nodes.iter().copied().zip(servers));
        }
        law
    }

    pub(super) fn share(
        &mut self,
        law: concurrent::Law,
        work: Draw,
        on_cancel: OnCancel,
        gauge: u32,
        draft: &Draft,
        reports: bool,
    ) -> Act {
        let (offset, server) =
            (self.tables.server_count.wrapping_sub(draft.base), self.tables.servers.len() as u32);
        let members = draft.nodes[0].len() as u32;
        self.tables.server_count += members;
        self.tables.server_sites.extend((draft.base..draft.base + members).map(|m| (server, m)));
        self.tables.servers.push(ShareSite { law, work, on_cancel, offset, gauge, reports });
        Act::Share { server }
    }

    pub(super) fn retry(&mut self, config: &Retry, draft: &Draft, position: usize) -> Act {
        self.code.excludes |= config.exclude != Exclude::None;
        let offset = (self.tables.retry_nodes.len() as u32).wrapping_sub(draft.base);
        let layout = &self.layout;
        let numbered = draft.nodes[position].iter().map(|&n| (layout.place(n), layout.number[n as usize]));
        self.tables.retry_nodes.extend(numbered);
        let budget = self.budget(config.budget.as_ref(), draft);
        self.tables.retries.push(RetrySite { retry: config.clone(), budget, offset });
        Act::Retry { retry: self.tables.retries.len() as u32 - 1 }
    }

    pub(super) fn gate(&mut self, args: &GateArgs, draft: &Draft, position: usize) -> Act {
        let nodes = &draft.nodes[position];
        let gates = (self.tables.gates.of.len() as u32..).map(Birth::Gate);
        self.beginnings.extend(nodes.iter().copied().zip(gates));
        let layout = &self.layout;
        let of = nodes.iter().map(|&node| (node, layout.place(node), layout.number[node as usize]));
        Act::Gate { gate: self.tables.gates.add(args, draft.base, of) }
    }

    pub(super) fn warmup(&mut self, law: warmup::Law, draft: &Draft, position: usize) -> Act {
        let offset = self.tables.warmup_count.wrapping_sub(draft.base);
        let warmup = self.tables.warmups.len() as u32;
        for &node in &draft.nodes[position] {
            self.beginnings.insert(node, Birth::Warmup(self.tables.warmup_count));
            self.tables.warmup_sites.push(warmup);
            self.tables.warmup_count += 1;
        }
        self.tables.scales = true;
        self.tables.warmups.push(WarmupSite { law, offset });
        Act::Warmup { warmup }
    }
}
