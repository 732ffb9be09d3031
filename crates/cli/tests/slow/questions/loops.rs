//! What event loops know of each other (`examples/zuul/loops.star`), beside an independent simulation.

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
