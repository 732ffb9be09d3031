//! Checks of the parts for serving: listeners, origins, fixed answers, redirects, rewriting.

use super::around::between;
use super::asked::{compared, lower, word};
use super::spec::{dist, duration, least_1, optional, share};
use crate::http;
use crate::ranges::{self, HEAD_BYTES, MOST_BODY, MOST_CERTIFICATES, MOST_FIELDS, MOST_LOOPS, MOST_STREAMS};
use crate::{
    CertificateFiles, ClientAuth, Http, Listen, Origin, OriginProtocol, Rewrite, TlsClient, TlsServer,
};
use crate::{address, log_field, path, template};

type Checked = Result<(), String>;

/// A server.
pub(super) fn server(addr: Option<&str>, origin: &Origin) -> Checked {
    addr.map_or(Ok(()), |a| word("addr", a, address::server))?;
    origin.tls.as_ref().map_or(Ok(()), tls_client).map_err(|why| format!("origin.tls.{why}"))?;
    limits(&[
        ("connect_timeout_ns", origin.connect_timeout_ns),
        ("response_timeout_ns", origin.response_timeout_ns),
        ("body_timeout_ns", origin.body_timeout_ns),
        ("idle_timeout_ns", origin.idle_timeout_ns),
        ("h2_idle_timeout_ns", origin.h2_idle_timeout_ns),
        ("max_age_ns", origin.max_age_ns),
    ])
    .and_then(|()| counts(&[("max_requests", origin.max_requests)]))
    .and_then(|()| origin.connect.as_ref().map_or(Ok(()), dist).map_err(|why| format!("connect: {why}")))
    .and_then(|()| duration(origin.connect_cost_ns).map_err(|why| format!("connect_cost_ns {why}")))
    .and_then(|()| between("max_streams", u64::from(origin.max_streams), 1, u64::from(MOST_STREAMS)))
    .and_then(|()| match (origin.send_proxy, origin.protocol) {
        (Some(_), OriginProtocol::H2) => {
            Err("send_proxy: a connection of HTTP/2 does not belong to one client".to_owned())
        }
        _ => Ok(()),
    })
    .map_err(|why| format!("origin.{why}"))
}

/// A listener.
pub(super) fn listen(listen: &Listen) -> Checked {
    word("addr", &listen.addr, address::listener)?;
    listen.loops.map_or(Ok(()), |n| between("loops", u64::from(n), 1, u64::from(MOST_LOOPS)))?;
    listen.tls.as_ref().map_or(Ok(()), tls_server).map_err(|why| format!("tls.{why}"))?;
    settings(&listen.http).map_err(|why| format!("http.{why}"))?;
    listen.check_peers().map_err(|why| format!("http: {why}"))
}

/// TLS on a listener.
fn tls_server(tls: &TlsServer) -> Checked {
    let most = MOST_CERTIFICATES as u64;
    between("certificates", tls.certificates.len() as u64, 1, most)?;
    tls.certificates.iter().try_for_each(certificate)?;
    if tls.client_ca.is_none() && tls.client_auth != ClientAuth::default() {
        return Err("client_auth: there is no client_ca".to_owned());
    }
    tls.client_ca.as_deref().map_or(Ok(()), |ca| word("client_ca", ca, ranges::tls_path))
}

/// TLS to an origin or a registry.
pub(super) fn tls_client(tls: &TlsClient) -> Checked {
    tls.ca.as_deref().map_or(Ok(()), |ca| word("ca", ca, ranges::tls_path))?;
    tls.name.as_deref().map_or(Ok(()), |name| word("name", name, ranges::tls_name))?;
    if tls.watch && tls.ca.is_none() && tls.certificate.is_none() {
        return Err("watch: there is no file to watch".to_owned());
    }
    tls.certificate.as_ref().map_or(Ok(()), certificate)
}

fn certificate(files: &CertificateFiles) -> Checked {
    word("cert", &files.cert, ranges::tls_path)?;
    word("key", &files.key, ranges::tls_path)
}

