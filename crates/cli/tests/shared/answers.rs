//! What files answer: their commands, a table, a verdict whose words hang on the figures.

use crate::shared::figures::{Estimate, figure, root, scenarios, student};
use crate::shared::pages::{shown, wrapped};
use serde_json::Value;

/// The part of a page about one file: its commands, a table, a verdict.
pub(crate) struct Answer {
    pub(crate) name: &'static str,
    pub(crate) commands: Vec<Vec<&'static str>>,
    pub(crate) table: String,
    pub(crate) verdict: String,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        self.text_with(|_| String::new())
    }

    /// With a line more behind each command.
    pub(crate) fn text_with(&self, behind: impl Fn(&[&str]) -> String) -> String {
        let verdict = wrapped(&format!("**Verdict:** {}", self.verdict));
        let commands: Vec<String> =
            self.commands.iter().map(|c| format!("weir sim {}\n{}", c.join(" "), behind(c))).collect();
        format!("```\n{}```\n\n{}\n{verdict}", commands.concat(), self.table)
    }
}

pub(crate) fn run_of(args: &[&str]) -> Vec<Value> {
    let path = root().join(args[0]);
    let mut all = vec![path.to_str().expect("UTF-8"), "--each"];
    all.extend(&args[1..]);
    scenarios(&all)
}

pub(crate) fn ms(scenario: &Value, stat: &str) -> String {
    shown(figure(scenario, stat))
}

/// Rounded down, so that 100 % is said of all or nothing.
pub(crate) fn percent(share: f64) -> String {
    let hundredths = (share * 1e4 + 1e-6).floor() / 100.0;
    if hundredths.fract() == 0.0 { format!("{hundredths} %") } else { format!("{hundredths:.2} %") }
}

pub(crate) fn success(scenario: &Value) -> f64 {
    figure(scenario, "success").value
}

pub(crate) fn name(scenario: &Value) -> &str {
    scenario["name"].as_str().expect("a name")
}

/// The scenario of that name at one point of a sweep.
#[track_caller]
pub(crate) fn find<'a>(of: &'a [Value], wanted: &str, param: &str, value: impl Into<Value>) -> &'a Value {
    let value = value.into();
    let found = of.iter().find(|s| name(s) == wanted && s["params"][param] == value);
    found.unwrap_or_else(|| panic!("no `{wanted}` where {param} is {value}"))
}

/// "a, b and c".
pub(crate) fn list(of: &[String]) -> String {
    match of {
        [] => panic!("a verdict names nothing"),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

pub(crate) fn names(of: &[&Value]) -> String {
    list(&of.iter().map(|s| format!("`{}`", name(s))).collect::<Vec<_>>())
}

/// A figure's values by replication.
fn each(scenario: &Value, stat: &str) -> Vec<f64> {
    let all = &scenario["latency_ms"]["all"];
    let of = all.get(stat).or_else(|| scenario.get(stat)).unwrap_or_else(|| panic!("no figure `{stat}`"));
    of["each"].as_array().expect("values").iter().map(|x| x.as_f64().expect("a number")).collect()
}

/// How much higher `a` is than `b` on the same requests: the mean of the differences by replication, with Student's
/// interval.
pub(crate) fn more(a: &Value, b: &Value, stat: &str) -> Estimate {
    let of: Vec<f64> = each(a, stat).iter().zip(each(b, stat)).map(|(a, b)| a - b).collect();
    let n = of.len() as f64;
    let value = of.iter().sum::<f64>() / n;
    let variance = of.iter().map(|x| (x - value) * (x - value)).sum::<f64>() / (n - 1.0);
    Estimate { value, half: student(0.975, of.len() as i32 - 1) * (variance / n).sqrt() }
}

/// Whether a difference is certainly above 0, certainly below, or neither.
pub(crate) fn sign(difference: Estimate) -> Option<bool> {
    (difference.value.abs() > difference.half).then_some(difference.value > 0.0)
}
