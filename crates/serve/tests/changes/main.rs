//! Thousands of changes of the target set, by reloads and by hand, under load with every balancer: no request is lost,
//! memory is flat. Alone in its program, since the memory is the program's.

#[path = "../reload/load.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod load;
#[path = "../health/support.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod support;

use load::{file, servers, two_loops, under_load};
use std::sync::atomic::Ordering::SeqCst;
use support::{Origin, serve_whole};
use weir_serve::{SetTarget, TargetState, TargetWeight};
use weir_topology::manual::missing_balancers;

/// The number of rounds of a thousand changes.
const ROUNDS: usize = 4;

/// A change, of those that an operator makes.
enum Change {
    /// This number of the origins is served, from this one on, the first with this weight.
    File { from: usize, targets: usize, weight: u32 },
    /// A target, by its place among the origins.
    Hand(usize, SetTarget),
}

/// The n-th change: half by reload, half by hand; what is set by hand is taken back by the change after it.
fn change(n: usize) -> Change {
    let state = |state| SetTarget { state: Some(state), ..SetTarget::default() };
    match n % 6 {
        1 => Change::Hand(n / 6 % 2, state(TargetState::Drain)),
        2 => Change::Hand((n - 1) / 6 % 2, state(TargetState::File)),
        4 => Change::Hand(
            n / 6 % 2,
            SetTarget { weight: Some(TargetWeight::Number(3.5)), ..SetTarget::default() },
        ),
        5 => Change::Hand(
            (n - 1) / 6 % 2,
            SetTarget { weight: Some(TargetWeight::File), ..SetTarget::default() },
        ),
        _ => Change::File { from: 0, targets: 2 + n / 3 % 4, weight: 1 + (n / 12 % 3) as u32 },
    }
}

#[test]
fn thousands_of_changes_lose_no_request_and_keep_no_memory() {
    let origins: Vec<Origin> = ["a", "b", "c", "d", "e"].iter().map(|name| Origin::new(name)).collect();
    let policies = [
        "lb.least_conn([SERVERS], name = \"apps\")",
        "lb.random([SERVERS], name = \"apps\")",
        "lb.round_robin([SERVERS], name = \"apps\")",
        "lb.p2c([SERVERS], name = \"apps\", scope = \"process\")",
        "lb.peak_ewma([SERVERS], name = \"apps\")",
        "lb.zuul([SERVERS], name = \"apps\")",
        "lb.prequal([SERVERS], name = \"apps\")",
        "lb.maglev([SERVERS], name = \"apps\", key = key.client(), table_size = 251)",
        "lb.ring_hash([SERVERS], name = \"apps\", key = key.client())",
        "lb.first([SERVERS], name = \"apps\", pass_over = 0 * s)",
        "lb.least_conn([SERVERS], name = \"apps\", max_in_flight = 2, max_waiting = 100, eject = eject(consecutive = 5))",
    ];
    assert_eq!(missing_balancers(policies), ["lb.least_work"], "it is never served");
    let of = |policy: &str, from: usize, targets: usize, weight: u32| {
        let some: Vec<&Origin> = (0..targets).map(|i| &origins[(from + i) % origins.len()]).collect();
        let servers = servers(&some);
        let (first, others) = servers.split_once(", ").unwrap_or((&servers, ""));
        let weights = if policy.contains("prequal")
            || policy.contains("first")
            || policy.contains("p2c")
            || policy.contains("peak")
        {
            servers.clone()
        } else {
            format!("weight({weight}, {first}), {others}")
        };
        // However slow the machine is: no connection ends because it has asked often.
        let often = "name = \"front\", http = http(max_requests = 1000000000)";
        file(&policy.replace("SERVERS", &weights)).replace("name = \"front\"", often)
    };
    let x = serve_whole(&of(policies[0], 0, 3, 1), two_loops());
    let mut held = Vec::new();
    let (asked, wrong) = under_load(x.addr(), false, |step| {
        for n in 0..ROUNDS * 1000 {
            if n % 1000 == 0 {
                held.push(resident());
            }
            step.store(n as u32, SeqCst);
            let policy = policies[n / 100 % policies.len()];
            match change(n) {
                Change::File { from, targets, weight } => {
                    x.reload(&of(policy, from, targets, weight)).expect("it can be served");
                }
                Change::Hand(target, set) => {
                    let name = origins[target].addr.to_string();
                    x.remote().set_target("apps", &name, set).unwrap_or_else(|e| panic!("change {n}: {e}"));
                }
            }
        }
    });
    assert!(wrong.is_empty(), "{} of {asked}: {:?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    held.push(resident());
    // The first round finds its level. A generation that stayed would take tens of KiB for each of 1,500 reloads; what
    // stays for its `drain_timeout` are flags.
    assert!(held[ROUNDS] < held[1] + (4 << 10), "KiB after each thousand: {held:?}");
}

/// What this process has of memory that no file has, KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
