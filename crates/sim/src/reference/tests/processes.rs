//! Members that are processes, and nodes that fail by changes: both engines in any topology, and exact cases by hand.

use super::engine::{agree, seeds};
use super::fleets::file;
use super::random::Draws;
use super::{Case, run_reference};
use weir_policy::Kind;

/// A file of fleets that change, whose members boot, drain and are killed, and where nodes fail.
fn alive(seed: u64) -> String {
    let mut d = Draws::new(seed.wrapping_add(1 << 43));
    let mut text = file(seed);
    for fleet in ["f", "g"] {
        if d.number(4) == 0 {
            continue;
        }
        let boot = d.choose(&["0 * s", "30 * ms", "e(20)"]);
        let drain = d.choose(&["None", "0 * s", "3 * ms", "10 * ms"]);
        let (on_term, grace) =
            (d.choose(&["drain", "drain", "exit"]), d.choose(&["0 * s", "4 * ms", "40 * ms"]));
        let life =
            format!("life = life(boot = {boot}, drain = {drain}, on_term = \"{on_term}\", grace = {grace})");
        text = text.replacen(&format!(", {fleet}_member"), &format!(", {fleet}_member, {life}"), 1);
    }
    let mut more = Vec::new();
    for _ in 0..1 + d.number(3) {
        more.push(act(&mut d));
    }
    let (before, _) = text.rsplit_once("])").expect("it has changes");
    format!("{before}, {}])\n", more.join(", "))
}

/// One more change.
fn act(d: &mut Draws) -> String {
    let at = 20 * d.number(6);
    let (k, every) = (1 + d.number(3), 5 * d.number(4));
    let wait = d.choose(&["None", "\"running\"", "\"eligible\""]);
    let of = d.choose(&["f", "g"]);
    match d.number(7) {
        5 | 6 => {
            let nodes = d.choose(&["f", "g", "[x, f]", "x"]);
            let what = d.choose(&[
                "state = \"up\"",
                "state = \"drain\"",
                "state = \"eject\"",
                "state = \"out\"",
                "state = \"out\"",
                "state = \"file\"",
                "weight = 0",
                "weight = 2.5",
            ]);
            let (lasts, which) = (d.choose(&["None", "9 * ms", "40 * ms"]), d.choose(&["oldest", "random"]));
            let k = d.choose(&["None", "1"]);
            format!(
                "change.set({nodes}, at = {at} * ms, lasts = {lasts}, k = {k}, which = \"{which}\", {what})"
            )
        }
        0 | 1 => {
            let (down, unlist) = (d.choose(&["0 * s", "7 * ms"]), d.choose(&["True", "True", "False"]));
            let which = d.choose(&["oldest", "random"]);
            format!(
                "change.rolling({of}, at = {at} * ms, batch = {k}, every = {every} * ms, first = \"in_place\", which = \"{which}\", down = {down}, unlist = {unlist}, wait = {wait})"
            )
        }
        2 => {
            let first = d.choose(&["join", "leave"]);
            format!(
                "change.rolling({of}, at = {at} * ms, batch = {k}, every = {every} * ms, first = \"{first}\", wait = {wait})"
            )
        }
        _ => {
            let nodes = d.choose(&["f", "g", "[x, f]", "b0"]);
            let mode = d.choose(&["crash", "crash", "refuse", "blackhole", "slow"]);
            let lasts = d.choose(&["None", "9 * ms", "40 * ms"]);
            let (which, checks) = (d.choose(&["oldest", "newest", "random"]), d.choose(&["fail", "pass"]));
            format!(
                "change.down({nodes}, at = {at} * ms, lasts = {lasts}, which = \"{which}\", mode = \"{mode}\", checks = \"{checks}\")"
            )
        }
    }
}

#[test]
fn engines_agree_while_processes_begin_and_end() {
    for seed in seeds(300) {
        let source = alive(seed);
        let Some(plan) = super::plan_if_valid(&source) else { continue };
        let (_, violations) = run_reference(&plan, false, None)
            .unwrap_or_else(|cut| panic!("seed {seed} does not end ({cut:?}):\n{source}"));
        assert_eq!(violations, Vec::<String>::new(), "seed {seed}:\n{source}");
        agree(&plan, &format!("seed {seed}:\n{source}"));
    }
}

