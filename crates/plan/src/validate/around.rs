//! A balancer: its policy, and what is around it.

use super::asked::{key, lower, word};
use super::spec::{duration, least_1, not_negative, optional, positive, share};
use crate::http;
use crate::path;
use crate::ranges::{MOST_COUNTED, MOST_IN_A_ROW, MOST_KEPT, MOST_PROBES};
use crate::sticky;
use crate::{HealthCheck, LEAST_LAG_NS, Lb, Scope};
use weir_policy::config::{
    Balance, Check, Eject, LeastConnArgs, MaglevArgs, OnEmpty, Outlier, P2cArgs, PeakEwmaArgs, PrequalArgs,
    RingHashArgs, SlowStart, SlowStartLike, Subset, Ties, ZuulArgs,
};
use weir_policy::maglev::{GREATEST_TABLE, is_table_size};

type Checked = Result<(), String>;

/// Checks one.
pub(super) fn check(lb: &Lb) -> Checked {
    policy(&lb.balance)?;
    let hashes = lb.balance.traits().hashes;
    match &lb.key {
        Some(k) if hashes => key(k)?,
        None if hashes => return Err("a policy that hashes needs a key".to_owned()),
        Some(_) => return Err("only policies that hash have a key".to_owned()),
        None => {}
    }
    duration(lb.pass_over_ns)?;
    lb.health.as_ref().map_or(Ok(()), |h| health(h).map_err(|why| format!("health.{why}")))?;
    lb.eject.as_ref().map_or(Ok(()), |e| eject(e).map_err(|why| format!("eject.{why}")))?;
    lb.outlier.as_ref().map_or(Ok(()), |o| outlier(o).map_err(|why| format!("outlier.{why}")))?;
    if lb.eject.is_some() && lb.outlier.is_some() {
        return Err("eject and outlier exclude each other".to_owned());
    }
    lb.slow_start.as_ref().map_or(Ok(()), |s| slow_start(s).map_err(|why| format!("slow_start.{why}")))?;
    share("panic", lb.panic)?;
    if (lb.on_empty == OnEmpty::Node) != lb.spare.is_some() {
        return Err("on_empty must be \"node\" where there is a spare, and only there".to_owned());
    }
    lb.sticky.as_ref().map_or(Ok(()), |name| word("sticky", name, http::field_name))?;
    lb.sticky_key.as_ref().map_or(Ok(()), |name| word("sticky_key", name, sticky::path))?;
    if lb.sticky_key.is_some() && lb.sticky.is_none() {
        return Err("sticky_key is the key of a cookie, but sticky names no cookie".to_owned());
    }
    if let Some(subset) = &lb.subset {
        subsets(subset)?;
        if !lb.balance.takes_subsets() {
            return Err(format!("`{}` takes no subset", lb.balance.name()));
        }
    }
    if lb.subset.is_some() && lb.has_one_state() {
        return Err(format!("`{}` with one state for all loops takes no subset", lb.balance.name()));
    }
    if let Scope::Lagged { every_ns } = lb.scope {
        duration(every_ns)?;
        if every_ns < LEAST_LAG_NS || !lb.balance.shares_counts() {
            return Err("a lagged scope is of counts, and of 1 ms or more".to_owned());
        }
    }
    for (what, most) in [("max_in_flight", lb.max_in_flight), ("max_connections", lb.max_connections)] {
        most.map_or(Ok(()), |n| least_1(what, u64::from(n)))?;
    }
    optional(lb.wait_timeout_ns).map_err(|why| format!("wait_timeout_ns {why}"))
}

