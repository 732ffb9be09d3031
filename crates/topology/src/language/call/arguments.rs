//! The arguments of a call as what a function wants: durations, distributions, nodes, numbers, choices.

use super::Call;
use crate::language::value::{DistValue, DurationValue, FleetValue, NodeValue, Poison};
use starlark::values::float::UnpackFloat;
use starlark::values::list_or_tuple::UnpackListOrTuple;
use starlark::values::{StarlarkValue, UnpackValue, Value, ValueLike};
use weir_model::Dist;
use weir_plan::NodeId;
use weir_plan::duration::{parse_duration, show_ns};
use weir_plan::suggest;

/// How a fleet is used.
const FLEET_HELP: &str =
    "a fleet is the targets of a balancer: `lb.p2c(apps)`, or among others `lb.p2c([apps, spare])`";

/// The items of a list or tuple.
pub(crate) fn list<'v>(value: Value<'v>) -> Option<Vec<Value<'v>>> {
    UnpackListOrTuple::<Value>::unpack_value(value).ok().flatten().map(|l| l.items)
}

/// A value in words, for a message: `the int 7`, `a list`.
pub(crate) fn describe(value: Value<'_>) -> String {
    match value.get_type() {
        "NoneType" => "None".to_owned(),
        "string" => format!("the string {}", short(&value.to_repr())),
        "duration" => format!("the duration {}", short(&value.to_str())),
        kind @ ("int" | "float" | "bool") => format!("the {kind} {}", short(&value.to_str())),
        "function" => "a function".to_owned(),
        kind => {
            let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
            format!("{article} {}", kind.replace('_', " "))
        }
    }
}

fn short(text: &str) -> String {
    let cut: String = text.chars().take(60).collect();
    if cut.len() < text.len() { format!("{cut}...") } else { cut }
}

