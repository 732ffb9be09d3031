//! The list of all functions, and of the members of a namespace.

use super::{WIDTH, wrapped};
use weir_topology::manual::{self, Entry, FIGURES, Group};

/// Where the meanings begin.
const COLUMN: usize = 24;

/// Everything that has help, in groups.
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
    described(f.name, f.meaning)
}

/// A name and its meaning; a name that reaches into the meanings' column has a line of its own.
fn described(name: &str, meaning: &str) -> String {
    let text = wrapped(meaning, WIDTH, COLUMN);
    let width = COLUMN - 2;
    if name.chars().count() < width {
        format!("  {name:<width$}{}\n", text.trim_start())
    } else {
        format!("  {name}\n{text}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_too_long_for_its_column_has_a_line_of_its_own() {
        let column = " ".repeat(COLUMN);
        let longest = "a".repeat(COLUMN - 3);
        assert_eq!(described(&longest, "Waits."), format!("  {longest} Waits.\n"));
        let longer = "a".repeat(COLUMN - 2);
        assert_eq!(described(&longer, "Waits."), format!("  {longer}\n{column}Waits.\n"));
        assert_eq!(described("lb.p2c", "Waits."), format!("{:<COLUMN$}Waits.\n", "  lb.p2c"));
    }
}
