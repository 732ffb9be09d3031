//! Targets that are set by hand (`docs/spec/operating.md#targets-by-hand`), and what readiness says of them.

use super::load::{file, servers, two_loops};
use super::support::{Mode, Origin, RunningBalancer, serve_whole, until};
use weir_serve::{Readiness, SetTarget, TargetState, TargetView, TargetWeight};

fn state(state: TargetState) -> SetTarget {
    SetTarget { state: Some(state), ..SetTarget::default() }
}

fn weight(weight: TargetWeight) -> SetTarget {
    SetTarget { weight: Some(weight), ..SetTarget::default() }
}

fn for_a_moment(set: SetTarget) -> SetTarget {
    SetTarget { for_ns: Some(300_000_000), ..set }
}

fn set(x: &RunningBalancer, target: &Origin, set: SetTarget) {
    x.remote().set_target("apps", &target.addr.to_string(), set).expect("it can be set");
}

fn first(x: &RunningBalancer) -> TargetView {
    x.remote().view(false).pools[0].targets[0].clone()
}

/// A setting that ends takes nothing else back: neither a state the state of before, nor a weight the weight.
#[test]
fn state_and_weight_are_two_settings() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let text = |name: &str| file(&format!("lb.{name}([{}], name = \"apps\")", servers(&[&a, &b])));
    let x = serve_whole(&text("round_robin"), two_loops());
    set(&x, &a, state(TargetState::Drain));
    set(&x, &a, for_a_moment(weight(TargetWeight::Number(5.0))));
    let both = first(&x);
    assert_eq!((both.admin, both.admin_left_s, both.weight, both.weight_by_hand), ("drain", None, 5.0, true));
    assert!(both.weight_left_s.is_some_and(|left| left <= 0.3));
    until("its weight is the file's", || !first(&x).weight_by_hand);
    assert_eq!((first(&x).admin, first(&x).weight, x.share("b", 20)), ("drain", 1.0, 20));

    set(&x, &a, state(TargetState::File));
    set(&x, &a, weight(TargetWeight::Number(3.0)));
    set(&x, &a, for_a_moment(state(TargetState::Drain)));
    until("it is back", || first(&x).admin == "file");
    assert_eq!((first(&x).weight, first(&x).weight_left_s), (3.0, None));
    x.reload(&text("random")).expect("it can be served");
    assert_eq!((first(&x).weight, first(&x).file_weight), (3.0, 1.0), "over a reload too");
    set(&x, &a, weight(TargetWeight::File));
    assert_eq!((first(&x).weight, first(&x).weight_by_hand), (1.0, false));
}

#[test]
fn what_cannot_be_meant_is_refused_and_changes_nothing() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let x = serve_whole(
        &file(&format!("lb.round_robin([{}], name = \"apps\")", servers(&[&a, &b]))),
        two_loops(),
    );
    let name = a.addr.to_string();
    let refused =
        |set: SetTarget| x.remote().set_target("apps", &name, set).expect_err("refused").to_string();
    for wrong in [1e19, 1_000_001.0, 0.0009, -1.0, f64::INFINITY, f64::NAN] {
        assert!(refused(weight(TargetWeight::Number(wrong))).contains("from 0.001 to 1000000"), "{wrong}");
    }
    let up_without_weight = SetTarget { state: Some(TargetState::Up), ..weight(TargetWeight::Number(0.0)) };
    assert!(refused(up_without_weight).contains("weight 0"));
    // With the other's weight, 1, the sum is too great for a cycle, as in a file.
    assert!(refused(weight(TargetWeight::Number(1e6))).contains("add up to at most"));
    assert_eq!((first(&x).weight, first(&x).admin), (1.0, "file"));
    set(&x, &a, weight(TargetWeight::Number(999_999.0)));
    assert_eq!((x.bodies(20).len(), first(&x).weight), (20, 999_999.0));
}

/// Half of the pool is drained by hand: that says nothing about health, which keeps requests away from the dead one.
#[test]
fn a_drained_half_does_not_switch_health_off() {
    let names = ["a", "b", "c", "d"];
    let origins: Vec<Origin> = names.iter().map(|name| Origin::new(name)).collect();
    let all: Vec<&Origin> = origins.iter().collect();
    let check = "health = health.http(\"/\", interval = 20 * ms, fall = 1)";
    let x =
        serve_whole(&file(&format!("lb.random([{}], name = \"apps\", {check})", servers(&all))), two_loops());
    origins[3].answer_checks(Mode::Status(500));
    until("d is down", || x.remote().view(false).pools[0].eligible == 3);
    for target in &origins[..2] {
        set(&x, target, state(TargetState::Drain));
    }
    let pool = x.remote().view(false).pools[0].clone();
    assert_eq!((pool.eligible, pool.panic), (1, false));
    assert_eq!(x.share("c", 40), 40);
}

/// Ready is what a pick would find.
#[test]
fn readiness_is_what_a_pick_finds() {
    let (a, b, c) = (Origin::new("a"), Origin::new("b"), Origin::new("c"));
    let text = |more: &str| {
        let check = "health = health.http(\"/\", interval = 20 * ms, fall = 1, rise = 1)";
        file(&format!("lb.random([{}], name = \"apps\", {check}{more})", servers(&[&a, &b])))
    };
    let x = serve_whole(&text(""), two_loops());
    let ready = |notes: &[&str]| Readiness::Ready(notes.iter().map(|note| (*note).to_owned()).collect());
    let not = Readiness::NotReady(vec!["listener front has no target".to_owned()]);
    assert_eq!(x.remote().readiness(), ready(&[]));
    for origin in [&a, &b] {
        origin.answer_checks(Mode::Status(500));
    }
    until("none is eligible", || x.remote().view(false).pools[0].eligible == 0);
    assert_eq!(
        (x.get().status, x.remote().readiness()),
        (200, ready(&["apps serves in spite of its health: 0 of 2 targets are eligible"]))
    );
    x.reload(&text(", panic = 0")).expect("it can be served");
    assert_eq!((x.get().status, x.remote().readiness()), (503, not.clone()));
    x.reload(&text(&format!(", on_empty = {}", servers(&[&c])))).expect("it can be served");
    assert_eq!(x.bodies(1), ["c"]);
    assert_eq!(
        x.remote().readiness(),
        ready(&["apps serves by its on_empty: none of its 2 targets may be picked"])
    );
    x.reload(&text("")).expect("it can be served");
    for origin in [&a, &b] {
        origin.answer_checks(Mode::Status(200));
    }
    let are_picked = || x.remote().view(false).pools[0].targets.iter().all(|target| target.picked);
    // In this order: while none is eligible, both are picked in spite of that.
    until("both are eligible", || x.remote().readiness() == ready(&[]) && are_picked());
    for (out, back) in [
        (weight(TargetWeight::Number(0.0)), weight(TargetWeight::File)),
        (state(TargetState::Drain), state(TargetState::File)),
        (state(TargetState::Eject), state(TargetState::File)),
    ] {
        set(&x, &a, out);
        assert_eq!(x.remote().readiness(), ready(&[]));
        set(&x, &b, out);
        assert_eq!((x.get().status, x.remote().readiness()), (503, not.clone()), "{out:?}");
        [&a, &b].into_iter().for_each(|target| set(&x, target, back));
        assert_eq!((x.get().status, x.remote().readiness()), (200, ready(&[])));
    }
}
