//! Functions of `docs/spec/language.md#functions` that are not built yet: known by name, and answered with an error at
//! their place.
//!
//! A function that is built moves from here to a file of its own.

use super::{Description, Function, Group};
use crate::call::{Call, Outcome};

/// The meaning of an index beyond the registry; never reached.
pub(super) static UNKNOWN: Function = later("unknown", Group::Ask, "");

const fn later(name: &'static str, group: Group, meaning: &'static str) -> Function {
    let about = Description { group, meaning, simulated: "", served: "", draws: "nothing", example: "" };
    Function { name, about, args: &[], more: &[], make }
}

pub(super) static FUNCTIONS: &[Function] = &[];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    call.wrong(format!("`{}` is not built yet", call.name()));
    Ok(None)
}
