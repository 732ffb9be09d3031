//! Arguments that are words of HTTP, limits with defaults, sizes and keys.

use super::{Call, describe, list};
use crate::language::value::{BudgetValue, KeyValue, Poison};
use starlark::values::dict::DictRef;
use starlark::values::{Value, ValueLike};
use weir_plan::KeySource;
use weir_plan::http::{self, InvalidWord};
use weir_policy::config::{Budget, Methods};

/// Names that other programs use for an argument, and the names it may have here.
const MEANT: &[(&str, &[&str])] = &[
    ("delay", &["backoff", "time"]),
    ("wait", &["backoff", "wait_timeout", "timeout"]),
    ("sleep", &["backoff", "time", "think"]),
    ("latency", &["time"]),
    ("duration", &["time"]),
    ("tries", &["attempts"]),
    ("retries", &["attempts"]),
    ("max_attempts", &["attempts"]),
    ("times", &["attempts"]),
    ("workers", &["concurrency", "threads"]),
    ("slots", &["concurrency"]),
    ("max_concurrency", &["concurrency"]),
    ("size", &["capacity"]),
    ("length", &["capacity"]),
    ("max_queue", &["capacity", "max_waiting"]),
    ("limit", &["capacity", "per_s"]),
    ("rps", &["rate", "per_s"]),
    ("qps", &["rate", "per_s"]),
    ("per_s", &["rate"]),
    ("per_second", &["rate", "per_s"]),
    ("rate", &["per_s"]),
    ("interval", &["every"]),
    ("gap", &["every"]),
    ("address", &["addr"]),
    ("url", &["addr"]),
    ("port", &["addr"]),
    ("host", &["addr"]),
    ("probability", &["p"]),
    ("backends", &["targets"]),
    ("servers", &["targets"]),
    ("weight", &["w"]),
    ("choose", &["choices"]),
    ("load", &["traffic"]),
    ("health_check", &["health"]),
    ("outlier", &["eject"]),
    ("max_conns", &["max_connections", "max_in_flight"]),
];

/// The names that such an argument may have here, the likeliest first.
pub(super) fn meant(name: &str) -> impl Iterator<Item = &'static str> + use<> {
    let found = MEANT.iter().find(|(word, _)| *word == name).map_or(&[][..], |(_, here)| here);
    found.iter().copied()
}

/// The check of a word.
pub(crate) type Check = fn(&str) -> Result<(), InvalidWord>;

