//! The ranges of arguments, and the words they may be: a topology file and a plan read from JSON are held to the same.

use crate::address::{self, Address};
use crate::duration::show_ns;
use crate::http::{InvalidWord, short};
use crate::{Clock, Faulty, TargetState};
use weir_policy::Kind;
use weir_policy::config::Balance;
use weir_policy::roster::GREATEST_WEIGHT;
use weir_policy::round_robin::{GREATEST_SUM, is_too_long};

/// No topology has more nodes than this.
pub const MOST_NODES: usize = 4_000_000;
/// Changes that a scenario may have.
pub const MOST_CHANGES: usize = 100_000;

/// No file has more combinations of swept parameters than this.
pub const MOST_POINTS: usize = 10_000;

/// Event loops of a listener at most.
pub const MOST_LOOPS: u32 = 1024;

/// The least and the greatest size of a head, bytes: the proxy reads it into one buffer of 128 KiB.
pub const HEAD_BYTES: (u64, u64) = (256, 128 << 10);

/// Fields of a head at most.
pub const MOST_FIELDS: u32 = 10_000;

/// Streams of a connection at most (RFC 9113).
pub const MOST_STREAMS: u32 = i32::MAX as u32;

/// Certificates of a listener at most: each handshake looks through them.
pub const MOST_CERTIFICATES: usize = 1000;

/// The longest body of a fixed answer, bytes.
pub const MOST_BODY: usize = 1 << 20;

/// Bytes that `buffered` takes at most: they stay in memory.
pub const MOST_BUFFERED: u64 = 1 << 30;

/// Users of `traffic.closed` at most: each has its own state in the simulator.
pub const MOST_USERS: u32 = 10_000_000;

/// Attempts of one request at once, at most.
pub const MOST_HEDGES: u32 = 1000;

/// Health checks in a row at most.
pub const MOST_IN_A_ROW: u32 = 1_000_000;

/// The highest count of requests or hosts that outlier detection waits for.
pub const MOST_COUNTED: u32 = 1_000_000_000;

/// Answers that `lb.prequal` keeps at most: a pick looks at all of them.
pub const MOST_KEPT: u32 = 1000;

/// Probes of one request at most.
pub const MOST_PROBES: f64 = 1000.0;

/// The least and the greatest weight above 0, in a file and by hand.
pub const WEIGHTS: (f64, f64) = (0.001, GREATEST_WEIGHT);

/// Different keys, at most.
pub const MOST_KEYS: u64 = 1_000_000_000_000;

/// The greatest exponent of `keys.zipf`.
pub const STEEPEST: f64 = 100.0;

/// What is wrong with the weight of a target, if anything is; the words follow "the weight".
pub fn wrong_weight(weight: f64) -> Option<String> {
    let (least, most) = WEIGHTS;
    let is_right = weight == 0.0 || (least..=most).contains(&weight);
    (!is_right).then(|| format!("must be 0, or from {least} to {most}, not {weight}"))
}

/// Why an operator cannot say this of a target: what is meant cannot be meant together.
pub fn wrong_setting(state: Option<TargetState>, weight: Option<f64>, lasts: bool) -> Option<&'static str> {
    match (state, weight) {
        (None, None) => Some("it sets neither `state` nor `weight`"),
        (Some(TargetState::Up), Some(0.0)) => Some("`state=\"up\"` with `weight=0`, which gets no requests"),
        (Some(TargetState::File), None) if lasts => {
            Some("`lasts` with `state=\"file\"`, which takes back what was said before")
        }
        _ => None,
    }
}

/// What is wrong with the weights of a balancer's targets together, if anything is.
pub fn wrong_weights(balance: &Balance, weights: &[f64]) -> Option<String> {
    let is_wrong = matches!(balance, Balance::RoundRobin(_)) && is_too_long(weights);
    is_wrong.then(|| format!("unequal weights of `lb.round_robin` must add up to at most {GREATEST_SUM}"))
}

/// Whether a node can fail so. The others are not a node's to give: the client's doing, no route, or silence.
pub fn can_fail_with(kind: Kind) -> bool {
    !matches!(kind, Kind::Cancelled | Kind::Lost | Kind::NoRoute | Kind::BadRequest)
}

