//! `http(versions=["h1", "h2"], max_head=32*KiB, ...)`: what a listener allows, and for how long it waits.

use super::{Description, Function, Group, examples, may};
use crate::language::call::{Call, Outcome};
use crate::language::value::HttpValue;
use weir_plan::address;
use weir_plan::http;
use weir_plan::log_field::log_field;
use weir_plan::ranges::{HEAD_BYTES, MOST_FIELDS, MOST_STREAMS, log};
use weir_plan::{HalfClose, Http, HttpVersion, LogFormat, Paths};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "http",
    about: Description {
        group: Group::Serve,
        meaning: "What a listener allows its clients, and how long it waits for them.",
        simulated: "nothing",
        served: "limits and timeouts towards clients, which peers to trust, what is logged, how it drains; \
                trailers of an answer reach a client of HTTP/1.1 only if it sent `TE: trailers`, and a client of \
                HTTP/2 always",
        draws: "nothing",
        example: examples::EDGE,
    },
    args: &[
        may(
            "versions",
            "a list of \"h1\", \"h2\"",
            "[\"h1\", \"h2\"]",
            "which versions of HTTP are \
                spoken",
        ),
        may("max_head", "a size, 256 to 128*KiB", "32*KiB", "the head of a request; longer ones are 431"),
        may("max_headers", "1 or more", "100", "fields of a head; more are 431"),
        may("max_body", "a size or None", "None", "the body of a request; longer ones are 413"),
        may("head_timeout", "a duration or None", "10*s", "how long a whole head may take to arrive"),
        may("body_timeout", "a duration or None", "30*s", "silence between two bytes of a body"),
        may("write_timeout", "a duration or None", "30*s", "how long a client may read nothing"),
        may("idle_timeout", "a duration or None", "60*s", "how long an idle connection is kept"),
        may("max_requests", "1 or more, or None", "100000", "requests on one connection"),
        may("max_age", "a duration or None", "1*hours", "how old a connection may get"),
        may("max_streams", "1 or more", "100", "requests at once on a connection of HTTP/2"),
        may("max_clients", "1 or more, or None", "None", "connections at once"),
        may(
            "max_clients_per_address",
            "1 or more, or None",
            "None",
            "connections at once from one \
                address",
        ),
        may("upgrade", "a list of protocols", "[\"websocket\"]", "which upgrades are allowed"),
        may("connect", "a list of host:port", "[]", "where CONNECT may go"),
        may("tunnel_idle", "a duration or None", "1*hours", "how long a tunnel may be silent"),
        may(
            "half_close",
            "\"cancel\" | \"answer\"",
            "\"cancel\"",
            "whether a client that closes its \
                sending side has left, or still wants the answer",
        ),
        may(
            "trusted",
            "a list of networks and \"unix:\"",
            "[]",
            "peers whose `X-Forwarded-*` fields are trusted; \"unix:\" means all peers of a listener on a Unix \
                socket",
        ),
        may(
            "proxy_from",
            "a list of networks and \"unix:\"",
            "[]",
            "peers that must begin with the PROXY protocol, which names the client",
        ),
        may(
            "paths",
            "\"safe\" | \"raw\"",
            "\"safe\"",
            "whether a path is refused (400) that would match another route once it is normalised",
        ),
        may("drain_delay", "a duration", "0*s", "how long it keeps accepting before it drains"),
        may("drain_timeout", "a duration", "10*s", "how long open requests may take after that"),
        may(
            "access_log",
            "\"stdout\", \"stderr\" or a path",
            "None",
            "where requests are logged; \
                `None`: nowhere",
        ),
        may("log_format", "\"json\" | \"combined\"", "\"json\"", "the format of the log"),
        may(
            "log_fields",
            "a list of \"header:NAME\" and \"response:NAME\"",
            "[]",
            "fields of the request and of the answer in each JSON line, cut at 1 KiB; those that carry \
                credentials are refused",
        ),
        may(
            "log_sample",
            "0.0 to 1.0",
            "1.0",
            "the share of requests below 500 and without an error that are logged; all others are",
        ),
        may(
            "request_id",
            "a header's name",
            "None",
            "the field with a request's id: kept from trusted peers, otherwise created",
        ),
        may("trace", "0.0 to 1.0", "0.0", "the share of requests whose stages are written"),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let plain = Http::default();
    let (least, most) = HEAD_BYTES;
    let lower = |list: Vec<String>| once(list.into_iter().map(|t| t.to_ascii_lowercase()).collect());
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
        trusted: call.several("trusted", http::peers).map_or(plain.trusted, once),
        proxy_from: call.several("proxy_from", http::peers).map_or(plain.proxy_from, once),
        paths: call
            .choice("paths", &[("safe", Some(Paths::Safe)), ("raw", Some(Paths::Raw))])
            .unwrap_or_default(),
        drain_delay_ns: call.duration("drain_delay").unwrap_or(plain.drain_delay_ns),
        drain_timeout_ns: call.duration("drain_timeout").unwrap_or(plain.drain_timeout_ns),
        access_log: call.word("access_log", log),
        log_format: call
            .choice("log_format", &[("json", Some(LogFormat::Json)), ("combined", Some(LogFormat::Combined))])
            .unwrap_or_default(),
        log_fields: call.several("log_fields", log_field).map_or(plain.log_fields, once),
        log_sample: call.share("log_sample").unwrap_or(plain.log_sample),
        request_id: call.word("request_id", http::own_field).map(|name| name.to_ascii_lowercase()),
        trace: call.share("trace").unwrap_or(plain.trace),
    };
    if !call.failed()
        && let Err(invalid) = http.check_log()
    {
        let message = format!("`http`: {invalid}");
        call.wrong_but(message, invalid.remedy.unwrap_or_default());
    }
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
        _ => Err(http::InvalidWord::new(
            format!("\"{}\" is not a version of HTTP", http::short(text)),
            Some("use \"h1\" (HTTP/1.1) or \"h2\" (HTTP/2)".to_owned()),
        )),
    })?;
    if call.failed() {
        return None;
    }
    if words.is_empty() {
        call.wrong_but("`versions` of `http` is empty: name at least one", "write `versions=[\"h1\"]`");
    }
    let all = [("h1", HttpVersion::H1), ("h2", HttpVersion::H2)];
    Some(all.into_iter().filter(|(word, _)| words.iter().any(|w| w == word)).map(|(_, v)| v).collect())
}
