//! Where the API server is, and how weir proves itself: in a pod by its service account, else by a kubeconfig.
//!
//! All of it is found anew for each list: a token, a certificate or a kubeconfig may have been replaced
//! meanwhile.

use super::super::http::{Credentials, Endpoint, Trust, check_files};
use super::super::small_file::{FileReader, read_small_file};
use super::kubeconfig::{self, KubeconfigSource};
use crate::fault::{Defect, FaultKind, printable};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_net::transport::tls::ClientFiles;
use weir_plan::KubernetesSource;
use weir_plan::http::short;

/// Where Kubernetes puts the files of a pod's service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The variable that each pod has.
const POD: &str = "KUBERNETES_SERVICE_HOST";

/// The namespace where none is given.
const DEFAULT_NAMESPACE: &str = "default";

/// The longest name of a namespace, bytes.
const MOST_NAMESPACE: u64 = 256;

/// How long the files that say where the API server is may take.
const FIND_TIME: Duration = Duration::from_secs(5);

/// An API server, and how it is asked.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) endpoint: Endpoint,
    /// Its URL, for reports.
    pub(super) url: String,
    pub(super) trust: Trust,
    pub(super) credentials: Option<Credentials>,
    /// The namespace of the pod, or of the kubeconfig's context.
    pub(super) namespace: String,
    /// What says all of it, in words: a kubeconfig, or the service account of the pod.
    pub(super) origin: String,
}

impl Access {
    /// The same defect with what says how the server is asked.
    fn trace(&self, defect: Defect) -> Defect {
        with_origin(defect, &self.origin)
    }
}

/// A defect of what is asked as this says.
pub(super) fn with_origin(defect: Defect, origin: &str) -> Defect {
    let problem = format!("{} (asked as {origin} says)", defect.problem);
    Defect { problem: printable(&problem), ..defect }
}

/// Finds the API server of this process.
///
/// # Errors
/// There is none, or a file is missing, wrong, or not read in time.
pub(super) async fn find(source: &KubernetesSource, files: &FileReader) -> Result<Access, Defect> {
    let names = match &source.kubeconfig {
        Some(path) => format!("of the kubeconfig {path}"),
        None => format!("of the service account ({ACCOUNT}), or of the kubeconfig of KUBECONFIG or HOME"),
    };
    let source = source.clone();
    let find = move || find_by(&source, &|name: &str| std::env::var(name).ok(), Path::new(ACCOUNT));
    files.read(&names, FIND_TIME, find).await
}

/// The same with these variables of the environment, and this folder of a service account.
fn find_by(
    source: &KubernetesSource,
    variable: &dyn Fn(&str) -> Option<String>,
    account: &Path,
) -> Result<Access, Defect> {
    if let Some(path) = &source.kubeconfig {
        return kubeconfig::read(Path::new(path), KubeconfigSource::Argument);
    }
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(host) = variable(POD) {
        let port = variable("KUBERNETES_SERVICE_PORT").unwrap_or_else(|| "443".to_owned());
        return read_account(&host, &port, account);
    }
    if let Some(paths) = variable("KUBECONFIG") {
        return read_variable(&paths);
    }
    let home = variable("HOME").ok_or_else(|| {
        let problem =
            "weir runs in no pod of Kubernetes, and has no KUBECONFIG and no HOME with a kubeconfig";
        Defect::new(FaultKind::Settings, problem, "write `kubeconfig=` with its path")
    })?;
    kubeconfig::read(&of_home(&home), KubeconfigSource::Home)
}

/// Where kubectl has its kubeconfig.
fn of_home(home: &str) -> PathBuf {
    Path::new(home).join(".kube").join("config")
}

/// Reads the kubeconfig that the variable KUBECONFIG names. Of several, which kubectl puts together, none is read.
fn read_variable(paths: &str) -> Result<Access, Defect> {
    let paths: Vec<PathBuf> =
        std::env::split_paths(paths).filter(|path| !path.as_os_str().is_empty()).collect();
    if let [path] = paths.as_slice() {
        return kubeconfig::read(path, KubeconfigSource::Variable);
    }
    let problem = format!("the variable KUBECONFIG names {} files, and weir reads one", paths.len());
    Err(Defect::new(FaultKind::Settings, problem, "write `kubeconfig=` with the path of one"))
}

