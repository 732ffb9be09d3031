//! The list of all functions, and of the members of a namespace.

use super::{WIDTH, wrapped};
use weir_topology::manual::{self, Entry, FIGURES, Group};

/// Where the meanings begin.
const COLUMN: usize = 24;

/// All that can be asked for, in groups.
pub(super) fn page(functions: &[Entry], command: &mut clap::Command) -> String {
    let commands: Vec<&str> =
        command.get_subcommands().filter(|c| !c.is_hide_set()).map(clap::Command::get_name).collect();
    let mut out = String::from("weir help NAME says more about each of these.\n");
    for group in Group::ALL {
        out.push_str(&format!("\n{}\n", group.title()));
        functions.iter().filter(|f| f.group == group).for_each(|f| out.push_str(&line(f)));
    }
    let kinds: Vec<&str> = manual::kinds().iter().map(|k| k.name).collect();
    let mut figures: Vec<&str> = Vec::new();
    for figure in FIGURES {
        if !figures.contains(&figure.name) {
            figures.push(figure.name);
        }
    }
    for (title, names) in [
        ("Units", manual::units()),
        ("Kinds of error", kinds),
        ("Figures of a result", figures),
        ("Commands (weir --help)", commands),
    ] {
        out.push_str(&format!("\n{title}\n{}\n", wrapped(&names.join(", "), WIDTH, 2)));
    }
    out
}

/// The functions of a namespace: `lb`.
pub(super) fn namespace(asked: &str, functions: &[Entry]) -> Option<String> {
    let prefix = format!("{}.", asked.trim_end_matches('.'));
    let lines: String = functions.iter().filter(|f| f.name.starts_with(&prefix)).map(line).collect();
    (!lines.is_empty()).then(|| format!("The functions of `{}`\n{lines}", prefix.trim_end_matches('.')))
}

fn line(f: &Entry) -> String {
    let text = wrapped(f.meaning, WIDTH, COLUMN);
    format!("  {:<width$}{}\n", f.name, text.trim_start(), width = COLUMN - 2)
}
