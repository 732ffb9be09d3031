//! Every kind of node in the plan is explained where it is declared, and used by an example or a test.

use super::Source;

/// Where the kinds are declared.
const PLAN: &str = "crates/topology/src/plan.rs";

pub(super) fn check(files: &[Source]) -> Vec<String> {
    let Some(plan) = files.iter().find(|f| f.path == PLAN) else { return vec![format!("{PLAN}: missing")] };
    let mut problems = Vec::new();
    let mut documented = false;
    for (i, line) in spec(&plan.text) {
        let line = line.trim();
        if line.starts_with("///") {
            documented = true;
        } else if let Some(kind) = line.strip_prefix("#[serde(rename = \"").and_then(|r| r.split('"').next())
        {
            if !documented {
                problems.push(format!("{PLAN}:{i}: the node `{kind}` has no explanation"));
            }
            documented = false;
        }
    }
    problems
}

/// The lines of `enum Spec` with their numbers.
fn spec(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line))
        .skip_while(|(_, line)| !line.starts_with("pub enum Spec"))
        .take_while(|(_, line)| *line != "}")
}
