//! HTTP/1.1 to a registry: one connection that is kept, whole answers under limits of bytes and time, and answers that go
//! on line by line. A redirection is no answer: it would lead elsewhere than the file says.
// Only Kubernetes watches, and has tokens and authorities out of a file of its own.
#![cfg_attr(not(feature = "kubernetes"), allow(dead_code))]

mod connection;
mod dial;
mod endpoint;
mod lines;
mod trust;

#[cfg(test)]
mod tests;

pub(super) use connection::check_files;
pub(super) use endpoint::Endpoint;
pub(super) use lines::Lines;
pub(super) use trust::trust;

use super::small_file::FileReader;
use crate::fault::{Defect, FaultKind};
use crate::list::MOST_BYTES;
use connection::{Connection, explain_tls};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use hyper::{Response, StatusCode};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use weir_net::transport::tls::{ClientFiles, NamedPem};
use weir_plan::http::short;

/// The beginning of the URL of a registry without TLS.
const PLAIN: &str = "http://";

/// How much of a refusal is searched for words about TLS.
const MOST_REASON: usize = 1024;

/// What servers say to a question without TLS where they want it: those in Go, nginx, Apache and Tomcat.
const TLS_IS_WANTED: [&str; 4] = [
    "HTTP request to an HTTPS server",
    "plain HTTP request was sent to HTTPS port",
    "speaking plain HTTP to an SSL-enabled server port",
    "This combination of host and port requires TLS",
];

/// How long a whole list may take.
pub(super) const LIST_TIME: Duration = Duration::from_secs(30);

/// Credentials: a file that is read anew at each connection, or a token that is known.
#[derive(Clone)]
pub(super) enum Credentials {
    /// `user:password` (`Authorization: Basic`).
    Basic(PathBuf),
    /// A token (`Authorization: Bearer`).
    Bearer(PathBuf),
    /// A token that is known already (`Authorization: Bearer`).
    Token(String),
    /// A token of Consul's (`X-Consul-Token`).
    Consul(PathBuf),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A token is left out.
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// How an `https` registry is verified.
#[derive(Clone, Debug)]
pub(super) enum Trust {
    /// By files, which are read anew at each connection.
    Files(ClientFiles),
    /// By what a kubeconfig holds.
    Given(GivenTrust),
}

/// PEM of authorities and of an own certificate.
#[derive(Clone, Default)]
pub(super) struct GivenTrust {
    /// Authorities; `None`: the system's.
    pub(super) authorities: Option<NamedPem>,
    /// A certificate and its key.
    pub(super) certificate: Option<(NamedPem, NamedPem)>,
    /// The name that the registry's certificate must cover; `None`: the host.
    pub(super) name: Option<String>,
}

impl fmt::Debug for GivenTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is left out.
        f.debug_struct("GivenTrust").finish_non_exhaustive()
    }
}

/// A registry's server.
#[derive(Debug)]
pub(super) struct Client {
    endpoint: Endpoint,
    trust: Trust,
    credentials: Option<Credentials>,
    files: FileReader,
    kept: Option<Connection>,
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// What was asked, for reports.
    url: String,
}

impl Client {
    /// A server that is not asked yet. `files`: what reads those of the source, the same for all its clients.
    pub(super) fn new(
        endpoint: Endpoint,
        trust: Trust,
        credentials: Option<Credentials>,
        files: FileReader,
    ) -> Client {
        Client { endpoint, trust, credentials, files, kept: None }
    }

    /// Asks for a path (with its query) below the endpoint's, and reads the answer within this time. One above
    /// [`LIST_TIME`] is that of a question that waits: the answer's head may take that time, and its body
    /// `LIST_TIME` from then on.
    ///
    /// # Errors
    /// There is none, it redirects, or it is above a limit.
    pub(super) async fn get(&mut self, path: &str, within: Duration) -> Result<Answer, Defect> {
        let url = self.endpoint.url(path);
        let result = self.ask_and_read(path, url, within).await;
        match &result {
            Ok(answer) if !answer.is_forbidden() => {}
            // The next question has a new connection, which reads files anew: a token may have been replaced.
            _ => self.kept = None,
        }
        result
    }

