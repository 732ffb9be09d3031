//! The contents of a page; text of a file stays text on it.

use super::html;
use crate::page::TimedView;
use weir_plan::{Point, listeners};
use weir_report::graph::Drawing;
use weir_serve::{
    CertificateView, CheckView, Config, EventView, FleetView, LimitView, ListenerView, PoolView, RecentView,
    State, TargetView, View,
};
use weir_topology::{Request, evaluate};

fn point() -> Point {
    let source = "listen(\":80\", lb.p2c([server(\"a<b>\", addr = \"10.0.0.1:80\")], name = \"p&q\"), name = \"<web>\")";
    let request = Request { source: source.into(), name: "t.star".into(), ..Request::default() };
    let plan = evaluate(&request).unwrap_or_else(|wrong| panic!("{wrong:?}")).plan;
    plan.points.into_iter().next().expect("one point")
}

fn target(index: u32, state: State) -> TargetView {
    TargetView {
        index,
        node: 0,
        name: format!("a<b>{index}"),
        addr: Some("10.0.0.1:80".to_owned()),
        subset: None,
        since_unix_ms: (state != State::Up).then_some(1_795_662_604_000),
        last_check: (state != State::Up).then(|| CheckView {
            at_unix_ms: 1_795_662_722_000,
            result: "refused",
            words: "connect <refused>".to_owned(),
        }),
        state,
        is_withdrawn: false,
        picked: state == State::Up,
        why: if state == State::Up { Vec::new() } else { vec!["its <checks> fail".to_owned()] },
        admin: "file",
        admin_left_s: None,
        weight_by_hand: false,
        weight_left_s: None,
        weight: 1.0,
        share: None,
        limit: None,
        file_weight: 1.0,
        in_flight: Some(3),
        estimate_ms: Some(4.5),
        load: Some(0.5),
        attempts: Some(10),
        failed: None,
        rate_per_s: Some(12.5),
        share_5xx: Some(0.0),
        mean_ms: Some(7.25),
        loops: Vec::new(),
    }
}

/// 12.5 requests each second, of which 2 % fail; over five minutes none.
fn recent() -> Vec<RecentView> {
    let now = RecentView {
        seconds: 10,
        rate_per_s: 12.5,
        share_5xx: Some(0.02),
        p50_ms: Some(4.0),
        p99_ms: Some(87.6),
    };
    vec![now, RecentView { seconds: 300, share_5xx: Some(0.0), p99_ms: Some(33.0), ..now }]
}

fn seen(targets: Vec<TargetView>) -> TimedView {
    let point = point();
    let drawing = Drawing::new(&point, &listeners(&point), |_| true);
    let pool = PoolView {
        node: 1,
        name: "p&q".to_owned(),
        policy: "lb.p2c",
        scope: "loop",
        eligible: targets.iter().filter(|target| target.picked).count() as u32,
        of: targets.len() as u32,
        panic: false,
        waiting: None,
        subset: None,
        recent: recent(),
        targets,
    };
    let listener = ListenerView {
        node: 2,
        name: "<web>".to_owned(),
        addr: ":80".to_owned(),
        connections: 1,
        has_target: true,
        recent: recent(),
    };
    let view = View { pools: vec![pool], listeners: vec![listener], ..View::default() };
    let config = Config {
        generation: 0,
        plan: "0123456789abcdef".to_owned(),
        at_unix_ms: 0,
        last_reload: None,
        last_reload_unix_ms: None,
        reload_under_way: false,
        waits_for_hand_over: Vec::new(),
        warnings: Vec::new(),
    };
    TimedView::made(view, "<t>.star".to_owned(), config, drawing)
}

