//! The parts of a plan for TLS: a listener's certificates, which clients it asks for one, how an origin is verified.
//! Files are named here by their paths and are read when the plan is served: a simulation needs no keys.

use serde::{Deserialize, Serialize};

/// A chain of certificates and its key, PEM both.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CertificateFiles {
    /// The chain, the server's or client's own certificate first.
    pub cert: String,
    /// Its private key.
    pub key: String,
}

/// Whether a client without a certificate is let in where there is a `client_ca`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// It is not asked for one.
    #[default]
    Require,
    /// It is asked for one; if it has one, that must be good.
    Request,
}

/// The least version of TLS that clients may speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MinVersion {
    /// TLS 1.2.
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    Tls13,
}

impl MinVersion {
    fn is_default(&self) -> bool {
        *self == MinVersion::default()
    }
}

/// `tls.server(...)`: TLS on a listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsServer {
    /// At least one; the first that covers a client's name is shown, else the first.
    pub certificates: Vec<CertificateFiles>,
    /// Authorities of clients' certificates; `None`: clients are not asked for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ca: Option<String>,
    /// Whether a client needs one.
    pub client_auth: ClientAuth,
    /// The least version of TLS.
    #[serde(default, skip_serializing_if = "MinVersion::is_default")]
    pub min_version: MinVersion,
    /// Whether the files are followed while it is served, and read again when they change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watch: bool,
}

/// `tls.client(...)`: TLS to an origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TlsClient {
    /// A file of authorities; `None`: the system's.
    pub ca: Option<String>,
    /// The name that the origin's certificate must cover; `None`: the host of its address.
    pub name: Option<String>,
    /// The certificate that weir shows if it is asked for one.
    pub certificate: Option<CertificateFiles>,
    /// Whether the files are followed while it is served, and read again when they change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watch: bool,
}

impl TlsServer {
    /// The same without paths, which do not belong to the meaning of a plan.
    pub(crate) fn without_paths(&self) -> TlsServer {
        TlsServer {
            certificates: self.certificates.iter().map(|_| CertificateFiles::none()).collect(),
            client_ca: self.client_ca.as_ref().map(|_| String::new()),
            client_auth: self.client_auth,
            min_version: self.min_version,
            watch: self.watch,
        }
    }
}

impl TlsClient {
    /// The same without paths.
    pub(crate) fn without_paths(&self) -> TlsClient {
        TlsClient {
            ca: self.ca.as_ref().map(|_| String::new()),
            name: self.name.clone(),
            certificate: self.certificate.as_ref().map(|_| CertificateFiles::none()),
            watch: self.watch,
        }
    }
}

impl CertificateFiles {
    fn none() -> CertificateFiles {
        CertificateFiles { cert: String::new(), key: String::new() }
    }
}
