//! A look-up by the system's rules: `/etc/hosts`, then the name servers and search domains of `resolv.conf`.
//!
//! Both files are read for each look-up, as the C library does, so that a change needs no restart.

use crate::upstream::names::follow::LookupResult;
use hickory_resolver::config::{ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::{ResolverBuilder, TokioResolver};
use std::net::SocketAddr;
use std::time::Instant;

/// The source of look-ups.
pub(super) struct System {
    nameserver: Option<SocketAddr>,
}

impl System {
    /// The system's configuration, or this server alone.
    pub fn new(nameserver: Option<SocketAddr>) -> System {
        System { nameserver }
    }

    fn builder(&self) -> Result<ResolverBuilder<TokioRuntimeProvider>, NetError> {
        let Some(server) = self.nameserver else { return TokioResolver::builder_tokio() };
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut c| {
            c.port = server.port();
            c
        });
        let servers = vec![NameServerConfig::new(server.ip(), true, connections.to_vec())];
        let config = ResolverConfig::from_name_servers(servers);
        Ok(TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()))
    }

    /// The addresses of a name, of both families.
    pub async fn lookup(&self, host: &str) -> LookupResult {
        let resolver = self.builder().and_then(|mut builder| {
            let options = builder.options_mut();
            options.ip_strategy = LookupIpStrategy::Ipv6AndIpv4;
            builder.build()
        });
        let answer = match resolver {
            // A name with an underscore, as containers have, is a name for the system, though not of a host by RFC
            // 1123.
            Ok(resolver) => match Name::from_str_relaxed(host) {
                Ok(name) => resolver.lookup_ip(name).await,
                Err(e) => return LookupResult::Failed(e.to_string()),
            },
            Err(e) => return LookupResult::Failed(e.to_string()),
        };
        match answer {
            Ok(found) => {
                let ttl = found.valid_until().saturating_duration_since(Instant::now());
                let ttl_ns = u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX);
                LookupResult::Addresses(found.iter().collect(), ttl_ns)
            }
            Err(e) if e.is_nx_domain() || e.is_no_records_found() => LookupResult::Denied,
            Err(e) => LookupResult::Failed(e.to_string()),
        }
    }
}
