//! What event loops know of each other (`examples/zuul/loops.star`), and how evenly they load servers where they are
//! loaded unevenly (`examples/zuul/uneven.star`), beside an independent simulation.

use crate::shared::answers::{ms, run_of};
use crate::shared::figures::{figure, named};
use crate::shared::pages::table;

const FILE: &str = "examples/zuul/loops.star";

/// The rows with the p99 of the independent simulation, ms: least connections, two choices.
const ROWS: [(&str, u32, u32); 13] = [
    ("alone", 285, 295),
    ("at once", 92, 147),
    ("after 1 ms", 101, 148),
    ("after 10 ms", 151, 156),
    ("after 100 ms", 340, 222),
    ("8 subsets, alone", 154, 188),
    ("8 subsets, at once", 98, 151),
    ("8 subsets, after 10 ms", 133, 156),
    ("8 subsets, after 100 ms", 224, 200),
    ("2 subsets, alone", 236, 249),
    ("4 subsets, alone", 193, 214),
    ("16 subsets, alone", 124, 169),
    ("32 subsets, alone", 126, 161),
];

/// The table, whose figures are within 3 % of the others, as the note on them says they are of the truth.
pub(super) fn known() -> String {
    let got = run_of(&[FILE]);
    let row = |(name, least, two): (&str, u32, u32)| {
        let of = |policy: &str| named(&got, &format!("{policy}, {name}")).clone();
        let (by_least, by_two) = (of("least_conn"), of("p2c"));
        for (scenario, other) in [(&by_least, least), (&by_two, two)] {
            let ratio = figure(scenario, "p99").value / f64::from(other);
            assert!((ratio - 1.0).abs() < 0.03, "{name}: {ratio}");
        }
        [name.to_owned(), ms(&by_least, "p99"), least.to_string(), ms(&by_two, "p99"), two.to_string()]
    };
    let heading = ["what a loop knows", "`least_conn`", "(other)", "`p2c`", "(other)"];
    format!("```\nweir sim {FILE}\n```\n\n{}", table(heading, ROWS.into_iter().map(row).collect()))
}

const UNEVEN: &str = "examples/zuul/uneven.star";

/// The servers that a loop prefers, how many loops share one, and what the independent simulation has for the variation
/// of requests per server, which has some noise of its own.
const SIZES: [(u32, u32, f64); 3] = [(256, 32, 0.06), (32, 4, 0.11), (8, 1, 0.26)];

/// The table. Servers that r loops share, of loads drawn evenly up to 40 % around their mean, differ by 0.4/√(3·r) for that,
/// on average over all orders of the loads; the one of the file has 5 % less where four share.
pub(super) fn uneven() -> String {
    let got = run_of(&[UNEVEN]);
    let row = |(size, shared, other): (u32, u32, f64)| {
        let of = |how: &str| {
            let nodes = named(&got, &format!("{size}, {how}"))["nodes"].clone();
            let queue = nodes.as_array().and_then(|all| all.iter().find(|node| node["kind"] == "queue"));
            queue.and_then(|queue| queue["spread"]["cv"]["value"].as_f64()).expect("a spread")
        };
        let (even, uneven) = (of("even"), of("uneven"));
        let by_loops = if size < 256 { 0.4 / f64::from(3 * shared).sqrt() } else { 0.0 };
        let wanted = even.hypot(by_loops);
        assert!((uneven / wanted - 1.0).abs() < 0.1, "{size}: {uneven}, by the formula {wanted}");
        assert!((uneven - other).abs() < 0.03, "{size}: {uneven}, elsewhere {other}");
        let loops = shared.to_string();
        [size.to_string(), loops, format!("{even:.3}"), format!("{uneven:.3}"), format!("{other:.2}")]
    };
    let heading = ["servers of a loop", "loops of a server", "even", "uneven", "(other)"];
    format!("```\nweir sim {UNEVEN}\n```\n\n{}", table(heading, SIZES.into_iter().map(row).collect()))
}
