//! Kubeconfigs: the server, the authorities and the proof of the current context.
//!
//! What weir cannot do is refused with a sentence (commands that make tokens, a certificate that is not
//! verified), never ignored: it would ask as another than the file says. Messages hold names and paths of the
//! file, never tokens, passwords or keys.

use super::super::http::{Credentials, Endpoint, GivenTrust, Trust};
use super::super::small_file::read_small_file;
use super::access::{Access, namespace_or_default};
use crate::fault::{Defect, FaultKind, printable};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::Path;
use weir_net::transport::tls::{CertificateFiles, ClientFiles, NamedPem};
use weir_plan::diagnostic::plainly;
use weir_plan::http::short;

/// The most bytes of a kubeconfig, and of each file that it names.
const MOST_BYTES: u64 = 1 << 20;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct ConfigRecord {
    current_context: Option<String>,
    contexts: Option<Vec<NamedContext>>,
    clusters: Option<Vec<NamedCluster>>,
    users: Option<Vec<NamedUser>>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    #[serde(default)]
    context: ContextRecord,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContextRecord {
    cluster: Option<String>,
    user: Option<String>,
    namespace: Option<String>,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    #[serde(default)]
    cluster: ClusterRecord,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct ClusterRecord {
    server: Option<String>,
    certificate_authority: Option<String>,
    certificate_authority_data: Option<String>,
    tls_server_name: Option<String>,
    insecure_skip_tls_verify: Option<bool>,
    proxy_url: Option<String>,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    #[serde(default)]
    user: UserRecord,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct UserRecord {
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<String>,
    client_certificate: Option<String>,
    client_certificate_data: Option<String>,
    client_key: Option<String>,
    client_key_data: Option<String>,
    username: Option<IgnoredAny>,
    password: Option<IgnoredAny>,
    exec: Option<IgnoredAny>,
    auth_provider: Option<IgnoredAny>,
    #[serde(rename = "as")]
    impersonated: Option<IgnoredAny>,
}

/// What names a kubeconfig.
#[derive(Clone, Copy, Debug)]
pub(super) enum KubeconfigSource {
    /// `kubeconfig=` in the topology file.
    Argument,
    /// The variable KUBECONFIG.
    Variable,
    /// Nothing: it is where kubectl has it.
    Home,
}

impl KubeconfigSource {
    /// A kubeconfig in words, with what names it.
    fn describe(self, path: &Path) -> String {
        let path = path.display();
        match self {
            KubeconfigSource::Argument => format!("the kubeconfig {path} (of `kubeconfig=`)"),
            KubeconfigSource::Variable => format!("the kubeconfig {path} (of the variable KUBECONFIG)"),
            KubeconfigSource::Home => format!("the kubeconfig {path} (~/.kube/config)"),
        }
    }
}

/// PEM in a file or in the kubeconfig itself.
enum Pem {
    File(String),
    Data(NamedPem),
}

/// Reads a kubeconfig.
///
/// # Errors
/// It is missing, too large, or does not say how the server of its current context is asked.
pub(super) fn read(path: &Path, source: KubeconfigSource) -> Result<Access, Defect> {
    let bytes = read_small_file(path, MOST_BYTES).map_err(|why| {
        let problem = format!("{} cannot be used: {}", source.describe(path), plainly(&why));
        let remedy = "write `kubeconfig=` with the path of one that weir may read, or run weir in a pod";
        Defect::new(FaultKind::Settings, problem, remedy)
    })?;
    parse(&String::from_utf8_lossy(&bytes), path, source)
}

/// What a kubeconfig's text says. Paths in it are relative to where it is.
fn parse(text: &str, path: &Path, source: KubeconfigSource) -> Result<Access, Defect> {
    let reader = Reader { path, name: source.describe(path) };
    if text.trim().is_empty() {
        return Err(reader.wrong("is empty", "write a kubeconfig into it, or name another one"));
    }
    let config: ConfigRecord = serde_saphyr::from_str(text).map_err(|e| {
        let at = e.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
        let problem = format!("is no kubeconfig in YAML{}", at.unwrap_or_default());
        reader.wrong(&problem, "correct it there")
    })?;
    let name = given(&config.current_context).ok_or_else(|| {
        reader.wrong("has no current-context", "choose one: `kubectl config use-context NAME`")
    })?;
    let contexts = config.contexts.unwrap_or_default();
    let context = contexts.iter().find(|one| one.name == name).map(|one| &one.context);
    let context = context.ok_or_else(|| reader.missing("context", name, "its current-context"))?;
    let name = given(&context.cluster).ok_or_else(|| {
        reader.wrong("has a context without a cluster", "name its cluster, or choose another context")
    })?;
    let clusters = config.clusters.unwrap_or_default();
    let cluster = clusters.iter().find(|one| one.name == name).map(|one| &one.cluster);
    let cluster = cluster.ok_or_else(|| reader.missing("cluster", name, "its context"))?;
    let users = config.users.unwrap_or_default();
    let no_user = UserRecord::default();
    let user = match given(&context.user) {
        None => &no_user,
        Some(name) => {
            let user = users.iter().find(|one| one.name == name).map(|one| &one.user);
            user.ok_or_else(|| reader.missing("user", name, "its context"))?
        }
    };
    reader.judge_cluster(cluster)?;
    reader.judge_user(user)?;
    let url = given(&cluster.server)
        .ok_or_else(|| reader.wrong("has a cluster without a server", "write `server: https://...` there"))?;
    let endpoint = Endpoint::parse(url).map_err(|defect| {
        let problem = format!("{} has a server that cannot be asked: {}", reader.name, defect.problem);
        Defect { problem: printable(&problem), ..defect }
    })?;
    Ok(Access {
        endpoint,
        url: url.trim_end_matches('/').to_owned(),
        trust: reader.trust(cluster, user)?,
        credentials: reader.credentials(user),
        namespace: namespace_or_default(given(&context.namespace)),
        origin: reader.name,
    })
}

/// A kubeconfig while its entries are read.
struct Reader<'a> {
    path: &'a Path,
    /// In words, with what names it.
    name: String,
}

impl Reader<'_> {
    fn wrong(&self, problem: &str, remedy: &str) -> Defect {
        let problem = format!("{} {problem}", self.name);
        Defect::new(FaultKind::Settings, problem, remedy)
    }

    fn missing(&self, kind: &str, name: &str, place: &str) -> Defect {
        let problem = format!("has no {kind} \"{}\", which {place} names", short(name));
        self.wrong(&problem, &format!("add that {kind}, or name another one"))
    }

    /// Refuses what would have weir ask in another way than the file says.
    fn judge_cluster(&self, cluster: &ClusterRecord) -> Result<(), Defect> {
        if cluster.insecure_skip_tls_verify == Some(true) {
            let problem = "has insecure-skip-tls-verify, and weir verifies every certificate";
            let remedy = "write certificate-authority instead, and tls-server-name if its name differs";
            return Err(self.wrong(problem, remedy));
        }
        if given(&cluster.proxy_url).is_some() {
            let problem = "has a proxy-url, and weir asks the API server itself";
            return Err(self.wrong(problem, "take it out, or name a cluster that is reached without it"));
        }
        Ok(())
    }

    /// Refuses what weir cannot prove.
    fn judge_user(&self, user: &UserRecord) -> Result<(), Defect> {
        let account = "write the token of a service account as `token` or `tokenFile`";
        let command = "has a user whose token a command makes (exec), and weir runs no commands";
        let provider = "has a user with an auth-provider, which Kubernetes has given up";
        let password = "has a user with a password, which API servers have not taken since Kubernetes 1.19";
        let other = "has a user that asks in the name of another (as), which weir does not";
        let refused = [
            (&user.exec, command),
            (&user.auth_provider, provider),
            (&user.username, password),
            (&user.password, password),
            (&user.impersonated, other),
        ];
        match refused.iter().find(|(value, _)| value.is_some()) {
            Some((_, problem)) => Err(self.wrong(problem, account)),
            None => Ok(()),
        }
    }

    fn credentials(&self, user: &UserRecord) -> Option<Credentials> {
        // Of both the file counts, as for kubectl.
        if let Some(file) = given(&user.token_file) {
            return Some(Credentials::Bearer(self.place(file).into()));
        }
        given(&user.token).map(|token| Credentials::Token(token.to_owned()))
    }

    /// How the server is verified, and the certificate that weir shows.
    fn trust(&self, cluster: &ClusterRecord, user: &UserRecord) -> Result<Trust, Defect> {
        let (data, file) = (&cluster.certificate_authority_data, &cluster.certificate_authority);
        let authorities = self.pem("certificate-authority-data", data, file)?;
        let (data, file) = (&user.client_certificate_data, &user.client_certificate);
        let certificate = self.pem("client-certificate-data", data, file)?;
        let (data, file) = (&user.client_key_data, &user.client_key);
        let key = self.pem("client-key-data", data, file)?;
        let name = given(&cluster.tls_server_name).map(str::to_owned);
        let certificate = match (certificate, key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => {
                let problem = "has a user with a client-certificate or a client-key alone";
                return Err(self.wrong(problem, "write both"));
            }
        };
        // Files are read anew at each connection where no data is given beside them.
        match (authorities, certificate) {
            (None, None) => Ok(Trust::Files(ClientFiles { ca: None, name, certificate: None })),
            (Some(Pem::File(ca)), None) => {
                Ok(Trust::Files(ClientFiles { ca: Some(ca), name, certificate: None }))
            }
            (Some(Pem::File(ca)), Some((Pem::File(cert), Pem::File(key)))) => {
                let certificate = Some(CertificateFiles { cert, key });
                Ok(Trust::Files(ClientFiles { ca: Some(ca), name, certificate }))
            }
            (authorities, certificate) => {
                let authorities = authorities.map(|pem| self.contents(pem)).transpose()?;
                let certificate = match certificate {
                    None => None,
                    Some((certificate, key)) => Some((self.contents(certificate)?, self.contents(key)?)),
                };
                Ok(Trust::Given(GivenTrust { authorities, certificate, name }))
            }
        }
    }

    /// PEM from one of two places. Data counts before a file, as for kubectl.
    fn pem(&self, key: &str, data: &Option<String>, file: &Option<String>) -> Result<Option<Pem>, Defect> {
        let Some(data) = given(data) else {
            return Ok(given(file).map(|file| Pem::File(self.place(file))));
        };
        let plain: String = data.split_whitespace().collect();
        let decoded = data_encoding::BASE64.decode(plain.as_bytes());
        let pem = decoded.map_err(|_| {
            self.wrong(&format!("has a {key} that is not base64"), "write PEM in base64, or name a file")
        })?;
        let name = format!("{}: {key}", self.path.display());
        Ok(Some(Pem::Data(NamedPem { name, pem })))
    }

    /// The PEM itself, under the name of its file or its field.
    fn contents(&self, pem: Pem) -> Result<NamedPem, Defect> {
        let path = match pem {
            Pem::Data(data) => return Ok(data),
            Pem::File(path) => path,
        };
        let pem = read_small_file(Path::new(&path), MOST_BYTES).map_err(|why| {
            self.wrong(
                &format!("names the file {path}, which cannot be used: {}", plainly(&why)),
                "see to that file",
            )
        })?;
        Ok(NamedPem { name: path, pem })
    }

    /// The path of a file that the kubeconfig names.
    fn place(&self, file: &str) -> String {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        folder.join(file).display().to_string()
    }
}

/// A value that is there and not empty.
fn given(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests;
