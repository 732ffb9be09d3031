//! Properties of every drawing: nothing overlaps, edges lead to the right, the same file gives the same bytes.

use super::order::{crossings, ordered};
use super::{Drawing, fold, layers};
use weir_plan::{NodeId, Point};
use weir_topology::{Request, evaluate};

fn point(source: &str) -> Point {
    let request = Request { source: source.into(), name: "t.star".into(), ..Request::default() };
    let plan = evaluate(&request).unwrap_or_else(|wrong| panic!("{wrong:?}")).plan;
    plan.points.into_iter().next().expect("one point")
}

fn roots(point: &Point) -> Vec<NodeId> {
    weir_plan::listeners(point)
}

#[track_caller]
fn drawn(point: &Point) -> Drawing {
    let drawing = keeps(Drawing::new(point, &roots(point), |_| true));
    let svg = drawing.svg(|_| None);
    assert_eq!(svg, Drawing::new(point, &roots(point), |_| true).svg(|_| None));
    drawing
}

/// A picture of a file's first scenario.
#[track_caller]
fn pictured(source: &str) -> Drawing {
    let point = point(source);
    keeps(Drawing::picture(&point, &[point.scenarios[0].root]))
}

#[track_caller]
fn keeps(drawing: Drawing) -> Drawing {
    for (at, one) in drawing.boxes.iter().enumerate() {
        assert!(one.x >= 0.0 && one.x + one.width <= drawing.width, "{one:?}");
        assert!(one.y >= 0.0 && one.y + one.height <= drawing.height + 0.01, "{one:?} of {}", drawing.height);
        for other in &drawing.boxes[at + 1..] {
            let apart = one.x + one.width < other.x
                || other.x + other.width < one.x
                || one.y + one.height < other.y
                || other.y + other.height < one.y;
            assert!(apart, "{one:?} and {other:?}");
        }
    }
    for way in &drawing.edges {
        assert!(way.points.windows(2).all(|step| step[0].0 < step[1].0), "{way:?}");
    }
    let svg = drawing.svg(|_| None);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    drawing
}

fn names(drawing: &Drawing) -> Vec<String> {
    drawing.boxes.iter().map(|b| format!("{} | {}", b.of.name, b.of.kind)).collect()
}

#[test]
fn what_one_line_has_made_is_one_box() {
    for (n, kind) in [(3, "server × 3"), (250, "server × 250"), (10_000, "server × 10,000")] {
        let point = point(&format!(
            "listen(\":80\", lb.p2c([server(\"app-%d\" % i, addr = \"10.0.%d.%d:80\" % (i // 250, i % 250)) for i in range({n})], name = \"apps\"), name = \"web\")"
        ));
        let drawing = drawn(&point);
        let last = format!("app-0 … app-{} | {kind}", n - 1);
        assert_eq!(names(&drawing), ["web | :80", "apps | lb.p2c", &last]);
        assert_eq!(drawing.edges.len(), 2);
    }
}

#[test]
fn what_is_shared_stands_there_once_and_a_spare_is_aside() {
    let point = point(
        r#"
spare = respond(503, "closed\n")
apps = [server("app", addr = "10.0.0.1:80"), server("bpp", addr = "10.0.0.2:80")]
one = lb.random(apps, name = "one", on_empty = spare)
other = lb.p2c(apps, name = "other")
listen(":80", route([(when(path = "/a"), one), (when(path = "/deep"), retry(2, timeout(1 * s, other)))], otherwise = other), name = "web")
"#,
    );
    let drawing = drawn(&point);
    assert_eq!(drawing.boxes.len(), 9, "{:?}", names(&drawing));
    assert_eq!(drawing.edges.iter().filter(|way| way.aside).count(), 1);
    let svg =
        drawing.svg(|nodes| Some(super::Note { words: format!("{} <here>", nodes.len()), class: "bad" }));
    assert!(svg.contains("1 &lt;here&gt;") && svg.contains("<g class=\"is-bad\">"), "{svg}");
}

#[test]
fn ten_thousand_places_are_drawn_too() {
    let lines: String = (0..10_000)
        .map(|i| format!("server(\"a{i}\", addr = \"10.1.{}.{}:80\"),\n", i / 250, i % 250))
        .collect();
    let drawing =
        drawn(&point(&format!("listen(\":80\", lb.random([{lines}], name = \"apps\"), name = \"web\")")));
    assert_eq!(drawing.boxes.len(), 3);
    assert_eq!(drawing.boxes[2].of.kind, "server × 10,000");
}

#[test]
fn nodes_of_one_place_behind_each_other_close_no_circle() {
    let point = point(
        "def chain():\n    node = server(\"end\", addr = \"10.0.0.1:80\")\n    for i in range(5):\n        node = delay(1 * ms, timeout(1 * s, node))\n    return node\nlisten(\":80\", chain(), name = \"web\")",
    );
    assert_eq!(drawn(&point).boxes.len(), 4);
}

