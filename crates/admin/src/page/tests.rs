//! The contents of a page; text of a file stays text on it.

use super::html;
use crate::page::TimedView;
use std::collections::BTreeMap;
use weir_plan::{Point, listeners};
use weir_report::graph::Drawing;
use weir_serve::{Config, ListenerView, PoolView, State, TargetView, View};
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
        state,
        picked: state == State::Up,
        why: if state == State::Up { Vec::new() } else { vec!["its <checks> fail".to_owned()] },
        admin: "file",
        weight: 1.0,
        file_weight: 1.0,
        in_flight: Some(3),
        estimate_ms: Some(4.5),
        attempts: Some(10),
        failed: None,
        loops: Vec::new(),
    }
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
        targets,
    };
    let listener = ListenerView {
        node: 2,
        name: "<web>".to_owned(),
        addr: ":80".to_owned(),
        connections: 1,
        has_target: true,
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
    TimedView::made(view, "<t>.star".to_owned(), config, drawing, BTreeMap::from([((1, 0), 12.5)]))
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
        "12.5 /s",
        "4.50 ms",
        "1 client",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    for text in ["<b>", "<web>", "<t>", "<checks>", "http://", "https://", "src="] {
        assert!(!page.contains(text), "{text} is in {page}");
    }
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not in {page}"));
    assert!(at("a&lt;b&gt;1<small>") < at("a&lt;b&gt;0</td>"), "trouble stands first");
}

#[test]
fn many_targets_are_folded_and_all_can_be_had() {
    let mut targets: Vec<TargetView> = (0..5000).map(|index| target(index, State::Up)).collect();
    targets[4321] = target(4321, State::Down);
    let seen = seen(targets);
    let page = html(&seen, false, 7);
    assert_eq!(page.matches("<td class=\"target\">a").count(), 21);
    assert!(page.contains("a&lt;b&gt;4321<small>") && page.contains("and 4,979 more"), "{page}");
    assert!(page.len() < 40_000, "{}", page.len());
    assert_eq!(html(&seen, true, 7).matches("<td class=\"target\">a").count(), 5000);
}
