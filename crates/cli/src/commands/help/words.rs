//! Words that nothing is called by and users look for: other names of a thing, and the texts of warnings.

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
        words: &["precision", "interval", "confidence", "error bars", "ci"],
        says: "Each figure has a 95 % interval over replications. More replications (`--replications`, `--precision 1%`) make it \
               narrower, longer runs (`--requests`) less biased.",
        see: &["--precision", "--replications", "--requests"],
    },
];

/// A warning of a result: the words by which it is known, and what they mean.
struct Warning {
    says: &'static str,
    means: &'static str,
}

const WARNINGS: &[Warning] = &[
    Warning {
        says: "too short for",
        means: "A single replication sees too few samples for that quantile (p99 needs 1,000 in the window, p99.9 10,000), or its \
                value in single replications differs so much from that of all together that the interval may miss the true value. \
                Make runs longer: `--requests N`, or more `duration`. More replications do not help.",
    },
    Warning {
        says: "not settled",
        means: "In the second half of the window requests took clearly longer or shorter than in the first: the run still changes. \
                Make it longer, give it less load, or use `window=\"auto\"`, which leaves the start out.",
    },
    Warning {
        says: "overloaded: busy all the time and its queue keeps growing",
        means: "More requests come to a node than it can answer, so latencies grow for as long as the run lasts and say how long it \
                was. Give it more `concurrency`, more members, or less traffic.",
    },
    Warning {
        says: "start-up forgets that it began empty",
        means: "The run is shorter than ten times what its busiest station needs to settle: figures are those of a system that is \
                still filling. Make runs longer (`--requests`).",
    },
    Warning {
        says: "few outages fell into the windows",
        means: "So few outages fell into the window that success and high quantiles depend on when they came. Make runs longer, or \
                use more replications.",
    },
    Warning {
        says: "taken as GET",
        means: "Requests are GET unless the traffic says otherwise, and a GET may be tried again. If yours are not, say so: \
                `traffic.mix(arrivals, [(1, request(method=\"POST\"))])`.",
    },
    Warning {
        says: "two outcomes: succeeded in of replications, in the others",
        means: "Replications fall into two groups, of which some recover and some do not. Their mean is the figure of neither: \
                look at the groups.",
    },
    Warning {
        says: "lost requests got no answer and never will",
        means: "Something swallowed requests (a black hole, a lost message), and nothing ends their wait: they have no latency. Put \
                a `timeout` around it, or give the scenario `patience`.",
    },
    Warning {
        says: "nothing selected no request is in the window",
        means: "No request counts, so there are no figures. Make the run longer, or set `window=\"all\"`.",
    },
    Warning {
        says: "ended early requests were sent in a replication",
        means: "The scenario's `duration`, its trace or its users ended before its `requests` were sent.",
    },
    Warning {
        says: "one loop: here one event loop meets all requests",
        means: "A simulation has one event loop unless `listen(..., loops=n)`; served, each loop keeps counts of its own, and balances \
                worse.",
    },
    Warning {
        says: "null quantile n/a too few samples",
        means: "A quantile is `null` where a replication has fewer than ten samples beyond it: p99 needs 1,000, p99.9 10,000. Make \
                runs longer.",
    },
];

/// What is said of a word or of the text of a warning that users look for.
pub(super) fn pages(asked: &str) -> Vec<String> {
    let asked = asked.to_lowercase();
    let words: Vec<&str> = asked.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let singular = asked.strip_suffix('s').unwrap_or(&asked);
    let topics =
        TOPICS.iter().filter(|t| t.words.iter().any(|w| *w == asked || *w == singular)).map(|topic| {
            let see: Vec<String> = topic.see.iter().map(|name| format!("weir help {name}")).collect();
            format!("{asked}\n\n{}\n\nSee: {}\n", wrapped(topic.says, WIDTH, 0), see.join(", "))
        });
    let warnings = WARNINGS.iter().filter(|w| is_about(&words, w)).map(|warning| {
        let title = warning.says.split(':').next().unwrap_or(warning.says);
        format!("The warning \"{title} ...\"\n\n{}\n", wrapped(warning.means, WIDTH, 0))
    });
    topics.chain(warnings).collect()
}

/// Whether these are words of a warning: its first three, or two at least of which all are in it.
fn is_about(asked: &[&str], warning: &Warning) -> bool {
    let says: Vec<&str> =
        warning.says.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let opening = &says[..says.len().min(3)];
    let opens = says.len() >= 2
        && asked.windows(opening.len()).any(|w| w.iter().zip(opening).all(|(a, b)| a == &b.to_lowercase()));
    opens || (asked.len() >= 2 && asked.iter().all(|w| says.contains(w)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_words_and_the_texts_of_warnings_are_found() {
        for word in ["outage", "outages", "gc", "site", "busy", "seed", "circuit"] {
            assert_eq!(pages(word).len(), 1, "{word}");
        }
        let text = "too short for p99: single replications see too few samples, so the interval may miss the true value";
        for said in [
            text,
            "too short for p99",
            "Too short for p99.9",
            "not settled",
            "taken as GET: 12 further attempts",
        ] {
            assert_eq!(pages(said).len(), 1, "{said}");
        }
        assert!(pages("nothing of it").is_empty() && pages("for").is_empty());
    }
}
