//! Verification of origins: signed by an authority and for the right name; or, if the file names the origin's very
//! certificate with `ca=`, that one. Such certificates (`openssl req -x509` makes them) claim to be authorities,
//! which a server's certificate otherwise may not.

use super::pinned::Pinned;
use super::provider;
use super::validity::{Today, Validity};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// A verifier of certificates. Signatures made with a certificate are always verified.
#[derive(Debug)]
pub(super) struct Verifier {
    trusts: Trusts,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum Trusts {
    /// Accepts certificates signed by an authority, and those that the file names.
    Known(Arc<WebPkiServerVerifier>, Vec<CertificateDer<'static>>),
    /// Accepts these certificates, with any names and dates.
    Pinned(Pinned),
    Anyone,
}

impl Verifier {
    /// Accepts certificates of these authorities, and these certificates.
    ///
    /// # Errors
    /// There is no authority.
    pub fn new(
        roots: Arc<RootCertStore>,
        named: Vec<CertificateDer<'static>>,
    ) -> Result<Verifier, VerifierBuilderError> {
        let builder = WebPkiServerVerifier::builder_with_provider(roots, provider());
        let by_authority = builder.build()?;
        Ok(Verifier { trusts: Trusts::Known(by_authority, named), provider: provider() })
    }

    /// Accepts these certificates, as they are at the time of a handshake.
    pub fn of_pinned(pinned: Pinned) -> Verifier {
        Verifier { trusts: Trusts::Pinned(pinned), provider: provider() }
    }

    /// Accepts any certificate.
    pub fn of_anyone() -> Verifier {
        Verifier { trusts: Trusts::Anyone, provider: provider() }
    }
}

/// Checks everything but the signer.
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
