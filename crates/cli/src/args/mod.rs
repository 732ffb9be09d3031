//! What several commands take; the arguments of one command are beside it.

mod file;
mod format;
mod invalid;
mod value;
mod view;

pub(crate) use file::{File, Settings, Verbosity};
pub(crate) use format::{Nodes, ReportFormat, SimFormat};
pub(crate) use invalid::InvalidValue;
pub(crate) use value::{column, list, positive, seed, setting, written};
pub(crate) use view::ViewOptions;
