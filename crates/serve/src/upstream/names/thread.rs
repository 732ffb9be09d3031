//! The thread that resolves the names of a process, whichever of its plans and lists have brought them.

use super::follow::{Follow, Step};
use super::system::System;
use super::{Following, Name};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How often the thread looks whether any loop is left, when no name comes.
const LOOK: Duration = Duration::from_secs(60);

/// Names that are new.
pub(super) struct Batch {
    pub names: Vec<Weak<Name>>,
    /// Takes the number of each name once it has a first result.
    pub first: Sender<u32>,
}

/// The way to the thread, which begins with the first batch.
#[derive(Clone, Default)]
pub(crate) struct Resolver(Arc<Mutex<Option<UnboundedSender<Batch>>>>);

impl Resolver {
    /// Follows these names as well.
    ///
    /// # Errors
    /// There is no thread.
    pub(super) fn give(&self, batch: Batch, following: &Following) -> io::Result<()> {
        let mut way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = match &*way {
            Some(thread) => match thread.send(batch) {
                Ok(()) => return Ok(()),
                Err(unsent) => unsent.0,
            },
            None => batch,
        };
        let (out, batches) = unbounded_channel();
        // Without the way to itself: the thread ends when nothing else has it.
        let own = Following { resolver: Resolver::default(), ..following.clone() };
        std::thread::Builder::new().name("weir-names".to_owned()).spawn(move || {
            // Without a runtime nothing is resolved; missing descriptors show elsewhere first.
            let _ = run(batches, &own);
        })?;
        // Its queue is there before it runs.
        let _ = out.send(batch);
        *way = Some(out);
        Ok(())
    }
}

/// Resolves until no plan is left that has the way here, or no loop listens.
fn run(mut batches: UnboundedReceiver<Batch>, following: &Following) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let system = Rc::new(System::new(following.nameserver));
    runtime.block_on(local.run_until(async {
        loop {
            match tokio::time::timeout(LOOK, batches.recv()).await {
                Ok(Some(Batch { names, first })) => {
                    for name in names {
                        let one = NameTask { name, following: following.clone(), first: first.clone() };
                        local.spawn_local(one.follow(system.clone()));
                    }
                }
                Ok(None) => break,
                Err(_) if following.audience.is_there() => {}
                Err(_) => break,
            }
        }
    }));
    Ok(())
}

/// One name.
struct NameTask {
    name: Weak<Name>,
    following: Following,
    first: Sender<u32>,
}

impl NameTask {
    async fn follow(self, system: Rc<System>) {
        let Following { draw, clock, audience, errors, .. } = &self.following;
        let Some(number) = self.name.upgrade().map(|name| name.number) else { return };
        let mut state = Follow::new(draw.with(u64::from(number)));
        while audience.is_there()
            && let Some(name) = self.name.upgrade()
        {
            let heard = system.lookup(&name.host).await;
            let Step { addresses, wait_ns, word } = state.heard(clock.now(), heard);
            if let Some(list) = addresses {
                let list: Arc<[SocketAddr]> = list.iter().map(|ip| SocketAddr::new(*ip, name.port)).collect();
                list.clone_into(&mut name.known());
                audience.tell(number, &list);
            }
            let _ = self.first.send(number);
            if let Some(word) = word {
                errors.note(|| format!("warning: the name {} of a server {word}", name.host));
            }
            drop(name);
            tokio::time::sleep(Duration::from_nanos(wait_ns)).await;
        }
    }
}
