//! Why a TLS connection failed, with a text for the log.

use rustls::{AlertDescription, CertificateError, Error};
use std::borrow::Cow;
use std::{fmt, io};

/// The most names of a certificate in a message.
const MOST_NAMES: usize = 5;

/// The reason of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsError {
    /// The other side's certificate has expired.
    Expired,
    /// It is not valid yet.
    NotYet,
    /// The certificate is for another name.
    WrongName,
    /// No known authority has signed it.
    UnknownAuthority,
    /// It is the certificate of an authority, which a server may show only if that very certificate is trusted.
    IsAuthority,
    /// It is not meant for what the other side shows it for.
    WrongPurpose,
    /// It is not one of those that this process's own listener is configured to show.
    NotOurs,
    /// It is wrong in another way.
    BadCertificate,
    /// The other side requires a certificate, and got none.
    WantsCertificate,
    /// The other side sent an alert with a reason.
    Alert(u8),
    /// There is no version, suite or protocol that both support.
    NothingInCommon,
    /// The other side does not use TLS.
    NoTls,
    /// The connection ended in the handshake.
    Broken,
    /// The handshake took too long.
    Late,
    /// It breaks a rule of TLS.
    Rule,
}

impl TlsError {
    /// Converts an error of rustls.
    pub fn from_rustls(e: &Error) -> TlsError {
        match e {
            Error::InvalidCertificate(wrong) => TlsError::of_certificate(wrong),
            Error::NoCertificatesPresented => TlsError::WantsCertificate,
            Error::AlertReceived(AlertDescription::CertificateRequired) => TlsError::WantsCertificate,
            Error::AlertReceived(alert) => TlsError::Alert(u8::from(*alert)),
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => TlsError::NothingInCommon,
            Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => TlsError::NoTls,
            _ => TlsError::Rule,
        }
    }

    /// That in an error of a socket of another runtime; `None`: it is not one of TLS.
    pub fn from_io(e: &io::Error) -> Option<TlsError> {
        rustls_error(e).map(TlsError::from_rustls)
    }

    /// Whether a certificate is at fault.
    pub fn is_of_certificate(self) -> bool {
        use TlsError as W;
        matches!(
            self,
            W::Expired
                | W::NotYet
                | W::WrongName
                | W::UnknownAuthority
                | W::IsAuthority
                | W::WrongPurpose
                | W::NotOurs
                | W::BadCertificate
                | W::WantsCertificate
        )
    }

    /// The text about a client.
    pub fn of_client(self) -> &'static str {
        match self {
            TlsError::Expired => "its certificate has expired",
            TlsError::NotYet => "its certificate is not valid yet",
            TlsError::UnknownAuthority => "its certificate is not signed by an authority in `client_ca`",
            TlsError::IsAuthority => "its certificate is an authority's own (CA:TRUE); sign another with it",
            TlsError::WantsCertificate => "it shows no certificate, and `client_auth` is \"require\"",
            _ => "its certificate cannot be used",
        }
    }

    /// Whether the other side supports no protocol that was offered (RFC 7301 §3.2).
    pub fn is_of_protocol(self) -> bool {
        self == TlsError::Alert(u8::from(AlertDescription::NoApplicationProtocol))
    }

    fn of_certificate(wrong: &CertificateError) -> TlsError {
        use CertificateError as C;
        match wrong {
            C::Expired | C::ExpiredContext { .. } => TlsError::Expired,
            C::NotValidYet | C::NotValidYetContext { .. } => TlsError::NotYet,
            C::NotValidForName | C::NotValidForNameContext { .. } => TlsError::WrongName,
            // An authority of the same name with another key, as after a renewal.
            C::UnknownIssuer | C::BadSignature => TlsError::UnknownAuthority,
            C::InvalidPurpose | C::InvalidPurposeContext { .. } => TlsError::WrongPurpose,
            C::ApplicationVerificationFailure => TlsError::NotOurs,
            // rustls forwards errors of webpki without a type of its own.
            C::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => TlsError::IsAuthority,
            _ => TlsError::BadCertificate,
        }
    }
}

