//! What the changes of a plan's scenarios do at instants that are known before a run: a part of the answer of `weir check`.

use crate::number::count;
use crate::table::{Side, Table};
use std::io::{self, Write};
use weir_plan::Plan;
use weir_plan::fleets::{FixedAct, fixed_acts};

/// The most acts of a scenario that are shown.
const MOST: usize = 12;

/// Scenarios whose changes do the same.
struct Group<'p> {
    names: Vec<&'p str>,
    acts: Vec<FixedAct>,
}

pub(crate) fn write(plan: &Plan, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let groups = groups(plan);
    if groups.is_empty() {
        return Ok(());
    }
    let mut table = Table::new();
    table.column("scenario", Side::Left);
    table.column("at", Side::Right);
    table.column("what", Side::Left);
    for group in &groups {
        let name = match &group.names[..] {
            [name] => (*name).to_owned(),
            names => format!("{} and {} more", names[0], count(names.len() as u64 - 1)),
        };
        for (i, act) in group.acts.iter().take(MOST).enumerate() {
            table.row(vec![if i == 0 { name.clone() } else { String::new() }, act.when(), act.what.clone()]);
        }
        if let Some(last) = group.acts[MOST.min(group.acts.len())..].last() {
            let more = count((group.acts.len() - MOST) as u64);
            table.row(vec![String::new(), last.when(), format!("the last of {more} more")]);
        }
    }
    writeln!(out, "changes at instants that are known before a run:\n\n{}", table.text(width))
}

/// The scenarios with changes, in the order of the file.
fn groups(plan: &Plan) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for point in &plan.points {
        for scenario in point.scenarios.iter().filter(|scenario| !scenario.events.is_empty()) {
            let (name, acts) = (scenario.name.as_str(), fixed_acts(point, scenario));
            match groups.iter_mut().find(|group| group.acts == acts) {
                Some(group) if group.names.contains(&name) => {}
                Some(group) => group.names.push(name),
                None => groups.push(Group { names: vec![name], acts }),
            }
        }
    }
    groups
}
