//! Semaphore and lines with real threads, each with an event loop of its own.

use super::*;
use crate::sync::wait_queue::SharedQueue;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;
use weir_net::io::clock::Clock;
use weir_net::io::runtime::Runtime;
use weir_net::io::timers::Timers;
use weir_stats::Key;

/// The state that all threads of a test share.
struct World {
    semaphore: Arc<Semaphore>,
    shared: Arc<SharedQueue>,
    inside: AtomicU32,
    most: AtomicU32,
    entered: AtomicU64,
    left: AtomicUsize,
    /// Tickets in the order in which they entered.
    order: Mutex<Vec<u64>>,
}

fn on_thread<F: Future<Output = ()>>(main: impl FnOnce(Runtime) -> F) {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(main(runtime.clone())).expect("it runs");
}

/// Runs `tasks` of `script` on each of `k` threads; ends when all are done, or fails when there was no progress for a
/// minute.
fn run<F: Future<Output = ()> + 'static>(
    k: usize,
    concurrency: u32,
    tasks: usize,
    script: impl Fn(Rc<LocalSemaphore>, Rc<Timers>, Arc<World>, Key) -> F + Copy + Send + 'static,
) -> Arc<World> {
    let (mail, boxes): (Vec<_>, Vec<_>) = (0..k).map(|_| unbounded_channel()).unzip();
    let world = Arc::new(World {
        semaphore: Arc::new(Semaphore::new(1, concurrency)),
        shared: Arc::new(SharedQueue::new(0, mail.into())),
        inside: AtomicU32::new(0),
        most: AtomicU32::new(0),
        entered: AtomicU64::new(0),
        left: AtomicUsize::new(k * tasks),
        order: Mutex::default(),
    });
    let threads: Vec<_> = boxes
        .into_iter()
        .enumerate()
        .map(|(me, mut mail)| {
            let world = world.clone();
            std::thread::spawn(move || {
                on_thread(|runtime| async move {
                    let timers = Timers::new(&runtime, Clock::start()).expect("timers");
                    runtime.spawn(timers.clone().run(runtime.clone()));
                    let queue = WaitQueue::new(world.shared.clone(), me);
                    let local = Rc::new(LocalSemaphore::new(world.semaphore.clone(), queue.clone()));
                    runtime.spawn(async move {
                        while mail.recv().await.is_some() {
                            queue.notified();
                        }
                    });
                    for task in 0..tasks {
                        let key = Key::new(me as u64).with(task as u64);
                        let (local, timers, world) = (local.clone(), timers.clone(), world.clone());
                        runtime.spawn(async move {
                            script(local, timers, world.clone(), key).await;
                            world.left.fetch_sub(1, SeqCst);
                        });
                    }
                    // Others may still need this loop to pass on a free slot.
                    let seen = || (world.entered.load(SeqCst), world.left.load(SeqCst));
                    let (mut last, mut since) = (seen(), std::time::Instant::now());
                    while world.left.load(SeqCst) > 0 {
                        if seen() != last {
                            (last, since) = (seen(), std::time::Instant::now());
                        }
                        assert!(since.elapsed() < Duration::from_secs(60), "somebody waits for ever");
                        timers.after(200_000).await;
                    }
                });
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().expect("a thread"));
    assert!(world.most.load(SeqCst) <= concurrency);
    assert_eq!((world.semaphore.inside(0), world.inside.load(SeqCst)), (0, 0));
    world
}

/// Stays inside for a moment.
async fn visit(world: &World, slot: Permit) {
    let inside = world.inside.fetch_add(1, SeqCst) + 1;
    world.most.fetch_max(inside, SeqCst);
    world.entered.fetch_add(1, Relaxed);
    tokio::task::yield_now().await;
    world.inside.fetch_sub(1, SeqCst);
    drop(slot);
}

/// Tens of thousands of entries over four loops; never more inside than allowed, and no waiter is forgotten.
#[test]
fn nobody_is_forgotten_and_never_too_many_are_inside() {
    for (k, concurrency) in [(1, 1), (4, 1), (4, 3)] {
        let world = run(k, concurrency, 100, |local, _, world, _| async move {
            for _ in 0..150 {
                let slot = local.acquire(u64::MAX, || None).await.expect("it waits as long as it takes");
                visit(&world, slot).await;
            }
        });
        assert_eq!(world.entered.load(SeqCst), k as u64 * 100 * 150);
        assert_eq!(world.most.load(SeqCst), concurrency);
        assert!(world.shared.is_at_rest());
    }
}

/// Waiters that leave at any moment, and a line that is sometimes full.
#[test]
fn those_who_leave_take_nothing_along() {
    let world = run(4, 2, 60, |local, timers, world, key| async move {
        for i in 0..100u64 {
            let draw = key.with(i);
            let limit = || Some(timers.after(draw.below(10_000_000)));
            let capacity = if draw.nth(1).below(8) == 0 { 20 } else { u64::MAX };
            let entering = local.acquire(capacity, limit);
            // Dropped half-way, as a cancelled request is.
            let entered = if draw.nth(2).below(4) == 0 {
                let mut polls = draw.nth(3).below(3);
                let mut entering = std::pin::pin!(entering);
                poll_fn(|cx| match entering.as_mut().poll(cx) {
                    Poll::Ready(done) => Poll::Ready(Some(done)),
                    Poll::Pending if polls == 0 => Poll::Ready(None),
                    Poll::Pending => {
                        polls -= 1;
                        Poll::Pending
                    }
                })
                .await
            } else {
                Some(entering.await)
            };
            if let Some(Ok(slot)) = entered {
                visit(&world, slot).await;
            }
        }
    });
    assert!(world.entered.load(SeqCst) > 0);
    assert!(world.shared.is_at_rest());
}

/// The waiter that enters has the lowest ticket of all waiting ones, on any loop.
#[test]
fn the_lowest_ticket_is_next() {
    let world = run(4, 1, 50, |local, _, world, _| async move {
        for _ in 0..100 {
            let place = local.queue.join(u64::MAX).expect("there is room");
            let mut held = None;
            poll_fn(|cx| {
                if place.is_first(cx)
                    && let Some(permit) = local.take(0)
                {
                    held = Some(permit);
                    // While it holds the slot no other enters.
                    world.order.lock().expect("no thread has panicked").push(place.ticket());
                    return Poll::Ready(());
                }
                Poll::Pending
            })
            .await;
            drop(place);
            visit(&world, held.expect("it was taken")).await;
        }
    });
    let order = world.order.lock().expect("no thread has panicked");
    assert_eq!(order.len(), 4 * 50 * 100);
    assert!(order.windows(2).all(|w| w[0] < w[1]), "somebody was overtaken");
}

/// Counts how often it was woken.
#[derive(Default)]
struct WakeCount(AtomicU32);

impl std::task::Wake for WakeCount {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A waiter that is notified of a free slot and leaves first passes the notification on: here and on another loop.
#[test]
fn a_chance_is_handed_on() {
    let (mail, mut boxes): (Vec<_>, Vec<_>) = (0..2).map(|_| unbounded_channel()).unzip();
    let shared = Arc::new(SharedQueue::new(7, mail.into()));
    let semaphore = Arc::new(Semaphore::new(1, 1));
    let locals: Vec<Rc<LocalSemaphore>> = (0..2)
        .map(|me| Rc::new(LocalSemaphore::new(semaphore.clone(), WaitQueue::new(shared.clone(), me))))
        .collect();
    let wakers: Vec<Arc<WakeCount>> = (0..4).map(|_| Arc::default()).collect();
    let woken = |i: usize| wakers[i].0.load(SeqCst);
    let inside = locals[0].take(0).expect("it is free");
    // Two wait here, then one there.
    let mut waiting: Vec<_> =
        [0, 0, 1].map(|on| Box::pin(locals[on].acquire(9, || None))).into_iter().collect();
    for (i, one) in waiting.iter_mut().enumerate() {
        assert!(
            one.as_mut().poll(&mut std::task::Context::from_waker(&wakers[i].clone().into())).is_pending()
        );
    }
    drop(inside);
    assert_eq!((woken(0), woken(1), woken(2)), (1, 0, 0), "the first is notified");
    drop(waiting.remove(0));
    assert_eq!((woken(1), woken(2)), (1, 0), "then the next one here");
    drop(waiting.remove(0));
    assert_eq!(boxes[1].try_recv().ok(), Some(7), "then the other loop");
    locals[1].queue.notified();
    assert_eq!(woken(2), 1);
    let done = waiting[0].as_mut().poll(&mut std::task::Context::from_waker(&wakers[2].clone().into()));
    assert!(matches!(done, Poll::Ready(Ok(_))));
    drop(waiting);
    drop(done);
    assert!(shared.is_at_rest() && semaphore.inside(0) == 0);
}

/// Each loop's view of full targets agrees with the counters once all is quiet, in any order of events.
#[test]
fn each_loop_knows_who_is_full() {
    let (mail, _boxes): (Vec<_>, Vec<_>) = (0..2).map(|_| unbounded_channel()).unzip();
    let shared = Arc::new(SharedQueue::new(0, mail.into()));
    let semaphore = Arc::new(Semaphore::new(130, 2));
    let threads: Vec<_> = (0..2)
        .map(|me| {
            let (semaphore, shared) = (semaphore.clone(), shared.clone());
            std::thread::spawn(move || {
                let local = Rc::new(LocalSemaphore::new(semaphore, WaitQueue::new(shared, me)));
                let mut full = [false; 130];
                let mut held = std::collections::VecDeque::new();
                for i in 0..50_000u64 {
                    let at = Key::new(i).with(me as u64).below(130) as u32;
                    local.changes(|t, is| full[t as usize] = is);
                    match local.take(at) {
                        Some(permit) => held.push_back(permit),
                        None => full[at as usize] = true,
                    }
                    if held.len() > 120 {
                        held.pop_front();
                    }
                }
                drop(held);
                (full, me)
            })
        })
        .collect();
    let mut views: Vec<_> = threads.into_iter().map(|t| t.join().expect("a thread").0).collect();
    let local = LocalSemaphore::new(semaphore.clone(), WaitQueue::new(shared, 0));
    local.changes(|t, is| views.iter_mut().for_each(|v| v[t as usize] = is));
    assert!((0..130).all(|t| semaphore.inside(t) == 0));
    let local = Rc::new(local);
    let both = [local.take(129), local.take(129)];
    let mut told = Vec::new();
    local.changes(|t, is| told.push((t, is)));
    assert!(both.iter().all(Option::is_some) && local.take(129).is_none());
    assert_eq!(told, [(129, true)]);
    drop(both);
    local.changes(|t, is| told.push((t, is)));
    assert_eq!(told, [(129, true), (129, false)]);
}

/// A counter with a limit of its own, below and above what is inside; that of all holds as well.
#[test]
fn one_counter_may_have_less_than_the_others() {
    let semaphore = Semaphore::new(70, 3);
    let full =
        |at: u32| semaphore.full.get(at / 64).is_some_and(|word| word.load(SeqCst) >> (at % 64) & 1 == 1);
    semaphore.set_limit(5, None);
    assert!((0..2).all(|_| semaphore.take(66)) && !full(66));
    semaphore.set_limit(66, Some(1));
    assert!(full(66) && !semaphore.take(66) && semaphore.limit(66) == 1 && semaphore.limit(5) == 3);
    semaphore.free(66);
    assert!(full(66) && !semaphore.take(66), "one is as many as may be inside");
    semaphore.free(66);
    assert!(!full(66) && semaphore.take(66) && full(66));
    semaphore.set_limit(66, Some(2));
    assert!(!full(66) && semaphore.take(66) && full(66));
    assert!(!semaphore.change(70, 1), "less room than before");
    assert!(semaphore.limit(66) == 1 && full(66));
    assert!(semaphore.change(70, 9));
    assert!(semaphore.limit(66) == 2 && full(66), "its own limit stays");
    semaphore.set_limit(66, None);
    assert!(semaphore.limit(66) == 9 && !full(66));
}

/// Limits move while requests come and go: once all is quiet, what is shown agrees with the counters.
#[test]
fn limits_may_move_under_load() {
    let semaphore = Semaphore::new(70, 4);
    let shown =
        |at: u32| semaphore.full.get(at / 64).is_some_and(|word| word.load(SeqCst) >> (at % 64) & 1 == 1);
    let agrees = |at: u32| shown(at) == semaphore.is_full(at) && semaphore.inside(at) <= semaphore.most();
    let come_and_go = |key: Key| {
        let mut held = std::collections::VecDeque::new();
        for i in 0..2_000 {
            let at = key.with(i).below(70) as u32;
            if semaphore.take(at) {
                held.push_back(at);
            }
            if held.len() > 90
                && let Some(at) = held.pop_front()
            {
                semaphore.free(at);
            }
        }
        held
    };
    for round in 0..20 {
        let key = Key::new(round);
        let held = std::thread::scope(|scope| {
            let threads = [1, 2].map(|me| scope.spawn(move || come_and_go(key.with(me))));
            for i in 0..2_000 {
                let draw = key.with(3).with(i);
                let limit = 1 + draw.with(1).below(4) as u32;
                semaphore.set_limit(draw.below(70) as u32, Some(limit).filter(|limit| *limit < 4));
            }
            threads.map(|thread| thread.join().expect("a thread"))
        });
        assert!((0..70).all(agrees), "in round {round}");
        held.into_iter().flatten().for_each(|at| semaphore.free(at));
        assert!((0..70).all(|at| semaphore.inside(at) == 0 && !shown(at)), "in round {round}");
    }
}