impl<'v> Call<'v, '_, '_, '_> {
    /// A value as a string that passes a check; `what` names it in a message.
    pub(crate) fn word_of(&mut self, what: &str, value: Value<'v>, check: Check) -> Option<String> {
        let Some(text) = value.unpack_str() else {
            if value.downcast_ref::<Poison>().is_some() {
                self.poison();
            } else {
                let message = format!("{what} must be a string, not {}", describe(value));
                match value.unpack_i32() {
                    Some(port) if what.starts_with("`addr`") => {
                        self.wrong_but(message, format!("for a port write `\"127.0.0.1:{port}\"`"));
                    }
                    _ => self.wrong(message),
                }
            }
            return None;
        };
        match check(text) {
            Ok(()) => Some(text.to_owned()),
            Err(invalid) => {
                let message = format!("{what}: {invalid}");
                match invalid.remedy {
                    Some(help) => self.wrong_but(message, help),
                    None => self.wrong(message),
                }
                None
            }
        }
    }

    /// A string argument that passes a check; `None` where it is not given.
    pub(crate) fn word(&mut self, name: &str, check: Check) -> Option<String> {
        let value = self.value_or_none(name)?;
        let what = self.describe(name);
        self.word_of(&what, value, check)
    }

    /// An argument of one string or a list of them.
    pub(crate) fn words(&mut self, name: &str, check: Check) -> Vec<String> {
        let Some(value) = self.value_or_none(name) else { return Vec::new() };
        let what = self.describe(name);
        let Some(items) = list(value) else {
            if value.unpack_str().is_none() {
                self.wrong(format!("{what} must be a string or a list of strings, not {}", describe(value)));
                return Vec::new();
            }
            return self.word_of(&what, value, check).into_iter().collect();
        };
        if items.is_empty() {
            self.wrong_but(
                format!("{what} is an empty list, which nothing matches"),
                format!("leave `{name}` out to match any"),
            );
        }
        let items: Vec<Option<String>> = items.into_iter().map(|i| self.word_of(&what, i, check)).collect();
        items.into_iter().flatten().collect()
    }

    /// A dictionary of fields: names in lower case, each once, in the order of the file.
    pub(crate) fn fields(
        &mut self,
        argument: &str,
        name_is: Check,
        value_is: Check,
    ) -> Vec<(String, String)> {
        let Some(value) = self.value_or_none(argument) else { return Vec::new() };
        let Some(dictionary) = DictRef::from_value(value) else {
            let help = format!("write `{argument}={{\"x-user\": \"anna\"}}`");
            self.unfit_but(argument, "a dictionary of names and values", value, &help);
            return Vec::new();
        };
        let items: Vec<_> = dictionary.iter().collect();
        drop(dictionary);
        let what = self.describe(argument);
        let mut fields: Vec<(String, String)> = Vec::with_capacity(items.len());
        for (name, value) in items {
            let name_repr = name.to_repr();
            let name = self.word_of(&what, name, name_is).map(|n| n.to_ascii_lowercase());
            let of = format!("{what}: the value of {}", http::short(&name_repr));
            let value = self.word_of(&of, value, value_is);
            let Some((name, value)) = name.zip(value) else { continue };
            if fields.iter().any(|(n, _)| *n == name) {
                self.wrong(format!("{what}: \"{name}\" is given twice (names of headers ignore case)"));
            }
            fields.push((name, value));
        }
        fields
    }

    /// A list of strings that pass a check (one string alone will do), which may be empty; `None` where it is not
    /// given.
    pub(crate) fn several(&mut self, name: &str, check: Check) -> Option<Vec<String>> {
        let value = self.value_or_none(name)?;
        let empty = list(value).is_some_and(|items| items.is_empty());
        Some(if empty { Vec::new() } else { self.words(name, check) })
    }

    /// A limit with a default, ns; `None` of the language switches it off.
    pub(crate) fn limit_or(&mut self, name: &str, default: Option<u64>) -> Option<u64> {
        if self.value(name).is_some() { self.limit(name) } else { default }
    }

    /// A number, at least 1, with a default; `None` in the language means unbounded.
    pub(crate) fn most_or(&mut self, name: &str, default: Option<u64>) -> Option<u64> {
        match self.value(name) {
            Some(value) if value.is_none() => None,
            Some(_) => self.whole(name, 1, i64::MAX as u64),
            None => default,
        }
    }

    /// A number of bytes.
    pub(crate) fn bytes(&mut self, name: &str) -> Option<u64> {
        self.size(name, 0, i64::MAX as u64)
    }

    /// A number of bytes between two bounds.
    pub(crate) fn size(&mut self, name: &str, least: u64, most: u64) -> Option<u64> {
        let value = self.value(name)?;
        if value.get_type() != "int" {
            self.unfit_but(name, "a size in whole bytes", value, "write it as `64*KiB`, `2*MiB` or 1500");
            return None;
        }
        self.whole(name, least, most)
    }

    /// A key argument; `None` where there is none.
    pub(crate) fn key(&mut self, name: &str) -> Option<KeySource> {
        let help =
            "write `key.header(\"x-user\")`, `key.cookie(\"session\")`, `key.path()` or `key.client()`";
        self.made::<KeyValue>(name, "a key", help).map(|k| k.0.clone())
    }

    /// The argument `methods`.
    pub(crate) fn methods(&mut self) -> Methods {
        let words = [("idempotent", Some(Methods::Idempotent)), ("any", Some(Methods::Any))];
        self.choice("methods", &words).unwrap_or_default()
    }

    /// The argument `budget`.
    pub(crate) fn budget(&mut self) -> Option<Budget> {
        let help = "write `budget(ratio=0.2, min_per_s=10)`";
        self.made::<BudgetValue>("budget", "a budget", help).map(|b| b.0.clone())
    }

    /// The argument `replay`: how much of a request's body is kept for further attempts.
    pub(crate) fn replay(&mut self) -> u64 {
        self.bytes("replay").unwrap_or(64 * 1024)
    }
}
