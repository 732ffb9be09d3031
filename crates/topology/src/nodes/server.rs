//! `server(name="server", addr=None, model=None, protocol="auto"|"h1", connect_timeout=1*s, ...)`: where a request
//! ends.

use super::{Description, Function, Group, examples, may, maybe};
use crate::language::call::{Call, Outcome};
use crate::language::value::{DistValue, DurationValue, NodeValue, Poison, TlsClientValue};
use starlark::values::ValueLike;
use weir_plan::address::{self, Address};
use weir_plan::ranges::MOST_STREAMS;
use weir_plan::{Edge, NodeId, Origin, OriginProtocol, SendProxy, Spec, TlsClient};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "server",
    about: Description {
        group: Group::Pass,
        meaning: "Where a request ends: an origin server, or weir in its place.",
        simulated: "behaves as its `model`; without one it answers at once",
        served: "with `addr`, the origin at that address; without it weir answers itself, as the model does (a \
                built-in server, without TLS: by HTTP/2 with `protocol=\"h2\"`, or with `tls`). An upgrade, such as to \
                WebSocket, uses HTTP/1.1, under `protocol=\"auto\"` on a connection whose TLS offers nothing else, or \
                HTTP/2 where the origin allows extended CONNECT; with `protocol=\"h2\"` and without that it is \
                answered with 501",
        draws: "what its model draws",
        example: examples::ORIGIN,
    },
    args: &[
        may("name", "a string", "\"server\"", "its name in results, logs and on the status page"),
        may(
            "addr",
            "an address",
            "None",
            "where it is: `\"10.0.0.1:8000\"`, \
                `\"app.example.com:80\"`, `\"unix:/path\"`",
        ),
        may(
            "model",
            "a function, node, distribution or duration",
            "None",
            "how it behaves in \
                simulation: a function is called for this server, a distribution is its service time",
        ),
        may("tls", "tls.client(...)", "None", "connect to it by TLS"),
        may(
            "protocol",
            "\"auto\" | \"h1\" | \"h2\"",
            "\"auto\"",
            "HTTP/1.1 or HTTP/2; `auto` lets TLS agree on one, otherwise HTTP/1.1",
        ),
        may("connect_timeout", "a duration or None", "1*s", "for TCP and for TLS, each"),
        may(
            "response_timeout",
            "a duration or None",
            "60*s",
            "from the last byte of the request to \
                the final head",
        ),
        may("body_timeout", "a duration or None", "60*s", "silence between two bytes of a body"),
        maybe(
            "idle_timeout",
            "a duration or None",
            "4*s, and 60*s where HTTP/2 is spoken",
            "how long an idle connection is kept",
        ),
        may(
            "connect",
            "a distribution or None",
            "None",
            "how long a new connection takes in a simulation, which has connections then",
        ),
        may("connect_cost", "a duration", "0*s", "the server's work for a new connection in a simulation"),
        may("max_age", "a duration or None", "None", "how old a connection may get"),
        may("max_requests", "1 or more, or None", "None", "requests on one connection, at most"),
        may(
            "max_streams",
            "1 or more",
            "100",
            "requests at once on a connection of HTTP/2, at most, and no more than the origin allows",
        ),
        may(
            "send_proxy",
            "\"v1\" | \"v2\"",
            "None",
            "tell the origin the client's address, by the PROXY protocol",
        ),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let name = call.name_or_none().unwrap_or_else(|| "server".to_owned());
    let addr = call.word("addr", address::server);
    let origin = origin(call, addr.as_deref());
    let model = model(call)?;
    call.named_node(Spec::Server { addr, model, origin }, Edge::None, Some(name))
}

/// The protocol for its origin.
fn origin(call: &mut Call<'_, '_, '_, '_>, addr: Option<&str>) -> Origin {
    let words = [
        ("auto", Some(OriginProtocol::Auto)),
        ("h1", Some(OriginProtocol::H1)),
        ("h2", Some(OriginProtocol::H2)),
    ];
    let protocol = call.choice("protocol", &words).unwrap_or_default();
    let plain = Origin::new(addr.is_some());
    let mut origin = Origin {
        protocol,
        tls: tls(call, addr),
        connect_timeout_ns: call.limit_or("connect_timeout", plain.connect_timeout_ns),
        response_timeout_ns: call.limit_or("response_timeout", plain.response_timeout_ns),
        body_timeout_ns: call.limit_or("body_timeout", plain.body_timeout_ns),
        idle_timeout_ns: call.limit("idle_timeout"),
        h2_idle_timeout_ns: None,
        max_age_ns: call.limit("max_age"),
        max_requests: call.most_or("max_requests", None),
        connect: match call.is_none("connect") {
            true => None,
            false => call.dist("connect"),
        },
        connect_cost_ns: call.duration("connect_cost").unwrap_or(0),
        max_streams: call.count("max_streams", 1, MOST_STREAMS).unwrap_or(plain.max_streams),
        send_proxy: match call.is_none("send_proxy") {
            true => None,
            false => call.choice("send_proxy", &[("v1", Some(SendProxy::V1)), ("v2", Some(SendProxy::V2))]),
        },
    };
    if call.value("idle_timeout").is_none() {
        origin.set_default_idle(origin.may_speak_h2());
    }
    if call.failed() {
        return origin;
    }
    check(call, addr, &origin);
    origin
}

