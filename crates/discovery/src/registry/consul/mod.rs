//! Members from Consul: the instances of a service by blocking queries, each of which is answered when the list
//! has changed since the one before.
//!
//! A list comes with an index, and the next question waits for a greater one. Indices move without a change as
//! well; [`Post`] compares the lists, and gives none twice. After a failure the question is asked anew, so that
//! its answer shows at once that the registry is back.

mod wire;

#[cfg(test)]
mod tests;

use super::Post;
use super::http::{self, Answer, Client, Credentials, Endpoint};
use super::post::MOST_PAUSE;
use super::small_file::FileReader;
use crate::fault::{Defect, FaultKind};
use crate::list::Snapshot;
use hyper::StatusCode;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use weir_plan::ConsulSource;
use wire::{Cursor, LEAST_APART};

/// How much of a refusal's body is searched for its reason.
const MOST_REASON: usize = 1024;

/// Asks for ever.
pub(super) async fn follow(source: ConsulSource, mut post: Post) {
    let mut client = loop {
        match open(&source) {
            Ok(client) => break client,
            Err(defect) => post.fail(defect, MOST_PAUSE).await,
        }
    };
    let mut cursor = Cursor::default();
    loop {
        let begun = Instant::now();
        let apart = match ask(&mut client, &source, &mut cursor).await {
            Ok((list, apart)) => {
                post.list(list).await;
                apart
            }
            Err(defect) => {
                cursor.restart();
                post.fail(defect, MOST_PAUSE).await;
                LEAST_APART
            }
        };
        sleep_until(begun + apart).await;
    }
}

fn open(source: &ConsulSource) -> Result<Client, Defect> {
    let endpoint = Endpoint::parse(&source.url)?;
    let credentials = source.token.as_ref().map(|path| Credentials::Consul(PathBuf::from(path)));
    Ok(Client::new(endpoint, http::trust(source.tls.as_ref()), credentials, FileReader::default()))
}

/// Asks once. Returns the list, and the least time from the start of this question to that of the next.
async fn ask(
    client: &mut Client,
    source: &ConsulSource,
    cursor: &mut Cursor,
) -> Result<(Snapshot, Duration), Defect> {
    let answer = client.get(&wire::question(source, cursor.index()), cursor.limit()).await?;
    if answer.status != StatusCode::OK {
        return Err(refusal(&answer, source));
    }
    let text = answer.json()?;
    let index = wire::read_index(&answer.headers).ok_or_else(|| {
        let problem = "the answer has no number in X-Consul-Index, which all of Consul's lists have";
        Defect::new(
            FaultKind::Unexpected,
            problem,
            "is that address Consul's, and does a proxy before it take that field away?",
        )
    })?;
    let list = wire::read_list(text)?;
    // Consul hides what the token may not read, and says 200.
    if list.members.is_empty() && list.left_out_count == 0 && wire::is_filtered(&answer.headers) {
        let problem = "Consul hides the service's instances, since the token may not read them";
        return Err(Defect::new(FaultKind::Forbidden, problem, wire::rule(&source.service)));
    }
    Ok((list, cursor.advance(index)))
}

/// What another status than 200 means.
fn refusal(answer: &Answer, source: &ConsulSource) -> Defect {
    let refusal = answer.refusal();
    let beginning = answer.body.get(..MOST_REASON).unwrap_or(&answer.body);
    let reason = String::from_utf8_lossy(beginning);
    match wire::remedy(answer.status.as_u16(), &reason, &source.service) {
        Some(remedy) => Defect { remedy, ..refusal },
        None => refusal,
    }
}
