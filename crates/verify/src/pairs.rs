//! The runs of a scenario in both worlds, run by run: what is compared and what is reported of them.

use crate::compare::{Compared, compare, unsaid};
use crate::figures::{Figures, QUANTILES};
use crate::outcome::{AtQuantile, BothWorlds, TargetShares};
use crate::prepare::Arrangement;
use crate::statistics::{Statistic, Unit};
use crate::tolerances::Tolerances;
use weir_plan::NodeId;
use weir_stats::{Estimate, no_other_end};

/// Figures of both worlds, of one run.
pub(crate) struct Pair {
    pub simulated: Figures,
    pub real: Figures,
}

impl Pair {
    /// A figure in both worlds.
    fn figure(&self, pick: impl Fn(&Figures) -> Option<f64>) -> (Option<f64>, Option<f64>) {
        (pick(&self.simulated), pick(&self.real))
    }
}

/// A figure in both worlds, over all runs.
pub(crate) fn both_worlds(pairs: &[Pair], pick: impl Fn(&Figures) -> Option<f64>) -> BothWorlds {
    BothWorlds {
        simulated: Estimate::new(pairs.iter().map(|pair| pick(&pair.simulated))),
        real: Estimate::new(pairs.iter().map(|pair| pick(&pair.real))),
    }
}

/// All statistics that can be said, each with its verdict. `newcomers`: servers that join while it runs.
pub(crate) fn statistics(pairs: &[Pair], newcomers: &[NodeId], tolerances: &Tolerances) -> Vec<Statistic> {
    type Pick = fn(&Figures) -> Option<f64>;
    let latency = |name| Compared { name, unit: Unit::Ratio, is_ms: true, is_count: false };
    let plain = |name, unit| Compared { name, unit, is_ms: false, is_count: false };
    let count = |name| Compared { name, unit: Unit::Ratio, is_ms: false, is_count: true };
    let picks: [(Compared, Pick); 8] = [
        (latency("mean"), |f| f.mean),
        (latency("p50"), |f| f.quantiles[0]),
        (latency("p95"), |f| f.quantiles[2]),
        (latency("p99"), |f| f.quantiles[3]),
        (plain("success", Unit::Points), |f| f.success),
        (plain("attempts", Unit::Ratio), |f| f.attempts),
        (count("opened"), |f| f.to_servers.map(|[opened, _]| opened)),
        (count("open"), |f| f.to_servers.map(|[_, open]| open)),
    ];
    let requests = pairs.iter().map(|pair| pair.real.requests).sum();
    let of = |(compared, pick): (Compared, Pick)| {
        let values: Vec<_> = pairs.iter().map(|pair| pair.figure(pick)).collect();
        let (name, tolerance) = (compared.name, tolerances.tolerance(compared.name));
        let unsaid = || (!values.is_empty() && tolerances.is_set(name)).then(|| unsaid(compared, tolerance));
        let least = if compared.unit == Unit::Points { no_other_end(requests) } else { 0.0 };
        compare(compared, &values, tolerance, least).or_else(unsaid)
    };
    let mut all: Vec<Statistic> = picks.into_iter().filter_map(of).collect();
    let share = |name, servers: &[NodeId]| {
        let share = |f: &Figures| servers.iter().map(|server| f.shares.get(server).copied()).sum();
        let values: Vec<_> = pairs.iter().map(|pair| pair.figure(share)).collect();
        compare(plain(name, Unit::Points), &values, tolerances.tolerance("share"), no_other_end(requests))
    };
    all.extend(farthest(pairs).and_then(|server| share("share", &[server])));
    if !newcomers.is_empty() {
        all.extend(share("newcomers", newcomers));
    }
    all
}

/// The server whose share differs most.
fn farthest(pairs: &[Pair]) -> Option<NodeId> {
    let off = |server: NodeId| {
        let of = |f: &Figures| f.shares.get(&server).copied().unwrap_or_default();
        pairs.iter().map(|pair| of(&pair.real) - of(&pair.simulated)).sum::<f64>().abs()
    };
    let servers = pairs.first()?.simulated.shares.keys().copied();
    servers.max_by(|a, b| off(*a).total_cmp(&off(*b)).then(b.cmp(a)))
}

/// The latency at each quantile.
pub(crate) fn curve(pairs: &[Pair]) -> Vec<AtQuantile> {
    let at = |(i, q): (usize, f64)| {
        let BothWorlds { simulated, real } = both_worlds(pairs, |figures| figures.quantiles[i]);
        AtQuantile { q, simulated, real }
    };
    QUANTILES.into_iter().enumerate().map(at).collect()
}

/// How often balancers ejected a target.
pub(crate) fn ejections(pairs: &[Pair]) -> BothWorlds {
    both_worlds(pairs, |figures| Some(figures.ejections))
}

/// The mean latency as it was, ms.
pub(crate) fn mean_ms(pairs: &[Pair]) -> Option<f64> {
    Estimate::new(pairs.iter().map(|pair| pair.real.mean)).value
}

/// Each server's share of the requests.
pub(crate) fn targets(pairs: &[Pair], prepared: &Arrangement) -> Vec<TargetShares> {
    let of = |server: NodeId| {
        let BothWorlds { simulated, real } =
            both_worlds(pairs, |figures| figures.shares.get(&server).copied());
        TargetShares { name: prepared.name(server), simulated, real }
    };
    prepared.compared().map(of).collect()
}
