//! `tls.server([(cert, key), ...], client_ca=None, client_auth="require"|"request", min_version="1.2"|"1.3",
//! watch=False)` (a single pair needs no list) and `tls.client(ca="system"|"file.pem", name=None, cert=None, key=None,
//! watch=False)`: TLS on a listener, and to an origin.

use super::{Description, Function, Group, examples, may, maybe, need};
use crate::language::call::{Call, Outcome, list};
use crate::language::data::beside;
use crate::language::value::{TlsClientValue, TlsServerValue};
use starlark::values::Value;
use weir_plan::ranges::{MOST_CERTIFICATES, tls_name, tls_path};
use weir_plan::{CertificateFiles, ClientAuth, MinVersion, TlsClient, TlsServer};

pub(super) static FUNCTIONS: [Function; 2] = [
    Function {
        name: "tls.server",
        about: Description {
            group: Group::Serve,
            meaning: "Certificates of a listener.",
            simulated: "nothing; the files are not read",
            served: "read at start, at each reload and, with `watch`, when they change; the first \
                certificate that covers the client's name is shown, otherwise the first",
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
                "the authority that signs clients' certificates; `None`: clients are not asked for one",
            ),
            maybe(
                "client_auth",
                "\"require\" | \"request\"",
                "\"require\", with `client_ca`",
                "whether \
                a client must show one",
            ),
            may(
                "min_version",
                "\"1.2\" | \"1.3\"",
                "\"1.2\"",
                "the least version of TLS that a client may speak",
            ),
            may("watch", "True | False", "False", WATCH),
        ],
        more: &[],
        make: server,
    },
    Function {
        name: "tls.client",
        about: Description {
            group: Group::Serve,
            meaning: "TLS to an origin, which is always verified.",
            simulated: "nothing; the files are not read",
            served: "the origin must show a certificate for its name",
            draws: "nothing",
            example: examples::TLS,
        },
        args: &[
            may(
                "ca",
                "\"system\" or a path",
                "\"system\"",
                "the authority that must have signed the \
                origin's certificate",
            ),
            maybe("name", "a host", "the host of `addr`", "the name that the certificate must cover"),
            may("cert", "a path", "None", "a certificate of our own, with `key`"),
            may("key", "a path", "None", "its key"),
            may("watch", "True | False", "False", WATCH),
        ],
        more: &[],
        make: client,
    },
];

const WATCH: &str = "follow the files, and use them once they are others that fit together";
const SERVER: &str = "write `tls.server(\"cert.pem\", \"key.pem\")`, or a list of such pairs: \
    `tls.server([(\"a.pem\", \"a.key\"), (\"b.pem\", \"b.key\")])`";
const CLIENT: &str = "write `tls.client(cert=\"cert.pem\", key=\"key.pem\")`, or leave both out";

fn server<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let certificates = certificates(call);
    let client_ca = file(call, "client_ca");
    let words = [("require", Some(ClientAuth::Require)), ("request", Some(ClientAuth::Request))];
    let client_auth = call.choice("client_auth", &words).unwrap_or_default();
    let versions = [("1.2", Some(MinVersion::Tls12)), ("1.3", Some(MinVersion::Tls13))];
    let min_version = call.choice("min_version", &versions).unwrap_or_default();
    let watch = call.truth("watch").unwrap_or_default();
    if call.value_or_none("client_ca").is_none() && call.value_or_none("client_auth").is_some() {
        call.wrong_but(
            "`client_auth` of `tls.server` has no effect without `client_ca`, by which certificates are \
                verified",
            "write `client_ca=\"clients.pem\"` as well, or leave it out",
        );
    }
    if call.failed() {
        return Ok(None);
    }
    let tls = TlsServer { certificates, client_ca, client_auth, min_version, watch };
    Ok(Some(call.heap().alloc(TlsServerValue(tls))))
}

/// A single pair, or a list of pairs.
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
        call.wrong_but(format!("`tls.server` needs 1 to {most} pairs, not {count}"), SERVER);
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
    let name = call.word("name", tls_name);
    let (cert, key) = (file(call, "cert"), file(call, "key"));
    if cert.is_some() != key.is_some() && !call.failed() {
        let (there, missing) = if cert.is_some() { ("cert", "key") } else { ("key", "cert") };
        call.wrong_but(format!("`tls.client` has a `{there}` without a `{missing}`"), CLIENT);
    }
    let watch = call.truth("watch").unwrap_or_default();
    if watch && ca.is_none() && cert.is_none() && !call.failed() {
        call.wrong_but(
            "`watch` of `tls.client` has no effect without a file: the system's authorities are read at the start \
                and at each reload",
            "write `ca=\"ca.pem\"`, or `cert` and `key`, or leave it out",
        );
    }
    if call.failed() {
        return Ok(None);
    }
    let certificate = cert.zip(key).map(|(cert, key)| CertificateFiles { cert, key });
    Ok(Some(call.heap().alloc(TlsClientValue(TlsClient { ca, name, certificate, watch }))))
}

/// An argument that is the path of a file, as the plan keeps it.
fn file(call: &mut Call<'_, '_, '_, '_>, name: &str) -> Option<String> {
    let value = call.value_or_none(name)?;
    let what = call.describe(name);
    file_of(call, &what, value)
}

fn file_of<'v>(call: &mut Call<'v, '_, '_, '_>, what: &str, value: Value<'v>) -> Option<String> {
    let name = call.word_of(what, value, tls_path)?;
    let text = beside(call, &name).to_str().map(str::to_owned);
    if text.is_none() {
        call.wrong(format!(
            "{what}: the folder of \"{name}\" has a name that is not UTF-8, which a plan cannot hold"
        ));
    }
    text
}
