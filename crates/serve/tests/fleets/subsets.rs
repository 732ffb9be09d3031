//! Loops that prefer a subset of the members (`docs/spec/language.md#subsets`).

use crate::list::{self, Members, api};
use crate::load::{Client, two_loops};
use crate::support::{Origin, RunningBalancer, serve_whole, until};
use weir_serve::Options;

/// Two subsets of up to three.
const POLICY: &str = "lb.round_robin(apps, subset = subset.loops(min = 1, max = 3))";

/// The subset of each of these members.
fn subsets(x: &RunningBalancer, origins: &[&Origin]) -> Vec<Option<u32>> {
    let view = x.remote().view(false);
    let subset = |origin: &&Origin| {
        let name = origin.addr.to_string();
        view.pools[0].targets.iter().find(|target| target.name == name).and_then(|target| target.subset)
    };
    origins.iter().map(subset).collect()
}

fn total(x: &RunningBalancer, metric: &str) -> u64 {
    let text = list::scraped(x);
    let of = |line: &str| line.strip_prefix(metric)?.rsplit_once(' ')?.1.parse::<u64>().ok();
    text.lines().filter_map(of).sum()
}

#[test]
fn each_loop_has_connections_to_its_subset_alone() {
    let origins: Vec<Origin> = ["a", "b", "c", "d", "e"].iter().map(|name| Origin::new(name)).collect();
    let four: Vec<&Origin> = origins[..4].iter().collect();
    let file = Members::new("own");
    file.list(&four);
    let x = serve_whole(&api(&file, POLICY), two_loops());
    let view = x.remote().view(true);
    let subset = view.pools[0].subset.clone().expect("it has one");
    assert_eq!((subset.count, subset.least, subset.most), (2, 2, 2));
    assert_eq!(subset.loops, [0, 1]);
    let before = subsets(&x, &four);
    assert_eq!(before.iter().filter(|subset| **subset == Some(0)).count(), 2, "{before:?}");
    let bodies = x.bodies(60);
    for name in ["a", "b", "c", "d"] {
        assert!(bodies.iter().any(|body| body == name), "both loops got clients: {bodies:?}");
    }
    let connections: Vec<u32> = four.iter().map(|origin| origin.connections()).collect();
    assert_eq!(connections, [1; 4], "one loop has each");
    assert_eq!(total(&x, "weir_subset_borrowed_total"), 0);
    // A newcomer concerns one loop, and moves no other.
    file.list(&origins.iter().collect::<Vec<_>>());
    until("there are five", || list::targets(&x).len() == 5);
    assert_eq!(subsets(&x, &four), before);
    assert_eq!(total(&x, "weir_subsets{"), 2);
    assert_eq!(total(&x, "weir_subset_targets{"), 2 + 3, "the least and the most");
    assert_eq!(total(&x, "weir_subset_moves_total{"), 0);
    assert_eq!(x.bodies(40).len(), 40);
}

#[test]
fn a_loop_without_a_member_of_its_own_uses_the_next_subset() {
    let origins: Vec<Origin> = ["a", "b", "c", "d"].iter().map(|name| Origin::new(name)).collect();
    let all: Vec<&Origin> = origins.iter().collect();
    let file = Members::new("borrow");
    file.list(&all);
    let x = serve_whole(&api(&file, POLICY), two_loops());
    let before = subsets(&x, &all);
    let drained = |origin: &&Origin| subsets(&x, &[*origin]) == [Some(0)];
    let entry = |origin: &&Origin| match drained(origin) {
        true => format!("{{\"addr\": \"{}\", \"state\": \"drain\"}}", origin.addr),
        false => format!("\"{}\"", origin.addr),
    };
    let entries: Vec<String> = all.iter().map(entry).collect();
    file.write(&format!("[{}]", entries.join(", ")));
    until("two of them drain", || x.remote().view(false).fleets[0].draining == 2);
    let others: Vec<&str> = ["a", "b", "c", "d"]
        .into_iter()
        .zip(&before)
        .filter(|(_, subset)| **subset == Some(1))
        .map(|(name, _)| name)
        .collect();
    // A loop follows a moment after the owner.
    let is_borrowed = || {
        let bodies = x.bodies(10);
        let is_drained = bodies.iter().all(|body| others.contains(&body.as_str()));
        is_drained && total(&x, "weir_subset_borrowed_total") > 0
    };
    until("the first loop borrows", is_borrowed);
    assert_eq!(subsets(&x, &all), before, "health and weights change no subset");
}

/// The system spreads connections by a hash: of 16 on four loops it gives each four in one of 68 tries.
#[test]
fn each_subset_gets_as_many_requests_as_the_others() {
    let origins: Vec<Origin> = ["a", "b", "c", "d"].iter().map(|name| Origin::new(name)).collect();
    let file = Members::new("even");
    file.list(&origins.iter().collect::<Vec<_>>());
    let policy = "lb.round_robin(apps, subset = subset.loops(min = 1, max = 2))";
    // Two subsets of two; four loops, of which two have each.
    let x = serve_whole(&api(&file, policy), Options { loops: Some(4), ..two_loops() });
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..16 {
        clients.push(Client::new(x.addr()));
        // It counts once it is served.
        clients.last_mut().and_then(Client::get).expect("an answer");
    }
    let requests: Vec<u32> = origins.iter().map(Origin::requests).collect();
    assert_eq!(requests, [4; 4]);
}
