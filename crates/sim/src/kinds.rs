//! The kinds of requests of a scenario, and what nodes read of them: where a route leads, whose share a request is, whom a
//! key names.
//!
//! - In virtual time: a choice takes none; it happens in its turn where a request can be cut off. Rewriting makes another kind
//!   of a request until it comes back.
//! - Given back when cut off: what a request was before it was rewritten (`crate::detail`).
//! - Draws: the kind and the key of a request by the request alone; a share without a key by node and way.

use crate::blocks::{Draft, NOT};
use crate::code::Op;
use crate::compile::{Compiler, Post};
use crate::engine::Engine;
use weir_model::draws::purpose;
use weir_model::mix::Mix;
use weir_plan::{KeySource, RequestShape, Scenario, Spec, To};
use weir_policy::config::Exclude;
use weir_policy::retry::is_idempotent;
use weir_policy::split::Split;
use weir_policy::{Kind, key};
use weir_stats::Key;
use weir_workload::mix;

/// What requests are, and what nodes read of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds {
    pub mix: Mix,
    /// By kind, rewritten ones included: whether it is idempotent; empty: all are GET.
    pub idempotent: Vec<bool>,
    /// By key source, then kind: the hash of what it says; `None`: the request's own key.
    pub keys: Vec<Vec<Option<u64>>>,
    /// Whether anything reads who sends a request.
    pub reads_keys: bool,
    /// Of each `rewrite`: what it makes of each kind. And what each kind was before.
    pub rewrites: Vec<Vec<u32>>,
    pub before: Vec<u32>,
    pub choices: Vec<ChoiceSite>,
    /// List, place and number of each node that chooses.
    pub nodes: Vec<(u32, u32, u32)>,
}

/// A place that chooses a node.
#[derive(Clone, Debug)]
pub(crate) struct ChoiceSite {
    pub by: By,
    /// Member to node.
    pub offset: u32,
    pub stage: u32,
    /// Where a request goes on for which there is no node.
    pub skip: u32,
}

/// What chooses.
#[derive(Clone, Debug)]
pub(crate) enum By {
    /// The request's kind: index of the node, [`NOT`] for none.
    Kind(Vec<u32>),
    /// A share, by draw or by key.
    Share { split: Split, key: Option<u32> },
}

impl By {
    /// What a node chooses by among requests of these shapes; `key` numbers what it reads.
    pub fn new(spec: &Spec, shapes: &[RequestShape], key: impl FnOnce(&KeySource) -> u32) -> By {
        match spec {
            Spec::Split { weights, key: by } => {
                By::Share { split: Split::new(weights), key: by.as_ref().map(key) }
            }
            Spec::Route { rules, otherwise } => {
                let otherwise = if *otherwise { rules.len() as u32 } else { NOT };
                let first = |shape: &RequestShape| {
                    rules.iter().position(|rule| rule.matches(&shape.asked())).map_or(otherwise, |i| i as u32)
                };
                By::Kind(shapes.iter().map(first).collect())
            }
            _ => By::Kind(Vec::new()),
        }
    }
}

/// What kinds of requests say where a key is read, hashed.
pub(crate) fn says(source: &KeySource, shapes: &[RequestShape]) -> Vec<Option<u64>> {
    shapes.iter().map(|shape| said(source, shape).map(|text| key::hash(text.as_bytes()))).collect()
}

