//! Limits with what is used of them, and certificates with their ends: what the process knows without its threads.

use super::view::{CertificateView, LimitView};
use crate::metrics::descriptors;
use crate::threads::generation::Generation;
use crate::threads::process::Process;
use std::collections::BTreeMap;
use weir_plan::{NodeId, Spec, label};

/// How often a budget is tried that another thread holds.
const TRIES: u32 = 1000;

/// All limits: the process's, then those of listeners, then budgets.
pub(super) fn limits(process: &Process, generation: &Generation) -> Vec<LimitView> {
    let limit = |limit, of: &str, now: f64, most: f64| LimitView { limit, of: of.to_owned(), now, most };
    let mut all: Vec<LimitView> = Vec::new();
    all.extend(descriptors().map(|(open, most)| limit("descriptors", "", open as f64, most as f64)));
    let common = generation.confs.values().find_map(|conf| conf.admission.common.as_ref());
    let of_all = common.and_then(|clients| Some((clients.connected(), clients.most()?)));
    all.extend(of_all.map(|(now, most)| limit("clients", "", now as f64, most as f64)));
    for conf in generation.confs.values() {
        let clients = &conf.admission.clients;
        let own =
            clients.most().map(|most| limit("clients", &conf.name, clients.connected() as f64, most as f64));
        all.extend(own);
    }
    let budgets = budgets(process, generation).into_iter();
    all.extend(budgets.map(|(of, (left, reserve))| limit("budget", &of, left, reserve)));
    all
}

/// By the name of the node: further attempts that its budget allows now, and its reserve. Of nodes of one site the one
/// that has least left.
fn budgets(process: &Process, generation: &Generation) -> BTreeMap<String, (f64, f64)> {
    let blueprint = &generation.blueprint;
    let now_ns = process.clock.now();
    let mut all: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (id, key) in (0 as NodeId..).zip(&blueprint.keys.nodes) {
        let budget = match blueprint.spec(id) {
            Spec::Retry(retry) => retry.budget.as_ref(),
            Spec::Hedge(hedge) => hedge.budget.as_ref(),
            _ => None,
        };
        let Some((config, tokens)) = budget.zip(process.state.budget(*key)) else { continue };
        let left = (0..TRIES).find_map(|_| tokens.try_with(|tokens| tokens.left(now_ns)));
        let Some(left) = left else { continue };
        let reserve = config.min_per_s * config.window_ns as f64 / 1e9;
        let least = all.entry(label(&blueprint.point, id)).or_insert((left, reserve));
        if left < least.0 {
            *least = (left, reserve);
        }
    }
    all
}

/// Certificates, the first to end first.
pub(super) fn certificates(generation: &Generation) -> Vec<CertificateView> {
    let mut all = Vec::new();
    for conf in generation.confs.values() {
        for (file, not_after_s) in conf.tls.iter().flat_map(|server| server.not_after()) {
            all.push(CertificateView { listener: conf.name.clone(), file, not_after_s });
        }
    }
    all.sort_by_key(|one| one.not_after_s);
    all
}
