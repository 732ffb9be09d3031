//! Members that a registry lists (`docs/spec/serving.md#sources`): they come and go as it says, a dead one
//! takes nothing away, and it does not decide what is alive.

use crate::consul::Consul;
use crate::list;
use crate::load::{two_loops, under_load};
use crate::successor::{Control, successor};
use crate::support::{Mode, Origin, RunningBalancer, serve_whole, until};
use weir_serve::{FleetView, Predecessor, State, TargetView};

fn fleet(x: &RunningBalancer) -> FleetView {
    x.remote().view(false).fleets[0].clone()
}

/// A target of the first balancer. A thread that is busy answers later.
fn target(x: &RunningBalancer, origin: &Origin) -> Option<TargetView> {
    let (addr, pool) = (origin.addr.to_string(), x.remote().view(false).pools.into_iter().next()?);
    pool.targets.into_iter().find(|target| target.name == addr)
}

fn is_ejected(x: &RunningBalancer, origin: &Origin) -> bool {
    target(x, origin).is_some_and(|target| target.state == State::Ejected)
}

/// Waits until exactly these are targets.
fn await_targets(x: &RunningBalancer, origins: &[&Origin]) {
    let want: Vec<String> = origins.iter().map(|origin| origin.addr.to_string()).collect();
    until("the targets are those of the registry", || list::is_served(x, &want));
}

/// Waits until the registry has failed. Returns why, as the view says it.
fn await_outage(x: &RunningBalancer) -> String {
    until("there is no list", || fleet(x).error.is_some());
    fleet(x).error.expect("why there is none")
}

#[test]
fn members_come_and_go_with_the_registry_and_stay_when_it_fails() {
    let [a, b, c] = ["a", "b", "c"].map(Origin::new);
    let consul = Consul::new(&[&a, &b]);
    let x = serve_whole(&consul.api("lb.round_robin(apps)"), two_loops());
    await_targets(&x, &[&a, &b]);
    assert_eq!((fleet(&x).source.as_str(), fleet(&x).error), ("consul web", None));
    let (asked, wrong) = under_load(x.addr(), false, |_| {
        consul.list(&[&b, &c]);
        await_targets(&x, &[&b, &c]);
        consul.fail();
        let why = await_outage(&x);
        let is_sentence = why.starts_with("consul web: http://127.0.0.1:") && why.contains("; see to ");
        assert!(is_sentence && why.contains("answers 500"), "{why}");
        let before = fleet(&x);
        until("it is stale for longer", || fleet(&x).stale_s > before.stale_s);
        await_targets(&x, &[&b, &c]);
        consul.list(&[&c, &a]);
        await_targets(&x, &[&c, &a]);
        until("there is a list again", || fleet(&x).stale_s.is_none());
        assert_eq!(fleet(&x).error, None);
        // As one that was restarted without its data.
        consul.list(&[]);
        until("it is doubted", || fleet(&x).withdrawn == 2);
        await_targets(&x, &[&c, &a]);
        consul.list(&[&c, &a]);
        until("it is believed", || fleet(&x).withdrawn == 0);
    });
    assert!(wrong.is_empty(), "of {asked}: {wrong:?}");
    assert_eq!(x.remote().config().generation, 0, "no change was a reload");
}

/// The log repeats a fault every five minutes.
#[test]
fn every_question_that_fails_is_counted() {
    let a = Origin::new("a");
    let consul = Consul::new(&[&a]);
    let x = serve_whole(&consul.api("lb.round_robin(apps)"), list::one_loop());
    await_targets(&x, &[&a]);
    let name = "weir_fleet_lists_total{fleet=\"apps\",result=\"failed\"} ";
    let count = || {
        let text = list::scraped(&x);
        text.lines().find_map(|line| line.strip_prefix(name)?.parse::<u64>().ok()).unwrap_or_default()
    };
    let before = count();
    consul.fail();
    until("four questions have failed", || count() >= before + 4);
    assert!(fleet(&x).stale_s.is_some());
    assert_eq!(x.get().body, "a");
}

#[test]
fn a_reload_keeps_the_members_of_a_registry() {
    let [a, b, c] = ["a", "b", "c"].map(Origin::new);
    let consul = Consul::new(&[&a, &b]);
    let x = serve_whole(&consul.api("lb.round_robin(apps)"), two_loops());
    await_targets(&x, &[&a, &b]);
    let of = |round: u32| {
        consul.api(&format!("rewrite(lb.round_robin(apps), set = {{\"x-round\": \"{round}\"}})"))
    };
    let (asked, wrong) = under_load(x.addr(), false, |_| {
        for round in 1..4 {
            let said = x.reload(&of(round)).expect("it can be served");
            assert!(!said.contains("target"), "{said}");
            await_targets(&x, &[&a, &b]);
        }
        let said = x.reload(&of(3)).expect("it can be served");
        assert!(said.contains("nothing has changed"), "{said}");
        consul.fail();
        let why = await_outage(&x);
        x.reload(&of(4)).expect("it can be served");
        await_targets(&x, &[&a, &b]);
        assert_eq!(fleet(&x).error, Some(why), "it is stale as before");
        consul.list(&[&b, &c]);
        await_targets(&x, &[&b, &c]);
    });
    assert!(wrong.is_empty(), "of {asked}: {wrong:?}");
    assert_eq!(fleet(&x).error, None);
}

