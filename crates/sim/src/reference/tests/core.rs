//! Random topologies with everything that can surround balancers, and with hedges, limits, routes and shares: every
//! law holds.

use super::random::{Draws, agree, node, traffic};
use super::{plan, run_reference};

/// Files that are tried, each with statistics by site and by member.
const FILES: u64 = 500;

/// What may surround a balancer.
pub(super) fn around(d: &mut Draws, spare: &str) -> String {
    let k = 1 + d.number(3);
    let limits = d.choose(&[
        "",
        ", max_in_flight = 1",
        ", max_in_flight = 2, max_waiting = 1",
        ", max_in_flight = 1, wait_timeout = 4 * ms",
        ", max_connections = 3, max_waiting = 0",
    ]);
    let health = d.choose(&[
        "",
        ", health = health.http(\"/\", interval = 20 * ms, timeout = 5 * ms, fall = 1, rise = 1)",
        ", health = health.tcp(interval = 30 * ms, timeout = 9 * ms, initial = \"checked\", cost = 3 * ms)",
        ", eject = eject(consecutive = 2, base = 10 * ms, max = 40 * ms)",
        ", eject = outlier(consecutive_5xx = 2, interval = 20 * ms, base_ejection_time = 20 * ms, max_ejection_percent = 100)",
    ]);
    let empty = d.choose(&["", ", on_empty = \"any\"", ", panic = 0.0", ""]);
    let empty = if empty.is_empty() && k == 1 { format!(", on_empty = {spare}") } else { empty.to_owned() };
    let more = d.choose(&[
        "",
        ", sticky = \"c\"",
        ", slow_start = ",
        ", pass_over = 3 * ms",
        ", scope = \"process\"",
        ", subset = subset.loops(min = 1, max = 2)",
        ", scope = lagged(7 * ms)",
        ", scope = lagged(20 * ms), subset = subset.loops(min = 1, max = 2)",
        ", scope = \"process\", subset = subset.loops(min = 1, max = 2)",
        ", subset = subset.random(1)",
        ", subset = subset.rendezvous(2, seed = 3)",
        ", subset = subset.ringsteady(1)",
        ", subset = subset.deterministic(2)",
    ]);
    let more = if more == ", slow_start = " { format!("{more}{}", slow_start(d)) } else { more.to_owned() };
    format!("{limits}{health}{empty}{more}")
}

/// A slow start; the windows of HAProxy's are whole seconds, and scenarios last about as long.
fn slow_start(d: &mut Draws) -> &'static str {
    d.choose(&[
        "slow_start(30 * ms)",
        "slow_start(30 * ms, aggression = 2, limits = True)",
        "slow_start(300 * ms, limits = True)",
        "slow_start(1 * s, like = \"haproxy\")",
        "slow_start(60 * ms, like = \"nginx\")",
        "slow_start(3 * s, like = \"envoy\", min_weight = 0.05)",
    ])
}

/// The same without a slow start, which does nothing at policies that hash.
pub(super) fn unramped(around: &str) -> String {
    let Some((before, after)) = around.split_once(", slow_start = slow_start(") else {
        return around.to_owned();
    };
    let (_, after) = after.split_once(')').expect("it ends");
    format!("{before}{after}")
}

/// The same for policies that take no subset, and share no counts.
pub(super) fn undivided(around: &str) -> &str {
    let around = around.split_once(", subset").map_or(around, |(before, _)| before);
    around.split_once(", scope = lagged").map_or(around, |(before, _)| before)
}

/// The same for policies that share no counts.
pub(super) fn uncounted(around: &str) -> &str {
    if around.contains("scope = ") { undivided(around) } else { around }
}

/// What may surround a balancer of that policy.
pub(super) fn fitting<'a>(policy: &str, around: &'a str) -> &'a str {
    match policy.strip_prefix("lb.").unwrap_or(policy) {
        "first" | "ring_hash" | "maglev" => undivided(around),
        "least_conn" | "p2c" | "zuul" => around,
        _ => uncounted(around),
    }
}

/// Arguments of `lb.zuul`.
fn loads(d: &mut Draws) -> &'static str {
    d.choose(&["", ", decay = 40 * ms", ", max_load = 0.4", ", decay = 90 * ms, max_load = 0.2"])
}

/// `lb.zuul` over two servers that report their load, and another node; `size`: slots and work, and the cores.
pub(super) fn zuul(d: &mut Draws, a: &str, b: &str, size: (u64, &str), cancel: &str) -> String {
    let (k, cores) = size;
    let slots = format!("queue({a}, {k}, on_cancel = \"{cancel}\")");
    let shared = format!("concurrent(e({k}){cores}, on_cancel = \"{cancel}\")");
    format!("lb.zuul([{slots}, {shared}, {b}]{})", loads(d))
}

