//! The files that a source names: tokens, passwords, certificates, a kubeconfig. They are read without asking the
//! source.

use super::http::{Credentials, check_files, trust};
#[cfg(feature = "kubernetes")]
use super::kubernetes::check_kubeconfig;
use crate::fault::Defect;
use weir_plan::{SourceKind, TlsClient};

/// Checks that the files that a source names can be used, as far as this machine can tell. Returns what is wrong with
/// each that cannot. A list of members is none of them, nor is a pod's service account; the kubeconfig that is read
/// outside of pods where none is named is one, if it is there. It waits for their file systems.
pub fn check_named_files(kind: &SourceKind) -> Vec<Defect> {
    match kind {
        SourceKind::File(_) | SourceKind::Dns(_) => Vec::new(),
        SourceKind::Eureka(source) => {
            let auth = source.auth.as_deref().map(|path| Credentials::Basic(path.into()));
            check(auth.as_ref(), source.tls.as_ref())
        }
        SourceKind::Consul(source) => {
            let token = source.token.as_deref().map(|path| Credentials::Consul(path.into()));
            check(token.as_ref(), source.tls.as_ref())
        }
        #[cfg(feature = "kubernetes")]
        SourceKind::Kubernetes(source) => check_kubeconfig(source),
        #[cfg(not(feature = "kubernetes"))]
        SourceKind::Kubernetes(_) => Vec::new(),
    }
}

/// The same of credentials and a `tls.client(...)`.
fn check(credentials: Option<&Credentials>, tls: Option<&TlsClient>) -> Vec<Defect> {
    check_files(&trust(tls), credentials)
}
