//! The rooms of `stats`: estimates, histograms and draws that are the same on every machine.

use super::{Layout, room};

pub(super) const STATS: Layout = Layout {
    folder: "crates/stats",
    rooms: &[
        room("math", "logarithms and powers with the same bits on every machine", &[]),
        room("decimal", "decimal numbers and fractions, exactly", &[]),
        room("draw", "keys, and the draws derived from them", &["math"]),
        room("student", "quantiles of Student's distribution", &["math"]),
        room("binomial", "bounds of a share that was counted", &["math", "student"]),
        room("histogram", "latencies in buckets, and their quantiles", &["math"]),
        room("estimate", "means with confidence intervals", &["math", "student", "histogram"]),
        room(
            "difference",
            "tests of differences, paired and not",
            &["math", "student", "binomial", "estimate"],
        ),
        room("mser", "the end of a warm-up", &["math"]),
        room(
            "lib",
            "the public face: all of them",
            &[
                "math",
                "decimal",
                "draw",
                "student",
                "binomial",
                "histogram",
                "estimate",
                "difference",
                "mser",
            ],
        ),
    ],
};
