//! What lists the members of a fleet (`find.*`): a file, or a registry that is asked.

use crate::TlsClient;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a list comes from. Equal ones are asked once, however many fleets have them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A JSON file: its path as seen from the working directory; not part of the hash.
    File(String),
    /// A name in DNS.
    Dns(DnsSource),
    /// An application in a Eureka registry.
    Eureka(EurekaSource),
    /// A service in Consul.
    Consul(ConsulSource),
    /// A service in Kubernetes.
    Kubernetes(KubernetesSource),
}

impl SourceKind {
    /// Whether both ask for the same service, be it in another way or at another place: then the lists of one are a measure of
    /// those of the other.
    pub fn is_same_service(&self, other: &SourceKind) -> bool {
        match (self, other) {
            (SourceKind::File(own), SourceKind::File(other)) => own == other,
            (SourceKind::Dns(own), SourceKind::Dns(other)) => {
                (&own.name, own.records) == (&other.name, other.records)
            }
            (SourceKind::Eureka(own), SourceKind::Eureka(other)) => own.app.eq_ignore_ascii_case(&other.app),
            (SourceKind::Consul(own), SourceKind::Consul(other)) => {
                (&own.service, &own.tag, &own.datacenter) == (&other.service, &other.tag, &other.datacenter)
            }
            (SourceKind::Kubernetes(own), SourceKind::Kubernetes(other)) => {
                (&own.service, &own.namespace) == (&other.service, &other.namespace)
            }
            _ => false,
        }
    }
}

/// `find.dns(...)`: the members are the answers to a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DnsSource {
    /// The name that is asked for.
    pub name: String,
    /// What is asked for.
    pub records: DnsRecords,
    /// How long a member is missing from all answers before it is off the list, ns.
    pub hold_ns: u64,
    /// The name servers, each `host:port`; empty: the system's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
}

/// The records of a name that are members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DnsRecords {
    /// A and AAAA: each address, with this port.
    Addresses {
        /// The port of all members.
        port: u16,
    },
    /// SRV: each target and port of the lowest priority.
    Services,
}

/// `find.eureka(...)`: the members are the instances of an application.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EurekaSource {
    /// The registry's servers, each with the path before `/apps`: one is asked, and the next after a failure.
    pub urls: Vec<String>,
    /// The application's name; capital and small letters are the same.
    pub app: String,
    /// Whether an instance's secure port is taken.
    pub secure: bool,
    /// Which of its two addresses is taken.
    pub host: EurekaHost,
    /// How often changes are asked for, ns; drawn within a tenth.
    pub poll_ns: u64,
    /// The path of a file with `user:password`; not part of the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// How `https` servers are verified; `None`: by the system's authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsClient>,
}

/// Which address of a Eureka instance is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EurekaHost {
    /// `ipAddr`.
    #[default]
    Ip,
    /// `hostName`.
    Name,
}

/// `find.consul(...)`: the members are the instances of a service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ConsulSource {
    /// The agent or server.
    pub url: String,
    /// The service's name.
    pub service: String,
    /// Only instances with this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Another datacenter than the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datacenter: Option<String>,
    /// Whether only instances are listed whose checks all pass.
    pub passing: bool,
    /// Whether any server may answer, not the leader alone.
    pub stale: bool,
    /// The path of a file with the token; not part of the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// How an `https` server is verified; `None`: by the system's authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsClient>,
}

impl ConsulSource {
    /// A service as `find.consul(url, service, f)` asks for it, without other arguments.
    pub fn new(url: impl Into<String>, service: impl Into<String>) -> ConsulSource {
        ConsulSource {
            url: url.into(),
            service: service.into(),
            tag: None,
            datacenter: None,
            passing: true,
            stale: true,
            token: None,
            tls: None,
        }
    }
}

/// `find.kubernetes(...)`: the members are the endpoints of a service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KubernetesSource {
    /// The service's name.
    pub service: String,
    /// Its namespace; `None`: that of weir's pod, or of the kubeconfig's context, else `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Which of its ports; `None`: the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<KubernetesPort>,
    /// The path of a kubeconfig; `None`: weir's pod, else that of KUBECONFIG, else `~/.kube/config`. Not part of the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<String>,
}

/// A port of a Kubernetes service's endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KubernetesPort {
    /// Its number.
    Number(u16),
    /// Its name.
    Name(String),
}

