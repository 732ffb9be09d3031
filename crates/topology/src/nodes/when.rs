//! `when(path=None, method=None, host=None, header=None, client=None, client_name=None)`: a condition of a `route`.

use super::{Description, Function, Group, examples, may};
use crate::language::call::{Call, Outcome, describe, list};
use crate::language::value::{Poison, WhenValue};
use starlark::values::{Value, ValueLike};
use weir_plan::RouteCondition;
use weir_plan::http;
use weir_plan::path;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "when",
    about: Description {
        group: Group::Pass,
        meaning: "A condition of `route`. All arguments given must match; each takes one value, or a list \
            of alternatives.",
        simulated: "checked for each request that `traffic.mix` describes; a simulated client has \
                 no address and no certificate, so `client` and `client_name` match none",
        served: "the same, with the request as it arrived; paths are matched without query, with \
                unreserved %XX decoded",
        draws: "nothing",
        example: examples::ROUTES,
    },
    args: &[
        may("path", "a path, or a list", "None", "exact, or a prefix that ends in `*`"),
        may("method", "a method, or a list", "None", "such as `\"POST\"`"),
        may("host", "a host, or a list", "None", "exact, or `*.example.com`; port and case do not matter"),
        may(
            "header",
            "(name, value), or a list",
            "None",
            "the value is exact, or a prefix that ends \
                in `*`",
        ),
        may("client", "a network, or a list", "None", "the client's address, such as `\"10.0.0.0/8\"`"),
        may(
            "client_name",
            "a name, or a list",
            "None",
            "a DNS, URI or mail name of the client's verified certificate (`client_ca`), exact, or a prefix that ends \
                in `*`, such as `\"spiffe://prod/*\"`",
        ),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let path = call.words("path", path::written::pattern).iter().map(|p| path::normal(p)).collect();
    let method = call.words("method", http::routed_method);
    let host = call.words("host", http::host_pattern);
    let header = headers(call);
    let client = call.words("client", |text| http::network(text).map(|_| ()));
    let client_name = call.words("client_name", http::client_name);
    let plain = |h: String| h.strip_suffix('.').unwrap_or(&h).to_ascii_lowercase();
    let host = host.into_iter().map(plain).collect();
    let condition = RouteCondition { path, method, host, header, client, client_name };
    Ok(Some(call.heap().alloc(WhenValue(condition))))
}

/// `header`: a pair of name and value, or a list of such pairs.
fn headers<'v>(call: &mut Call<'v, '_, '_, '_>) -> Vec<(String, String)> {
    let Some(value) = call.value_or_none("header") else { return Vec::new() };
    let pairs = match list(value) {
        Some(_) if value.get_type() == "tuple" => vec![value],
        Some(items) if !items.is_empty() => items,
        _ => {
            malformed(call, value);
            return Vec::new();
        }
    };
    let pairs: Vec<Option<(String, String)>> = pairs.into_iter().map(|p| header(call, p)).collect();
    pairs.into_iter().flatten().collect()
}

fn header<'v>(call: &mut Call<'v, '_, '_, '_>, pair: Value<'v>) -> Option<(String, String)> {
    if pair.downcast_ref::<Poison>().is_some() {
        call.poison();
        return None;
    }
    let parts = list(pair).filter(|_| pair.get_type() == "tuple");
    let Some([name, value]) = parts.and_then(|p| <[Value<'v>; 2]>::try_from(p).ok()) else {
        malformed(call, pair);
        return None;
    };
    let what = call.describe("header");
    let name = call.word_of(&what, name, http::seen_field)?;
    let value = call.word_of(&what, value, http::value_pattern)?;
    Some((name.to_ascii_lowercase(), value))
}

fn malformed<'v>(call: &mut Call<'v, '_, '_, '_>, value: Value<'v>) {
    let message =
        format!("`header` of `when` must be (name, value), or a list of such pairs, not {}", describe(value));
    call.wrong_but(message, "write `header=(\"x-tier\", \"gold\")`; a value may end in `*`");
}
