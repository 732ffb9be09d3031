//! The self-checks of a replication: what must hold exactly in any run. A violation is a fault of weir, never of the file.

use crate::code::Code;
use crate::engine::Engine;
use crate::ledger::Ledger;

/// Every law that the finished replication breaks, in words.
pub(crate) fn violations(code: &Code, engine: &mut Engine, requests: u64, selected: u64) -> Vec<String> {
    let at_balancers = engine.left_at_balancers();
    let ledger = &engine.ledger;
    let mut broken = Vec::new();
    let mut law = |holds: bool, says: &dyn Fn() -> String| {
        if !holds {
            broken.push(says());
        }
    };
    law(!ledger.time_went_back, &|| "time went back".into());
    law(ledger.arrived == requests && ledger.ended == requests && ledger.inside == 0, &|| {
        let Ledger { arrived, ended, inside, .. } = ledger;
        format!("conservation: of {requests} requests {arrived} arrived, {ended} ended, {inside} are inside")
    });
    let left = engine.left_in_queues();
    law(left == 0, &|| format!("conservation: {left} requests are left in queues"));
    law(at_balancers == 0, &|| {
        format!("conservation: balancers still count {at_balancers} requests in flight")
    });
    let counted = ledger.ok.count() + ledger.failed.count();
    law(counted == selected, &|| {
        format!("conservation: {counted} of {selected} selected requests were counted")
    });
    let area = ledger.area.wrapping_add(ledger.ahead);
    law(area == ledger.latency_sum, &|| {
        format!(
            "Little's law: requests in flight integrate to {area} ns, latencies add up to {} ns",
            ledger.latency_sum
        )
    });
    let parts = ledger.parts.iter().fold(0, |sum: u64, p| sum.wrapping_add(*p));
    let latencies = (ledger.ok.sum() + ledger.failed.sum()) as u64;
    law(parts == latencies, &|| format!("the parts of the latency add up to {parts} ns, not {latencies} ns"));
    for (gauge, (served, inner)) in utilisation(code, ledger).into_iter().enumerate() {
        law(served == inner, &|| {
            format!("utilisation law: queue {gauge} was busy for {served} ns with {inner} ns of work")
        });
    }
    broken
}

/// For each queue that ends at a server: time in its slots, and the time that passed at the nodes inside; selected
/// requests.
fn utilisation(code: &Code, ledger: &Ledger) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for site in &code.queues {
        let stage = &code.stages[site.stage as usize];
        let block = &code.blocks[stage.block as usize];
        if !block.leaf {
            continue;
        }
        let members = if code.mask == 0 { 1 } else { site.members };
        for member in site.base..site.base + members {
            let at = |offset: u32| offset.wrapping_add(member & code.mask) as usize;
            let inner =
                (site.stage + 1..block.stages.end).map(|s| ledger.parts[at(code.stages[s as usize].part)]);
            found.push((ledger.gauges[at(site.gauge)].served, inner.fold(0, u64::wrapping_add)));
        }
    }
    found
}
