//! The rooms of `model`: the behaviour of modelled parts, the same in virtual time and in the proxy.

use super::{Layout, room};

pub(super) const MODEL: Layout = Layout {
    folder: "crates/model",
    rooms: &[
        room("draws", "the purposes of draws, which keep them apart", &[]),
        room("dist", "distributions as a file gives them", &[]),
        room("sampler", "draws from distributions", &["dist"]),
        room("zipf", "draws of keys by Zipf's law", &[]),
        room("loops", "the event loop that a connection meets", &[]),
        room("connections", "the connections that exchanges need", &[]),
        room("queue", "a queue with slots, in order of arrival", &[]),
        room("concurrent", "a queue shared by threads", &["queue"]),
        room("warmup", "servers that are slow after a start", &[]),
        room("flaky", "requests that fail at random", &["draws"]),
        room("faulty", "nodes that go down and up", &["dist", "sampler", "draws"]),
        room("pause", "the clock of a process that stands still", &["faulty"]),
        room("crossing", "the times of a link's two ways", &["dist", "sampler", "draws"]),
        room("probe", "the probes of a balancer", &["crossing", "dist", "draws", "sampler"]),
        room("way", "the keys of a request's draws", &["draws"]),
        room("mix", "the kinds and keys of requests", &["zipf"]),
        room("traffic", "the arrivals of requests", &["dist", "draws", "sampler"]),
        room(
            "lib",
            "the public face: all of them",
            &[
                "draws",
                "dist",
                "sampler",
                "zipf",
                "loops",
                "connections",
                "queue",
                "concurrent",
                "warmup",
                "flaky",
                "faulty",
                "pause",
                "crossing",
                "probe",
                "way",
                "mix",
                "traffic",
            ],
        ),
    ],
};
