//! The rooms of `report`: results as text, JSON, CSV and HTML.

use super::{Layout, Room, room};

/// Its rooms, the lowest first.
pub(super) const REPORT: Layout = Layout {
    folder: "crates/report",
    rooms: &[
        room("number", "numbers for people", &[]),
        room("entry", "what all forms say of a scenario in the same words", &["number"]),
        room(
            "csv",
            "tidy CSV: one row per scenario, node and metric, so that any data frame reads it without a word of explanation",
            &["entry"],
        ),
        room("parquet", "parquet of the crate", &["entry"]),
        room("table", "A table of cells with headings, as text in columns or as HTML", &[]),
        room("chart", "charts as SVG: lines with their intervals over an axis", &["number", "table"]),
        room("comparison", "the table of scenarios", &["number", "entry", "table"]),
        room(
            "graph",
            "the drawing of a topology, as SVG: layers from left to right, where requests go",
            &["number", "entry", "table"],
        ),
        room(
            "offered",
            "what a plan offers to its queues, before anything is run",
            &["number", "entry", "table"],
        ),
        room("page", "what every page has around it", &["table", "graph"]),
        room("sites", "the table of sites", &["number", "table"]),
        room(
            "explained",
            "what typical requests consist of and how a run went over time, in words and as JSON",
            &["number", "sites"],
        ),
        room("json", "the JSON `weir.sim/1` of `docs/spec/language.md#sim-json`", &["number", "explained"]),
        room("trace", "the histories of requests", &["entry", "json"]),
        Room {
            despite: &[("lib", "a circle from before the table, to be opened")],
            ..room("saved", "results as they were saved, read back for a comparison", &[])
        },
        Room {
            despite: &[("text", "a circle from before the table, to be opened")],
            ..room("verify", "what a verification found", &["number", "entry", "table", "json"])
        },
        room(
            "verify_page",
            "A verification as one self-contained page",
            &["number", "table", "chart", "page", "verify"],
        ),
        Room {
            despite: &[("text", "a circle from before the table, to be opened")],
            ..room("compare", "two designs side by side", &["number", "table", "saved"])
        },
        Room {
            despite: &[("text", "a circle from before the table, to be opened")],
            ..room("load", "what a load run found out", &["number", "table"])
        },
        Room {
            despite: &[
                ("lib", "a circle from before the table, to be opened"),
                ("text", "they call each other: one protocol of the crate"),
            ],
            ..room("expected", "what a file expects and whether it holds", &["number", "entry", "table"])
        },
        Room {
            despite: &[("lib", "a circle from before the table, to be opened")],
            ..room(
                "text",
                "tables for a terminal",
                &["number", "entry", "table", "comparison", "sites", "explained", "expected"],
            )
        },
        Room {
            despite: &[("lib", "a circle from before the table, to be opened")],
            ..room(
                "html",
                "A simulation as one self-contained page, readable without scripts and on paper",
                &[
                    "number",
                    "entry",
                    "table",
                    "chart",
                    "comparison",
                    "graph",
                    "page",
                    "sites",
                    "explained",
                    "expected",
                    "text",
                ],
            )
        },
        room(
            "lib",
            "what a simulation found out, for people and for programs",
            &[
                "number",
                "csv",
                "parquet",
                "table",
                "offered",
                "json",
                "trace",
                "saved",
                "verify",
                "verify_page",
                "compare",
                "load",
                "expected",
                "text",
                "html",
            ],
        ),
    ],
};
