//! `GET /topology` and `GET /config`: the plan with its live state, and what is served since when.

use crate::answer::{Answer, json};
use crate::served::{Config, Served};
use serde::Serialize;
use std::time::{Duration, SystemTime};
use weir_serve::View;
use weir_topology::plan::{NodeId, Point, Spec, To, label};

/// The plan with its live state.
#[derive(Serialize)]
struct Topology<'a> {
    schema: &'static str,
    version: &'static str,
    file: &'a str,
    plan: &'a str,
    nodes: Vec<NodeView<'a>>,
    #[serde(flatten)]
    view: &'a View,
}

/// A node of the plan.
#[derive(Serialize)]
struct NodeView<'a> {
    node: NodeId,
    kind: &'static str,
    /// Its `name=`, else its site.
    name: String,
    site: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    addr: Option<&'a str>,
    /// What it leads to.
    to: Vec<NodeId>,
}

/// All of it.
pub(crate) fn answer(served: &dyn Served, by_loop: bool) -> Answer {
    let (point, config, view) = (served.point(), served.config(), served.view(by_loop));
    let nodes = (0..point.nodes.len() as NodeId).map(|id| node(&point, id)).collect();
    json(&Topology {
        schema: "weir.topology/1",
        version: env!("CARGO_PKG_VERSION"),
        file: &config.file,
        plan: &config.plan,
        nodes,
        view: &view,
    })
}

fn node(point: &Point, id: NodeId) -> NodeView<'_> {
    let node = &point.nodes[id as usize];
    let spec = &point.specs[node.spec as usize];
    let mut to = match node.to {
        To::None => Vec::new(),
        To::Node(next) => vec![next],
        To::List(list) => point.lists[list as usize].clone(),
    };
    to.extend(spec.aside());
    NodeView {
        node: id,
        kind: spec.kind(),
        name: label(point, id),
        site: point.sites.get(node.site as usize).map_or("", |site| &site.label),
        addr: match spec {
            Spec::Server { addr, .. } => addr.as_deref(),
            Spec::Listen(listen) => Some(&listen.addr),
            _ => None,
        },
        to,
    }
}

/// `/config`.
#[derive(Serialize)]
pub(crate) struct ConfigView<'a> {
    schema: &'static str,
    version: &'static str,
    /// Since when, as a date of HTTP.
    at: String,
    #[serde(flatten)]
    config: &'a Config,
}

/// What is served since when.
pub(crate) fn config(config: &Config) -> ConfigView<'_> {
    ConfigView {
        schema: "weir.config/1",
        version: env!("CARGO_PKG_VERSION"),
        at: at(config.at_unix_ms),
        config,
    }
}

/// A moment in words.
pub(crate) fn at(unix_ms: u64) -> String {
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_millis(unix_ms))
}
