//! Registries that are asked for members: DNS, Eureka, Consul and Kubernetes, all on one thread of their own.
//!
//! Each is a file or folder here: a future that never ends, which asks and gives whole lists to its [`Post`]. What is the
//! same for all of them is written once: what a list or a failure leads to, and after which pause it asks again
//! ([`post`]), what a mistake of weir's leads to ([`again`]), and how a registry is asked by HTTP ([`http`]).

mod again;
mod consul;
mod dns;
mod eureka;
mod http;
mod json;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod post;
mod small_file;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod fake_tls;

use crate::source::FollowedSource;
use again::ask_again;
use post::Post;
pub(crate) use post::Posted;
use std::io;
use tokio::sync::oneshot;
use weir_plan::SourceKind;
use weir_stats::Key;

/// The most threads that wait for files and for the system's look-ups of names.
/// Others wait until one of these is free.
const MOST_WAITING: usize = 16;

/// Registries that are asked, until this is dropped.
#[derive(Debug)]
pub(crate) struct Registries {
    _ends_when_dropped: oneshot::Sender<()>,
}

/// Asks these registries, each with its number, on a thread of their own.
///
/// # Errors
/// There is no thread.
pub(crate) fn ask(
    sources: Vec<(usize, FollowedSource)>,
    draw: Key,
    give: impl Fn(usize, Posted) + Clone + 'static + Send,
) -> io::Result<Registries> {
    let (end, ended) = oneshot::channel();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().thread_name("weir-files").max_blocking_threads(MOST_WAITING);
    let runtime = builder.build()?;
    std::thread::Builder::new().name("weir-registries".to_owned()).spawn(move || {
        let local = tokio::task::LocalSet::new();
        for (number, source) in sources {
            let give = give.clone();
            let give_one = move |posted: Posted| give(number, posted);
            local.spawn_local(ask_again(source, draw.with(number as u64), give_one, follow));
        }
        local.block_on(&runtime, async { drop(ended.await) });
        // A look-up of a name that the system holds up is not waited for.
        runtime.shutdown_background();
    })?;
    Ok(Registries { _ends_when_dropped: end })
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
