//! Ramps of targets that a reload adds: they go on over reloads and hand-overs, and their limits grow.

use super::hand_over::{Control, successor};
use super::load::{file, servers, two_loops};
use super::support::{Mode, Origin, RunningBalancer, serve_whole, until};
use std::time::{Duration, Instant};
use weir_serve::{Predecessor, SetTarget, TargetState};

/// The share of each target on its ramp.
fn shares(x: &RunningBalancer) -> Vec<Option<f64>> {
    x.remote().view(false).pools[0].targets.iter().map(|target| target.share).collect()
}

/// Neither a reload nor another process begins ramps anew: not that of a newcomer, nor those of targets that had none.
#[test]
fn ramps_go_on_over_reloads_and_hand_overs() {
    let (a, b, c) = (Origin::new("a"), Origin::new("b"), Origin::new("c"));
    let of = |origins: &[&Origin], more: &str| {
        let settings = format!("name = \"apps\", slow_start = slow_start(20 * s, min_weight = 0.01){more}");
        file(&format!("lb.round_robin([{}], {settings})", servers(origins)))
    };
    let old = serve_whole(&of(&[&a, &b], ""), two_loops());
    let forced = SetTarget { state: Some(TargetState::Up), ..SetTarget::default() };
    old.remote().set_target("apps", &b.addr.to_string(), forced).expect("it is there");
    until("it is kept up by hand", || old.remote().view(false).pools[0].targets[1].admin == "up");
    assert_eq!(shares(&old), [None; 2], "never at the start");
    old.reload(&of(&[&a, &b, &c], "")).expect("it can be served");
    let grown = |x: &RunningBalancer| shares(x)[2].is_none_or(|share| share > 0.15);
    assert!(!grown(&old), "c is new: {:?}", shares(&old));
    until("c has a share", || grown(&old));
    old.reload(&of(&[&c, &a, &b], ", pass_over = 2 * s")).expect("it can be served");
    let [c_share, rest @ ..] = &shares(&old)[..] else { panic!("three targets") };
    assert!(c_share.is_none_or(|share| share > 0.15) && rest == [None; 2], "{c_share:?} {rest:?}");
    // Of the successor none is up until its first check.
    let checked =
        of(&[&a, &b, &c], ", health = health.tcp(interval = 30 * ms, initial = \"checked\"), panic = 0");
    let control = Control::new("ramps");
    let ended = control.hands_over(&old);
    let predecessor = Predecessor::ask(&control.0).expect("it answers").expect("it is there");
    let new = successor(&checked, &predecessor);
    new.heed(&predecessor);
    predecessor.relieve(&new.remote()).expect("it listens");
    ended.join().expect("no panic").expect("it went well");
    old.ends();
    until("it knows of c", || grown(&new));
    let [rest @ .., c_share] = &shares(&new)[..] else { panic!("three targets") };
    assert!(c_share.is_none_or(|share| share > 0.15) && rest == [None; 2], "{c_share:?} {rest:?}");
    let why = &new.remote().view(false).pools[0].targets[2];
    assert!(why.share.is_none() || why.why[0].starts_with("slow start: "), "{why:?}");
}

/// Requests that wait go on as the newcomer may have more, though none comes back; never before.
#[test]
fn the_limit_of_a_newcomer_grows() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let of = |origins: &[&Origin]| {
        let settings = "name = \"apps\", max_in_flight = 20, slow_start = slow_start(3 * s, limits = True)";
        file(&format!("lb.round_robin([{}], {settings})", servers(origins)))
    };
    let x = serve_whole(&of(&[&a]), two_loops());
    for origin in [&a, &b] {
        origin.answer(Mode::Hold);
    }
    let held: Vec<_> = (0..40).map(|_| x.send("")).collect();
    until("twenty are inside", || a.inside().0 == 20);
    let begun = Instant::now();
    x.reload(&of(&[&a, &b])).expect("it can be served");
    let most = |elapsed: Duration| ((20.0 * elapsed.as_secs_f64() / 3.0) as u32).clamp(2, 20);
    until("all are inside", || {
        let inside = b.inside().0;
        assert!(inside <= most(begun.elapsed()), "{inside} after {:?}", begun.elapsed());
        let target = x.remote().view(false).pools[0].targets[1].clone();
        let limit = target.limit.unwrap_or(20);
        assert!(
            limit >= 20 || target.share.is_some_and(|share| limit == (20.0 * share + 1e-9) as u32),
            "{target:?}"
        );
        inside == 20
    });
    assert!(begun.elapsed() >= Duration::from_millis(2900), "{:?}", begun.elapsed());
    for origin in [&a, &b] {
        origin.answer(Mode::Status(200));
    }
    held.into_iter().for_each(|one| assert_eq!(one.wait().status, 200));
}
