//! Changes: reload, drain, and the operator's setting of a target. Only for authorised requests.

use crate::access::Denial;
use crate::answer::{Answer, Form, unknown};
use crate::limits::{BODY, BODY_BYTES};
use crate::served::{STATES, Service};
use crate::server::Server;
use crate::watcher::Unanswered;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;
use weir_plan::ranges::wrong_weight;
use weir_serve::{CannotSet, SetTarget, TargetState, TargetWeight};

/// The answer to a request other than GET.
pub(crate) async fn answer(
    server: &Server,
    may_change: Result<(), Denial>,
    request: Request<Incoming>,
    form: Form,
) -> Result<Answer, Unanswered> {
    let path = request.uri().path().to_owned();
    let changes = matches!(&path[..], "/reload" | "/upgrade" | "/drain") || path.starts_with("/targets/");
    if !changes {
        let known = ["/", "/events", "/healthz", "/ready", "/metrics", "/topology", "/config"];
        return Ok(if known.contains(&&path[..]) { form.only("GET", &path) } else { unknown(form, &path) });
    }
    if request.method() != Method::POST {
        return Ok(form.only("POST", &path));
    }
    if let Err(why) = may_change {
        return Ok(form.sentence(StatusCode::FORBIDDEN, &why.to_string()));
    }
    let body = match body(request).await {
        Ok(body) => body,
        Err(Refusal { status, why }) => return Ok(form.sentence(status, &why)),
    };
    Ok(match &path[..] {
        "/reload" => match server.watcher.reload().await? {
            Ok(what) => form.sentence(StatusCode::OK, &what),
            Err(why) => form.sentence(StatusCode::CONFLICT, &why.to_string()),
        },
        "/upgrade" => match server.watcher.upgrade().await? {
            Ok(what) => form.sentence(StatusCode::OK, &what),
            Err(why) => form.sentence(StatusCode::CONFLICT, &why),
        },
        "/drain" => {
            server.watcher.ask(|served| served.drain()).await?;
            form.sentence(StatusCode::ACCEPTED, "draining")
        }
        _ => match wanted(&path, &body) {
            Err(Refusal { status, why }) => form.sentence(status, &why),
            Ok((pool, target, set)) => {
                server.watcher.ask(move |served| set_target(served, form, &pool, &target, set)).await?
            }
        },
    })
}

async fn body(request: Request<Incoming>) -> Result<Vec<u8>, Refusal> {
    let whole = Limited::new(request.into_body(), BODY_BYTES).collect();
    match timeout(BODY, whole).await {
        Ok(Ok(body)) => Ok(body.to_bytes().to_vec()),
        Ok(Err(_)) => {
            let why = "the body is larger than 64 KiB, or was cut off";
            Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, why))
        }
        Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body did not come within 10 seconds")),
    }
}

/// `{"state": "drain", "weight": 2, "for": "30s"}`: two settings, which last as long.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetSetting {
    state: Option<String>,
    weight: Option<Value>,
    #[serde(rename = "for")]
    lasts: Option<String>,
}

/// Why a request changes nothing.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    status: StatusCode,
    why: String,
}

impl Refusal {
    fn new(status: StatusCode, why: impl Into<String>) -> Refusal {
        Refusal { status, why: why.into() }
    }
}

/// Pool, target and the setting.
fn wanted(path: &str, body: &[u8]) -> Result<(String, String, SetTarget), Refusal> {
    let wrong = |why: String| Refusal::new(StatusCode::BAD_REQUEST, why);
    let names = path.strip_prefix("/targets/").and_then(|names| names.split_once('/'));
    let Some((pool, target)) =
        names.filter(|(pool, target)| !pool.is_empty() && !target.is_empty() && !target.contains('/'))
    else {
        let why = "write /targets/POOL/TARGET, each percent-encoded (a slash in a name as %2F)";
        return Err(Refusal::new(StatusCode::NOT_FOUND, why));
    };
    let decoded = |name: &str| {
        let name = percent_decode_str(name).decode_utf8();
        name.map(|name| name.into_owned()).map_err(|_| wrong("a name in the path is not UTF-8".to_owned()))
    };
    let (pool, target) = (decoded(pool)?, decoded(target)?);
    let form = r#"send {"state": "up" | "drain" | "eject" | "file", "weight": 2, "for": "30s"}, of which state or weight"#;
    let said: TargetSetting = serde_json::from_slice(body).map_err(|e| wrong(format!("{form}; {e}")))?;
    let state = match said.state.as_deref() {
        None => None,
        Some(word) => Some(
            STATES.iter().find(|(known, _)| *known == word).map(|(_, state)| *state).ok_or_else(|| {
                let word: String = word.chars().take(40).collect();
                wrong(format!("there is no state {word:?}; there are up, drain, eject, file"))
            })?,
        ),
    };
    let weight = match said.weight {
        None => None,
        Some(Value::String(word)) if word == "file" => Some(TargetWeight::File),
        Some(other) => match other.as_f64() {
            Some(weight) => Some(TargetWeight::Number(weight)),
            None => {
                let word: String = other.to_string().chars().take(40).collect();
                return Err(wrong(format!(
                    "the weight is {word}; write a number, or \"file\" to take it back"
                )));
            }
        },
    };
    if let Some(TargetWeight::Number(weight)) = weight
        && let Some(why) = wrong_weight(weight)
    {
        return Err(wrong(format!("the weight {why}")));
    }
    let for_ns = said.lasts.as_deref().map(weir_plan::duration::positive_duration_ns).transpose();
    let for_ns = for_ns.map_err(|e| wrong(e.to_string()))?;
    if state.is_none() && weight.is_none() {
        return Err(wrong(format!("nothing is said of the target; {form}")));
    }
    if for_ns.is_some() && (state == Some(TargetState::File) || weight == Some(TargetWeight::File)) {
        return Err(wrong(
            "\"file\" takes back what was set by hand, for good; leave \"for\" out, or send the other setting by itself"
                .to_owned(),
        ));
    }
    Ok((pool, target, SetTarget { state, weight, for_ns }))
}

