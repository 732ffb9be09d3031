//! `subset.loops(min=25, max=50)` and its like: which of its targets each event loop prefers.

use super::{Description, Function, Group, examples, may, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::SubsetValue;
use weir_policy::config::{InstanceArgs, LoopsArgs, RandomArgs, RendezvousArgs, Subset};

/// What all have in common.
const ABOUT: Description = Description {
    group: Group::Balance,
    meaning: "",
    simulated: "a loop picks a target outside of its subset only for a request for which none inside may be picked; then \
        from the next subset, or from all other targets. Health changes no subset",
    served: "the same, by the same objects; a connection to a target is made by the loops that have it",
    draws: "the order of the targets at the start and of newcomers",
    example: examples::SUBSETS,
};

const SIZE: super::Arg = need("size", "1 or more", "targets in a subset");
const INSTANCE: super::Arg = may("instance", "0 or more", "0", "the number of this instance among all");
const INSTANCES: super::Arg = may("instances", "1 or more", "1", "how many instances there are");

pub(crate) static FUNCTIONS: [Function; 5] = [
    Function {
        name: "subset.loops",
        about: Description {
            meaning: "Divides the targets among the event loops of a listener: Ringsteady on loops, as Zuul has it.",
            ..ABOUT
        },
        args: &[
            may(
                "min",
                "1 or more",
                "25",
                "the fewest targets of a subset, where another division allows that",
            ),
            may("max", "twice `min` or more", "50", "the most targets of a subset, likewise"),
        ],
        more: &[],
        make: loops,
    },
    Function {
        name: "subset.random",
        about: Description { meaning: "Draws targets for each event loop.", ..ABOUT },
        args: &[SIZE],
        more: &[],
        make: random,
    },
    Function {
        name: "subset.rendezvous",
        about: Description {
            meaning: "Gives each event loop the targets of the highest hashes, as gRPC's rendezvous subsetting (A68).",
            draws: "the seed, where none is given",
            ..ABOUT
        },
        args: &[SIZE, may("seed", "0 or more, or None", "None", "what hashes begin with; None: it is drawn")],
        more: &[],
        make: rendezvous,
    },
    Function {
        name: "subset.deterministic",
        about: Description {
            meaning: "Deals shuffled targets out to the event loops of all instances, as in the SRE book.",
            ..ABOUT
        },
        args: &[SIZE, INSTANCE, INSTANCES],
        more: &[],
        make: deterministic,
    },
    Function {
        name: "subset.ringsteady",
        about: Description {
            meaning: "Gives each event loop of all instances the next targets on a ring of bit-reversed numbers (Ward, \
                Wankadia, Guliani 2022).",
            draws: "nothing",
            ..ABOUT
        },
        args: &[SIZE, INSTANCE, INSTANCES],
        more: &[],
        make: ringsteady,
    },
];

fn loops<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let min = call.count("min", 1, u32::MAX / 2).unwrap_or(25);
    let max = call.count("max", 1, u32::MAX).unwrap_or(50);
    if max / 2 < min && !call.failed() {
        call.wrong_but(
            format!("`max` of `subset.loops` must be at least twice `min`, {min}, not {max}: halves of a subset that is too \
                large must be large enough"),
            format!("write `max={}` or more, or a smaller `min`", min * 2),
        );
    }
    made(call, Subset::Loops(LoopsArgs { min, max }))
}

fn random<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let size = size(call);
    made(call, Subset::Random(RandomArgs { size }))
}

fn rendezvous<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let size = size(call);
    let seed = if call.is_none("seed") { None } else { call.whole("seed", 0, i64::MAX as u64) };
    made(call, Subset::Rendezvous(RendezvousArgs { size, seed }))
}

fn deterministic<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let args = instance(call);
    made(call, Subset::Deterministic(args))
}

fn ringsteady<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let args = instance(call);
    made(call, Subset::Ringsteady(args))
}

fn size(call: &mut Call<'_, '_, '_, '_>) -> u32 {
    call.count("size", 1, u32::MAX).unwrap_or(1)
}

fn instance(call: &mut Call<'_, '_, '_, '_>) -> InstanceArgs {
    let size = size(call);
    let instances = call.count("instances", 1, u32::MAX).unwrap_or(1);
    let instance = call.count("instance", 0, u32::MAX).unwrap_or(0);
    if instance >= instances && !call.failed() {
        call.wrong_but(
            format!("`instance` of `{}` must be below `instances`, {instances}, not {instance}", call.name()),
            "instances are numbered from 0: give each its own number, as in `instance=param(\"instance\", 0)`",
        );
    }
    InstanceArgs { size, instance, instances }
}

fn made<'v>(call: &mut Call<'v, '_, '_, '_>, subset: Subset) -> Outcome<'v> {
    if call.failed() {
        return Ok(None);
    }
    Ok(Some(call.heap().alloc(SubsetValue(subset))))
}
