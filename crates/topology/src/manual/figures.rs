//! The figures of a simulation's result, by their keys in `--output json`.

/// A figure of a result.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its key; the key of the object around it comes first, as in `queue.mean`.
    pub name: &'static str,
    /// The subject of the figure.
    pub of: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
}

const fn figure(name: &'static str, of: &'static str, unit: &'static str, meaning: &'static str) -> Figure {
    Figure { name, of, unit, meaning }
}

const S: &str = "scenario";
const L: &str = "latency";
const N: &str = "site";
const O: &str = "series";

/// All of them, in the order of the result.
pub const FIGURES: &[Figure] = &[
    figure(
        "requests_hash",
        S,
        "hash",
        "Equal where two scenarios have the same requests: arrivals, kinds, number, duration, seed.",
    ),
    figure("requests.total", S, "requests", "All requests of all replications."),
    figure(
        "requests.selected",
        S,
        "requests",
        "Those that the `window` of the scenario counts; all figures are based on these.",
    ),
    figure("requests.ok", S, "requests", "Those that succeeded, however late."),
    figure("requests.failed", S, "requests", "Those that ended with an error."),
    figure("requests.errors", S, "requests", "The failed ones by kind of error."),
    figure("success", S, "share", "The share of requests that succeeded."),
    figure(
        "goodput_per_s",
        S,
        "per second",
        "The ends, between the first and the last arrival of the window, of requests that succeeded within the \
            scenario's `deadline`, over that time.",
    ),
    figure(
        "request_rate_per_s",
        S,
        "per second",
        "The requests of the window, over the time from its first to its last arrival.",
    ),
    figure(
        "response_rate_per_s",
        S,
        "per second",
        "The ends of any requests in that time, with a success or an error, over that time.",
    ),
    figure("attempts_per_request", S, "attempts", "1, plus every further attempt of a `retry` or `hedge`."),
    figure(
        "latency_ms.all",
        S,
        "ms",
        "Latencies of all requests, from arrival to the end. Errors that return at once make these look \
            better.",
    ),
    figure("latency_ms.ok", S, "ms", "Latencies of the successes alone."),
    figure(
        "connections.open",
        S,
        "connections",
        "Connections to servers, on average; of a `server` or `listen` those to or from its members. All of `connections` is null where none are simulated.",
    ),
    figure("connections.peak", S, "connections", "The most at one instant of any replication."),
    figure("connections.opened_per_s", S, "per second", "How many are opened."),
    figure("connections.handshakes_per_s", S, "per second", "How many of them by TLS."),
    figure(
        "connections.closed_per_s",
        S,
        "per second",
        "How many end, by reason: `exchange` (broken off, or a crash), `origin` (none so far), `idle`, `age`, `spare` (the server or the proxy has left).",
    ),
    figure("connections.reused", S, "share", "Requests that came to a server and found a connection."),
    figure("connections.streams", S, "requests", "Requests on a connection that has any."),
    figure(
        "connections.spread",
        S,
        "connections",
        "Connections of a member over the time that it was there: least, most, coefficient of variation.",
    ),
    figure("warnings", S, "sentences", "Warnings about figures that could mislead."),
    figure(
        "explained",
        S,
        "ms",
        "With `--explain`: what requests near p50, p90, p95, p99 and p99.9 of the first replication consist of.",
    ),
    figure(
        "series",
        S,
        "parts",
        "With `--explain`: how the first replication went over time, all of its requests.",
    ),
    figure("min", L, "ms", "The smallest, over all replications."),
    figure("mean", L, "ms", "The average."),
    figure(
        "p50",
        L,
        "ms",
        "The median: half of the requests are faster. Null where too few samples lie beyond it, as for \
            every quantile.",
    ),
    figure("p90", L, "ms", "Nine of ten requests are faster."),
    figure("p95", L, "ms", "95 of 100 requests are faster."),
    figure("p99", L, "ms", "99 of 100 requests are faster."),
    figure("p999", L, "ms", "999 of 1,000 requests are faster."),
    figure("max", L, "ms", "The largest, over all replications."),
    figure("count", N, "nodes", "The members of the site: a pool of 250 is one site with 250 members."),
    figure(
        "requests",
        N,
        "requests",
        "Entries of selected requests, each attempt; health checks are not counted.",
    ),
    figure("errors", N, "requests", "Requests that it answered with an error, by kind."),
    figure(
        "utilisation",
        N,
        "share",
        "Slots of a `queue` or cores of a `concurrent` in use, on average. Unknown where checks went on after all users had lost their request.",
    ),
    figure("queue.mean", N, "requests", "Requests that wait at a member, on average."),
    figure("queue.max", N, "requests", "The most that ever waited at a member."),
    figure("wait_ms", N, "ms", "Waiting per entry, on average."),
    figure("service_ms", N, "ms", "Time inside per entry, on average."),
    figure(
        "latency_part_ms",
        N,
        "ms",
        "The part of the mean latency spent here; the parts of all sites add up to it.",
    ),
    figure("spread.min", N, "requests", "Requests of the member that got the fewest."),
    figure("spread.max", N, "requests", "Requests of the member that got the most."),
    figure("spread.cv", N, "ratio", "Standard deviation of the members' requests, divided by their mean."),
    figure("connections", N, "connections", "As of the scenario, of a `server` or `listen`."),
    figure(
        "part_s",
        O,
        "s",
        "The length of a part. The last part ends with the run, at `end_s`, and is half to one and a half times \
            as long.",
    ),
    figure("replication", O, "number", "The replication that it is about: 0, the first."),
    figure("end_s", O, "s", "When the run ended."),
    figure("arrivals_per_s", O, "per second", "The requests that arrived in each part."),
    figure(
        "responses_per_s",
        O,
        "per second",
        "The requests that ended in each part, with a success or an error.",
    ),
    figure(
        "goodput_per_s",
        O,
        "per second",
        "Those of them that succeeded within the scenario's `deadline`.",
    ),
    figure("failures_per_s", O, "per second", "Those of them that failed, by kind of error."),
    figure(
        "latency_ms",
        O,
        "ms",
        "p50, p95 and p99 of the requests that ended in each part (`all`) and of the successes among them (`ok`), to \
            within 0.4 %. Null where fewer than 2, 20 or 100 ended.",
    ),
    figure("in_flight", O, "requests", "Requests in flight, on average over each part."),
    figure(
        "queues",
        O,
        "requests",
        "Requests waiting and slots busy at all members of a site, on average over each part.",
    ),
    figure(
        "up",
        O,
        "nodes",
        "The members of a site with `faulty` or `block` that are up at the end of each part.",
    ),
    figure(
        "pools",
        O,
        "targets",
        "Targets that a site's balancers hold for down or have ejected at the end of each part.",
    ),
    figure(
        "connections",
        O,
        "connections",
        "Of each site of servers or listeners that has connections: how many on average in each part, and openings per second.",
    ),
    figure(
        "fleets",
        O,
        "members",
        "Members of each fleet that changes at the end of each part, those of them that the registry does not list, and the \
            requests per second to a listed member: the least, the 5th, 50th and 95th of a hundred, and the most.",
    ),
    figure(
        "marks",
        O,
        "s",
        "When members of a site were down, from the timelines of `faulty` and `block`, and when fleets changed. Nodes that change more than 64 \
            times, or only when a request comes (`clock=\"lazy\"`), have none; of more than 100, the longest of the \
            most members are kept.",
    ),
];
