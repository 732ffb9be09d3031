//! `events` of a scenario: the changes that happen during its runs.

use crate::language::call::{Call, describe, list};
use crate::language::value::{ChangeValue, Poison};
use starlark::values::ValueLike;
use weir_plan::Change;
use weir_plan::ranges::MOST_CHANGES;

/// The changes of a scenario, in the order of the list.
pub(super) fn read(call: &mut Call<'_, '_, '_, '_>) -> Vec<Change> {
    let Some(value) = call.value("events") else { return Vec::new() };
    let help = "write `events=[change.rolling(apps, at=60*s)]`";
    let Some(items) = list(value) else {
        call.unfit_but("events", "a list of changes", value, help);
        return Vec::new();
    };
    if items.len() > MOST_CHANGES {
        let n = items.len();
        call.wrong(format!("`events` of `scenario` has {n} changes; {MOST_CHANGES} is the limit"));
        return Vec::new();
    }
    let mut changes = Vec::with_capacity(items.len());
    for (i, item) in items.into_iter().enumerate() {
        if let Some(ChangeValue((change, at))) = item.downcast_ref::<ChangeValue>() {
            if let Some(at) = at {
                let state = &mut *call.context.state.borrow_mut();
                state.located.insert(change.span.clone(), at.clone());
            }
            changes.push(change.clone());
        } else if item.downcast_ref::<Poison>().is_some() {
            call.poison();
        } else {
            let message = format!("`events[{i}]` of `scenario` must be a change, not {}", describe(item));
            call.wrong_but(message, help);
        }
    }
    changes
}
