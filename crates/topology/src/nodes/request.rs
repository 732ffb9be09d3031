//! `request(method="GET", path="/", host=None, headers={}, key=None, body=0)`: a request as `traffic.mix` describes it.
//!
//! - In virtual time: what routes, keys and the table of retries look at.
//! - In the proxy: nothing; `weir load` sends it.
//! - Draws: its key, where it has one.

use super::{Function, may};
use crate::call::{Call, Outcome};
use crate::http;
use crate::plan::RequestShape;
use crate::value::{KeysValue, RequestValue};
use starlark::values::dict::DictRef;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "request",
    args: &[may("method"), may("path"), may("host"), may("headers"), may("key"), may("body")],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let plain = RequestShape::plain();
    let method = call.word("method", http::method).unwrap_or(plain.method);
    let path = call.word("path", http::path).unwrap_or(plain.path);
    let host = call.word("host", http::host).map(|h| h.strip_suffix('.').unwrap_or(&h).to_ascii_lowercase());
    let headers = headers(call);
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

/// `headers`: a dictionary of strings; names in lower case, sorted as given.
fn headers(call: &mut Call<'_, '_, '_, '_>) -> Vec<(String, String)> {
    let Some(value) = call.value_or_none("headers") else { return Vec::new() };
    let Some(dictionary) = DictRef::from_value(value) else {
        call.unfit_but(
            "headers",
            "a dictionary of names and values",
            value,
            "write `headers={\"x-user\": \"anna\"}`",
        );
        return Vec::new();
    };
    let items: Vec<_> = dictionary.iter().collect();
    drop(dictionary);
    let what = call.of("headers");
    let mut headers: Vec<(String, String)> = Vec::with_capacity(items.len());
    for (name, value) in items {
        let name_repr = name.to_repr();
        let name = call.word_of(&what, name, http::field_name).map(|n| n.to_ascii_lowercase());
        let of = format!("{what}: the value of {}", crate::http::short(&name_repr));
        let value = call.word_of(&of, value, http::field_value);
        let Some((name, value)) = name.zip(value) else { continue };
        if headers.iter().any(|(n, _)| *n == name) {
            call.wrong(format!("{what}: \"{name}\" is given twice (names of headers have no case)"));
        }
        headers.push((name, value));
    }
    headers
}
