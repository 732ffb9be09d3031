//! Tasks, wakers of other threads, and sockets.

use super::*;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::task::Waker;
use std::time::Duration;

fn run<T, F: Future<Output = T>>(main: impl FnOnce(Runtime) -> F) -> T {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(main(runtime.clone())).expect("it runs")
}

fn pair(runtime: &Runtime) -> (Stream<UnixStream>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    ours.set_nonblocking(true).expect("it does not block");
    (Stream::new(runtime, ours).expect("it is watched"), theirs)
}

async fn read(stream: &Stream<UnixStream>, into: &mut [u8]) -> io::Result<usize> {
    poll_fn(|cx| stream.poll_read(cx, into)).await
}

#[test]
fn a_panic_ends_its_task_alone() {
    let ended = run(|runtime| async move {
        let broken = runtime.spawn(async { panic!("of one task, wanted by the test") });
        let whole = runtime.spawn(async { yield_now().await });
        broken.await;
        whole.await;
        true
    });
    assert!(ended);
}

/// What a task that is still there owns is dropped with the runtime, even what it begins then.
#[test]
fn the_end_drops_all_tasks() {
    struct Begins(Runtime, Rc<Cell<u32>>);
    impl Drop for Begins {
        fn drop(&mut self) {
            self.1.set(self.1.get() + 1);
            if self.1.get() < 3 {
                let next = Begins(self.0.clone(), self.1.clone());
                self.0.spawn(async move {
                    std::future::pending::<()>().await;
                    drop(next);
                });
            }
        }
    }
    let dropped = Rc::new(Cell::new(0));
    let count = dropped.clone();
    run(|runtime| async move {
        let first = Begins(runtime.clone(), count);
        runtime.spawn(async move {
            std::future::pending::<()>().await;
            drop(first);
        });
        yield_now().await;
    });
    assert_eq!(dropped.get(), 3);
}

/// A task that has ended is used again, unless something waits for its end.
#[test]
fn a_task_that_nothing_holds_is_used_again() {
    run(|runtime| async move {
        let count = || (runtime.0.tasks.borrow().len(), runtime.0.spare.borrow().len());
        for _ in 0..3 {
            runtime.spawn(async {});
            yield_now().await;
            assert_eq!(count(), (2, 1));
        }
        let ended = runtime.spawn(async {});
        yield_now().await;
        let goes_on = runtime.spawn(std::future::pending());
        assert_eq!(count(), (2, 0));
        ended.await;
        assert!(!goes_on.0.has_ended());
    });
}

/// A waker that is left of a task wakes the next future in it, for nothing.
#[test]
fn a_waker_that_is_left_does_no_harm() {
    run(|runtime| async move {
        let left = Rc::new(Cell::new(None));
        let leaves = left.clone();
        runtime.spawn(poll_fn(move |cx| {
            leaves.set(Some(cx.waker().clone()));
            Poll::Ready(())
        }));
        yield_now().await;
        let polls = Rc::new(Cell::new(0));
        let counts = polls.clone();
        let next = runtime.spawn(poll_fn(move |_| {
            counts.set(counts.get() + 1);
            Poll::<()>::Pending
        }));
        let left: Waker = left.take().expect("the waker of the task that has ended");
        assert!(left.will_wake(&next.0.waker), "the task is used again");
        left.wake();
        yield_now().await;
        yield_now().await;
        assert_eq!(polls.get(), 2);
    });
}

/// What wakes a task as it ends is not an event, and does not keep the task from its next use.
#[test]
fn a_wake_of_a_task_that_has_ended_is_nothing() {
    run(|runtime| async move {
        let key = Rc::new(Cell::new(None));
        let tells = key.clone();
        yield_now().await;
        let events = runtime.events();
        runtime.spawn(poll_fn(move |cx| {
            cx.waker().wake_by_ref();
            tells.set(Some(cx.waker().clone()));
            Poll::Ready(())
        }));
        yield_now().await;
        // Its own wake, of `yield_now`.
        assert_eq!(runtime.events() - events, 1);
        let next = runtime.spawn(async { yield_now().await });
        assert!(key.take().is_some_and(|waker| waker.will_wake(&next.0.waker)));
        next.await;
    });
}

#[test]
fn the_memory_of_a_task_is_used_again() {
    run(|runtime| async move {
        let memory = crate::io::reuse::Reuse::default().memory();
        let (held, begin) = (Rc::new(()), |held: Rc<()>| async move { drop(held) });
        for _ in 0..3 {
            runtime.spawn_reusing(&memory, begin(held.clone()));
            assert_eq!((memory.free(), Rc::strong_count(&held)), (0, 2));
            yield_now().await;
            assert_eq!((memory.free(), Rc::strong_count(&held)), (1, 1));
        }
        // A future that panics gives it back as well.
        let panics =
            |held: Rc<()>| async move { assert!(Rc::strong_count(&held) == 0, "wanted by the test") };
        let memory = crate::io::reuse::Reuse::default().memory();
        runtime.spawn_reusing(&memory, panics(held.clone()));
        yield_now().await;
        assert_eq!((memory.free(), Rc::strong_count(&held)), (1, 1));
    });
}

