//! The registry: every function of the language. A new one is a file and a line in [`ALL`].

mod budget;
mod buffered;
mod cable;
mod change;
mod closed;
mod concurrent;
mod delay;
mod dist;
mod eject;
mod events;
pub(crate) mod examples;
mod expect;
mod fanout;
mod faulty;
mod find;
mod flaky;
mod fleet;
mod gate;
mod health;
mod hedge;
mod http;
mod key;
mod keys;
mod lagged;
mod lb;
mod life;
mod listen;
mod mix;
mod mmpp;
mod outlier;
mod param;
mod pool;
mod queue;
mod rate;
mod redirect;
mod request;
mod respond;
mod retry;
mod rewrite;
mod route;
mod scenario;
mod schedule;
mod sequence;
mod server;
mod shadowed;
mod slow_start;
mod split;
mod subset;
mod timeout;
mod tls;
mod trace;
mod traffic;
mod warmup;
mod weight;
mod when;

pub(crate) use expect::check as check_expectations;

pub(crate) use crate::language::function::{Arg, Description, Function, Group, NAME, Need, may, maybe, need};

/// Every function, built or known by name only.
static ALL: &[&[Function]] = &[
    &listen::FUNCTIONS,
    &http::FUNCTIONS,
    &tls::FUNCTIONS,
    &server::FUNCTIONS,
    &respond::FUNCTIONS,
    &redirect::FUNCTIONS,
    &rewrite::FUNCTIONS,
    &buffered::FUNCTIONS,
    &queue::FUNCTIONS,
    &timeout::FUNCTIONS,
    &retry::FUNCTIONS,
    &pool::FUNCTIONS,
    &fleet::FUNCTIONS,
    &find::file::FUNCTIONS,
    &find::dns::FUNCTIONS,
    &find::eureka::FUNCTIONS,
    &find::consul::FUNCTIONS,
    &find::kubernetes::FUNCTIONS,
    &life::FUNCTIONS,
    &weight::FUNCTIONS,
    &lb::random::FUNCTIONS,
    &lb::round_robin::FUNCTIONS,
    &lb::least_conn::FUNCTIONS,
    &lb::p2c::FUNCTIONS,
    &lb::first::FUNCTIONS,
    &lb::peak_ewma::FUNCTIONS,
    &lb::zuul::FUNCTIONS,
    &lb::ring_hash::FUNCTIONS,
    &lb::maglev::FUNCTIONS,
    &lb::prequal::FUNCTIONS,
    &lb::least_work::FUNCTIONS,
    &health::FUNCTIONS,
    &eject::FUNCTIONS,
    &outlier::FUNCTIONS,
    &slow_start::FUNCTIONS,
    &subset::FUNCTIONS,
    &lagged::FUNCTIONS,
    &key::FUNCTIONS,
    &route::FUNCTIONS,
    &when::FUNCTIONS,
    &split::FUNCTIONS,
    &rate::FUNCTIONS,
    &hedge::FUNCTIONS,
    &budget::FUNCTIONS,
    &delay::FUNCTIONS,
    &cable::FUNCTIONS,
    &concurrent::FUNCTIONS,
    &warmup::FUNCTIONS,
    &gate::FUNCTIONS,
    &faulty::FUNCTIONS,
    &flaky::FUNCTIONS,
    &sequence::FUNCTIONS,
    &fanout::FUNCTIONS,
    &scenario::FUNCTIONS,
    &change::FUNCTIONS,
    &expect::FUNCTIONS,
    &traffic::FUNCTIONS,
    &mmpp::FUNCTIONS,
    &schedule::FUNCTIONS,
    &closed::FUNCTIONS,
    &trace::FUNCTIONS,
    &mix::FUNCTIONS,
    &request::FUNCTIONS,
    &keys::FUNCTIONS,
    &dist::FUNCTIONS,
    &param::FUNCTIONS,
];

/// Duration units, predeclared.
pub(crate) const UNITS: [&str; 6] = ["ns", "us", "ms", "s", "minutes", "hours"];
/// Size units, predeclared.
pub(crate) const SIZES: [(&str, i32); 2] = [("KiB", 1024), ("MiB", 1024 * 1024)];
/// Namespaces, predeclared.
pub(crate) const NAMESPACES: [&str; 11] =
    ["lb", "dist", "traffic", "limit", "health", "tls", "key", "keys", "change", "find", "subset"];

/// All functions.
pub(crate) fn functions() -> impl Iterator<Item = &'static Function> {
    ALL.iter().flat_map(|family| family.iter())
}

/// A function by its full name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    functions().find(|f| f.name == name)
}

/// Whether it is a predeclared namespace.
pub(crate) fn is_namespace(name: &str) -> bool {
    NAMESPACES.contains(&name)
}

/// The members of a namespace, by their names in it.
pub(crate) fn members(space: &str) -> impl Iterator<Item = (&'static str, &'static Function)> {
    let prefix = format!("{space}.");
    functions().filter_map(move |f| Some((f.name.strip_prefix(prefix.as_str())?, f)))
}

/// Functions without a namespace.
pub(crate) fn top_level() -> impl Iterator<Item = &'static str> {
    functions().map(|f| f.name).filter(|n| !n.contains('.'))
}

/// Every predeclared name.
pub(crate) fn predeclared() -> impl Iterator<Item = &'static str> {
    top_level().chain(NAMESPACES).chain(UNITS).chain(SIZES.iter().map(|s| s.0))
}

/// The full name of a namespace's member that was written without its namespace.
pub(crate) fn home_of(name: &str) -> Option<&'static str> {
    functions().map(|f| f.name).find(|n| n.split_once('.').is_some_and(|(_, member)| member == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_name_is_there_once() {
        let mut seen = HashSet::new();
        assert!(functions().all(|f| seen.insert(f.name)));
        assert!(predeclared().all(|p| p.split('.').next().is_some_and(|s| !s.is_empty())));
        assert!(
            functions().all(|f| f.args.len() + f.more.len() <= crate::language::call::MOST_ARGUMENTS),
            "a call has room for all"
        );
    }
}
