//! Compiles nodes that take a connection to a server.

use crate::code::StageId;
use crate::code::connections::ConnectionSite;
use crate::code::{ColdOp, NOT, Op};
use crate::compile::blocks::Draft;
use crate::compile::{Compiler, Post};
use weir_model::draws::of_place as purpose;
use weir_model::sampler::Sampler;
use weir_plan::Connecting;
use weir_plan::serving::named_server;

impl Compiler<'_> {
    /// Emits the connection before a server.
    pub(crate) fn connection(
        &mut self,
        stage: StageId,
        spec: &Connecting,
        draft: &Draft,
        position: usize,
    ) -> Option<Post> {
        let nodes = &draft.nodes[position];
        let server = nodes.first().and_then(|node| named_server(self.layout.point, *node))?;
        let key = self.layout.draw_key(&mut self.code, purpose::CONNECT, self.layout.place(server));
        let offset = self.connections.add_servers(&self.layout, spec, nodes, draft.base);
        self.layout.add_refusals(&mut self.code, stage, draft);
        self.connections.sites.push(ConnectionSite {
            connect: Sampler::new(&spec.connect),
            timeout_ns: spec.timeout_ns.unwrap_or(u64::MAX),
            cost_ns: spec.cost_ns,
            age_ns: spec.limits.age_ns,
            key,
            visits: None,
            offset,
            stage,
            skip: NOT,
        });
        let at = self.connections.sites.len() as u32 - 1;
        self.op(Op::Cold(ColdOp::TakeConnection { at }), &[]);
        Some(Post::Op(Op::Cold(ColdOp::ReturnConnection { at })))
    }
}