/// Reports what cannot be, and what has no effect.
fn check(call: &mut Call<'_, '_, '_, '_>, addr: Option<&str>, origin: &Origin) {
    if origin.send_proxy.is_some() && origin.protocol == OriginProtocol::H2 {
        call.wrong_but(
            "`send_proxy` of `server` names one client for a whole connection, but HTTP/2 shares \
                connections among many",
            "write `protocol=\"h1\"`, or leave `send_proxy` out",
        );
    }
    let plain = Origin::new(false);
    let has_unread = origin.response_timeout_ns != plain.response_timeout_ns
        || origin.body_timeout_ns != plain.body_timeout_ns
        || origin.send_proxy.is_some();
    if addr.is_none() && has_unread {
        call.warn(
            "`response_timeout`, `body_timeout` and `send_proxy` have no effect on this `server`: without `addr` \
                weir answers itself",
            "give it an `addr`, or leave them out",
        );
    }
    if origin.tls.is_none() && addr.and_then(Address::parse).and_then(|a| a.port()) == Some(443) {
        call.warn(
            "this `server` has the HTTPS port (443), but no TLS",
            "write `tls=tls.client()`, or use the port for plain HTTP, such as 80",
        );
    }
}

/// TLS to its origin; a name that its certificate must cover must be known.
fn tls(call: &mut Call<'_, '_, '_, '_>, addr: Option<&str>) -> Option<TlsClient> {
    let tls = call.made::<TlsClientValue>("tls", "TLS to an origin", "write `tls=tls.client()`")?;
    if tls.0.name.is_none() && addr.is_some_and(|a| a.starts_with("unix:")) {
        call.wrong_but(
            "a Unix socket has no name that the certificate of this `server` could cover",
            "write `tls=tls.client(name=\"app.example.com\")`, with the name in the certificate",
        );
    }
    Some(tls.0.clone())
}

/// The root of the server's model: a node, what a function returns, or a delay before a leaf.
fn model(call: &mut Call<'_, '_, '_, '_>) -> starlark::Result<Option<NodeId>> {
    let Some(mut value) = call.value_or_none("model") else { return Ok(None) };
    if value.get_type() == "function" {
        value = call.call_back(value, &[])?;
    }
    if value.downcast_ref::<Poison>().is_some() {
        call.poison();
        return Ok(None);
    }
    if let Some(node) = value.downcast_ref::<NodeValue>() {
        let span = call.span();
        let before = {
            let state = &mut *call.context.state.borrow_mut();
            let here = span.map(|s| state.graph.locator.locate(&s).span()).unwrap_or_default();
            state.models.insert(node.0, here)
        };
        if let Some(other) = before {
            let message = format!(
                "this model already belongs to another server, made at {other}: the two would share it"
            );
            call.wrong_but(message, "give each server a model of its own: pass a function, as in `model=f`");
        }
        return Ok(Some(node.0));
    }
    let timed = value.downcast_ref::<DistValue>().is_some()
        || value.downcast_ref::<DurationValue>().is_some()
        || value.unpack_str().is_some();
    if !timed {
        call.unfit("model", "a function, a distribution, a duration or a node", value);
        return Ok(None);
    }
    let what = call.describe("model");
    let Some(time) = call.dist_of(&what, value) else { return Ok(None) };
    if call.failed() {
        return Ok(None);
    }
    let leaf = call.site("server", "model");
    let leaf = call.add(
        leaf,
        Spec::Server { addr: None, model: None, origin: Origin::new(false) },
        Edge::None,
        None,
    )?;
    let delay = call.site("delay", "model");
    call.add(delay, Spec::Delay { time }, Edge::Node(leaf), None).map(Some)
}
