//! One page: a function with its arguments and an example, an argument, a kind of error, a figure.

use super::{WIDTH, wrapped};
use weir_topology::manual::{Argument, Entry, Fallback, Figure, KindEntry};

/// The help for any unit.
pub(super) const UNITS: &str = "\
Units of durations and sizes

  ns, us, ms, s, minutes, hours    durations: 5*ms, 1.5*s, or as a string: \"5ms\"
  KiB, MiB                         sizes in bytes: 64*KiB
";

/// A function.
pub(super) fn function(f: &Entry) -> String {
    let mut out = format!("{}\n\n{}\n", call(f), wrapped(f.meaning, WIDTH, 0));
    for (title, text) in [("Simulated", f.simulated), ("Served", f.served), ("Draws", f.draws)] {
        out.push_str(&format!("\n{}\n", wrapped(&format!("{title}: {text}."), WIDTH, 0)));
    }
    let (shared, own): (Vec<&Argument>, Vec<&Argument>) = f.arguments.iter().partition(|a| a.shared);
    for (title, arguments) in [("Arguments", own), ("Arguments of every balancer, by keyword only", shared)] {
        if !arguments.is_empty() {
            out.push_str(&format!("\n{title}\n"));
            arguments.iter().for_each(|a| out.push_str(&described(a)));
        }
    }
    out.push_str("\nExample\n");
    for line in f.example.lines() {
        out.push_str(format!("  {line}").trim_end());
        out.push('\n');
    }
    out
}

/// The call with its defaults, in lines that begin below its first argument.
fn call(f: &Entry) -> String {
    let text = f.signature();
    let open = text.find('(').map_or(0, |at| at + 1).min(24);
    let lines = wrapped(&text, WIDTH, open);
    lines.trim_start().to_owned()
}

fn described(a: &Argument) -> String {
    let (shown, note) = match a.otherwise {
        Fallback::Required => (a.name.to_owned(), " (required)".to_owned()),
        Fallback::Value(value) => (format!("{}={value}", a.name), String::new()),
        Fallback::Words(words) => (a.name.to_owned(), format!(" (otherwise {words})")),
    };
    let head = wrapped(&format!("{shown}: {}{note}", a.takes), WIDTH, 4);
    format!("  {}\n{}\n", head.trim_start(), wrapped(a.meaning, WIDTH, 6))
}

/// An argument, by the functions that take it; those with the same meaning are grouped.
pub(super) fn argument(name: &str, functions: &[Entry]) -> Option<String> {
    let mut told: Vec<(&Argument, Vec<&str>)> = Vec::new();
    for f in functions {
        let Some(a) = f.arguments.iter().find(|a| a.name == name) else { continue };
        match told.iter_mut().find(|(b, _)| b.meaning == a.meaning && b.otherwise == a.otherwise) {
            Some((_, names)) => names.push(f.name),
            None => told.push((a, vec![f.name])),
        }
    }
    if told.is_empty() {
        return None;
    }
    let mut out = format!("{name}: an argument\n");
    for (a, names) in told {
        out.push_str(&format!("\n{}\n", wrapped(&format!("of {}:", names.join(", ")), WIDTH, 0)));
        out.push_str(&described(a));
    }
    Some(out)
}

/// A kind of error.
pub(super) fn kind(k: &KindEntry) -> String {
    format!(
        "{}: a kind of error\n\n{}\n\n{}\n{}\n",
        k.name,
        wrapped(k.meaning, WIDTH, 0),
        wrapped(&format!("A client of the proxy sees: {}.", k.client), WIDTH, 0),
        wrapped(&format!("A `retry` whose `on` names it retries: {}.", k.again), WIDTH, 0)
    )
}

/// A figure of a result.
pub(super) fn figure(f: &Figure) -> String {
    let head = format!("{}: a figure of each {}, in {}", f.name, f.of, f.unit);
    format!("{head}\n\n{}\n", wrapped(f.meaning, WIDTH, 0))
}
