//! `listen(addr, node, name=None, protocol="http"|"tcp", tls=None, http=None, loops=None)`: where requests come in.
//!
//! Without `name=` the listeners of a file are called `listen`, `listen#2`, `listen#3`, ... in its order, regardless of
//! what the others are called. A listener behind another is a separate hop: a failure behind it is an answer for the
//! nodes before it.

use super::{Description, Function, Group, examples, may, maybe, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::{HttpValue, TlsServerValue};
use weir_plan::address::{self, Address};
use weir_plan::ranges::MOST_LOOPS;
use weir_plan::{Edge, Listen, ListenProtocol, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "listen",
    about: Description {
        group: Group::Pass,
        meaning: "Where requests come in: a listener at an address.",
        simulated: "requests pass, each through one of the `loops`. A listener behind another is a \
            separate hop: a failure behind it reaches the caller as an answer (502, 503, 504)",
        served: "a socket on each of the event loops (or the first `loops` of them); an inner \
                listener is reached over its address, by TLS if it has certificates",
        draws: "which of several loops a request passes through",
        example: examples::EDGE,
    },
    args: &[
        need(
            "addr",
            "an address",
            "where it listens: `\":8080\"`, `\"127.0.0.1:0\"` (a free port), \
                `\"[::1]:80\"`, `\"unix:/path\"`",
        ),
        need("node", "a node", "the next node"),
        maybe(
            "name",
            "a string",
            "listen, listen#2, ...",
            "its name in results, logs and on the \
                command line of `weir serve`",
        ),
        may("protocol", "\"http\"", "\"http\"", "the protocol that is spoken there"),
        may("tls", "tls.server(...)", "None", "certificates; without them connections are unencrypted"),
        may(
            "http",
            "http(...)",
            "None",
            "limits and timeouts towards clients; without it the \
                defaults of `http()`",
        ),
        may(
            "loops",
            "1 to 1024",
            "None",
            "how many event loops take its requests; `None`: one per \
                core when served, one when simulated",
        ),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let addr = call.word("addr", address::listener);
    if call.is_none("addr") {
        call.wrong_but("`addr` of `listen` must be an address, not None", "write `listen(\":8080\", node)`");
    }
    let node = call.node_at("node");
    let name = call.name_or_none();
    let protocol = call.choice("protocol", &[("http", Some(ListenProtocol::Http)), ("tcp", None)]);
    let http = call.made::<HttpValue>("http", "HTTP settings", "write `http=http(max_body=10*MiB)`");
    let http = http.map(|h| h.0.clone()).unwrap_or_default();
    let tls = call.made::<TlsServerValue>(
        "tls",
        "certificates",
        "write `tls=tls.server(\"cert.pem\", \"key.pem\")`",
    );
    let tls = tls.map(|tls| tls.0.clone());
    let loops = if call.is_none("loops") { None } else { call.count("loops", 1, MOST_LOOPS) };
    let (Some(addr), Some(node)) = (addr, node) else { return Ok(None) };
    taken(call, &addr);
    let name = named(call, name);
    let protocol = protocol.unwrap_or_default();
    let listen = Listen { addr, protocol, loops, tls, http };
    if let Err(invalid) = listen.check_peers() {
        let message = format!("`http` of `listen`: {invalid}");
        call.wrong_but(message, invalid.remedy.unwrap_or_default());
    }
    call.named_node(Spec::Listen(listen), Edge::Node(node), Some(name))
}

/// Two listeners cannot share an address, unless the system chooses a free port for each.
fn taken(call: &mut Call<'_, '_, '_, '_>, addr: &str) {
    let Some(known) = Address::parse(addr).filter(|a| !a.is_free_port()) else { return };
    let at = call.location().map(|at| at.span()).unwrap_or_default();
    let before = call.context.state.borrow_mut().listening.addresses.insert(known, at);
    if let Some(before) = before {
        call.wrong_but(
            format!("two listeners have the address \"{}\"", weir_plan::http::short(addr)),
            format!("the first is at {before}; use another port, or one listener that leads to a `route`"),
        );
    }
}

/// Its name: its own, or the next that is free.
fn named(call: &mut Call<'_, '_, '_, '_>, name: Option<String>) -> String {
    let at = call.location().map(|at| at.span()).unwrap_or_default();
    let mut state = call.context.state.borrow_mut();
    let listening = &mut state.listening;
    let name = name.unwrap_or_else(|| {
        listening.unnamed += 1;
        if listening.unnamed == 1 { "listen".to_owned() } else { format!("listen#{}", listening.unnamed) }
    });
    let before = listening.names.insert(name.clone(), at);
    drop(state);
    if let Some(before) = before {
        call.wrong_but(format!("two listeners are called \"{name}\""), format!("the first is at {before}"));
    }
    name
}
