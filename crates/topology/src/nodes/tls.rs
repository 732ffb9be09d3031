//! `tls.server([(cert, key), ...], client_ca=None, client_auth="require"|"request")` (one pair may stand alone) and
//! `tls.client(ca="system"|"file.pem", name=None, cert=None, key=None)`: TLS on a listener, and to an origin.

use super::{About, Function, Group, examples, may, maybe, need};
use crate::address::{self, Address};
use crate::call::{Call, Outcome, list};
use crate::data::beside;
use crate::http::{Wrong, short};
use crate::plan::{CertificateFiles, ClientAuth, TlsClient, TlsServer};
use crate::value::{TlsClientValue, TlsServerValue};
use starlark::values::Value;

pub(super) static FUNCTIONS: [Function; 2] = [
    Function {
        name: "tls.server",
        about: About {
            group: Group::Serve,
            meaning: "Certificates of a listener.",
            simulated: "nothing; the files are not looked at",
            served: "read at start and again at each reload; the first certificate that covers the \
                client's name is shown, else the first",
            draws: "nothing",
            example: examples::TLS,
        },
        args: &[
            need("cert", "a path, or a list of (cert, key)", "PEM files"),
            maybe("key", "a path", "needed where `cert` is a path", "the key of `cert`"),
            may(
                "client_ca",
                "a path",
                "None",
                "who signs certificates of clients; `None`: they are not \
                asked for any",
            ),
            maybe(
                "client_auth",
                "\"require\" | \"request\"",
                "\"require\", with `client_ca`",
                "whether \
                a client must show one",
            ),
        ],
        more: &[],
        make: server,
    },
    Function {
        name: "tls.client",
        about: About {
            group: Group::Serve,
            meaning: "TLS to an origin, which is always verified.",
            simulated: "nothing; the files are not looked at",
            served: "the origin must show a certificate for its name",
            draws: "nothing",
            example: examples::TLS,
        },
        args: &[
            may("ca", "\"system\" or a path", "\"system\"", "who may have signed the origin's certificate"),
            maybe("name", "a host", "the host of `addr`", "the name that the certificate must cover"),
            may("cert", "a path", "None", "a certificate of our own, with `key`"),
            may("key", "a path", "None", "its key"),
        ],
        more: &[],
        make: client,
    },
];

/// Certificates of a listener at most: each handshake looks through them.
pub(crate) const MOST_CERTIFICATES: usize = 1000;

const SERVER: &str = "write `tls.server(\"cert.pem\", \"key.pem\")`, or a list of such pairs: `tls.server([(\"a.pem\", \"a.key\"), (\"b.pem\", \"b.key\")])`";
const CLIENT: &str = "write `tls.client(cert=\"cert.pem\", key=\"key.pem\")`, or leave both out";

fn server<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let certificates = certificates(call);
    let client_ca = file(call, "client_ca");
    let words = [("require", Some(ClientAuth::Require)), ("request", Some(ClientAuth::Request))];
    let client_auth = call.choice("client_auth", &words).unwrap_or_default();
    if call.value_or_none("client_ca").is_none() && call.value_or_none("client_auth").is_some() {
        call.wrong_but(
            "`client_auth` of `tls.server` says whom to ask, and there is no `client_ca` to judge by",
            "write `client_ca=\"clients.pem\"` as well, or leave it out",
        );
    }
    if call.failed() {
        return Ok(None);
    }
    Ok(Some(call.heap().alloc(TlsServerValue(TlsServer { certificates, client_ca, client_auth }))))
}

