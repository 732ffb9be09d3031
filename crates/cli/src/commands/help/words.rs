//! Words that nothing is called by and users look for: other names of a thing.

use super::{WIDTH, wrapped};

/// A word that users have for something, what is said of it, and the names to look up next.
struct Topic {
    words: &'static [&'static str],
    says: &'static str,
    see: &'static [&'static str],
}

const TOPICS: &[Topic] = &[
    Topic {
        words: &["outage", "failure", "crash", "down", "downtime", "mtbf", "mttr"],
        says: "A node that is down for a while: `faulty` around it (refused, crashed, silent or slow), `block` for several \
               nodes that fail together, `flaky` for single requests. What notices it: `eject` and `health.http`.",
        see: &["faulty", "block", "flaky", "eject", "health.http"],
    },
    Topic {
        words: &["gc", "garbage", "collection", "pause", "stall", "slow"],
        says: "A pause of a process, such as a garbage collection, is a `faulty` node that is slow or stands still while it \
               is down; one that is slow at its start is a `warmup`.",
        see: &["faulty", "warmup"],
    },
    Topic {
        words: &["site", "place", "member"],
        says: "A site is a place in the file that creates nodes, with the calls that led there. Results have one row per site: \
               `pool(40, app)` is one site with 40 members. `weir sim --nodes all` shows each member.",
        see: &["pool", "spread", "count"],
    },
    Topic {
        words: &["busy", "load", "saturated", "utilization"],
        says: "How busy a node is: its `utilisation`, the share of its slots or cores that are in use on average. Near 1 its \
               queue grows.",
        see: &["utilisation", "queue", "concurrent", "overloaded"],
    },
    Topic {
        words: &["seed", "random", "reproduce", "reproducible"],
        says: "The seed of all random draws, `--seed N`, 1 by default. The same file, seed and version give the same bytes, for \
               any number of threads; two scenarios with equal traffic have the same arrivals.",
        see: &["--seed", "sim", "compare"],
    },
    Topic {
        words: &["breaker", "circuit"],
        says: "A circuit breaker: `eject` leaves a target out after failures in a row and lets one request try it later; \
               `outlier` compares targets; `max_in_flight` bounds what is under way.",
        see: &["eject", "outlier", "max_in_flight"],
    },
    Topic {
        words: &["jitter"],
        says: "Full jitter is what `backoff` of `retry` does: each wait is drawn from 0 to its bound. `jitter` of health checks \
               varies their interval.",
        see: &["retry", "backoff", "health.http"],
    },
    Topic {
        words: &["null", "n/a", "null quantile"],
        says: "A quantile is `null` where a replication has fewer than ten samples beyond it: p99 needs 1,000, p99.9 10,000. Make \
               runs longer.",
        see: &["--requests", "p99"],
    },
    Topic {
        words: &["precision", "interval", "confidence", "error bars", "ci"],
        says: "Each figure has a 95 % interval over replications. More replications (`--replications`, `--precision 1%`) make it \
               narrower, longer runs (`--requests`) less biased.",
        see: &["--precision", "--replications", "--requests"],
    },
];

/// What is said of a word that users look for.
pub(super) fn pages(asked: &str) -> Vec<String> {
    let asked = asked.to_lowercase();
    let singular = asked.strip_suffix('s').unwrap_or(&asked);
    let is_about = |t: &&Topic| t.words.iter().any(|w| *w == asked || *w == singular);
    let page = |topic: &Topic| {
        let see: Vec<String> = topic.see.iter().map(|name| format!("weir help {name}")).collect();
        format!("{asked}\n\n{}\n\nSee: {}\n", wrapped(topic.says, WIDTH, 0), see.join(", "))
    };
    TOPICS.iter().filter(is_about).map(page).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_words_are_found() {
        for word in ["outage", "outages", "GC", "site", "busy", "seed", "circuit"] {
            assert_eq!(pages(word).len(), 1, "{word}");
        }
        assert!(pages("nothing of it").is_empty());
    }
}