/// The operator's word: a target that is drained, ejected, out or has weight 0 gets no new request, until that is taken back; a
/// member that comes again is still out.
#[test]
fn the_operator_sets_targets() {
    let root = "a = delay(10 * ms, server(\"a\"))\nroot = lb.random([a], panic = 0)";
    // A node that takes connections, and one that fails, are between the balancer and the target.
    let far =
        "a = delay(10 * ms, server(\"a\", connect = 0 * s))\nroot = lb.random([weight(2, a)], panic = 0)";
    let set = |what: &str| {
        format!(
            ", events = [change.down(a, at = 900 * ms, lasts = 1 * ms), \
             change.set(a, at = 50 * ms, lasts = 100 * ms, {what})]"
        )
    };
    for what in ["state = \"drain\"", "state = \"eject\"", "state = \"out\"", "weight = 0"] {
        for root in [root, far] {
            let case = Case::with(&[45, 50, 149, 150], root, &set(what));
            case.gives(&["10 ok", "0 no_target", "0 no_target", "10 ok"]);
        }
    }
    let twice = ", events = [change.set(a, at = 50 * ms, lasts = 50 * ms, state = \"drain\"), \
                 change.set(a, at = 80 * ms, state = \"eject\"), change.set(a, at = 200 * ms, state = \"file\")]";
    let case = Case::with(&[45, 60, 120, 199, 200], root, twice);
    case.gives(&["10 ok", "0 no_target", "0 no_target", "0 no_target", "10 ok"]);
    let fleet = "a = fleet(1, lambda: delay(10 * ms, server(\"a\")))\nroot = lb.random(a, panic = 0)";
    let again = ", events = [change.set(a, at = 20 * ms, lasts = 180 * ms, state = \"out\"), \
                 change.unlist(a, at = 40 * ms, lasts = 40 * ms), change.unlist(a, at = 300 * ms, lasts = 9 * ms)]";
    let case = Case::with(&[0, 30, 60, 100, 199, 200, 301, 310], fleet, again);
    let (ok, none) = ("10 ok", "0 no_target");
    case.gives(&[ok, none, none, none, none, ok, none, ok]);
}

/// `up` overrides checks: a server whose checks fail gets requests until the operator's word is over.
#[test]
fn a_target_that_is_set_up_needs_no_check() {
    let root = "check = health.http(\"/\", interval = 10 * ms, jitter = 0, fall = 1, rise = 1)\n\
                a = delay(1 * ms, server(\"a\"))\n\
                root = lb.random([a], health = check, panic = 0)";
    let events = ", events = [change.down(a, at = 5 * ms), change.set(a, at = 50 * ms, lasts = 50 * ms, state = \"up\")]";
    let case = Case::with(&[0, 40, 60, 120], root, events);
    case.gives(&["1 ok", "0 no_target", "0 connect_failed", "0 no_target"]);
}

/// A process that has become empty stops, boots and is listed again.
#[test]
fn a_member_is_deployed_in_place() {
    let source = "a = fleet(1, lambda: delay(10 * ms, server(\"a\")), life = life(boot = 100 * ms))\nroot = lb.random(a)";
    let deploy = ", events = [change.rolling(a, at = 50 * ms, first = \"in_place\", down = 20 * ms)]";
    // It is empty at 55 ms, boots from 75 to 175.
    Case::with(&[0, 45, 50, 100, 175, 176], source, deploy).gives(&[
        "10 ok",
        "10 ok",
        "0 no_target",
        "0 no_target",
        "0 no_target",
        "10 ok",
    ]);
}

/// SIGTERM comes 10 ms after the change; what is inside goes on until it is killed, or fails at once.
#[test]
fn a_process_is_killed_after_its_grace() {
    let case = |on_term: &str| {
        let life = format!("life(drain = 10 * ms, on_term = \"{on_term}\", grace = 20 * ms)");
        let source = format!(
            "a = fleet(1, lambda: delay(100 * ms, server(\"a\")), life = {life})\nroot = lb.random(a)"
        );
        Case::with(&[0, 40], &source, ", events = [change.leave(a, at = 50 * ms)]")
    };
    case("drain").gives(&["80 reset", "40 reset"]);
    case("exit").gives(&["60 reset", "20 reset"]);
}

/// A balancer that is not told sends requests on, which find no process.
#[test]
fn one_that_stays_listed_refuses_connections() {
    let source = "a = fleet(1, lambda: delay(10 * ms, server(\"a\")), life = life(drain = 0 * s))\nroot = lb.random(a)";
    let deploy =
        ", events = [change.rolling(a, at = 50 * ms, first = \"in_place\", down = 30 * ms, unlist = False)]";
    Case::with(&[45, 52, 85, 86], source, deploy).gives(&[
        "10 ok",
        "0 connect_failed",
        "0 connect_failed",
        "10 ok",
    ]);
}

