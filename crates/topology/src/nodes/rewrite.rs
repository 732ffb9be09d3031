//! `rewrite(node, path=None, set={}, remove=[], response_set={}, response_remove=[])`: another path, other fields.
//!
//! `path=("/api/", "/")` replaces a prefix, which fits as a condition does; a path without it stays as it is, and one
//! that would become longer than a target may be is `bad_request` (414). What is removed goes first, then what is set
//! occurs once. Values take `{host}`, `{uri}` (as the request came to this node) and `{client}`.

use super::{Description, Function, Group, NAME, examples, may, need};
use crate::language::call::{Call, Outcome, describe, list};
use weir_plan::http;
use weir_plan::path;
use weir_plan::template;
use weir_plan::{Edge, Rewrite, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "rewrite",
    about: Description {
        group: Group::Pass,
        meaning: "Changes the path and the header fields of a request, and the fields of its response.",
        simulated: "nodes behind it see the new path and fields (routes and keys). A simulated \
                client has no address, so a field set to `{client}` counts as missing. Responses have no \
                fields",
        served: "the same, and responses are changed on their way back. Fields are removed first, then \
            each field that is set occurs once; a path that would become too long is `bad_request` (414)",
        draws: "nothing",
        example: examples::ROUTES,
    },
    args: &[
        need("node", "a node", "the next node"),
        may(
            "path",
            "a pair of prefixes",
            "None",
            "`(\"/api/\", \"/\")` replaces the first prefix with the second; other paths stay as they are",
        ),
        may(
            "set",
            "a dictionary",
            "{}",
            "fields of the request to set; values may contain `{host}`, \
                `{uri}`, `{client}`, and of a verified certificate `{client_subject}`, `{client_name}` (its first) and `{client_sha256}`",
        ),
        may("remove", "a list of names", "[]", "fields of the request to remove"),
        may("response_set", "a dictionary", "{}", "fields of the response to set"),
        may("response_remove", "a list of names", "[]", "fields of the response to remove"),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let node = call.node_at("node");
    let path = prefixes(call);
    let set = call.fields("set", http::own_field, template::field_value);
    let remove = names(call, "remove");
    let response_set = call.fields("response_set", http::own_field, template::field_value);
    let response_remove = names(call, "response_remove");
    let Some(node) = node else { return Ok(None) };
    let rewrite = Rewrite { path, set, remove, response_set, response_remove };
    if rewrite == Rewrite::default() && !call.failed() {
        call.warn(
            "this `rewrite` changes nothing: it has no arguments but its node",
            "write `rewrite(node, path=(\"/api/\", \"/\"))`, or `set={\"x-via\": \"weir\"}`",
        );
    }
    call.node(Spec::Rewrite(rewrite), Edge::Node(node))
}

/// Names of fields, each once.
fn names(call: &mut Call<'_, '_, '_, '_>, argument: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in call.several(argument, http::own_field).unwrap_or_default() {
        let name = name.to_ascii_lowercase();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A prefix, and what takes its place.
fn prefixes(call: &mut Call<'_, '_, '_, '_>) -> Option<(String, String)> {
    let value = call.value_or_none("path")?;
    let parts = list(value).filter(|parts| parts.len() == 2 && value.get_type() == "tuple");
    let Some([from, to]) = parts.as_deref() else {
        let message = format!("`path` of `rewrite` must be a pair of prefixes, not {}", describe(value));
        call.wrong_but(message, "write `path=(\"/api/\", \"/\")`");
        return None;
    };
    let what = call.describe("path");
    let from = call.word_of(&what, *from, path::written::prefix).map(|from| path::normal(&from));
    let to = call.word_of(&what, *to, path::written::prefix);
    from.zip(to)
}
