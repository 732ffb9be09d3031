//! The roles of nodes when served, the defaults of serving, and plans that contain all of it.

use weir_plan::fixed::LIMITS;
use weir_plan::serving::{Role, Serving, serving};
use weir_plan::{Http, Listen, ListenProtocol, Origin, Plan, Point, Spec};
use weir_plan::{levels, listeners, with_inner};
use weir_topology::{Request, evaluate};

fn plan(source: &str) -> Plan {
    let request =
        Request { name: "t.star".to_owned(), source: source.as_bytes().to_vec(), ..Request::default() };
    let done = evaluate(&request);
    done.unwrap_or_else(|e| panic!("{}\n{source}", e.iter().map(ToString::to_string).collect::<String>()))
        .plan
}

/// The roles of what a listener leads to, outermost first, as `kind role`; what is inside another is not named.
fn roles(node: &str, inject: bool) -> Vec<String> {
    let plan = plan(&format!("def f(): return delay(1*ms, server())\nlisten(\":80\", {node})\n"));
    let point = &plan.points[0];
    let Serving { roles, .. } = serving(point, inject).unwrap_or_else(|e| panic!("{}\n{node}", e[0]));
    let named = |(id, role): (usize, &Role)| format!("{} {role:?}", kind(point, id));
    roles.iter().enumerate().filter(|(_, r)| **r != Role::Inside).map(named).rev().skip(1).collect()
}

fn kind(point: &Point, id: usize) -> &'static str {
    point.specs[point.nodes[id].spec as usize].kind()
}

#[test]
fn a_built_in_server_begins_at_its_outermost_model() {
    for (node, is) in [
        ("server()", &["server BuiltIn"][..]),
        ("cable(1*ms, queue(delay(5*ms, timeout(1*s, server()))))", &["cable BuiltIn"]),
        ("queue(server())", &["queue BuiltIn"]),
        ("sequence([server(), fanout([server(), server()])])", &["sequence BuiltIn"]),
        ("sequence([server(), concurrent(1*ms)])", &["sequence BuiltIn"]),
        ("server(model=lb.random([server(), concurrent(1*ms)]))", &["server BuiltIn"]),
        ("server(model=lb.least_work([concurrent(1*ms)]))", &["server BuiltIn"]),
        (
            "lb.random([server(), cable(1*ms, server())])",
            &["lb.random Proxy", "cable BuiltIn", "server BuiltIn"],
        ),
        (
            "lb.random([weight(2, server()), weight(1, f())])",
            &["lb.random Proxy", "weight Proxy", "delay BuiltIn", "weight Proxy", "server BuiltIn"],
        ),
        ("retry(2, timeout(1*s, queue(server())))", &["retry Proxy", "timeout BuiltIn"]),
        (
            "route([(when(path=\"/a\"), respond(200))], otherwise=f())",
            &["route Proxy", "delay BuiltIn", "respond Proxy"],
        ),
        (
            "buffered(rewrite(limit.rate(f(), 5), remove=\"x\"), 9)",
            &["buffered Proxy", "rewrite Proxy", "limit.rate Proxy", "delay BuiltIn"],
        ),
        ("lb.first([server()], on_empty=f())", &["lb.first Proxy", "delay BuiltIn", "server BuiltIn"]),
    ] {
        assert_eq!(roles(node, false), is, "{node}");
    }
}

#[test]
fn models_act_where_nothing_real_is_behind_or_they_are_switched_on() {
    let real = "server(\"r\", addr=\"x:1\", model=1*ms)";
    let before = format!("cable(1*ms, faulty(1*hours, 1*s, lb.random([{real}, f()])))");
    let out = ["cable LeftOut", "faulty LeftOut", "lb.random Proxy", "delay BuiltIn", "server Proxy"];
    assert_eq!(roles(&before, false), out);
    let on = ["cable Model", "faulty Model", "lb.random Proxy", "delay BuiltIn", "server Proxy"];
    assert_eq!(roles(&before, true), on);
    assert_eq!(
        roles("cable(1*ms, lb.random([f()]))", false),
        ["cable Model", "lb.random Proxy", "delay BuiltIn"]
    );
    assert_eq!(roles("flaky(0.5, redirect(\"/\"))", false), ["flaky Model", "redirect Proxy"]);
    let kept = format!("queue(timeout(1*s, warmup({real}, 2.0, requests=5)))");
    assert_eq!(roles(&kept, false), ["queue Proxy", "timeout Proxy", "warmup LeftOut", "server Proxy"]);
}

