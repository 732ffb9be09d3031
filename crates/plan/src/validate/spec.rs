//! Kinds of nodes with their arguments, and distributions.

use super::{around, asked, serving, source};
use crate::ranges;
use crate::{Clock, Faulty, Fleet, Line, Mode, Spec};
use weir_model::{Dist, warmup};
use weir_policy::config::{Flap, GateArgs, GateWork};

/// Checks one.
pub(super) fn check(spec: &Spec) -> Result<(), String> {
    match spec {
        Spec::Route { rules, .. } => asked::rules(rules),
        Spec::Split { weights, key } => {
            asked::weights(weights.iter().copied())?;
            key.as_ref().map_or(Ok(()), asked::key)
        }
        Spec::Rate { rate, key } => {
            asked::rate(rate)?;
            key.as_ref().map_or(Ok(()), asked::key)
        }
        Spec::Hedge(hedge) => asked::hedge(hedge),
        Spec::Server { addr, origin, .. } => serving::server(addr.as_deref(), origin),
        Spec::Listen(listen) => serving::listen(listen),
        Spec::Respond { status, body, headers } => serving::respond(*status, body, headers),
        Spec::Redirect { to, status } => serving::redirect(to, *status),
        Spec::Rewrite(rewrite) => serving::rewrite(rewrite),
        Spec::Buffered { bytes } => around::between("bytes", *bytes, 1, ranges::MOST_BUFFERED),
        Spec::Sequence => Ok(()),
        Spec::Delay { time } => dist(time),
        Spec::Cable { time, loss, resend_ns } => check_cable(time, *loss, *resend_ns),
        Spec::Queue { concurrency, timeout_ns, .. } => {
            least_1("concurrency", u64::from(*concurrency))?;
            optional(*timeout_ns).map_err(|why| format!("timeout_ns {why}"))
        }
        Spec::Timeout { time_ns } => optional(*time_ns).map_err(|why| format!("time_ns {why}")),
        Spec::Concurrent { work, cores, contention, coherency, threads, min_threads, .. } => {
            dist(work)?;
            positive("cores", *cores)?;
            not_negative("contention", *contention)?;
            not_negative("coherency", *coherency)?;
            threads.map_or(Ok(()), |n| least_1("threads", u64::from(n)))?;
            match (min_threads, threads) {
                (None, _) => Ok(()),
                (Some(min), Some(all)) if (1..=*all).contains(min) => Ok(()),
                (Some(_), _) => Err("min_threads must be from 1 to threads".to_owned()),
            }
        }
        Spec::Warmup(law) => check_warmup(law),
        Spec::Gate(gate) => check_gate(gate),
        Spec::Flaky { p, kind } => {
            share("p", *p)?;
            if ranges::can_fail_with(*kind) {
                Ok(())
            } else {
                Err(format!("no node fails with \"{}\"", kind.name()))
            }
        }
        Spec::Fanout { need } => least_1("need", u64::from(*need)),
        Spec::Weight { weight } => {
            ranges::wrong_weight(*weight).map_or(Ok(()), |why| Err(format!("the weight {why}")))
        }
        Spec::Retry(retry) => asked::retry(retry),
        Spec::Faulty(law) => faulty(law),
        Spec::Lb(lb) => around::check(lb),
        Spec::Fleet(fleet) => check_fleet(fleet),
        Spec::Connection(_) => Err("only a simulation has connections as nodes".to_owned()),
    }
}

fn check_fleet(fleet: &Fleet) -> Result<(), String> {
    dist(&fleet.lag).map_err(|why| format!("lag: {why}"))?;
    if let Some(life) = &fleet.life {
        dist(&life.boot).map_err(|why| format!("boot: {why}"))?;
    }
    fleet.source.as_ref().map_or(Ok(()), source::check)
}

/// A message that is sent again must be able to arrive at some time.
fn check_cable(time: &Dist, loss: f64, resend_ns: Option<u64>) -> Result<(), String> {
    dist(time)?;
    share("loss", loss)?;
    optional(resend_ns).map_err(|why| format!("resend_ns {why}"))?;
    if loss == 1.0 && resend_ns.is_some() {
        return Err("with a loss of 1 a message never arrives, however often it is sent".to_owned());
    }
    Ok(())
}

/// Something must end the slowness of the beginning.
fn check_warmup(law: &warmup::Law) -> Result<(), String> {
    let warmup::Law { factor, requests, time_ns, at_start: _, prewarmed } = *law;
    positive("factor", factor)?;
    if !(0.0..=1.0).contains(&prewarmed) {
        return Err("prewarmed must be from 0 to 1".to_owned());
    }
    requests.map_or(Ok(()), |n| least_1("requests", n))?;
    optional(time_ns).map_err(|why| format!("time_ns {why}"))?;
    if requests.is_none() && time_ns.is_none() {
        return Err("there must be requests or time_ns".to_owned());
    }
    Ok(())
}

