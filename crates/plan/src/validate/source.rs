//! Checks of what lists the members of a fleet (`find.*`).

use super::around::between;
use super::asked::word;
use super::serving::tls_client;
use super::spec::{duration, share};
use crate::source_ranges::{self, HOLD_NS, MOST_NAME_SERVERS, MOST_SERVERS, POLL_NS};
use crate::{
    ConsulSource, DnsRecords, DnsSource, EurekaSource, FleetSource, KubernetesPort, KubernetesSource,
    SourceKind, TlsClient,
};

type Checked = Result<(), String>;

/// A source, and how far its lists are believed.
pub(super) fn check(source: &FleetSource) -> Checked {
    source.shrink.map_or(Ok(()), |shrink| share("shrink", shrink))?;
    duration(source.grace_ns).map_err(|why| format!("grace_ns: {why}"))?;
    let checked = match &source.from {
        SourceKind::File(path) => word("path", path, source_ranges::path),
        SourceKind::Dns(source) => dns(source),
        SourceKind::Eureka(source) => eureka(source),
        SourceKind::Consul(source) => consul(source),
        SourceKind::Kubernetes(source) => kubernetes(source),
    };
    checked.map_err(|why| format!("{}: {why}", source.from.function()))
}

fn dns(source: &DnsSource) -> Checked {
    word("name", &source.name, source_ranges::dns_name)?;
    if let DnsRecords::Addresses { port } = source.records {
        not_0(port)?;
    }
    between("hold_ns", source.hold_ns, HOLD_NS.0, HOLD_NS.1)?;
    let count = source.servers.len();
    if count > MOST_NAME_SERVERS {
        return Err(format!("servers: there are {count}, and {MOST_NAME_SERVERS} is the limit"));
    }
    source.servers.iter().try_for_each(|server| word("servers", server, source_ranges::name_server))
}

fn eureka(source: &EurekaSource) -> Checked {
    between("urls", source.urls.len() as u64, 1, MOST_SERVERS as u64)?;
    source.urls.iter().try_for_each(|url| word("urls", url, source_ranges::eureka_url))?;
    word("app", &source.app, source_ranges::registered_name)?;
    between("poll_ns", source.poll_ns, POLL_NS.0, POLL_NS.1)?;
    path("auth", source.auth.as_deref())?;
    tls(source.tls.as_ref(), &source.urls)
}

fn consul(source: &ConsulSource) -> Checked {
    let name = |what: &str, name: &str| word(what, name, source_ranges::registered_name);
    word("url", &source.url, source_ranges::consul_url)?;
    name("service", &source.service)?;
    source.tag.as_deref().map_or(Ok(()), |tag| name("tag", tag))?;
    source.datacenter.as_deref().map_or(Ok(()), |datacenter| name("datacenter", datacenter))?;
    path("token", source.token.as_deref())?;
    tls(source.tls.as_ref(), std::slice::from_ref(&source.url))
}

fn kubernetes(source: &KubernetesSource) -> Checked {
    word("service", &source.service, source_ranges::kubernetes_name)?;
    let namespace = source.namespace.as_deref();
    namespace.map_or(Ok(()), |namespace| word("namespace", namespace, source_ranges::kubernetes_name))?;
    path("kubeconfig", source.kubeconfig.as_deref())?;
    match &source.port {
        None => Ok(()),
        Some(KubernetesPort::Number(port)) => not_0(*port),
        Some(KubernetesPort::Name(name)) => word("port", name, source_ranges::kubernetes_port),
    }
}

fn not_0(port: u16) -> Checked {
    between("port", u64::from(port), 1, u64::from(u16::MAX))
}

fn path(what: &str, path: Option<&str>) -> Checked {
    path.map_or(Ok(()), |path| word(what, path, source_ranges::path))
}

/// TLS to a registry, of which one server at least must be spoken to so.
fn tls(tls: Option<&TlsClient>, urls: &[String]) -> Checked {
    let Some(tls) = tls else { return Ok(()) };
    tls_client(tls).map_err(|why| format!("tls.{why}"))?;
    if urls.iter().any(|url| source_ranges::is_https(url)) {
        Ok(())
    } else {
        Err("tls: there is no URL with https".to_owned())
    }
}
