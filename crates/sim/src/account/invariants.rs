//! The self-checks of a replication: laws that hold exactly in any run. A violation is a fault of weir, never of the
//! file.

use crate::account::ledger::Ledger;
use crate::code::Code;
use crate::code::MemberId;
use weir_policy::Kind;

/// What remains when the run is over; all of it should be zero.
pub(crate) struct Remainder {
    /// Requests that balancers count in flight.
    pub at_balancers: u64,
    /// Slots taken and requests waiting at queues and servers.
    pub in_queues: u64,
    /// Requests on connections, or waiting for one.
    pub on_connections: u64,
    /// Requests still in flight.
    pub on_the_way: u64,
}

/// The laws that the finished replication breaks, in words. `selected` is how many requests should have been
/// selected, if that is known beforehand; `loses`: whether requests can be lost.
pub(crate) fn violations(
    code: &Code,
    ledger: &Ledger,
    left: &Remainder,
    requests: Option<u64>,
    selected: Option<u64>,
    loses: bool,
) -> Vec<String> {
    let mut broken = Vec::new();
    let mut law = |holds: bool, says: &dyn Fn() -> String| {
        if !holds {
            broken.push(says());
        }
    };
    law(!ledger.time_went_back, &|| "time went back".into());
    let requests = requests.unwrap_or(ledger.arrived);
    law(ledger.arrived == requests && ledger.ended == requests && ledger.inside == 0, &|| {
        let Ledger { arrived, ended, inside, .. } = ledger;
        format!("conservation: of {requests} requests {arrived} arrived, {ended} ended, {inside} are inside")
    });
    let Remainder { at_balancers, in_queues, on_connections, on_the_way } = left;
    law(*in_queues == 0, &|| format!("conservation: {in_queues} requests are left in queues"));
    law(*at_balancers == 0, &|| {
        format!("conservation: balancers still count {at_balancers} requests in flight")
    });
    law(*on_connections == 0, &|| {
        format!("conservation: {on_connections} requests are left on connections, or wait for one")
    });
    law(*on_the_way == 0, &|| format!("conservation: {on_the_way} are still on their way"));
    let lost = ledger.errors[Kind::Lost as usize];
    law(lost == 0 || loses, &|| format!("conservation: {lost} requests were lost, and nothing loses any"));
    let counted = ledger.ok.count() + ledger.failed.count() + lost;
    let selected = selected.unwrap_or(counted);
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

/// For each queue that ends at a server: the time in its slots and the time spent at the nodes inside, of selected
/// requests.
fn utilisation(code: &Code, ledger: &Ledger) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for block in code.blocks.iter().filter(|b| b.leaf) {
        let members = if code.mask == 0 { 1 } else { block.members };
        for member in (block.base..block.base + members).map(MemberId) {
            let at = |offset: u32| code.row(offset, member);
            // From the innermost stage outwards.
            let mut inner = 0u64;
            for index in block.stages.clone().rev() {
                let stage = &code.stages[index as usize];
                if let Some(gauge) = stage.gauge.filter(|_| index + 1 < block.stages.end) {
                    let behind = ledger.behind.get(at(gauge)).copied().unwrap_or(0);
                    found.push((ledger.gauges[at(gauge)].served, inner.wrapping_sub(behind)));
                }
                // Parallel work adds up to more than the time in which it is done.
                if stage.parallel {
                    break;
                }
                let part = at(stage.part);
                let spent = ledger.spent.get(part).copied().unwrap_or(0);
                inner = inner.wrapping_add(ledger.parts[part]).wrapping_add(spent);
            }
        }
    }
    found
}
