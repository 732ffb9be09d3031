//! Files with policies, health, limits, routes and request mixes: the plan, and the plan read back.

mod common;

use common::{last, plan, run};
use weir_model::Traffic;
use weir_plan::offered_load;
use weir_plan::{
    Edge, HealthCheck, HedgeSpec, HttpCheck, KeySource, Keys, Lb, Plan, RequestShape, RouteCondition,
    Scenario, Scope, Spec,
};
use weir_policy::Kind;
use weir_policy::config::{
    Balance, Budget, Check, Eject, Hedge, Initial, MaglevArgs, Methods, OnEmpty, Outlier, PeakEwmaArgs,
    PrequalArgs, Rate, RingHashArgs, SlowStart, ZuulArgs,
};
use weir_topology::manual::missing_balancers;
use weir_topology::{Request, evaluate};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

fn lb(source: &str) -> Lb {
    match last(source) {
        Spec::Lb(lb) => lb,
        other => panic!("{other:?}"),
    }
}

fn scenario(traffic: &str) -> Scenario {
    plan(&format!("scenario(\"x\", server(), {traffic}, requests=9)\n")).points[0].scenarios[0].clone()
}

/// Every function and argument of the core with another value than its default.
const ALL: &str = r#"
def web(i):
    return weight(i + 1, queue(delay(5*ms, server("web-%d" % i))))

check = health.http("/healthz", interval=1*s, timeout=200*ms, rise=1, fall=2, jitter=0.25, fast_interval=100*ms, down_interval=5*s,
                    expect="200-299,304", method="HEAD", host="www.example.com", port=8081, initial="checked", cost=1*ms)
probe = health.tcp(interval="3s", port=81, initial="down")
strict = eject(consecutive=3, base=1*s, max=60*s, max_percent=30)
envoy = outlier(consecutive_5xx=7, split_external_local_origin_errors=True, interval=5*s, max_ejection_percent=50,
                enforcing_success_rate=0, max_ejection_time_jitter=1*s)
user = key.header("X-User")
web_pool = pool(3, web)
spare = cable(1*ms, lb.first([server("cold")]))
balancers = [
    lb.random(web_pool, health=check, eject=strict, slow_start=slow_start(30*s, aggression=2, min_weight=0.05), panic=0.25),
    lb.round_robin(web_pool, health=probe, eject=envoy, on_empty=spare, sticky="server", scope="process"),
    lb.least_conn(web_pool, max_in_flight=8, max_connections=4, max_waiting=100, wait_timeout=1*s, on_empty="any"),
    lb.peak_ewma(web_pool, decay=5*s, default_rtt=10*ms),
    lb.zuul(web_pool, load="X-Busy", decay=5*s, max_load=0.8),
    lb.ring_hash(web_pool, key=user, bound=1.25),
    lb.maglev(web_pool, key=key.cookie("session"), table_size=251, bound=2),
    lb.p2c(web_pool, choices=3, ties="first", bias=2),
    lb.prequal(web_pool, probes=2.5, pool=8, age=500*ms, q_rif=0.9, remove=0.5, delta=2),
    lb.least_work(web_pool),
    lb.first(web_pool, pass_over=None),
]
many = split([(1, b) for b in balancers], key=key.client())
hedged = hedge(30*ms, many, attempts=3, methods="any", budget=budget(0.1, 5, 20*s), replay=0)
tried = retry(3, hedged, on=["reset", 503, 429], budget=budget(), replay=1*MiB)
api = limit.rate(tried, 500, burst=50, key=key.path())
top = route([
    (when(path=["/v1/*", "/v2"], method="GET", host=["*.Example.com", "example.com"], header=[("X-Tier", "gold*"), ("x-tier", "")]), api),
    (when(client=["10.0.0.0/8", "::1"]), limit.rate(respond(429), 5)),
], otherwise=respond(503))
mix = [
    (3, request(path="/v1/x?y=1", host="Example.com", headers={"X-Tier": "golden"}, key=keys.zipf(1000, 1.1))),
    (1, request(method="POST", key=keys.uniform(7), body=64*KiB)),
]
scenario("mixed", top, traffic.mix(traffic.poisson(rate=100), mix), requests=9)
scenario("closed", top, traffic.mix(traffic.closed(3, 1*s), mix), requests=9)
"#;

