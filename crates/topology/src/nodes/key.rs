//! `key.header(n)`, `key.cookie(n)`, `key.path()`, `key.client()`: the property of a request that is hashed or counted
//! by.

use super::{Description, Function, Group, examples, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::KeyValue;
use weir_plan::KeySource;
use weir_plan::http;

pub(super) static FUNCTIONS: [Function; 4] = [
    Function {
        name: "key.header",
        about: Description {
            group: Group::Key,
            meaning: "The value of a header field, to hash or count by.",
            simulated: "the value that `traffic.mix` gives the request; without it, the request's `key` \
                (in `traffic.closed` the user)",
            served: "the field; without it hashes pick at random and limits use one common bucket",
            draws: "nothing",
            example: examples::HASHED,
        },
        args: &[need("name", "a field name", "which field")],
        more: &[],
        make: header,
    },
    Function {
        name: "key.cookie",
        about: Description {
            group: Group::Key,
            meaning: "The value of a cookie, to hash or count by.",
            simulated: "the value that `traffic.mix` gives the request; without it, the request's `key` \
                (in `traffic.closed` the user)",
            served: "the cookie; without it hashes pick at random and limits use one common bucket",
            draws: "nothing",
            example: examples::KEYS,
        },
        args: &[need("name", "a cookie name", "which cookie")],
        more: &[],
        make: cookie,
    },
    Function {
        name: "key.path",
        about: Description {
            group: Group::Key,
            meaning: "The path of a request, to hash or count by.",
            simulated: "the path that `traffic.mix` gives",
            served: "the path",
            draws: "nothing",
            example: examples::KEYS,
        },
        args: &[],
        more: &[],
        make: path,
    },
    Function {
        name: "key.client",
        about: Description {
            group: Group::Key,
            meaning: "The client of a request, to hash or count by.",
            simulated: "the request's `key` (in `traffic.closed` the user); without one each request \
                counts as a separate client, with a warning",
            served: "the client's address, IPv6 by /64",
            draws: "nothing",
            example: examples::KEYS,
        },
        args: &[],
        more: &[],
        make: client,
    },
];

fn header<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let name = name(call, http::seen_field);
    made(call, name.map(|n| KeySource::Header(n.to_ascii_lowercase())))
}

fn cookie<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let name = name(call, http::field_name);
    made(call, name.map(KeySource::Cookie))
}

fn path<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    made(call, Some(KeySource::Path))
}

fn client<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    made(call, Some(KeySource::Client))
}

fn name(call: &mut Call<'_, '_, '_, '_>, check: fn(&str) -> Result<(), http::InvalidWord>) -> Option<String> {
    let value = call.value("name")?;
    let what = call.describe("name");
    call.word_of(&what, value, check)
}

fn made<'v>(call: &Call<'v, '_, '_, '_>, key: Option<KeySource>) -> Outcome<'v> {
    Ok(key.map(|k| call.heap().alloc(KeyValue(k))))
}
