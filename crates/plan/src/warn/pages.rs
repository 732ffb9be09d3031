//! What the warnings about a plan mean, for `weir help "TEXT"`: a line here for each text of `warn`, `serving` and
//! `circles`.

/// A warning or hint, and what is said of it.
#[derive(Clone, Copy, Debug)]
pub struct WarningPage {
    /// Its text; `{}` is what differs.
    pub says: &'static str,
    /// What it means, and what to do.
    pub means: &'static str,
}

impl WarningPage {
    /// Whether a text is that of this warning.
    pub fn fits(&self, text: &str) -> bool {
        let pieces: Vec<&str> = self.says.split("{}").collect();
        let [first, between @ .., last] = &pieces[..] else { return text == self.says };
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        for piece in between {
            let Some((_, after)) = rest.split_once(piece) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }
}

const fn page(says: &'static str, means: &'static str) -> WarningPage {
    WarningPage { says, means }
}

/// The warnings about a plan.
pub const PAGES: &[WarningPage] = &[
    page(
        "this `gate` does nothing: no balancer checks it by `health.http`",
        "A gate answers health checks by HTTP, and lets requests and checks by a connection pass. Give the balancer in front of it \
         `health=health.http(...)`.",
    ),
    page(
        "the ramp of this `gate` has {}: {} it",
        "A gate lets its askers in one after the other, so that a newcomer's load grows by one step for each balancer that checks \
         it. With few balancers the steps are large: with one it gets everything at once, at a random time of the ramp. A \
         `slow_start` of the balancer is a slope; beside a real HAProxy `weir gate --agent` is one.",
    ),
    page(
        "no scenario reaches this `{}`",
        "The node is made, but no scenario and no listener leads to it, so it does nothing. Put it on the way of one, or delete \
         it.",
    ),
    page(
        "no scenario reaches these {} nodes (`{}`)",
        "The nodes are made, but no scenario and no listener leads to them, so they do nothing. Put them on the way of one, or \
         delete them.",
    ),
    page(
        "no scenario reaches {} of these {} nodes (`{}`)",
        "Some of the nodes that this line makes are on no way of a scenario or listener, so they do nothing.",
    ),
    page(
        "this `weight` has no effect: it is not a direct target of a balancer",
        "A balancer reads the weights of its own targets only. Put `weight` directly into its list.",
    ),
    page(
        "the server {} has an address but no model: in simulation it answers at once",
        "`addr` is where the real server is; how long it takes is its `model`. Without one a simulation has no time to count.",
    ),
    page(
        "all {} targets of this balancer are the same node",
        "`pool(n, f)` calls `f` for each member. If `f` returns a node that was made before, all members are that one.",
    ),
    page(
        "a request that this `{}` {} ends as `lost`, without a latency: scenario {} reaches it without a `timeout`",
        "What is swallowed never gets an answer, so it has no latency and is in no quantile. Put a `timeout` around it, or give \
         the scenario `patience`.",
    ),
    page(
        "one request may make {} attempts here: this `retry` is inside another, and their attempts multiply ({})",
        "Each attempt of the outer `retry` begins all attempts of the inner one anew. Retry in one place on the way, or give \
         them a `budget`.",
    ),
    page(
        "a node that goes down here is unlikely to come back within the run: repair takes {} on average, but scenario {} lasts {}",
        "Repair takes longer than the run, so the run shows a node that is down, not one that comes back. Use a shorter `mttr` or \
         a longer run; an outage that is meant to last is `dist.fixed`.",
    ),
    page(
        "this `hedge` never sends a second attempt beside an open one: it waits {}, but the `timeout` around it{} ends everything \
         after {}",
        "The `timeout` around the hedge is over before the hedge sends again. Use a shorter `after`, or put the `timeout` \
         inside.",
    ),
    page(
        "a request that this `timeout` ends is not tried again: the `retry` around it{} lacks {} in `on`",
        "`retry` tries only the kinds of error again that its `on` names, and `timeout` is not among the default ones, since the \
         work may have been done. Add it if that may be.",
    ),
    page(
        "a request that fails at this `flaky` is not tried again: the `retry` around it{} lacks {} in `on`",
        "`retry` tries only the kinds of error again that its `on` names. Add the kind by which this `flaky` fails if it should \
         be tried again.",
    ),
    page(
        "no node answers with {} in simulation, so this `retry` has no such answer to retry: a server answers 200, and a failure \
         has a kind",
        "Simulated servers answer 200 or fail by a kind. Name the kind in `on`, such as \"status_5xx\"; a fixed answer is \
         `respond(503)`.",
    ),
    page(
        "a failure behind a `listen` is an answer to the nodes in front of it (502, 503 or 504), and this `retry` retries none of \
         those",
        "In front of a listener a failure is only a status. Give the `retry` the numbers, as in `on=[502, 503, 504]`.",
    ),
    page(
        "`outlier` does nothing here: one of {} is {} % of them, but at most {} % may be ejected",
        "With so few targets one is more than `max_ejection_percent` of them, so none is ever let go. Allow more, or set \
         `always_eject_one_host=True`.",
    ),
    page(
        "this `outlier` {}: that takes at least {} targets, and there are {}",
        "`outlier` compares a target with the others, and does so only where there are enough of them. Use a smaller \
         `..._minimum_hosts`, or `eject`, which needs no others.",
    ),
    page(
        "this `subset.loops` divides nothing: there is one event loop",
        "Targets are divided among the event loops of the listener before the balancer. With one loop there is one subset: \
         all targets.",
    ),
    page(
        "a subset of {} is no subset: there are {} targets",
        "Each loop has all targets, as without `subset`.",
    ),
    page(
        "`slow_start` does nothing at this `{}`: {}",
        "`slow_start` lowers the weight of a target that comes back, and this policy does not look at weights.",
    ),
    page(
        "`limits=True` of `slow_start` does nothing at this `{}`: it has no limit",
        "`limits` lowers `max_in_flight` of a target that comes back. Without `max_in_flight` and `max_connections` the \
         balancer has no such limit, so only the weight grows.",
    ),
    page(
        "no request can succeed within this `timeout` of {}: what is inside takes at least {}",
        "The fixed times inside the `timeout` are longer than it, so each request ends as `timeout`. Make it longer.",
    ),
    page(
        "scenario {}: the offered load of the {} is {} times {} capacity: {}",
        "More requests come there than it can answer. An unbounded queue grows as long as the run lasts, so the figures say how \
         long it was; a bounded one rejects the excess. Give it more `concurrency`, more members, or less traffic.",
    ),
    page(
        "scenario {}: the time of a `{}` has no {} (`dist.pareto` with alpha {}): {}",
        "A Pareto distribution has no mean if alpha is at most 1, and no variance if it is at most 2. Then means of a run do not \
         settle, however long it is. Read quantiles, or use a larger alpha.",
    ),
    page(
        "scenario {}: of the times of a `{}` {} % are longer than 100 years, the longest that weir knows, and count as that",
        "Draws are cut at 100 years, so their mean is lower than the distribution's. Give it shorter times.",
    ),
    page(
        "scenario {}: its users do not think, and this `{}` {}: all further requests are spent at that instant",
        "In a closed loop a user sends again as soon as it is answered. If it does not think and is answered at once, by a full \
         queue or a limit, no time passes between its requests, and all that are left fail at that instant. Give the users a \
         `think` time, as real clients wait before they try again.",
    ),
    page(
        "the trace of scenario {} begins {} after the start of the run{}",
        "With `start=\"epoch\"` the instants of a trace count from the start of the run, which is right for small numbers only. \
         Leave it out: the first instant is then the start.",
    ),
    page(
        "requests of scenario {} have no key for this `{}` ({}): each counts as a separate client, so {}",
        "The node goes by a key, and these requests have none. Give them keys: `traffic.mix(arrivals, [(1, \
         request(key=keys.uniform(1000)))])`; in `traffic.closed` the user is the key, in `traffic.trace` the column `key`.",
    ),
    page(
        "some of the requests of scenario {} have no key for this `{}` ({}): each counts as a separate client, so {}",
        "The node goes by a key, and some kinds of request have none. Give each `request(...)` of the mix a `key`, or the header \
         or cookie that is looked at.",
    ),
    page(
        "requests of scenario {} would be longer than {} bytes after this `rewrite`: when served, they are answered with 414; in \
         simulation they keep their path",
        "A rewritten target has the same limit as one that comes in. Use a shorter prefix.",
    ),
    page(
        "no request of scenario {} matches a rule of this `route`: all requests that reach it end as `no_route`",
        "Simulated requests are GET for \"/\" unless `traffic.mix` says otherwise. Add one whose paths the rules match, or give \
         the route `otherwise=`.",
    ),
    page(
        "a simulated client has no certificate: in this `{}` {}",
        "Certificates of clients exist on real connections only. Simulate such requests by a field of `traffic.mix`.",
    ),
    page(
        "this server's address, {}, is that of the listener `{}`, which leads back here: requests may loop until weir answers 508",
        "weir would send requests to itself. Write the address of the origin, or give the listener another port.",
    ),
    page(
        "this `queue` is in front of a `{}` that is left out when served, so weir itself keeps the limit",
        "Models of the world do not act in front of real servers, but a `queue` does. If the limit is the server's own, put both \
         into its model: `server(addr=..., model=queue(...))`.",
    ),
    page(
        "in scenario {} no balancer has this fleet: the change has no effect",
        "Members join and leave, but no request of the scenario can come to them. Give the fleet to a balancer that the \
         scenario's requests come to.",
    ),
    page(
        "in scenario {} no balancer has one of these nodes as a target: its state and weight have no effect",
        "The operator's word is about targets: what a balancer picks. Name a target of a balancer (not a node behind it), or a fleet.",
    ),
    page(
        "in scenario {} no balancer has the fleet of `into`: its newcomers get no requests",
        "The leavers are replaced by members of another fleet, to which no request of the scenario can come. Give that fleet to \
         the balancer too.",
    ),
    page(
        "scenario {} is over before this: its last request arrives at some {}",
        "The change comes when no request arrives any more. Give the scenario more `requests` or a longer `duration`, or let \
         the change be earlier.",
    ),
    page(
        "in scenario {} all {} members of this fleet go at once: none serves until the first has booted",
        "With `first=\"leave\"` or `\"in_place\"` the members of a batch are stopped before others run, and the batch is the whole \
         fleet. Write a smaller `batch`, or `first=\"join\"`.",
    ),
    page(
        "in scenario {} a member that stays listed is stopped only when nothing is inside, and balancers go on sending",
        "With `unlist=False` no balancer is told that a member is to go, so requests come in until SIGTERM, and without `drain` \
         that waits until nothing is inside. Give the fleet `life=life(drain=10*s)`.",
    ),
    page(
        "in scenario {} this does not end: the last batch runs at some {} at the earliest, and the last request arrives at some {}",
        "Members that boot after the last request show nothing. Give the scenario more `requests` or a longer `duration`, or \
         write a shorter `every` or `boot`.",
    ),
    page(
        "all changes of scenario {} are outside of its window, which is from some {} to {}",
        "Results count the requests of the window only, and no change is in it. Write `window=\"all\"`, or change the fleet at \
         another time.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_fits_with_anything_in_its_gaps() {
        let of = |says| WarningPage { says, means: "" };
        assert!(of("all {} of {}, of {}").fits("all 3 of a, b of c, of d"));
        assert!(of("none").fits("none") && !of("none").fits("none of them") && of("{} ends").fits("it ends"));
        assert!(!of("all {} end").fits("all 3") && !of("all {} end").fits("of all 3 end"));
    }
}