fn core_node(d: &mut Draws, a: &str, b: &str) -> String {
    let (k, around) = (1 + d.number(4), around(d, "server(\"spare\")"));
    match d.number(16) {
        0 => format!("hedge({k} * ms, {a})"),
        1 => format!(
            "hedge({k} * ms, {a}, attempts = 3, budget = budget(ratio = 0.5, min_per_s = 1, window = 1 * s))"
        ),
        2 => format!("limit.rate({a}, {k}00, burst = {k})"),
        3 => format!("limit.rate({a}, 50, burst = 2, key = key.client())"),
        4 => format!("split([({k}, {a}), (1, {b})])"),
        5 => format!("split([({k}, {a}), (1, {b})], key = key.header(\"x-user\"))"),
        6 => format!("route([(when(path = \"/a*\"), {a}), (when(method = \"POST\"), {b})], otherwise = {a})"),
        7 => format!("route([(when(path = \"/a*\"), {a}), (when(method = \"GET\"), {b})])"),
        8 => format!(
            "retry(2, {a}, on = [\"refused\", \"reset\", \"timeout\"], budget = budget(ratio = 0.2, min_per_s = 5, window = 1 * s))"
        ),
        9 => {
            let policy = d.choose(&[
                "lb.least_conn",
                "lb.p2c",
                "lb.random",
                "lb.round_robin",
                "lb.first",
                "lb.peak_ewma",
                "lb.zuul",
                "lb.zuul",
            ]);
            let around = fitting(policy, &around);
            let around =
                if policy == "lb.zuul" { format!("{around}{}", loads(d)) } else { around.to_owned() };
            format!("{policy}([{a}, {b}, cable(1 * ms, {a})]{around})")
        }
        10 => {
            let policy = d.choose(&["lb.ring_hash", "lb.maglev"]);
            let bound = d.choose(&["", ", bound = 1.25"]);
            let around = fitting(policy, &around);
            unramped(&format!("{policy}([{a}, {b}], key = key.header(\"x-user\"){bound}{around})"))
        }
        11 => {
            let cost = d.choose(&["", "", ", probe_cost = 1 * ms", ", probe_cost = 3 * ms, age = 20 * ms"]);
            let far = d.choose(&[
                "{}",
                "cable(2 * ms, {})",
                "cable(e(2), {}, loss = 0.1, resend = 9 * ms)",
                "cable(e(3), {}, loss = 0.1)",
            ]);
            let around = uncounted(&around);
            format!("lb.prequal([{a}, {}, {a}]{cost}{around})", far.replace("{}", b))
        }
        12 => d.choose(&["respond(503)", "respond(404)", "redirect(\"/\")"]).to_owned(),
        13 => format!("rewrite({a}, path = (\"/a/\", \"/c/{k}\"), set = {{\"x-user\": \"u{k}{{uri}}\"}})"),
        14 => format!("buffered({a}, {k} * KiB)"),
        _ => format!(
            "lb.least_conn(pool({k}, lambda: queue(delay(e(4), server()))), error_hold = {k} * ms{around})"
        ),
    }
}

pub(super) fn random_file(seed: u64) -> String {
    let mut d = Draws::new(seed);
    let mut text = String::from(
        "def e(m):\n    return dist.rounded(dist.exponential(m * ms), 1 * ms)\n\nn0 = delay(e(2), server(\"a\"))\n",
    );
    let (nodes, mut retries) = (4 + d.number(9), 3);
    for i in 1..=nodes {
        let mut child = |far: u64| format!("n{}", i - 1 - d.number(far).min(i - 1));
        let (a, b) = (child(3), child(4));
        let made =
            if d.number(2) == 0 { node(&mut d, &a, &b, &mut retries) } else { core_node(&mut d, &a, &b) };
        text += &format!("n{i} = {made}\n");
    }
    let (arrivals, more) = traffic(&mut d);
    let mix = "[(3, request(path = \"/a/b\", key = keys.zipf(9, 1.0))), (1, request(method = \"POST\", headers = {\"x-user\": \"u\"})), \
               (1, request(path = \"/c\"))]";
    let arrivals = if d.number(3) == 0 { arrivals } else { format!("traffic.mix({arrivals}, {mix})") };
    let loops = 1 + d.number(4);
    text + &format!(
        "root = listen(\":0\", n{nodes}, loops = {loops})\nscenario(\"s\", root, {arrivals}, {more})\n"
    )
}

/// However balancers are surrounded and wherever limits strike, the laws hold, the run ends, members add up to sites,
/// and threads change no byte.
/// A new policy is compared as well.
#[test]
fn random_files_have_every_balancer() {
    let text: String = (0..FILES).map(random_file).collect();
    let calls: Vec<String> = text.split("lb.").skip(1).map(|rest| format!("lb.{rest}")).collect();
    let missing = weir_topology::manual::missing_balancers(calls.iter().map(String::as_str));
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn any_core_can_be_cut_anywhere() {
    let mut cuts = 0;
    for seed in 0..FILES {
        let source = random_file(seed);
        let plan = plan(&source);
        for members in [false, true] {
            let (seen, violations) = run_reference(&plan, members, None)
                .unwrap_or_else(|cut| panic!("seed {seed} does not end ({cut:?}):\n{source}"));
            assert_eq!(violations, Vec::<String>::new(), "seed {seed}:\n{source}");
            cuts += seen.cuts.values().sum::<u64>();
        }
        if seed % 4 == 0 {
            agree(&plan, &format!("seed {seed}:\n{source}"));
        }
    }
    assert!(cuts > 5000, "hardly anything was cut off: {cuts}");
}
