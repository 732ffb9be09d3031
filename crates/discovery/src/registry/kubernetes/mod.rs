//! Members from Kubernetes: the EndpointSlices of a service, listed once and then watched.
//!
//! A watch begins at the version of the list. Where it breaks, by any error, the service is listed
//! again, and that list replaces the one before in one step; where it ends after its time, the next one goes
//! on from the last version. Events come one by one and belong together, as when an endpoint moves from one
//! slice to another: those that come within a moment are one list.

mod access;
mod api;
mod kubeconfig;
mod merge;
mod pace;
mod service;
mod slices;

#[cfg(test)]
mod tests;

pub(super) use access::check_kubeconfig;

use super::Post;
use super::http::Lines;
use super::post::MOST_PAUSE;
use super::small_file::FileReader;
use crate::fault::{Defect, FaultKind};
use api::Api;
use pace::Pace;
use service::Service;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
use weir_plan::{KubernetesPort, KubernetesSource};

/// How long the server is asked to watch, s: a draw in this range, so that not all watches of all clients end
/// at once.
const WATCH_S: (u64, u64) = (240, 300);

/// How long after that time a watch is silent that the server has not ended.
const SILENCE: Duration = Duration::from_secs(20);

/// How long events are gathered at least, after the first.
const GATHER: Duration = Duration::from_millis(10);

/// How a watch has ended.
#[derive(Debug)]
enum WatchEnd {
    /// By its time.
    Expiry,
    /// By an error, after which the service is listed again.
    Break(Defect),
    /// It did not begin, since the server does not allow it.
    Refusal(Defect),
}

/// Asks for ever.
pub(super) async fn follow(source: KubernetesSource, mut post: Post) {
    let (mut pace, files) = (Pace::default(), FileReader::default());
    loop {
        if let Err(defect) = follow_list(&source, &mut post, &mut pace, &files).await {
            post.fail(defect, MOST_PAUSE).await;
        }
    }
}

/// Lists the service, and follows it until a watch breaks.
///
/// # Errors
/// There is no list.
async fn follow_list(
    source: &KubernetesSource,
    post: &mut Post,
    pace: &mut Pace,
    files: &FileReader,
) -> Result<(), Defect> {
    let mut api = Api::new(access::find(source, files).await?, source, files);
    let (slices, version) = api.list().await?;
    let mut service = Service::new(slices, version);
    let port = source.port.as_ref();
    post.list(service.snapshot(port, Instant::now())?).await;
    loop {
        let begun = Instant::now();
        let end = follow_watch(&mut api, &mut service, port, post).await?;
        let pause = pace.note(begun.elapsed());
        let (defect, is_refusal) = match end {
            WatchEnd::Expiry => {
                sleep(pause.mul_f64(post.draw())).await;
                continue;
            }
            WatchEnd::Break(defect) => (defect, false),
            WatchEnd::Refusal(defect) => (defect, true),
        };
        if pace.is_due(defect.kind, is_refusal, post.now_ns()) {
            post.fail(defect, MOST_PAUSE).await;
        } else if pace.is_failure(is_refusal) {
            post.note_failure();
        }
        sleep(pause.mul_f64(post.draw())).await;
        return Ok(());
    }
}

/// Watches once, and gives a list after each change.
///
/// # Errors
/// What the service is now makes no list.
async fn follow_watch(
    api: &mut Api,
    service: &mut Service,
    port: Option<&KubernetesPort>,
    post: &mut Post,
) -> Result<WatchEnd, Defect> {
    let (least, most) = WATCH_S;
    let seconds = least + (post.draw() * (most - least) as f64) as u64;
    let time = Duration::from_secs(seconds) + SILENCE;
    let until = Instant::now() + time;
    let mut lines = match api.watch(service.version(), seconds).await {
        Ok(Ok(lines)) => lines,
        Ok(Err(defect)) => return Ok(WatchEnd::Refusal(defect)),
        Err(defect) => return Ok(WatchEnd::Break(defect)),
    };
    // When the changes so far are given as a list.
    let mut give_at: Option<Instant> = None;
    loop {
        let now = Instant::now();
        if give_at.is_some_and(|at| at <= now) {
            post.list(service.snapshot(port, now)?).await;
            give_at = None;
        }
        let line = match read_until(&mut lines, give_at.unwrap_or(until), time).await {
            Line::Event(line) => line,
            Line::Nothing if give_at.is_some() => continue,
            Line::Nothing => return Ok(WatchEnd::Break(silent(time))),
            Line::End(end) => {
                give(give_at, service, port, post).await?;
                return Ok(end);
            }
        };
        match service.apply(&line) {
            Ok(true) => {
                give_at.get_or_insert(post.ready_at().max(Instant::now() + GATHER));
            }
            Ok(false) => {}
            Err(defect) => {
                give(give_at, service, port, post).await?;
                return Ok(WatchEnd::Break(defect));
            }
        }
    }
}

/// Gives the list of the changes so far, if there are any.
async fn give(
    give_at: Option<Instant>,
    service: &mut Service,
    port: Option<&KubernetesPort>,
    post: &mut Post,
) -> Result<(), Defect> {
    if give_at.is_some() {
        post.list(service.snapshot(port, Instant::now())?).await;
    }
    Ok(())
}

/// What a watch gives within a time.
enum Line {
    Event(Vec<u8>),
    /// The time is over.
    Nothing,
    End(WatchEnd),
}

/// The next line that is not empty, until this time. What has come of a line by then is kept.
async fn read_until(lines: &mut Lines, until: Instant, silence: Duration) -> Line {
    loop {
        match timeout_at(until, lines.next(silence)).await {
            Err(_) => return Line::Nothing,
            Ok(Err(defect)) => return Line::End(WatchEnd::Break(defect)),
            Ok(Ok(None)) => return Line::End(WatchEnd::Expiry),
            Ok(Ok(Some(line))) if line.trim_ascii().is_empty() => {}
            Ok(Ok(Some(line))) => return Line::Event(line),
        }
    }
}

/// A server that neither sends nor ends a watch.
fn silent(time: Duration) -> Defect {
    let problem = format!("the API server has not ended a watch after {}s", time.as_secs());
    Defect::new(FaultKind::Late, problem, "see to the API server and to the way there")
}