fn settings(h: &Http) -> Checked {
    if h.versions.is_empty() || !h.versions.is_sorted_by(|a, b| a < b) {
        return Err("versions must be ascending, without duplicates, and at least one".to_owned());
    }
    between("max_head", h.max_head, HEAD_BYTES.0, HEAD_BYTES.1)?;
    between("max_headers", u64::from(h.max_headers), 1, u64::from(MOST_FIELDS))?;
    between("max_streams", u64::from(h.max_streams), 1, u64::from(MOST_STREAMS))?;
    limits(&[
        ("head_timeout_ns", h.head_timeout_ns),
        ("body_timeout_ns", h.body_timeout_ns),
        ("write_timeout_ns", h.write_timeout_ns),
        ("idle_timeout_ns", h.idle_timeout_ns),
        ("max_age_ns", h.max_age_ns),
        ("tunnel_idle_ns", h.tunnel_idle_ns),
    ])?;
    counts(&[
        ("max_requests", h.max_requests),
        ("max_clients", h.max_clients),
        ("max_clients_per_address", h.max_clients_per_address),
    ])?;
    duration(h.drain_delay_ns)?;
    duration(h.drain_timeout_ns)?;
    h.upgrade.iter().try_for_each(|u| lower("upgrade", u, http::upgrade))?;
    h.connect.iter().try_for_each(|c| lower("connect", c, address::authority))?;
    h.trusted.iter().try_for_each(|t| word("trusted", t, http::peers))?;
    h.proxy_from.iter().try_for_each(|t| word("proxy_from", t, http::peers))?;
    share("trace", h.trace)?;
    share("log_sample", h.log_sample)?;
    h.log_fields.iter().try_for_each(|field| word("log_fields", field, log_field::log_field))?;
    h.check_log().map_err(|why| why.to_string())?;
    h.request_id.as_deref().map_or(Ok(()), |name| lower("request_id", name, http::own_field))?;
    h.access_log.as_deref().map_or(Ok(()), |log| word("access_log", log, ranges::log))
}

/// A fixed answer.
pub(super) fn respond(status: u16, body: &str, headers: &[(String, String)]) -> Checked {
    between("status", u64::from(status), 200, 599)?;
    if body.len() > MOST_BODY || (!body.is_empty() && ranges::lacks_body(status)) {
        return Err(format!("body: {} bytes are too many for an answer with status {status}", body.len()));
    }
    fields("headers", headers, http::field_value)
}

/// A redirection.
pub(super) fn redirect(to: &str, status: u16) -> Checked {
    word("to", to, template::location)?;
    if ranges::redirects(status) { Ok(()) } else { Err(format!("status: {status} does not redirect")) }
}

/// Rewriting.
pub(super) fn rewrite(rewrite: &Rewrite) -> Checked {
    if let Some((from, to)) = &rewrite.path {
        compared(from, path::written::prefix)?;
        word("path", to, path::written::prefix)?;
    }
    fields("set", &rewrite.set, template::field_value)?;
    fields("response_set", &rewrite.response_set, template::field_value)?;
    rewrite.remove.iter().try_for_each(|n| lower("remove", n, http::own_field))?;
    rewrite.response_remove.iter().try_for_each(|n| lower("response_remove", n, http::own_field))
}

/// Names and values, each name once.
fn fields(
    what: &str,
    all: &[(String, String)],
    value_is: fn(&str) -> Result<(), http::InvalidWord>,
) -> Checked {
    for (i, (name, value)) in all.iter().enumerate() {
        lower(what, name, http::own_field)?;
        word(what, value, value_is)?;
        if all[..i].iter().any(|(n, _)| n == name) {
            return Err(format!("{what}: \"{name}\" is given twice"));
        }
    }
    Ok(())
}

/// Limits of time: none, or above 0.
fn limits(all: &[(&str, Option<u64>)]) -> Checked {
    all.iter().try_for_each(|(what, ns)| optional(*ns).map_err(|why| format!("{what} {why}")))
}

/// Limits of number: none, or at least 1.
fn counts(all: &[(&str, Option<u64>)]) -> Checked {
    all.iter().try_for_each(|(what, n)| n.map_or(Ok(()), |n| least_1(what, n)))
}
