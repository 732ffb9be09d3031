//! `find.*(..., f, size=1, shrink=0.5, grace=5*minutes, name=None, lag=0*s, life=None)`: fleets whose members a file
//! or a registry lists. Each source is a file here; this one has what all of them take.

pub(super) mod consul;
pub(super) mod dns;
pub(super) mod eureka;
pub(super) mod file;
pub(super) mod kubernetes;

use super::fleet::{self, LAG};
use super::life::LIFE;
use super::{Arg, NAME, may, need};
use crate::language::call::{Call, Outcome, list};
use crate::language::data::beside;
use crate::language::value::TlsClientValue;
use starlark::values::Value;
use weir_plan::duration::show_ns;
use weir_plan::http::InvalidWord;
use weir_plan::source_ranges;
use weir_plan::{Edge, FleetSource, NodeId, SourceKind, Spec, TlsClient};

/// What makes a member.
const F: Arg =
    need("f", "a function", "makes a `server` without `addr`, which each member is; called once, as `f()`");

/// What every `find.*` takes besides its own arguments.
static MORE: [Arg; 6] = [
    may("size", "0 or more", "1", "how many members a simulation begins with"),
    may(
        "shrink",
        "0 to 1, or None",
        "0.5",
        "a list that is shorter than the members by more than this share is doubted; `None`: every list is believed",
    ),
    may(
        "grace",
        "a duration",
        "5*minutes",
        "how long a member that only a doubted list lacks is still picked",
    ),
    NAME,
    LAG,
    LIFE,
];

/// What a simulation does with every source.
const SIMULATED: &str =
    "a fleet of `size` members and a source that is right; each balancer doubts its lists as when served";

/// What the registries have in common when served.
const SERVED: &str = "members are added and removed as the registry lists them, without a reload; without an \
    answer the last list stays";

/// How long a member that only a doubted list lacks is picked, ns.
const GRACE_NS: u64 = 300_000_000_000;

/// How TLS to a registry is written.
const TLS: &str = "write `tls=tls.client(ca=\"ca.pem\")`";

/// Makes the fleet of a call. `from` is its source, or `None` where something was wrong with that; `usual` is how
/// such a call is written.
fn make<'v>(call: &mut Call<'v, '_, '_, '_>, from: Option<SourceKind>, usual: &str) -> Outcome<'v> {
    let size = call.count("size", 0, u32::MAX).or_else(|| call.value("size").is_none().then_some(1));
    let shrink = if call.is_none("shrink") { None } else { Some(call.share("shrink").unwrap_or(0.5)) };
    let grace_ns = call.duration("grace").unwrap_or(GRACE_NS);
    let Some((first, root)) = fleet::template(call, usual)? else { return Ok(None) };
    let (Some(from), Some(size)) = (from, size) else { return Ok(None) };
    if !is_one_server(call, root) {
        let lister = if matches!(from, SourceKind::File(_)) { "file" } else { "registry" };
        let message = format!(
            "the function of `{}` must make exactly one `server`, without `addr`: the {lister} says where it is",
            call.name()
        );
        call.wrong_but(message, format!("write `{usual}`"));
        return Ok(None);
    }
    fleet::add(call, size, first, root, Some(FleetSource { from, shrink, grace_ns }))
}

/// Whether the only way from a node leads to a server without an address. What models it is no server of the
/// source's.
fn is_one_server(call: &Call<'_, '_, '_, '_>, root: NodeId) -> bool {
    let state = call.context.state.borrow();
    let mut at = root;
    loop {
        match (state.graph.spec(at), state.graph.node(at).map(|node| node.to)) {
            (Some(Spec::Server { addr, .. }), _) => return addr.is_none(),
            (Some(_), Some(Edge::Node(next))) => at = next,
            _ => return false,
        }
    }
}

/// The check of a word.
type Check = fn(&str) -> Result<(), InvalidWord>;

/// A string that must be there, which passes a check.
fn read_word(call: &mut Call<'_, '_, '_, '_>, name: &str, check: Check) -> Option<String> {
    if call.is_none(name) {
        call.unfit(name, "a string", Value::new_none());
    }
    call.word(name, check)
}

/// A string or a list of strings, at most `most`, each of which passes a check; none where it is not given.
/// `help` says how they are written.
fn read_words(
    call: &mut Call<'_, '_, '_, '_>,
    name: &str,
    check: Check,
    most: usize,
    help: &str,
) -> Vec<String> {
    let count = call.value_or_none(name).and_then(list).map(|items| items.len());
    if let Some(count) = count.filter(|count| !(1..=most).contains(count)) {
        let what = call.describe(name);
        call.wrong_but(format!("{what} must have 1 to {most} addresses, not {count}"), help);
        return Vec::new();
    }
    call.words(name, check)
}

/// The path of a file, as the plan keeps it: from the folder of the file that names it.
fn read_path(call: &mut Call<'_, '_, '_, '_>, name: &str) -> Option<String> {
    let path = call.word(name, source_ranges::path)?;
    let text = beside(call, &path).to_str().map(str::to_owned);
    if text.is_none() {
        let what = call.describe(name);
        call.wrong_but(
            format!(
                "{what}: the folder of \"{path}\" has a name that is not UTF-8, which a plan cannot hold"
            ),
            "give that folder another name, or write a path that begins with `/`",
        );
    }
    text
}

/// A duration within bounds, ns, with what it is where it is not given.
fn read_duration(call: &mut Call<'_, '_, '_, '_>, name: &str, bounds: (u64, u64), default_ns: u64) -> u64 {
    let Some(ns) = call.duration(name) else { return default_ns };
    let (least, most) = bounds;
    if !(least..=most).contains(&ns) {
        let [ns, least, most, default] = [ns, least, most, default_ns].map(|ns| show_ns(i128::from(ns)));
        let what = call.describe(name);
        call.wrong_but(
            format!("{what} must be from {least} to {most}, not {ns}"),
            format!("leave it out for {default}"),
        );
    }
    ns
}

/// The number of a port; `None` where it is not given.
fn read_port(call: &mut Call<'_, '_, '_, '_>) -> Option<u16> {
    let value = call.value_or_none("port")?;
    if value.unpack_i32() == Some(0) {
        let what = call.describe("port");
        call.wrong_but(
            format!("{what} is 0, and no process listens at that port"),
            "write the port of the members, such as `port=8080`",
        );
        return None;
    }
    call.whole("port", 1, u64::from(u16::MAX)).and_then(|port| u16::try_from(port).ok())
}

/// TLS to a registry with these addresses.
fn read_tls(call: &mut Call<'_, '_, '_, '_>, urls: &[String]) -> Option<TlsClient> {
    let tls = call.made::<TlsClientValue>("tls", "TLS to the registry", TLS)?.0.clone();
    if !urls.is_empty() && !urls.iter().any(|url| source_ranges::is_https(url)) {
        let what = call.describe("tls");
        call.wrong_but(
            format!("{what} has no effect: the registry is asked by http, without TLS"),
            "write its address with `https://`, or leave `tls` out",
        );
    }
    Some(tls)
}
