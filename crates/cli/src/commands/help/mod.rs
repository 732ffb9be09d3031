//! `weir help [NAME]`: what a function, an argument, a kind of error, a figure, a command, an option or a warning
//! means; without a name the list of functions. The texts come from the table by which files are checked.

mod entry;
mod overview;
mod warnings;
mod words;

use super::cli::Cli;
use crate::failure::Failure;
use crate::output;
use clap::{Args, CommandFactory};
use weir_topology::manual::{self, Entry, FIGURES};

/// The longest line, in characters.
pub(super) const WIDTH: usize = 80;

/// `weir help`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir help                                        all functions, by purpose
  weir help lb.p2c                                 one of them: arguments, defaults, an example
  weir help overloaded                             a kind of error
  weir help max_in_flight                          an argument, and which functions take it
  weir help p99                                    a figure of a result
  weir help sim                                    a command
  weir help outage                                 a word of yours, and what it is called here
  weir help \"too short for p99\"                  what a warning means")]
pub(crate) struct Help {
    /// A function, argument, kind of error, figure, command or option, a word, or the text of a warning
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) name: Option<String>,
}

pub(crate) fn run(args: &Help) -> Result<(), Failure> {
    let functions = manual::functions();
    let Some(name) = &args.name else {
        let text = overview::page(&functions, &mut Cli::command());
        return output::to_stdout(|out| out.write_all(text.as_bytes()));
    };
    let asked = name.trim().trim_end_matches("()").trim_end_matches('=');
    let pages = pages(asked, &functions);
    if pages.is_empty() {
        return Err(unknown(name, &functions));
    }
    output::to_stdout(|out| out.write_all(pages.join("\n").as_bytes()))
}

/// Everything with that name.
fn pages(asked: &str, functions: &[Entry]) -> Vec<String> {
    let mut pages = Vec::new();
    pages.extend(functions.iter().find(|f| f.name == asked).map(entry::function));
    pages.extend(command(asked));
    pages.extend(overview::namespace(asked, functions));
    pages.extend(manual::kinds().iter().find(|k| k.name == asked).map(entry::kind));
    pages.extend(entry::argument(asked, functions));
    pages.extend(FIGURES.iter().filter(|f| f.name == asked || last(f.name) == asked).map(entry::figure));
    pages.extend(option(asked));
    if pages.is_empty() {
        // `p2c`: a member without its namespace.
        pages.extend(functions.iter().filter(|f| last(f.name) == asked).map(entry::function));
    }
    if pages.is_empty() && manual::units().contains(&asked) {
        pages.push(entry::UNITS.to_owned());
    }
    // A word of many meanings may be the name of something rare as well.
    pages.extend(words::pages(asked));
    if pages.is_empty() {
        pages.extend(warnings::pages(asked));
    }
    pages
}

/// The part behind the last dot.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The long help of a command.
fn command(name: &str) -> Option<String> {
    let mut all = Cli::command();
    all.build();
    let found = all.find_subcommand_mut(name).filter(|c| !c.is_hide_set())?;
    Some(format!("A command.\n\n{}", found.render_long_help()))
}

/// The commands that have an option: `--seed`, `-p`.
fn option(name: &str) -> Option<String> {
    let wanted = name.strip_prefix('-')?.trim_start_matches('-');
    let all = Cli::command();
    let mut lines = Vec::new();
    for command in all.get_subcommands().filter(|c| !c.is_hide_set()) {
        for arg in command.get_arguments().filter(|a| !a.is_hide_set() && !a.is_positional()) {
            let short = arg.get_short().map(String::from);
            if arg.get_long() == Some(wanted) || short.as_deref() == Some(wanted) {
                let says = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let head = format!("  weir {:<10}", command.get_name());
                lines.push(format!("{head} {}", wrapped(&says, WIDTH, 18).trim_start()));
            }
        }
    }
    (!lines.is_empty()).then(|| format!("{name}: an option of\n{}\n", lines.join("\n")))
}

fn unknown(name: &str, functions: &[Entry]) -> Failure {
    let all = Cli::command();
    let mut known: Vec<&str> = functions.iter().map(|f| f.name).collect();
    known.extend(all.get_subcommands().filter(|c| !c.is_hide_set()).map(clap::Command::get_name));
    let kinds = manual::kinds();
    known.extend(kinds.iter().map(|k| k.name));
    known.extend(functions.iter().flat_map(|f| f.arguments.iter().map(|a| a.name)));
    known.extend(FIGURES.iter().map(|f| f.name));
    let near = manual::near(name, &known);
    Failure::Usage(match near.as_slice() {
        [] => format!("nothing is called `{name}`; `weir help` lists everything"),
        near => format!("nothing is called `{name}`; did you mean {}?", either(near)),
    })
}

/// `a`, `b` or `c`.
fn either(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        all => all.join(""),
    }
}

/// Words in lines of at most `width` characters, each indented.
pub(crate) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let n = word.chars().count();
        if used > 0 && used + 1 + n <= width {
            out.push(' ');
            used += 1 + n;
        } else {
            if used > 0 {
                out.push('\n');
            }
            out.push_str(&" ".repeat(indent));
            used = indent + n;
        }
        out.push_str(word);
    }
    out
}