/// Reads the kubeconfig by which the server is asked and the files that it names. Returns what is wrong with each that
/// cannot be used. In a pod without `kubeconfig=` none is read, nor where there is none: weir may be meant for a pod.
pub(in crate::registry) fn check_kubeconfig(source: &KubernetesSource) -> Vec<Defect> {
    check_by(source, &|name: &str| std::env::var(name).ok())
}

/// The same with these variables of the environment.
fn check_by(source: &KubernetesSource, variable: &dyn Fn(&str) -> Option<String>) -> Vec<Defect> {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty());
    let is_missing =
        |path: &Path| std::fs::metadata(path).is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
    let has_usual =
        || given("KUBECONFIG").is_some() || given("HOME").is_some_and(|home| !is_missing(&of_home(&home)));
    if source.kubeconfig.is_none() && (given(POD).is_some() || !has_usual()) {
        return Vec::new();
    }
    match find_by(source, variable, Path::new(ACCOUNT)) {
        Ok(access) => {
            let found = check_files(&access.trust, access.credentials.as_ref());
            found.into_iter().map(|defect| access.trace(defect)).collect()
        }
        Err(defect) => vec![defect],
    }
}

/// The access that a pod has by its service account.
fn read_account(host: &str, port: &str, account: &Path) -> Result<Access, Defect> {
    let (token, authorities) = (account.join("token"), account.join("ca.crt"));
    for file in [&token, &authorities] {
        if let Err(e) = std::fs::metadata(file) {
            let problem =
                format!("weir runs in a pod, and its service account has no {}: {e}", file.display());
            let remedy = "give the pod a service account, and let Kubernetes mount its token \
                          (automountServiceAccountToken), or write `kubeconfig=` with a path";
            return Err(Defect::new(FaultKind::Settings, problem, remedy));
        }
    }
    // An IPv6 address has brackets in a URL.
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let url = format!("https://{host}:{port}");
    let ca = Some(authorities.display().to_string());
    Ok(Access {
        endpoint: Endpoint::parse(&url)?,
        url,
        trust: Trust::Files(ClientFiles { ca, name: None, certificate: None }),
        credentials: Some(Credentials::Bearer(token)),
        namespace: read_namespace(&account.join("namespace"))?,
        origin: format!("the service account of weir's pod ({})", account.display()),
    })
}

/// The namespace that a small file names; that file may be missing.
fn read_namespace(path: &Path) -> Result<String, Defect> {
    let wrong = |why: String| {
        let problem = format!("the file {} names no namespace: {why}", path.display());
        Defect::new(FaultKind::Settings, problem, "write `namespace=`")
    };
    let bytes = match read_small_file(path, MOST_NAMESPACE) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(DEFAULT_NAMESPACE.to_owned()),
        read => read.map_err(|e| wrong(e.to_string()))?,
    };
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
    match text.trim() {
        "" => Ok(DEFAULT_NAMESPACE.to_owned()),
        name if name.contains(char::is_whitespace) => Err(wrong(format!("it says \"{}\"", short(name)))),
        name => Ok(name.to_owned()),
    }
}

