//! The answer for each path. Errors are sentences with a remedy.

use crate::access::Channel;
use crate::answer::{Answer, Form, answer, json, unknown};
use crate::server::Server;
use crate::watcher::Unanswered;
use crate::{events, page, post, topology};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderValue};
use hyper::{HeaderMap, Method, Request, StatusCode};
use weir_serve::{Config, Exposition, Readiness};

/// The answer to a request.
pub(crate) async fn respond(server: &Server, via: Channel, request: Request<Incoming>) -> Answer {
    let form = Form::from_accept(request.headers());
    if let Err(why) = server.access.check_host(via, request.headers()) {
        return form.sentence(StatusCode::FORBIDDEN, &why.to_string());
    }
    let is_head = request.method() == Method::HEAD;
    let answered = if is_head || request.method() == Method::GET {
        get(server, &request, form).await
    } else {
        let may_change = server.access.check_token(via, request.headers());
        post::answer(server, may_change, request, form).await
    };
    answered.unwrap_or_else(|Unanswered| {
        form.sentence(
            StatusCode::SERVICE_UNAVAILABLE,
            "the event loops did not answer; try again, and see the error log",
        )
    })
}

async fn get(server: &Server, request: &Request<Incoming>, form: Form) -> Result<Answer, Unanswered> {
    let uri = request.uri();
    let has = |what: &str| uri.query().is_some_and(|query| query.split('&').any(|part| part == what));
    Ok(match uri.path() {
        "/" => page::answer(&*server.watcher.look().await?, has("all=1")),
        "/events" => events::answer(server, has("all=1"), form),
        "/healthz" => health(server, form),
        "/ready" => ready(server, form).await?,
        "/metrics" => metrics(server, request.headers()).await?,
        "/topology" => {
            let by_loop = has("loops=1");
            server.watcher.ask(move |served| topology::answer(served, by_loop)).await?
        }
        "/config" => {
            server.watcher.ask(|served| json(&topology::config(&served.file(), &served.config()))).await?
        }
        path @ ("/reload" | "/upgrade" | "/drain") => form.only("POST", path),
        path if path.starts_with("/targets/") => form.only("POST", path),
        path => unknown(form, path),
    })
}

fn health(server: &Server, form: Form) -> Answer {
    let stalled = server.watcher.stalled();
    match stalled.is_empty() {
        true => form.sentence(StatusCode::OK, "well"),
        false => form.sentence(StatusCode::SERVICE_UNAVAILABLE, &stalled.join("; ")),
    }
}

async fn ready(server: &Server, form: Form) -> Result<Answer, Unanswered> {
    let not = |why: &str| form.sentence(StatusCode::SERVICE_UNAVAILABLE, why);
    let (readiness, config) = server.watcher.ask(|served| (served.readiness(), served.config())).await?;
    Ok(match readiness {
        Readiness::Ready(notes) => {
            let all: Vec<&str> =
                [reloads(&config)].into_iter().chain(notes.iter().map(String::as_str)).collect();
            form.sentence(StatusCode::OK, &all.join("; "))
        }
        Readiness::Draining => not("draining"),
        Readiness::NotReady(why) => not(&why.join("; ")),
    })
}

/// The preferred format: media types with their `q` (RFC 9110 §12.5.1), of equals the first.
fn preferred<'a>(accepts: impl Iterator<Item = &'a str>) -> Exposition {
    let mut best = (0.0, Exposition::Prometheus);
    for asked in accepts {
        let mut words = asked.split(';').map(str::trim);
        let format = match words.next().unwrap_or_default() {
            "application/openmetrics-text" => Exposition::OpenMetrics,
            "application/vnd.google.protobuf" if asked.contains("delimited") => Exposition::Protobuf,
            "text/plain" => Exposition::Prometheus,
            _ => continue,
        };
        let q = words.find_map(|word| word.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
        if q > best.0 {
            best = (q, format);
        }
    }
    best.1
}

/// That it is ready, and the state of reloads.
fn reloads(config: &Config) -> &'static str {
    match config.last_reload {
        _ if config.reload_under_way => "ready; a reload is under way",
        Some(Err(_)) => {
            "ready; the last reload failed, so the topology from before is still served (/config says why)"
        }
        _ => "ready",
    }
}

async fn metrics(server: &Server, headers: &HeaderMap) -> Result<Answer, Unanswered> {
    let accepts = headers.get_all(ACCEPT).iter().filter_map(|value: &HeaderValue| value.to_str().ok());
    let format = preferred(accepts.flat_map(|value| value.split(',')));
    let bytes = server.watcher.ask(move |served| served.scrape(format)).await?;
    Ok(answer(StatusCode::OK, format.content_type(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_that_is_asked_for_most_is_given() {
        // The last two as Prometheus sends them, without and with native histograms.
        for (accepts, format) in [
            ("", Exposition::Prometheus),
            ("*/*", Exposition::Prometheus),
            ("application/openmetrics-text; version=1.0.0", Exposition::OpenMetrics),
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4",
                Exposition::Prometheus,
            ),
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Exposition::OpenMetrics,
            ),
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Exposition::Protobuf,
            ),
        ] {
            assert_eq!(preferred(accepts.split(',')), format, "{accepts}");
        }
    }
}
