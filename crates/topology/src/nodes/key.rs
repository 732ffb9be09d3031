//! `key.header(n)`, `key.cookie(n)`, `key.path()`, `key.client()`: what of a request is hashed or counted by.
//!
//! - In virtual time: the header, cookie or path that `traffic.mix` gives; else the request's `key` (in `traffic.closed` the user).
//! - In the proxy: the header, cookie, path or client address.
//! - Draws: nothing.

use super::{Function, need};
use crate::call::{Call, Outcome};
use crate::http;
use crate::plan::KeySource;
use crate::value::KeyValue;

pub(super) static FUNCTIONS: [Function; 4] = [
    Function { name: "key.header", args: &[need("name")], more: &[], make: header },
    Function { name: "key.cookie", args: &[need("name")], more: &[], make: cookie },
    Function { name: "key.path", args: &[], more: &[], make: path },
    Function { name: "key.client", args: &[], more: &[], make: client },
];

fn header<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let name = name(call);
    made(call, name.map(|n| KeySource::Header(n.to_ascii_lowercase())))
}

fn cookie<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let name = name(call);
    made(call, name.map(KeySource::Cookie))
}

fn path<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    made(call, Some(KeySource::Path))
}

fn client<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    made(call, Some(KeySource::Client))
}

fn name(call: &mut Call<'_, '_, '_, '_>) -> Option<String> {
    let value = call.value("name")?;
    let what = call.of("name");
    call.word_of(&what, value, http::field_name)
}

fn made<'v>(call: &Call<'v, '_, '_, '_>, key: Option<KeySource>) -> Outcome<'v> {
    Ok(key.map(|k| call.heap().alloc(KeyValue(k))))
}