/// Why no `retry` ever sees a failure of this kind, or tries it again (`weir_policy::attempts`), and the remedy.
pub fn why_never_retried(kind: Kind) -> Option<(&'static str, &'static str)> {
    match kind {
        Kind::Cancelled => Some(("the client went away and wants no answer", "leave it out")),
        Kind::BadRequest => Some(("the client's message is at fault, and would be again", "leave it out")),
        Kind::Lost => Some((
            "nothing ever comes back that could be tried again",
            "put a `timeout` inside the `retry`, and name \"timeout\" instead",
        )),
        _ => None,
    }
}

/// Whether an answer with this status may be tried again.
pub fn can_retry_on(status: u16) -> bool {
    (300..=599).contains(&status)
}

/// Whether clients follow an answer with this status.
pub fn redirects(status: u16) -> bool {
    (300..=399).contains(&status) && status != 304
}

/// Whether answers with this status have no body (RFC 9110).
pub fn lacks_body(status: u16) -> bool {
    matches!(status, 204 | 205 | 304)
}

/// Why no request ever arrives under these points, if so.
pub fn never(points: &[(u64, f64)], repeat: bool) -> Option<&'static str> {
    let (last_ns, last_rate) = *points.last()?;
    // Requests arrive between two points at different times if one of them has a rate.
    let within = points.windows(2).any(|w| w[0].0 < w[1].0 && (w[0].1 > 0.0 || w[1].1 > 0.0));
    if within || (!repeat && last_rate > 0.0) {
        None
    } else if repeat && last_ns == 0 {
        Some("with `repeat` it starts again at the last point's time, which is 0")
    } else {
        Some("its rate is 0 all the time")
    }
}

/// The first argument of a timeline in which two differ, with its values in words.
pub fn differs(a: &Faulty, b: &Faulty) -> Option<(&'static str, String, String)> {
    let ns = |ns: u64| show_ns(i128::from(ns));
    let clock = |c: Clock| if c == Clock::Eager { "\"eager\"" } else { "\"lazy\"" }.to_owned();
    let starts = |up: bool| if up { "\"up\"" } else { "\"down\"" }.to_owned();
    if a.mtbf_ns != b.mtbf_ns {
        Some(("mtbf", ns(a.mtbf_ns), ns(b.mtbf_ns)))
    } else if a.mttr_ns != b.mttr_ns {
        Some(("mttr", ns(a.mttr_ns), ns(b.mttr_ns)))
    } else if a.up != b.up || a.down != b.down {
        let argument = if a.up != b.up { "mtbf" } else { "mttr" };
        Some((argument, "another".to_owned(), "one distribution".to_owned()))
    } else if a.clock != b.clock {
        Some(("clock", clock(a.clock), clock(b.clock)))
    } else if a.starts_up != b.starts_up {
        Some(("starts", starts(a.starts_up), starts(b.starts_up)))
    } else {
        None
    }
}

/// Where a log goes.
pub fn log(text: &str) -> Result<(), InvalidWord> {
    if text.is_empty() || text.len() > 4096 || text.chars().any(char::is_control) {
        let help = "write \"stdout\", \"stderr\" or a path";
        return Err(InvalidWord::new(
            format!("\"{}\" is not a destination for a log", short(&text.escape_debug().to_string())),
            Some(help.to_owned()),
        ));
    }
    Ok(())
}

/// A name of an origin: a host as an address has it, or an IP address.
pub fn tls_name(text: &str) -> Result<(), InvalidWord> {
    let is_ip = text.parse::<std::net::IpAddr>().is_ok();
    let is_host = || matches!(Address::parse(&format!("{text}:443")), Some(Address::Name(..)));
    if is_ip || (address::server(&format!("{text}:443")).is_ok() && is_host()) {
        return Ok(());
    }
    let help = "write the name in the origin's certificate, as in `name=\"app.example.com\"`";
    Err(InvalidWord::new(format!("\"{}\" is not the name of a host", short(text)), Some(help.to_owned())))
}

/// Whether it may be the path of a PEM file.
pub fn tls_path(text: &str) -> Result<(), InvalidWord> {
    if text.is_empty() || text.len() > 4096 || text.chars().any(char::is_control) {
        let shown = short(&text.escape_debug().to_string());
        let help = "write the path of a PEM file, relative to the folder of the file that names it";
        return Err(InvalidWord::new(
            format!("\"{shown}\" is not the path of a file"),
            Some(help.to_owned()),
        ));
    }
    Ok(())
}
