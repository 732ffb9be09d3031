//! A thousand changes of the target set, by reloads and by hand, under load with every balancer; and which keys move.

use super::support::{Origin, serve_whole};
use super::{Client, file, servers, two_loops, under_load};
use std::io::Write;
use weir_serve::{SetTarget, TargetState};

/// A change, of those that an operator makes.
enum Change {
    /// So many of the origins are served, from this one on, the first with this weight.
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
        4 => Change::Hand(n / 6 % 2, SetTarget { weight: Some(3.5), ..SetTarget::default() }),
        5 => Change::Hand((n - 1) / 6 % 2, state(TargetState::File)),
        _ => Change::File { from: 0, targets: 2 + n / 3 % 4, weight: 1 + (n / 12 % 3) as u32 },
    }
}

#[test]
fn a_thousand_changes_lose_no_request() {
    let origins: Vec<Origin> = ["a", "b", "c", "d", "e"].iter().map(|name| Origin::new(name)).collect();
    let policies = [
        "lb.least_conn([SERVERS], name = \"apps\")",
        "lb.random([SERVERS], name = \"apps\")",
        "lb.round_robin([SERVERS], name = \"apps\")",
        "lb.p2c([SERVERS], name = \"apps\", scope = \"process\")",
        "lb.peak_ewma([SERVERS], name = \"apps\")",
        "lb.prequal([SERVERS], name = \"apps\")",
        "lb.maglev([SERVERS], name = \"apps\", key = key.client(), table_size = 251)",
        "lb.ring_hash([SERVERS], name = \"apps\", key = key.client())",
        "lb.first([SERVERS], name = \"apps\", pass_over = 0 * s)",
        "lb.least_conn([SERVERS], name = \"apps\", max_in_flight = 2, max_waiting = 100, eject = eject(consecutive = 5))",
    ];
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
        file(&policy.replace("SERVERS", &weights))
    };
    let x = serve_whole(&of(policies[0], 0, 3, 1), two_loops());
    let (asked, wrong) = under_load(x.addr(), false, || {
        for n in 0..1000 {
            let policy = policies[n / 100];
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
    assert!(wrong.is_empty(), "{} of {asked}: {:?}", wrong.len(), &wrong[..wrong.len().min(5)]);
}

/// Who answers each of so many keys.
fn owners(client: &mut Client, keys: usize) -> Vec<String> {
    (0..keys)
        .map(|key| {
            let request = format!("GET / HTTP/1.1\r\nHost: x\r\nx-user: user-{key}\r\n\r\n");
            client.0.get_mut().write_all(request.as_bytes()).expect("it is sent");
            let (status, body) = client.answer().expect("an answer");
            assert_eq!(status, 200);
            body
        })
        .collect()
}

/// Keys that went to another, though theirs was there before and after and the other is not the one that has come.
fn moved(before: &[String], after: &[String], gone: &str, came: &str) -> usize {
    before.iter().zip(after).filter(|(b, a)| b != a && b.as_str() != gone && a.as_str() != came).count()
}

/// Where a target goes, only its keys move; where one comes, only to it. A ring keeps that exactly; of maglev's table few entries beside
/// change hands (Eisenbud and others 2016, 5.3), and none where a target only drains.
#[test]
fn keys_move_no_more_than_they_must() {
    let origins: Vec<Origin> = ["a", "b", "c", "d", "e", "f"].iter().map(|name| Origin::new(name)).collect();
    for (policy, beside) in [("lb.ring_hash", 0.0), ("lb.maglev", 0.03)] {
        let of = |which: &[usize]| {
            let some: Vec<&Origin> = which.iter().map(|i| &origins[*i]).collect();
            file(&format!("{policy}([{}], key = key.header(\"x-user\"), name = \"apps\")", servers(&some)))
        };
        let all = [0, 1, 2, 3, 4, 5];
        let x = serve_whole(&of(&all), two_loops());
        let mut client = Client::new(x.addr());
        let (keys, mut sum, mut steps) = (400, 0, 0);
        let before = owners(&mut client, keys);
        for (gone, name) in [(0, "a"), (3, "d"), (5, "f")] {
            let left: Vec<usize> = all.iter().copied().filter(|i| *i != gone).collect();
            x.reload(&of(&left)).expect("it can be served");
            let without = owners(&mut client, keys);
            assert!(without.iter().all(|owner| owner != name));
            x.reload(&of(&all)).expect("it can be served");
            assert_eq!(owners(&mut client, keys), before, "{policy}: it is back, and so are its keys");
            sum += moved(&before, &without, name, "");
            steps += 1;
            let drain = SetTarget { state: Some(TargetState::Drain), ..SetTarget::default() };
            let file = SetTarget { state: Some(TargetState::File), ..SetTarget::default() };
            x.remote().set_target("apps", &origins[gone].addr.to_string(), drain).expect("it is there");
            let drained = owners(&mut client, keys);
            assert!(drained.iter().all(|owner| owner != name), "{policy}: {name} is drained");
            assert_eq!(moved(&before, &drained, name, ""), 0, "{policy}: {name} is drained");
            x.remote().set_target("apps", &origins[gone].addr.to_string(), file).expect("it is there");
            assert_eq!(owners(&mut client, keys), before);
        }
        let most = (beside * (keys * steps) as f64) as usize;
        assert!(sum <= most, "{policy}: {sum} of {} keys moved beside those of who left", keys * steps);
    }
}
