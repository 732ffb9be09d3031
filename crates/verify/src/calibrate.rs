//! What this machine adds to a request: the time of a hop, and how much it can send at all. Measured on scenarios of
//! its own, never on the one that is verified, and then simulated.

use crate::options::{Error, Options};
use crate::prepare::Arrangement;
use crate::trial::trial;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_load::Row;
use weir_plan::{Plan, Point, Scenario};
use weir_topology::{Request, evaluate};

/// The scenarios: a router alone, a server behind it that takes a known time, one at which a request always waits, one
/// at the end of a cable, and as much as there can be.
const SCENARIOS: &str = r#"
def app():
    return delay(TAKES, server("app"))

def far():
    return cable(WAY, server("app"))

def idle():
    return server("app")

TAKES = 5 * ms
WAY = 2 * ms
scenario("router", respond(200, "ok"), traffic.constant(rate = 400), requests = 400)
scenario("server", lb.random(pool(8, app)), traffic.constant(rate = 400), requests = 400)
scenario("busy", queue(delay(TAKES, server("app"))), traffic.closed(users = 3, think = 0 * ms), duration = 1 * s)
scenario("cable", lb.random(pool(8, far)), traffic.constant(rate = 400), requests = 400)
scenario("most", lb.random(pool(8, idle)), traffic.closed(users = 64, think = 0 * ms), duration = 0.5 * s, window = "all")
"#;

/// The service time in the second and the third scenario, ns.
const TAKES_NS: f64 = 5e6;

/// The latency of the fourth scenario's cable, ns.
const WAY_NS: f64 = 2e6;

/// The users of the third scenario.
const USERS: f64 = 3.0;

/// What this machine adds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// A request's way to a router and back, with what the router does, ns.
    pub client_hop_ns: f64,
    /// The deciles of that, from the first to the ninth, ns: what is beyond, the host has taken for others.
    pub client_deciles_ns: [f64; 9],
    /// The same from a router to a server, ns.
    pub server_hop_ns: f64,
    /// The time by which any work at a server exceeds its model, ns: its timer fires late, and a request that
    /// waits for its place gets that a little later.
    pub work_ns: f64,
    /// How much longer than they should the two crossings of a cable take together, ns: a timer each rings late.
    pub cable_ns: f64,
    /// One timer of ten at a server rings later than this, ns.
    pub late_ns: f64,
    /// How long a router takes to open a connection to a server, ns.
    pub connect_ns: f64,
    /// Requests a second that client, router and server manage together.
    pub most_per_s: f64,
}

/// Measures it, in about six seconds.
///
/// # Errors
/// As [`crate::verify`].
pub fn calibrate(exe: &Path, stop: &Arc<AtomicBool>) -> Result<Calibration, Error> {
    let (plan, options) = (plan()?, Options::new(exe));
    let point = plan.points.first().ok_or_else(|| Error::System("the calibration is empty".to_owned()))?;
    let (mut medians, mut late_ns, mut most_per_s) = ([0.0; 5], 0.0f64, 0.0);
    let mut client_deciles_ns = [0.0; 9];
    let (mut opened, mut connecting_s) = (0, 0.0);
    for (number, (median, scenario)) in medians.iter_mut().zip(&point.scenarios).enumerate() {
        let real = run(point, scenario, &options, stop)?;
        let deciles = deciles(&steady(&real.load.rows));
        *median = deciles[4];
        if number == 0 {
            client_deciles_ns = deciles;
        }
        late_ns = late_ns.max(real.late_ns.unwrap_or_default());
        let of = real.connections.unwrap_or_default();
        (opened, connecting_s) = (opened + of.opened, connecting_s + of.connecting_s);
        most_per_s = real.load.rate_per_s.unwrap_or_default();
    }
    let [client_hop_ns, one_ns, busy_ns, far_ns, _] = medians;
    // A request always waits there: a user returns after each other one was served.
    let work_ns = (busy_ns / USERS - TAKES_NS).clamp(0.0, TAKES_NS);
    let server_hop_ns = (one_ns - TAKES_NS - client_hop_ns - work_ns).max(0.0);
    let cable_ns = (far_ns - 2.0 * WAY_NS - client_hop_ns - server_hop_ns).clamp(0.0, WAY_NS);
    Ok(Calibration {
        cable_ns,
        client_hop_ns,
        client_deciles_ns,
        server_hop_ns,
        work_ns,
        late_ns,
        connect_ns: if opened > 0 { connecting_s * 1e9 / opened as f64 } else { 0.0 },
        most_per_s,
    })
}

/// Parts of a run, of which one is taken.
const PARTS: usize = 4;

/// The latencies of a part of a run in which the machine did nothing else, ascending, ns: what the host takes for
/// others at times is not a hop's own time. Of four parts that with the second least median; before them a quarter of
/// the run is left out.
fn steady(rows: &[Row]) -> Vec<u64> {
    let mut rows: Vec<&Row> = rows.iter().filter(|row| row.error.is_none()).collect();
    rows.sort_unstable_by_key(|row| row.request);
    let rows = &rows[rows.len() / 4..];
    let part = |rows: &[&Row]| {
        let mut all: Vec<u64> = rows.iter().map(|row| row.ended_ns.saturating_sub(row.intended_ns)).collect();
        all.sort_unstable();
        all
    };
    let mut parts: Vec<Vec<u64>> = rows.chunks((rows.len() / PARTS).max(1)).map(part).collect();
    parts.sort_by_key(|part| part.get(part.len() / 2).copied());
    let second = 1.min(parts.len().saturating_sub(1));
    parts.into_iter().nth(second).unwrap_or_default()
}

/// From the first to the ninth, of values in ascending order; zeros of none.
fn deciles(ascending: &[u64]) -> [f64; 9] {
    std::array::from_fn(|i| ascending.get(ascending.len() * (i + 1) / 10).copied().unwrap_or_default() as f64)
}

fn run(
    point: &Point,
    scenario: &Scenario,
    options: &Options,
    stop: &Arc<AtomicBool>,
) -> Result<crate::trial::RunOutcome, Error> {
    let prepared = Arrangement::new(point, scenario, false).map_err(Error::Cannot)?;
    trial(&prepared, scenario, options, 0, stop, &Arc::default())?.ok_or(Error::Interrupted)
}

fn plan() -> Result<Plan, Error> {
    let request = Request { source: SCENARIOS.into(), name: "calibration".into(), ..Request::default() };
    let evaluated = evaluate(&request);
    let why = |wrong: Vec<weir_plan::diagnostic::Diagnostic>| {
        Error::System(wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    };
    Ok(evaluated.map_err(why)?.plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The effect of a stall on a part of a run, or on half of it, is not taken for a hop.
    #[test]
    fn a_stall_is_no_hop() {
        let row = |request: u64, ns: u64| Row {
            request,
            intended_ns: request * 1000,
            sent_ns: None,
            ended_ns: request * 1000 + ns,
            status: 200,
            error: None,
            selected: true,
        };
        let stalled = |request: u64| if (100..250).contains(&request) { 900 } else { 50 + request % 10 };
        let rows: Vec<Row> = (0..400).map(|request| row(request, stalled(request))).collect();
        assert_eq!(deciles(&steady(&rows)), [51.0, 52.0, 53.0, 54.0, 55.0, 56.0, 57.0, 58.0, 59.0]);
        assert_eq!(deciles(&steady(&[])), [0.0; 9]);
        assert_eq!(deciles(&steady(&rows[..1]))[4], 50.0);
    }
}
