//! `dist.*`: distributions of durations.

use super::{Description, Function, Group, examples, need};
use crate::language::call::{Call, Outcome, describe, list};
use crate::language::data;
use crate::language::value::DistValue;
use weir_model::Dist;

pub(super) static FUNCTIONS: [Function; 10] = [
    Function {
        name: "dist.fixed",
        about: Description {
            group: Group::Dist,
            meaning: "Always the same duration. Where a distribution is expected, a duration means this.",
            simulated: "drawn for each request at each place",
            served: "drawn where its node acts",
            draws: "nothing",
            example: examples::DIST,
        },
        args: &[need("d", "a duration", "the duration")],
        more: &[],
        make: fixed,
    },
    Function {
        name: "dist.exponential",
        about: Description {
            group: Group::Dist,
            meaning: "Memoryless: the classic model of service times and of times between failures.",
            simulated: "drawn for each request at each place",
            served: "drawn where its node acts",
            draws: "one value each time",
            example: examples::DIST,
        },
        args: &[need("mean", "a duration", "its mean")],
        more: &[],
        make: exponential,
    },
    Function {
        name: "dist.uniform",
        about: Description {
            group: Group::Dist,
            meaning: "Any duration between two bounds, equally likely.",
            simulated: "drawn for each request at each place",
            served: "drawn where its node acts",
            draws: "one value each time",
            example: examples::DIST,
        },
        args: &[need("low", "a duration", "the least"), need("high", "a duration", "the greatest")],
        more: &[],
        make: uniform,
    },
    Function {
        name: "dist.lognormal",
        about: Description {
            group: Group::Dist,
            meaning: "Positive and skewed: a good fit for many measured service times.",
            simulated: "drawn for each request at each place",
            served: "drawn where its node acts",
            draws: "one value each time",
            example: examples::DIST,
        },
        args: &[
            need("mean", "a duration", "its mean"),
            need("cv", "0 or more", "standard deviation divided by mean"),
        ],
        more: &[],
        make: lognormal,
    },
    Function {
        name: "dist.pareto",
        about: Description {
            group: Group::Dist,
            meaning: "Heavy-tailed: a few values are enormous.",
            simulated: "drawn for each request at each place",
            served: "drawn where its node acts",
            draws: "one value each time",
            example: examples::DIST,
        },
        args: &[
            need("minimum", "a duration", "the least"),
            need("alpha", "above 0", "the tail: below 2 the variance is infinite, below 1 the mean too"),
        ],
        more: &[],
        make: pareto,
    },
    Function {
        name: "dist.erlang",
        about: Description {
            group: Group::Dist,
            meaning: "The sum of k equal exponentials: less variable than one.",
            simulated: "drawn for each request at each place",
            served: "drawn where its node acts",
            draws: "one value each time",
            example: examples::DIST,
        },
        args: &[need("k", "1 or more", "how many"), need("mean", "a duration", "the mean of the sum")],
        more: &[],
        make: erlang,
    },
    Function {
        name: "dist.hyperexponential",
        about: Description {
            group: Group::Dist,
            meaning: "One of several exponentials, by chance: more variable than one.",
            simulated: "drawn for each request at each place",
            served: "drawn where its node acts",
            draws: "one value each time",
            example: examples::DIST,
        },
        args: &[need(
            "phases",
            "a list of (probability, mean)",
            "they add up to 1: `[(0.9, 40*ms), (0.1, \
                240*ms)]`",
        )],
        more: &[],
        make: hyperexponential,
    },
    Function {
        name: "dist.empirical",
        about: Description {
            group: Group::Dist,
            meaning: "Draws from measured durations.",
            simulated: "drawn for each request at each place",
            served: "drawn where its node acts",
            draws: "one value each time",
            example: examples::DIST,
        },
        args: &[need(
            "values",
            "a path, or a list of durations",
            "a CSV file with a header and a column \
                `duration_s` (or `_ms`, `_us`, `_ns`), or the values themselves",
        )],
        more: &[],
        make: empirical,
    },
    Function {
        name: "dist.sum",
        about: Description {
            group: Group::Dist,
            meaning: "The sum of two draws.",
            simulated: "drawn for each request at each place",
            served: "drawn where its node acts",
            draws: "one value each time",
            example: examples::DIST,
        },
        args: &[
            need("a", "a duration or distribution", "the one"),
            need("b", "a duration or distribution", "the other"),
        ],
        more: &[],
        make: sum,
    },
    Function {
        name: "dist.rounded",
        about: Description {
            group: Group::Dist,
            meaning: "Each draw rounded, half up, to a multiple of a duration.",
            simulated: "drawn for each request at each place",
            served: "drawn where its node acts",
            draws: "one value each time",
            example: examples::DIST,
        },
        args: &[
            need("dist", "a distribution", "what is rounded"),
            need("to", "a duration", "to multiples of this"),
        ],
        more: &[],
        make: rounded,
    },
];

fn made<'v>(call: &Call<'v, '_, '_, '_>, dist: Option<Dist>) -> Outcome<'v> {
    Ok(dist.map(|d| call.heap().alloc(DistValue(d))))
}

fn fixed<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let dist = call.duration("d").map(|ns| Dist::Fixed { ns });
    made(call, dist)
}

fn exponential<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let dist = call.duration("mean").map(|mean_ns| Dist::Exponential { mean_ns });
    made(call, dist)
}

