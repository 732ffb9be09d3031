//! Times of day: the `Date` field as IMF-fixdate (RFC 9110, 5.6.7), made once a second, and the calendar of logs.

use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The present time of day.
pub fn now() -> [u8; 29] {
    imf(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()))
}

/// A time in seconds since 1970 as a date: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn imf(seconds: u64) -> [u8; 29] {
    let t = Civil::new(seconds);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(DAYS[(seconds / 86_400 % 7) as usize].as_bytes());
    two(&mut text[5..7], t.day);
    text[8..11].copy_from_slice(t.month_name().as_bytes());
    two(&mut text[12..14], t.year / 100 % 100);
    two(&mut text[14..16], t.year % 100);
    two(&mut text[17..19], t.hour);
    two(&mut text[20..22], t.minute);
    two(&mut text[23..25], t.second);
    text
}

fn two(at: &mut [u8], n: u64) {
    at[0] = b'0' + (n / 10 % 10) as u8;
    at[1] = b'0' + (n % 10) as u8;
}

/// A calendar time, UTC.
pub struct Civil {
    /// The year.
    pub year: u64,
    /// 1 to 12.
    pub month: u64,
    /// 1 to 31.
    pub day: u64,
    /// 0 to 23.
    pub hour: u64,
    /// 0 to 59.
    pub minute: u64,
    /// 0 to 59: the system's UTC has no leap seconds.
    pub second: u64,
}

impl Civil {
    /// From seconds since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
    pub fn new(seconds: u64) -> Civil {
        let (z, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
        let (era, doe) = (z / 146_097, z % 146_097);
        let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let month = if mp < 10 { mp + 3 } else { mp - 9 };
        Civil {
            year: yoe + era * 400 + u64::from(month <= 2),
            month,
            day: doy - (153 * mp + 2) / 5 + 1,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
        }
    }

    /// The first three letters of the month.
    pub fn month_name(&self) -> &'static str {
        MONTHS[(self.month as usize + 11) % 12]
    }
}

#[cfg(test)]
mod tests {
    use super::imf;

    #[test]
    fn dates_are_those_of_the_rfc() {
        assert_eq!(&imf(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(&imf(0), b"Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(&imf(951_782_400), b"Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(&imf(4_102_444_799), b"Thu, 31 Dec 2099 23:59:59 GMT");
    }
}
