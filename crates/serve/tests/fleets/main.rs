//! Targets that a file or a registry lists (`docs/spec/serving.md`): it is followed while requests run, and no change of
//! it is a reload.

#[path = "../reload/load.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod load;
#[path = "../reload/successor.rs"]
mod successor;
#[path = "../health/support.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod support;

mod consul;
mod doubt;
mod list;
mod registry;
mod reloads;
mod subsets;

use list::{Members, api};
use load::{two_loops, under_load};
use support::{Mode, Origin, serve_whole, until};
use weir_serve::{Readiness, State};

#[test]
fn members_come_and_go_while_requests_run_and_nothing_is_reloaded() {
    let origins: Vec<Origin> = ["a", "b", "c", "d"].iter().map(|name| Origin::new(name)).collect();
    let policies = [
        "lb.least_conn(apps)",
        "lb.round_robin(apps)",
        "lb.p2c(apps, scope = \"process\")",
        "lb.maglev(apps, key = key.client())",
    ];
    for policy in policies {
        let file = Members::new("load");
        file.list(&[&origins[0], &origins[1], &origins[2]]);
        let x = serve_whole(&api(&file, policy), two_loops());
        let before = x.remote().config();
        let (asked, wrong) = under_load(x.addr(), false, |_| {
            for round in 0..8 {
                let three: Vec<&Origin> = (0..3).map(|i| &origins[(round + i) % 4]).collect();
                file.list(&three);
                let want: Vec<String> = three.iter().map(|origin| origin.addr.to_string()).collect();
                until("the members are those of the list", || list::is_served(&x, &want));
            }
        });
        assert!(wrong.is_empty(), "{policy}, of {asked}: {wrong:?}");
        assert_eq!(x.remote().config(), before, "no reload");
        assert_eq!(x.remote().view(false).generation, 0);
        let text = list::scraped(&x);
        assert!(!text.contains("weir_config_reloads_total{"), "{text}");
        assert!(text.contains("weir_config_generation 0\n"), "{text}");
        // Three at the start, and one comes and one goes each round but the first.
        assert!(text.contains("weir_fleet_changes_total{fleet=\"apps\",change=\"added\"} 10\n"), "{text}");
        assert!(text.contains("weir_fleet_changes_total{fleet=\"apps\",change=\"removed\"} 7\n"), "{text}");
        // The last list is d, a, b.
        let gone = origins[2].requests();
        let bodies = x.bodies(40);
        assert!(bodies.iter().all(|name| name != "c"), "{bodies:?}");
        assert_eq!(origins[2].requests(), gone);
        until("connections to who is gone close", || origins[2].connections() == 0);
    }
}

#[test]
fn a_draining_member_gets_no_new_request_and_ends_what_it_has() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let file = Members::new("drain");
    file.list(&[&a, &b]);
    let x = serve_whole(&api(&file, "lb.round_robin(apps)"), list::one_loop());
    a.answer(Mode::Hold);
    let held: Vec<_> = (0..4).map(|_| x.send("")).collect();
    until("half of them are at a", || a.inside().0 == 2);
    file.write(&format!("[{{\"addr\": \"{}\", \"state\": \"drain\"}}, \"{}\"]", a.addr, b.addr));
    until("its loop sends it nothing", || list::weights(&x, &a) == [0.0]);
    assert_eq!(x.remote().view(false).fleets[0].draining, 1);
    let addr = a.addr.to_string();
    let known = || {
        let pool = x.remote().view(false).pools.into_iter().next()?;
        pool.targets.into_iter().find(|target| target.name == addr)
    };
    until("it is said to drain", || known().is_some_and(|target| target.state == State::Drain));
    let why = known().expect("it is a target").why.join("; ");
    assert!(why.starts_with("drained by the source of its fleet"), "{why}");
    assert_eq!(x.share("b", 20), 20);
    a.answer(Mode::Status(200));
    assert!(held.into_iter().all(|one| one.wait().status == 200), "what it had ends well");
    file.write(&format!("[{{\"addr\": \"{}\", \"weight\": 3}}, \"{}\"]", a.addr, b.addr));
    until("it is back, with three shares of four", || x.share("a", 8) == 6);
    until("it is up", || known().is_some_and(|target| target.state == State::Up));
    file.write(&format!("[{{\"addr\": \"{}\", \"weight\": 0}}, \"{}\"]", a.addr, b.addr));
    until("weight 0 drains as well", || x.share("b", 20) == 20);
    until("it is said to drain", || known().is_some_and(|target| target.state == State::Drain));
    assert_eq!(x.remote().view(false).fleets[0].members, 2);
}

