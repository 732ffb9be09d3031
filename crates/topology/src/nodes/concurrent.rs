//! `concurrent(work, cores=1, contention=0.0, coherency=0.0, threads=None, on_cancel="stop",
//! min_threads=None, thread_cost=0*s)`: a server that shares its cores among the requests inside; a leaf.

use super::{Description, Function, Group, NAME, examples, may, need, queue};
use crate::language::call::{Call, Outcome};
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "concurrent",
    about: Description {
        group: Group::Model,
        meaning: "A server that shares its cores among all requests inside; a leaf.",
        simulated: "with n requests inside, each progresses at rate min(1, cores/m) / (1 + \
                contention·(m−1) + coherency·m·(m−1)), m = min(n, threads)",
        served: "refused, except in a `model` or a built-in server",
        draws: "the work of each request",
        example: examples::CONCURRENT,
    },
    args: &[
        need("work", "a duration or distribution", "how long a request takes alone"),
        may("cores", "above 0", "1", "how many requests progress at full speed"),
        may(
            "contention",
            "0 or more",
            "0.0",
            "how much each further request slows down all of them (Gunther's alpha)",
        ),
        may(
            "coherency",
            "0 or more",
            "0.0",
            "how much each pair of requests slows down all of them (Gunther's beta)",
        ),
        may(
            "threads",
            "1 or more, or None",
            "None",
            "how many are worked on at once; beyond that \
                they wait in order",
        ),
        may(
            "on_cancel",
            "\"stop\" | \"skip\" | \"finish\"",
            "\"stop\"",
            "what happens to a request whose client has gone, as in `queue`",
        ),
        may(
            "min_threads",
            "1 to `threads`, or None",
            "None",
            "how many threads there are when the process begins; None: all. A request that finds all busy makes one",
        ),
        may("thread_cost", "a duration", "0*s", "what making a thread adds to the work of that request"),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let work = call.dist("work");
    let cores = call.positive("cores").unwrap_or(1.0);
    let contention = call.not_negative("contention").unwrap_or(0.0);
    let coherency = call.not_negative("coherency").unwrap_or(0.0);
    let threads = if call.is_none("threads") { None } else { call.count("threads", 1, u32::MAX) };
    let min_threads = min_threads(call, threads);
    let thread_cost_ns = call.duration("thread_cost").unwrap_or_default();
    let on_cancel = queue::on_cancel(call);
    let Some(work) = work else { return Ok(None) };
    let spec = Spec::Concurrent {
        work,
        cores,
        contention,
        coherency,
        threads,
        min_threads,
        thread_cost_ns,
        on_cancel,
    };
    call.node(spec, Edge::None)
}

/// The threads of the beginning: some of those that there may be.
fn min_threads(call: &mut Call<'_, '_, '_, '_>, threads: Option<u32>) -> Option<u32> {
    if call.is_none("min_threads") {
        return None;
    }
    let min = call.count("min_threads", 1, u32::MAX)?;
    match threads {
        None => call.wrong_but(
            "`min_threads` needs `threads`, up to which further ones are made",
            "write `threads=200` as well",
        ),
        Some(all) if min > all => {
            call.wrong(format!("`min_threads` must be at most `threads`, {all}, not {min}"));
        }
        Some(_) => return Some(min),
    }
    None
}
