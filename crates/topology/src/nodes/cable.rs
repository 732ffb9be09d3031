//! `cable(time, node, loss=0.0, resend=None)`: a link that takes `time` each way.

use super::{Description, Function, Group, NAME, examples, may, need};
use crate::language::call::{Call, Outcome};
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "cable",
    about: Description {
        group: Group::Model,
        meaning: "A link that takes time in each direction.",
        simulated: "a crossing takes `time`; a lost message is gone, or is sent again after `resend`, \
            then after twice that and so on, as TCP does",
        served: "a delay, in front of built-in servers, or with `--inject`",
        draws: "the time of each crossing where it is a distribution, and whether it is lost",
        example: examples::CABLE,
    },
    args: &[
        need("time", "a duration or distribution", "how long a crossing takes, each way"),
        need("node", "a node", "the next node"),
        may("loss", "0 to 1", "0.0", "the share of crossings that are lost"),
        may(
            "resend",
            "a duration or None",
            "None",
            "how long before a lost message is sent again; `None`: never",
        ),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (time, node) = (call.dist("time"), call.node_at("node"));
    let loss = call.share("loss").unwrap_or(0.0);
    let resend_ns = call.limit("resend");
    if resend_ns.is_some() && loss >= 1.0 {
        call.wrong_but(
            "`loss` of `cable` is 1: every crossing is lost, so a message never arrives, however often it \
                is sent",
            "use a `loss` below 1, or leave `resend` out",
        );
    } else if resend_ns.is_some() && loss >= 0.5 && !call.failed() {
        call.warn(
            format!(
                "with a `loss` of {loss} the mean time of a crossing is infinite: each wait before sending again is \
                 twice the last, so the means of this run will not settle"
            ),
            "use a `loss` below 0.5, and read quantiles, not means",
        );
    }
    let (Some(time), Some(node)) = (time, node) else { return Ok(None) };
    call.node(Spec::Cable { time, loss, resend_ns }, Edge::Node(node))
}
