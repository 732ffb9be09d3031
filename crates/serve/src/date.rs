//! The `Date` field: IMF-fixdate (RFC 9110, 5.6.7), made once a second.

use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// The present time of day.
pub(crate) fn now() -> [u8; 29] {
    imf(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()))
}

/// A time in seconds since 1970 as a date: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn imf(seconds: u64) -> [u8; 29] {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(DAYS[(days % 7) as usize]);
    two(&mut text[5..7], day);
    text[8..11].copy_from_slice(MONTHS[(month - 1) as usize % 12]);
    two(&mut text[12..14], year / 100 % 100);
    two(&mut text[14..16], year % 100);
    two(&mut text[17..19], second / 3600);
    two(&mut text[20..22], second / 60 % 60);
    two(&mut text[23..25], second % 60);
    text
}

fn two(at: &mut [u8], n: u64) {
    at[0] = b'0' + (n / 10 % 10) as u8;
    at[1] = b'0' + (n % 10) as u8;
}

/// Year, month and day of a day since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let doe = z % 146_097;
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + u64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
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