/// The calls of the balancers in [`ALL`].
fn balancers() -> Vec<&'static str> {
    ALL.lines().map(str::trim).filter(|line| line.starts_with("lb.")).collect()
}

#[test]
fn a_plan_with_all_of_it_has_every_balancer() {
    assert_eq!(missing_balancers(balancers()), Vec::<&str>::new());
}

#[test]
fn a_plan_with_all_of_it_is_read_back_as_itself() {
    let done = run(ALL);
    assert_eq!(done.warnings, []);
    let json = done.plan.to_json();
    let back = Plan::from_json(&json).expect("reads");
    assert_eq!(back, done.plan);
    assert_eq!(back.to_json(), json);
}

#[test]
fn a_node_for_no_target_comes_before_its_balancer() {
    let plan = plan(ALL);
    let point = &plan.points[0];
    let of = |n: &weir_plan::Node| point.specs[n.spec as usize].clone();
    let (id, spare) = (0u32..)
        .zip(&point.nodes)
        .find_map(|(id, n)| match of(n) {
            Spec::Lb(Lb { spare: Some(spare), on_empty: OnEmpty::Node, panic: 0.0, .. }) => Some((id, spare)),
            _ => None,
        })
        .expect("one with a spare");
    assert!(spare < id && matches!(of(&point.nodes[spare as usize]), Spec::Cable { .. }));
    let text = String::from_utf8(plan.to_json()).expect("UTF-8");
    let later = text.replace(&format!("\"spare\":{spare}"), &format!("\"spare\":{id}"));
    let why = Plan::from_json(later.as_bytes()).expect_err("a cycle").to_string();
    assert!(why.contains("after all that it leads to"), "{why}");
}

#[test]
fn policies_have_the_defaults_of_the_contract() {
    let key = Some(KeySource::Header("x-user".to_owned()));
    for (source, balance, key) in [
        ("lb.first([server()])", Balance::First, None),
        (
            "lb.peak_ewma([server()])",
            Balance::PeakEwma(PeakEwmaArgs { decay_ns: 10 * S, default_rtt_ns: 30 * MS }),
            None,
        ),
        (
            "lb.zuul([server()])",
            Balance::Zuul(ZuulArgs { load: "x-load".to_owned(), decay_ns: 30 * S, max_load: None }),
            None,
        ),
        ("lb.ring_hash([server()])", Balance::RingHash(RingHashArgs { bound: None }), key.clone()),
        (
            "lb.maglev([server()], bound=None)",
            Balance::Maglev(MaglevArgs { table_size: 65_537, bound: None }),
            key,
        ),
        (
            "lb.prequal([server()])",
            Balance::Prequal(PrequalArgs {
                probes: 3.0,
                pool: 16,
                age_ns: S,
                q_rif: 0.84,
                remove: 1.0,
                delta: 1.0,
            }),
            None,
        ),
        ("lb.least_work([server()])", Balance::LeastWork, None),
    ] {
        let panic = if balance == Balance::First { 0.0 } else { 0.5 };
        assert_eq!(lb(source), Lb { key, panic, ..Lb::plain(balance) }, "{source}");
    }
}

#[test]
fn panic_is_off_where_there_is_another_way_out() {
    let panic = |source: &str| lb(source).panic;
    assert_eq!(panic("lb.random([server()])"), 0.5);
    assert_eq!(panic("lb.random([server()], panic=None, on_empty=\"fail\")"), 0.5);
    assert_eq!(panic("lb.random([server()], on_empty=\"any\")"), 0.0);
    assert_eq!(panic("lb.random([server()], on_empty=server())"), 0.0);
    assert_eq!(panic("lb.first([server()])"), 0.0);
    assert_eq!(panic("lb.first([server()], panic=0.3)"), 0.3);
}

