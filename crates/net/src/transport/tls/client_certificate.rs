//! The certificate that a client has shown and that was verified, in words.

use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use std::fmt::Write as _;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// What a client's certificate says of the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Its subject, such as `CN=billing, O=Example`.
    pub subject: String,
    /// Its DNS, URI and mail names, in its order. One with blanks or controls is left out: it would not stay one word
    /// in a field or a log.
    pub names: Vec<String>,
    /// The SHA-256 of its DER, in hexadecimal.
    pub sha256: String,
}

impl ClientCertificate {
    /// Reads a verified certificate; `None`: malformed.
    pub(super) fn from_der(der: &[u8]) -> Option<ClientCertificate> {
        let (_, parsed) = X509Certificate::from_der(der).ok()?;
        let subject = parsed.subject().to_string().replace(char::is_control, "?");
        let all = parsed.subject_alternative_name().ok().flatten();
        let all = all.iter().flat_map(|names| &names.value.general_names);
        let names = all.filter_map(|name| match name {
            GeneralName::DNSName(name) | GeneralName::URI(name) | GeneralName::RFC822Name(name) => {
                Some(*name)
            }
            _ => None,
        });
        let is_word = |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic());
        let names = names.filter(is_word).map(str::to_owned).collect();
        Some(ClientCertificate { subject, names, sha256: sha256(der) })
    }
}

fn sha256(bytes: &[u8]) -> String {
    let mut text = String::new();
    if let Some(suite) = TLS13_AES_128_GCM_SHA256.tls13() {
        for byte in suite.common.hash_provider.hash(bytes).as_ref() {
            let _ = write!(text, "{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    #[test]
    fn a_certificate_in_words() {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["a.test".to_owned()]).expect("names");
        params.subject_alt_names = vec![
            SanType::URI("spiffe://prod/billing".try_into().expect("ASCII")),
            SanType::Rfc822Name("a b@test".try_into().expect("ASCII")),
            SanType::DnsName("a.test".try_into().expect("ASCII")),
        ];
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "bil\r\nling");
        let der = params.self_signed(&key).expect("a certificate").der().to_vec();
        let read = ClientCertificate::from_der(&der).expect("it can be read");
        assert_eq!(read.subject, "CN=bil??ling");
        assert_eq!(read.names, ["spiffe://prod/billing", "a.test"]);
        assert_eq!(read.sha256.len(), 64);
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(ClientCertificate::from_der(b"x"), None);
    }
}