    /// Asks for a path whose answer goes on, line by line. Its head must come within this time.
    ///
    /// # Errors
    /// As [`Client::get`]; another status than 200 is an answer, read whole.
    pub(super) async fn watch(
        &mut self,
        path: &str,
        within: Duration,
    ) -> Result<Result<Lines, Answer>, Defect> {
        let url = self.endpoint.url(path);
        // What is on it is not over when the next question comes.
        let mut own = Client { kept: None, ..self.another() };
        let response = timeout(within, own.ask(path)).await.unwrap_or_else(|_| Err(late(&url, within)))?;
        let (head, body) = response.into_parts();
        if head.status == StatusCode::OK {
            return Ok(Ok(Lines::new(body, own.kept.take(), url)));
        }
        let whole = read_whole(Response::from_parts(head, body), url, within.min(LIST_TIME));
        whole.await.map(Err)
    }

    /// Asks, and reads the answer.
    async fn ask_and_read(&mut self, path: &str, url: String, within: Duration) -> Result<Answer, Defect> {
        let begun = Instant::now();
        let response = timeout(within, self.ask(path)).await.unwrap_or_else(|_| Err(late(&url, within)))?;
        read_whole(response, url, body_time(within, begun.elapsed())).await
    }

    /// The same server without a connection.
    fn another(&self) -> Client {
        let (trust, credentials) = (self.trust.clone(), self.credentials.clone());
        Client::new(self.endpoint.clone(), trust, credentials, self.files.clone())
    }

    /// Sends a question, by a new connection where the kept one has ended meanwhile.
    async fn ask(&mut self, path: &str) -> Result<Response<Incoming>, Defect> {
        if let Some(mut kept) = self.kept.take() {
            let answer = kept.ask(&self.endpoint, path).await;
            if let Ok(response) = answer {
                self.kept = Some(kept);
                return judge(response, &self.endpoint.url(path));
            }
        }
        let credentials = self.credentials.as_ref();
        let mut new = Connection::open(&self.endpoint, &self.trust, credentials, &self.files).await?;
        let response =
            new.ask(&self.endpoint, path).await.map_err(|e| cut_off(&self.endpoint.url(path), &*e))?;
        self.kept = Some(new);
        judge(response, &self.endpoint.url(path))
    }
}

impl Answer {
    /// The text of a 200 whose type is JSON, or not said.
    ///
    /// # Errors
    /// It is another answer.
    pub(super) fn json(&self) -> Result<&str, Defect> {
        let Answer { status, headers, body, url } = self;
        if *status != StatusCode::OK {
            return Err(self.refusal());
        }
        let kind = headers.get(CONTENT_TYPE).map(|kind| String::from_utf8_lossy(kind.as_bytes()));
        if let Some(kind) = kind.filter(|kind| !is_json(kind)) {
            let problem = format!("{url} answers with {}, not with JSON", short(&kind));
            return Err(Defect::new(FaultKind::Unexpected, problem, "is that address the registry's?"));
        }
        std::str::from_utf8(body).map_err(|_| {
            Defect::new(
                FaultKind::Encoding,
                format!("the answer of {url} is not UTF-8"),
                "see to the registry",
            )
        })
    }

    /// Whether the registry does not let weir ask.
    fn is_forbidden(&self) -> bool {
        matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }

    /// Whether the registry refuses a question because it comes without TLS.
    fn is_tls_wanted(&self) -> bool {
        if self.status != StatusCode::BAD_REQUEST || !self.url.starts_with(PLAIN) {
            return false;
        }
        let beginning = String::from_utf8_lossy(self.body.get(..MOST_REASON).unwrap_or(&self.body));
        TLS_IS_WANTED.iter().any(|words| beginning.contains(words))
    }

