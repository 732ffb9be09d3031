//! The rooms of `verify`: simulation against reality.

use super::{Layout, room};

/// Its rooms, the lowest first.
pub(super) const VERIFY: Layout = Layout {
    folder: "crates/verify",
    rooms: &[
        room("busy", "the load of the machine", &[]),
        room("part", "the messages between the processes of a run", &[]),
        room("children", "the processes of a run", &["busy", "part"]),
        room("statistics", "statistics of both worlds", &[]),
        room("tolerances", "how far each statistic of both worlds may lie apart", &[]),
        room("compare", "compares a statistic of both worlds", &["statistics"]),
        room("router", "the load balancer that routes: weir, or another proxy", &[]),
        room("prepare", "prepares a scenario to be served", &["router"]),
        room("against", "another proxy in place of weir", &["router", "prepare"]),
        room(
            "options",
            "the options of a verification, and its errors",
            &["tolerances", "router", "prepare"],
        ),
        room("trial", "one run in reality", &["busy", "part", "children", "prepare", "against", "options"]),
        room("calibrate", "what this machine adds to a request", &["prepare", "options", "trial"]),
        room("figures", "what one replication, or one run, says", &["part", "prepare", "trial"]),
        room("hops", "A point with what a machine adds", &["prepare", "calibrate"]),
        room("connections", "the number of connections that a run should need", &["prepare", "hops"]),
        room("outcome", "the outcome of a verification", &["statistics", "router", "calibrate"]),
        room(
            "record",
            "records of the runs of a verification as lines of JSON (`weir.record/1`), and their replay",
            &["trial"],
        ),
        room(
            "schedule",
            "how many runs a scenario has, how long they are, and how many go on beside each other",
            &["prepare", "options", "calibrate", "outcome"],
        ),
        room(
            "pairs",
            "the runs of a scenario in both worlds",
            &["statistics", "tolerances", "compare", "prepare", "figures", "outcome"],
        ),
        room(
            "omissions",
            "what of a scenario is not compared, and why",
            &["statistics", "prepare", "outcome"],
        ),
        room(
            "runs",
            "the finished runs of a scenario, and what is reported of them",
            &[
                "statistics",
                "prepare",
                "options",
                "trial",
                "figures",
                "hops",
                "connections",
                "outcome",
                "schedule",
                "pairs",
                "omissions",
            ],
        ),
        room(
            "world",
            "one scenario in both worlds, run by run",
            &["prepare", "options", "trial", "figures", "hops", "connections", "outcome", "schedule", "runs"],
        ),
        room(
            "run",
            "a whole verification",
            &["prepare", "options", "trial", "calibrate", "hops", "outcome", "record", "schedule", "world"],
        ),
        room(
            "lib",
            "one file, two worlds",
            &[
                "children",
                "statistics",
                "tolerances",
                "router",
                "prepare",
                "options",
                "calibrate",
                "outcome",
                "record",
                "run",
            ],
        ),
    ],
};