/// The article's ramp counts whole seconds, and work is some.
fn check_gate(gate: &GateArgs) -> Result<(), String> {
    optional(gate.ramp_ns).map_err(|why| format!("ramp_ns {why}"))?;
    if gate.flap == Flap::Article && gate.ramp_ns.is_some_and(|ns| ns < 1_000_000_000) {
        return Err("ramp_ns must be a second or more where flap is article".to_owned());
    }
    let Some(GateWork { min_requests, is_relative: _, grace_ns, hold_ns, max_hold_ns }) = &gate.work else {
        return Ok(());
    };
    least_1("min_requests", *min_requests)?;
    [grace_ns, hold_ns, max_hold_ns].into_iter().try_for_each(|ns| duration(*ns))
}

fn faulty(law: &Faulty) -> Result<(), String> {
    duration(law.mtbf_ns)?;
    duration(law.mttr_ns)?;
    if law.mtbf_ns == 0 || law.mttr_ns == 0 {
        return Err("mtbf and mttr must be above 0".to_owned());
    }
    law.up.iter().chain(&law.down).try_for_each(dist)?;
    if matches!(&law.line, Line::Together(name) if name.is_empty() || name.len() > 200) {
        return Err("together must be 1 to 200 characters".to_owned());
    }
    if let Line::Driven(_) = law.line {
        return Err("only a simulation has nodes that its changes drive".to_owned());
    }
    if law.mode == Mode::Pause && law.clock == Clock::Lazy {
        return Err("a pause needs the eager clock".to_owned());
    }
    positive("slow", law.slow)
}

/// A number from 0 to 1.
pub(super) fn share(what: &str, p: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&p) { Ok(()) } else { Err(format!("{what} must be between 0 and 1, not {p}")) }
}

/// A finite number above 0.
pub(super) fn positive(what: &str, x: f64) -> Result<(), String> {
    if x.is_finite() && x > 0.0 { Ok(()) } else { Err(format!("{what} must be finite and above 0, not {x}")) }
}

/// A finite number that is not negative.
pub(super) fn not_negative(what: &str, x: f64) -> Result<(), String> {
    if x.is_finite() && x >= 0.0 {
        Ok(())
    } else {
        Err(format!("{what} must be finite and not negative, not {x}"))
    }
}

/// A whole number above 0.
pub(super) fn least_1(what: &str, n: u64) -> Result<(), String> {
    if n == 0 { Err(format!("{what} must be at least 1")) } else { Ok(()) }
}

/// A duration of at most 292 years.
pub(super) fn duration(ns: u64) -> Result<(), String> {
    if i64::try_from(ns).is_ok() { Ok(()) } else { Err(format!("{ns} ns is longer than 292 years")) }
}

/// A limit: none, or a duration above 0.
pub(super) fn optional(ns: Option<u64>) -> Result<(), String> {
    match ns {
        Some(0) => Err("must be above 0, or null".to_owned()),
        Some(ns) => duration(ns),
        None => Ok(()),
    }
}

/// A distribution.
pub(super) fn dist(d: &Dist) -> Result<(), String> {
    match d {
        Dist::Fixed { ns } => duration(*ns),
        Dist::Exponential { mean_ns } => duration(*mean_ns),
        Dist::Uniform { low_ns, high_ns } => {
            duration(*high_ns)?;
            if low_ns > high_ns { Err("low is greater than high".to_owned()) } else { Ok(()) }
        }
        Dist::Lognormal { mean_ns, cv } => {
            duration(*mean_ns)?;
            if (0.0..=1e6).contains(cv) { Ok(()) } else { Err(format!("cv must be 0 to 1000000, not {cv}")) }
        }
        Dist::Pareto { minimum_ns, alpha } => {
            duration(*minimum_ns)?;
            if alpha.is_finite() && *alpha > 0.0 {
                Ok(())
            } else {
                Err(format!("alpha must be finite and above 0, not {alpha}"))
            }
        }
        Dist::Erlang { k, mean_ns } => {
            duration(*mean_ns)?;
            if (1..=1_000_000).contains(k) { Ok(()) } else { Err(format!("k must be 1 to 1000000, not {k}")) }
        }
        Dist::Hyperexponential { phases } => {
            phases.iter().try_for_each(|(_, mean)| duration(*mean))?;
            let total: f64 = phases.iter().map(|p| p.0).sum();
            let fit = phases.iter().all(|(p, _)| (0.0..=1.0).contains(p)) && (total - 1.0).abs() <= 1e-9;
            if fit {
                Ok(())
            } else {
                Err("the probabilities must be between 0 and 1 and add up to 1".to_owned())
            }
        }
        Dist::Empirical { values_ns, .. } => {
            if values_ns.is_empty() {
                return Err("an empirical distribution needs at least one value".to_owned());
            }
            values_ns.iter().try_for_each(|v| duration(*v))
        }
        // The reader of JSON bounds the depth.
        Dist::Sum { a, b } => dist(a).and_then(|()| dist(b)),
        Dist::Rounded { of, to_ns } => {
            dist(of)?;
            duration(*to_ns)?;
            if *to_ns == 0 { Err("`to` must be above 0".to_owned()) } else { Ok(()) }
        }
    }
}