/// A pair that stands alone, or a list of pairs.
fn certificates<'v>(call: &mut Call<'v, '_, '_, '_>) -> Vec<CertificateFiles> {
    let Some(first) = call.value("cert") else { return Vec::new() };
    if first.unpack_str().is_some() {
        let cert = file(call, "cert");
        let key = file(call, "key");
        if key.is_none() && !call.failed() {
            call.wrong_but("`tls.server` has a certificate without a key", SERVER);
        }
        return cert.zip(key).map(|(cert, key)| CertificateFiles { cert, key }).into_iter().collect();
    }
    let Some(pairs) = list(first) else {
        call.unfit_but("cert", "a path or a list of pairs", first, SERVER);
        return Vec::new();
    };
    if call.value_or_none("key").is_some() {
        call.wrong_but("`key` of `tls.server` has no certificate: each pair of the list has its own", SERVER);
    }
    if pairs.is_empty() || pairs.len() > MOST_CERTIFICATES {
        let (count, most) = (pairs.len(), MOST_CERTIFICATES);
        call.wrong_but(format!("`tls.server` needs 1 to {most} pairs, and has {count}"), SERVER);
        return Vec::new();
    }
    pairs.into_iter().filter_map(|pair| one(call, pair)).collect()
}

/// One pair of a list.
fn one<'v>(call: &mut Call<'v, '_, '_, '_>, pair: Value<'v>) -> Option<CertificateFiles> {
    let both = if pair.unpack_str().is_some() { None } else { list(pair) };
    let Some([cert, key]) = both.as_deref() else {
        call.unfit_but("cert", "a list of pairs of paths", pair, SERVER);
        return None;
    };
    let (cert, key) = (file_of(call, "a certificate", *cert), file_of(call, "a key", *key));
    Some(CertificateFiles { cert: cert?, key: key? })
}

fn client<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let system = call.value_or_none("ca").and_then(|ca| ca.unpack_str()) == Some("system");
    let ca = if system { None } else { file(call, "ca") };
    let name = call.word("name", name);
    let (cert, key) = (file(call, "cert"), file(call, "key"));
    if cert.is_some() != key.is_some() && !call.failed() {
        let (there, missing) = if cert.is_some() { ("cert", "key") } else { ("key", "cert") };
        call.wrong_but(format!("`tls.client` has a `{there}` without a `{missing}`"), CLIENT);
    }
    if call.failed() {
        return Ok(None);
    }
    let certificate = cert.zip(key).map(|(cert, key)| CertificateFiles { cert, key });
    Ok(Some(call.heap().alloc(TlsClientValue(TlsClient { ca, name, certificate }))))
}

/// A name of an origin: a host as an address has it, or an IP address.
pub(crate) fn name(text: &str) -> Result<(), Wrong> {
    let is_ip = text.parse::<std::net::IpAddr>().is_ok();
    let is_host = || matches!(Address::parse(&format!("{text}:443")), Some(Address::Name(..)));
    if is_ip || (address::server(&format!("{text}:443")).is_ok() && is_host()) {
        return Ok(());
    }
    let help = "write the name that the origin's certificate is for, as in `name=\"app.example.com\"`";
    Err((format!("\"{}\" is no name of a host", short(text)), Some(help.to_owned())))
}

/// Whether it may be the path of a PEM file.
pub(crate) fn path(text: &str) -> Result<(), Wrong> {
    if text.is_empty() || text.len() > 4096 || text.chars().any(char::is_control) {
        let shown = short(&text.escape_debug().to_string());
        let help = "write the path of a PEM file; it begins in the folder of the file that names it";
        return Err((format!("\"{shown}\" is no path of a file"), Some(help.to_owned())));
    }
    Ok(())
}

/// An argument that is the path of a file, as the plan keeps it.
fn file(call: &mut Call<'_, '_, '_, '_>, name: &str) -> Option<String> {
    let value = call.value_or_none(name)?;
    let what = call.of(name);
    file_of(call, &what, value)
}

fn file_of<'v>(call: &mut Call<'v, '_, '_, '_>, what: &str, value: Value<'v>) -> Option<String> {
    let name = call.word_of(what, value, path)?;
    let text = beside(call, &name).to_str().map(str::to_owned);
    if text.is_none() {
        call.wrong(format!(
            "{what}: the folder of \"{name}\" has a name that is no text, and a plan could not keep it"
        ));
    }
    text
}
