//! What a reload changes, in words.

use crate::exchange::NodeId;
use crate::threads::generation::Generation;
use std::collections::BTreeMap;
use weir_plan::Spec;

/// The changes, in a sentence: `+2 -1 targets, 1 weight, listener edge: certificate`.
pub(super) fn sentence(before: &Generation, now: &Generation) -> String {
    let mut all = Vec::new();
    let counted = now.blueprint.changes;
    if counted.added + counted.removed > 0 {
        let of = if counted.added + counted.removed == 1 { "" } else { "s" };
        all.push(format!("+{} -{} target{of}", counted.added, counted.removed));
    }
    for (number, conf) in &now.confs {
        match before.confs.get(number) {
            None => all.push(format!("listener {}: new", conf.name)),
            Some(was) if was.listen.http != conf.listen.http => {
                all.push(format!("listener {}: http", conf.name));
            }
            Some(_) => {}
        }
        if before.confs.get(number).is_some_and(|was| was.listen.tls != conf.listen.tls) {
            all.push(format!("listener {}: certificate", conf.name));
        }
    }
    let gone = before.confs.iter().filter(|(number, _)| !now.confs.contains_key(number));
    all.extend(gone.map(|(_, conf)| format!("listener {}: removed", conf.name)));
    if now.confs.values().any(|conf| conf.tls.is_some()) {
        all.push("certificates read again".to_owned());
    }
    let weights = weights(before, now);
    match weights {
        0 => {}
        1 => all.push("1 weight".to_owned()),
        n => all.push(format!("{n} weights")),
    }
    if all.is_empty() {
        all.push("the same targets and listeners".to_owned());
    }
    all.join(", ")
}

/// The number of remaining targets with another weight.
fn weights(before: &Generation, now: &Generation) -> usize {
    let lbs = |generation: &Generation| -> BTreeMap<u32, Vec<f64>> {
        let blueprint = &generation.blueprint;
        let ids = 0..blueprint.point.nodes.len() as NodeId;
        let lb = ids.filter(|id| matches!(blueprint.spec(*id), Spec::Lb(_)));
        lb.map(|id| (blueprint.id(id).0, blueprint.weights(id))).collect()
    };
    let (before, now) = (lbs(before), lbs(now));
    let differ = |(lb, weights): (&u32, &Vec<f64>)| {
        let was = before.get(lb).map_or(&[][..], |was| was);
        // 0: no target; added and removed ones are counted as such.
        weights.iter().zip(was).filter(|(now, was)| now != was && **now > 0.0 && **was > 0.0).count()
    };
    now.iter().map(differ).sum()
}