fn subsets(subset: &Subset) -> Checked {
    let args = match subset {
        Subset::Loops(args) => {
            least_1("subset.min", u64::from(args.min))?;
            return match args.max / 2 < args.min {
                true => Err("subset.max must be at least twice subset.min".to_owned()),
                false => Ok(()),
            };
        }
        Subset::Random(args) => return least_1("subset.size", u64::from(args.size)),
        Subset::Rendezvous(args) => return least_1("subset.size", u64::from(args.size)),
        Subset::Deterministic(args) | Subset::Ringsteady(args) => args,
    };
    least_1("subset.size", u64::from(args.size))?;
    if args.instance >= args.instances {
        return Err("subset.instance must be below subset.instances".to_owned());
    }
    Ok(())
}

fn policy(balance: &Balance) -> Checked {
    match balance {
        Balance::LeastConn(LeastConnArgs { error_hold_ns, .. }) => duration(*error_hold_ns),
        Balance::P2c(P2cArgs { choices, ties, error_hold_ns, bias, .. }) => {
            duration(*error_hold_ns)?;
            between("choices", u64::from(*choices), 1, 1_000_000)?;
            if *ties == Ties::Rotate {
                return Err("`lb.p2c` has no ties \"rotate\"".to_owned());
            }
            not_negative("bias", *bias)
        }
        Balance::PeakEwma(PeakEwmaArgs { decay_ns, default_rtt_ns }) => {
            above_0("decay_ns", *decay_ns)?;
            above_0("default_rtt_ns", *default_rtt_ns)
        }
        Balance::Zuul(ZuulArgs { load, decay_ns, max_load }) => {
            lower("load", load, http::own_field)?;
            above_0("decay_ns", *decay_ns)?;
            max_load.map_or(Ok(()), |most| share("max_load", most))
        }
        Balance::RingHash(RingHashArgs { bound: factor }) => bound(*factor),
        Balance::Maglev(MaglevArgs { table_size, bound: factor }) => {
            bound(*factor)?;
            if is_table_size(*table_size) {
                Ok(())
            } else {
                Err(format!("table_size must be a prime up to {GREATEST_TABLE}, not {table_size}"))
            }
        }
        Balance::Prequal(PrequalArgs { probes, pool, age_ns, q_rif, remove, delta }) => {
            positive("probes", *probes)?;
            if *probes > MOST_PROBES {
                return Err(format!("probes must be at most {MOST_PROBES}, not {probes}"));
            }
            between("pool", u64::from(*pool), 1, u64::from(MOST_KEPT))?;
            above_0("age_ns", *age_ns)?;
            share("q_rif", *q_rif)?;
            not_negative("remove", *remove)?;
            not_negative("delta", *delta)
        }
        Balance::Random | Balance::RoundRobin(_) | Balance::First | Balance::LeastWork => Ok(()),
    }
}

fn bound(factor: Option<f64>) -> Checked {
    match factor {
        Some(x) if !(x.is_finite() && x >= 1.0) => {
            Err(format!("bound must be finite and at least 1, not {x}"))
        }
        _ => Ok(()),
    }
}

fn health(h: &HealthCheck) -> Checked {
    let Check { interval_ns, rise, fall, jitter, fast_interval_ns, down_interval_ns, initial: _ } = &h.check;
    above_0("interval_ns", *interval_ns)?;
    above_0("timeout_ns", h.timeout_ns)?;
    duration(h.cost_ns)?;
    between("rise", u64::from(*rise), 1, u64::from(MOST_IN_A_ROW))?;
    between("fall", u64::from(*fall), 1, u64::from(MOST_IN_A_ROW))?;
    share("jitter", *jitter)?;
    for (what, limit) in [("fast_interval_ns", fast_interval_ns), ("down_interval_ns", down_interval_ns)] {
        optional(*limit).map_err(|why| format!("{what} {why}"))?;
    }
    h.port.map_or(Ok(()), |p| least_1("port", u64::from(p)))?;
    let Some(asks) = &h.http else { return Ok(()) };
    word("path", &asks.path, path::written::target)?;
    word("method", &asks.method, http::check_method)?;
    asks.host.as_ref().map_or(Ok(()), |host| word("host", host, http::host))?;
    let fit = |(low, high): &(u16, u16)| low <= high && (100..=599).contains(low) && *high <= 599;
    if asks.expect.is_empty() || !asks.expect.iter().all(fit) {
        return Err("expect must be ranges within 100 to 599, one at least".to_owned());
    }
    Ok(())
}

