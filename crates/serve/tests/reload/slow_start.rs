//! Ramps of targets that a reload adds, or that come back: their limits grow, and ramps go on over reloads and hand-overs.

use super::load::{file, servers, two_loops};
use super::successor::{Control, successor};
use super::support::{Mode, Origin, RunningBalancer, serve_whole, until};
use std::time::{Duration, Instant};
use weir_serve::{PoolView, Predecessor, SetTarget, State, TargetState, TargetView};

/// The only balancer. A thread that is busy answers later.
fn pool(x: &RunningBalancer) -> PoolView {
    let mut pool = None;
    until("its owner answers", || {
        pool = x.remote().view(false).pools.into_iter().next();
        pool.is_some()
    });
    pool.expect("it has answered")
}

fn target(x: &RunningBalancer, origin: &Origin) -> TargetView {
    let addr = origin.addr.to_string();
    let targets = pool(x).targets;
    targets.into_iter().find(|target| target.name == addr).expect("it is a target")
}

fn set(x: &RunningBalancer, origin: &Origin, state: TargetState) {
    let set = SetTarget { state: Some(state), ..SetTarget::default() };
    x.remote().set_target("apps", &origin.addr.to_string(), set).expect("it can be set");
}

/// Requests that wait go to a newcomer as it may have more, though none comes back; never before. Its last step comes with
/// the end of the window.
fn newcomer_fills_as_it_may(scope: &str) {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let of = |origins: &[&Origin]| {
        let settings = "max_in_flight = 20, slow_start = slow_start(3 * s, limits = True)";
        let targets = servers(origins);
        file(&format!("lb.round_robin([{targets}], name = \"apps\", scope = \"{scope}\", {settings})"))
    };
    let x = serve_whole(&of(&[&a]), two_loops());
    for origin in [&a, &b] {
        origin.answer(Mode::Hold);
    }
    let begun = Instant::now();
    x.reload(&of(&[&a, &b])).expect("it can be served");
    // One that waited before would never go to the newcomer, which its graph does not have.
    let held: Vec<_> = (0..40).map(|_| x.send("")).collect();
    let most = |elapsed: Duration| ((20.0 * elapsed.as_secs_f64() / 3.0 + 0.01) as u32).clamp(2, 20);
    until("all are inside", || {
        let inside = b.inside().0;
        assert!(inside <= most(begun.elapsed()), "{inside} after {:?}", begun.elapsed());
        let target = target(&x, &b);
        let left = |share: f64| (20.0 * share + 1e-9) as u32;
        assert_eq!(target.limit, target.share.map(left), "{target:?}");
        inside == 20
    });
    assert!(begun.elapsed() >= Duration::from_millis(2900), "{:?}", begun.elapsed());
    for origin in [&a, &b] {
        origin.answer(Mode::Status(200));
    }
    held.into_iter().for_each(|one| assert_eq!(one.wait().status, 200));
    assert!(a.inside().1 <= 20 && b.inside().1 <= 20);
}

#[test]
fn the_limit_of_a_newcomer_grows() {
    newcomer_fills_as_it_may("loop");
}

/// Loops ask the owner of the state then: they have to ask again at each step.
#[test]
fn the_limit_of_a_newcomer_grows_where_the_process_picks() {
    newcomer_fills_as_it_may("process");
}

/// A target comes back with more in flight than its ramp lets it have: it gets no request until fewer are.
#[test]
fn a_limit_below_what_is_in_flight_admits_none() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let settings = "name = \"apps\", max_in_flight = 20, slow_start = slow_start(600 * s, limits = True)";
    let x = serve_whole(&file(&format!("lb.round_robin([{}], {settings})", servers(&[&a, &b]))), two_loops());
    for origin in [&a, &b] {
        origin.answer(Mode::Hold);
    }
    let mut held: Vec<_> = (0..10).map(|_| x.send("")).collect();
    until("ten are inside", || a.inside().0 + b.inside().0 == 10);
    let before = b.inside().0;
    assert!(before > 2, "{before}");
    for (state, word) in [(TargetState::Drain, "drain"), (TargetState::File, "file")] {
        set(&x, &b, state);
        until("it is set", || target(&x, &b).admin == word);
    }
    let back = target(&x, &b);
    assert_eq!((back.share, back.limit, back.state), (Some(0.1), Some(2), State::Full), "{back:?}");
    held.extend((0..25).map(|_| x.send("")));
    until("a is full and the rest waits", || pool(&x).waiting == Some(15 - u64::from(before)));
    assert_eq!(b.inside(), (before, before), "none has come");
    // The others end, and those that wait follow them, two at a time.
    b.answer(Mode::Status(200));
    until("none waits", || pool(&x).waiting == Some(0));
    assert_eq!(b.inside().1, before);
    a.answer(Mode::Status(200));
    held.into_iter().for_each(|one| assert_eq!(one.wait().status, 200));
}

/// Of these three `c` is on its ramp, at least so far as it was; the others are on none.
fn only_c_ramps(x: &RunningBalancer, [a, b, c]: [&Origin; 3], grown: f64) {
    let [a, b, c] = [a, b, c].map(|origin| target(x, origin));
    assert!(c.share.is_some_and(|share| share >= grown), "{grown}: {c:?}");
    assert_eq!(c.limit, c.share.map(|share| (100.0 * share + 0.5) as u32), "{c:?}");
    assert!(c.why.iter().any(|why| why.starts_with("slow start: ")), "{c:?}");
    assert!([&a, &b, &c].iter().all(|target| target.picked), "{a:?} {b:?} {c:?}");
    assert_eq!([a.share, b.share], [None; 2]);
}

/// Neither a reload nor another process begins ramps anew: not that of a newcomer, nor those of targets that had none.
#[test]
fn ramps_go_on_over_reloads_and_hand_overs() {
    let (a, b, c) = (Origin::new("a"), Origin::new("b"), Origin::new("c"));
    let of = |origins: &[&Origin], more: &str| {
        let ramp = "slow_start(600 * s, aggression = 3.0, min_weight = 0.01, limits = True)";
        let settings = format!("name = \"apps\", max_in_flight = 100, slow_start = {ramp}{more}");
        file(&format!("lb.round_robin([{}], {settings})", servers(origins)))
    };
    let old = serve_whole(&of(&[&a, &b], ""), two_loops());
    set(&old, &b, TargetState::Up);
    until("it is kept up by hand", || target(&old, &b).admin == "up");
    assert_eq!([&a, &b].map(|origin| target(&old, origin).share), [None; 2], "never at the start");
    old.reload(&of(&[&a, &b, &c], "")).expect("it can be served");
    let mut grown = 0.0;
    until("c has a share", || {
        grown = target(&old, &c).share.expect("a ramp of ten minutes");
        grown > 0.12
    });
    old.reload(&of(&[&c, &a, &b], ", pass_over = 2 * s")).expect("it can be served");
    only_c_ramps(&old, [&a, &b, &c], grown);
    // Of the successor none is up until its first check, which most have long after this test.
    let checked =
        of(&[&a, &b, &c], ", health = health.tcp(interval = 600 * s, initial = \"checked\"), panic = 0");
    let control = Control::new("ramps");
    let ended = control.hands_over(&old);
    let predecessor = Predecessor::ask(&control.0).expect("it answers").expect("it is there");
    let new = successor(&checked, &predecessor);
    new.heed(&predecessor);
    only_c_ramps(&new, [&a, &b, &c], grown);
    predecessor.relieve(&new.remote()).expect("it listens");
    ended.join().expect("no panic").expect("it went well");
    old.ends();
    only_c_ramps(&new, [&a, &b, &c], grown);
}
