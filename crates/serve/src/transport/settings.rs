//! What the plan fixes for connections, in the terms of `weir_net`: TCP options, and the files of TLS.

use weir_net::io::tcp::TcpSettings;
use weir_net::transport::tls;
use weir_plan::fixed;
use weir_plan::{CertificateFiles, ClientAuth, MinVersion, TlsClient, TlsServer};

/// The options of all TCP connections.
pub(crate) const TCP: TcpSettings = TcpSettings {
    user_timeout_ns: fixed::TCP_USER_TIMEOUT_NS,
    keepalive_ns: fixed::TCP_KEEPALIVE_NS,
    keepalive_interval_ns: fixed::TCP_KEEPALIVE_INTERVAL_NS,
    keepalive_probes: fixed::TCP_KEEPALIVE_PROBES,
    next_address_ns: fixed::NEXT_ADDRESS_NS,
};

// A constant of `weir_net`, since a division by it lies on the path of requests; the documents quote the plan's.
const _: () = assert!(weir_net::io::deadlines::TICK_NS == fixed::TIMEOUT_STEP_NS);

/// The files of a `tls.server(...)`.
pub(crate) fn server_files(plan: &TlsServer) -> tls::ServerFiles {
    tls::ServerFiles {
        certificates: plan.certificates.iter().map(certificate_files).collect(),
        client_ca: plan.client_ca.clone(),
        requires_certificate: match plan.client_auth {
            ClientAuth::Require => true,
            ClientAuth::Request => false,
        },
        requires_13: plan.min_version == MinVersion::Tls13,
    }
}

/// The files of a `tls.client(...)`.
pub(crate) fn client_files(plan: &TlsClient) -> tls::ClientFiles {
    tls::ClientFiles {
        ca: plan.ca.clone(),
        name: plan.name.clone(),
        certificate: plan.certificate.as_ref().map(certificate_files),
    }
}

fn certificate_files(plan: &CertificateFiles) -> tls::CertificateFiles {
    tls::CertificateFiles { cert: plan.cert.clone(), key: plan.key.clone() }
}
