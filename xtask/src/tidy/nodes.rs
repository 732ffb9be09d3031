//! Every function of the language is used by an example or a test, and every kind of a plan is explained. What
//! functions and their arguments mean is data of the registry, which its own tests look at.

use super::{Source, files};
use std::path::Path;

/// The registry: a file per function or family.
const REGISTRY: &str = "crates/topology/src/nodes/";
/// Files of it that hold no function.
const BESIDE: &[&str] = &["mod.rs"];
/// Where the kinds of the plan are declared.
const PLAN: &str = "crates/plan/src/graph/spec.rs";

pub(super) fn check(root: &Path, sources: &[Source]) -> Vec<String> {
    let mut uses = files(root, &["crates", "examples"], "star");
    uses.extend(files(root, &["crates"], "rs").into_iter().filter(|f| f.path.contains("/tests/")));
    let mut problems: Vec<String> =
        sources.iter().filter(|f| registered(&f.path)).flat_map(|f| functions(f, &uses)).collect();
    problems.extend(sources.iter().filter(|f| f.path == PLAN).flat_map(|f| kinds(&f.text)));
    problems
}

fn registered(path: &str) -> bool {
    path.strip_prefix(REGISTRY).is_some_and(|name| !BESIDE.contains(&name))
}

/// What is missing for the functions that a file of the registry declares by `name: "..."`.
fn functions(file: &Source, uses: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for name in file.code().filter_map(|(_, l)| l.trim().strip_prefix("name: \"")?.split('"').next()) {
        if !uses.iter().any(|f| f.text.contains(&format!("{name}("))) {
            problems.push(format!("{}: no example and no test uses {name}(...)", file.path));
        }
    }
    problems
}

/// The kinds in `enum Spec` that have no explanation.
fn kinds(plan: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut explained = false;
    let spec = plan.lines().skip_while(|l| !l.starts_with("pub enum Spec")).take_while(|l| *l != "}");
    for line in spec.map(str::trim) {
        if line.starts_with("///") {
            explained = true;
        } else if let Some(kind) = line.strip_prefix("#[serde(rename = \"").and_then(|r| r.split('"').next())
        {
            if !explained {
                problems.push(format!("{PLAN}: the kind `{kind}` has no explanation"));
            }
            explained = false;
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_without_use_is_found() {
        let source = |text: &str| Source { path: format!("{REGISTRY}cable.rs"), text: text.into() };
        let declared = source("//! `cable(time, node)`: a link.\n    name: \"cable\",\n");
        assert_eq!(functions(&declared, &[source("x = cable(5 * ms, y)")]).len(), 0);
        assert_eq!(functions(&declared, &[]).len(), 1);
        assert!(
            !registered("crates/topology/src/nodes/mod.rs")
                && registered("crates/topology/src/nodes/lb/mod.rs")
        );
        assert_eq!(kinds("pub enum Spec {\n    #[serde(rename = \"cable\")]\n    Cable,\n}\n").len(), 1);
    }
}
