//! The `Date` field as IMF-fixdate (RFC 9110, 5.6.7), made once a second.

use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

const IMF: &[BorrowedFormatItem<'_>] =
    format_description!("[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT");

/// The present time of day.
pub fn now() -> [u8; 29] {
    imf(OffsetDateTime::now_utc())
}

/// A date: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn imf(date: OffsetDateTime) -> [u8; 29] {
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    // Years have four digits, so there is room.
    let _ = date.format_into(&mut &mut text[..], IMF);
    text
}

#[cfg(test)]
mod tests {
    use super::imf;
    use time::OffsetDateTime;

    #[test]
    fn dates_are_those_of_the_rfc() {
        let text = |seconds| imf(OffsetDateTime::from_unix_timestamp(seconds).expect("a date"));
        assert_eq!(&text(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(&text(0), b"Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(&text(951_782_400), b"Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(&text(4_102_444_799), b"Thu, 31 Dec 2099 23:59:59 GMT");
    }
}
