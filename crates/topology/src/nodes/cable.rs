//! `cable(time, node, loss=0.0, resend=None)`: a link that takes `time` each way.
//!
//! - In virtual time: a crossing takes `time`; lost, it is gone, or crosses after `resend`, then twice, four times that.
//! - In the proxy: a delay before built-in servers, or with `--inject`.
//! - Draws: the time of each crossing where it is no constant, and with `loss` whether it is lost.

use super::{Function, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Spec, To};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "cable",
    args: &[need("time"), need("node"), may("loss"), may("resend"), may("name")],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (time, node) = (call.dist("time"), call.node_at("node"));
    let loss = call.share("loss").unwrap_or(0.0);
    let resend_ns = call.limit("resend");
    if resend_ns.is_some() && loss >= 1.0 {
        call.wrong_but(
            "`loss` of `cable` is 1: every crossing is lost, and what is sent again for ever never arrives",
            "take a `loss` below 1, or leave `resend` out",
        );
    } else if resend_ns.is_some() && loss >= 0.5 && !call.failed() {
        call.warn(
            format!(
                "with a `loss` of {loss} the mean time of a crossing is infinite: each wait before sending again is \
                 twice the last, so the means of this run will not settle"
            ),
            "take a `loss` below 0.5, and read quantiles, not means",
        );
    }
    let (Some(time), Some(node)) = (time, node) else { return Ok(None) };
    call.node(Spec::Cable { time, loss, resend_ns }, To::Node(node))
}
