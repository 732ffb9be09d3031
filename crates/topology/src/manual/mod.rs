//! The manual of the language: functions, kinds of error, figures of a result and warnings, for help and for the
//! reference. Functions and their arguments are those of the registry, by which calls are checked.

mod figures;
mod kinds;
mod warnings;

pub use crate::language::function::Group;
pub use figures::{FIGURES, Figure};
pub use kinds::{KindEntry, kinds};
pub use warnings::warnings;

use crate::nodes::{self, Arg, Need};
use weir_plan::suggest;

/// A function.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name as written: `lb.p2c`.
    pub name: &'static str,
    /// Where an overview lists it.
    pub group: Group,
    /// One line.
    pub meaning: &'static str,
    /// Its behaviour in virtual time.
    pub simulated: &'static str,
    /// Its behaviour in the proxy.
    pub served: &'static str,
    /// The random numbers it draws.
    pub draws: &'static str,
    /// A complete file that uses it.
    pub example: &'static str,
    /// Its own arguments in order, then those that its family shares.
    pub arguments: Vec<Argument>,
}

/// An argument of a function.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// The values it accepts, with their unit.
    pub takes: &'static str,
    /// The meaning of leaving it out.
    pub otherwise: Fallback,
    /// Its purpose.
    pub meaning: &'static str,
    /// Whether its family shares it: by keyword only.
    pub shared: bool,
}

/// The meaning of leaving an argument out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// An error.
    Required,
    /// The same as this, as the language writes it.
    Value(&'static str),
    /// The meaning in words.
    Words(&'static str),
}

/// All functions, in the order of the registry.
pub fn functions() -> Vec<Entry> {
    nodes::functions().map(entry).collect()
}

/// The balancers that occur in none of these calls. A test with a list of balancers compares it with those that it
/// leaves out on purpose, so that a new one is not forgotten.
pub fn missing_balancers<'a>(calls: impl IntoIterator<Item = &'a str>) -> Vec<&'static str> {
    let calls: Vec<&str> = calls.into_iter().collect();
    let balancers = nodes::functions().filter(|f| f.about.group == Group::Balance);
    let names = balancers.map(|f| f.name).filter(|name| name.starts_with("lb."));
    names.filter(|name| !calls.iter().any(|call| call.split('(').next() == Some(name))).collect()
}

fn entry(f: &'static nodes::Function) -> Entry {
    let own = f.args.iter().map(|a| argument(a, false));
    Entry {
        name: f.name,
        group: f.about.group,
        meaning: f.about.meaning,
        simulated: f.about.simulated,
        served: f.about.served,
        draws: f.about.draws,
        example: f.about.example,
        arguments: own.chain(f.more.iter().map(|a| argument(a, true))).collect(),
    }
}

fn argument(a: &'static Arg, shared: bool) -> Argument {
    let otherwise = match a.need {
        Need::Required => Fallback::Required,
        Need::Optional(value) => Fallback::Value(value),
        Need::Depends(words) => Fallback::Words(words),
    };
    Argument { name: a.name, takes: a.takes, otherwise, meaning: a.meaning, shared }
}

impl Entry {
    /// The function as a call: `cable(time, node, loss=0.0, resend=None, name=None)`; `...` means the arguments that
    /// the family shares.
    pub fn signature(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for a in self.arguments.iter().filter(|a| !a.shared) {
            match a.otherwise {
                Fallback::Required => parts.push(a.name.to_owned()),
                Fallback::Value(value) => parts.push(format!("{}={value}", a.name)),
                Fallback::Words(_) => parts.push(format!("{}=", a.name)),
            }
        }
        if self.arguments.iter().any(|a| a.shared) {
            parts.push("...".to_owned());
        }
        format!("{}({})", self.name, parts.join(", "))
    }
}

/// Units of durations and sizes: `ms`, `KiB`.
pub fn units() -> Vec<&'static str> {
    nodes::UNITS.into_iter().chain(nodes::SIZES.map(|s| s.0)).collect()
}

/// The names that `word` may refer to: those that contain it, and the nearest by spelling.
pub fn near<'a>(word: &str, names: &[&'a str]) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let last = |n: &'a str| n.rsplit('.').next().unwrap_or(n);
    let mut found: Vec<&str> = Vec::new();
    let nearest = suggest::nearest(&word, names.iter().copied());
    let member = suggest::nearest(&word, names.iter().map(|n| last(n)));
    found.extend(nearest);
    found.extend(names.iter().copied().filter(|n| member.is_some_and(|m| last(n) == m)));
    found.extend(names.iter().copied().filter(|n| last(n) == word));
    found.extend(names.iter().copied().filter(|n| word.len() > 2 && n.contains(&word)));
    let mut once: Vec<&str> = Vec::new();
    for name in found {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once.truncate(6);
    once
}