#[test]
fn the_page_is_one_file_and_names_stay_text() {
    let page = html(&seen(vec![target(0, State::Up), target(1, State::Ejected)]), false, 7);
    for text in [
        "&lt;t&gt;.star",
        "a&lt;b&gt;1",
        "p&amp;q",
        "its &lt;checks&gt; fail",
        "1 of 2 targets is not up",
        "12.5\u{a0}/s",
        "4.50 ms",
        "load 50 %",
        "1 client",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    for text in ["<b>", "<web>", "<t>", "<checks>", "http://", "https://", "src="] {
        assert!(!page.contains(text), "{text} is in {page}");
    }
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not in {page}"));
    assert!(at("a&lt;b&gt;1<small>") < at("a&lt;b&gt;0<small>"), "trouble stands first");
}

#[test]
fn many_targets_are_folded_and_all_can_be_had() {
    let mut targets: Vec<TargetView> = (0..5000).map(|index| target(index, State::Up)).collect();
    targets[4321] = target(4321, State::Down);
    let seen = seen(targets);
    let page = html(&seen, false, 7);
    assert_eq!(page.matches("<td class=\"target\">a").count(), 21);
    assert!(page.contains("a&lt;b&gt;4321<small>") && page.contains("4,979 more"), "{page}");
    assert!(page.len() < 60_000, "{}", page.len());
    assert_eq!(html(&seen, true, 7).matches("<td class=\"target\">a").count(), 5000);
}

#[test]
fn the_page_says_how_bad_since_when_and_why() {
    let mut seen = seen(vec![target(0, State::Up), target(1, State::Down)]);
    seen.view.events = vec![EventView {
        at_unix_ms: 1_795_662_604_000,
        pool: "p&q".to_owned(),
        state: "down",
        reason: "checks_failed",
        count: 280,
        targets: vec!["a<1>".to_owned(), "b".to_owned(), "c".to_owned(), "d".to_owned()],
        check: Some("connect refused".to_owned()),
    }];
    let limit = |limit, of: &str, now, most| LimitView { limit, of: of.to_owned(), now, most };
    seen.view.limits = vec![
        limit("descriptors", "", 970.0, 1000.0),
        limit("clients", "<web>", 10.0, 1000.0),
        limit("budget", "r", 0.2, 100.0),
    ];
    seen.view.certificates = vec![CertificateView {
        listener: "<web>".to_owned(),
        file: "edge.pem".to_owned(),
        not_after_s: 1_795_662_724 + 2 * 86_400,
    }];
    let page = html(&seen, false, 7).replace('\u{a0}', " ");
    for text in [
        // How bad.
        "<td class=\"n\" data-l=\"5xx\"><span class=\"bad\">2.0 %</span><small>0 %</small></td>",
        "87.6 ms<small>33.0 ms</small>",
        "listener &lt;web&gt;: 2.0 % of the requests of the last 10 s failed",
        // Since when.
        "03:10:04<small>2 min ago</small>",
        "✖ down</span> a&lt;1&gt;, b, c and 277 more of p&amp;q<small>checks failed: connect refused</small>",
        "since 03:10:04 (2 min)",
        // Why.
        "<small>10.0.0.1:80</small>",
        "connect &lt;refused&gt;</span>, 2 s ago",
        // What limits, and which certificates end.
        "970 of 1,000 descriptors are in use",
        "further attempts<small>left in the budget of r</small>",
        "in 2 days</span><small>28 Nov 2026</small>",
        "<title>✖ 1 down · &lt;t&gt;.star · weir</title>",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    assert!(page.find("descriptors are in use") < page.find("budget allows no"), "the worst first");
}

#[test]
fn a_fleet_without_a_list_is_an_alarm_and_says_since_when_and_why() {
    let fleet = |name: &str, stale_s: Option<f64>, error: Option<&str>| FleetView {
        fleet: name.to_owned(),
        source: "consul <web>".to_owned(),
        members: 1_200,
        withdrawn: 3,
        draining: 0,
        stale_s,
        error: error.map(str::to_owned),
        last_change_unix_ms: None,
    };
    let mut seen = seen(vec![target(0, State::Up)]);
    let page = html(&seen, false, 7);
    assert!(!page.contains("<h2>Fleets</h2>"), "{page}");
    let why = "consul <web>: http://a/ answers 500; see to the registry";
    let new = fleet("new", Some(4.0), None);
    let whole = FleetView { withdrawn: 0, ..fleet("whole", None, None) };
    seen.view.fleets = vec![fleet("files", None, None), fleet("<apps>", Some(120.5), Some(why)), new, whole];
    // Nothing is worse than that.
    seen.view.listeners[0].recent.clear();
    seen.rendered = super::Rendered::default();
    let page = html(&seen, false, 7).replace('\u{a0}', " ");
    for text in [
        "<h2>Fleets</h2>",
        "<p class=\"alarm warn\"><strong>▲</strong> fleet &lt;apps&gt;: no list for 2 min: consul &lt;web&gt;: http://a/ \
         answers 500; see to the registry</p>",
        "<td class=\"target\">&lt;apps&gt;<small>consul &lt;web&gt;</small></td><td class=\"n\">1,200<small>3 withdrawn</small></td>\
         <td class=\"target\"><span class=\"warn\">▲ none</span><small>since 03:10:03 (2 min)</small>\
         <small>consul &lt;web&gt;: http://a/ answers 500; see to the registry</small></td>",
        "fleet new: no list yet, for 4 s</p>",
        "<span class=\"warn\">▲ none yet</span><small>since ",
        "<td class=\"target\">doubted</td>",
        "<td class=\"target\">there</td>",
        "<title>▲ &lt;t&gt;.star · weir</title>",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not in {page}"));
    assert!(at("&lt;apps&gt;<small>") < at("files<small>"), "those without a list stand first");
}

/// A few of many targets that are down are a warning; half of them are an outage.
#[test]
fn eight_of_three_hundred_are_not_as_red_as_all() {
    let of = |down: usize| {
        let mut seen = seen(
            (0..300).map(|n| target(n, if (n as usize) < down { State::Down } else { State::Up })).collect(),
        );
        seen.view.listeners[0].recent.clear();
        html(&seen, false, 7).replace('\u{a0}', " ")
    };
    let (few, all) = (of(8), of(300));
    assert!(few.contains("<span class=\"warn\">▲ 8 of 300 targets are not up</span>"), "{few}");
    assert!(
        few.contains("<p class=\"alarm warn\"><strong>▲</strong> p&amp;q: 8 of 300 targets are down</p>"),
        "{few}"
    );
    assert!(
        few.contains("%23b8790f") && all.contains("%23c02a2a"),
        "the icon has the colour of the worst news"
    );
    assert!(all.contains("<span class=\"bad\">✖ 300 of 300 targets are not up</span>"), "{all}");
    assert!(
        all.contains("100 of 300 targets, the worst first; 200 more"),
        "no table hides that there are more"
    );
}