/// The old go when all newcomers of their batch have booted.
#[test]
fn newcomers_boot_before_the_old_leave() {
    let source = "a = fleet(1, lambda: delay(10 * ms, server(\"a\")), life = life(boot = 100 * ms))\nroot = lb.random(a)";
    let rolling = |first: &str| format!(", events = [change.rolling(a, at = 50 * ms, first = \"{first}\")]");
    Case::with(&[60, 149, 150], source, &rolling("join")).gives(&["10 ok"; 3]);
    Case::with(&[60, 149, 150], source, &rolling("leave")).gives(&["0 no_target", "0 no_target", "10 ok"]);
}

/// Newcomers that boot in no time replace the old at once: the answer of a cold one takes twice as long.
#[test]
fn newcomers_that_run_at_once_replace_the_old() {
    let source = "
a = fleet(1, lambda: warmup(delay(10 * ms, server(\"a\")), 2.0, requests = 1, at_start = \"warm\"), life = life())
root = lb.first(a)";
    for first in ["join", "leave"] {
        let rolling = format!(", events = [change.rolling(a, at = 50 * ms, first = \"{first}\")]");
        Case::with(&[0, 60, 149], source, &rolling).gives(&["10 ok", "20 ok", "10 ok"]);
    }
}

/// With `wait` one of two always runs; without, both boot at once.
#[test]
fn a_batch_waits_until_the_one_before_it_runs() {
    let source = "a = fleet(2, lambda: delay(1 * ms, server(\"a\")), life = life(boot = 100 * ms))\nroot = lb.random(a)";
    let rolling = |more: &str| {
        format!(", events = [change.rolling(a, at = 50 * ms, every = 10 * ms, first = \"in_place\"{more})]")
    };
    let at: Vec<u64> = (0..40).map(|k| 10 * k).collect();
    let failed = |case: Case| case.run().answers.iter().filter(|answer| *answer != "1 ok").count();
    assert_eq!(failed(Case::with(&at, source, &rolling(", wait = \"running\""))), 0);
    assert_eq!(failed(Case::with(&at, source, &rolling(", wait = \"eligible\""))), 0);
    // From 60 to 150 ms nothing runs.
    assert_eq!(failed(Case::with(&at, source, &rolling(""))), 9);
    // Only one is replaced.
    assert_eq!(failed(Case::with(&at, source, &rolling(", count = 1"))), 0);
}

/// What a process has alone begins anew with it; what others reach too stays warm: the work of both is behind the first
/// warm-up.
#[test]
fn only_what_belongs_to_a_process_begins_anew() {
    let source = "
def cold(node):
    return warmup(node, 2.0, requests = 1, at_start = \"warm\")

shared = cold(delay(10 * ms, server(\"x\")))
a = fleet(2, lambda: cold(delay(1 * ms, shared)))
root = lb.first(a)";
    for (act, answers) in [
        (
            "change.rolling(a, at = 50 * ms, first = \"in_place\", count = 1, unlist = False)",
            ["11 ok", "22 ok", "11 ok"],
        ),
        ("change.down(a, at = 50 * ms, lasts = 1 * ms)", ["11 ok", "22 ok", "11 ok"]),
        ("change.down(a, at = 50 * ms, lasts = 1 * ms, mode = \"refuse\")", ["11 ok", "11 ok", "11 ok"]),
    ] {
        Case::with(&[0, 60, 80], source, &format!(", events = [{act}]")).gives(&answers);
    }
}

/// A node fails from an instant to another: at the first, before arrivals; at the second it is up for them.
#[test]
fn nodes_fail_between_two_instants() {
    let source = "x = delay(10 * ms, server(\"x\"))\ny = delay(20 * ms, server(\"y\"))\nroot = lb.first([x, y], pass_over = 0 * s)";
    let case = |down: &str| {
        Case::with(
            &[45, 50, 69, 70],
            source,
            &format!(", events = [change.down({down}, at = 50 * ms, lasts = 20 * ms)]"),
        )
    };
    case("x").gives(&["5 reset", "0 connect_failed", "0 connect_failed", "10 ok"]);
    case("x, mode = \"refuse\"").gives(&["10 ok", "0 refused", "0 refused", "10 ok"]);
    case("x, mode = \"slow\", slow = 3.0").gives(&["10 ok", "30 ok", "30 ok", "10 ok"]);
    case("[x, y], k = 1, which = \"newest\"").gives(&["10 ok"; 4]);
    case("root").gives(&["5 reset", "0 connect_failed", "0 connect_failed", "10 ok"]);
    assert_eq!(case("x").run().errors("faulty", Kind::Reset), 1);
}
