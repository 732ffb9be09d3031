//! `outlier(...)`: outlier detection by Envoy's names and defaults; durations and percentages as the language writes
//! them.

use super::{Description, Function, Group, examples, may};
use crate::language::call::{Call, Outcome};
use crate::language::value::OutlierValue;
use weir_plan::ranges::MOST_COUNTED;
use weir_policy::config::Outlier;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "outlier",
    about: Description {
        group: Group::Health,
        meaning: "Outlier detection with Envoy's names and defaults.",
        simulated: "errors in a row eject at once; at the end of each `interval` success rates and \
                shares of failures are compared",
        served: "the same in real time",
        draws: "whether an ejection is enforced, below 100 percent, and its jitter",
        example: examples::OUTLIER,
    },
    args: &[
        may("consecutive_5xx", "1 or more", "5", "errors in a row that eject"),
        may("consecutive_gateway_failure", "1 or more", "5", "errors in a row that mean 502, 503 or 504"),
        may(
            "consecutive_local_origin_failure",
            "1 or more",
            "5",
            "failed connections and timeouts \
                in a row, where these are split from answers",
        ),
        may(
            "split_external_local_origin_errors",
            "True | False",
            "False",
            "count failed connections separately from error answers",
        ),
        may("interval", "a duration", "10*s", "between two comparisons"),
        may(
            "base_ejection_time",
            "a duration",
            "30*s",
            "times the number of ejections so far: how \
                long an ejection lasts",
        ),
        may("max_ejection_time", "a duration", "300*s", "how long an ejection lasts at most"),
        may("max_ejection_time_jitter", "a duration", "0*s", "up to this much is added to each ejection"),
        may(
            "max_ejection_percent",
            "0 to 100, percent",
            "10",
            "how many of the targets may be \
                ejected at once",
        ),
        may(
            "always_eject_one_host",
            "True | False",
            "False",
            "one target may always be ejected, even beyond `max_ejection_percent`",
        ),
        may(
            "enforcing_consecutive_5xx",
            "0 to 100, percent",
            "100",
            "how likely `consecutive_5xx` \
                ejects",
        ),
        may(
            "enforcing_consecutive_gateway_failure",
            "0 to 100, percent",
            "0",
            "how likely \
                `consecutive_gateway_failure` ejects",
        ),
        may(
            "enforcing_consecutive_local_origin_failure",
            "0 to 100, percent",
            "100",
            "how likely \
                `consecutive_local_origin_failure` ejects",
        ),
        may("enforcing_success_rate", "0 to 100, percent", "100", "how likely a low success rate ejects"),
        may(
            "enforcing_failure_percentage",
            "0 to 100, percent",
            "0",
            "how likely a high share of \
                failures ejects",
        ),
        may(
            "success_rate_minimum_hosts",
            "0 or more",
            "5",
            "how many targets with enough requests a comparison needs",
        ),
        may("success_rate_request_volume", "0 or more", "100", "how many requests in an interval are enough"),
        may(
            "success_rate_stdev_factor",
            "0 or more, thousandths",
            "1900",
            "how many standard \
                deviations below the mean: 1900 is 1.9",
        ),
        may(
            "failure_percentage_threshold",
            "0 to 100, percent",
            "85",
            "the share of failures that \
                ejects",
        ),
        may(
            "failure_percentage_minimum_hosts",
            "0 or more",
            "5",
            "how many targets with enough requests a comparison needs",
        ),
        may(
            "failure_percentage_request_volume",
            "0 or more",
            "50",
            "how many requests in an interval are enough",
        ),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let mut o = Outlier::default();
    counts(call, &mut o);
    times(call, &mut o);
    percentages(call, &mut o);
    for (name, field) in [
        ("split_external_local_origin_errors", &mut o.split_external_local_origin_errors),
        ("always_eject_one_host", &mut o.always_eject_one_host),
    ] {
        *field = call.truth(name).unwrap_or(*field);
    }
    Ok(Some(call.heap().alloc(OutlierValue(o))))
}

fn counts(call: &mut Call<'_, '_, '_, '_>, o: &mut Outlier) {
    for (name, least, field) in [
        ("consecutive_5xx", 1, &mut o.consecutive_5xx),
        ("consecutive_gateway_failure", 1, &mut o.consecutive_gateway_failure),
        ("consecutive_local_origin_failure", 1, &mut o.consecutive_local_origin_failure),
        ("success_rate_minimum_hosts", 0, &mut o.success_rate_minimum_hosts),
        ("success_rate_request_volume", 0, &mut o.success_rate_request_volume),
        ("success_rate_stdev_factor", 0, &mut o.success_rate_stdev_factor),
        ("failure_percentage_minimum_hosts", 0, &mut o.failure_percentage_minimum_hosts),
        ("failure_percentage_request_volume", 0, &mut o.failure_percentage_request_volume),
    ] {
        if name == "success_rate_stdev_factor"
            && let Some(value) = call.value(name).filter(|v| v.get_type() == "float")
        {
            let message =
                format!("`{name}` of `outlier` counts whole thousandths, as Envoy's does, not {value}");
            call.wrong_but(message, "write 1900 for 1.9 standard deviations");
            continue;
        }
        *field = call.count(name, least, MOST_COUNTED).unwrap_or(*field);
    }
}

fn times(call: &mut Call<'_, '_, '_, '_>, o: &mut Outlier) {
    for (name, field) in [
        ("interval", &mut o.interval_ns),
        ("base_ejection_time", &mut o.base_ejection_time_ns),
        ("max_ejection_time", &mut o.max_ejection_time_ns),
    ] {
        *field = call.positive_duration(name).unwrap_or(*field);
    }
    let jitter = call.duration("max_ejection_time_jitter");
    o.max_ejection_time_jitter_ns = jitter.unwrap_or(o.max_ejection_time_jitter_ns);
}

fn percentages(call: &mut Call<'_, '_, '_, '_>, o: &mut Outlier) {
    for (name, field) in [
        ("max_ejection_percent", &mut o.max_ejection_percent),
        ("enforcing_consecutive_5xx", &mut o.enforcing_consecutive_5xx),
        ("enforcing_consecutive_gateway_failure", &mut o.enforcing_consecutive_gateway_failure),
        ("enforcing_consecutive_local_origin_failure", &mut o.enforcing_consecutive_local_origin_failure),
        ("enforcing_success_rate", &mut o.enforcing_success_rate),
        ("enforcing_failure_percentage", &mut o.enforcing_failure_percentage),
        ("failure_percentage_threshold", &mut o.failure_percentage_threshold),
    ] {
        *field = call.percent(name).unwrap_or(*field);
    }
}
