//! `request(method="GET", path="/", host=None, headers={}, key=None, body=0)`: a request as `traffic.mix` describes it.

use super::{Description, Function, Group, examples, may};
use crate::language::call::{Call, Outcome};
use crate::language::value::{KeysValue, RequestValue};
use weir_plan::RequestShape;
use weir_plan::http;
use weir_plan::path;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "request",
    about: Description {
        group: Group::Ask,
        meaning: "A kind of request, for `traffic.mix`.",
        simulated: "routes, keys and retries depend on it",
        served: "nothing; `weir load` sends such requests",
        draws: "its key, where it has one",
        example: examples::ROUTES,
    },
    args: &[
        may("method", "a method", "\"GET\"", "such as `\"POST\"`"),
        may("path", "a path", "\"/\"", "with a query where there is one"),
        may("host", "a host", "None", "its Host"),
        may("headers", "a dictionary", "{}", "its fields"),
        may(
            "key",
            "keys.uniform(...) or keys.zipf(...)",
            "None",
            "which user sends it; `None`: none in particular",
        ),
        may("body", "a size", "0", "bytes of its body"),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let plain = RequestShape::plain();
    let method = call.word("method", http::method).unwrap_or(plain.method);
    let path = call.word("path", path::written::target).unwrap_or(plain.path);
    let host = call.word("host", http::host).map(|h| h.strip_suffix('.').unwrap_or(&h).to_ascii_lowercase());
    let headers = call.fields("headers", http::field_name, http::field_value);
    let key = call
        .made::<KeysValue>(
            "key",
            "a distribution of keys",
            "write `keys.uniform(1000)` or `keys.zipf(1000, 1.0)`",
        )
        .map(|k| k.0);
    let body_bytes = call.bytes("body").unwrap_or(0);
    let shape = RequestShape { weight: 1.0, method, path, host, headers, key, body_bytes };
    Ok(Some(call.heap().alloc(RequestValue(shape))))
}