#[test]
fn two_ladders_do_not_cross() {
    let point = point(
        r#"
def way(name, port):
    return timeout(1 * s, lb.random([server(name, addr = "10.0.0.1:%d" % port)], name = name + "s"), name = name + "-limit")
listen(":80", way("a", 80), name = "one")
listen(":81", way("b", 81), name = "two")
listen(":82", way("c", 82), name = "three")
"#,
    );
    drawn(&point);
    let layered = layers::layered(fold::fold(&point, &roots(&point)));
    assert_eq!(crossings(&ordered(&layered)), 0);
}

/// The text in the boxes of a picture.
fn said(drawing: &Drawing) -> Vec<String> {
    let lines = |b: &super::PlacedBox| {
        let lines = b.of.lines.iter().flatten().cloned();
        std::iter::once(b.of.name.clone()).chain(lines).filter(|line| !line.is_empty()).collect::<Vec<_>>()
    };
    drawing.boxes.iter().map(|b| lines(b).join(" | ")).collect()
}

const DYNO: &str =
    "def dyno():\n    return cable(2 * ms, queue(delay(dist.exponential(100 * ms), server(\"rails\"))))\n";

fn scenario(node: &str) -> String {
    format!("{DYNO}scenario(\"s\", {node}, traffic.poisson(rate = 1), requests = 1)\n")
}

#[test]
fn a_picture_says_who_shares_what() {
    let dyno = "cable 2ms | queue | delay exponential 100ms | server rails";
    let of = |node: &str| said(&pictured(&scenario(node)));
    for (n, times) in [(3, "3"), (250, "250"), (10_000, "10,000")] {
        assert_eq!(
            of(&format!("lb.least_conn(pool({n}, dyno), ties = \"first\")")),
            [format!("lb.least_conn (ties: first) | over {times}"), format!("dyno × {times} | {dyno}")]
        );
    }
    let shared = pictured(
        &scenario("lb.random(pool(10, lambda: lb.p2c(dynos)))")
            .replace("\nscenario", "\ndynos = pool(250, dyno)\nscenario"),
    );
    assert_eq!(
        said(&shared),
        [
            "lb.random | over 10".to_owned(),
            "lb.p2c × 10 | each over the same 250".to_owned(),
            format!("dyno × 250 | {dyno} | shared by 10")
        ]
    );
    let own = pictured(&scenario("lb.random(pool(10, lambda: lb.p2c(pool(25, dyno))))"));
    assert_eq!(
        said(&own),
        [
            "lb.random | over 10".to_owned(),
            "lb.p2c × 10 | each over 25 of its own".to_owned(),
            format!("dyno × 250 | {dyno}")
        ]
    );
    // Shared: all lines cross. Their own: each forks.
    let lanes = |drawing: &Drawing| drawing.edges.iter().map(|way| way.lanes.len()).collect::<Vec<_>>();
    assert_eq!((lanes(&shared), lanes(&own)), (vec![3, 9], vec![3, 6]));
}

#[test]
fn pools_that_overlap_say_by_how_much() {
    let source = format!(
        "{DYNO}dynos = pool(30, dyno)\nrouters = [lb.p2c(dynos[10 * i:10 * i + 20]) for i in range(2)]\nscenario(\"s\", lb.random(routers), traffic.poisson(rate = 1), requests = 1)\n"
    );
    let said = said(&pictured(&source));
    assert!(said[1] == "lb.p2c × 2 | each over 20" && said[2].ends_with("| shared by 2"), "{said:?}");
}

#[test]
fn ten_thousand_places_make_a_picture_too() {
    let lines: String = (0..10_000).map(|i| format!("queue(server(\"a{i}\")),\n")).collect();
    let drawing = pictured(&format!(
        "scenario(\"s\", lb.random([{lines}]), traffic.poisson(rate = 1), requests = 1)\n"
    ));
    assert_eq!(said(&drawing), ["lb.random | over 10,000", "× 10,000 | queue | server a0 … a9999"]);
}

#[test]
fn only_what_all_have_is_said_of_many() {
    let source = "apps = [server(\"a%d\" % i, addr = \"10.0.0.%d:80\" % i) for i in range(3)]\none = server(\"b\", addr = \"10.0.0.9:80\")\nscenario(\"s\", lb.random(apps + [timeout(1 * s, one)]), traffic.poisson(rate = 1), requests = 1)\n";
    let said = said(&pictured(source));
    assert_eq!(said, ["lb.random", "a0 … a2 × 3 | server", "timeout 1s | b: server 10.0.0.9:80"]);
}