/// What a kind of request says where a key is read; `None`: its own key stands for it.
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
        let all = 0..self.shapes.shapes.len() as u32;
        let made: Vec<u32> = all.map(|kind| self.shapes.behind(spec, kind)).collect();
        if made.iter().zip(0..).all(|(made, kind)| *made == kind) {
            return None;
        }
        self.code.details = true;
        self.code.kinds.rewrites.push(made);
        self.op(Op::Rewrite { rewrite: self.code.kinds.rewrites.len() as u32 - 1 }, &[]);
        Some(Post::Op(Op::Unrewrite))
    }

    /// A node that answers by itself.
    pub(crate) fn answer(&mut self, status: u16) -> Option<Post> {
        self.code.details = true;
        self.op(Op::Answer { status: u32::from(status) }, &[]);
        None
    }

    pub(crate) fn choice(&mut self, stage: u32, spec: &Spec, draft: &Draft, position: usize) -> Option<Post> {
        let shapes = std::mem::take(&mut self.shapes.shapes);
        let keys = &mut self.code.kinds;
        let by = By::new(spec, &shapes, |source| {
            keys.reads_keys = true;
            keys.keys.push(says(source, &shapes));
            keys.keys.len() as u32 - 1
        });
        self.shapes.shapes = shapes;
        self.code.details = true;
        let offset = (self.code.kinds.nodes.len() as u32).wrapping_sub(draft.base);
        for &node in &draft.nodes[position] {
            let To::List(list) = self.layout.point.nodes[node as usize].to else { continue };
            let number = self.layout.number[node as usize];
            self.code.kinds.nodes.push((list, self.layout.place(node), number));
        }
        self.code.kinds.choices.push(ChoiceSite { by, offset, stage, skip: NOT });
        self.op(Op::Choose { choice: self.code.kinds.choices.len() as u32 - 1 }, &[]);
        Some(Post::Chosen)
    }
}

impl Engine<'_> {
    /// A request arrives: of what kind it is, and who sends it.
    #[cold]
    pub(crate) fn draw_kind(&mut self, slot: u32, ordinal: u64, client: u64, way: Key) {
        let kinds = &self.code.kinds;
        let (shape, key) = kinds.mix.request(ordinal, way.with(purpose::MIX));
        // Without a key each request is a client of its own; in a closed loop the user is the client.
        let sender = kinds.reads_keys.then(|| key.unwrap_or_else(|| key::hash_number(client)));
        self.details.begin(slot, shape, sender);
    }

    /// The key of a request, as a node reads it.
    pub(crate) fn key(&self, slot: u32, key: u32) -> Option<u64> {
        let detail = &self.details.slots[slot as usize];
        self.code.kinds.keys[key as usize].get(detail.shape as usize).copied().flatten().or(detail.key)
    }

    /// The status of the last answer, where there is one, and whether the request's method is idempotent.
    pub(crate) fn said(&self, slot: u32) -> (Option<u16>, bool) {
        let shape = self.details.slots[slot as usize].shape;
        let idempotent = self.code.kinds.idempotent.get(shape as usize).copied().unwrap_or(true);
        (self.answered_with(slot), idempotent)
    }

    /// The status of the answer that a request comes back with, where it has an answer and that says one.
    pub(crate) fn answered_with(&self, slot: u32) -> Option<u16> {
        let status = self.details.slots[slot as usize].status;
        let answered = matches!(self.states.slots[slot as usize].outcome(), None | Some(Kind::Status5xx));
        Some(status).filter(|status| answered && *status != 0)
    }

    /// What a request chooses by at a node, the so-manieth time that it comes there.
    pub(crate) fn choice_key(&self, slot: u32, own: Key, came: u32) -> Key {
        let key = own.with(self.states.tries(slot).bits());
        if came == 0 { key } else { key.with(purpose::VISIT).with(u64::from(came)) }
    }

    /// Where a request goes that comes to a choice; `None`: nowhere.
    pub(crate) fn chosen(&self, slot: u32, choice: u32, member: u32, came: u32) -> Option<u32> {
        let site = &self.code.kinds.choices[choice as usize];
        let index = match &site.by {
            By::Kind(table) => {
                let shape = self.details.slots[slot as usize].shape;
                table.get(shape as usize).copied().unwrap_or(NOT)
            }
            By::Share { split, key: by } => {
                let own = self.choices[member.wrapping_add(site.offset) as usize];
                let hash = by.and_then(|k| self.key(slot, k)).map(key::spread);
                split.pick(hash.unwrap_or_else(|| self.choice_key(slot, own, came).bits()))
            }
        };
        Some(index).filter(|index| *index != NOT)
    }

    /// The targets of a balancer that a request is to leave out, as far as its retries say.
    pub(crate) fn left_out(&mut self, slot: u32, instance: u32) {
        let instance = self.hops.tag(slot, instance);
        self.excluded.clear();
        if self.states.slots[slot as usize].exclude() != Exclude::None {
            let list = self.branches.tried_of(slot);
            self.states.tried[list as usize].at(instance, &mut self.excluded);
        }
        self.branches.open_elsewhere(slot, instance, &mut self.excluded);
    }
}
