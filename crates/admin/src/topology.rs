//! `GET /topology` and `GET /config`: the plan with its live state, and the configuration that is served.

use crate::answer::{Answer, json as answered};
use crate::served::Service;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, SystemTime};
use weir_plan::{Edge, NodeId, Point, Spec, label};
use weir_serve::{Config, ReloadError, View};

/// The plan with its live state.
#[derive(Serialize)]
struct Topology<'a> {
    schema: &'static str,
    version: &'static str,
    /// When it was so, ms since 1970.
    at_unix_ms: u64,
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
    /// Its `name=`, or its site.
    name: String,
    site: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    addr: Option<&'a str>,
    /// The node or nodes behind it.
    to: Vec<NodeId>,
}

/// All of it.
pub(crate) fn answer(served: &dyn Service, by_loop: bool) -> Answer {
    let (file, config, view) = (served.file(), served.config(), served.view(by_loop));
    let all = view.point.iter().flat_map(|point| (0..point.nodes.len() as NodeId).map(|id| node(point, id)));
    let nodes = all.collect();
    answered(&Topology {
        schema: "weir.topology/1",
        version: env!("CARGO_PKG_VERSION"),
        at_unix_ms: now_unix_ms(),
        file: &file,
        plan: &config.plan,
        nodes,
        view: &view,
    })
}

fn node(point: &Point, id: NodeId) -> NodeView<'_> {
    let node = &point.nodes[id as usize];
    let spec = &point.specs[node.spec as usize];
    let mut to = match node.to {
        Edge::None => Vec::new(),
        Edge::Node(next) => vec![next],
        Edge::List(list) => point.lists[list as usize].clone(),
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

/// The configuration that is served, and the result of the last reload.
pub(crate) fn config(file: &str, config: &Config) -> serde_json::Value {
    let named = |result: &Result<String, ReloadError>| {
        let (word, says) = match result {
            Ok(what) => ("applied", what.clone()),
            Err(why) => ("failed", why.to_string()),
        };
        let at_unix_ms = config.last_reload_unix_ms;
        json!({word: says, "at": at_unix_ms.map(format_time), "at_unix_ms": at_unix_ms})
    };
    json!({
        "schema": "weir.config/1",
        "version": env!("CARGO_PKG_VERSION"),
        "file": file,
        "generation": config.generation,
        "plan": config.plan,
        "at": format_time(config.at_unix_ms),
        "at_unix_ms": config.at_unix_ms,
        "last_reload": config.last_reload.as_ref().map(named),
        "reload_under_way": config.reload_under_way,
        "waits_for_hand_over": config.waits_for_hand_over,
        "warnings": config.warnings,
    })
}

/// Now, ms since 1970.
fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A time in words.
pub(crate) fn format_time(unix_ms: u64) -> String {
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_millis(unix_ms))
}
