//! `find.dns(domain, f, port=None, type="A"|"SRV", hold=30*s, server=None, ...)`: a fleet whose members are the
//! answers to a name in DNS.

use super::{F, MORE, SIMULATED, make, read_duration, read_port, read_word, read_words};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, may, maybe, need};
use weir_plan::source_ranges::{self, HOLD_NS, MOST_NAME_SERVERS};
use weir_plan::{DnsRecords, DnsSource, SourceKind};

pub(in crate::nodes) static FUNCTIONS: [Function; 1] = [Function {
    name: "find.dns",
    about: Description {
        group: Group::Serve,
        meaning: "Targets that a name in DNS leads to: each address is a member.",
        simulated: SIMULATED,
        served: "the name is asked for again as its TTL ends; each address (A and AAAA), or each target of the SRV \
            records with the lowest priority, is a member; without an answer the last ones stay",
        draws: "nothing",
        example: examples::FIND_DNS,
    },
    args: &[
        need("domain", "a name in DNS", "what is asked for"),
        F,
        maybe(
            "port",
            "1 to 65535",
            "needed with type=\"A\"",
            "the port of all members; SRV records have ports of their own",
        ),
        may(
            "type",
            "\"A\" | \"SRV\"",
            "\"A\"",
            "which records are members: addresses (A and AAAA), or SRV, with ports and weights",
        ),
        may(
            "hold",
            "a duration, at most 1*hours",
            "30*s",
            "how long a member is missing from all answers before it is off the list",
        ),
        may(
            "server",
            "host:port, a list of them, or None",
            "None",
            "the name servers that are asked, for targets of SRV records too; `None`: those of the system",
        ),
    ],
    more: &MORE,
    make: find_dns,
}];

/// How it is written.
const USUAL: &str = "find.dns(\"app.internal\", lambda: server(\"app\"), port=8080)";

/// How long a member is missing from all answers before it is off the list, ns.
const USUAL_HOLD_NS: u64 = 30_000_000_000;

/// How name servers are written.
const SERVER: &str =
    "write `server=\"10.0.0.2:53\"`, a list of such addresses, or leave it out for those of the system";

fn find_dns<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let name = read_word(call, "domain", source_ranges::dns_name);
    let records = read_records(call);
    let hold_ns = read_duration(call, "hold", HOLD_NS, USUAL_HOLD_NS);
    let servers = read_words(call, "server", source_ranges::name_server, MOST_NAME_SERVERS, SERVER);
    let named = name.zip(records);
    let from = named.map(|(name, records)| SourceKind::Dns(DnsSource { name, records, hold_ns, servers }));
    make(call, from, USUAL)
}

/// Which records are members; addresses need a port, and SRV records have one.
fn read_records(call: &mut Call<'_, '_, '_, '_>) -> Option<DnsRecords> {
    let words = [("A", Some(false)), ("SRV", Some(true))];
    let is_srv = match call.value("type") {
        Some(_) => call.choice("type", &words)?,
        None => false,
    };
    let is_given = call.value_or_none("port").is_some();
    match (is_srv, read_port(call)) {
        (false, Some(port)) => Some(DnsRecords::Addresses { port }),
        (true, None) if !is_given => Some(DnsRecords::Services),
        (true, _) => {
            call.wrong_but(
                "`port` of `find.dns` has no meaning with `type=\"SRV\"`: each record has a port of its own",
                "leave `port` out",
            );
            None
        }
        (false, None) => {
            if !is_given && !call.failed() {
                call.wrong_but(
                    "`find.dns` needs a `port`: addresses in DNS have none",
                    "write `port=8080`, or `type=\"SRV\"` for a name with SRV records, which have ports",
                );
            }
            None
        }
    }
}
