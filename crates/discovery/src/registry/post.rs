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
pub(super) const MOST_PAUSE: Duration = Duration::from_secs(30);

/// A list, or why there is none.
pub(crate) type Posted = Result<Arc<Snapshot>, Fault>;

/// What a registry gives to the process.
pub(crate) enum Notice {
    /// A list, or why there is none, if that is to be reported.
    Posted(Posted),
    /// A question has failed, whether or not that is reported.
    Failure,
}

/// Gives the lists and faults of one registry to the process.
pub(crate) struct Post {
    subject: String,
    draw: Key,
    give: Box<dyn Fn(Notice)>,
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
    pub(crate) fn new(source: &SourceKind, draw: Key, give: impl Fn(Notice) + 'static) -> Post {
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
    #[cfg_attr(not(feature = "kubernetes"), allow(dead_code))]
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
        (self.give)(Notice::Posted(Ok(list)));
    }

    /// Notes that there is no list, and waits until it is time to ask again: a uniform draw up to 0.1, 0.2, 0.4 ... 30 s,
    /// at most `most`.
    pub(crate) async fn fail(&mut self, defect: Defect, most: Duration) {
        self.note_failure();
        let now_ns = self.now_ns();
        if let Some(lasting) = self.reports.admit(now_ns, defect.kind) {
            let fault = Fault { subject: self.subject.clone(), defect, lasting };
            (self.give)(Notice::Posted(Err(fault)));
        }
        let bound = pause_bound(self.failures).min(most);
        self.failures += 1;
        let pause = bound.mul_f64(self.draw());
        sleep(pause).await;
    }

    /// Notes that a question has failed, which counts and is not reported.
    pub(crate) fn note_failure(&self) {
        (self.give)(Notice::Failure);
    }

    /// The time since this source was first asked, ns.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The longest pause after a failure that follows this number of others in a row: 0.1, 0.2, 0.4 ... 30 s.
pub(super) fn pause_bound(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.min(16)).min(MOST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultKind;
    use crate::list::{Member, State};
    use std::cell::RefCell;
    use std::rc::Rc;
    use tokio::runtime::Builder;

    /// What was given, and when.
    type Log = Rc<RefCell<Vec<(Duration, String)>>>;

    /// Timers end at whole milliseconds.
    const TICK_S: f64 = 0.002;

    /// Runs in a time that passes only by waiting.
    fn run<T>(future: impl Future<Output = T>) -> T {
        let mut builder = Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().expect("a runtime").block_on(future)
    }

    /// The way of a registry's lists, and what comes of it.
    fn start(seed: u64) -> (Post, Log) {
        let (log, begun) = (Log::default(), Instant::now());
        let out = log.clone();
        let give = move |notice: Notice| {
            let text = match notice {
                Notice::Posted(Ok(list)) => {
                    list.members.iter().map(|m| m.addr.clone()).collect::<Vec<_>>().join(" ")
                }
                Notice::Posted(Err(fault)) => fault.to_string(),
                Notice::Failure => return,
            };
            out.borrow_mut().push((begun.elapsed(), text));
        };
        (Post::new(&SourceKind::File("a".to_owned()), Key::new(seed), give), log)
    }

    /// A list with this member.
    fn list(port: u64) -> Snapshot {
        let member = Member { addr: format!("a:{port}"), id: None, weight: 1.0, state: State::Up };
        Snapshot { members: vec![member], ..Snapshot::default() }
    }

    fn defect(kind: FaultKind) -> Defect {
        Defect::new(kind, "it is away", "wait")
    }

    #[test]
    fn a_list_is_given_once_and_again_after_a_failure() {
        let log = run(async {
            let (mut post, log) = start(1);
            for port in [1, 1, 2, 2, 1] {
                post.list(list(port)).await;
            }
            // The second failure is not reported so soon, and still the list is given again.
            for _ in 0..2 {
                post.fail(defect(FaultKind::Late), MOST_PAUSE).await;
                post.list(list(1)).await;
                post.list(list(1)).await;
            }
            log.take()
        });
        let texts: Vec<&str> = log.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["a:1", "a:2", "a:1", "file a: it is away; wait", "a:1", "a:1"]);
    }

    #[test]
    fn ten_lists_a_second_are_given_and_the_last_one_always() {
        let log = run(async {
            let (mut post, log) = start(1);
            // Another list at each instant. The first is given at once.
            for port in 0..20 {
                post.list(list(port)).await;
            }
            // A registry that changes each millisecond, of which the source takes all changes at once.
            let begun = Instant::now();
            for port in 1000..3000 {
                sleep_until(begun + Duration::from_millis(port - 1000)).await;
                if Instant::now() >= post.ready_at() || port == 2999 {
                    post.list(list(port)).await;
                }
            }
            log.take()
        });
        assert_eq!(log.first(), Some(&(Duration::ZERO, "a:0".to_owned())));
        assert_eq!(log.get(19).map(|(_, text)| text.as_str()), Some("a:19"));
        assert_eq!(log.last().map(|(_, text)| text.as_str()), Some("a:2999"));
        for pair in log.windows(2) {
            let apart = pair[1].0 - pair[0].0;
            assert!(apart >= APART && apart < 2 * APART, "{pair:?}");
        }
    }

