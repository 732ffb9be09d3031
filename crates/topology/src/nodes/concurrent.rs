//! `concurrent(work, cores=1, contention=0.0, coherency=0.0, threads=None, on_cancel="stop")`: a server that shares its
//! cores among the requests inside; a leaf.
//!
//! - In virtual time: with n inside, each progresses at the same rate, which falls with n.
//! - In the proxy: never served outside a model or a built-in server.
//! - Draws: the work of each request.

use super::{Function, may, need, queue};
use crate::call::{Call, Outcome};
use crate::plan::{Spec, To};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "concurrent",
    args: &[
        need("work"),
        may("cores"),
        may("contention"),
        may("coherency"),
        may("threads"),
        may("on_cancel"),
        may("name"),
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
    let on_cancel = queue::on_cancel(call);
    let Some(work) = work else { return Ok(None) };
    call.node(Spec::Concurrent { work, cores, contention, coherency, threads, on_cancel }, To::None)
}
