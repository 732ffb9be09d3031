//! `http(versions=["h1", "h2"], max_head=32*KiB, ...)`: what a listener allows, and for how long it waits.
//!
//! - In virtual time: nothing.
//! - In the proxy: limits (a head has 128 KiB at most) and timeouts towards clients, whom to trust, what is logged, how it drains.
//! - Draws: nothing.

use super::{Function, may};
use crate::address;
use crate::call::{Call, Outcome};
use crate::http;
use crate::plan::{HalfClose, Http, HttpVersion, LogFormat, Paths};
use crate::value::HttpValue;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "http",
    args: &[
        may("versions"),
        may("max_head"),
        may("max_headers"),
        may("max_body"),
        may("head_timeout"),
        may("body_timeout"),
        may("write_timeout"),
        may("idle_timeout"),
        may("max_requests"),
        may("max_age"),
        may("max_streams"),
        may("max_clients"),
        may("max_clients_per_address"),
        may("upgrade"),
        may("connect"),
        may("tunnel_idle"),
        may("half_close"),
        may("trusted"),
        may("proxy_from"),
        may("paths"),
        may("drain_delay"),
        may("drain_timeout"),
        may("access_log"),
        may("log_format"),
    ],
    more: &[],
    make,
}];

/// The least and the greatest size of a head, bytes: the proxy reads it into one buffer of 128 KiB.
pub(crate) const HEAD_BYTES: (u64, u64) = (256, 128 << 10);
/// Fields of a head at most.
pub(crate) const MOST_FIELDS: u32 = 10_000;
/// Streams of a connection at most (RFC 9113).
pub(crate) const MOST_STREAMS: u32 = i32::MAX as u32;

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let plain = Http::default();
    let (least, most) = HEAD_BYTES;
    let lower = |list: Vec<String>| once(list.into_iter().map(|t| t.to_ascii_lowercase()).collect());
    let network: crate::call::Check = |text| http::network(text).map(|_| ());
    let http = Http {
        versions: versions(call).unwrap_or(plain.versions),
        max_head: call.size("max_head", least, most).unwrap_or(plain.max_head),
        max_headers: call.count("max_headers", 1, MOST_FIELDS).unwrap_or(plain.max_headers),
        max_body: if call.is_none("max_body") { None } else { call.bytes("max_body") },
        head_timeout_ns: call.limit_or("head_timeout", plain.head_timeout_ns),
        body_timeout_ns: call.limit_or("body_timeout", plain.body_timeout_ns),
        write_timeout_ns: call.limit_or("write_timeout", plain.write_timeout_ns),
        idle_timeout_ns: call.limit_or("idle_timeout", plain.idle_timeout_ns),
        max_requests: call.most_or("max_requests", plain.max_requests),
        max_age_ns: call.limit_or("max_age", plain.max_age_ns),
        max_streams: call.count("max_streams", 1, MOST_STREAMS).unwrap_or(plain.max_streams),
        max_clients: call.most_or("max_clients", plain.max_clients),
        max_clients_per_address: call.most_or("max_clients_per_address", plain.max_clients_per_address),
        upgrade: call.several("upgrade", http::upgrade).map_or(plain.upgrade, lower),
        connect: call.several("connect", address::authority).map_or(plain.connect, lower),
        tunnel_idle_ns: call.limit_or("tunnel_idle", plain.tunnel_idle_ns),
        half_close: call
            .choice("half_close", &[("cancel", Some(HalfClose::Cancel)), ("answer", Some(HalfClose::Answer))])
            .unwrap_or_default(),
        trusted: call.several("trusted", network).map_or(plain.trusted, once),
        proxy_from: call.several("proxy_from", network).map_or(plain.proxy_from, once),
        paths: call
            .choice("paths", &[("safe", Some(Paths::Safe)), ("raw", Some(Paths::Raw))])
            .unwrap_or_default(),
        drain_delay_ns: call.duration("drain_delay").unwrap_or(plain.drain_delay_ns),
        drain_timeout_ns: call.duration("drain_timeout").unwrap_or(plain.drain_timeout_ns),
        access_log: call.word("access_log", log),
        log_format: call
            .choice("log_format", &[("json", Some(LogFormat::Json)), ("combined", Some(LogFormat::Combined))])
            .unwrap_or_default(),
    };
    Ok(Some(call.heap().alloc(HttpValue(http))))
}

/// Each once, in the order given.
fn once(list: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::with_capacity(list.len());
    list.into_iter().for_each(|t| {
        if !kept.contains(&t) {
            kept.push(t);
        }
    });
    kept
}

fn versions(call: &mut Call<'_, '_, '_, '_>) -> Option<Vec<HttpVersion>> {
    let words = call.several("versions", |text| match text {
        "h1" | "h2" => Ok(()),
        _ => Err((
            format!("\"{}\" is no version", http::short(text)),
            Some("take \"h1\" (HTTP/1.1) or \"h2\" (HTTP/2)".to_owned()),
        )),
    })?;
    if call.failed() {
        return None;
    }
    if words.is_empty() {
        call.wrong_but("`versions` of `http` is empty: nothing could be spoken", "write `versions=[\"h1\"]`");
    }
    let all = [("h1", HttpVersion::H1), ("h2", HttpVersion::H2)];
    Some(all.into_iter().filter(|(word, _)| words.iter().any(|w| w == word)).map(|(_, v)| v).collect())
}

/// Where a log goes.
pub(crate) fn log(text: &str) -> Result<(), http::Wrong> {
    if text.is_empty() || text.len() > 4096 || text.chars().any(char::is_control) {
        let help = "write \"stdout\", \"stderr\" or a path";
        return Err((
            format!("\"{}\" is no place for a log", http::short(&text.escape_debug().to_string())),
            Some(help.to_owned()),
        ));
    }
    Ok(())
}