fn uniform<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (Some(low_ns), Some(high_ns)) = (call.duration("low"), call.duration("high")) else {
        return Ok(None);
    };
    if low_ns > high_ns {
        call.wrong_but("`low` of `dist.uniform` is greater than `high`", "swap the two");
    }
    made(call, Some(Dist::Uniform { low_ns, high_ns }))
}

fn lognormal<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (Some(mean_ns), Some(cv)) = (call.duration("mean"), call.not_negative("cv")) else { return Ok(None) };
    if cv > 1e6 {
        call.wrong(format!("`cv` of `dist.lognormal` must be at most 1000000, not {cv}"));
    }
    made(call, Some(Dist::Lognormal { mean_ns, cv }))
}

fn pareto<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (minimum, alpha) = (call.duration("minimum"), call.real("alpha"));
    if let Some(alpha) = alpha.filter(|a| *a <= 0.0) {
        call.wrong(format!("`alpha` of `dist.pareto` must be above 0, not {alpha}"));
    }
    let (Some(minimum_ns), Some(alpha)) = (minimum, alpha) else { return Ok(None) };
    made(call, Some(Dist::Pareto { minimum_ns, alpha }))
}

fn erlang<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (k, mean) = (call.count("k", 1, 1_000_000), call.duration("mean"));
    let (Some(k), Some(mean_ns)) = (k, mean) else { return Ok(None) };
    made(call, Some(Dist::Erlang { k, mean_ns }))
}

fn hyperexponential<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    const SHAPE: &str = "write `dist.hyperexponential([(0.9, 40*ms), (0.1, 240*ms)])`";
    let Some(value) = call.value("phases") else { return Ok(None) };
    let Some(items) = list(value) else {
        call.unfit("phases", "a list of (probability, mean)", value);
        return Ok(None);
    };
    if items.is_empty() {
        call.wrong_but("`dist.hyperexponential` has no phases: the list is empty", SHAPE);
    }
    let mut phases = Vec::new();
    for item in items {
        let Some([p, mean]) = list(item).and_then(|pair| <[_; 2]>::try_from(pair).ok()) else {
            call.wrong_but(
                format!(
                    "a phase of `dist.hyperexponential` must be (probability, mean), not {}",
                    describe(item)
                ),
                SHAPE,
            );
            continue;
        };
        let p = call.real_of("a probability of `dist.hyperexponential`", p);
        let mean = call.ns("a mean of `dist.hyperexponential`", mean);
        if let Some(p) = p.filter(|p| !(0.0..=1.0).contains(p)) {
            call.wrong(format!("a probability of `dist.hyperexponential` must be between 0 and 1, not {p}"));
        }
        if let (Some(p), Some(mean)) = (p, mean) {
            phases.push((p, mean));
        }
    }
    let total: f64 = phases.iter().map(|p| p.0).sum();
    if !call.failed() && (total - 1.0).abs() > 1e-9 {
        call.wrong(format!("the probabilities of `dist.hyperexponential` add up to {total}, not 1"));
    }
    made(call, Some(Dist::Hyperexponential { phases }))
}

fn empirical<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let Some(value) = call.value("values") else { return Ok(None) };
    if let Some(path) = value.unpack_str() {
        let path = path.to_owned();
        let Some(values_ns) = data::durations(call, &path) else { return Ok(None) };
        return made(call, Some(Dist::Empirical { source: Some(path), values_ns }));
    }
    let Some(items) = list(value) else {
        call.unfit("values", "a list of durations or the name of a CSV file", value);
        return Ok(None);
    };
    if items.is_empty() {
        call.wrong("`dist.empirical` needs at least one value: the list is empty");
        return Ok(None);
    }
    let values: Vec<u64> =
        items.into_iter().filter_map(|item| call.ns("a value of `dist.empirical`", item)).collect();
    made(call, Some(Dist::Empirical { source: None, values_ns: values.into() }))
}

fn sum<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (Some(a), Some(b)) = (call.dist("a"), call.dist("b")) else { return Ok(None) };
    bounded(call, depth(&a).max(depth(&b)), size(&a) + size(&b));
    made(call, Some(Dist::Sum { a: Box::new(a), b: Box::new(b) }))
}

fn rounded<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (of, to) = (call.dist("dist"), call.positive_duration("to"));
    let (Some(of), Some(to_ns)) = (of, to) else { return Ok(None) };
    bounded(call, depth(&of), size(&of));
    made(call, Some(Dist::Rounded { of: Box::new(of), to_ns }))
}

/// Each draw walks the whole distribution, so it stays small.
fn bounded(call: &mut Call<'_, '_, '_, '_>, depth: u32, size: u32) {
    if depth > 64 {
        call.wrong("distributions are nested more than 64 deep");
    } else if size > 1000 {
        call.wrong("a distribution is made of more than 1000 others");
    }
}

/// How deep a distribution is nested.
fn depth(dist: &Dist) -> u32 {
    match dist {
        Dist::Sum { a, b } => 1 + depth(a).max(depth(b)),
        Dist::Rounded { of, .. } => 1 + depth(of),
        _ => 1,
    }
}

/// The number of distributions it is made of.
fn size(dist: &Dist) -> u32 {
    match dist {
        Dist::Sum { a, b } => 1 + size(a) + size(b),
        Dist::Rounded { of, .. } => 1 + size(of),
        _ => 1,
    }
}