/// One node at several places is one, and unreached ones have no part.
#[test]
fn nodes_are_shared_and_unreached_ones_left_alone() {
    let plan = plan(
        "x = delay(1*ms, server())\nfanout([server(addr=\"x:1\")])\n\
         listen(\":80\", lb.random([x, lb.random([x, cable(1*ms, x)])]))\nlisten(\":81\", x, name=\"b\")\n",
    );
    let point = &plan.points[0];
    let served = serving(point, false).expect("served");
    let built: Vec<&str> = (0..point.nodes.len())
        .filter(|i| served.roles[*i] == Role::BuiltIn)
        .map(|i| kind(point, i))
        .collect();
    assert_eq!(built, ["delay", "cable"]);
    let names: Vec<_> = listeners(point).iter().map(|id| point.nodes[*id as usize].name.clone()).collect();
    assert_eq!(names, [Some("listen".to_owned()), Some("b".to_owned())]);
}

fn refused(source: &str) -> String {
    let wrong = serving(&plan(source).points[0], true).expect_err(source);
    wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_simulated_only_is_refused_with_its_place() {
    assert!(refused("server()\n").contains("no `listen`"));
    for (node, says) in [
        ("fanout([lb.random([server()]), server()])", "`fanout` cannot be served"),
        ("sequence([server(), server(addr=\"x:1\")])", "`sequence` cannot be served"),
        ("concurrent(5*ms)", "server(\"app\", model=concurrent(...))"),
        ("lb.random([queue(concurrent(5*ms)), server()])", "`concurrent` cannot be served"),
        ("lb.least_work([server()])", "use `lb.least_conn`"),
    ] {
        let said = refused(&format!("a = 1\nlisten(\":80\", {node})\n"));
        assert!(said.contains(says) && said.contains("--> t.star:2:"), "{node}: {said}");
    }
    let twice = refused("listen(\":80\", lb.random(pool(3, lambda: concurrent(5*ms))))\n");
    assert_eq!(twice.matches("error").count(), 1, "once for each place: {twice}");
}

#[test]
fn what_is_left_out_and_queues_before_it_are_said() {
    let source = |node: &str| format!("listen(\":80\", {node})\n");
    let notes = |node: &str, inject| serving(&plan(&source(node)).points[0], inject).expect("served").notes;
    let node = "cable(2*ms, queue(delay(20*ms, server(\"r\", addr=\"x:1\", model=1*ms))))";
    let said = notes(node, false);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("left out") && said[0].contains("cable (t.star:1:15)"), "{}", said[0]);
    assert!(said[0].contains("--inject") && !said[0].contains('\n'));
    assert!(
        said[1].starts_with("hint: this `queue` is in front of a `delay`") && said[1].contains("t.star:1:27")
    );
    assert!(notes(node, true).is_empty());
    assert!(notes("queue(server(addr=\"x:1\", model=1*ms))", false).is_empty());
    assert!(notes("cable(2*ms, queue(delay(20*ms, server())))", false).is_empty());
}

