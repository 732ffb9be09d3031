//! `slow_start(window, aggression=1.0, min_weight=0.1, limits=False, like=None)`: a target that comes back gets its share
//! gradually, by weir's own formula or another proxy's.

use super::{Description, Function, Group, examples, may, maybe, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::SlowStartValue;
use weir_policy::config::{SlowStart, SlowStartLike};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "slow_start",
    about: Description {
        group: Group::Health,
        meaning: "Gives a target that comes back its share gradually.",
        simulated: "its weight grows over the `window`, in steps of a hundredth, and with `limits` its limit of requests in \
            flight; it starts at every return, never at the start of the run. Ramps of other targets do not move, and where \
            all eligible targets are on theirs, limits are whole",
        served: "the same in real time, and for targets that are added; ramps go on over reloads and hand-overs",
        draws: "nothing",
        example: examples::HEALTH,
    },
    args: &[
        need("window", "a duration", "how long it takes until the whole weight is back"),
        may("aggression", "above 0", "1.0", "1 grows in a straight line; more grows faster at first"),
        may("min_weight", "above 0, up to 1", "0.1", "the share of its weight that it begins with"),
        may(
            "limits",
            "True or False",
            "False",
            "whether its `max_in_flight` grows with its weight, from 1 at least",
        ),
        maybe(
            "like",
            "\"haproxy\" | \"nginx\" | \"envoy\" | None",
            "None",
            "the proxy whose formula holds; with it `window` alone, or for Envoy also `aggression` and `min_weight`",
        ),
    ],
    more: &[],
    make,
}];

const SECOND_NS: u64 = 1_000_000_000;

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let window_ns = call.positive_duration("window");
    let aggression = call.positive("aggression").unwrap_or(1.0);
    let min_weight = call.share("min_weight").unwrap_or(0.1);
    if min_weight == 0.0 && !call.failed() {
        call.wrong_but(
            "`min_weight` of `slow_start` must be above 0: a target without weight is never picked",
            "write `min_weight=0.01` for a hundredth of its share",
        );
    }
    let limits = call.truth("limits").unwrap_or_default();
    let like = like(call);
    let Some(window_ns) = window_ns else { return Ok(None) };
    if like == Some(SlowStartLike::Haproxy) && window_ns < SECOND_NS && !call.failed() {
        call.wrong_but(
            "`window` of `slow_start` must be 1*s or more with `like=\"haproxy\"`, which counts whole seconds",
            "write `slow_start(30*s, like=\"haproxy\")`, or leave `like` out",
        );
    }
    let slow_start = SlowStart { window_ns, aggression, min_weight, limits, like };
    Ok(Some(call.heap().alloc(SlowStartValue(slow_start))))
}

/// `like`, which excludes what that proxy does not take.
fn like(call: &mut Call<'_, '_, '_, '_>) -> Option<SlowStartLike> {
    let words = [
        ("haproxy", Some(SlowStartLike::Haproxy)),
        ("nginx", Some(SlowStartLike::Nginx)),
        ("envoy", Some(SlowStartLike::Envoy)),
    ];
    if call.is_none("like") {
        return None;
    }
    let like = call.choice("like", &words)?;
    let (word, excluded): (_, &[&str]) = match like {
        SlowStartLike::Haproxy => ("haproxy", &["aggression", "min_weight", "limits"]),
        SlowStartLike::Nginx => ("nginx", &["aggression", "min_weight", "limits"]),
        SlowStartLike::Envoy => ("envoy", &["limits"]),
    };
    for name in excluded {
        if call.value_or_none(name).is_some() && !call.failed() {
            let why = match (*name, like) {
                ("limits", SlowStartLike::Haproxy) => "HAProxy always lowers limits, by a formula of its own",
                ("limits", SlowStartLike::Nginx) => "nginx leaves limits as they are",
                ("limits", SlowStartLike::Envoy) => "Envoy leaves limits as they are",
                (_, SlowStartLike::Haproxy) => "HAProxy has one curve, in sixteenths",
                (_, _) => "nginx has one curve, in hundredths",
            };
            call.wrong_but(
                format!("`{name}` of `slow_start` excludes `like=\"{word}\"`: {why}"),
                format!("leave `{name}` out, or leave `like` out for weir's own slow start"),
            );
        }
    }
    Some(like)
}
