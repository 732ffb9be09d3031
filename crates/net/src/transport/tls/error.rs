//! Why a TLS connection failed, with a text for the log.

use rustls::{AlertDescription, CertificateError, Error};
use std::fmt;

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
            C::ApplicationVerificationFailure => TlsError::NotOurs,
            // rustls forwards errors of webpki without a type of its own.
            C::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => TlsError::IsAuthority,
            _ => TlsError::BadCertificate,
        }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TlsError::Expired => f.write_str("its certificate has expired; renew it"),
            TlsError::NotYet => f.write_str("its certificate is not valid yet; check both clocks"),
            TlsError::WrongName => {
                f.write_str("its certificate is for another name; say which with `tls.client(name=...)`")
            }
            TlsError::UnknownAuthority => f.write_str(
                "its certificate is not signed by a known authority; give the authority with `tls.client(ca=...)`",
            ),
            TlsError::IsAuthority => f.write_str(
                "its certificate is an authority's own (CA:TRUE); name that very file with `tls.client(ca=...)`, or sign another with it",
            ),
            TlsError::NotOurs => f.write_str(
                "it shows none of the certificates that this `listen` names; reload weir if they were replaced, otherwise find out which process has \
                 this address",
            ),
            TlsError::BadCertificate => f.write_str("its certificate cannot be used"),
            TlsError::WantsCertificate => f.write_str(
                "it requires a client certificate; give one with `tls.client(cert=..., key=...)`",
            ),
            TlsError::Alert(alert) => {
                write!(f, "it refuses: {:?} (alert {alert})", AlertDescription::from(alert))
            }
            TlsError::NothingInCommon => f.write_str("the two sides have no version or cipher in common"),
            TlsError::NoTls => f.write_str("it does not speak TLS"),
            TlsError::Broken => f.write_str("the connection ended in the handshake"),
            TlsError::Late => f.write_str("the handshake took too long"),
            TlsError::Rule => f.write_str("it violates the TLS protocol"),
        }
    }
}
