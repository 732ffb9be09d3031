//! The validity of a certificate, read from its DER as far as needed (RFC 5280, 4.1.2.5). rustls judges only
//! certificates of others, and an expired own certificate would be refused by every client.

use std::time::{SystemTime, UNIX_EPOCH};

/// The period of validity, seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub from_s: i64,
    pub to_s: i64,
}

/// The state of a certificate today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Today {
    Valid,
    NotYet,
    Expired,
}

impl Validity {
    /// Reads it from a certificate; `None`: malformed.
    pub fn from_der(certificate: &[u8]) -> Option<Validity> {
        let (certificate, _) = element(certificate, SEQUENCE)?;
        let (mut body, _) = element(certificate, SEQUENCE)?;
        // The version is present unless it is the first.
        if let Some((_, rest)) = element(body, VERSION) {
            body = rest;
        }
        for tag in [INTEGER, SEQUENCE, SEQUENCE] {
            (_, body) = element(body, tag)?;
        }
        let (validity, _) = element(body, SEQUENCE)?;
        let (from_s, rest) = time(validity)?;
        let (to_s, _) = time(rest)?;
        Some(Validity { from_s, to_s })
    }

    /// The state now.
    pub fn today(self) -> Today {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64);
        match now_s {
            now_s if now_s < self.from_s => Today::NotYet,
            now_s if now_s > self.to_s => Today::Expired,
            _ => Today::Valid,
        }
    }
}

const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The content of the first element, if it has this tag, and the rest.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = der.split_first()?;
    let (&length, rest) = rest.split_first()?;
    if first != tag {
        return None;
    }
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (digits.iter().fold(0, |n, b| n << 8 | usize::from(*b)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// The first time, s since 1970, and the rest.
fn time(der: &[u8]) -> Option<(i64, &[u8])> {
    let (text, rest, digits) = match element(der, UTC_TIME) {
        Some((text, rest)) => (text, rest, 2),
        None => element(der, GENERALIZED_TIME).map(|(text, rest)| (text, rest, 4))?,
    };
    let number = |from: usize, to: usize| std::str::from_utf8(text.get(from..to)?).ok()?.parse::<i64>().ok();
    let year = match (digits, number(0, digits)?) {
        (2, year) if year < 50 => 2000 + year,
        (2, year) => 1900 + year,
        (_, year) => year,
    };
    let two = |at: usize| number(digits + 2 * at, digits + 2 * at + 2);
    let days = days_before(year, two(0)?)? + two(1)? - 1;
    Some((((days * 24 + two(2)?) * 60 + two(3)?) * 60 + two(4)?, rest))
}

/// Days from 1970 to the first of a month.
fn days_before(year: i64, month: i64) -> Option<i64> {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let month = usize::try_from(month).ok()?.checked_sub(1)?;
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let is_leap = leaps(year) > leaps(year - 1);
    let before = BEFORE.get(month)? + i64::from(is_leap && month > 1);
    Some((year - 1970) * 365 + leaps(year - 1) - leaps(1969) + before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(from: &str, to: &str) -> Option<Validity> {
        let time = |text: &str| {
            let tag = if text.len() == 13 { UTC_TIME } else { GENERALIZED_TIME };
            [&[tag, text.len() as u8], text.as_bytes()].concat()
        };
        let within = |tag: u8, parts: &[Vec<u8>]| {
            let body = parts.concat();
            [&[tag, body.len() as u8], &body[..]].concat()
        };
        let validity = within(SEQUENCE, &[time(from), time(to)]);
        let version = within(VERSION, &[vec![2, 1, 2]]);
        let (empty, serial) = (vec![SEQUENCE, 0], vec![INTEGER, 1, 7]);
        let body = within(SEQUENCE, &[version, serial, empty.clone(), empty.clone(), validity]);
        Validity::from_der(&within(SEQUENCE, &[body]))
    }

    #[test]
    fn both_forms_of_time_are_read() {
        let utc = parse("700101000000Z", "491231235959Z");
        assert_eq!(utc, Some(Validity { from_s: 0, to_s: 2_524_607_999 }));
        let general = parse("20000229120000Z", "21000301000000Z");
        assert_eq!(general, Some(Validity { from_s: 951_825_600, to_s: 4_107_542_400 }));
    }

    #[test]
    fn what_cannot_be_read_is_none() {
        assert_eq!(parse("7001010000", "491231235959Z"), None);
        assert_eq!(parse("701301000000Z", "491231235959Z"), None);
        for cut in [&[][..], &[0x30], &[0x30, 0x82, 1], &[0x30, 0x85, 0, 0, 0, 0, 1]] {
            assert_eq!(Validity::from_der(cut), None);
        }
    }
}