impl<'v> Call<'v, '_, '_, '_> {
    /// The value of an argument; `None` where it is not given or was wrong where it was made.
    pub(crate) fn value(&self, name: &str) -> Option<Value<'v>> {
        let i = self.args().position(|a| a.name == name)?;
        let value = self.values.get(i).copied().flatten()?;
        value.downcast_ref::<Poison>().is_none().then_some(value)
    }

    /// The same, with `None` of the language taken as not given.
    pub(crate) fn value_or_none(&self, name: &str) -> Option<Value<'v>> {
        self.value(name).filter(|v| !v.is_none())
    }

    /// Whether an argument is explicitly `None`.
    pub(crate) fn is_none(&self, name: &str) -> bool {
        self.value(name).is_some_and(|v| v.is_none())
    }

    /// Reports that an argument is not as expected.
    pub(crate) fn unfit(&mut self, name: &str, wanted: &str, value: Value<'v>) {
        let message = format!("`{name}` of `{}` must be {wanted}, not {}", self.name(), describe(value));
        if value.downcast_ref::<FleetValue>().is_some() {
            return self.wrong_but(message, FLEET_HELP);
        }
        if value.get_type() == "function" && wanted.contains("node") {
            self.wrong_but(message, "call the function: add `()`");
        } else {
            self.wrong(message);
        }
    }

    /// An argument that another function of the language makes; `None` of the language is not given. `wanted` says what
    /// it is, `help` how it is written.
    pub(crate) fn made<T: StarlarkValue<'v>>(
        &mut self,
        name: &str,
        wanted: &str,
        help: &str,
    ) -> Option<&'v T> {
        let value = self.value_or_none(name)?;
        let made = value.downcast_ref::<T>();
        if made.is_none() {
            self.unfit_but(name, wanted, value, help);
        }
        made
    }

    /// Reports that an argument is not as expected, and how it is written.
    pub(crate) fn unfit_but(&mut self, name: &str, wanted: &str, value: Value<'v>, help: &str) {
        let message = format!("{} must be {wanted}, not {}", self.describe(name), describe(value));
        self.wrong_but(message, help);
    }

    /// A value as a duration, ns, of either sign; `what` names it in a message.
    pub(crate) fn signed_ns(&mut self, what: &str, value: Value<'v>) -> Option<i64> {
        if value.downcast_ref::<Poison>().is_some() {
            self.poison();
            return None;
        }
        if let Some(duration) = value.downcast_ref::<DurationValue>() {
            return Some(duration.0);
        }
        if let Some(text) = value.unpack_str() {
            return match parse_duration(text) {
                Ok(ns) => Some(ns),
                Err(why) => {
                    self.wrong_but(
                        format!("{what}: {why}"),
                        "write a duration as `5*ms`, `1.5*s` or \"250us\"",
                    );
                    None
                }
            };
        }
        let message = format!("{what} must be a duration, not {}", describe(value));
        if matches!(value.get_type(), "int" | "float") {
            let number = short(&value.to_str());
            self.wrong_but(message, format!("give the number a unit, such as `{number}*ms` or `{number}*s`"));
        } else {
            self.wrong_but(message, "write a duration as `5*ms`, `1.5*s` or \"250us\"");
        }
        None
    }

    /// A value as a duration, ns, not negative.
    pub(crate) fn ns(&mut self, what: &str, value: Value<'v>) -> Option<u64> {
        let ns = self.signed_ns(what, value)?;
        match u64::try_from(ns) {
            Ok(ns) => Some(ns),
            Err(_) => {
                self.wrong(format!("{what} is negative: {}", show_ns(i128::from(ns))));
                None
            }
        }
    }

    /// `time` of `cable` in words.
    pub(crate) fn describe(&self, name: &str) -> String {
        format!("`{name}` of `{}`", self.name())
    }

    /// A duration argument, ns, not negative.
    pub(crate) fn duration(&mut self, name: &str) -> Option<u64> {
        let value = self.value(name)?;
        let what = self.describe(name);
        self.ns(&what, value)
    }

    /// A duration argument above 0, ns.
    pub(crate) fn positive_duration(&mut self, name: &str) -> Option<u64> {
        let ns = self.duration(name)?;
        if ns == 0 {
            let what = self.describe(name);
            self.wrong(format!("{what} must be longer than 0"));
            return None;
        }
        Some(ns)
    }

    /// A limit that `None` (or nothing) switches off, ns: else a duration above 0.
    pub(crate) fn limit(&mut self, name: &str) -> Option<u64> {
        let value = self.value_or_none(name)?;
        let what = self.describe(name);
        let ns = self.ns(&what, value)?;
        if ns == 0 {
            self.wrong_but(format!("{what} must be longer than 0"), format!("`{name}=None` switches it off"));
            return None;
        }
        Some(ns)
    }

    /// A value as a distribution; a duration is a fixed one.
    pub(crate) fn dist_of(&mut self, what: &str, value: Value<'v>) -> Option<Dist> {
        if let Some(dist) = value.downcast_ref::<DistValue>() {
            return Some(dist.0.clone());
        }
        self.ns(what, value).map(|ns| Dist::Fixed { ns })
    }

    /// A distribution argument.
    pub(crate) fn dist(&mut self, name: &str) -> Option<Dist> {
        let value = self.value(name)?;
        let what = self.describe(name);
        self.dist_of(&what, value)
    }

    /// A node argument.
    pub(crate) fn node_at(&mut self, name: &str) -> Option<NodeId> {
        let value = self.value(name)?;
        if let Some(node) = value.downcast_ref::<NodeValue>() {
            return Some(node.0);
        }
        let wanted = if list(value).is_some() { "one node (a balancer takes several)" } else { "a node" };
        self.unfit(name, wanted, value);
        None
    }

    /// A list of nodes, at least one.
    pub(crate) fn nodes_at(&mut self, name: &str) -> Option<Vec<NodeId>> {
        self.nodes_or(name, |_| None)
    }

    /// A list of nodes and fleets, or one fleet: what a balancer picks from.
    pub(crate) fn targets_at(&mut self, name: &str) -> Option<Vec<NodeId>> {
        let fleet = |value: Value<'v>| value.downcast_ref::<FleetValue>().map(|fleet| fleet.0);
        match self.value(name).and_then(fleet) {
            Some(fleet) => Some(vec![fleet]),
            None => self.nodes_or(name, fleet),
        }
    }

    /// A list of nodes, and of what `also` accepts.
    fn nodes_or(&mut self, name: &str, also: impl Fn(Value<'v>) -> Option<NodeId>) -> Option<Vec<NodeId>> {
        let value = self.value(name)?;
        let Some(items) = list(value) else {
            if value.downcast_ref::<NodeValue>().is_some() {
                let message = format!("`{name}` of `{}` must be a list of nodes, not one node", self.name());
                self.wrong_but(message, "put it in brackets: `[node]`");
            } else {
                self.unfit(name, "a list of nodes", value);
            }
            return None;
        };
        if items.is_empty() {
            let message = format!("`{}` has no {name}: the list is empty", self.name());
            self.wrong_but(message, "give it at least one node");
            return None;
        }
        let mut nodes = Vec::with_capacity(items.len());
        for (i, item) in items.into_iter().enumerate() {
            if let Some(node) = item.downcast_ref::<NodeValue>() {
                nodes.push(node.0);
            } else if let Some(node) = also(item) {
                nodes.push(node);
            } else if item.downcast_ref::<Poison>().is_some() {
                self.poison();
            } else {
                self.unfit(&format!("{name}[{i}]"), "a node", item);
            }
        }
        (!self.failed()).then_some(nodes)
    }

    /// A value as a whole number between two bounds.
    pub(crate) fn whole_of(&mut self, what: &str, value: Value<'v>, least: u64, most: u64) -> Option<u64> {
        let int = value.get_type() == "int";
        match i64::unpack_value(value) {
            Ok(Some(n)) if int && u64::try_from(n).is_ok_and(|n| (least..=most).contains(&n)) => {
                u64::try_from(n).ok()
            }
            Ok(Some(n)) if int && n < i64::try_from(least).unwrap_or(i64::MAX) => {
                self.wrong(format!("{what} must be at least {least}, not {n}"));
                None
            }
            _ if int => {
                self.wrong(format!("{what} must be at most {most}, not {}", short(&value.to_str())));
                None
            }
            _ => {
                let message = format!("{what} must be a whole number, not {}", describe(value));
                match UnpackFloat::unpack_value(value).ok().flatten().map(|f| f.0) {
                    Some(x) if x.fract() == 0.0 && (0.0..1e15).contains(&x) => {
                        self.wrong_but(message, format!("write `{x}`"));
                    }
                    _ => self.wrong(message),
                }
                None
            }
        }
    }

    /// A whole-number argument between two bounds.
    pub(crate) fn whole(&mut self, name: &str, least: u64, most: u64) -> Option<u64> {
        let value = self.value(name)?;
        let what = self.describe(name);
        self.whole_of(&what, value, least, most)
    }

    /// The same as 32 bits.
    pub(crate) fn count(&mut self, name: &str, least: u32, most: u32) -> Option<u32> {
        self.whole(name, u64::from(least), u64::from(most)).and_then(|n| u32::try_from(n).ok())
    }

    /// A value as a finite number.
    pub(crate) fn real_of(&mut self, what: &str, value: Value<'v>) -> Option<f64> {
        if value.downcast_ref::<Poison>().is_some() {
            self.poison();
            return None;
        }
        let number = UnpackFloat::unpack_value(value).ok().flatten().map(|f| f.0);
        match number {
            Some(x) if x.is_finite() && value.get_type() != "bool" => Some(x),
            Some(x) if !x.is_finite() => {
                self.wrong(format!("{what} must be a finite number, not {x}"));
                None
            }
            _ => {
                self.wrong(format!("{what} must be a number, not {}", describe(value)));
                None
            }
        }
    }

    /// A finite-number argument.
    pub(crate) fn real(&mut self, name: &str) -> Option<f64> {
        let value = self.value(name)?;
        let what = self.describe(name);
        self.real_of(&what, value)
    }

    /// A finite number that is not negative.
    pub(crate) fn not_negative(&mut self, name: &str) -> Option<f64> {
        let x = self.real(name)?;
        if x < 0.0 {
            let what = self.describe(name);
            self.wrong(format!("{what} must not be negative, but is {x}"));
            return None;
        }
        Some(x)
    }

    /// A finite number above 0.
    pub(crate) fn positive(&mut self, name: &str) -> Option<f64> {
        let x = self.real(name)?;
        if x <= 0.0 {
            let what = self.describe(name);
            self.wrong(format!("{what} must be above 0, not {x}"));
            return None;
        }
        Some(x)
    }

    /// A probability.
    pub(crate) fn share(&mut self, name: &str) -> Option<f64> {
        let x = self.real(name)?;
        if !(0.0..=1.0).contains(&x) {
            let what = self.describe(name);
            let message = format!("{what} must be between 0 and 1, not {x}");
            if (1.0..=100.0).contains(&x) {
                // To six digits: a hundredth of 1.1 has many digits.
                let share = (x * 1e4).round() / 1e6;
                self.wrong_but(message, format!("for {x} percent write {share}"));
            } else {
                self.wrong(message);
            }
            return None;
        }
        Some(x)
    }

    /// A percentage, 0 to 100.
    pub(crate) fn percent(&mut self, name: &str) -> Option<f64> {
        let x = self.real(name)?;
        if !(0.0..=100.0).contains(&x) {
            let what = self.describe(name);
            self.wrong(format!("{what} must be between 0 and 100 (percent), not {x}"));
            return None;
        }
        if x > 0.0 && x < 1.0 && !self.failed() {
            let what = self.describe(name);
            // To six digits, like a share.
            let percent = (x * 1e8).round() / 1e6;
            self.warn(
                format!("{what} is {x} percent, less than one in a hundred: percentages go from 0 to 100"),
                format!("for a share of {x} write `{name}={percent}`"),
            );
        }
        Some(x)
    }

    /// `true` or `false`.
    pub(crate) fn truth(&mut self, name: &str) -> Option<bool> {
        let value = self.value(name)?;
        match value.unpack_bool() {
            Some(b) => Some(b),
            None => {
                self.unfit(name, "True or False", value);
                None
            }
        }
    }

    /// One of several strings, each with its meaning. Words of `docs/spec/language.md#functions` that are not built yet
    /// have the meaning `None`.
    pub(crate) fn choice<T: Copy>(&mut self, name: &str, words: &[(&str, Option<T>)]) -> Option<T> {
        let value = self.value(name)?;
        let all: Vec<String> =
            words.iter().filter(|w| w.1.is_some()).map(|w| format!("\"{}\"", w.0)).collect();
        let Some(text) = value.unpack_str() else {
            self.unfit(name, &suggest::either(&all), value);
            return None;
        };
        let what = self.describe(name);
        match words.iter().find(|w| w.0 == text) {
            Some((_, Some(meaning))) => Some(*meaning),
            Some((word, None)) => {
                self.wrong(format!("{what}: \"{word}\" is not built yet"));
                None
            }
            None => {
                let help = suggest::nearest(text, words.iter().map(|w| w.0))
                    .map(|w| format!("did you mean \"{w}\"?"));
                let help = help.unwrap_or_else(|| format!("use {}", suggest::either(&all)));
                self.wrong_but(format!("{what} cannot be \"{}\"", short(text)), help);
                None
            }
        }
    }

    /// A string argument; `None` where it is not given.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        let value = self.value_or_none(name)?;
        match value.unpack_str() {
            Some(text) => Some(text.to_owned()),
            None => {
                self.unfit(name, "a string", value);
                None
            }
        }
    }

    /// The argument `name`, checked: not empty.
    pub(crate) fn name_or_none(&mut self) -> Option<String> {
        let name = self.text("name")?;
        if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
            self.wrong(format!("`name` of `{}` must be 1 to 200 printable characters", self.name()));
            return None;
        }
        Some(name)
    }
}
