//! `respond(status, body="", headers={})`: a fixed answer.

use super::{Description, Function, Group, NAME, examples, may, need};
use crate::language::call::{Call, Outcome};
use weir_plan::http;
use weir_plan::ranges::{MOST_BODY, lacks_body};
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "respond",
    about: Description {
        group: Group::Pass,
        meaning: "A fixed answer.",
        simulated: "answers at once; a status of 500 or above is `status_5xx`, any other `ok`",
        served: "this answer, without contacting an origin; `text/plain` unless `headers` set another type",
        draws: "nothing",
        example: examples::ROUTES,
    },
    args: &[
        need("status", "200 to 599", "the status of the answer"),
        may("body", "a string", "\"\"", "its body, at most 1 MiB"),
        may("headers", "a dictionary", "{}", "further fields"),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let status = call.count("status", 200, 599).and_then(|s| u16::try_from(s).ok());
    let body = call.text("body").unwrap_or_default();
    let headers = call.fields("headers", http::own_field, http::field_value);
    if body.len() > MOST_BODY {
        call.wrong(format!("`body` of `respond` is longer than {} KiB", MOST_BODY >> 10));
    }
    let Some(status) = status else { return Ok(None) };
    if !body.is_empty() && lacks_body(status) {
        call.wrong_but(format!("an answer with status {status} has no body"), "leave `body` out");
    }
    call.node(Spec::Respond { status, body, headers }, Edge::None)
}
