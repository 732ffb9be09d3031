//! Compiles the kinds of requests, and the nodes that read them.

use crate::code::StageId;
use crate::code::request_kinds::ChoiceRule;
use crate::code::request_kinds::ChoiceSite;
use crate::code::request_kinds::Kinds;
use crate::code::request_kinds::RewriteTable;
use crate::code::{ColdOp, NOT, Op};
use crate::compile::blocks::Draft;
use crate::compile::{Compiler, Post};
use weir_plan::{Edge, KeySource, RequestShape, Scenario, Spec};
use weir_policy::key;
use weir_policy::retry::is_idempotent;
use weir_policy::split::Split;
use weir_workload::mix;

impl ChoiceRule {
    /// What a node chooses by among requests of these shapes; `key` numbers its key source.
    pub fn new(spec: &Spec, shapes: &[RequestShape], key: impl FnOnce(&KeySource) -> u32) -> ChoiceRule {
        match spec {
            Spec::Split { weights, key: by } => {
                ChoiceRule::Share { split: Split::new(weights), key: by.as_ref().map(key) }
            }
            Spec::Route { rules, otherwise } => {
                let otherwise = if *otherwise { rules.len() as u32 } else { NOT };
                let first = |shape: &RequestShape| {
                    rules.iter().position(|rule| rule.matches(&shape.asked())).map_or(otherwise, |i| i as u32)
                };
                ChoiceRule::Kind(shapes.iter().map(first).collect())
            }
            _ => ChoiceRule::Kind(Vec::new()),
        }
    }
}

/// The hashed values of a key source, by kind.
pub(crate) fn says(source: &KeySource, shapes: &[RequestShape]) -> Vec<Option<u64>> {
    shapes.iter().map(|shape| said(source, shape).map(|text| key::hash(text.as_bytes()))).collect()
}

/// The value of a key source in a kind of request; `None`: its own key is used.
fn said<'a>(source: &KeySource, shape: &'a RequestShape) -> Option<&'a str> {
    let header =
        |name: &str| shape.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|h| h.1.as_str());
    match source {
        KeySource::Path => Some(&shape.path),
        KeySource::Header(name) => header(name),
        KeySource::Cookie(name) => header("cookie")?.split(';').find_map(|pair| {
            let (n, value) = pair.trim().split_once('=')?;
            (n == name).then_some(value)
        }),
        KeySource::Client => None,
    }
}

impl Compiler<'_> {
    /// The kinds of the scenario's requests.
    pub(crate) fn find_kinds(&mut self, scenario: &Scenario) {
        let all = self.shapes.shapes.iter().filter(|_| !scenario.mix.is_empty());
        let idempotent = all.map(|r| is_idempotent(&r.method)).collect();
        let before = self.shapes.before.clone();
        self.code.kinds = Kinds { mix: mix(scenario), idempotent, before, ..Kinds::default() };
        self.code.details |= !scenario.mix.is_empty();
    }

    pub(crate) fn key_source(&mut self, source: &KeySource) -> u32 {
        self.code.details = true;
        let kinds = &mut self.code.kinds;
        kinds.reads_keys = true;
        kinds.keys.push(says(source, &self.shapes.shapes));
        kinds.keys.len() as u32 - 1
    }

    /// A `rewrite` matters only where kinds do.
    pub(crate) fn rewrite(&mut self, spec: u32) -> Option<Post> {
        let changes = RewriteTable::new(self.shapes.changes(spec));
        if changes.is_empty() {
            return None;
        }
        self.code.details = true;
        self.code.kinds.rewrites.push(changes);
        self.op(Op::Cold(ColdOp::EnterRewrite { rewrite: self.code.kinds.rewrites.len() as u32 - 1 }), &[]);
        Some(Post::Op(Op::Cold(ColdOp::LeaveRewrite)))
    }

    /// Emits a node that answers by itself.
    pub(crate) fn answer(&mut self, status: u16) -> Option<Post> {
        self.code.details = true;
        self.op(Op::Cold(ColdOp::Answer { status: u32::from(status) }), &[]);
        None
    }

    pub(crate) fn choice(
        &mut self,
        stage: StageId,
        spec: &Spec,
        draft: &Draft,
        position: usize,
    ) -> Option<Post> {
        let shapes = std::mem::take(&mut self.shapes.shapes);
        let keys = &mut self.code.kinds;
        let by = ChoiceRule::new(spec, &shapes, |source| {
            keys.reads_keys = true;
            keys.keys.push(says(source, &shapes));
            keys.keys.len() as u32 - 1
        });
        self.shapes.shapes = shapes;
        self.code.details = true;
        let offset = (self.code.kinds.nodes.len() as u32).wrapping_sub(draft.base);
        for &node in &draft.nodes[position] {
            let Edge::List(list) = self.layout.point.nodes[node as usize].to else { continue };
            let number = self.layout.number[node as usize];
            self.code.kinds.nodes.push((list, self.layout.place(node), number));
        }
        self.code.kinds.choices.push(ChoiceSite { by, offset, stage, skip: NOT });
        self.op(Op::Cold(ColdOp::Choose { choice: self.code.kinds.choices.len() as u32 - 1 }), &[]);
        Some(Post::Chosen)
    }
}
