//! Values of options that several commands take.

use super::InvalidValue;
use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use weir_report::Column;

/// `name=value`.
pub(crate) fn setting(text: &str) -> Result<(String, String), InvalidValue> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".into()),
    }
}

/// `name=a,b,c`.
pub(crate) fn list(text: &str) -> Result<(String, Vec<String>), InvalidValue> {
    let (name, values) = setting(text).map_err(|_| "write NAME=A,B,...")?;
    let values: Vec<String> = values.split(',').map(str::to_owned).collect();
    if values.iter().any(String::is_empty) {
        return Err("a value is empty; write NAME=A,B,...".into());
    }
    Ok((name, values))
}

/// The name of a file (or folder) to write. `-` is none: where it is an input it means standard input, and what goes to
/// standard output is not chosen by it.
pub(crate) fn written() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.to_str() {
        Some("-") => Err(InvalidValue::from(
            "`-` is not a file's name here: without this option standard output has the result; write `./-` for a file of \
             that name",
        )),
        _ => Ok(path),
    })
}

/// A column of the table of scenarios.
pub(crate) fn column() -> impl TypedValueParser<Value = Column> {
    let named = |(name, other)| match other {
        "" => PossibleValue::new(name),
        other => PossibleValue::new(name).alias(other),
    };
    let known = PossibleValuesParser::new(Column::names().map(named));
    known.try_map(|name| Column::parse(&name).ok_or_else(|| InvalidValue::from("is no column")))
}

/// The seed of random draws.
pub(crate) fn seed(text: &str) -> Result<u64, InvalidValue> {
    text.parse().map_err(|_| "write a whole number from 0 to 18446744073709551615".into())
}

/// A number above 0.
pub(crate) fn positive(text: &str) -> Result<f64, InvalidValue> {
    let number: f64 = text.parse().map_err(|_| "write a number, such as 2 or 0.5")?;
    if number > 0.0 && number.is_finite() { Ok(number) } else { Err("write a number above 0".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_lists_are_taken_apart_at_the_first_equals_sign() {
        assert_eq!(setting("a=b=c").unwrap(), ("a".into(), "b=c".into()));
        assert_eq!(setting("a=").unwrap(), ("a".into(), String::new()));
        assert!(setting("=b").is_err() && setting("a").is_err());
        assert_eq!(list("a=1,2").unwrap(), ("a".into(), vec!["1".into(), "2".into()]));
        assert!(list("a=1,,2").is_err() && list("a=").is_err());
    }
}
