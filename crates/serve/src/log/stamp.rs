//! The time of a line. All but the milliseconds is the same for a second, in which a loop writes many.

use super::format::digits;
use std::cell::{Cell, RefCell};
use std::time::{SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use weir_plan::LogFormat;

/// RFC 3339, up to the milliseconds.
const JSON: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].");
/// nginx's.
const COMBINED: &[BorrowedFormatItem<'_>] =
    format_description!("[day]/[month repr:short]/[year]:[hour]:[minute]:[second] +0000");

/// The times of a loop's lines, in their format.
pub(super) struct Stamp {
    format: LogFormat,
    /// The second of the cached text.
    second: Cell<u64>,
    text: RefCell<String>,
}

impl Stamp {
    /// Without a cached second.
    pub fn new(format: LogFormat) -> Stamp {
        Stamp { format, second: Cell::new(u64::MAX), text: RefCell::default() }
    }

    /// Writes the current time: `2026-11-21T18:40:02.123Z` (RFC 3339), or nginx's `21/Nov/2026:18:40:02 +0000`.
    pub fn write(&self, text: &mut String) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut kept = self.text.borrow_mut();
        if self.second.replace(now.as_secs()) != now.as_secs() {
            let format = match self.format {
                LogFormat::Json => JSON,
                LogFormat::Combined => COMBINED,
            };
            *kept = OffsetDateTime::from(UNIX_EPOCH + now).format(format).unwrap_or_default();
        }
        text.push_str(&kept);
        if self.format == LogFormat::Json {
            digits::<3>(text, u64::from(now.subsec_millis()));
            text.push('Z');
        }
    }
}
