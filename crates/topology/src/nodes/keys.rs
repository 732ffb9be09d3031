//! `keys.uniform(n)`, `keys.zipf(n, s)`: the users that send the requests of a mix: numbers from 0.

use super::{Description, Function, Group, examples, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::KeysValue;
use weir_plan::Keys;
use weir_plan::ranges::{MOST_KEYS, STEEPEST};

pub(super) static FUNCTIONS: [Function; 2] = [
    Function {
        name: "keys.uniform",
        about: Description {
            group: Group::Ask,
            meaning: "Requests come from n users, all equally often.",
            simulated: "each request draws its key",
            served: "nothing; `weir load` sends such requests",
            draws: "one key per request",
            example: examples::KEYS,
        },
        args: &[need("n", "1 or more", "how many different keys")],
        more: &[],
        make: uniform,
    },
    Function {
        name: "keys.zipf",
        about: Description {
            group: Group::Ask,
            meaning: "Requests come from n users, some far more often: the k-th in proportion to 1/k^s.",
            simulated: "each request draws its key",
            served: "nothing; `weir load` sends such requests",
            draws: "one key per request",
            example: examples::HASHED,
        },
        args: &[
            need("n", "1 or more", "how many different keys"),
            need("s", "0 to 100", "how steep: 0 is uniform, 1 is Zipf's law"),
        ],
        more: &[],
        make: zipf,
    },
];

fn uniform<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let n = call.whole("n", 1, MOST_KEYS);
    Ok(n.map(|n| call.heap().alloc(KeysValue(Keys::Uniform(n)))))
}

fn zipf<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (n, s) = (call.whole("n", 1, MOST_KEYS), call.not_negative("s"));
    if let Some(s) = s.filter(|s| *s > STEEPEST) {
        call.wrong_but(
            format!("`s` of `keys.zipf` must be at most {STEEPEST}, not {s}"),
            "1 is Zipf's law; at 2 the first key has 61 % of the requests",
        );
    }
    Ok(n.zip(s).map(|(n, s)| call.heap().alloc(KeysValue(Keys::Zipf(n, s)))))
}
