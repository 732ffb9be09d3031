//! Parameters: what the command line sets or sweeps, what the file asks for, and which combination comes next.

use std::collections::BTreeMap;
use weir_plan::Value;
use weir_plan::diagnostic::Diagnostic;
use weir_plan::duration::{parse_duration, show_ns};
use weir_plan::suggest;

/// The parameters of one evaluation, and the position among the swept ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    set: BTreeMap<String, String>,
    swept: BTreeMap<String, Vec<String>>,
    /// Swept parameters in the order in which the file names them, the first varying slowest.
    position: Vec<Wheel>,
    /// The parameters that this evaluation requested: name, default, value.
    asked: Vec<(String, Value, Value)>,
    /// Every name that any evaluation asked for.
    known: Vec<String>,
}

/// One swept parameter: its values and which of them is next.
#[derive(Clone, Debug)]
struct Wheel {
    name: String,
    values: Vec<Value>,
    at: usize,
}

/// The answer to `param(...)`.
pub(crate) enum ParamRequest {
    /// Its value.
    Value(Value),
    /// The command line gives it a value that does not fit.
    Wrong(String),
    /// It was named before with another default.
    OtherDefault(String),
}

impl Params {
    /// The values set on the command line.
    ///
    /// # Errors
    /// A parameter given twice, or both set and swept, or swept over nothing.
    pub(crate) fn new(
        set: &[(String, String)],
        swept: &[(String, Vec<String>)],
    ) -> Result<Params, Vec<Diagnostic>> {
        let mut params = Params::default();
        let mut wrong = Vec::new();
        for (name, value) in set {
            if params.set.insert(name.clone(), value.clone()).is_some() {
                wrong.push(Diagnostic::error(format!("the parameter \"{name}\" is set twice")));
            }
        }
        for (name, values) in swept {
            if params.set.contains_key(name) {
                wrong.push(
                    Diagnostic::error(format!("the parameter \"{name}\" is both set and swept"))
                        .help("give `-p` or `--sweep`"),
                );
            } else if values.is_empty() {
                wrong.push(
                    Diagnostic::error(format!("the sweep of \"{name}\" has no values"))
                        .help(format!("write `--sweep {name}=1,2,4`")),
                );
            } else if params.swept.insert(name.clone(), values.clone()).is_some() {
                wrong.push(Diagnostic::error(format!("the parameter \"{name}\" is swept twice")));
            }
        }
        if wrong.is_empty() { Ok(params) } else { Err(wrong) }
    }

    /// Answers `param(name, default, sweep=list)`.
    pub(crate) fn ask(&mut self, name: &str, default: &Value, list: Option<Vec<Value>>) -> ParamRequest {
        if let Some((_, before, value)) = self.asked.iter().find(|a| a.0 == name) {
            return if before == default {
                ParamRequest::Value(value.clone())
            } else {
                ParamRequest::OtherDefault(show(before))
            };
        }
        if !self.known.iter().any(|k| k == name) {
            self.known.push(name.to_owned());
        }
        let value = match self.value(name, default, list) {
            Ok(value) => value,
            Err(message) => return ParamRequest::Wrong(message),
        };
        self.asked.push((name.to_owned(), default.clone(), value.clone()));
        ParamRequest::Value(value)
    }

    fn value(&mut self, name: &str, default: &Value, list: Option<Vec<Value>>) -> Result<Value, String> {
        if let Some(text) = self.set.get(name) {
            return parse(text, default)
                .map_err(|why| format!("the parameter \"{name}\" cannot be \"{text}\": {why}"));
        }
        if let Some(wheel) = self.position.iter().find(|w| w.name == name) {
            return Ok(wheel.values[wheel.at].clone());
        }
        let values = match self.swept.get(name) {
            Some(texts) => texts
                .iter()
                .map(|t| {
                    parse(t, default)
                        .map_err(|why| format!("the sweep of \"{name}\" cannot hold \"{t}\": {why}"))
                })
                .collect::<Result<Vec<Value>, String>>()?,
            None => match list {
                Some(values) => values,
                None => return Ok(default.clone()),
            },
        };
        let first = values[0].clone();
        self.position.push(Wheel { name: name.to_owned(), values, at: 0 });
        Ok(first)
    }

