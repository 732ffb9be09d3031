//! `find.eureka(urls, app, f, secure=False, host="ip"|"name", poll=30*s, auth=None, tls=None, ...)`: a fleet whose
//! members are the instances of an application in a Eureka registry.

use super::{F, MORE, SERVED, SIMULATED, make, read_duration, read_path, read_tls, read_word, read_words};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, may, need};
use starlark::values::Value;
use weir_plan::source_ranges::{self, MOST_SERVERS, POLL_NS};
use weir_plan::{EurekaHost, EurekaSource, SourceKind};

pub(in crate::nodes) static FUNCTIONS: [Function; 1] = [Function {
    name: "find.eureka",
    about: Description {
        group: Group::Serve,
        meaning: "Targets that are instances of an application in Eureka.",
        simulated: SIMULATED,
        served: SERVED,
        draws: "when it is served: which server is asked first, and each `poll` within a tenth",
        example: examples::FIND_EUREKA,
    },
    args: &[
        need("urls", "a URL or a list of them", "the registry's servers, each with the path before /apps"),
        need("app", "a string", "the application; capital and small letters are the same"),
        F,
        may("secure", "True | False", "False", "whether an instance's secure port is taken"),
        may(
            "host",
            "\"ip\" | \"name\"",
            "\"ip\"",
            "which address of an instance is taken: `ipAddr` or `hostName`",
        ),
        may("poll", "a duration, 50*ms to 1*hours", "30*s", "how often changes are asked for"),
        may(
            "auth",
            "a path",
            "None",
            "a file with `user:password`, read anew at each connection; relative to the file that names it",
        ),
        may(
            "tls",
            "tls.client(...)",
            "None",
            "how `https` servers are verified; `None`: by the system's authorities",
        ),
    ],
    more: &MORE,
    make: find_eureka,
}];

/// How it is written.
const USUAL: &str = "find.eureka(\"http://10.0.0.2:8761/eureka\", \"SHOP\", lambda: server(\"app\"))";

/// How often changes are asked for, ns.
const USUAL_POLL_NS: u64 = 30_000_000_000;

/// How its servers are written.
const URLS: &str = "write `\"http://10.0.0.2:8761/eureka\"`, or a list of such addresses";

fn find_eureka<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    if call.is_none("urls") {
        call.unfit_but("urls", "a URL or a list of them", Value::new_none(), URLS);
    }
    let urls = read_words(call, "urls", source_ranges::eureka_url, MOST_SERVERS, URLS);
    let app = read_word(call, "app", source_ranges::registered_name);
    let secure = call.truth("secure").unwrap_or(false);
    let words = [("ip", Some(EurekaHost::Ip)), ("name", Some(EurekaHost::Name))];
    let host = call.choice("host", &words).unwrap_or_default();
    let poll_ns = read_duration(call, "poll", POLL_NS, USUAL_POLL_NS);
    let auth = read_path(call, "auth");
    let tls = read_tls(call, &urls);
    let of = |app| SourceKind::Eureka(EurekaSource { urls, app, secure, host, poll_ns, auth, tls });
    make(call, app.map(of), USUAL)
}