#[test]
fn what_is_around_a_balancer_comes_out_as_written() {
    let around = lb(
        "lb.random([server()], eject=eject(), slow_start=slow_start(9*s), sticky=\"id\", scope=\"process\", \
         max_in_flight=3, max_connections=2, max_waiting=0, wait_timeout=7*ms)",
    );
    let want = Lb {
        eject: Some(Eject { consecutive: 5, base_ns: 30 * S, max_ns: 300 * S, max_percent: 50.0 }),
        slow_start: Some(SlowStart::new(9 * S)),
        sticky: Some("id".to_owned()),
        scope: Scope::Process,
        max_in_flight: Some(3),
        max_connections: Some(2),
        max_waiting: Some(0),
        wait_timeout_ns: Some(7 * MS),
        ..Lb::plain(Balance::Random)
    };
    assert_eq!(around, want);
    assert_eq!(lb("lb.random([server()], eject=outlier())").outlier, Some(Outlier::default()));
    let off = "lb.random([server()], health=None, eject=None, slow_start=None, panic=None, sticky=None, max_in_flight=None, \
               max_connections=None, max_waiting=None, wait_timeout=None, subset=None)";
    assert_eq!(lb(off), Lb::plain(Balance::Random));
}

#[test]
fn checks_have_the_defaults_of_the_contract() {
    let health = |source: &str| lb(&format!("lb.random([server()], health={source})")).health;
    let plain = HealthCheck {
        check: Check {
            interval_ns: 2 * S,
            rise: 2,
            fall: 3,
            jitter: 0.1,
            fast_interval_ns: None,
            down_interval_ns: None,
            initial: Initial::Up,
        },
        http: None,
        timeout_ns: S,
        port: None,
        source: None,
        cost_ns: 0,
    };
    let asks = |path: &str, expect: &[(u16, u16)]| {
        let (path, method) = (path.to_owned(), "GET".to_owned());
        Some(HttpCheck { path, method, host: None, expect: expect.to_vec() })
    };
    assert_eq!(health("health.tcp()"), Some(plain.clone()));
    let http = HealthCheck { http: asks("/up", &[(200, 399)]), ..plain.clone() };
    assert_eq!(health("health.http(\"/up\")"), Some(http));
    let some = HealthCheck { http: asks("/", &[(200, 200)]), ..plain.clone() };
    assert_eq!(health("health.http(\"/\", expect=200)"), Some(some));
    let from = HealthCheck { source: Some([10, 0, 0, 7].into()), ..plain.clone() };
    assert_eq!(health("health.tcp(source=\"10.0.0.7\")"), Some(from));
    let several = HealthCheck { http: asks("/", &[(200, 299), (404, 404)]), ..plain };
    assert_eq!(health("health.http(\"/\", expect=\"200-299, 404\")"), Some(several));
}

#[test]
fn limits_hedges_and_budgets_come_out_as_written() {
    let rate = |per_s, burst, key| Spec::Rate { rate: Rate { per_s, burst }, key };
    assert_eq!(last("limit.rate(server(), 80)"), rate(80.0, 80.0, None));
    assert_eq!(last("limit.rate(server(), 0.5, burst=1)"), rate(0.5, 1.0, None));
    assert_eq!(last("limit.rate(server(), 9, key=key.client())"), rate(9.0, 9.0, Some(KeySource::Client)));
    let hedge = Hedge { after_ns: 20 * MS, attempts: 2, methods: Methods::Idempotent };
    let plain = HedgeSpec { hedge, budget: None, replay_bytes: 65_536 };
    assert_eq!(last("hedge(20*ms, server())"), Spec::Hedge(plain.clone()));
    let budget = Budget { ratio: 0.2, min_per_s: 10.0, window_ns: 10 * S };
    let paid = HedgeSpec { budget: Some(budget.clone()), ..plain };
    assert_eq!(last("hedge(20*ms, server(), budget=budget())"), Spec::Hedge(paid));
    let Spec::Retry(retry) =
        last("retry(2, server(), on=[503, \"reset\", 429, 503], budget=budget(), replay=5)")
    else {
        panic!("a retry")
    };
    assert_eq!((retry.on, retry.on_status), (vec![Kind::Reset], vec![429, 503]));
    assert_eq!((retry.budget, retry.replay_bytes), (Some(budget), 5));
}