/// A node over the fleet `apps`, and over another for requests with a field of their own.
fn with(other: &str) -> String {
    format!(
        "route([(when(header = (\"x-other\", \"1\")), lb.random({other})), (when(path = \"/*\"), lb.random(apps))])"
    )
}

#[test]
fn a_registry_goes_on_while_reloads_add_and_remove_other_sources() {
    let [a, b, c] = ["a", "b", "c"].map(Origin::new);
    let consul = Consul::new(&[&a]);
    let x = serve_whole(&consul.api("lb.random(apps)"), two_loops());
    // It is asked for the first list, and by the thread that follows it.
    until("it is followed", || consul.beginnings() == 2);
    let file = list::Members::new("beside");
    file.list(&[&b]);
    let line = format!("more = find.file(\"{}\", lambda: server(\"app\"))\n", file.path().display());
    x.reload(&(line + &consul.api(&with("more")))).expect("it can be served");
    assert_eq!((x.get().body.as_str(), x.get_with("X-Other: 1\r\n").body.as_str()), ("a", "b"));
    consul.list(&[&c]);
    until("the registry is followed", || x.share("c", 8) == 8);
    x.reload(&consul.api("lb.random(apps)")).expect("it can be served");
    consul.list(&[&a]);
    until("the registry is followed", || x.share("a", 8) == 8);
    assert_eq!(consul.beginnings(), 2, "it waits for changes all the time");
    // A fleet that turns to it later knows that it gives no list, though that is not said again.
    consul.fail();
    let why = await_outage(&x);
    x.reload(&(consul.fleet("other") + &consul.api(&with("other")))).expect("it can be served");
    let errors = || x.remote().view(false).fleets.into_iter().map(|fleet| fleet.error).collect::<Vec<_>>();
    assert_eq!(errors(), [Some(why.clone()), Some(why)]);
    assert_eq!(x.get_with("X-Other: 1\r\n").body, "a");
    consul.list(&[&b]);
    until("both have a list again", || errors() == [None, None]);
    until("both follow it", || x.share("b", 8) == 8 && x.get_with("X-Other: 1\r\n").body == "b");
}

/// The registry is dead at that time, so that nothing but the predecessor knows the members.
#[test]
fn a_successor_begins_with_the_members_of_a_registry() {
    let [a, b, c] = ["a", "b", "c"].map(Origin::new);
    let consul = Consul::new(&[&a, &b]);
    let text = consul.api("lb.round_robin(apps)");
    let mut now = serve_whole(&text, two_loops());
    await_targets(&now, &[&a, &b]);
    consul.fail();
    let addr = now.addr();
    let (asked, wrong) = under_load(addr, true, |_| {
        let control = Control::new("registry");
        let ended = control.hands_over(&now);
        let predecessor = Predecessor::ask(&control.0).expect("it answers").expect("it is there");
        let new = successor(&text, &predecessor);
        new.heed(&predecessor);
        predecessor.relieve(&new.remote()).expect("it listens");
        ended.join().expect("no panic").expect("it went well");
        await_targets(&new, &[&a, &b]);
        std::mem::replace(&mut now, new).ends();
    });
    assert!(wrong.is_empty(), "of {asked}: {wrong:?}");
    let why = await_outage(&now);
    assert!(why.contains("answers 500"), "{why}");
    consul.list(&[&b, &c]);
    await_targets(&now, &[&b, &c]);
}

/// As a pod whose node clients do not reach, though the registry and checks do.
#[test]
fn a_listed_member_whose_checks_pass_is_ejected_when_its_requests_fail() {
    let [a, b, c] = ["a", "b", "c"].map(Origin::new);
    let consul = Consul::new(&[&a, &b]);
    let node = "lb.round_robin(apps, health = health.http(\"/health\", interval = 50 * ms), \
        eject = eject(consecutive = 1, base = 3600 * s, max = 3600 * s))";
    let x = serve_whole(&consul.api(node), two_loops());
    until("both are up", || (1..10).contains(&x.share("a", 10)));
    a.answer(Mode::Close);
    until("its requests fail", || {
        x.get();
        is_ejected(&x, &a)
    });
    until("both loops know", || x.share("b", 10) == 10);
    let checks = a.checks();
    until("its checks go on", || a.checks() > checks + 3);
    consul.list(&[&a, &b, &c]);
    until("c is there", || x.share("c", 10) > 0);
    assert_eq!(x.share("a", 10), 0, "another list does not bring it back");
    let known = target(&x, &a).expect("it is a target");
    let result = known.last_check.map(|check| check.result);
    assert_eq!((known.state, result), (State::Ejected, Some("passed")));
    assert_eq!((fleet(&x).members, fleet(&x).withdrawn), (3, 0), "it is listed nonetheless");
}
