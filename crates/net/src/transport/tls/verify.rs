//! Whether an origin is who it should be: signed by an authority and for that name; or, where the file names the origin's very
//! certificate with `ca=`, that one. Such certificates (`openssl req -x509` makes them) say of themselves that they are
//! authorities, which no server may show otherwise.

use super::pinned::Pinned;
use super::provider;
use super::validity::{Today, Validity};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Who verifies. What is signed with a certificate is verified whoever shows it.
#[derive(Debug)]
pub(super) struct Verifier {
    trusts: Trusts,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum Trusts {
    /// Whom an authority has signed, or who shows one of the certificates that the file names.
    Known(Arc<WebPkiServerVerifier>, Vec<CertificateDer<'static>>),
    /// Who shows one of these certificates, whatever it says of names and dates.
    Pinned(Pinned),
    Anyone,
}

impl Verifier {
    /// By these authorities, or as one of these certificates.
    ///
    /// # Errors
    /// When there is no authority.
    pub fn new(roots: RootCertStore, named: Vec<CertificateDer<'static>>) -> Result<Verifier, String> {
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
        let by_authority = builder.build().map_err(|e| e.to_string())?;
        Ok(Verifier { trusts: Trusts::Known(by_authority, named), provider: provider() })
    }

    /// As one of these certificates, as they are then.
    pub fn of_pinned(pinned: Pinned) -> Verifier {
        Verifier { trusts: Trusts::Pinned(pinned), provider: provider() }
    }

    /// Takes any certificate.
    pub fn of_anyone() -> Verifier {
        Verifier { trusts: Trusts::Anyone, provider: provider() }
    }
}

/// What is asked beside who has signed it.
fn verify_itself(shown: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<ServerCertVerified, Error> {
    verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
    match Validity::from_der(shown).map(Validity::today) {
        Some(Today::Valid) => Ok(ServerCertVerified::assertion()),
        Some(Today::Expired) => Err(CertificateError::Expired.into()),
        Some(Today::NotYet) => Err(CertificateError::NotValidYet.into()),
        None => Err(CertificateError::BadEncoding.into()),
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (by_authority, named) = match &self.trusts {
            Trusts::Known(by_authority, named) => (by_authority, named),
            Trusts::Pinned(pinned) if !pinned.has(shown) => {
                return Err(CertificateError::ApplicationVerificationFailure.into());
            }
            Trusts::Pinned(_) | Trusts::Anyone => return Ok(ServerCertVerified::assertion()),
        };
        match by_authority.verify_server_cert(shown, between, name, ocsp, now) {
            Err(Error::InvalidCertificate(_)) if named.iter().any(|one| one.as_ref() == shown.as_ref()) => {
                verify_itself(shown, name)
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, shown, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, shown, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
