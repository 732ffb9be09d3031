//! Tests of members from Eureka, and what they share: registries as servers write them.

mod copy;
mod follow;
mod wire;

use std::collections::BTreeMap;
use weir_plan::{EurekaHost, EurekaSource};

/// The source of an application `Api` at these servers.
fn source(urls: &[&str]) -> EurekaSource {
    EurekaSource {
        urls: urls.iter().map(|url| format!("{url}/eureka")).collect(),
        app: "Api".to_owned(),
        secure: false,
        host: EurekaHost::Ip,
        poll_ns: 20_000_000,
        auth: None,
        tls: None,
    }
}

/// An instance as Spring Cloud's server writes it, with its status and what a delta says of it.
fn instance(id: &str, ip: &str, status: &str, action: &str) -> String {
    format!(
        r#"{{"instanceId":"{id}","hostName":"{id}.local","app":"API","ipAddr":"{ip}","status":"{status}",
        "overriddenStatus":"UNKNOWN","port":{{"$":80,"@enabled":"true"}},
        "securePort":{{"$":443,"@enabled":"false"}},"countryId":1,
        "dataCenterInfo":{{"@class":"x","name":"MyOwn"}},"metadata":{{"a":{{"b":[1]}}}},
        "lastUpdatedTimestamp":"1","actionType":"{action}"}}"#
    )
}

/// An application with these instances.
fn application(name: &str, instances: &[String]) -> String {
    format!(r#"{{"name":"{name}","instance":[{}]}}"#, instances.join(","))
}

/// A registry, or a delta, with these applications.
fn registry(hash: &str, applications: &[String]) -> String {
    format!(
        r#"{{"applications":{{"versions__delta":"1","apps__hashcode":"{hash}","application":[{}]}}}}"#,
        applications.join(",")
    )
}

/// The hash of these statuses.
fn hash<'a>(statuses: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for status in statuses {
        *counts.entry(status).or_default() += 1;
    }
    counts.iter().map(|(status, count)| format!("{status}_{count}_")).collect()
}
