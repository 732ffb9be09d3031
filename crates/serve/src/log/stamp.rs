//! The time of a line. All but the milliseconds is the same for a second, in which a loop writes many.

use super::format::digits;
use std::cell::{Cell, RefCell};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_net::io::date::Civil;
use weir_plan::LogFormat;

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
            kept.clear();
            let t = Civil::new(now.as_secs());
            match self.format {
                LogFormat::Json => rfc3339(&mut kept, &t),
                LogFormat::Combined => clf(&mut kept, &t),
            }
        }
        text.push_str(&kept);
        if self.format == LogFormat::Json {
            digits::<3>(text, u64::from(now.subsec_millis()));
            text.push('Z');
        }
    }
}

/// The text up to the milliseconds.
fn rfc3339(text: &mut String, t: &Civil) {
    digits::<4>(text, t.year);
    for (sign, n) in [('-', t.month), ('-', t.day), ('T', t.hour), (':', t.minute), (':', t.second)] {
        text.push(sign);
        digits::<2>(text, n);
    }
    text.push('.');
}

fn clf(text: &mut String, t: &Civil) {
    digits::<2>(text, t.day);
    text.push('/');
    text.push_str(t.month_name());
    text.push('/');
    digits::<4>(text, t.year);
    for n in [t.hour, t.minute, t.second] {
        text.push(':');
        digits::<2>(text, n);
    }
    text.push_str(" +0000");
}