impl TlsError {
    /// What is wrong, without a remedy.
    pub fn problem(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            TlsError::Expired => "its certificate has expired",
            TlsError::NotYet => "its certificate is not valid yet",
            TlsError::WrongName => "its certificate is for another name",
            TlsError::UnknownAuthority => "its certificate is not signed by a known authority",
            TlsError::IsAuthority => "its certificate is an authority's own (CA:TRUE)",
            TlsError::WrongPurpose => "its certificate is not meant for this (extended key usage)",
            TlsError::NotOurs => "it shows none of the certificates that this `listen` names",
            TlsError::BadCertificate => "its certificate cannot be used",
            TlsError::WantsCertificate => "it requires a client certificate",
            TlsError::Alert(alert) => return Cow::Owned(format!("it refuses: {}", alert_words(alert))),
            TlsError::NothingInCommon => "the two sides have no version or cipher in common",
            TlsError::NoTls => "it does not speak TLS",
            TlsError::Broken => "the connection ended in the handshake",
            TlsError::Late => "the handshake took too long",
            TlsError::Rule => "it violates the TLS protocol",
        })
    }

    /// What to do about it in a topology file; `None`: that is not known.
    fn remedy(self) -> Option<&'static str> {
        Some(match self {
            TlsError::Expired => "renew it",
            TlsError::NotYet => "check both clocks",
            TlsError::WrongName => "say which with `tls.client(name=...)`",
            TlsError::UnknownAuthority => "give the authority with `tls.client(ca=...)`",
            TlsError::IsAuthority => "name that very file with `tls.client(ca=...)`, or sign another with it",
            TlsError::WrongPurpose => "issue one for servers (serverAuth)",
            TlsError::NotOurs => {
                "reload weir if they were replaced, otherwise find out which process has this address"
            }
            TlsError::BadCertificate => "let it show another one",
            TlsError::WantsCertificate => "give one with `tls.client(cert=..., key=...)`",
            _ => return None,
        })
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem())?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

/// What is wrong in an error of a socket of another runtime, without a remedy and without names of a library; `None`: it is not
/// one of TLS.
pub fn tls_problem(e: &io::Error) -> Option<String> {
    let e = rustls_error(e)?;
    if let Error::InvalidCertificate(CertificateError::NotValidForNameContext { expected, presented }) = e {
        return Some(format!(
            "its certificate is not for {}, but for {}",
            expected.to_str(),
            names(presented)
        ));
    }
    Some(TlsError::from_rustls(e).problem().into_owned())
}

/// The error of rustls inside of one of a socket.
fn rustls_error(e: &io::Error) -> Option<&Error> {
    e.get_ref()?.downcast_ref::<Error>()
}

/// The names of a certificate, as `DnsName("a.test")` and the like are in words.
fn names(presented: &[String]) -> String {
    let bare = |name: &String| {
        let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        inner.unwrap_or(name).trim_matches('"').to_owned()
    };
    let some = presented.iter().take(MOST_NAMES).map(bare).collect::<Vec<_>>().join(", ");
    match presented.len().saturating_sub(MOST_NAMES) {
        0 if some.is_empty() => "no name".to_owned(),
        0 => some,
        more => format!("{some} and {more} more"),
    }
}

/// The alerts that matter to an operator (RFC 8446 §6, RFC 6066 §3, RFC 7301 §3.2).
const ALERTS: [(u8, &str); 16] = [
    (40, "handshake failure"),
    (42, "bad certificate"),
    (43, "unsupported certificate"),
    (44, "certificate revoked"),
    (45, "certificate expired"),
    (46, "certificate unknown"),
    (48, "unknown authority"),
    (49, "access denied"),
    (50, "decode error"),
    (51, "decrypt error"),
    (70, "no common version of TLS"),
    (71, "insufficient security"),
    (80, "internal error"),
    (112, "it has no certificate for this name"),
    (116, "certificate required"),
    (120, "no common application protocol"),
];

