//! A reload changes thousands of targets at once. That costs one pass over them, and its result is that of the same
//! changes one after another.

use weir_policy::config::{Balance, LeastConnArgs, MaglevArgs, PeakEwmaArgs, RingHashArgs, Ties, ZuulArgs};
use weir_policy::health::{Health, HealthConfig};
use weir_policy::upstream::UpstreamConfig;
use weir_policy::{Ask, PickOutcome, TargetChange, TargetId, Upstream};
use weir_stats::Key;

/// All of `n` targets are replaced, by some with weights of 1 and 2.
fn replacements(n: u32, names: &[String]) -> Vec<TargetChange<'_>> {
    let gone = (0..n).map(|t| TargetChange::Remove(TargetId(t)));
    let add = |t: u32| TargetChange::Add {
        target: TargetId(n + t),
        weight: f64::from(1 + t % 2),
        name: &names[t as usize],
    };
    gone.chain((0..n).map(add)).collect()
}

fn names(n: u32) -> Vec<String> {
    (0..n).map(|t| format!("10.0.{}.{}:80", t / 256, t % 256)).collect()
}

/// The version of the health counts how often all targets were judged.
#[test]
fn any_number_of_changes_is_judged_once() {
    for n in [1, 10, 1000] {
        let mut health = Health::new(HealthConfig::default(), &vec![1.0; n as usize], 0, Key::new(1));
        let (names, before) = (names(n), health.version());
        health.change_targets(5, replacements(n, &names));
        assert_eq!((health.version() - before, health.count()), (1, (n, n)));
        health.set_weights((n..2 * n).map(|t| (TargetId(t), 3.0)));
        assert_eq!(health.version() - before, 2);
    }
}

#[test]
fn all_at_once_is_as_one_after_another() {
    let n = 50;
    let names = names(n);
    for balance in [
        Balance::Random,
        Balance::First,
        Balance::LeastConn(LeastConnArgs { ties: Ties::First, error_hold_ns: 0 }),
        Balance::PeakEwma(PeakEwmaArgs { decay_ns: 1_000_000, default_rtt_ns: 1_000 }),
        Balance::Zuul(ZuulArgs { load: "x-load".to_owned(), decay_ns: 1_000_000, max_load: None }),
        Balance::RingHash(RingHashArgs { bound: None }),
        Balance::Maglev(MaglevArgs { bound: None, table_size: 251 }),
    ] {
        let new = || {
            let weights = vec![1.0; n as usize];
            Upstream::new(&balance, UpstreamConfig::default(), &weights, &names, 0, Key::new(4))
        };
        let (mut together, mut singly) = (new(), new());
        let changes = replacements(n, &names);
        together.change_targets(7, &changes);
        changes.iter().for_each(|change| singly.change_targets(7, std::slice::from_ref(change)));
        for i in 0..500 {
            let ask = Ask { key: Some(i << 20), ..Ask::new(Key::new(9).with(i), 8 + i) };
            let (one, other) = (together.pick(&ask), singly.pick(&ask));
            assert_eq!(one, other, "{}, request {i}", balance.name());
            let PickOutcome::Target(ticket) = one else { panic!("nothing is left") };
            assert!(ticket.target.0 >= n, "a removed target");
            if i % 3 == 0 {
                let [one, other] = [&mut together, &mut singly].map(|lb| lb.done(20 + i, ticket, None, None));
                assert_eq!(one, other);
            }
        }
    }
}