    /// What another status than 200 means.
    pub(super) fn refusal(&self) -> Defect {
        let Answer { status, url, .. } = self;
        let problem = format!("{url} answers {status}");
        match *status {
            _ if self.is_tls_wanted() => Defect::new(
                FaultKind::Unexpected,
                format!("{url} is asked without TLS, and wants it"),
                "is the registry's address https://?",
            ),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Defect::new(
                FaultKind::Forbidden,
                problem,
                "give weir the rights to ask for it, or another user or token",
            ),
            _ => Defect::new(FaultKind::Unexpected, problem, "see to the registry, or to the address"),
        }
    }
}

/// Whether a media type is that of JSON, whatever its parameters.
fn is_json(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// How long the body of an answer may take whose head has come after the time that is gone, of this one.
fn body_time(within: Duration, gone: Duration) -> Duration {
    if within > LIST_TIME { LIST_TIME } else { within.saturating_sub(gone) }
}

/// Reads the body of an answer, under the limit of bytes and within this time.
async fn read_whole(response: Response<Incoming>, url: String, time: Duration) -> Result<Answer, Defect> {
    let (head, body) = response.into_parts();
    let limit = usize::try_from(MOST_BYTES).unwrap_or(usize::MAX);
    let body = timeout(time, Limited::new(body, limit).collect()).await.map_err(|_| {
        let problem = format!("the answer of {url} did not end in time");
        Defect::new(FaultKind::Late, problem, "see to the registry and to the way there")
    })?;
    let body = body.map_err(|e| cut_off(&url, &*e))?.to_bytes();
    Ok(Answer { status: head.status, headers: head.headers, body, url })
}

/// Refuses a redirection.
fn judge(response: Response<Incoming>, url: &str) -> Result<Response<Incoming>, Defect> {
    if !response.status().is_redirection() {
        return Ok(response);
    }
    let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
    let problem = format!("{url} redirects to {}, which weir does not follow", short(to));
    Err(Defect::new(FaultKind::Unexpected, problem, "write the address that it leads to"))
}

fn late(url: &str, within: Duration) -> Defect {
    let problem = format!("{url} was not answered within {}s", within.as_secs());
    Defect::new(FaultKind::Late, problem, "see to the registry and to the way there")
}

/// An answer that does not come to its end.
fn cut_off(url: &str, e: &(dyn std::error::Error + 'static)) -> Defect {
    if e.is::<http_body_util::LengthLimitError>() {
        let problem = format!("the answer of {url} has more than {} MiB", MOST_BYTES >> 20);
        return Defect::new(FaultKind::TooLarge, problem, "is that address the registry's?");
    }
    let hyper = e.downcast_ref::<hyper::Error>();
    let (why, remedy) = match hyper {
        Some(e) if e.is_parse_too_large() => ("its head is too long".to_owned(), "see to the registry"),
        // An alert of TLS, for one.
        Some(e) if e.is_parse() && url.starts_with(PLAIN) => {
            ("it does not speak HTTP/1.1".to_owned(), "is the registry's address https://?")
        }
        Some(e) if e.is_parse() => {
            ("it does not speak HTTP/1.1".to_owned(), "is that address the registry's?")
        }
        Some(e) if e.is_incomplete_message() || e.is_closed() => {
            ("the connection ended before it did".to_owned(), "see to the registry")
        }
        _ => match e.source().and_then(|cause| cause.downcast_ref::<io::Error>()).and_then(explain_tls) {
            Some((problem, remedy)) => (problem, remedy.unwrap_or("see to the registry")),
            // The system's own words say the most.
            None => {
                (e.source().map_or_else(|| e.to_string(), |cause| cause.to_string()), "see to the registry")
            }
        },
    };
    Defect::new(FaultKind::Cut, format!("{url} gives no whole answer: {why}"), remedy)
}
