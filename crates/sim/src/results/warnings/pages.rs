//! What the warnings of a result mean, for `weir help "TEXT"`. Each warning of this folder names its page.

use weir_plan::warn::WarningPage;

const fn page(says: &'static str, means: &'static str) -> WarningPage {
    WarningPage { says, means }
}

pub(super) const NOTHING_SELECTED: WarningPage = page(
    "nothing selected: no request counts, so there are no figures: {}",
    "No request is in the window, so there is nothing to tell. Make the run longer, or set `window=\"all\"`.",
);
pub(super) const ENDED_EARLY: WarningPage = page(
    "ended early: of {} requests {} were sent in a replication: {}",
    "The scenario's `duration`, its trace or its users ended before its `requests` were sent.",
);
pub(super) const NEVER_WARM: WarningPage = page(
    "not settled: window=\"auto\" finds no end of the warm-up within the first half of the replications, so their second half is \
     taken; run longer (--requests) until it does. Where it never does, the system is overloaded",
    "`window=\"auto\"` leaves the start of each replication out, and found that the start does not end. Make runs longer; if that \
     does not help, more comes in than can be answered.",
);
pub(super) const OVERLOADED: WarningPage = page(
    "overloaded: the {} at {} is busy {} % of the time and its queue keeps growing: answering all requests takes {} as long as they \
     took to arrive; latencies depend on how long the run is, not on the system",
    "More requests come to a node than it can answer, so latencies grow for as long as the run lasts and say how long it was. Give \
     it more `concurrency`, more members, or less traffic.",
);
pub(super) const DRIFT: WarningPage = page(
    "not settled: in the second half of the window the mean latency is {} % {} than in the first; run longer (--requests), or read \
     the figures as those of a start-up, not of a steady state",
    "In the second half of the window requests took clearly longer or shorter than in the first: the run still changes. Make it \
     longer, give it less load, or use `window=\"auto\"`, which leaves the start out.",
);
pub(super) const TWO_OUTCOMES: WarningPage = page(
    "two outcomes: in {} of {} replications {} % of requests succeeded, in the others {} %; the mean of both is the figure of \
     neither",
    "Replications fall into two groups, of which some recover and some do not. Their mean is the figure of neither: look at the \
     groups.",
);
pub(super) const START_UP: WarningPage = page(
    "start-up: {} forgets that it began empty only in some {}, and a replication lasts {}; figures are those of a start-up, too low \
     for a long run. Make replications longer (--requests), not more of them",
    "The run is shorter than ten times what its busiest station needs to settle: figures are those of a system that is still \
     filling. Make runs longer (`--requests`).",
);
pub(super) const HALTED: WarningPage = page(
    "halted: the replacement of {} that begins at {} went no further in {} of {} replications: a batch was not {} within 10 minutes, \
     and the members behind it were not replaced",
    "A replacement with `wait=` goes on when the newcomers of a batch run, or may be picked at every balancer; after 10 minutes it \
     gives up, as deploys do. Look at `acts` of a result over time: a newcomer that boots for so long, a health check that it does not \
     pass, or a balancer that does not see it.",
);
pub(super) const HELD_UP: WarningPage = page(
    "held up: the change of {} at {} found members that another change was still moving, and waited for their end, in {} of {} \
     replications",
    "A member is moved by one change at a time, so the second one happened later than the file says. Change the fleet at another time, \
     or give it `life=life(drain=...)`, which ends the first one sooner.",
);
pub(super) const STRETCHED: WarningPage = page(
    "made longer: `--precision` gave each replication {} times as many requests as the file says, since more short ones would all \
     have ended in their start-up",
    "More replications do not help where each ends in its start-up, so `--precision` made them longer instead. `--requests` says \
     how long they are.",
);
pub(super) const TOO_SHORT: WarningPage = page(
    "too short for {}: single replications see too few samples, so the interval may miss the true value; make replications longer \
     (--requests), not more of them",
    "A single replication sees too few samples for that quantile (p99 needs 1,000 in the window, p99.9 10,000), or its value in \
     single replications differs so much from that of all together that the interval may miss the true value. Make runs longer: \
     `--requests N`, or more `duration`. More replications do not help.",
);
pub(super) const INEXACT: WarningPage = page(
    "too long to add up: the times of all requests together may be more than 584 years, which is more than can be added exactly; \
     waits, service and parts of the latency are left out",
    "Sums are whole nanoseconds in 64 bits. Use shorter times, or fewer requests in a replication.",
);
pub(super) const LOST: WarningPage = page(
    "lost: {} of {} requests got no answer and never will; they have no latency and are in none of these quantiles. A `timeout` \
     around what loses them, or `patience`, says when their clients give up",
    "Something swallowed requests (a black hole, a lost message), and nothing ends their wait: they have no latency. Put a \
     `timeout` around it, or give the scenario `patience`.",
);
pub(super) const FEW_OUTAGES: WarningPage = page(
    "few outages: about {} fell into the windows of {} replications, {} into each; success and high quantiles depend on when they \
     happened, and their intervals may be too narrow. Make replications longer (--requests), not more of them",
    "So few outages fell into the window that success and high quantiles depend on when they came. Make runs longer.",
);
pub(super) const TAKEN_AS_GET: WarningPage = page(
    "taken as GET: {} further attempts were made only because all requests are taken as GET; a POST would not have been tried \
     again, as `traffic.mix` with `request(method=\"POST\")` shows",
    "Requests are GET unless the traffic says otherwise, and a GET may be tried again. If yours are not, say so: \
     `traffic.mix(arrivals, [(1, request(method=\"POST\"))])`.",
);
pub(super) const ONE_LOOP: WarningPage = page(
    "one loop: here one event loop meets all requests; served, `{}` has {}, and {} keeps a state on each. `loops=` in `listen`, with \
     the listener as the scenario's node, simulates several",
    "A simulation has one event loop unless `listen(..., loops=n)`; served, each loop keeps counts of its own, and balances worse.",
);

/// All warnings that a result may have beside those of its plan.
pub const WARNINGS: &[WarningPage] = &[
    NOTHING_SELECTED,
    ENDED_EARLY,
    NEVER_WARM,
    OVERLOADED,
    DRIFT,
    TWO_OUTCOMES,
    START_UP,
    HALTED,
    HELD_UP,
    STRETCHED,
    TOO_SHORT,
    INEXACT,
    LOST,
    FEW_OUTAGES,
    TAKEN_AS_GET,
    ONE_LOOP,
];
