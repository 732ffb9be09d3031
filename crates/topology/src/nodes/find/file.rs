//! `find.file(path, f, ...)`: a fleet whose members a JSON file lists.

use super::{F, MORE, SIMULATED, make, read_path};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, need};
use starlark::values::Value;
use weir_plan::SourceKind;

pub(in crate::nodes) static FUNCTIONS: [Function; 1] = [Function {
    name: "find.file",
    about: Description {
        group: Group::Serve,
        meaning: "Targets that a JSON file lists: it is followed while it runs.",
        simulated: SIMULATED,
        served: "each address of the file is a member; a changed file adds and removes members without a reload",
        draws: "nothing",
        example: examples::FIND_FILE,
    },
    args: &[need("path", "a path", "the file, relative to the file that names it"), F],
    more: &MORE,
    make: find_file,
}];

/// How it is written.
const USUAL: &str = "find.file(\"servers.json\", lambda: server(\"app\"))";

fn find_file<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    if call.is_none("path") {
        call.unfit("path", "a path", Value::new_none());
    }
    let from = read_path(call, "path").map(SourceKind::File);
    make(call, from, USUAL)
}
