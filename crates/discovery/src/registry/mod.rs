//! Registries that are asked for members: DNS, Eureka, Consul and Kubernetes, all on one thread of their own.
//!
//! Each is a file or folder here: a future that never ends, which asks and gives whole lists to its [`Post`]. What is the
//! same for all of them is written once: what a list or a failure leads to, and after which pause it asks again
//! ([`post`]), what a mistake of weir's leads to ([`again`]), and how a registry is asked by HTTP ([`http`]). Each begins and
//! ends by itself.

mod again;
mod consul;
mod dns;
mod eureka;
mod http;
mod json;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod named_files;
mod post;
mod small_file;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod fake_tls;
#[cfg(test)]
mod tests;

use crate::source::FollowedSource;
use again::ask_again;
pub use named_files::check_named_files;
use post::Post;
pub(crate) use post::{Notice, Posted};
use std::collections::BTreeMap;
use std::io;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use weir_plan::SourceKind;
use weir_stats::Key;

/// The most threads that wait for files and for the system's look-ups of names.
/// Others wait until one of these is free.
const MOST_WAITING: usize = 16;

/// Registries that are asked, until this is dropped.
#[derive(Debug)]
pub(crate) struct Registries {
    /// Unbounded: a change for each source of a topology.
    changes: UnboundedSender<Change>,
}

/// A change of what is asked.
enum Change {
    /// Begins to ask a source.
    Ask(usize, Box<FollowedSource>),
    /// Stops asking the source of this number.
    Forget(usize),
}

impl Registries {
    /// Asks another one. Its number is one that no other has had.
    ///
    /// # Errors
    /// The thread has ended, by a mistake of weir's.
    pub(crate) fn ask(&self, number: usize, source: FollowedSource) -> io::Result<()> {
        let sent = self.changes.send(Change::Ask(number, Box::new(source)));
        sent.map_err(|_| io::Error::other("the thread that asks registries has ended"))
    }

    /// Stops asking the source of this number. What it has given may still be on its way.
    pub(crate) fn forget(&self, number: usize) {
        // A thread that has ended asks none.
        let _ = self.changes.send(Change::Forget(number));
    }
}

#[cfg(test)]
impl Registries {
    /// Those of a thread that has ended, as by a panic.
    pub(crate) fn ended() -> Registries {
        Registries { changes: unbounded_channel().0 }
    }
}

/// Starts the thread that asks registries, without one. It calls `give` with the number of each and what that gives.
///
/// # Errors
/// There is no thread.
pub(crate) fn start(
    draw: Key,
    give: impl Fn(usize, Notice) + Clone + 'static + Send,
) -> io::Result<Registries> {
    let (changes, inbox) = unbounded_channel();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().thread_name("weir-files").max_blocking_threads(MOST_WAITING);
    let runtime = builder.build()?;
    std::thread::Builder::new().name("weir-registries".to_owned()).spawn(move || {
        let local = LocalSet::new();
        local.block_on(&runtime, ask_all(inbox, draw, give));
        // A look-up of a name that the system holds up is not waited for.
        runtime.shutdown_background();
    })?;
    Ok(Registries { changes })
}

/// Asks registries as changes say, until there can be no more changes.
async fn ask_all(
    mut changes: UnboundedReceiver<Change>,
    draw: Key,
    give: impl Fn(usize, Notice) + Clone + 'static,
) {
    let mut asked: BTreeMap<usize, AbortHandle> = BTreeMap::new();
    while let Some(change) = changes.recv().await {
        match change {
            Change::Ask(number, source) => {
                let give = give.clone();
                let give_one = move |notice: Notice| give(number, notice);
                let task = spawn_local(ask_again(*source, draw.with(number as u64), give_one, follow));
                asked.insert(number, task.abort_handle());
            }
            Change::Forget(number) => {
                if let Some(task) = asked.remove(&number) {
                    task.abort();
                }
            }
        }
    }
}

/// Asks a registry for ever.
async fn follow(source: FollowedSource, post: Post) {
    let FollowedSource { kind, last } = source;
    match kind {
        // It has threads of its own.
        SourceKind::File(_) => {}
        SourceKind::Dns(source) => dns::follow(source, last, post).await,
        SourceKind::Eureka(source) => eureka::follow(source, post).await,
        SourceKind::Consul(source) => consul::follow(source, post).await,
        #[cfg(feature = "kubernetes")]
        SourceKind::Kubernetes(source) => kubernetes::follow(source, post).await,
        #[cfg(not(feature = "kubernetes"))]
        SourceKind::Kubernetes(_) => without_kubernetes(post).await,
    }
}

/// Says that this program cannot ask.
#[cfg(not(feature = "kubernetes"))]
async fn without_kubernetes(mut post: Post) {
    use crate::fault::{Defect, FaultKind};
    loop {
        let problem = "this weir was built without `find.kubernetes`";
        let remedy = "build it with the feature `kubernetes`";
        post.fail(Defect::new(FaultKind::Settings, problem, remedy), std::time::Duration::MAX).await;
    }
}
