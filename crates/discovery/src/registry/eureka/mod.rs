//! Members from Eureka: the instances of an application, out of a copy of the whole registry.
//!
//! The whole is read first, then what has changed, which a hash over the copy checks ([`agenda`]). Eureka's
//! question for one application is not used: its answer is neither checked nor short. Weir registers nothing
//! there. A server that fails is left for the next one, whose registry is another: the copy begins anew.

mod agenda;
mod copy;
mod wire;

#[cfg(test)]
mod tests;

use super::Post;
use super::http::{self, Client, Credentials, Endpoint, LIST_TIME};
use super::post::MOST_PAUSE;
use super::small_file::FileReader;
use crate::fault::{Defect, FaultKind};
use crate::list::Snapshot;
use agenda::{Agenda, Question};
use copy::RegistryCopy;
use hyper::StatusCode;
use std::time::Duration;
use tokio::time::sleep;
use weir_plan::EurekaSource;

/// A server of the registry.
struct Server {
    url: String,
    endpoint: Endpoint,
}

/// Asks for ever.
pub(super) async fn follow(source: EurekaSource, mut post: Post) {
    let mut servers = match servers(&source) {
        Ok(servers) => servers,
        // The topology itself is wrong, and only a reload mends that.
        Err(defect) => loop {
            post.fail(defect.clone(), MOST_PAUSE).await;
        },
    };
    let trust = http::trust(source.tls.as_ref());
    let credentials = source.auth.as_ref().map(|path| Credentials::Basic(path.into()));
    let files = FileReader::default();
    // So that many proxies share the servers.
    let drawn = (post.draw() * servers.len() as f64) as usize;
    let first = drawn.min(servers.len());
    servers.rotate_left(first);
    while let Some(server) = servers.first() {
        // A new client reads files anew: a password that was refused may have been replaced.
        let endpoint = server.endpoint.clone();
        let client = Client::new(endpoint, trust.clone(), credentials.clone(), files.clone());
        let defect = follow_server(client, &server.url, &source, &mut post).await;
        servers.rotate_left(1);
        post.fail(defect, poll(&source)).await;
    }
}

/// The servers, at least one.
fn servers(source: &EurekaSource) -> Result<Vec<Server>, Defect> {
    if source.urls.is_empty() {
        let remedy = "write it as \"http://host:8761/eureka\"";
        return Err(Defect::new(FaultKind::Settings, "there is no address of a registry", remedy));
    }
    let read = |url: &String| Ok(Server { url: url.clone(), endpoint: Endpoint::parse(url)? });
    source.urls.iter().map(read).collect()
}

fn poll(source: &EurekaSource) -> Duration {
    Duration::from_nanos(source.poll_ns)
}

/// Asks one server as long as it gives lists. Returns why it gives none.
async fn follow_server(mut client: Client, url: &str, source: &EurekaSource, post: &mut Post) -> Defect {
    let mut copy = RegistryCopy::new(source);
    let mut agenda = Agenda::default();
    loop {
        match ask(&mut client, url, &mut copy, &mut agenda).await {
            Ok(list) => post.list(list).await,
            Err(defect) => return defect,
        }
        // Proxies that began together do not ask together.
        sleep(poll(source).mul_f64(0.9 + 0.2 * post.draw())).await;
    }
}

/// Asks a server once for what has changed, for the whole, or for both.
async fn ask(
    client: &mut Client,
    url: &str,
    copy: &mut RegistryCopy,
    agenda: &mut Agenda,
) -> Result<Snapshot, Defect> {
    if agenda.question() == Question::Delta {
        let answer = client.get("/apps/delta", LIST_TIME).await?;
        // A server may have no deltas, and forbids them where they are switched off.
        if !matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::FORBIDDEN) {
            let delta = wire::read(answer.json()?, url)?;
            copy.apply(&delta)?;
            if !agenda.note_delta(copy.has_hash(delta.hash().as_deref())) {
                return copy.list();
            }
        }
    }
    let answer = client.get("/apps", LIST_TIME).await?;
    let whole = wire::read(answer.json()?, url)?;
    copy.replace(&whole)?;
    agenda.note_whole(copy.has_hash(whole.hash().as_deref()));
    copy.list()
}
