//! How the plan says that an `https` registry is verified, in the terms of the client.

use super::Trust;
use weir_net::transport::tls::{CertificateFiles, ClientFiles};
use weir_plan::TlsClient;

/// The files of a `tls.client(...)`; without one the system's authorities.
pub(in crate::registry) fn trust(tls: Option<&TlsClient>) -> Trust {
    let certificate = tls.and_then(|tls| tls.certificate.as_ref());
    Trust::Files(ClientFiles {
        ca: tls.and_then(|tls| tls.ca.clone()),
        name: tls.and_then(|tls| tls.name.clone()),
        certificate: certificate
            .map(|files| CertificateFiles { cert: files.cert.clone(), key: files.key.clone() }),
    })
}
