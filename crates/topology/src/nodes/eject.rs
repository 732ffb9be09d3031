//! `eject(consecutive=5, base=30*s, max=300*s, max_percent=50)`: a target that fails this often in a row is left out
//! for a while.

use super::{Description, Function, Group, examples, may};
use crate::language::call::{Call, Outcome};
use crate::language::value::EjectValue;
use weir_plan::duration::show_ns;
use weir_policy::config::Eject;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "eject",
    about: Description {
        group: Group::Health,
        meaning: "Leaves out a target that fails several times in a row.",
        simulated: "the k-th ejection in a row lasts min(`base`·2^(k−1), `max`); then one request \
                probes: its failure ejects again, its success readmits. What a `timeout` around the balancer cuts \
                off counts as an error of the target at which it was, if nothing but `retry` is between \
                them. The client's own errors do not count",
        served: "the same in real time",
        draws: "nothing",
        example: examples::EJECT,
    },
    args: &[
        may("consecutive", "1 or more", "5", "failures in a row"),
        may("base", "a duration", "30*s", "how long the first ejection lasts"),
        may("max", "a duration", "300*s", "how long an ejection lasts at most"),
        may(
            "max_percent",
            "0 to 100, percent",
            "50",
            "how many of the targets may be ejected at once; one always may, unless it is 0",
        ),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    const S: u64 = 1_000_000_000;
    let consecutive = call.count("consecutive", 1, 1_000_000).unwrap_or(5);
    let base_ns = call.positive_duration("base").unwrap_or(30 * S);
    let max_ns = call.positive_duration("max").unwrap_or(300 * S);
    let max_percent = call.percent("max_percent").unwrap_or(50.0);
    if base_ns > max_ns && !call.failed() {
        let show = |ns: u64| show_ns(i128::from(ns));
        call.warn(
            format!(
                "`base` of `eject` has no effect: every ejection lasts `max`, {}, which is shorter than {}",
                show(max_ns),
                show(base_ns)
            ),
            format!("use a longer `max`, as in `max=\"{}\"`", show(base_ns)),
        );
    }
    Ok(Some(call.heap().alloc(EjectValue(Eject { consecutive, base_ns, max_ns, max_percent }))))
}