/// An alert in words: `handshake failure (alert 40)`.
fn alert_words(alert: u8) -> String {
    let known = ALERTS.iter().find(|(number, _)| *number == alert);
    known.map_or_else(|| format!("alert {alert}"), |(_, words)| format!("{words} (alert {alert})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::OtherError;
    use rustls::pki_types::ServerName;
    use std::sync::Arc;

    /// As webpki forwards it.
    #[derive(Debug)]
    struct CaUsedAsEndEntity;

    impl fmt::Display for CaUsedAsEndEntity {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("CaUsedAsEndEntity")
        }
    }

    impl std::error::Error for CaUsedAsEndEntity {}

    fn of_socket(e: impl Into<Error>) -> io::Error {
        let e: Error = e.into();
        io::Error::new(io::ErrorKind::InvalidData, e)
    }

    #[test]
    fn no_name_of_a_library_is_in_a_message() {
        use CertificateError as C;
        let all = [
            (C::Expired, TlsError::Expired),
            (C::NotValidYet, TlsError::NotYet),
            (C::NotValidForName, TlsError::WrongName),
            (C::UnknownIssuer, TlsError::UnknownAuthority),
            (C::BadSignature, TlsError::UnknownAuthority),
            (C::Other(OtherError(Arc::new(CaUsedAsEndEntity))), TlsError::IsAuthority),
            (C::InvalidPurpose, TlsError::WrongPurpose),
            (C::BadEncoding, TlsError::BadCertificate),
            (C::Revoked, TlsError::BadCertificate),
        ];
        for (wrong, reason) in all {
            let raw = format!("{wrong:?}");
            let e = of_socket(wrong);
            assert_eq!(TlsError::from_io(&e), Some(reason), "{raw}");
            let problem = tls_problem(&e).expect("it is of TLS");
            assert!(problem.starts_with("its certificate ") && !problem.contains(&raw), "{problem}");
            assert!(reason.to_string().starts_with(&problem), "{reason}");
        }
        assert_eq!(TlsError::from_io(&io::ErrorKind::UnexpectedEof.into()), None);
        assert_eq!(tls_problem(&io::ErrorKind::UnexpectedEof.into()), None);
    }

    #[test]
    fn alerts_that_matter_have_words_and_others_a_number() {
        use AlertDescription as A;
        let of_rustls = [
            (A::HandshakeFailure, "handshake failure (alert 40)"),
            (A::BadCertificate, "bad certificate (alert 42)"),
            (A::UnsupportedCertificate, "unsupported certificate (alert 43)"),
            (A::CertificateRevoked, "certificate revoked (alert 44)"),
            (A::CertificateExpired, "certificate expired (alert 45)"),
            (A::CertificateUnknown, "certificate unknown (alert 46)"),
            (A::UnknownCA, "unknown authority (alert 48)"),
            (A::AccessDenied, "access denied (alert 49)"),
            (A::DecodeError, "decode error (alert 50)"),
            (A::DecryptError, "decrypt error (alert 51)"),
            (A::ProtocolVersion, "no common version of TLS (alert 70)"),
            (A::InsufficientSecurity, "insufficient security (alert 71)"),
            (A::InternalError, "internal error (alert 80)"),
            (A::UnrecognisedName, "it has no certificate for this name (alert 112)"),
            (A::CertificateRequired, "certificate required (alert 116)"),
            (A::NoApplicationProtocol, "no common application protocol (alert 120)"),
            (A::UnknownPSKIdentity, "alert 115"),
            (A::UserCanceled, "alert 90"),
            (A::Unknown(3), "alert 3"),
        ];
        for (alert, words) in of_rustls {
            assert_eq!(alert_words(u8::from(alert)), words);
        }
        assert_eq!(TlsError::Alert(40).to_string(), "it refuses: handshake failure (alert 40)");
        let required = of_socket(Error::AlertReceived(A::CertificateRequired));
        assert_eq!(tls_problem(&required).as_deref(), Some("it requires a client certificate"));
    }

    #[test]
    fn a_wrong_name_is_said_with_those_of_the_certificate() {
        let problem = |presented: &[&str]| {
            let expected = ServerName::try_from("a.test").expect("a name");
            let presented = presented.iter().map(|name| (*name).to_owned()).collect();
            tls_problem(&of_socket(CertificateError::NotValidForNameContext { expected, presented }))
        };
        let said = |names: &str| Some(format!("its certificate is not for a.test, but for {names}"));
        assert_eq!(problem(&["DnsName(\"*.b.test\")", "IpAddress(10.0.0.1)"]), said("*.b.test, 10.0.0.1"));
        assert_eq!(problem(&[]), said("no name"));
        assert_eq!(problem(&["DnsName(\"x\")"; 7]), said("x, x, x, x, x and 2 more"));
    }
}
