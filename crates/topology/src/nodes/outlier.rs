//! `outlier(...)`: outlier detection by Envoy's names and defaults; durations and percentages as the language writes them.
//!
//! - In virtual time: errors in a row eject at once; at each `interval` success rates and failure shares are compared.
//! - In the proxy: the same, with a clock.
//! - Draws: enforcement below 100 percent, and the jitter of ejections.

use super::{Function, may};
use crate::call::{Call, Outcome};
use crate::value::OutlierValue;
use weir_policy::config::Outlier;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "outlier",
    args: &[
        may("consecutive_5xx"),
        may("consecutive_gateway_failure"),
        may("consecutive_local_origin_failure"),
        may("split_external_local_origin_errors"),
        may("interval"),
        may("base_ejection_time"),
        may("max_ejection_time"),
        may("max_ejection_time_jitter"),
        may("max_ejection_percent"),
        may("always_eject_one_host"),
        may("enforcing_consecutive_5xx"),
        may("enforcing_consecutive_gateway_failure"),
        may("enforcing_consecutive_local_origin_failure"),
        may("enforcing_success_rate"),
        may("enforcing_failure_percentage"),
        may("success_rate_minimum_hosts"),
        may("success_rate_request_volume"),
        may("success_rate_stdev_factor"),
        may("failure_percentage_threshold"),
        may("failure_percentage_minimum_hosts"),
        may("failure_percentage_request_volume"),
    ],
    more: &[],
    make,
}];

/// What is counted, at most.
pub(crate) const MOST: u32 = 1_000_000_000;

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
                format!("`{name}` of `outlier` counts thousandths, as Envoy's does, and is {value}");
            call.wrong_but(message, "write 1900 for 1.9 standard deviations");
            continue;
        }
        *field = call.count(name, least, MOST).unwrap_or(*field);
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