#[test]
fn routes_and_splits_lead_to_their_nodes_in_order() {
    let plan = plan(
        "a = server(\"a\")\nb = server(\"b\")\nx = route([(when(path=\"/a\"), b), (when(), a)])\n\
         y = route([(when(host=\"Www.Example.com.\"), a)], otherwise=b)\nz = split([(0, a), (2.5, b)], key=key.path())\n",
    );
    let point = &plan.points[0];
    let list = |i: usize| match point.nodes[i].to {
        Edge::List(l) => point.lists[l as usize].clone(),
        other => panic!("{other:?}"),
    };
    let spec = |i: usize| point.specs[point.nodes[i].spec as usize].clone();
    assert_eq!((list(2), list(3), list(4)), (vec![1, 0], vec![0, 1], vec![0, 1]));
    let path = RouteCondition { path: vec!["/a".to_owned()], ..RouteCondition::default() };
    assert_eq!(spec(2), Spec::Route { rules: vec![path, RouteCondition::default()], otherwise: false });
    let host = RouteCondition { host: vec!["www.example.com".to_owned()], ..RouteCondition::default() };
    assert_eq!(spec(3), Spec::Route { rules: vec![host], otherwise: true });
    assert_eq!(spec(4), Spec::Split { weights: vec![0.0, 2.5], key: Some(KeySource::Path) });
}

#[test]
fn mixes_say_what_arrives_and_never_when() {
    let plain = scenario("traffic.poisson(rate=10)");
    let mixed = scenario(
        "traffic.mix(traffic.poisson(rate=10), [(2, request()), (1, request(\"PUT\", \"/x\", key=keys.uniform(5)))])",
    );
    assert_eq!(plain.traffic, Traffic::Poisson { gap_ns: 1e8 });
    assert_eq!((plain.mix.len(), mixed.traffic), (0, plain.traffic));
    let get = RequestShape { weight: 2.0, ..RequestShape::plain() };
    let put = RequestShape {
        method: "PUT".to_owned(),
        path: "/x".to_owned(),
        key: Some(Keys::Uniform(5)),
        ..RequestShape::plain()
    };
    assert_eq!(mixed.mix, [get, put]);
}

#[test]
fn what_arrives_belongs_to_the_meaning() {
    let of = |request: &str| {
        plan(&format!(
            "scenario(\"x\", server(), traffic.mix(traffic.poisson(rate=1), [(1, {request})]), requests=9)\n"
        ))
        .hash
    };
    assert_eq!(of("request()"), of("request(\"GET\", path=\"/\", body=0)"));
    assert_ne!(of("request()"), of("request(\"HEAD\")"));
    assert_ne!(of("request()"), of("request(key=keys.uniform(2))"));
}

/// A key with its value must be in the plan's JSON.
fn shows(source: &str, wanted: &[&str]) {
    let json = String::from_utf8(plan(&format!("{source}\n")).to_json()).expect("UTF-8");
    for part in wanted {
        assert!(json.contains(part), "{source}: {part} is not in {json}");
    }
}

