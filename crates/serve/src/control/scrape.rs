//! A scrape: each thread is asked for its counts, and process-wide counts are read.
//!
//! For a loop that hangs, or has ended, its last counts are used, so that no counter decreases.

use super::gather::gather;
use crate::graph::blueprint::Blueprint;
use crate::metrics::families::Id as Of;
use crate::metrics::sample::merged;
use crate::metrics::{Exposition, Samples, text};
use crate::reload::reloader::Reloader;
use crate::threads::process::{Process, answer_limit};
use std::iter::once;
use std::sync::{Arc, PoisonError};
use weir_plan as plan;
use weir_plan::serving::Role;

/// All metrics. `ready`: what `/ready` says.
pub(super) fn scrape(reloader: &Reloader, ready: bool, format: Exposition) -> Vec<u8> {
    let (process, (generation, lost)) = (&reloader.process, reloader.current());
    // Its content is valid after every step.
    let mut said = process.metrics.said.lock().unwrap_or_else(PoisonError::into_inner);
    let limit = answer_limit(generation.blueprint.reached.len());
    let answers = process.ask_all_in_turns(limit, |lp| async move { Some(Arc::new(gather(&lp).await?)) });
    said.resize(answers.len(), None);
    for (before, now) in said.iter_mut().zip(answers) {
        *before = now.flatten().or(before.take());
    }
    let mut own = Samples::default();
    process.metrics.gather(&mut own);
    own.add(Of::LogLinesLost, [], lost);
    own.add(Of::Ready, [], u64::from(ready));
    for conf in generation.confs.values() {
        if let Some(most) = conf.admission.most() {
            let listener: Arc<str> = conf.name.as_str().into();
            own.add(Of::ConnectionsLimit, [(&listener).into()], most as u64);
        }
        for (file, not_after_s) in conf.tls.iter().flat_map(|server| server.not_after()) {
            let [listener, file]: [Arc<str>; 2] = [conf.name.as_str().into(), file.into()];
            own.add(Of::TlsNotAfter, [(&listener).into(), (&file).into()], not_after_s);
        }
    }
    reloader.gather_fleets(&mut own);
    gather_shared(process, &generation.blueprint, &mut own);
    let all = merged(said.iter().flatten().map(|samples| &**samples).chain(once(&own)));
    drop(said);
    text::exposed(&all, format)
}

/// Process-wide metrics of nodes.
fn gather_shared(process: &Process, blueprint: &Blueprint, out: &mut Samples) {
    let now_ns = process.clock.now();
    for (id, key) in (0..).zip(&blueprint.keys.nodes) {
        if !matches!(blueprint.role(id), Role::Proxy | Role::Model) {
            continue;
        }
        let label = || Arc::<str>::from(plan::label(&blueprint.point, id));
        if let Some((inside, waiting)) = process.state.inside(*key) {
            let label = label();
            out.add(Of::QueueInside, [(&label).into()], inside);
            out.add(Of::QueueWaiting, [(&label).into()], waiting);
        }
        if let Some(subsets) = blueprint.subsets(id) {
            let (pool, sizes) = (label(), subsets.table().sizes());
            out.add(Of::Subsets, [(&pool).into()], u64::from(sizes.count));
            for (bound, targets) in [("least", sizes.least), ("most", sizes.most)] {
                out.add(Of::SubsetTargets, [(&pool).into(), bound.into()], u64::from(targets));
            }
            out.add(Of::SubsetMoves, [(&pool).into()], subsets.moves());
        }
        if let Some(budget) = process.state.budget(*key) {
            // Its present holder only does some arithmetic.
            let left = (0..TRIES).find_map(|_| budget.try_with(|tokens| tokens.left(now_ns)));
            if let Some(left) = left {
                out.add(Of::BudgetTokens, [(&label()).into()], left);
            }
        }
    }
}

/// How often a budget is tried that another thread holds.
const TRIES: u32 = 1000;
