//! `redirect(to, status=302)`: sends the client elsewhere. `to` takes `{host}`, `{uri}` and `{client}`.

use super::{Description, Function, Group, NAME, examples, may, need};
use crate::language::call::{Call, Outcome};
use weir_plan::ranges::redirects;
use weir_plan::template;
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "redirect",
    about: Description {
        group: Group::Pass,
        meaning: "Sends the client to another address.",
        simulated: "answers `ok` at once",
        served: "an answer with this status and `Location`",
        draws: "nothing",
        example: examples::ROUTES,
    },
    args: &[
        need(
            "to",
            "a path or URL",
            "the new address; may contain `{host}`, `{uri}`, `{client}`, and of a verified certificate `{client_subject}`, `{client_name}` (its first) and `{client_sha256}`",
        ),
        may("status", "301, 302, 303, 307 or 308", "302", "301 and 308 are permanent"),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let to = call.word("to", template::location);
    if call.is_none("to") {
        call.wrong_but(
            "`to` of `redirect` must be a path or a URL, not None",
            "write `redirect(\"https://{host}{uri}\")`",
        );
    }
    let status = call.whole("status", 0, 999).map_or(302, |s| u16::try_from(s).unwrap_or(0));
    if !redirects(status) && !call.failed() {
        call.wrong_but(
            format!("`status` of `redirect`: {status} does not redirect"),
            "use 301 or 308 (permanent), 302 or 307 (temporary), or 303 (see other)",
        );
    }
    let Some(to) = to else { return Ok(None) };
    call.node(Spec::Redirect { to, status }, Edge::None)
}
