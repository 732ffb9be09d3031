//! A registry is asked for ever: where a mistake of weir's ends the asking by a panic, that is reported, and the
//! asking begins again after a while. The other registries are asked meanwhile.

use super::post::{Notice, Post};
use crate::fault::{Defect, Fault, FaultKind, Reports};
use crate::list::Snapshot;
use crate::source::FollowedSource;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use weir_stats::Key;

/// How long after a panic the asking begins again.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// Asks a registry by the future that `begin` makes, which never ends but by a panic. After one the next future has
/// the last list that was given.
pub(super) async fn ask_again<F: Future<Output = ()> + 'static>(
    mut source: FollowedSource,
    draw: Key,
    give: impl Fn(Notice) + Clone + 'static,
    begin: impl Fn(FollowedSource, Post) -> F,
) {
    let start = Instant::now();
    let mut reports = Reports::default();
    for attempt in 0_u64.. {
        let given = Rc::<RefCell<Option<Arc<Snapshot>>>>::default();
        let (note, out) = (given.clone(), give.clone());
        let post = Post::new(&source.kind, draw.with(attempt), move |notice: Notice| {
            if let Notice::Posted(Ok(list)) = &notice {
                *note.borrow_mut() = Some(list.clone());
            }
            out(notice);
        });
        // The asking ends with this future, if that ends first.
        let mut asking = JoinSet::new();
        asking.spawn_local(begin(source.clone(), post));
        let end = asking.join_next().await;
        if !end.is_some_and(|end| end.is_err_and(|e| e.is_panic())) {
            return;
        }
        let now_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if let Some(list) = given.take() {
            source.last = Some(list);
            reports.clear(now_ns);
        }
        let problem = "asking it broke off by a mistake of weir's";
        let defect = Defect::new(FaultKind::Unexpected, problem, "report it");
        give(Notice::Failure);
        if let Some(lasting) = reports.admit(now_ns, defect.kind) {
            give(Notice::Posted(Err(Fault { subject: source.kind.to_string(), defect, lasting })));
        }
        sleep(AGAIN_AFTER).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::{Member, State};
    use std::future::pending;
    use tokio::runtime::Builder;
    use tokio::task::{LocalSet, spawn_local, yield_now};
    use tokio::time::timeout;
    use weir_plan::SourceKind;

    /// What was given, and when.
    type Log = Rc<RefCell<Vec<(Duration, String)>>>;

    /// What is given while this source is asked for that time, which passes only by waiting.
    fn log<F: Future<Output = ()> + 'static>(
        length: Duration,
        begin: impl Fn(FollowedSource, Post) -> F,
    ) -> Vec<(Duration, String)> {
        let log = Log::default();
        let out = log.clone();
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
        let tasks = LocalSet::new();
        let asked = async {
            let begun = Instant::now();
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
            let source = SourceKind::File("a".to_owned()).into();
            timeout(length, ask_again(source, Key::new(1), give, begin)).await
        };
        let end = tasks.block_on(&runtime, asked);
        assert!(end.is_err(), "it is asked for ever");
        log.take()
    }

    fn list(addr: &str) -> Snapshot {
        let member = Member { addr: addr.to_owned(), id: None, weight: 1.0, state: State::Up };
        Snapshot { members: vec![member], ..Snapshot::default() }
    }

    #[test]
    fn a_source_that_broke_off_is_reported_and_asked_again_with_its_last_list() {
        let given = log(Duration::from_secs(60), |source, mut post| async move {
            let is_first = source.last.is_none();
            post.list(list("a:1")).await;
            assert!(!is_first, "the first attempt breaks off");
            pending::<()>().await;
        });
        let texts: Vec<&str> = given.iter().map(|(_, text)| text.as_str()).collect();
        let fault = "file a: asking it broke off by a mistake of weir's; report it";
        assert_eq!(texts, ["a:1", fault, "a:1"]);
        let seconds: Vec<u64> = given.iter().map(|(at, _)| at.as_secs()).collect();
        assert_eq!(seconds, [0, 0, 30]);
    }

    #[test]
    fn what_was_begun_ends_with_the_asking() {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let alive = Rc::new(());
        LocalSet::new().block_on(&runtime, async {
            let held = alive.clone();
            let begin = move |_: FollowedSource, _: Post| {
                let held = held.clone();
                async move {
                    pending::<()>().await;
                    drop(held);
                }
            };
            let source = SourceKind::File("a".to_owned()).into();
            let asking = spawn_local(ask_again(source, Key::new(1), |_: Notice| {}, begin));
            // This test, the function, and the future that it has made.
            while Rc::strong_count(&alive) < 3 {
                yield_now().await;
            }
            asking.abort();
            assert!(asking.await.is_err_and(|e| e.is_cancelled()));
            for _ in 0..10 {
                yield_now().await;
            }
            assert_eq!(Rc::strong_count(&alive), 1);
        });
    }

    /// A source that gives nothing.
    async fn break_off(_: FollowedSource, _: Post) {
        panic!("it breaks off");
    }

    #[test]
    fn a_source_that_always_breaks_off_is_reported_every_five_minutes() {
        let given = log(Duration::from_secs(620), break_off);
        let seconds: Vec<u64> = given.iter().map(|(at, _)| at.as_secs()).collect();
        // Each attempt may be a few milliseconds late, but no report comes earlier.
        assert_eq!(seconds, [0, 300, 600]);
        assert!(given[1].1.ends_with("report it (no list for 300s)"), "{given:?}");
    }
}
