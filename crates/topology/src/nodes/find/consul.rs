//! `find.consul(url, service, f, tag=None, datacenter=None, passing=True, stale=True, token=None, tls=None, ...)`:
//! a fleet whose members are the instances of a service in Consul.

use super::{F, MORE, SERVED, SIMULATED, make, read_path, read_tls, read_word};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, may, need};
use weir_plan::source_ranges::{self, registered_name};
use weir_plan::{ConsulSource, SourceKind};

pub(in crate::nodes) static FUNCTIONS: [Function; 1] = [Function {
    name: "find.consul",
    about: Description {
        group: Group::Serve,
        meaning: "Targets that are instances of a service in Consul.",
        simulated: SIMULATED,
        served: SERVED,
        draws: "nothing",
        example: examples::FIND_CONSUL,
    },
    args: &[
        need("url", "a URL", "the agent or server that is asked, without /v1"),
        need("service", "a string", "the service"),
        F,
        may("tag", "a string", "None", "only instances with this tag"),
        may("datacenter", "a string", "None", "another datacenter than the agent's own"),
        may("passing", "True | False", "True", "whether only instances are listed whose checks all pass"),
        may("stale", "True | False", "True", "whether any server may answer, not the leader alone"),
        may(
            "token",
            "a path",
            "None",
            "a file with the token, read anew at each connection; relative to the file that names it",
        ),
        may(
            "tls",
            "tls.client(...)",
            "None",
            "how an `https` server is verified; `None`: by the system's authorities",
        ),
    ],
    more: &MORE,
    make: find_consul,
}];

/// How it is written.
const USUAL: &str = "find.consul(\"http://127.0.0.1:8500\", \"shop\", lambda: server(\"app\"))";

fn find_consul<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let url = read_word(call, "url", source_ranges::consul_url);
    let service = read_word(call, "service", registered_name);
    let tag = call.word("tag", registered_name);
    let datacenter = call.word("datacenter", registered_name);
    let passing = call.truth("passing").unwrap_or(true);
    let stale = call.truth("stale").unwrap_or(true);
    let token = read_path(call, "token");
    let tls = read_tls(call, url.as_slice());
    let from = url.zip(service).map(|(url, service)| {
        SourceKind::Consul(ConsulSource { url, service, tag, datacenter, passing, stale, token, tls })
    });
    make(call, from, USUAL)
}