#[test]
fn every_default_of_the_contract_is_in_the_plan() {
    let plan = plan("listen(\"127.0.0.1:0\", server(addr=\"x:1\"))\n");
    let text = String::from_utf8(plan.to_json()).expect("UTF-8");
    for part in [
        r#""kind":"server","addr":"x:1","model":null,"origin":{"protocol":"auto","connect_timeout_ns":1000000000,"response_timeout_ns":60000000000,"body_timeout_ns":60000000000,"idle_timeout_ns":4000000000,"max_age_ns":null,"max_requests":null}"#,
        r#""kind":"listen","addr":"127.0.0.1:0","protocol":"http","loops":null,"http":{"versions":["h1","h2"],"max_head":32768,"max_headers":100,"max_body":null,"head_timeout_ns":10000000000,"body_timeout_ns":30000000000,"write_timeout_ns":30000000000,"idle_timeout_ns":60000000000,"max_requests":100000,"max_age_ns":3600000000000,"max_streams":100,"max_clients":null,"max_clients_per_address":null,"upgrade":["websocket"],"connect":[],"tunnel_idle_ns":3600000000000,"half_close":"cancel","trusted":[],"proxy_from":[],"paths":"safe","drain_delay_ns":0,"drain_timeout_ns":10000000000,"access_log":null,"log_format":"json"}"#,
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let addr = "127.0.0.1:0".to_owned();
    let listen =
        Listen { addr, protocol: ListenProtocol::Http, loops: None, tls: None, http: Http::default() };
    assert!(plan.points[0].specs.contains(&Spec::Listen(listen)) && Origin::default() == Origin::new(true));
    assert_eq!(Origin::new(false).response_timeout_ns, None);
}

/// 4 s over HTTP/1.1 and 60 s over HTTP/2 where a file says nothing; what it says holds for both. Files without HTTP/2
/// have the plan that they had before these times differed.
#[test]
fn idle_times_follow_the_protocol_unless_they_are_given() {
    let idle = |arguments: &str| {
        let plan = plan(&format!("listen(\":80\", server(\"a\", addr=\"a.test:1\"{arguments}))\n"));
        let mut specs = plan.points[0].specs.iter();
        let origin = specs.find_map(|spec| match spec {
            Spec::Server { origin, .. } => Some(origin.clone()),
            _ => None,
        });
        let origin = origin.expect("a server");
        let read = Plan::from_json(&plan.to_json()).expect("reads");
        assert_eq!(read, plan, "{arguments}");
        [false, true].map(|is_h2| origin.idle_ns(is_h2).map(|ns| ns / 1_000_000_000))
    };
    assert_eq!(idle(""), [Some(4), Some(4)]);
    assert_eq!(idle(", protocol=\"h2\"")[1], Some(60));
    assert_eq!(idle(", tls=tls.client()"), [Some(4), Some(60)]);
    assert_eq!(idle(", tls=tls.client(), protocol=\"h1\""), [Some(4), Some(4)]);
    assert_eq!(idle(", tls=tls.client(), idle_timeout=4*s"), [Some(4), Some(4)]);
    assert_eq!(idle(", protocol=\"h2\", idle_timeout=None"), [None, None]);
    let text = |arguments: &str| {
        let plan = plan(&format!("listen(\":80\", server(\"a\", addr=\"a.test:1\"{arguments}))\n"));
        String::from_utf8(plan.to_json()).expect("UTF-8")
    };
    assert!(
        !text(", max_streams=100").contains("\"max_streams\":100,\"send") && !text("").contains("h2_idle")
    );
    assert!(text(", max_streams=7").contains("\"max_requests\":null,\"max_streams\":7"));
}

/// What `docs/spec/serving.md#names-in-the-file` has no name for is shown beside it, and is no part of the plan:
/// another version may have another.
#[test]
fn what_no_file_can_set_is_shown_and_passed_over() {
    let plan = plan("listen(\"127.0.0.1:0\", server(addr=\"x:1\"))\n");
    let text = String::from_utf8(plan.to_json()).expect("UTF-8");
    let from = text.find(",\n\"fixed\": {\n").expect("an object");
    let to = from + text[from..].find("\n}").expect("its end") + 2;
    let fixed = &text[from..to];
    for part in [
        // Section 2.
        r#""max_resend": 65536"#,
        r#""continue_after_ns": 1000000000"#,
        r#""on_cancel_silence_ns": 30000000000"#,
        r#""on_cancel_drain_ns": 300000000000"#,
        // Section 3.
        r#""max_method": 32"#,
        r#""max_target": 8192"#,
        r#""max_via_hops": 10"#,
        r#""linger_silence_ns": 2000000000"#,
        r#""linger_ns": 10000000000"#,
        r#""max_lingering": 1000"#,
        // Section 6.
        r#""tcp_user_timeout_ns": 30000000000"#,
    ] {
        assert!(fixed.contains(&format!("\n {part}")), "{part} is not in {fixed}");
    }
    assert_eq!(fixed.lines().count(), LIMITS.len() + 3, "each on a line of its own: {fixed}");
    for other in ["", ",\n\"fixed\": {}", ",\n\"fixed\": {\"max_target\": 1, \"of_another_version\": [1.5]}"]
    {
        let text = format!("{}{other}{}", &text[..from], &text[to..]);
        let read = Plan::from_json(text.as_bytes()).expect(other);
        assert_eq!((&read, &read.hash), (&plan, &plan.hash));
    }
}

const ALL: &str = r#"
h = http(versions=["h1"], max_head=8*KiB, max_headers=50, max_body=1*MiB, head_timeout=1*s, body_timeout=None, write_timeout=2*s,
         idle_timeout=3*s, max_requests=None, max_age=None, max_streams=7, max_clients=100, max_clients_per_address=10,
         upgrade=["WebSocket", "x/2"], connect=["DB.example:5432", "*.example.com:443"], tunnel_idle=None, half_close="answer",
         trusted=["10.0.0.0/8", "::1", "unix:"], proxy_from=["unix:"], paths="raw", drain_delay=1*s, drain_timeout=0*s, access_log="stdout", log_format="combined")
app = server("a", addr="[::1]:80", model=1*ms, protocol="h1", connect_timeout=2*s, response_timeout=None, body_timeout=3*s, idle_timeout=4*s,
             max_age=5*s, max_requests=6, max_streams=8)
fixed = respond(503, "no", headers={"Retry-After": "5"})
site = rewrite(buffered(app, 64*KiB), path=("/api/", "/"), set={"X-A": "{host}{{}}"}, remove=["Cookie", "cookie"],
               response_set={"x-b": "{client}"}, response_remove="Server")
listen("unix:/tmp/x.sock", route([(when(path="/a"), fixed), (when(path="/b"), redirect("https://{host}{uri}", status=308))], otherwise=site),
       name="public", http=h, loops=2)
"#;

#[test]
fn a_plan_with_all_of_it_is_read_back_as_itself() {
    let all = plan(ALL);
    let json = all.to_json();
    let read = Plan::from_json(&json).expect("reads");
    assert_eq!(read, all);
    let spec = |kind: &str| all.points[0].specs.iter().find(|s| s.kind() == kind).expect(kind);
    let Spec::Listen(listen) = spec("listen") else { panic!("a listener") };
    let Http { upgrade, connect, max_requests, body_timeout_ns, .. } = &listen.http;
    assert_eq!(
        (upgrade.join(" "), connect.join(" ")),
        ("websocket x/2".into(), "db.example:5432 *.example.com:443".into())
    );
    assert_eq!((max_requests, body_timeout_ns, listen.loops), (&None, &None, Some(2)));
    let Spec::Rewrite(rewrite) = spec("rewrite") else { panic!("a rewrite") };
    assert_eq!(rewrite.remove, ["cookie"]);
    assert_eq!(rewrite.set, [("x-a".to_owned(), "{host}{{}}".to_owned())]);
    // The meaning is part of the hash.
    for (from, to) in [
        ("64*KiB", "65*KiB"),
        ("status=308", "status=307"),
        ("loops=2", "loops=3"),
        ("4*s", "9*s"),
        ("\"no\"", "\"yes\""),
    ] {
        assert_ne!(all.hash, plan(&ALL.replacen(from, to, 1)).hash, "{from}");
    }
    assert_eq!(all.hash, read.hash);
}

#[test]
fn wrong_plans_are_refused() {
    let text: String = String::from_utf8(plan(ALL).to_json()).expect("UTF-8");
    for (from, to, part) in [
        ("\"addr\":\"unix:/tmp/x.sock\"", "\"addr\":\"x\"", "addr"),
        ("\"addr\":\"[::1]:80\"", "\"addr\":\":80\"", "addr"),
        ("\"loops\":2", "\"loops\":0", "loops"),
        ("\"max_head\":8192", "\"max_head\":1", "max_head"),
        ("\"max_head\":8192", "\"max_head\":131073", "max_head"),
        ("\"max_headers\":50", "\"max_headers\":0", "max_headers"),
        ("\"versions\":[\"h1\"]", "\"versions\":[]", "versions"),
        ("\"proxy_from\":[\"unix:\"]", "\"proxy_from\":[\"::1/x\"]", "network"),
        ("\"::1\",\"unix:\"", "\"::1\",\"unix\"", "trusted"),
        ("\"head_timeout_ns\":1000000000", "\"head_timeout_ns\":0", "head_timeout_ns"),
        ("\"websocket\"", "\"h2c\"", "h2c"),
        ("\"websocket\"", "\"WebSocket\"", "lower case"),
        ("db.example:5432", "db.example", "connect"),
        ("10.0.0.0/8", "10.0.0.0/99", "trusted"),
        ("\"status\":503", "\"status\":99", "status"),
        ("\"retry-after\"", "\"content-length\"", "frames messages"),
        ("\"status\":308", "\"status\":304", "status"),
        ("https://{host}{uri}", "https://{hots}", "has no meaning"),
        ("\"cookie\"", "\"host\"", "frames messages"),
        ("{host}{{}}", "a\\nb", "value"),
        ("\"bytes\":65536", "\"bytes\":0", "bytes"),
        ("\"max_requests\":6", "\"max_requests\":0", "max_requests"),
        ("\"max_streams\":8", "\"max_streams\":0", "max_streams"),
        (
            "\"idle_timeout_ns\":4000000000,\"max_age",
            "\"idle_timeout_ns\":4,\"h2_idle_timeout_ns\":0,\"max_age",
            "h2_idle",
        ),
        ("\"name\":\"public\"", "\"name\":null", "has a name"),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        let why = Plan::from_json(text.replacen(from, to, 1).as_bytes()).expect_err(to).to_string();
        assert!(why.contains(part), "{from} -> {to}: {why}");
    }
    let two = plan("x = server()\nlisten(\":80\", x)\nlisten(\":81\", x)\nserver(model=cable(1*ms, x))\n");
    let text = String::from_utf8(two.to_json()).expect("UTF-8");
    for (from, to, part) in [
        (":81", ":80", "address"),
        ("listen#2", "listen", "called"),
        ("\"model\":3", "\"model\":1", "model of a server leads to a `listen`"),
    ] {
        let at = text.rfind(from).unwrap_or_else(|| panic!("{from} is not in {text}"));
        let changed = format!("{}{to}{}", &text[..at], &text[at + from.len()..]);
        let why = Plan::from_json(changed.as_bytes()).expect_err(to).to_string();
        assert!(why.contains(part), "{from} -> {to}: {why}");
    }
}

const LAYERS: &str = "\
a = listen(\":81\", server(), name=\"a\")
b = listen(\":82\", lb.random([a, server()]), name=\"b\")
c = listen(\":83\", lb.first([server()], on_empty=retry(2, cable(1*ms, b))), name=\"c\")
d = listen(\":84\", a, name=\"d\")
e = listen(\":85\", server(), name=\"e\")
f = listen(\":86\", sequence([c, d]), name=\"f\")
";

/// How many listeners are in front of each, and which are behind which.
#[test]
fn listeners_behind_others() {
    let plan = plan(LAYERS);
    let point = &plan.points[0];
    let name = |id: &u32| point.nodes[*id as usize].name.clone().expect("a listener has a name");
    let levels: Vec<(String, u32)> = levels(point).iter().map(|(id, level)| (name(id), *level)).collect();
    let expected = [("a", 3), ("b", 2), ("c", 1), ("d", 1), ("e", 0), ("f", 0)];
    assert_eq!(levels, expected.map(|(name, level)| (name.to_owned(), level)));
    let all = listeners(point);
    let of = |chosen: usize| with_inner(point, &all[chosen..=chosen]).iter().map(name).collect::<String>();
    assert_eq!([of(0), of(1), of(2), of(3), of(4)], ["a", "ab", "abc", "ad", "e"]);
}

/// Weir itself connects to a listener behind another: it has no client certificate, and no client to announce before
/// HTTP.
#[test]
fn an_inner_listener_that_weir_cannot_reach_is_refused() {
    let refused = |more: &str, outer: &str| {
        let plan = plan(&format!("a = listen(\":81\", server(), {more})\n{outer}\n"));
        serving(&plan.points[0], false).err().map(|wrong| wrong[0].to_string()).unwrap_or_default()
    };
    let outer = "listen(\":80\", lb.random([a]))";
    let pair = std::env::temp_dir().join("x").display().to_string();
    let tls = |more: &str| format!("tls=tls.server(\"{pair}.pem\", \"{pair}.key\"{more})");
    let requires = tls(", client_ca=\"ca.pem\"");
    for (more, says) in [
        (requires.as_str(), "requires certificates of clients"),
        ("http=http(proxy_from=[\"::1\"])", "PROXY protocol"),
    ] {
        let said = refused(more, outer);
        assert!(said.contains(says) && said.contains("t.star:1:5") && said.contains("leave `"), "{said}");
        assert!(said.contains("add a second `listen` that leads to the same node"), "{said}");
        assert_eq!(refused(more, ""), "");
    }
    let requests = tls(", client_ca=\"ca.pem\", client_auth=\"request\"");
    for more in [&*tls(""), &requests, "http=http(versions=[\"h2\"])"] {
        assert_eq!(refused(more, outer), "");
    }
}

/// A file with one rule of a `route`, and one listener that leads to it.
fn ruled(listener: &str, rule: &str) -> String {
    format!("x = route([(when({rule}), respond(403))], otherwise=server())\nlisten({listener})\n")
}

#[test]
fn a_rule_that_no_client_of_a_listener_matches_is_refused() {
    let with_ca = "\":443\", x, tls=tls.server(\"c.pem\", \"k.pem\", client_ca=\"ca.pem\")";
    let tunnels = "\":80\", x, http=http(connect=[\"db:5432\"])";
    let (unix, plain, v4, v6) = ("\"unix:s\", x", "\":80\", x", "\"127.0.0.1:80\", x", "\"[::1]:80\", x");
    let trusting = "\"unix:s\", x, http=http(trusted=[\"unix:\"])";
    for (listener, rule, why) in [
        (plain, "client_name=\"a\"", "no listener that leads here asks clients for the certificate"),
        (tunnels, "client_name=\"a\", method=\"CONNECT\"", "no listener that leads here asks clients"),
        (with_ca, "method=\"CONNECT\"", "no listener that leads here lets CONNECT in"),
        (unix, "client=\"10.0.0.0/8\"", "no client of the listeners that lead here has such an address"),
        (v4, "client=[\"fd00::/8\", \"::1\"]", "no client of the listeners that lead here has such an"),
        (v6, "client=\"::ffff:10.0.0.0/104\"", "no client of the listeners that lead here has such an"),
    ] {
        let said = refused(&ruled(listener, rule));
        assert!(said.contains("`rules[0]` of `route` never matches when it is served"), "{rule}: {said}");
        assert!(said.contains(why) && said.contains("t.star:1:"), "{rule}: {said}");
    }
    for (listener, rule) in [
        (with_ca, "client_name=\"a\""),
        (tunnels, "method=\"CONNECT\""),
        (plain, "method=[\"GET\", \"CONNECT\"]"),
        (plain, "client=[\"10.0.0.0/8\", \"fd00::/8\"]"),
        (trusting, "client=\"10.0.0.0/8\""),
        (v4, "client=[\"10.0.0.0/8\", \"fd00::/8\"]"),
    ] {
        let plan = plan(&ruled(listener, rule));
        assert!(serving(&plan.points[0], false).is_ok(), "{rule}");
    }
}

#[test]
fn a_rule_counts_for_all_listeners_that_lead_to_it() {
    let inner = "listen(\"127.0.0.1:81\", x, name=\"inner\")";
    let rule = "client_name=\"a\"";
    let tls = "tls=tls.server(\"c.pem\", \"k.pem\", client_ca=\"ca.pem\")";
    let both = format!("{}listen(\":443\", x, name=\"tls\", {tls})\n", ruled("\":80\", x", rule));
    assert!(serving(&plan(&both).points[0], false).is_ok());
    // Behind an inner listener the client is weir itself, without a certificate, and hands on its client's address.
    assert!(refused(&ruled(&format!("\":443\", {inner}, {tls}"), rule)).contains("`client_name`"));
    let inner = inner.replace("127.0.0.1:81", "[::1]:81");
    let plan = plan(&ruled(&format!("\":80\", {inner}"), "client=\"10.0.0.0/8\""));
    assert!(serving(&plan.points[0], false).is_ok());
}

/// A listener is never part of a built-in server; models before it act where nothing real is behind.
#[test]
fn models_before_a_listener() {
    let inner = |server: &str| format!("cable(1*ms, listen(\":81\", delay(1*ms, {server})))");
    assert_eq!(roles(&inner("server()"), false), ["cable Model", "listen Proxy", "delay BuiltIn"]);
    let real = "server(addr=\"127.0.0.1:1\")";
    assert_eq!(
        roles(&inner(real), false),
        ["cable LeftOut", "listen Proxy", "delay LeftOut", "server Proxy"]
    );
    let plan = plan(&format!("listen(\":80\", sequence([{}]))\n", inner("server()")));
    let wrong = serving(&plan.points[0], false).expect_err("more than one origin");
    assert!(wrong[0].to_string().contains("`sequence` cannot be served"), "{}", wrong[0]);
}

/// Old plans say nothing of how origins are spoken to.
#[test]
fn a_server_without_an_origin_has_the_defaults() {
    let text = String::from_utf8(plan("server(addr=\"x:1\", model=1*ms)\n").to_json()).expect("UTF-8");
    let from = text.find(",\"origin\":").expect("an origin");
    let to = from + text[from..].find('}').expect("its end") + 1;
    let old = format!("{}{}", &text[..from], &text[to..]);
    assert!(Plan::from_json(old.as_bytes()).is_ok(), "{old}");
}
