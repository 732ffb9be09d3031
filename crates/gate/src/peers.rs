//! The gates of the other processes of the place: how many requests came in there.

use crate::fetch::Source;
use crate::probe::ticks;
use crate::state::State;
use crate::url::Url;
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use weir_policy::gate::OtherGate;

/// How often they are asked.
const INTERVAL: Duration = Duration::from_secs(10);
/// How many at once.
const AT_ONCE: usize = 16;
/// The most addresses of a name that are asked.
const MOST: usize = 1_000;

/// What another gate says of itself, as far as it matters.
#[derive(Deserialize)]
struct PeerStatus {
    id: String,
    ready: bool,
    held_s: Option<f64>,
    requests: Option<u64>,
}

/// Asks all addresses of a name, for ever.
pub(crate) async fn ask(state: Rc<RefCell<State>>, name: String, limit: Duration) {
    let own = state.borrow().id.clone();
    let (mut ticks, mut numbers) = (ticks(INTERVAL), Numbers::default());
    loop {
        ticks.tick().await;
        let mut asked = JoinSet::new();
        let room = Rc::new(Semaphore::new(AT_ONCE));
        if let Ok(Ok(all)) = tokio::time::timeout(INTERVAL, tokio::net::lookup_host(&name)).await {
            for address in all.take(MOST) {
                let room = room.clone();
                asked.spawn_local(async move {
                    let _place = room.acquire().await;
                    status(address, limit).await
                });
            }
        }
        let mut found = BTreeMap::new();
        while let Some(answer) = asked.join_next().await {
            if let Ok(Some(peer)) = answer
                && peer.id != own
            {
                found.insert(peer.id.clone(), peer);
            }
        }
        let others = numbers.assign(&found);
        state.borrow_mut().heard(others);
    }
}

async fn status(address: SocketAddr, limit: Duration) -> Option<PeerStatus> {
    let url = Url::parse(&format!("http://{address}/gate/status")).ok()?;
    let page = Source::new(&url, limit).ok()?.page().await.ok()?;
    serde_json::from_slice(&page).ok()
}

/// The numbers of the gates that are there, by their ids.
#[derive(Default)]
struct Numbers {
    known: BTreeMap<String, u32>,
    next: u32,
}

impl Numbers {
    /// Those that run, are not held, and know their requests.
    fn assign(&mut self, found: &BTreeMap<String, PeerStatus>) -> Vec<OtherGate> {
        // One that misses a question keeps its number, within reason.
        if self.known.len() > 2 * MOST {
            self.known.retain(|id, _| found.contains_key(id));
        }
        let mut others = Vec::new();
        for (id, peer) in found {
            let number = *self.known.entry(id.clone()).or_insert_with(|| {
                self.next = self.next.wrapping_add(1);
                self.next
            });
            if let (true, None, Some(entered)) = (peer.ready, peer.held_s, peer.requests) {
                others.push(OtherGate { number, entered });
            }
        }
        others
    }
}