impl SourceKind {
    /// The function of the language that makes it.
    pub fn function(&self) -> &'static str {
        match self {
            SourceKind::File(_) => "find.file",
            SourceKind::Dns(_) => "find.dns",
            SourceKind::Eureka(_) => "find.eureka",
            SourceKind::Consul(_) => "find.consul",
            SourceKind::Kubernetes(_) => "find.kubernetes",
        }
    }

    /// The same without paths, which do not belong to the meaning of a plan.
    pub(crate) fn without_paths(&self) -> SourceKind {
        let bare = |path: &Option<String>| path.as_ref().map(|_| String::new());
        let tls = |tls: &Option<TlsClient>| tls.as_ref().map(TlsClient::without_paths);
        match self {
            SourceKind::File(_) => SourceKind::File(String::new()),
            SourceKind::Dns(_) => self.clone(),
            SourceKind::Eureka(source) => {
                let (auth, tls) = (bare(&source.auth), tls(&source.tls));
                SourceKind::Eureka(EurekaSource { auth, tls, ..source.clone() })
            }
            SourceKind::Consul(source) => {
                let (token, tls) = (bare(&source.token), tls(&source.tls));
                SourceKind::Consul(ConsulSource { token, tls, ..source.clone() })
            }
            SourceKind::Kubernetes(source) => SourceKind::Kubernetes(KubernetesSource {
                kubeconfig: bare(&source.kubeconfig),
                ..source.clone()
            }),
        }
    }
}

impl fmt::Display for SourceKind {
    /// In a few words, for the log, the page and `weir find`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceKind::File(path) => write!(f, "file {path}"),
            SourceKind::Dns(DnsSource { name, records: DnsRecords::Addresses { port }, .. }) => {
                write!(f, "dns {name}:{port}")
            }
            SourceKind::Dns(source) => write!(f, "dns SRV {}", source.name),
            SourceKind::Eureka(source) => write!(f, "eureka {}", source.app),
            SourceKind::Consul(source) => write!(f, "consul {}", source.service),
            SourceKind::Kubernetes(KubernetesSource { service, namespace, .. }) => match namespace {
                Some(namespace) => write!(f, "kubernetes {namespace}/{service}"),
                None => write!(f, "kubernetes {service}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dns(name: &str, records: DnsRecords, hold_ns: u64) -> SourceKind {
        SourceKind::Dns(DnsSource { name: name.to_owned(), records, hold_ns, servers: Vec::new() })
    }

    fn eureka(url: &str, app: &str) -> SourceKind {
        SourceKind::Eureka(EurekaSource {
            urls: vec![url.to_owned()],
            app: app.to_owned(),
            secure: false,
            host: EurekaHost::Ip,
            poll_ns: 1,
            auth: None,
            tls: None,
        })
    }

    fn consul(url: &str, tag: Option<&str>, datacenter: Option<&str>) -> SourceKind {
        let (tag, datacenter) = (tag.map(str::to_owned), datacenter.map(str::to_owned));
        SourceKind::Consul(ConsulSource { tag, datacenter, ..ConsulSource::new(url, "web") })
    }

    fn kubernetes(namespace: Option<&str>, kubeconfig: Option<&str>) -> SourceKind {
        let (namespace, kubeconfig) = (namespace.map(str::to_owned), kubeconfig.map(str::to_owned));
        SourceKind::Kubernetes(KubernetesSource {
            service: "web".to_owned(),
            namespace,
            port: None,
            kubeconfig,
        })
    }

    #[test]
    fn a_service_is_the_same_however_it_is_asked_for() {
        let on = |port| DnsRecords::Addresses { port };
        let same = [
            (dns("a", on(80), 1), dns("a", on(80), 2)),
            (eureka("http://a", "SHOP"), eureka("http://b", "shop")),
            (consul("http://a", None, None), consul("http://b", None, None)),
            (kubernetes(None, None), kubernetes(None, Some("config"))),
            (SourceKind::File("a".to_owned()), SourceKind::File("a".to_owned())),
        ];
        for (one, other) in &same {
            assert!(one.is_same_service(other) && other.is_same_service(one), "{one} and {other}");
        }
        let others = [
            (dns("a", on(80), 1), dns("b", on(80), 1)),
            (dns("a", on(80), 1), dns("a", on(81), 1)),
            (dns("a", on(80), 1), dns("a", DnsRecords::Services, 1)),
            (eureka("http://a", "SHOP"), eureka("http://a", "SHOPS")),
            (consul("http://a", None, None), consul("http://a", Some("blue"), None)),
            (consul("http://a", None, None), consul("http://a", None, Some("east"))),
            (kubernetes(None, None), kubernetes(Some("prod"), None)),
            (SourceKind::File("a".to_owned()), SourceKind::File("b".to_owned())),
            (SourceKind::File("web".to_owned()), kubernetes(None, None)),
        ];
        for (one, other) in &others {
            assert!(!one.is_same_service(other) && !other.is_same_service(one), "{one} and {other}");
        }
    }
}