/// The weight of a fleet in the file is that of each member, times its own.
#[test]
fn weights_of_fleet_and_member_multiply() {
    let (a, b, c) = (Origin::new("a"), Origin::new("b"), Origin::new("c"));
    let file = Members::new("weights");
    file.write(&format!("[{{\"addr\": \"{}\", \"weight\": 2}}, \"{}\"]", a.addr, b.addr));
    let node = format!("lb.round_robin([weight(2, apps), server(addr = \"{}\")])", c.addr);
    let x = serve_whole(&api(&file, &node), list::one_loop());
    let bodies = x.bodies(14);
    let count = |name: &str| bodies.iter().filter(|body| *body == name).count();
    assert_eq!([count("a"), count("b"), count("c")], [8, 4, 2]);
}

/// A list may have weights that a file may not have for `lb.round_robin`, and is followed nonetheless.
#[test]
fn fine_weights_are_served() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let file = Members::new("fine");
    let list = |heavy: f64| {
        let other = |n| format!("{{\"addr\": \"127.0.0.1:{n}\", \"weight\": 0}}, ");
        let others: String = (1..20).map(other).collect();
        format!(
            "[{others}{{\"addr\": \"{}\", \"weight\": {heavy}}}, {{\"addr\": \"{}\", \"weight\": 999.999}}]",
            a.addr, b.addr
        )
    };
    file.write(&list(3999.001));
    let x = serve_whole(&api(&file, "lb.round_robin(apps)"), list::one_loop());
    assert!((79..=81).contains(&x.share("a", 100)), "four of five");
    file.write(&list(0.0));
    until("the change is served", || x.share("b", 10) == 10);
}

/// Another `id` at an address is another target: the connections to the one before end, and its health is new.
#[test]
fn another_id_is_another_target() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let file = Members::new("id");
    let list = |id: &str| format!("[{{\"addr\": \"{}\", \"id\": \"{id}\"}}, \"{}\"]", a.addr, b.addr);
    file.write(&list("x"));
    let eject = "eject = eject(consecutive = 1, base = 3600 * s, max = 3600 * s)";
    let x = serve_whole(&api(&file, &format!("lb.round_robin(apps, {eject})")), two_loops());
    a.answer(Mode::Close);
    until("a is ejected", || x.share("b", 10) == 10);
    a.answer(Mode::Status(200));
    // As before in all that counts.
    file.write(&format!("{} ", list("x").replace(']', ", \"127.0.0.1:9\"]")));
    until("there is one more", || list::targets(&x).len() == 3);
    assert_eq!(x.remote().view(false).pools[0].eligible, 2, "a is ejected as before");
    file.write(&list("y"));
    until("it is a new target", || x.bodies(10).contains(&"a".to_owned()));
    let text = list::scraped(&x);
    assert!(text.contains("weir_fleet_members{fleet=\"apps\",state=\"up\"} 2\n"), "{text}");
}

#[test]
fn without_a_list_there_is_no_target_and_it_is_not_ready() {
    let a = Origin::new("a");
    let file = Members::new("none");
    let x = serve_whole(&api(&file, "lb.random(apps)"), two_loops());
    assert_eq!(x.get().status, 503);
    let Readiness::NotReady(why) = x.remote().readiness() else { panic!("it is ready") };
    assert!(why.iter().any(|why| why.contains("fleet apps has had no list yet")), "{why:?}");
    file.list(&[&a]);
    until("it is ready", || matches!(x.remote().readiness(), Readiness::Ready(_)));
    until("both loops know", || x.share("a", 4) == 4);
}
