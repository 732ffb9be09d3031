//! `lb.maglev(targets, key=..., table_size=65537, bound=None)`: the target of the request's key in Maglev's table.

use super::common::{COMMON, balancer, hashed, targets};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, may, need};
use weir_policy::config::{Balance, MaglevArgs};
use weir_policy::maglev::{GREATEST_TABLE, TABLE_SIZE, is_table_size};

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.maglev",
    about: Description {
        group: Group::Balance,
        meaning: "Sends equal keys to one target, found in Maglev's table: more even than a ring.",
        simulated: "the target of the request's key, unless that target is excluded or at its `bound`",
        served: "the same; a request without the key is sent at random",
        draws: "nothing where there is a key",
        example: examples::HASHED,
    },
    args: &[
        need("targets", "a list of nodes", "the targets to pick from"),
        may("key", "key.header(...) or the like", "key.header(\"x-user\")", "the key to hash"),
        may("table_size", "a prime", "65537", "slots of the table, at least one for each target"),
        may(
            "bound",
            "1 or more, or None",
            "None",
            "a target holds at most this many times the mean \
                load; `1.25`: a quarter more",
        ),
    ],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (key, bound) = hashed(call);
    let targets = targets(call);
    let table_size = table_size(call, targets.as_ref().map_or(1, Vec::len));
    balancer(call, targets, Balance::Maglev(MaglevArgs { table_size, bound }), key)
}

/// A prime with a slot for each target at least.
fn table_size(call: &mut Call<'_, '_, '_, '_>, targets: usize) -> u32 {
    let size = call.count("table_size", 1, GREATEST_TABLE);
    if size.is_none() && call.failed() {
        return TABLE_SIZE;
    }
    let size = size.unwrap_or(TABLE_SIZE);
    let least = u32::try_from(targets).unwrap_or(u32::MAX).max(size);
    let help = match (least..=GREATEST_TABLE).find(|n| is_table_size(*n)) {
        Some(next) => format!("the next prime is {next}"),
        None => format!("a table has at most {GREATEST_TABLE} slots: put the targets into groups"),
    };
    let what = call.describe("table_size");
    if !is_table_size(size) {
        call.wrong_but(
            format!("{what} must be a prime, not {size}: otherwise keys miss some of the slots"),
            help,
        );
    } else if size < least {
        call.wrong_but(
            format!("{what} is {size}, but there are {targets} targets, and each needs a slot"),
            help,
        );
    }
    size
}