fn eject(e: &Eject) -> Checked {
    between("consecutive", u64::from(e.consecutive), 1, 1_000_000)?;
    above_0("base_ns", e.base_ns)?;
    above_0("max_ns", e.max_ns)?;
    percent("max_percent", e.max_percent)
}

fn outlier(o: &Outlier) -> Checked {
    for (what, n, least) in [
        ("consecutive_5xx", o.consecutive_5xx, 1),
        ("consecutive_gateway_failure", o.consecutive_gateway_failure, 1),
        ("consecutive_local_origin_failure", o.consecutive_local_origin_failure, 1),
        ("success_rate_minimum_hosts", o.success_rate_minimum_hosts, 0),
        ("success_rate_request_volume", o.success_rate_request_volume, 0),
        ("success_rate_stdev_factor", o.success_rate_stdev_factor, 0),
        ("failure_percentage_minimum_hosts", o.failure_percentage_minimum_hosts, 0),
        ("failure_percentage_request_volume", o.failure_percentage_request_volume, 0),
    ] {
        between(what, u64::from(n), least, u64::from(MOST_COUNTED))?;
    }
    above_0("interval_ns", o.interval_ns)?;
    above_0("base_ejection_time_ns", o.base_ejection_time_ns)?;
    above_0("max_ejection_time_ns", o.max_ejection_time_ns)?;
    duration(o.max_ejection_time_jitter_ns)?;
    for (what, x) in [
        ("max_ejection_percent", o.max_ejection_percent),
        ("enforcing_consecutive_5xx", o.enforcing_consecutive_5xx),
        ("enforcing_consecutive_gateway_failure", o.enforcing_consecutive_gateway_failure),
        ("enforcing_consecutive_local_origin_failure", o.enforcing_consecutive_local_origin_failure),
        ("enforcing_success_rate", o.enforcing_success_rate),
        ("enforcing_failure_percentage", o.enforcing_failure_percentage),
        ("failure_percentage_threshold", o.failure_percentage_threshold),
    ] {
        percent(what, x)?;
    }
    Ok(())
}

fn slow_start(s: &SlowStart) -> Checked {
    above_0("window_ns", s.window_ns)?;
    positive("aggression", s.aggression)?;
    positive("min_weight", s.min_weight)?;
    share("min_weight", s.min_weight)?;
    let Some(like) = s.like else { return Ok(()) };
    if s.limits {
        return Err(
            "limits must be false where like names a proxy, which says whether it has them".to_owned()
        );
    }
    let own = SlowStart::new(s.window_ns);
    let is_shaped = (s.aggression, s.min_weight) != (own.aggression, own.min_weight);
    if like != SlowStartLike::Envoy && is_shaped {
        return Err("aggression and min_weight must be 1 and 0.1 where like is not envoy".to_owned());
    }
    if like == SlowStartLike::Haproxy && s.window_ns < 1_000_000_000 {
        return Err("window_ns must be a second or more where like is haproxy".to_owned());
    }
    Ok(())
}

/// A duration above 0.
pub(super) fn above_0(what: &str, ns: u64) -> Checked {
    if ns == 0 { Err(format!("{what} must be above 0")) } else { duration(ns) }
}

/// A whole number between two bounds.
pub(super) fn between(what: &str, n: u64, least: u64, most: u64) -> Checked {
    if (least..=most).contains(&n) {
        Ok(())
    } else {
        Err(format!("{what} must be {least} to {most}, not {n}"))
    }
}

fn percent(what: &str, x: f64) -> Checked {
    if (0.0..=100.0).contains(&x) {
        Ok(())
    } else {
        Err(format!("{what} must be between 0 and 100, not {x}"))
    }
}
