//! `flaky(p, node, kind="status_5xx")`: each request fails with probability p, after the node behind has done its work.

use super::{Description, Function, Group, NAME, examples, may, need};
use crate::language::call::{Call, Outcome};
use weir_plan::ranges::can_fail_with;
use weir_plan::suggest;
use weir_plan::{Edge, Spec};
use weir_policy::Kind;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "flaky",
    about: Description {
        group: Group::Model,
        meaning: "Each request fails with a certain probability, after the node behind it has done \
                its work.",
        simulated: "the answer becomes an error of that kind, independently for each request",
        served: "in front of built-in servers, or with `--inject`",
        draws: "one number per request that passes",
        example: examples::FLAKY,
    },
    args: &[
        need("p", "0 to 1", "the probability"),
        need("node", "a node", "the next node"),
        may("kind", "a kind of error", "\"status_5xx\"", "the error"),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (p, node) = (call.share("p"), call.node_at("node"));
    let kind = kind(call).unwrap_or(Kind::Status5xx);
    let (Some(p), Some(node)) = (p, node) else { return Ok(None) };
    call.node(Spec::Flaky { p, kind }, Edge::Node(node))
}

fn kind(call: &mut Call<'_, '_, '_, '_>) -> Option<Kind> {
    let value = call.value("kind")?;
    let Some(text) = value.unpack_str().map(str::to_owned) else {
        call.unfit("kind", "a kind of error, such as \"status_5xx\"", value);
        return None;
    };
    let names: Vec<&str> = Kind::ALL.into_iter().filter(|k| can_fail_with(*k)).map(Kind::name).collect();
    let quoted: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
    let take = format!("use {}", suggest::either(&quoted));
    match Kind::from_name(&text) {
        Some(kind) if can_fail_with(kind) => return Some(kind),
        Some(_) => {
            call.wrong_but(format!("`kind` of `flaky` cannot be \"{text}\": no node answers with it"), take);
        }
        None => {
            let near = suggest::nearest(&text, names).map(|n| format!("did you mean \"{n}\"?"));
            let shown: String = text.chars().take(60).collect();
            call.wrong_but(
                format!("`kind` of `flaky`: \"{shown}\" is not a kind of error"),
                near.unwrap_or(take),
            );
        }
    }
    None
}
