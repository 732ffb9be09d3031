//! The first lists: served without one a balancer would have no target, so they are waited for a while.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use weir_discovery::{News, Snapshot, Source, run};

/// How long the first lists are waited for (`docs/spec/serving.md`).
const PATIENCE: Duration = Duration::from_secs(3);

/// The first list of each file.
pub(crate) type FirstLists = BTreeMap<PathBuf, Arc<Snapshot>>;

/// The first list of each of these files, as far as one comes in time. What is wrong with the others is reported
/// once they are followed.
pub(crate) fn first_lists(paths: &[PathBuf]) -> io::Result<FirstLists> {
    let mut lists = FirstLists::new();
    if paths.is_empty() {
        return Ok(lists);
    }
    let sources: Vec<Source> = paths.iter().cloned().map(Source::File).collect();
    let (out, updates) = channel();
    let _discovery = run(&sources, move |news| drop(out.send(news)))?;
    let end = Instant::now() + PATIENCE;
    while lists.len() < paths.len() {
        let Ok(news) = updates.recv_timeout(end.saturating_duration_since(Instant::now())) else { break };
        let News::Update(update) = news else { continue };
        if let (Ok(list), Some(path)) = (update.result, paths.get(update.source)) {
            lists.insert(path.clone(), list);
        }
    }
    Ok(lists)
}
