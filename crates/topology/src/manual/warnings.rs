//! What the warnings about a file mean: those that functions give about their own arguments, and those about the whole
//! plan.

use weir_plan::warn::{PAGES, WarningPage};

/// All warnings and hints that `weir check` may print.
pub fn warnings() -> impl Iterator<Item = &'static WarningPage> {
    OF_CALLS.iter().chain(PAGES)
}

const fn page(says: &'static str, means: &'static str) -> WarningPage {
    WarningPage { says, means }
}

const OF_CALLS: &[WarningPage] = &[
    page(
        "`rules[{}]` of `route` never applies: `rules[{}]` {}, and the first rule that matches applies",
        "The rules of a `route` are asked in order. An earlier one takes all that this one would match: put this one before it, \
         or leave it out.",
    ),
    page(
        "`rules[{}]` of `route` applies to requests without a path alone, such as `OPTIONS *`: `rules[{}]` matches all others \
         that it matches, and the first rule that matches applies",
        "The rules of a `route` are asked in order. An earlier one, such as `path=\"/*\"`, takes every request that has a path: \
         put this one before it, or leave it out.",
    ),
    page(
        "`budget` of `retry` has no effect: with one attempt nothing is retried",
        "`retry(1, ...)` makes one attempt and no further one, so there is nothing to charge to the budget.",
    ),
    page(
        "`backoff_max` of `retry` has no effect: without `backoff` attempts follow at once",
        "`backoff_max` bounds the waits that `backoff` begins. Set `backoff` too.",
    ),
    page(
        "`base` of `eject` has no effect: every ejection lasts `max`, {}, which is shorter than {}",
        "An ejection lasts `base` times its number, and `max` at most. Use a longer `max`.",
    ),
    page(
        "`slow` of `{}` has no effect: it is read in mode \"slow\" only",
        "In other modes a node that is down does no work, so there is nothing to slow. Write `mode=\"slow\"`.",
    ),
    page(
        "{} has no effect: nothing waits where targets are never full",
        "Requests wait at a balancer only if a target can be full. Say when it is: `max_in_flight=10`.",
    ),
    page(
        "{} is {} percent, less than one in a hundred: percentages go from 0 to 100",
        "The argument is a percentage and not a share: a tenth is 10, not 0.1.",
    ),
    page(
        "a check may take {}, longer than the interval of {}, and the next begins after its end: a target that does not answer is \
         checked only every {}",
        "A health check that gets no answer ends at its `timeout`. If that is longer than `interval`, checks of such a target \
         are rarer than the file says.",
    ),
    page(
        "`response_timeout`, `body_timeout` and `send_proxy` have no effect on this `server`: without `addr` weir answers itself",
        "Without `addr` weir answers in the server's place, after the time that the model takes. Limit that by `timeout`, give the \
         server an address, or leave them out.",
    ),
    page(
        "this `server` has the HTTPS port (443), but no TLS",
        "Servers at port 443 expect TLS, and weir would speak plain HTTP. Write `tls=tls.client()`.",
    ),
    page(
        "this `budget` allows no further attempt: requests earn nothing, and there is no reserve",
        "A budget gets `ratio` of each request and `min_per_s` each second. With both 0 it is always empty.",
    ),
    page(
        "this `rewrite` changes nothing: it has no arguments but its node",
        "Say what is rewritten: `path=(\"/api/\", \"/\")`, or `set={\"x-via\": \"weir\"}`.",
    ),
    page(
        "with a `loss` of {} the mean time of a crossing is infinite: each wait before sending again is twice the last, so the \
         means of this run will not settle",
        "A cable that loses half of what crosses it waits longer and longer, as TCP does. Use a `loss` below 0.5, and read \
         quantiles.",
    ),
    page(
        "the trace {} has {} arrivals, fewer than the {} requests of the scenario: the run ends with them",
        "A trace is not repeated. Ask for as many requests as it has, or leave `requests` out and give a `duration`.",
    ),
];