fn set_target(served: &dyn Service, form: Form, pool: &str, target: &str, set: SetTarget) -> Answer {
    match served.set_target(pool, target, set) {
        Ok(()) => form.sentence(StatusCode::OK, &format!("{target} of {pool}: {}", said(set))),
        Err(why @ CannotSet::Unknown(_)) => form.sentence(StatusCode::NOT_FOUND, &why.to_string()),
        Err(why @ CannotSet::Refused(_)) => form.sentence(StatusCode::BAD_REQUEST, &why.to_string()),
    }
}

/// The setting, in words.
fn said(set: SetTarget) -> String {
    let word = |state| STATES.iter().find(|(_, known)| *known == state).map(|(word, _)| (*word).to_owned());
    let weight = set.weight.map(|weight| match weight {
        TargetWeight::Number(weight) => format!("weight {weight}"),
        TargetWeight::File => "the weight of the file".to_owned(),
    });
    let state = set
        .state
        .and_then(word)
        .map(|word| if word == "file" { "the state of the file".to_owned() } else { word });
    let all: Vec<String> = state.into_iter().chain(weight).collect();
    let lasts = set.for_ns.map(|ns| format!(" for {} s", ns as f64 / 1e9)).unwrap_or_default();
    all.join(", ") + &lasts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(body: &str) -> Result<SetTarget, String> {
        wanted("/targets/a/b", body.as_bytes()).map(|(_, _, set)| set).map_err(|refusal| refusal.why)
    }

    #[test]
    fn what_is_wanted_is_read_strictly() {
        let drained =
            SetTarget { state: Some(TargetState::Drain), weight: None, for_ns: Some(30_000_000_000) };
        assert_eq!(set(r#"{"state": "drain", "for": "30s"}"#), Ok(drained));
        let weight = |weight| Ok(SetTarget { weight: Some(weight), ..SetTarget::default() });
        assert_eq!(set(r#"{"weight": 0}"#), weight(TargetWeight::Number(0.0)));
        assert_eq!(set(r#"{"weight": 0.001}"#), weight(TargetWeight::Number(0.001)));
        assert_eq!(set(r#"{"weight": 1000000}"#), weight(TargetWeight::Number(1e6)));
        assert_eq!(set(r#"{"weight": "file"}"#), weight(TargetWeight::File));
        for (body, says) in [
            ("", "state or weight"),
            ("{}", "nothing is said"),
            (r#"{"state": "down"}"#, "there are up, drain, eject, file"),
            (r#"{"weight": -1}"#, "from 0.001 to 1000000, not -1"),
            (r#"{"weight": 0.0009}"#, "from 0.001 to 1000000, not 0.0009"),
            (r#"{"weight": 1000001}"#, "from 0.001 to 1000000, not 1000001"),
            (r#"{"weight": 1e19}"#, "from 0.001 to 1000000, not 10000000000000000000"),
            (r#"{"weight": "2"}"#, "write a number, or \"file\""),
            (r#"{"weight": "file", "for": "30s"}"#, "leave \"for\" out"),
            (r#"{"state": "drain", "weight": "file", "for": "30s"}"#, "the other setting by itself"),
            (r#"{"state": "up", "for": "soon"}"#, "soon"),
            (r#"{"state": "file", "for": "30s"}"#, "leave \"for\" out"),
            (r#"{"state": "up", "until": 3}"#, "until"),
        ] {
            let why = set(body).expect_err(body);
            assert!(why.contains(says), "{body}: {why}");
        }
    }

    #[test]
    fn names_are_percent_encoded() {
        let of = |path| wanted(path, br#"{"weight": 1}"#).map(|(pool, target, _)| (pool, target));
        let names = |pool: &str, target: &str| Ok((pool.to_owned(), target.to_owned()));
        assert_eq!(of("/targets/web/10.0.0.1:80"), names("web", "10.0.0.1:80"));
        assert_eq!(of("/targets/a%2Fb/unix%3A%2Fs%20%C3%A4"), names("a/b", "unix:/s ä"));
        for path in ["/targets/", "/targets/web", "/targets/web/", "/targets//a", "/targets/a/b/c"] {
            assert_eq!(of(path).expect_err(path).status, StatusCode::NOT_FOUND);
        }
        assert_eq!(of("/targets/%ff/a").expect_err("no UTF-8").status, StatusCode::BAD_REQUEST);
    }
}
