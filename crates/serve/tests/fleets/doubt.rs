//! Lists that are none, and lists that are too short to be believed.

use crate::list::{self, Members, api, api_with};
use crate::load::two_loops;
use crate::support::{Mode, Origin, serve_whole, until};

#[test]
fn a_cut_list_leaves_the_members() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let file = Members::new("cut");
    file.list(&[&a, &b]);
    let x = serve_whole(&api(&file, "lb.round_robin(apps)"), two_loops());
    for wrong in ["[\"127.0.0.1:1\", \"127.0", "", "{}", "\u{feff}[]"] {
        let before = list::scraped(&x);
        file.write(wrong);
        until("it is no list", || x.remote().view(false).fleets[0].stale_s.is_some());
        let why = x.remote().view(false).fleets[0].error.clone().unwrap_or_default();
        assert!(why.contains("api.json") && why.contains("; "), "{why}");
        assert!(before.contains("weir_fleet_members{fleet=\"apps\",state=\"up\"} 2\n"), "{before}");
        let bodies = x.bodies(8);
        assert!(bodies.iter().all(|body| body == "a" || body == "b"), "{bodies:?}");
        assert_eq!(list::targets(&x).len(), 2);
        file.list(&[&a, &b]);
        until("it is one again", || x.remote().view(false).fleets[0].stale_s.is_none());
        assert_eq!(x.remote().view(false).fleets[0].error, None);
    }
    let text = list::scraped(&x);
    assert!(text.contains("weir_fleet_changes_total{fleet=\"apps\",change=\"removed\"} 0\n"), "{text}");
}

/// What an empty list lacks is picked until connections to it fail; a listed member stays nonetheless.
#[test]
fn members_that_an_empty_list_lacks_stay_until_their_connections_fail() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let file = Members::new("empty");
    file.list(&[&a, &b]);
    let retried = "retry(3, lb.round_robin(apps))";
    let x = serve_whole(&api(&file, retried), two_loops());
    assert!(x.bodies(8).contains(&"b".to_owned()));
    file.write("[]");
    until("they are withdrawn", || x.remote().view(false).fleets[0].withdrawn == 2);
    assert!(x.bodies(12).iter().all(|body| body == "a" || body == "b"));
    let marks =
        || x.remote().view(false).pools[0].targets.iter().map(|one| one.is_withdrawn).collect::<Vec<_>>();
    assert_eq!(marks(), [true, true]);
    let one = x.remote().view(false).pools[0].targets[0].clone();
    assert!(one.picked && one.why.iter().any(|why| why.starts_with("withdrawn: ")), "{one:?}");
    let addr = b.addr.to_string();
    drop(b);
    until("b has failed, and is no member any more", || {
        assert_eq!(x.get().body, "a");
        !list::targets(&x).contains(&addr)
    });
    let fleet = x.remote().view(false).fleets[0].clone();
    assert_eq!((fleet.members, fleet.withdrawn), (1, 1));
    file.list(&[&a]);
    until("a is listed again", || x.remote().view(false).fleets[0].withdrawn == 0);
    assert_eq!(marks(), [false]);
    drop(a);
    until("nothing is there", || x.get().status == 503);
    assert_eq!(list::targets(&x).len(), 1, "health is not the registry");
}

#[test]
fn a_failed_check_ends_what_a_doubted_list_lacks() {
    let (a, b, c) = (Origin::new("a"), Origin::new("b"), Origin::new("c"));
    let file = Members::new("checks");
    file.list(&[&a, &b, &c]);
    let checked = "lb.round_robin(apps, health = health.http(\"/\", interval = 50 * ms, fall = 1000))";
    let x = serve_whole(&api(&file, checked), two_loops());
    file.list(&[&a]);
    until("two are withdrawn", || x.remote().view(false).fleets[0].withdrawn == 2);
    c.answer_checks(Mode::Status(500));
    let want = vec![a.addr.to_string(), b.addr.to_string()];
    until("one check is enough", || list::is_served(&x, &want));
    let text = list::scraped(&x);
    assert!(text.contains("weir_fleet_lists_total{fleet=\"apps\",result=\"doubted\"} 1\n"), "{text}");
    assert!(text.contains("weir_fleet_members{fleet=\"apps\",state=\"withdrawn\"} 1\n"), "{text}");
}

#[test]
fn grace_ends_what_lives() {
    let a = Origin::new("a");
    let file = Members::new("grace");
    file.list(&[&a]);
    let x = serve_whole(&api_with(&file, "lb.random(apps)", ", grace = 300 * ms"), two_loops());
    file.write("[]");
    until("it has ended", || list::targets(&x).is_empty());
    until("both loops know", || (0..4).all(|_| x.get().status == 503));
    file.list(&[&a]);
    until("it is back", || x.share("a", 4) == 4);
}

#[test]
fn without_shrink_an_empty_list_is_believed() {
    let a = Origin::new("a");
    let file = Members::new("believed");
    file.list(&[&a]);
    let x = serve_whole(&api_with(&file, "lb.random(apps)", ", shrink = None"), two_loops());
    assert_eq!(x.get().body, "a");
    file.write("[]");
    until("it is empty", || list::targets(&x).is_empty());
    until("both loops know", || (0..4).all(|_| x.get().status == 503));
}

/// Each balancer has no target, one, and none again.
#[test]
fn every_balancer_is_empty_and_is_not() {
    let policies = [
        "lb.least_conn(apps)",
        "lb.random(apps)",
        "lb.round_robin(apps)",
        "lb.first(apps)",
        "lb.p2c(apps)",
        "lb.peak_ewma(apps)",
        "lb.zuul(apps)",
        "lb.prequal(apps)",
        "lb.maglev(apps, key = key.client())",
        "lb.ring_hash(apps, key = key.client())",
        "lb.least_conn(apps, max_in_flight = 2, sticky = \"to\")",
    ];
    assert_eq!(weir_topology::manual::missing_balancers(policies), ["lb.least_work"]);
    let a = Origin::new("a");
    for policy in policies {
        let file = Members::new("empty");
        file.write("[]");
        let x = serve_whole(&api_with(&file, policy, ", shrink = None"), two_loops());
        assert_eq!(x.get().status, 503, "{policy}");
        for _ in 0..2 {
            file.list(&[&a]);
            until(&format!("it is there on both loops: {policy}"), || x.share("a", 4) == 4);
            file.write("[]");
            until(&format!("it is not: {policy}"), || (0..4).all(|_| x.get().status == 503));
        }
    }
}