    /// The first pauses of many sources, s: those after the nth failure together.
    fn draw_pauses(sources: u64, failures: usize, most: Duration) -> Vec<Vec<f64>> {
        run(async {
            let mut pauses = vec![Vec::new(); failures];
            for seed in 0..sources {
                let (mut post, _) = start(seed);
                for pauses in &mut pauses {
                    let begun = Instant::now();
                    post.fail(defect(FaultKind::Late), most).await;
                    pauses.push(begun.elapsed().as_secs_f64());
                }
            }
            pauses
        })
    }

    /// Five standard deviations and the ticks of timers: of 36 true statements one fails by chance in 50,000 runs, and
    /// the draws are the same in each.
    #[test]
    fn pauses_are_uniform_up_to_a_bound_that_doubles() {
        const SOURCES: f64 = 2000.0;
        let bounds = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0];
        let all = draw_pauses(SOURCES as u64, bounds.len(), Duration::MAX);
        for (pauses, bound) in all.iter().zip(bounds) {
            let greatest = pauses.iter().copied().fold(0.0, f64::max);
            assert!(greatest <= bound + TICK_S && greatest > 0.98 * bound, "{greatest} of {bound}");
            let mean = pauses.iter().sum::<f64>() / SOURCES;
            let deviation = bound / (12.0 * SOURCES).sqrt();
            assert!((mean - bound / 2.0).abs() < 5.0 * deviation + TICK_S, "{mean} of {bound}");
            for share in [0.25, 0.75] {
                let below = pauses.iter().filter(|pause| **pause < share * bound).count() as f64;
                let deviation = (SOURCES * share * (1.0 - share)).sqrt();
                let most = 5.0 * deviation + SOURCES * TICK_S / bound;
                assert!((below - SOURCES * share).abs() < most, "{below} below {share} of {bound}");
            }
        }
    }

    #[test]
    fn pauses_have_the_bound_of_the_source_and_begin_anew_after_a_list() {
        let longest = |pauses: &[f64]| pauses.iter().copied().fold(0.0, f64::max);
        let all = draw_pauses(500, 8, Duration::from_secs(1));
        assert!(all.iter().all(|pauses| longest(pauses) <= 1.0 + TICK_S));
        assert!(longest(&all[7]) > 0.9);
        let after_lists: Vec<f64> = run(async {
            let (mut post, _) = start(1);
            let mut pauses = Vec::new();
            for port in 0..200 {
                post.fail(defect(FaultKind::Late), MOST_PAUSE).await;
                post.fail(defect(FaultKind::Late), MOST_PAUSE).await;
                post.list(list(port)).await;
                let begun = Instant::now();
                post.fail(defect(FaultKind::Late), MOST_PAUSE).await;
                pauses.push(begun.elapsed().as_secs_f64());
                post.list(list(port)).await;
            }
            pauses
        });
        assert!(longest(&after_lists) <= 0.1 + TICK_S && longest(&after_lists) > 0.09);
    }

    #[test]
    fn each_failure_is_noted_whether_or_not_it_is_reported() {
        let counts = Rc::new(RefCell::new([0, 0]));
        let out = counts.clone();
        let give = move |notice: Notice| match notice {
            Notice::Failure => out.borrow_mut()[0] += 1,
            Notice::Posted(posted) => out.borrow_mut()[1] += usize::from(posted.is_err()),
        };
        run(async {
            let mut post = Post::new(&SourceKind::File("a".to_owned()), Key::new(1), give);
            for _ in 0..10 {
                post.fail(defect(FaultKind::Late), MOST_PAUSE).await;
            }
        });
        assert_eq!(*counts.borrow(), [10, 1]);
    }

    #[test]
    fn each_kind_of_fault_is_reported_once_and_then_every_five_minutes() {
        let end = Duration::from_secs(1200);
        let log = run(async {
            let (mut post, log) = start(1);
            let kinds = [FaultKind::Late, FaultKind::Cut].into_iter().cycle();
            let begun = Instant::now();
            for kind in kinds {
                if begun.elapsed() >= end {
                    break;
                }
                post.fail(defect(kind), MOST_PAUSE).await;
            }
            log.take()
        });
        // Both kinds at once, then one report at each of three reminders.
        assert_eq!(log.len(), 5, "{log:?}");
        assert_eq!(log[0], (Duration::ZERO, "file a: it is away; wait".to_owned()));
        assert!(log[1].0 <= Duration::from_millis(102), "{log:?}");
        for pair in log[1..].windows(2) {
            let apart = pair[1].0 - pair[0].0;
            assert!(apart >= Duration::from_secs(300) && apart < Duration::from_secs(331), "{log:?}");
            assert!(pair[1].1.ends_with(&format!("(no list for {}s)", pair[1].0.as_secs())), "{log:?}");
        }
    }
}
