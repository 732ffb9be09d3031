//! `keys.uniform(n)`, `keys.zipf(n, s)`: who sends the requests of a mix: numbers from 0.
//!
//! - In virtual time: each request draws its key.
//! - In the proxy: nothing; `weir load` sends so.
//! - Draws: one key per request.

use super::{Function, need};
use crate::call::{Call, Outcome};
use crate::plan::Keys;
use crate::value::KeysValue;

pub(super) static FUNCTIONS: [Function; 2] = [
    Function { name: "keys.uniform", args: &[need("n")], more: &[], make: uniform },
    Function { name: "keys.zipf", args: &[need("n"), need("s")], more: &[], make: zipf },
];

/// Different keys, at most.
pub(crate) const MOST_KEYS: u64 = 1_000_000_000_000;
/// The steepest distribution.
pub(crate) const STEEPEST: f64 = 100.0;

fn uniform<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let n = call.whole("n", 1, MOST_KEYS);
    Ok(n.map(|n| call.heap().alloc(KeysValue(Keys::Uniform(n)))))
}

fn zipf<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (n, s) = (call.whole("n", 1, MOST_KEYS), call.not_negative("s"));
    if let Some(s) = s.filter(|s| *s > STEEPEST) {
        call.wrong_but(
            format!("`s` of `keys.zipf` must be at most {STEEPEST}, and is {s}"),
            "1 is Zipf's law; at 2 the first key has 61 % of the requests",
        );
    }
    Ok(n.zip(s).map(|(n, s)| call.heap().alloc(KeysValue(Keys::Zipf(n, s)))))
}