    /// The parameters of the evaluation just done, which begins anew; the first mentioned first.
    pub(crate) fn take_asked(&mut self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.asked).into_iter().map(|(name, _, value)| (name, value)).collect()
    }

    /// Advances to the next combination; false after the last.
    pub(crate) fn advance(&mut self) -> bool {
        while let Some(wheel) = self.position.last_mut() {
            if wheel.at + 1 < wheel.values.len() {
                wheel.at += 1;
                return true;
            }
            self.position.pop();
        }
        false
    }

    /// Names on the command line that no evaluation asked for.
    pub(crate) fn unknown(&self) -> Vec<Diagnostic> {
        let names = self.set.keys().chain(self.swept.keys());
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        names
            .filter(|n| !known.contains(&n.as_str()))
            .map(|n| {
                let list = if known.is_empty() {
                    "the file has none".to_owned()
                } else {
                    format!("the file has {}", known.join(", "))
                };
                let help = suggest::nearest(n, known.iter().copied())
                    .map(|m| format!("did you mean `{m}`? ({list})"))
                    .unwrap_or(list);
                Diagnostic::error(format!("no parameter is called \"{n}\"")).help(help)
            })
            .collect()
    }
}

/// A value in words.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => format!("{f:?}"),
        Value::Duration { ns } => show_ns(i128::from(*ns)),
        Value::Text(t) => format!("\"{t}\""),
    }
}

/// The kind of a value in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "true or false",
        Value::Int(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Duration { .. } => "a duration (such as 5ms)",
        Value::Text(_) => "a string",
    }
}

/// A value as the type of the default, if it can be one.
pub(crate) fn fit(value: &Value, default: &Value) -> Option<Value> {
    match (default, value) {
        (Value::Float(_), Value::Int(i)) => Some(Value::Float(*i as f64)),
        (Value::Bool(_), Value::Bool(_))
        | (Value::Int(_), Value::Int(_))
        | (Value::Float(_), Value::Float(_))
        | (Value::Duration { .. }, Value::Duration { .. })
        | (Value::Text(_), Value::Text(_)) => Some(value.clone()),
        (Value::Duration { .. }, Value::Text(t)) => parse_duration(t).ok().map(|ns| Value::Duration { ns }),
        _ => None,
    }
}

/// A text of the command line as the type of the default.
fn parse(text: &str, default: &Value) -> Result<Value, String> {
    let wrong = || format!("it must be {}", kind(default));
    let trimmed = text.trim();
    match default {
        Value::Bool(_) => match trimmed {
            "true" | "True" => Ok(Value::Bool(true)),
            "false" | "False" => Ok(Value::Bool(false)),
            _ => Err(wrong()),
        },
        Value::Int(_) => trimmed.replace('_', "").parse().map(Value::Int).map_err(|_| wrong()),
        Value::Float(_) => match trimmed.replace('_', "").parse::<f64>() {
            Ok(f) if f.is_finite() => Ok(Value::Float(f)),
            _ => Err(wrong()),
        },
        Value::Duration { .. } => {
            parse_duration(trimmed).map(|ns| Value::Duration { ns }).map_err(|e| e.to_string())
        }
        Value::Text(_) => Ok(Value::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_follows_the_default() {
        assert_eq!(parse("4", &Value::Int(1)), Ok(Value::Int(4)));
        assert!(parse("2.5", &Value::Int(1)).is_err());
        assert_eq!(parse("2", &Value::Float(1.0)), Ok(Value::Float(2.0)));
        assert!(parse("nan", &Value::Float(1.0)).is_err());
        assert_eq!(parse("5ms", &Value::Duration { ns: 1 }), Ok(Value::Duration { ns: 5_000_000 }));
        assert_eq!(parse("true", &Value::Bool(false)), Ok(Value::Bool(true)));
    }

    #[test]
    fn the_first_named_varies_slowest() {
        let mut p = Params::default();
        let mut seen = Vec::new();
        loop {
            for (name, values) in [("a", 2), ("b", 3)] {
                let list = (0..values).map(Value::Int).collect();
                assert!(matches!(p.ask(name, &Value::Int(0), Some(list)), ParamRequest::Value(_)));
            }
            seen.push(p.take_asked().iter().map(|(_, v)| show(v)).collect::<String>());
            if !p.advance() {
                break;
            }
        }
        assert_eq!(seen, ["00", "01", "02", "10", "11", "12"]);
    }
}
