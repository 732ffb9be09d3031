//! What of a scenario is not compared, and why.

use crate::outcome::Omission;
use crate::prepare::Arrangement;
use crate::statistics::Statistic;

/// How many requests of a run must count for a quantile.
const LEAST_REQUESTS: [(&str, u64); 3] = [("p50", 20), ("p95", 200), ("p99", 1000)];

/// The statistics that are missing from these, each with the reason. `selected`: the requests of a run that count.
pub(crate) fn find_omissions(
    statistics: &[Statistic],
    selected: u64,
    prepared: &Arrangement,
) -> Vec<Omission> {
    let is_missing = |name: &str| statistics.iter().all(|s| s.name != name);
    if statistics.is_empty() {
        return vec![Omission { names: Vec::new(), why: "every run is void".to_owned() }];
    }
    let quantiles = LEAST_REQUESTS.into_iter().filter(|(name, _)| is_missing(name));
    let quantiles = quantiles.map(|(name, least)| Omission {
        names: vec![name],
        why: match selected < least {
            true => format!("{selected} requests of a run count, and it needs {least}"),
            false => "too few requests of a run have a latency".to_owned(),
        },
    });
    let why_openings = prepared.explain_unknown_openings().filter(|_| is_missing("opened"));
    let openings = why_openings.map(|why| Omission { names: vec!["opened", "open"], why });
    let has_servers = !prepared.servers.is_empty() || !prepared.real.is_empty();
    let why_shares = "it is not known which server gets a request of another load balancer".to_owned();
    let shares = (has_servers && prepared.compared().next().is_none())
        .then(|| Omission { names: vec!["share"], why: why_shares });
    quantiles.chain(openings).chain(shares).collect()
}
