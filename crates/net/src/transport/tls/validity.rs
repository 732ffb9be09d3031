//! The validity of a certificate (RFC 5280, 4.1.2.5). rustls judges only certificates of others; weir warns of an own
//! one that clients may refuse.

use std::time::{SystemTime, UNIX_EPOCH};
use x509_parser::certificate::X509CertificateParser;
use x509_parser::nom::Parser;

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
        let mut parser = X509CertificateParser::new().with_deep_parse_extensions(false);
        let (_, certificate) = parser.parse(certificate).ok()?;
        let validity = certificate.validity();
        Some(Validity { from_s: validity.not_before.timestamp(), to_s: validity.not_after.timestamp() })
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

#[cfg(test)]
mod tests {
    use super::*;
    use time::OffsetDateTime;
    use time::macros::datetime;

    fn certificate(from: OffsetDateTime, to: OffsetDateTime) -> Vec<u8> {
        let mut params = rcgen::CertificateParams::default();
        (params.not_before, params.not_after) = (from, to);
        let key = rcgen::KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().to_vec()
    }

    #[test]
    fn both_forms_of_time_are_read() {
        let utc = certificate(datetime!(1970-01-01 0:00 UTC), datetime!(2049-12-31 23:59:59 UTC));
        assert_eq!(Validity::from_der(&utc), Some(Validity { from_s: 0, to_s: 2_524_607_999 }));
        let general = certificate(datetime!(2000-02-29 12:00 UTC), datetime!(2100-03-01 0:00 UTC));
        let validity = Validity { from_s: 951_825_600, to_s: 4_107_542_400 };
        assert_eq!(Validity::from_der(&general), Some(validity));
    }

    #[test]
    fn what_cannot_be_read_is_none() {
        let whole = certificate(datetime!(2000-02-29 12:00 UTC), datetime!(9999-12-31 23:59:59 UTC));
        assert_eq!(Validity::from_der(&whole).map(|v| v.to_s), Some(253_402_300_799));
        for cut in 0..whole.len() {
            assert_eq!(Validity::from_der(&whole[..cut]), None, "{cut}");
        }
        let at = whole.windows(13).position(|text| text == b"000229120000Z").expect("the time");
        let thirteenth = [&whole[..at], b"001301", &whole[at + 6..]].concat();
        assert_eq!(Validity::from_der(&thirteenth), None);
    }
}