/// The namespace of a context that may give none.
pub(super) fn namespace_or_default(given: Option<&str>) -> String {
    given.unwrap_or(DEFAULT_NAMESPACE).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::folder::Folder;

    fn source(kubeconfig: Option<String>) -> KubernetesSource {
        KubernetesSource { service: "web".to_owned(), namespace: None, port: None, kubeconfig }
    }

    /// The access by these variables: URL, namespace and kind of proof, or the sentence.
    fn access(variables: &[(&str, &str)], account: &Path) -> Result<String, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let access = find_by(&source(None), &variable, account).map_err(|defect| defect.to_string())?;
        let proof = match access.credentials {
            None => "none",
            Some(Credentials::Bearer(_)) => "file",
            Some(_) => "another",
        };
        Ok(format!("{} {} {proof}", access.url, access.namespace))
    }

    #[test]
    fn a_pod_uses_its_service_account() {
        let folder = Folder::new("account");
        let account = folder.path("");
        let pod = [("KUBERNETES_SERVICE_HOST", "10.96.0.1"), ("KUBERNETES_SERVICE_PORT", "6443")];
        let word = access(&pod, &account).expect_err("no token");
        assert!(word.contains("token") && word.contains("automountServiceAccountToken"), "{word}");
        folder.write("token", "secret");
        folder.write("ca.crt", "");
        assert_eq!(access(&pod, &account), Ok("https://10.96.0.1:6443 default file".to_owned()));
        folder.write("namespace", "shop\n");
        let other = [("KUBERNETES_SERVICE_HOST", "fd00::1"), ("HOME", "/nowhere")];
        assert_eq!(access(&other, &account), Ok("https://[fd00::1]:443 shop file".to_owned()));
        folder.write("namespace", "a b");
        assert!(access(&pod, &account).expect_err("two words").contains("namespace="));
    }

    #[test]
    fn elsewhere_the_kubeconfig_of_the_home_folder_counts() {
        let folder = Folder::new("home");
        let home = folder.path("").display().to_string();
        let variables = [("KUBERNETES_SERVICE_HOST", ""), ("HOME", home.as_str())];
        let word = access(&variables, Path::new("/nowhere")).expect_err("no file");
        assert!(word.contains(".kube/config") && word.contains("kubeconfig="), "{word}");
        std::fs::create_dir_all(folder.path(".kube")).expect("a folder");
        let text = "current-context: a\n\
                    contexts: [{name: a, context: {cluster: a}}]\n\
                    clusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\n";
        folder.write(".kube/config", text);
        assert_eq!(
            access(&variables, Path::new("/nowhere")),
            Ok("http://127.0.0.1:1 default none".to_owned())
        );
        assert!(access(&[], Path::new("/nowhere")).expect_err("no home").contains("no HOME"));
    }

    #[test]
    fn the_variable_of_kubectl_counts_before_the_home_folder() {
        let folder = Folder::new("variable");
        let path = folder.path("kube.yaml").display().to_string();
        let with = |paths: &str| {
            let variables = [("KUBECONFIG", paths), ("HOME", "/nowhere")];
            access(&variables, Path::new("/nowhere"))
        };
        let word = with(&path).expect_err("no file");
        assert!(word.starts_with(&format!("the kubeconfig {path} (of the variable KUBECONFIG) ")), "{word}");
        let text = "current-context: a\n\
                    contexts: [{name: a, context: {cluster: a}}]\n\
                    clusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\n";
        folder.write("kube.yaml", text);
        // An empty part of the list means nothing, as for kubectl.
        for paths in [path.clone(), format!(":{path}:")] {
            assert_eq!(with(&paths), Ok("http://127.0.0.1:1 default none".to_owned()));
        }
        let word = with(&format!("{path}:{path}")).expect_err("two files");
        assert!(word.contains("KUBECONFIG names 2 files") && word.contains("kubeconfig="), "{word}");
        assert!(with("").expect_err("no file").contains("/nowhere/.kube/config"));
    }

    /// A check reads the file that serving would read, if there is one.
    #[test]
    fn the_kubeconfig_that_is_not_named_is_checked_outside_of_pods() {
        let folder = Folder::new("unnamed");
        let home = folder.path("").display().to_string();
        let check = |variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let found = check_by(&source(None), &variable);
            found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(check(&[]), "");
        assert_eq!(check(&[("HOME", &home)]), "");
        let missing = check(&[("KUBECONFIG", "/nowhere/kube.yaml"), ("HOME", &home)]);
        assert!(
            missing.starts_with("the kubeconfig /nowhere/kube.yaml (of the variable KUBECONFIG) "),
            "{missing}"
        );
        std::fs::create_dir_all(folder.path(".kube")).expect("a folder");
        let text = "current-context: a\n\
                    contexts: [{name: a, context: {cluster: a, user: a}}]\n\
                    clusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\n\
                    users: [{name: a, user: {tokenFile: gone}}]\n";
        folder.write(".kube/config", text);
        let token = check(&[("HOME", &home)]);
        assert!(token.contains(".kube/gone") && token.contains("(~/.kube/config)"), "{token}");
        assert_eq!(check(&[("HOME", &home), (POD, "10.96.0.1")]), "");
    }

    #[test]
    fn a_named_kubeconfig_counts_before_the_pod() {
        let variable = |_: &str| Some("10.96.0.1".to_owned());
        let source = source(Some("/nowhere/config".to_owned()));
        let defect = find_by(&source, &variable, Path::new("/nowhere")).expect_err("no file");
        assert!(defect.to_string().contains("/nowhere/config"), "{defect}");
    }
}
