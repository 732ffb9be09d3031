//! What every drawing must keep, whatever is drawn: nothing overlaps, edges lead to the right, the same file gives the same bytes.

use super::order::{crossings, ordered};
use super::{Drawing, fold, layers};
use weir_topology::plan::{NodeId, Point};
use weir_topology::{Request, evaluate};

fn point(source: &str) -> Point {
    let request = Request { source: source.into(), name: "t.star".into(), ..Request::default() };
    let plan = evaluate(&request).unwrap_or_else(|wrong| panic!("{wrong:?}")).plan;
    plan.points.into_iter().next().expect("one point")
}

fn roots(point: &Point) -> Vec<NodeId> {
    weir_topology::plan::listeners(point)
}

#[track_caller]
fn drawn(point: &Point) -> Drawing {
    let drawing = Drawing::new(point, &roots(point), |_| true);
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
    assert_eq!(svg, Drawing::new(point, &roots(point), |_| true).svg(|_| None));
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
