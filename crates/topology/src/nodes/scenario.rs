//! `scenario(name, node, traffic, requests=None, duration=None, window="middle"|"auto"|"all"|(from, to), every=None,
//! deadline=60*s, patience=None)`: one run.

use super::{Description, Function, Group, examples, may, maybe, need};
use crate::language::call::{Call, Outcome, list};
use crate::language::value::TrafficValue;
use starlark::values::{Value, ValueLike};
use weir_model::Traffic;
use weir_plan::duration::show_ns;
use weir_plan::over_time::{self, Unfit};
use weir_plan::{Scenario, Window};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "scenario",
    about: Description {
        group: Group::Ask,
        meaning: "One question: these requests, to this node.",
        simulated: "one row of the result",
        served: "`weir load` and `weir verify` use it; `weir serve` ignores it",
        draws: "nothing",
        example: examples::QUEUE,
    },
    args: &[
        need("name", "a string", "its name in results and on the command line"),
        need("node", "a node", "where requests enter"),
        need("traffic", "traffic", "when they arrive, and what they are"),
        maybe(
            "requests",
            "1 or more, or None",
            "None; this or `duration` is needed",
            "how many per \
                replication",
        ),
        maybe(
            "duration",
            "a duration or None",
            "None; this or `requests` is needed",
            "for how long \
                they arrive; with both, whichever ends first",
        ),
        may(
            "window",
            "\"middle\" | \"auto\" | \"all\" | (from, to)",
            "\"middle\"",
            "which requests count: without the first \
                and last quarter, from where the run has settled (MSER-5), all, or those that arrive in [from, to)",
        ),
        may(
            "every",
            "a duration or None",
            "None",
            "the result is also told over time (`over_time`), in parts of this length: 10 ms or more, 10,000 parts at most",
        ),
        may(
            "deadline",
            "a duration or None",
            "60*s",
            "a success that takes longer does not count as goodput; nothing is cut off",
        ),
        may("patience", "a duration or None", "None", "the client leaves after that time (`cancelled`)"),
        may(
            "events",
            "a list of changes",
            "[]",
            "what changes during the run: `change.rolling(...)` and its like",
        ),
    ],
    more: &[],
    make,
}];

/// The default deadline.
const MINUTE_NS: u64 = 60_000_000_000;

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let name = call.name_or_none();
    if call.is_none("name") {
        let none = Value::new_none();
        call.unfit("name", "a string", none);
    }
    let root = call.node_at("node");
    let traffic = traffic(call);
    let requests = if call.is_none("requests") { None } else { call.whole("requests", 1, 1_000_000_000_000) };
    let duration_ns = if call.is_none("duration") { None } else { call.positive_duration("duration") };
    let patience_ns = call.limit("patience");
    if requests.is_none() && duration_ns.is_none() && !call.failed() {
        call.wrong_but(
            "`scenario` needs `requests` or `duration`",
            "say how many, as in `requests=100000`, or how long, as in `duration=60*s`",
        );
    }
    let window = window(call).unwrap_or_default();
    let every_ns = call.limit("every");
    let deadline = if call.is_none("deadline") { Some(u64::MAX) } else { call.positive_duration("deadline") };
    let events = super::events::read(call);
    let at = call.location();
    if let Some(name) = &name {
        refuse_same_name(call, name);
    }
    let (Some(name), Some(root), Some(TrafficValue { arrivals: traffic, mix, recorded })) =
        (name, root, traffic)
    else {
        return Ok(None);
    };
    if !call.failed() {
        if let Some(asked) = requests {
            warn_of_short_trace(call, &traffic, asked);
        }
        let span = at.map(|a| a.span()).unwrap_or_default();
        let deadline_ns = deadline.unwrap_or(MINUTE_NS);
        let made = Scenario {
            name,
            root,
            traffic,
            mix,
            recorded,
            requests,
            duration_ns,
            window,
            every_ns,
            deadline_ns,
            patience_ns,
            events,
            span,
        };
        if let Err(Unfit { why, least_ns }) = over_time::fits(&made) {
            let help = format!("write `every=\"{}\"` or more", show_ns(i128::from(least_ns)));
            call.wrong_but(format!("`every` of `scenario` {why}"), help);
            return Ok(None);
        }
        let state = &mut *call.context.state.borrow_mut();
        state.named_scenarios.insert(made.name.clone(), state.scenarios.len());
        state.scenarios.push(made);
    }
    Ok(Some(Value::new_none()))
}

/// What a window between two instants looks like.
const BETWEEN: &str = "write `window=(30*s, 90*s)`: requests that arrive from 30 s on and before 90 s count";

/// Which requests count: a word, or two instants.
fn window(call: &mut Call<'_, '_, '_, '_>) -> Option<Window> {
    let value = call.value("window")?;
    if value.get_type() != "tuple" {
        let words =
            [("middle", Some(Window::Middle)), ("auto", Some(Window::Auto)), ("all", Some(Window::All))];
        if value.unpack_str().is_none() {
            call.unfit_but("window", "\"middle\", \"auto\", \"all\" or a pair (from, to)", value, BETWEEN);
            return None;
        }
        return call.choice("window", &words);
    }
    let parts = list(value).unwrap_or_default();
    let [from, to] = parts[..] else {
        let held = parts.len();
        call.wrong_but(
            format!("`window` of `scenario` must be a pair (from, to), not a tuple of {held}"),
            BETWEEN,
        );
        return None;
    };
    let from_ns = call.ns("`from` in `window` of `scenario`", from);
    let to_ns = call.ns("`to` in `window` of `scenario`", to);
    let (from_ns, to_ns) = from_ns.zip(to_ns)?;
    if from_ns >= to_ns {
        let (from, to) = (show_ns(i128::from(from_ns)), show_ns(i128::from(to_ns)));
        call.wrong_but(
            format!("`window` of `scenario` must end after it begins: it is from {from} to {to}"),
            BETWEEN,
        );
        return None;
    }
    Some(Window::Between(from_ns, to_ns))
}

/// Results and the command line know scenarios by their names.
fn refuse_same_name(call: &mut Call<'_, '_, '_, '_>, name: &str) {
    let state = call.context.state.borrow();
    let before = state.named_scenarios.get(name).and_then(|at| state.scenarios.get(*at));
    let before = before.map(|scenario| scenario.span.clone());
    drop(state);
    if let Some(before) = before {
        call.wrong_but(format!("two scenarios are called \"{name}\""), format!("the first is at {before}"));
    }
}

/// A trace is not repeated: with fewer arrivals than requests, the run is shorter than was asked for.
fn warn_of_short_trace(call: &mut Call<'_, '_, '_, '_>, traffic: &Traffic, asked: u64) {
    if let Traffic::Trace { file, arrivals_ns } = traffic
        && (arrivals_ns.len() as u64) < asked
    {
        let held = arrivals_ns.len();
        call.warn(
            format!(
                "the trace \"{file}\" has {held} arrivals, fewer than the {asked} requests of the \
                scenario: the run ends with them"
            ),
            format!("write `requests={held}`, or leave `requests` out and give a `duration`"),
        );
    }
}

fn traffic(call: &mut Call<'_, '_, '_, '_>) -> Option<TrafficValue> {
    let value = call.value("traffic")?;
    if let Some(traffic) = value.downcast_ref::<TrafficValue>() {
        return Some(traffic.clone());
    }
    let message = format!(
        "`traffic` of `scenario` must be traffic (when requests arrive), not {}",
        crate::language::call::describe(value)
    );
    call.wrong_but(message, "write `traffic.poisson(every=1*ms)` or `traffic.poisson(rate=1000)`");
    None
}
