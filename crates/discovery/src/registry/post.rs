//! What becomes of a registry's lists and failures: lists that differ are given, at most ten a second; failures are
//! reported as those of files are, and lead to a pause.

use crate::fault::{Defect, Fault, Reports};
use crate::list::Snapshot;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};
use weir_plan::SourceKind;
use weir_stats::Key;

/// The least time between two lists.
const APART: Duration = Duration::from_millis(100);

/// The longest pause after the first failure; it doubles with each one more.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause after any failure.
const MOST_PAUSE: Duration = Duration::from_secs(30);

/// A list, or why there is none.
pub(crate) type Posted = Result<Arc<Snapshot>, Fault>;

/// The way of one registry's lists.
pub(crate) struct Post {
    subject: String,
    draw: Key,
    give: Box<dyn Fn(Posted)>,
    start: Instant,
    last: Option<Arc<Snapshot>>,
    reports: Reports,
    /// Failures since the last list.
    failures: u32,
    pauses: u64,
    /// From when on the next list is given.
    ready_at: Instant,
}

impl Post {
    pub(crate) fn new(source: &SourceKind, draw: Key, give: impl Fn(Posted) + 'static) -> Post {
        let now = Instant::now();
        Post {
            subject: source.to_string(),
            draw,
            give: Box::new(give),
            start: now,
            last: None,
            reports: Reports::default(),
            failures: 0,
            pauses: 0,
            ready_at: now,
        }
    }

    /// A number that no other draw of this source has, between 0 and 1.
    pub(crate) fn draw(&mut self) -> f64 {
        self.pauses += 1;
        self.draw.with(self.pauses).unit()
    }

    /// From when on [`Post::list`] does not wait. A source whose changes come one by one takes all that come until then.
    pub(crate) fn ready_at(&self) -> Instant {
        self.ready_at
    }

    /// Gives a list, unless it is the one of before; waits while another was given a tenth of a second ago.
    pub(crate) async fn list(&mut self, list: Snapshot) {
        let was_failing = std::mem::take(&mut self.failures) > 0;
        self.reports.clear(self.now_ns());
        if !was_failing && self.last.as_deref() == Some(&list) {
            return;
        }
        sleep_until(self.ready_at).await;
        self.ready_at = Instant::now() + APART;
        let list = Arc::new(list);
        self.last = Some(list.clone());
        (self.give)(Ok(list));
    }

    /// Notes that there is no list, and waits until it is time to ask again: a uniform draw up to 0.1, 0.2, 0.4 ... 30 s,
    /// at most `most`.
    pub(crate) async fn fail(&mut self, defect: Defect, most: Duration) {
        let now_ns = self.now_ns();
        if let Some(lasting) = self.reports.admit(now_ns, defect.kind) {
            (self.give)(Err(Fault { subject: self.subject.clone(), defect, lasting }));
        }
        let bound = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(MOST_PAUSE).min(most);
        self.failures += 1;
        let pause = bound.mul_f64(self.draw());
        sleep(pause).await;
    }

    /// The time since this source was first asked, ns.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
