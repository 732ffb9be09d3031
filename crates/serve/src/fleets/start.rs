//! The first lists: served without one a balancer would have no target, so they are waited for a while.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use weir_discovery::{FollowedSource, News, Readers, Snapshot, run};
use weir_plan::SourceKind;
use weir_stats::Key;

/// How long the first lists are waited for (`docs/spec/serving.md`).
const PATIENCE: Duration = Duration::from_secs(3);

/// The first list of each source that has given one, and for how long they were waited for.
#[derive(Debug, Default)]
pub(crate) struct FirstLists {
    pub lists: BTreeMap<SourceKind, Arc<Snapshot>>,
    pub waited: Duration,
}

/// The first list of each of these sources, as far as one comes in time. What is wrong with the others is reported
/// once they are followed.
pub(crate) fn first_lists(sources: &[SourceKind], readers: &Readers, draw: Key) -> io::Result<FirstLists> {
    let mut lists = BTreeMap::new();
    if sources.is_empty() {
        return Ok(FirstLists::default());
    }
    let (out, updates) = channel();
    let followed: Vec<FollowedSource> = sources.iter().cloned().map(FollowedSource::from).collect();
    let _discovery = run(&followed, readers, draw, move |news| drop(out.send(news)))?;
    let start = Instant::now();
    let end = start + PATIENCE;
    while lists.len() < sources.len() {
        let Ok(news) = updates.recv_timeout(end.saturating_duration_since(Instant::now())) else { break };
        let News::Update(update) = news else { continue };
        if let (Ok(list), Some(source)) = (update.result, sources.get(update.source)) {
            lists.insert(source.clone(), list);
        }
    }
    Ok(FirstLists { lists, waited: start.elapsed() })
}
