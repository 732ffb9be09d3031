//! Values of the command line that cannot be used.

use std::fmt;

/// Why the value of an option cannot be used; clap prints it behind the option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidValue(String);

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidValue {}

impl From<&str> for InvalidValue {
    fn from(why: &str) -> InvalidValue {
        InvalidValue(why.to_owned())
    }
}

impl From<String> for InvalidValue {
    fn from(why: String) -> InvalidValue {
        InvalidValue(why)
    }
}
