//! The kinds of a scenario's requests.

use weir_model::mix::{Keys as DrawnKeys, Mix};
use weir_plan::{Keys, Scenario};
use weir_policy::key;

/// The kinds that the traffic of a scenario draws, or a trace gives.
pub fn mix(scenario: &Scenario) -> Mix {
    let keys = |keys: &Keys| match *keys {
        Keys::Uniform(n) => DrawnKeys::Uniform(n),
        Keys::Zipf(n, s) => DrawnKeys::zipf(n, s),
    };
    let mix = Mix::new(scenario.mix.iter().map(|r| (r.weight, r.key.as_ref().map(keys))).collect());
    let Some(recorded) = &scenario.recorded else { return mix };
    let hashes: Vec<u64> = recorded.keys.iter().map(|k| key::hash(k.as_bytes())).collect();
    let sender = |at: usize| {
        let key = recorded.senders.get(at).copied().flatten()?;
        hashes.get(key as usize).copied()
    };
    mix.recorded((0..).zip(&recorded.kinds).map(|(at, kind)| (*kind, sender(at))).collect())
}
