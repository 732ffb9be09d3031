//! An entry of the registry: one table by which calls are checked, and from which help and reference are made.

use crate::language::call::{Call, Outcome};

/// A function of the language.
pub(crate) struct Function {
    /// Its name as written: `cable`, `lb.least_conn`.
    pub(crate) name: &'static str,
    /// Its purpose.
    pub(crate) about: Description,
    /// Its arguments in order.
    pub(crate) args: &'static [Arg],
    /// Further arguments that its family shares, by keyword.
    pub(crate) more: &'static [Arg],
    /// Its implementation.
    pub(crate) make: for<'v, 'a, 'e, 'c> fn(&mut Call<'v, 'a, 'e, 'c>) -> Outcome<'v>,
}

/// The purpose of a function, in words for the author of a file.
pub(crate) struct Description {
    /// Where an overview lists it.
    pub(crate) group: Group,
    /// One line.
    pub(crate) meaning: &'static str,
    /// Its behaviour in virtual time.
    pub(crate) simulated: &'static str,
    /// Its behaviour in the proxy.
    pub(crate) served: &'static str,
    /// The random numbers it draws.
    pub(crate) draws: &'static str,
    /// A complete file that uses it.
    pub(crate) example: &'static str,
}

/// Where an overview lists a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Nodes that requests pass, in simulation and in the proxy.
    Pass,
    /// Balancers.
    Balance,
    /// Which targets are healthy, and what happens to the others.
    Health,
    /// Properties that distinguish requests.
    Key,
    /// The world around the system.
    Model,
    /// Times.
    Dist,
    /// Loads and questions.
    Ask,
    /// Settings that only serving needs.
    Serve,
}

impl Group {
    /// All, in the order of an overview.
    pub const ALL: [Group; 8] = [
        Group::Pass,
        Group::Balance,
        Group::Health,
        Group::Key,
        Group::Model,
        Group::Dist,
        Group::Ask,
        Group::Serve,
    ];

    /// The group's heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::Pass => "Nodes that requests pass",
            Group::Balance => "Balancers",
            Group::Health => "Health of targets",
            Group::Key => "Keys",
            Group::Model => "Models of the outside world",
            Group::Dist => "Distributions of durations",
            Group::Ask => "Loads and questions",
            Group::Serve => "For serving only",
        }
    }
}

/// An argument of a function.
pub(crate) struct Arg {
    /// Its name.
    pub(crate) name: &'static str,
    /// The values it accepts, with their unit: `a duration`, `1 or more`.
    pub(crate) takes: &'static str,
    /// Whether it must or may be given.
    pub(crate) need: Need,
    /// Its purpose.
    pub(crate) meaning: &'static str,
}

/// See [`Arg`].
pub(crate) enum Need {
    /// It must be given.
    Required,
    /// It may be given; leaving it out is the same as this value, as the language writes it (a test compares).
    Optional(&'static str),
    /// It may be given; these words describe the meaning of leaving it out.
    Depends(&'static str),
}

/// An argument that must be given.
pub(crate) const fn need(name: &'static str, takes: &'static str, meaning: &'static str) -> Arg {
    Arg { name, takes, need: Need::Required, meaning }
}

/// An argument that may be given, with its default.
pub(crate) const fn may(
    name: &'static str,
    takes: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Arg {
    Arg { name, takes, need: Need::Optional(default), meaning }
}

/// An argument that may be given; its default depends on other arguments, as these words say.
pub(crate) const fn maybe(
    name: &'static str,
    takes: &'static str,
    otherwise: &'static str,
    meaning: &'static str,
) -> Arg {
    Arg { name, takes, need: Need::Depends(otherwise), meaning }
}

/// The name that every node takes.
pub(crate) const NAME: Arg =
    may("name", "a string", "None", "its name in results, logs and on the status page");
