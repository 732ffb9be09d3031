//! Compiles the loads that servers report in their answers (`lb.zuul`).

use crate::code::{ColdOp, Op};
use crate::compile::Compiler;
use crate::compile::blocks::Layout;
use weir_plan::serving::modelled;
use weir_plan::{NodeId, Spec};

impl Layout<'_> {
    /// The nodes that report their load, if a balancer reads loads: what has slots or cores in a server that is modelled.
    /// Empty if none does.
    pub fn reports(&self) -> Vec<bool> {
        let reads = |spec: &Spec| matches!(spec, Spec::Lb(lb) if lb.balance.load_field().is_some());
        if !self.reached().any(|(_, spec)| reads(spec)) {
            return Vec::new();
        }
        let mut reports = modelled(self.point);
        for (node, reports) in self.point.nodes.iter().zip(&mut reports) {
            let spec = &self.point.specs[node.spec as usize];
            *reports &= matches!(spec, Spec::Queue { .. } | Spec::Concurrent { .. });
        }
        reports
    }
}

impl Compiler<'_> {
    /// Emits the report of a load behind the step by which a request leaves one of these nodes.
    pub(super) fn report_load(&mut self, left: Op, nodes: &[NodeId]) {
        if !nodes.iter().any(|&node| self.reports.get(node as usize) == Some(&true)) {
            return;
        }
        match left {
            Op::LeaveQueue { queue } => self.op(Op::Cold(ColdOp::ReportSlots { queue }), &[]),
            Op::LeaveShare { share } => self.op(Op::Cold(ColdOp::ReportCores { share }), &[]),
            _ => {}
        }
    }
}
