//! Why a TLS connection failed, in words for the log.

use rustls::{AlertDescription, CertificateError, Error};
use std::fmt;

/// The reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The other side's certificate has expired.
    Expired,
    /// It is not valid yet.
    NotYet,
    /// It is for another name.
    WrongName,
    /// Nobody known has signed it.
    UnknownAuthority,
    /// It is one of an authority itself, which nobody may show who is not trusted by that very certificate.
    IsAuthority,
    /// It is none of those that this process's own listener was told to show.
    NotOurs,
    /// It is wrong in another way.
    BadCertificate,
    /// The other side wants a certificate, and was shown none.
    WantsCertificate,
    /// It says what it does not like.
    Alert(u8),
    /// There is no version, suite or protocol that both know.
    NothingInCommon,
    /// It speaks no TLS.
    NoTls,
    /// The connection ended in the handshake.
    Broken,
    /// The handshake took too long.
    Late,
    /// It breaks a rule of TLS.
    Rule,
}

impl Why {
    /// Of what rustls says.
    pub fn of(e: &Error) -> Why {
        match e {
            Error::InvalidCertificate(wrong) => Why::of_certificate(wrong),
            Error::NoCertificatesPresented => Why::WantsCertificate,
            Error::AlertReceived(AlertDescription::CertificateRequired) => Why::WantsCertificate,
            Error::AlertReceived(alert) => Why::Alert(u8::from(*alert)),
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Why::NothingInCommon,
            Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => Why::NoTls,
            _ => Why::Rule,
        }
    }

    /// Whether a certificate is at fault.
    pub fn is_of_certificate(self) -> bool {
        use Why as W;
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

    /// In words, of a client.
    pub fn of_client(self) -> &'static str {
        match self {
            Why::Expired => "its certificate has expired",
            Why::NotYet => "its certificate is not valid yet",
            Why::UnknownAuthority => "its certificate is signed by nobody in `client_ca`",
            Why::IsAuthority => "its certificate is an authority's own (CA:TRUE); sign another with it",
            Why::WantsCertificate => "it shows no certificate, and `client_auth` is \"require\"",
            _ => "its certificate cannot be used",
        }
    }

    /// Whether the other side speaks no protocol that was offered (RFC 7301 §3.2).
    pub fn is_of_protocol(self) -> bool {
        self == Why::Alert(u8::from(AlertDescription::NoApplicationProtocol))
    }

    fn of_certificate(wrong: &CertificateError) -> Why {
        use CertificateError as C;
        match wrong {
            C::Expired | C::ExpiredContext { .. } => Why::Expired,
            C::NotValidYet | C::NotValidYetContext { .. } => Why::NotYet,
            C::NotValidForName | C::NotValidForNameContext { .. } => Why::WrongName,
            // An authority of the same name with another key, as after a renewal.
            C::UnknownIssuer | C::BadSignature => Why::UnknownAuthority,
            C::ApplicationVerificationFailure => Why::NotOurs,
            // rustls hands on what webpki says without a type of its own.
            C::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => Why::IsAuthority,
            _ => Why::BadCertificate,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Why::Expired => f.write_str("its certificate has expired; renew it"),
            Why::NotYet => f.write_str("its certificate is not valid yet; look at both clocks"),
            Why::WrongName => {
                f.write_str("its certificate is for another name; say which with `tls.client(name=...)`")
            }
            Why::UnknownAuthority => f.write_str(
                "its certificate is signed by nobody who is known; give the authority with `tls.client(ca=...)`",
            ),
            Why::IsAuthority => f.write_str(
                "its certificate is an authority's own (CA:TRUE); name that very file with `tls.client(ca=...)`, or sign another with it",
            ),
            Why::NotOurs => f.write_str(
                "it shows none of the certificates that this `listen` names; reload weir if they were replaced, else look who has \
                 this address",
            ),
            Why::BadCertificate => f.write_str("its certificate cannot be used"),
            Why::WantsCertificate => f.write_str(
                "it wants a certificate of this side; give one with `tls.client(cert=..., key=...)`",
            ),
            Why::Alert(alert) => {
                write!(f, "it refuses: {:?} (alert {alert})", AlertDescription::from(alert))
            }
            Why::NothingInCommon => f.write_str("there is no version or cipher that both sides know"),
            Why::NoTls => f.write_str("it does not speak TLS"),
            Why::Broken => f.write_str("the connection ended in the handshake"),
            Why::Late => f.write_str("the handshake took too long"),
            Why::Rule => f.write_str("it breaks a rule of TLS"),
        }
    }
}
