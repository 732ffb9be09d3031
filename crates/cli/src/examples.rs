//! The examples that ship, embedded: what `weir new` writes.

/// An example: its name, its text, and the files that it needs beside it.
pub(crate) struct Example {
    /// Its path under `examples/`, without the ending.
    pub(crate) name: &'static str,
    /// The file.
    pub(crate) text: &'static str,
    /// What it loads or names, by its path from the file.
    pub(crate) beside: &'static [(&'static str, &'static str)],
}

impl Example {
    /// Its question: the first line of its text.
    pub(crate) fn question(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }
}

/// An example by its name.
macro_rules! example {
    ($name:literal $(, $beside:literal from $path:literal)*) => {
        Example {
            name: $name,
            text: include_str!(concat!("../../../examples/", $name, ".star")),
            beside: &[$(($beside, include_str!(concat!("../../../examples/", $path)))),*],
        }
    };
}

/// All of them, those to start from first.
pub(crate) const ALL: &[Example] = &[
    example!("quickstart"),
    example!("bamboo"),
    example!("policies"),
    example!("lying"),
    example!("spare"),
    example!("panic"),
    example!("layers"),
    example!("hops"),
    example!("rolling"),
    example!("discovery", "discovery.json" from "discovery.json"),
    example!("appoptics/incident"),
    example!("zuul/loops"),
    example!("zuul/instance"),
    example!("zuul/uneven"),
    example!("zuul/fleet"),
    example!("zuul/week"),
    example!(
        "edge",
        "certs/shop.pem" from "certs/shop.pem",
        "certs/shop.key" from "certs/shop.key",
        "certs/api.pem" from "certs/api.pem",
        "certs/api.key" from "certs/api.key"
    ),
    example!("timelike/gist"),
    example!("timelike/post1", "dynos.star" from "timelike/dynos.star"),
    example!("timelike/post2", "dynos.star" from "timelike/dynos.star"),
    example!("timelike/ties", "dynos.star" from "timelike/dynos.star"),
    example!("timelike/var", "dynos.star" from "timelike/dynos.star"),
    example!("timelike/questions/01-random-over-random"),
    example!("timelike/questions/02-coordination-delay"),
    example!("timelike/questions/03-distance-from-knowing"),
    example!("timelike/questions/04-bounded-by-random"),
    example!("timelike/questions/05-rings-at-zero"),
    example!("timelike/questions/06-hold-check-or-eject"),
    example!("timelike/questions/07-blocks"),
    example!("timelike/questions/08-bursts"),
    example!("timelike/questions/09-concurrent-servers"),
    example!("timelike/questions/10-long-and-short"),
    example!("timelike/questions/11-unequal-cables"),
    example!("timelike/questions/12-lossy-links"),
    example!("timelike/questions/13-retries"),
    example!("papers/two-choices"),
    example!("papers/pooling"),
    example!("papers/sharing"),
    example!("papers/open-closed"),
    example!("papers/redundancy"),
    example!("papers/bounded-loads"),
    example!("papers/linkerd"),
    example!("papers/tail-at-scale"),
    example!("papers/coordinated-omission"),
    example!("papers/jitter"),
    example!("papers/retries-in-layers"),
    example!("papers/metastable"),
    example!("papers/shuffle-sharding"),
];
