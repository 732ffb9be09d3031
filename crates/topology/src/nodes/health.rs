//! `health.http(path, interval=2*s, timeout=1*s, rise=2, fall=3, ...)`, `health.tcp(...)`: active checks of a
//! balancer's targets.

use super::{Description, Function, Group, examples, may, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::HealthValue;
use weir_plan::address;
use weir_plan::duration::show_ns;
use weir_plan::http;
use weir_plan::path;
use weir_plan::ranges::MOST_IN_A_ROW;
use weir_plan::{HealthCheck, HttpCheck};
use weir_policy::config::{Check, Initial};

const SOURCE: &str = "the address of this host that checks are sent from; `None`: the system chooses";

pub(super) static FUNCTIONS: [Function; 2] = [
    Function {
        name: "health.http",
        about: Description {
            group: Group::Health,
            meaning: "Active checks by an HTTP request.",
            simulated: "a check crosses the target's cables, queues and faults as a request does, and \
                costs its server `cost`; it is not counted as a request",
            served: "a request of its own, at the same times",
            draws: "the jitter of each interval",
            example: examples::HEALTH,
        },
        args: &[
            need("path", "a path", "the path to request"),
            may("interval", "a duration", "2*s", "from the start of a check to the start of the next"),
            may("timeout", "a duration", "1*s", "how long a check may take"),
            may("rise", "1 or more", "2", "passed checks in a row before a target is up"),
            may("fall", "1 or more", "3", "failed checks in a row before a target is down"),
            may(
                "jitter",
                "0 to 1",
                "0.1",
                "each interval is longer or shorter by a random share, at most this",
            ),
            may(
                "fast_interval",
                "a duration or None",
                "None",
                "the interval while a target is about to \
                change; `None`: as `interval`",
            ),
            may(
                "down_interval",
                "a duration or None",
                "None",
                "the interval while a target is down; \
                `None`: as `interval`",
            ),
            may("expect", "statuses", "\"200-399\"", "which statuses pass"),
            may("method", "a method", "\"GET\"", "the method of the check"),
            may("host", "a host", "None", "the Host of the check; `None`: the target's"),
            may("port", "1 to 65535", "None", "a port other than the target's"),
            may(
                "initial",
                "\"up\" | \"down\" | \"checked\"",
                "\"up\"",
                "the state at the start; \
                `checked`: down until one check has passed",
            ),
            may("cost", "a duration", "0*s", "what a check costs a simulated server in place of its work"),
            may("source", "an address, or None", "None", SOURCE),
        ],
        more: &[],
        make: by_http,
    },
    Function {
        name: "health.tcp",
        about: Description {
            group: Group::Health,
            meaning: "Active checks by a connection.",
            simulated: "as `health.http`",
            served: "a connection of its own, at the same times",
            draws: "the jitter of each interval",
            example: examples::HEALTH_TCP,
        },
        args: &[
            may("interval", "a duration", "2*s", "from the start of a check to the start of the next"),
            may("timeout", "a duration", "1*s", "how long a check may take"),
            may("rise", "1 or more", "2", "passed checks in a row before a target is up"),
            may("fall", "1 or more", "3", "failed checks in a row before a target is down"),
            may(
                "jitter",
                "0 to 1",
                "0.1",
                "each interval is longer or shorter by a random share, at most this",
            ),
            may(
                "fast_interval",
                "a duration or None",
                "None",
                "the interval while a target is about to \
                change; `None`: as `interval`",
            ),
            may(
                "down_interval",
                "a duration or None",
                "None",
                "the interval while a target is down; \
                `None`: as `interval`",
            ),
            may("port", "1 to 65535", "None", "a port other than the target's"),
            may(
                "initial",
                "\"up\" | \"down\" | \"checked\"",
                "\"up\"",
                "the state at the start; \
                `checked`: down until one check has passed",
            ),
            may("cost", "a duration", "0*s", "what a check costs a simulated server in place of its work"),
            may("source", "an address, or None", "None", SOURCE),
        ],
        more: &[],
        make: by_tcp,
    },
];

fn by_http<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let path = call.word("path", path::written::target);
    if call.is_none("path") {
        call.wrong_but("`path` of `health.http` must be a path, not None", "write `health.http(\"/\")`");
    }
    let expect = expect(call);
    let method = call.word("method", http::check_method).unwrap_or_else(|| "GET".to_owned());
    let host = call.word("host", http::host);
    let check = check(call);
    let Some(path) = path else { return Ok(None) };
    made(call, HealthCheck { http: Some(HttpCheck { path, method, host, expect }), ..check })
}

fn by_tcp<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let check = check(call);
    made(call, check)
}

fn made<'v>(call: &Call<'v, '_, '_, '_>, check: HealthCheck) -> Outcome<'v> {
    Ok(Some(call.heap().alloc(HealthValue(check))))
}

/// The arguments that both take.
fn check(call: &mut Call<'_, '_, '_, '_>) -> HealthCheck {
    let interval_ns = call.positive_duration("interval").unwrap_or(2_000_000_000);
    let timeout_ns = call.positive_duration("timeout").unwrap_or(1_000_000_000);
    let rise = call.count("rise", 1, MOST_IN_A_ROW).unwrap_or(2);
    let fall = call.count("fall", 1, MOST_IN_A_ROW).unwrap_or(3);
    let jitter = call.share("jitter").unwrap_or(0.1);
    let (fast_interval_ns, down_interval_ns) = (call.limit("fast_interval"), call.limit("down_interval"));
    let words =
        [("up", Some(Initial::Up)), ("down", Some(Initial::Down)), ("checked", Some(Initial::Checked))];
    let initial = call.choice("initial", &words).unwrap_or_default();
    let port = if call.is_none("port") { None } else { call.count("port", 1, 65_535) };
    let cost_ns = if call.is_none("cost") { 0 } else { call.duration("cost").unwrap_or(0) };
    if timeout_ns > interval_ns && !call.failed() {
        let show = |ns: u64| show_ns(i128::from(ns));
        call.warn(
            format!(
                "a check may take {}, longer than the interval of {}, and the next begins after its end: \
                    a target that does not answer is checked only every {}",
                show(timeout_ns),
                show(interval_ns),
                show(timeout_ns)
            ),
            format!("use a `timeout` of at most `interval`, as in `timeout=\"{}\"`", show(interval_ns)),
        );
    }
    let check = Check { interval_ns, rise, fall, jitter, fast_interval_ns, down_interval_ns, initial };
    let port = port.and_then(|p| u16::try_from(p).ok());
    let source = call.word("source", address::source).and_then(|text| text.parse().ok());
    HealthCheck { check, http: None, timeout_ns, port, source, cost_ns }
}

/// The statuses that pass.
fn expect(call: &mut Call<'_, '_, '_, '_>) -> Vec<(u16, u16)> {
    let passing = vec![(200, 399)];
    let Some(value) = call.value("expect") else { return passing };
    let text = match value.get_type() {
        "int" => value.to_str(),
        _ => match value.unpack_str() {
            Some(text) => text.to_owned(),
            None => {
                call.unfit_but("expect", "status numbers", value, "write them as \"200-399\" or 200");
                return passing;
            }
        },
    };
    match http::statuses(&text) {
        Ok(ranges) => ranges,
        Err(invalid) => {
            let message = format!("{}: {invalid}", call.describe("expect"));
            call.wrong_but(message, invalid.remedy.unwrap_or_default());
            passing
        }
    }
}
