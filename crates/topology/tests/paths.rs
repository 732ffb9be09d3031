//! Paths that a file names: their form in its plan, and what a plan refuses.

#[allow(dead_code, reason = "each test binary uses some of it")]
mod common;

use common::plan;
use weir_plan::{Plan, Spec};

/// Patterns are compared in their normal form, which is also their form in a plan.
#[test]
fn patterns_stand_in_their_normal_form() {
    let source = "a = rewrite(server(), path=(\"/%7eapi/\", \"/%7ev1/\"))\n\
                  b = route([(when(path=[\"/%7Ez\", \"/caf%c3%a9*\", \"*\"]), a)])\n";
    let plan = plan(source);
    let specs = &plan.points[0].specs;
    let rule =
        specs.iter().find_map(|s| if let Spec::Route { rules, .. } = s { rules.first() } else { None });
    assert_eq!(rule.expect("a rule").path, ["/~z", "/caf%C3%A9*", "*"]);
    let path = specs.iter().find_map(|s| if let Spec::Rewrite(r) = s { r.path.clone() } else { None });
    assert_eq!(path, Some(("/~api/".to_owned(), "/%7ev1/".to_owned())), "what is sent stays as written");
    let text = String::from_utf8(plan.to_json()).expect("UTF-8");
    for (normal, other, says) in [
        ("\"/~z\"", "\"/%7Ez\"", "compared as \"/~z\""),
        ("/caf%C3%A9*", "/caf%C3%a9*", "compared as"),
        ("/caf%C3%A9*", "/caf%C*", "splits a %XX"),
        ("\"/~z\"", "\"/a/../z\"", "has a segment"),
        ("/~api/", "/%7Eapi/", "compared as \"/~api/\""),
        ("/%7ev1/", "/{v1}/", "a request target has no `{`"),
    ] {
        assert!(text.contains(normal), "{normal}");
        let why = Plan::from_json(text.replace(normal, other).as_bytes()).expect_err(other).to_string();
        assert!(why.contains(says), "{other}: {why}");
    }
}