/// What weir's own slow start does not need is left out, so that hashes of plans stay.
#[test]
fn the_plan_shows_slow_start() {
    shows(
        "lb.random([server()], slow_start=slow_start(1*s, limits=False, like=None))",
        &[r#""slow_start":{"window_ns":1000000000,"aggression":1.0,"min_weight":0.1},"#],
    );
    shows(
        "lb.random([server()], slow_start=slow_start(1*s, limits=True))",
        &[r#""slow_start":{"window_ns":1000000000,"aggression":1.0,"min_weight":0.1,"limits":true},"#],
    );
    shows(
        "lb.random([server()], slow_start=slow_start(2*s, like=\"envoy\", aggression=2))",
        &[r#""slow_start":{"window_ns":2000000000,"aggression":2.0,"min_weight":0.1,"like":"envoy"},"#],
    );
}

#[test]
fn the_plan_shows_every_default() {
    shows(
        "lb.random([server()])",
        &[
            r#""key":null,"pass_over_ns":1000000000,"health":null,"eject":null,"outlier":null,"slow_start":null,"panic":0.5"#,
            r#""on_empty":"fail","spare":null,"sticky":null,"scope":"loop","max_in_flight":null,"max_connections":null"#,
            r#""max_waiting":null,"wait_timeout_ns":null"#,
        ],
    );
    shows("lb.first([server()])", &[r#""policy":"first""#, r#""panic":0.0"#]);
    shows("lb.peak_ewma([server()])", &[r#""decay_ns":10000000000,"default_rtt_ns":30000000"#]);
    shows("lb.zuul([server()])", &[r#""load":"x-load","decay_ns":30000000000,"max_load":null"#]);
    shows("lb.zuul([server()], load=\"X-Busy\", max_load=0.5)", &[r#""load":"x-busy""#, r#""max_load":0.5"#]);
    shows("lb.ring_hash([server()])", &[r#""bound":null"#, r#""key":{"header":"x-user"}"#]);
    shows("lb.maglev([server()])", &[r#""table_size":65537,"bound":null"#, r#""key":{"header":"x-user"}"#]);
    shows(
        "lb.prequal([server()])",
        &[r#""probes":3.0,"pool":16,"age_ns":1000000000,"q_rif":0.84,"remove":1.0,"delta":1.0"#],
    );
    shows(
        "lb.random([server()], health=health.http(\"/\"), eject=eject(), slow_start=slow_start(1*s))",
        &[
            r#""interval_ns":2000000000,"rise":2,"fall":3,"jitter":0.1,"fast_interval_ns":null,"down_interval_ns":null,"initial":"up""#,
            r#""http":{"path":"/","method":"GET","host":null,"expect":[[200,399]]},"timeout_ns":1000000000,"port":null,"source":null,"cost_ns":0"#,
            r#""consecutive":5,"base_ns":30000000000,"max_ns":300000000000,"max_percent":50.0"#,
            r#""slow_start":{"window_ns":1000000000,"aggression":1.0,"min_weight":0.1},"#,
        ],
    );
    shows(
        "lb.random([server()], eject=outlier())",
        &[
            r#""consecutive_5xx":5,"consecutive_gateway_failure":5,"consecutive_local_origin_failure":5"#,
            r#""split_external_local_origin_errors":false,"interval_ns":10000000000,"base_ejection_time_ns":30000000000"#,
            r#""max_ejection_time_ns":300000000000,"max_ejection_time_jitter_ns":0,"max_ejection_percent":10.0"#,
            r#""always_eject_one_host":false,"enforcing_consecutive_5xx":100.0,"enforcing_consecutive_gateway_failure":0.0"#,
            r#""enforcing_consecutive_local_origin_failure":100.0,"enforcing_success_rate":100.0"#,
            r#""enforcing_failure_percentage":0.0,"success_rate_minimum_hosts":5,"success_rate_request_volume":100"#,
            r#""success_rate_stdev_factor":1900,"failure_percentage_threshold":85.0"#,
            r#""failure_percentage_minimum_hosts":5,"failure_percentage_request_volume":50"#,
        ],
    );
    shows(
        "retry(2, server(), budget=budget())",
        &[
            r#""on_status":[],"budget":{"ratio":0.2,"min_per_s":10.0,"window_ns":10000000000},"replay_bytes":65536"#,
        ],
    );
    shows(
        "hedge(1*s, server())",
        &[r#""attempts":2,"methods":"idempotent""#, r#""budget":null,"replay_bytes":65536"#],
    );
    shows("limit.rate(server(), 7)", &[r#""per_s":7.0,"burst":7.0"#, r#""key":null"#]);
    shows("split([(1, server())])", &[r#""weights":[1.0],"key":null"#]);
    shows(
        "route([(when(), server())])",
        &[r#"{"path":[],"method":[],"host":[],"header":[],"client":[]}"#, r#""otherwise":false"#],
    );
    shows(
        "scenario(\"x\", server(), traffic.mix(traffic.poisson(rate=1), [(1, request())]), requests=9)",
        &[r#"{"weight":1.0,"method":"GET","path":"/","host":null,"headers":[],"key":null,"body_bytes":0}"#],
    );
}

/// What the JSON of [`ALL`] says, what it is replaced by so that no file could have made it, and a part of the refusal.
const FORGERIES: &[(&str, &str, &str)] = &[
    ("\"decay_ns\":5000000000", "\"decay_ns\":0", "decay_ns must be above 0"),
    ("\"bound\":1.25", "\"bound\":0.5", "bound must be"),
    ("\"table_size\":251", "\"table_size\":252", "a prime"),
    ("\"table_size\":251", "\"table_size\":2", "2 slots"),
    ("\"probes\":2.5", "\"probes\":0.0", "probes"),
    ("\"q_rif\":0.9", "\"q_rif\":9.0", "q_rif"),
    ("\"key\":{\"header\":\"x-user\"}", "\"key\":{\"header\":\"X-User\"}", "lower case"),
    ("\"key\":{\"header\":\"x-user\"}", "\"key\":null", "needs a key"),
    ("\"key\":null", "\"key\":\"path\"", "only policies that hash"),
    ("\"interval_ns\":1000000000", "\"interval_ns\":0", "health.interval_ns"),
    ("\"jitter\":0.25", "\"jitter\":1.5", "health.jitter"),
    ("\"rise\":1", "\"rise\":0", "health.rise"),
    ("\"path\":\"/healthz\"", "\"path\":\"healthz\"", "health.path"),
    ("[[200,299],[304,304]]", "[[299,200]]", "health.expect"),
    ("[[200,299],[304,304]]", "[]", "health.expect"),
    ("\"port\":8081", "\"port\":0", "health.port"),
    ("\"consecutive\":3", "\"consecutive\":0", "eject.consecutive"),
    ("\"max_percent\":30.0", "\"max_percent\":130.0", "eject.max_percent"),
    ("\"consecutive_5xx\":7", "\"consecutive_5xx\":0", "outlier.consecutive_5xx"),
    ("\"enforcing_success_rate\":0.0", "\"enforcing_success_rate\":-1.0", "outlier.enforcing_success_rate"),
    ("\"min_weight\":0.05", "\"min_weight\":0.0", "slow_start.min_weight"),
    ("\"min_weight\":0.05", "\"min_weight\":0.05,\"like\":\"nginx\"", "slow_start.aggression and min_weight"),
    (
        "\"min_weight\":0.05",
        "\"min_weight\":0.05,\"limits\":true,\"like\":\"envoy\"",
        "slow_start.limits must be false",
    ),
    (
        "30000000000,\"aggression\":2.0,\"min_weight\":0.05",
        "999999999,\"aggression\":1.0,\"min_weight\":0.1,\"like\":\"haproxy\"",
        "slow_start.window_ns must be a second",
    ),
    ("\"panic\":0.25", "\"panic\":2.0", "panic"),
    ("\"on_empty\":\"node\"", "\"on_empty\":\"any\"", "on_empty"),
    ("\"sticky\":\"server\"", "\"sticky\":\"a b\"", "sticky"),
    ("\"max_in_flight\":8", "\"max_in_flight\":0", "max_in_flight"),
    ("\"wait_timeout_ns\":1000000000", "\"wait_timeout_ns\":0", "wait_timeout_ns"),
    ("\"burst\":50.0", "\"burst\":0.5", "burst"),
    ("\"per_s\":500.0", "\"per_s\":-500.0", "per_s"),
    ("\"attempts\":3,\"methods\":\"any\"", "\"attempts\":0,\"methods\":\"any\"", "attempts"),
    ("\"window_ns\":20000000000", "\"window_ns\":0", "budget.window_ns"),
    ("\"on_status\":[429,503]", "\"on_status\":[200]", "on_status"),
    ("\"replay_bytes\":1048576", "\"replay_bytes\":18446744073709551615", "replay_bytes"),
    ("\"/v1/*\",", "\"/*/x\",", "rules[0].path"),
    ("\"*.example.com\"", "\"*.Example.com\"", "lower case"),
    ("\"10.0.0.0/8\"", "\"10.0.0.0/80\"", "rules[1].client"),
    ("\"otherwise\":true", "\"otherwise\":false", "2 rules, and 3 nodes"),
    ("\"weights\":[1.0,", "\"weights\":[-1.0,", "a weight"),
    ("\"weight\":3.0,\"method\"", "\"weight\":-3.0,\"method\"", "mix: a weight"),
    ("\"method\":\"POST\"", "\"method\":\"post\"", "mix: [1].method"),
    ("\"zipf\":[1000,1.1]", "\"zipf\":[0,1.1]", "mix: [0].key"),
    ("\"uniform\":7", "\"uniform\":0", "mix: [1].key"),
];

#[test]
fn plans_that_no_file_could_make_are_refused() {
    let text = String::from_utf8(plan(ALL).to_json()).expect("UTF-8");
    let nodes = balancers().len();
    let too_few = format!("{} weights for {nodes} nodes", nodes - 1);
    let one_less = ("\"weights\":[1.0,", "\"weights\":[", &too_few[..]);
    for (from, to, part) in FORGERIES.iter().copied().chain([one_less]) {
        assert!(text.contains(from), "{from} is not in {text}");
        match Plan::from_json(text.replacen(from, to, 1).as_bytes()) {
            Err(why) => assert!(why.to_string().contains(part), "{from} -> {to}: {why}"),
            Ok(_) => panic!("{from} -> {to} is taken"),
        }
    }
}

#[test]
fn a_policy_that_no_file_could_put_before_a_balancer_is_refused() {
    let behind = "lb.least_work([lb.first([server()])])";
    let two = String::from_utf8(plan("lb.p2c([lb.first([server()])])\n").to_json()).expect("UTF-8");
    let start = two.find("{\"policy\":\"p2c\"").expect("two choices");
    let end = start + two[start..].find('}').expect("an end") + 1;
    let least = two.replace(&two[start..end], "{\"policy\":\"least_work\"}");
    let why = Plan::from_json(least.as_bytes()).expect_err(behind).to_string();
    assert!(why.contains("another balancer behind"), "{why}");
}

/// (rate, utilisation) of each site of queues.
fn loads(source: &str) -> Vec<(f64, f64)> {
    let plan = plan(source);
    offered_load(&plan.points[0], 0)
        .iter()
        .map(|l| ((l.rate_per_s * 1e6).round() / 1e6, (l.utilisation * 1e6).round() / 1e6))
        .collect()
}

const QUEUES: &str =
    "def q(ms_each):\n    return queue(delay(ms_each*ms, server()))\na = q(1)\nb = q(2)\nc = q(4)\n";

#[test]
fn splits_hot_spares_and_limits_pass_their_share() {
    let of = |node: &str| {
        loads(&format!("{QUEUES}scenario(\"x\", {node}, traffic.constant(rate=100), requests=9)\n"))
    };
    assert_eq!(of("split([(3, a), (1, b), (0, c)])"), [(75.0, 0.075), (25.0, 0.05)]);
    assert_eq!(of("lb.first([weight(0, a), b, c])"), [(100.0, 0.2)]);
    assert_eq!(of("lb.random([a, b], on_empty=c)"), [(50.0, 0.05), (50.0, 0.1)]);
    assert_eq!(of("hedge(1*ms, a)"), [(100.0, 0.1)]);
    assert_eq!(of("limit.rate(c, 40)"), [(40.0, 0.16)]);
    assert_eq!(of("limit.rate(c, 140)"), [(100.0, 0.4)]);
    assert_eq!(of("limit.rate(c, 40, key=key.path())"), [], "unknown how many buckets");
    assert_eq!(of("queue(limit.rate(c, 40), concurrency=4)"), [(40.0, 0.16), (100.0, 0.04)]);
    assert_eq!(of("queue(split([(3, a), (1, b)]))").last(), Some(&(100.0, 0.125)));
}

#[test]
fn routes_pass_the_shares_of_the_mix_that_match() {
    let rules = "inner = route([(when(method=\"POST\"), a)], otherwise=b)\n\
                 top = queue(route([(when(path=\"/x\"), inner), (when(path=\"/y\"), c)]))\n";
    let of = |traffic: &str| loads(&format!("{QUEUES}{rules}scenario(\"x\", top, {traffic}, requests=9)\n"));
    let mix = "traffic.mix(traffic.constant(rate=100), [(1, request(\"POST\", \"/x\")), (2, request(path=\"/x\")), \
               (4, request(\"POST\", \"/y\")), (3, request(path=\"/z\"))])";
    assert_eq!(of(mix), [(10.0, 0.01), (20.0, 0.04), (40.0, 0.16), (100.0, 0.21)]);
    assert_eq!(of("traffic.constant(rate=100)"), [(100.0, 0.0)]);
}

/// A generator that needs no library.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn plans_with_changed_bytes_never_panic() {
    let json = plan(ALL).to_json();
    let mut state = 3u64;
    for _ in 0..4000 {
        let mut bytes = json.clone();
        let at = next(&mut state) % bytes.len();
        bytes[at] = next(&mut state) as u8;
        if let Ok(plan) = Plan::from_json(&bytes) {
            assert_eq!(Plan::from_json(&plan.to_json()).expect("reads"), plan);
            for i in 0..plan.points[0].scenarios.len() {
                let _ = offered_load(&plan.points[0], i);
            }
        }
    }
}

/// Arguments of any kind.
const VALUES: &[&str] = &[
    "server()",
    "[server()]",
    "[(1, server())]",
    "[(when(), server())]",
    "[(1, request())]",
    "traffic.poisson(rate=1)",
    "1",
    "0",
    "-1",
    "1e308",
    "99999999999999999999",
    "5*ms",
    "0*s",
    "None",
    "True",
    "\"é/*\"",
    "\"/\"",
    "\"\"",
    "{}",
    "{1: 2}",
    "(\"a\", \"b\")",
    "[]",
    "lb.random",
    "key.client()",
    "health.tcp()",
    "nonsense()",
];

/// Names of arguments.
const NAMED: &[&str] = &[
    "key",
    "health",
    "eject",
    "on_empty",
    "table_size",
    "bound",
    "expect",
    "headers",
    "header",
    "path",
    "burst",
];

/// A file that calls a function with up to four arguments, of which the last may be named.
fn random_call(state: &mut u64, functions: &[&str]) -> String {
    let mut args: Vec<String> =
        (0..next(state) % 4).map(|_| VALUES[next(state) % VALUES.len()].to_owned()).collect();
    if next(state).is_multiple_of(2) {
        let name = NAMED[next(state) % NAMED.len()];
        args.push(format!("{name}={}", VALUES[next(state) % VALUES.len()]));
    }
    format!("x = {}({})\n", functions[next(state) % functions.len()], args.join(", "))
}

#[test]
fn calls_with_random_arguments_never_panic() {
    let functions: Vec<&str> = weir_topology::manual::functions().iter().map(|f| f.name).collect();
    let mut state = 5u64;
    for _ in 0..3000 {
        let source = random_call(&mut state, &functions);
        let request =
            Request { name: "t.star".to_owned(), source: source.clone().into_bytes(), ..Request::default() };
        if let Err(findings) = evaluate(&request) {
            let ends = |m: &str| m.contains("fault in weir");
            assert!(findings.iter().all(|f| !ends(&f.message) && f.line == 1), "{source} {findings:?}");
        }
    }
}