/// A loop that sleeps, or is just about to, hears of every wake; what was woken twice runs.
#[test]
fn other_threads_wake() {
    const TIMES: u32 = 20_000;
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
    let (back, mut came) = tokio::sync::mpsc::unbounded_channel();
    let other = std::thread::spawn(move || {
        run(|_| async move {
            while let Some(n) = receive.recv().await {
                if back.send(n).is_err() {
                    return;
                }
            }
        });
    });
    let sum = run(|_| async move {
        let mut sum = 0u64;
        for n in 0..TIMES {
            send.send(n).expect("the other listens");
            sum += u64::from(came.recv().await.expect("it answers"));
        }
        sum
    });
    other.join().expect("the other thread");
    assert_eq!(sum, u64::from(TIMES) * u64::from(TIMES - 1) / 2);
}

/// An end of stream that comes with the last bytes, or after them, is read.
#[test]
fn the_end_of_a_stream_is_read() {
    run(|runtime| async move {
        for both_at_once in [true, false] {
            let (ours, mut theirs) = pair(&runtime);
            theirs.write_all(b"last").expect("it takes that");
            let mut into = [0; 64];
            if both_at_once {
                drop(theirs);
                assert_eq!(read(&ours, &mut into).await.expect("bytes"), 4);
            } else {
                assert_eq!(read(&ours, &mut into).await.expect("bytes"), 4);
                drop(theirs);
            }
            assert_eq!(read(&ours, &mut into).await.expect("the end"), 0);
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "a reader that takes its time")]
fn pause() {
    std::thread::sleep(Duration::from_micros(200));
}

/// A reader that stops and goes on: the writer waits for room and is woken, and every byte arrives.
#[test]
fn a_full_socket_is_written_on_when_there_is_room() {
    const BYTES: usize = 4 << 20;
    run(|runtime| async move {
        let (ours, mut theirs) = pair(&runtime);
        let reader = std::thread::spawn(move || {
            let (mut n, mut into) = (0, vec![0; 100_000]);
            loop {
                pause();
                match theirs.read(&mut into).expect("it reads") {
                    0 => return n,
                    more => n += more,
                }
            }
        });
        let bytes = vec![7; BYTES];
        let (mut sent, mut waits) = (0, 0);
        poll_fn(|cx| {
            while sent < BYTES {
                match ours.poll_write(cx, &bytes[sent..]) {
                    Poll::Ready(n) => sent += n.expect("it is taken"),
                    Poll::Pending => {
                        waits += 1;
                        return Poll::Pending;
                    }
                }
            }
            Poll::Ready(())
        })
        .await;
        drop(ours);
        assert_eq!(reader.join().expect("the reader"), BYTES);
        assert!(waits > 0, "the socket was never full");
    });
}

/// A socket that holds something to read whenever it is looked at: its reader fills it again at once.
struct Endless {
    ours: Stream<UnixStream>,
    theirs: UnixStream,
}

impl Endless {
    fn new(runtime: &Runtime) -> Endless {
        let (ours, theirs) = pair(runtime);
        theirs.set_nonblocking(true).expect("it does not block");
        let endless = Endless { ours, theirs };
        endless.fill();
        endless
    }

    fn fill(&self) {
        while (&self.theirs).write(&[0; 16 * 1024]).is_ok() {}
    }

    /// Reads for as long as the task has a turn, and says after each one what it has read in it: bytes and calls.
    async fn read(self, piece: usize, mut turn_ends: impl FnMut(usize, u32)) {
        let mut into = vec![0; piece];
        poll_fn(|cx| {
            let (mut bytes, mut reads) = (0, 0);
            while let Poll::Ready(n) = self.ours.poll_read(cx, &mut into) {
                (bytes, reads) = (bytes + n.expect("bytes"), reads + 1);
                self.fill();
            }
            turn_ends(bytes, reads);
            Poll::<()>::Pending
        })
        .await;
    }
}

/// A task that always has something to read stops in time, whether in many small pieces or in few large ones.
#[test]
fn nobody_reads_for_ever() {
    for (piece, calls) in [(16, BUDGET), (64 * 1024, BUDGET_BYTES as u32 / (64 * 1024))] {
        run(|runtime| async move {
            let turns = Rc::new(RefCell::new(Vec::new()));
            let log = turns.clone();
            let endless = Endless::new(&runtime);
            runtime.spawn(endless.read(piece, move |bytes, reads| log.borrow_mut().push((bytes, reads))));
            while turns.borrow().len() < 100 {
                yield_now().await;
            }
            // Until the first poll of the sockets, it is unknown that there is something to read.
            let turns = turns.borrow();
            for (bytes, reads) in turns.iter().skip_while(|(_, reads)| *reads == 0) {
                assert!(*reads >= calls && *reads <= BUDGET, "{reads} reads of {piece} bytes in one turn");
                assert!(*bytes < BUDGET_BYTES + piece, "{bytes} bytes in one turn");
            }
        });
    }
}

/// A task that has used up its turn gets no other before the sockets were asked again: a task that has received
/// something meanwhile comes first.
#[test]
fn the_sockets_are_asked_before_anybody_reads_on() {
    const GREEDY: usize = 6;
    run(|runtime| async move {
        let (modest, mut other) = pair(&runtime);
        let turns = Rc::new(Cell::new(0));
        let sent_at = Rc::new(Cell::new(None));
        for number in 0..GREEDY {
            let endless = Endless::new(&runtime);
            let (turns, sent_at) = (turns.clone(), sent_at.clone());
            let mut other = other.try_clone().expect("a descriptor");
            runtime.spawn(endless.read(64 * 1024, move |_, _| {
                turns.set(turns.get() + 1);
                // Those behind it in this turn may still have theirs.
                if number == 0 && sent_at.get().is_none() && turns.get() > 10 * GREEDY {
                    other.write_all(b"x").expect("there is room");
                    sent_at.set(Some(turns.get()));
                }
            }));
        }
        assert_eq!(read(&modest, &mut [0; 16]).await.expect("a byte"), 1);
        let waited = turns.get() - sent_at.get().expect("it was sent");
        assert!(waited <= GREEDY, "{waited} turns of {GREEDY} others before it was its own");
        other.write_all(b"y").expect("it is still there");
    });
}

/// The same for a task without sockets, such as one with a full mailbox, that waits for the next turn.
#[test]
fn the_next_turn_comes_after_the_sockets() {
    run(|runtime| async move {
        let (modest, mut other) = pair(&runtime);
        let turns = Rc::new(Cell::new(0));
        let (count, own) = (turns.clone(), runtime.clone());
        runtime.spawn(async move {
            loop {
                count.set(count.get() + 1);
                if count.get() == 3 {
                    other.write_all(b"x").expect("there is room");
                }
                own.next_turn().await;
            }
        });
        assert_eq!(read(&modest, &mut [0; 16]).await.expect("a byte"), 1);
        assert!((3..=4).contains(&turns.get()), "{} turns before it was its own", turns.get());
    });
}

/// Connections are accepted one for each event, all of them, also after a pause.
#[test]
fn a_listener_is_told_of_everybody() {
    run(|runtime| async move {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("it does not block");
        let acceptor = Acceptor::new(&runtime, listener.into()).expect("it is watched");
        let clients: Vec<_> =
            (0..20).map(|_| std::net::TcpStream::connect(address).expect("a connection")).collect();
        // A task that accepts again is woken again. (That a quiet listener costs nothing: serve_faults, out of
        // descriptors.)
        acceptor.quiet();
        for _ in &clients {
            poll_fn(|cx| acceptor.poll_accept(cx)).await.expect("somebody");
        }
        let nobody = acceptor.accept().expect_err("nobody");
        assert_eq!(nobody.kind(), io::ErrorKind::WouldBlock);
    });
}

/// A task that waits for the loop to sleep and to be woken goes on before what woke it.
#[test]
fn the_task_that_rests_goes_first() {
    let (send, receive) = tokio::sync::oneshot::channel::<()>();
    let order = run(|runtime| async move {
        let order = Rc::new(RefCell::new(Vec::new()));
        let (said, saw) = (order.clone(), runtime.clone());
        let other = runtime.spawn(async move {
            receive.await.expect("it is sent");
            said.borrow_mut().push("other");
        });
        yield_now().await;
        let said = order.clone();
        let signs = runtime.signs();
        let sender = std::thread::spawn(move || {
            while !signs.is_asleep() {
                std::thread::yield_now();
            }
            // Before the wake, after which turns go on.
            let asleep_in = signs.turn();
            send.send(()).expect("it is awaited");
            asleep_in
        });
        let events = saw.events();
        let rests = runtime.spawn(async move {
            saw.slept().await;
            assert!(saw.events() > events, "the wake");
            said.borrow_mut().push("rests");
        });
        rests.await;
        other.await;
        let asleep_in = sender.join().expect("the other thread");
        assert!(runtime.signs().turn() > asleep_in);
        order.take()
    });
    assert_eq!(order, ["rests", "other"]);
}

/// If others have a turn first, the loop does not sleep: what they have begun may be due sooner.
#[test]
fn a_rest_ends_where_others_have_a_turn() {
    run(|runtime| async move {
        let rt = runtime.clone();
        let rests = runtime.spawn(async move { rt.slept().await });
        runtime.spawn(async {});
        // Nothing else wakes this loop.
        rests.await;
    });
}
