//! Shares views: one for all requests at the same time, and one a second for the pages that follow. Without viewers
//! no view is requested.

use crate::limits::{EVERY, FRESH, QUESTIONS, RELOADS};
use crate::page::{Rendered, TimedView};
use crate::served::Service;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use weir_plan::{Edge, Spec, listeners};
use weir_report::graph::Drawing;
use weir_serve::{ReloadError, View};

/// Why a question was not answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unanswered;

/// The layout of one generation.
#[derive(Clone)]
struct Layout {
    drawing: Arc<Drawing>,
    /// By node, the server that its only way leads to.
    ends: Arc<[u32]>,
}

/// The state of the watcher.
pub(crate) struct Watcher {
    served: Arc<dyn Service>,
    questions: Arc<Semaphore>,
    reloads: Arc<Semaphore>,
    last: Mutex<Option<Arc<TimedView>>>,
    drawn: Mutex<Option<(u32, Layout)>>,
    /// The last parts sent to the pages that follow.
    told: watch::Sender<Option<Arc<TimedView>>>,
    /// A page follows from now on.
    followed: Notify,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Their content is valid after every step.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watcher {
    pub fn new(served: Arc<dyn Service>) -> Arc<Watcher> {
        Arc::new(Watcher {
            served,
            questions: Arc::new(Semaphore::new(QUESTIONS)),
            reloads: Arc::new(Semaphore::new(RELOADS)),
            last: Mutex::default(),
            drawn: Mutex::default(),
            told: watch::Sender::new(None),
            followed: Notify::new(),
        })
    }

    /// The served topology.
    pub fn served(&self) -> Arc<dyn Service> {
        self.served.clone()
    }

    /// Threads that are stuck, which is known without waiting.
    pub fn stalled(&self) -> Vec<String> {
        self.served.stalled()
    }

    /// Reloads the file.
    pub async fn reload(&self) -> Result<Result<String, ReloadError>, Unanswered> {
        self.ask_among(&self.reloads, |served| served.reload()).await
    }

    /// Starts the program anew, in place of this process.
    pub async fn upgrade(&self) -> Result<Result<String, String>, Unanswered> {
        self.ask_among(&self.reloads, |served| served.upgrade()).await
    }

    /// Asks the served topology, on a thread that may wait.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Service) -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        self.ask_among(&self.questions, question).await
    }

    async fn ask_among<T: Send + 'static>(
        &self,
        places: &Arc<Semaphore>,
        question: impl FnOnce(&dyn Service) -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        let permit = places.clone().acquire_owned().await.map_err(|_| Unanswered)?;
        let served = self.served.clone();
        let answered = spawn_blocking(move || {
            let _permit = permit;
            question(&*served)
        });
        answered.await.map_err(|_| Unanswered)
    }

    /// The current view, or a very recent one.
    pub async fn look(self: &Arc<Self>) -> Result<Arc<TimedView>, Unanswered> {
        let last = locked(&self.last).clone();
        if let Some(seen) = last.filter(|seen| seen.at.elapsed() < FRESH) {
            return Ok(seen);
        }
        let watcher = self.clone();
        self.ask(move |served| watcher.see(served)).await
    }

    fn see(&self, served: &dyn Service) -> Arc<TimedView> {
        let (view, config, stalled) = (served.view(false), served.config(), served.stalled());
        let (file, Layout { drawing, ends }) = (served.file(), self.drawn(&view));
        let at = Instant::now();
        let mut last = locked(&self.last);
        let rendered = Rendered::default();
        let unix_ms =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let seen = Arc::new(TimedView { at, unix_ms, view, file, config, stalled, drawing, ends, rendered });
        *last = Some(seen.clone());
        seen
    }

    /// The layout of the topology, made once for each generation.
    fn drawn(&self, view: &View) -> Layout {
        let mut drawn = locked(&self.drawn);
        if let Some((of, drawn)) = &*drawn
            && (*of == view.generation || view.point.is_none())
        {
            return drawn.clone();
        }
        // Without an answer there is nothing to draw.
        let Some(point) = &view.point else {
            return Layout { drawing: Arc::default(), ends: [].into() };
        };
        let noted = |spec: &Spec| {
            matches!(spec, Spec::Lb(_) | Spec::Listen(_) | Spec::Server { .. } | Spec::Queue { .. })
        };
        let mut ends: Vec<u32> = Vec::with_capacity(point.nodes.len());
        for (id, node) in (0u32..).zip(&point.nodes) {
            // A node comes after all nodes behind it.
            ends.push(match (&point.specs[node.spec as usize], node.to) {
                (Spec::Listen(_), _) => id,
                (_, Edge::Node(next)) => ends.get(next as usize).copied().unwrap_or(next),
                _ => id,
            });
        }
        let drawing = Arc::new(Drawing::new(point, &listeners(point), noted));
        let new = Layout { drawing, ends: ends.into() };
        *drawn = Some((view.generation, new.clone()));
        new
    }

    /// The views from now on, once a second.
    pub fn follow(&self) -> watch::Receiver<Option<Arc<TimedView>>> {
        let told = self.told.subscribe();
        self.followed.notify_one();
        told
    }

    /// The number of followers.
    pub fn followers(&self) -> usize {
        self.told.receiver_count()
    }

    /// Requests a view once a second as long as any page follows, for ever.
    pub async fn run(self: Arc<Self>) {
        loop {
            if self.told.receiver_count() == 0 {
                // The present view is old when a page follows again.
                self.told.send_replace(None);
                self.followed.notified().await;
                continue;
            }
            if let Ok(seen) = self.look().await {
                self.told.send_replace(Some(seen));
            }
            sleep(EVERY).await;
        }
    }
}
