//! `weir check --serve`, and what `weir serve` refuses before it binds anything.

use crate::shared::certificates::Authority;
use crate::shared::common::{Scratch, run, run_with_input, weir};

const EDGE: &str = "app = queue(delay(5*ms, server(\"app\")))\nlisten(\"127.0.0.1:1\", app, name=\"public\")\n\
                    scenario(\"s\", app, traffic.poisson(every=10*ms), requests=1000)\n";

#[test]
fn a_file_that_can_be_served_is_said_to_be() {
    let ran = run_with_input(&["check", "--serve", "-"], EDGE);
    assert!(ran.succeeds().contains("app   s "), "{}", ran.out);
    assert_eq!(ran.err, "");
}

#[test]
fn what_is_left_out_is_a_line_on_standard_error() {
    let source = "listen(\":1\", cable(1*ms, server(addr=\"x:1\", model=1*ms)))\n";
    let ran = run_with_input(&["check", "--serve", "-"], source);
    ran.succeeds();
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(ran.err.contains("left out") && ran.err.contains("<stdin>:1:14"), "{}", ran.err);
    assert_eq!(run_with_input(&["check", "--serve", "--quiet", "-"], source).err, "");
}

/// A server that is the file's own listener, directly or by way of another; chains and other machines are none.
#[test]
fn a_listener_that_reaches_itself_is_a_warning() {
    let warned = |source: &str| {
        let ran = run_with_input(&["check", "--serve", "-"], source);
        ran.succeeds();
        ran.err
    };
    let own = warned("x = 1\nlisten(\":1\", server(\"me\", addr=\"localhost:1\"), name=\"front\")\n");
    for word in ["warning: ", "<stdin>:2:14", "localhost:1", "`front`", "508", "= help: "] {
        assert!(own.contains(word), "{word}: {own}");
    }
    let two = |b: &str| {
        warned(&format!(
            "listen(\"127.0.0.1:1\", lb.random([server(addr=\"127.0.0.1:2\"), server(addr=\"127.0.0.1:9\")]), name=\"a\")\n\
             listen(\"0.0.0.0:2\", lb.first([server(addr=\"x:9\")], on_empty={b}), name=\"b\")\n"
        ))
    };
    let round = two("server(addr=\"127.0.0.1:1\")");
    assert_eq!(round.matches("warning: ").count(), 2, "both close the circle: {round}");
    assert!(round.contains("<stdin>:1:34") && round.contains("<stdin>:2:61"), "{round}");
    assert_eq!(two("server(addr=\"127.0.0.1:3\")"), "", "a chain");
    assert_eq!(two("respond(404)"), "");
    assert_eq!(warned("listen(\"127.0.0.1:0\", server(addr=\"127.0.0.1:1\"))\n"), "");
}

#[test]
fn what_cannot_be_served_is_refused_with_its_place() {
    for (source, says) in [
        ("server()\n", "no `listen`"),
        ("x = 1\nlisten(\":1\", concurrent(5*ms))\n", "<stdin>:2:14"),
        (
            "n = param(\"n\", 1, sweep=[1, 2])\nlisten(\":1\", server())\n",
            "choose it with -p, such as `-p n=...`",
        ),
        ("listen(\":1\", server(), protocol=\"tcp\")\n", "not built yet"),
    ] {
        for command in [&["check", "--serve", "-"][..], &["serve", "-"]] {
            run_with_input(command, source).fails(2, says);
        }
    }
    run_with_input(
        &["serve", "-", "-p", "n=2", "nobody"],
        "param(\"n\", 1, sweep=[1, 2])\nlisten(\":1\", server())\n",
    )
    .fails(2, "no listener is called `nobody`; the file has listen");
}

#[test]
fn a_plan_is_served_as_its_file() {
    let scratch = Scratch::new("serve-plan");
    let plan = scratch.file("plan.json", run_with_input(&["plan", "-"], EDGE).succeeds());
    let of_plan = run(&["check", "--serve", &plan]);
    assert!(of_plan.succeeds().contains("app   s "));
    let wrong = "listen(\":1\", concurrent(5*ms))\n";
    let plan = scratch.file("wrong.json", run_with_input(&["plan", "-"], wrong).succeeds());
    run(&["check", "--serve", &plan]).fails(2, "<stdin>:1:14");
}

/// What one loop hides, a status that no node gives, a trace that is too short: each is a warning.
#[test]
fn simulations_warn_of_what_serving_would_change() {
    let warned = |source: &str| {
        let ran = run_with_input(&["sim", "-", "--replications", "2"], source);
        ran.succeeds();
        format!("{}{}", ran.out, ran.err)
    };
    let of = |node: &str, root: &str| {
        warned(&format!(
            "app = {node}\nfront = listen(\":1\", app{root})\n\
             scenario(\"s\", front, traffic.poisson(every=10*ms), requests=200)\n"
        ))
        .replace('\n', " ")
    };
    assert!(of("lb.least_conn([server(), server()])", "").contains("one loop"));
    assert!(!of("lb.least_conn([server(), server()])", ", loops=1").contains("one loop"));
    assert!(!of("lb.least_conn([server(), server()])", ", loops=4").contains("one loop"));
    assert!(!of("lb.random([server(), server()])", "").contains("one loop"));
    assert!(!of("lb.least_conn([server(), server()], scope=\"process\")", "").contains("one loop"));
    let behind = "app = lb.least_conn([server(), server()])\nlisten(\":1\", app, loops=2)\n\
                  scenario(\"s\", app, traffic.poisson(every=10*ms), requests=200)\n";
    assert!(warned(behind).contains("one loop"));

    let scratch = Scratch::new("trace");
    scratch.file("t.csv", "arrival_ms,path,size\n1,/,2\n2,/,2\n");
    let source = "scenario(\"s\", server(), traffic.trace(\"t.csv\"), requests=5)\n";
    let ran = run(&["sim", &scratch.file("t.star", source)]);
    ran.succeeds();
    assert!(ran.err.contains("has 2 arrivals, fewer than the 5 requests"), "{}", ran.err);
    // The path is read; the other columns are not.
    assert_eq!(ran.err.matches("warning:").count(), 1, "{}", ran.err);
}

#[test]
fn listeners_that_compete_for_a_port_are_refused_with_both_places() {
    let two = |one: &str, other: &str| {
        format!(
            "listen(\"{one}\", respond(200), name = \"a\")\nlisten(\"{other}\", respond(200), name = \"b\")\n"
        )
    };
    for (one, other) in [("127.0.0.1:8080", "0.0.0.0:8080"), (":8080", "[::1]:8080")] {
        let refused = run_with_input(&["check", "--serve", "-"], &two(one, other));
        refused.fails(2, "are the same port of this machine");
        assert!(
            refused.err.contains(":2:1") && refused.err.contains("the first is at <stdin>:1:1"),
            "{}",
            refused.err
        );
    }
    assert_eq!(
        run_with_input(&["check", "--serve", "-"], &two("127.0.0.1:8080", "127.0.0.2:8080")).code,
        Some(0)
    );
}

/// A fleet of this source, made in the third line.
fn with_source(call: &str) -> String {
    format!(
        "x = 1\ny = 2\napps = {call}\n\
         listen(\"127.0.0.1:1\", lb.random(apps), name = \"web\")\n"
    )
}

/// A consul that is asked by TLS, with these arguments.
fn consul(args: &str) -> String {
    format!("find.consul(\"https://127.0.0.1:1\", \"shop\", lambda: server(\"app\"), {args})")
}

/// A kubeconfig whose user has these fields.
fn kubeconfig(user: &str) -> String {
    format!(
        "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters: [{{name: a, cluster: {{server: \"http://127.0.0.1:1\"}}}}]\nusers: [{{name: a, user: {{{user}}}}}]\n"
    )
}

#[test]
fn a_file_of_a_source_that_cannot_be_used_is_said_at_the_call_that_names_it() {
    let scratch = Scratch::new("source-files");
    scratch.file("blank", " \n");
    scratch.file("lines", "hush\nhush\n");
    scratch.file("text.pem", "no certificate\n");
    scratch.file(
        "data.yaml",
        kubeconfig("token: hush")
            .replace("cluster: {server", "cluster: {certificate-authority-data: UEVN, server"),
    );
    scratch.file("odd.yaml", "contexts: [{context: {}}]\n");
    scratch.file("kube.yaml", kubeconfig("tokenFile: gone.token"));
    let kubernetes =
        |path: &str| format!("find.kubernetes(\"shop\", lambda: server(\"app\"), kubeconfig = \"{path}\")");
    let eureka =
        "find.eureka(\"http://127.0.0.1:1\", \"SHOP\", lambda: server(\"app\"), auth = \"blank\")".to_owned();
    for (call, file, says, remedy) in [
        (consul("token = \"gone\""), "gone", "there is no such file", "write the token"),
        (consul("token = \"lines\""), "lines", "has more than one line", "write the token"),
        (eureka, "blank", "it is empty", "`user:password`"),
        (consul("tls = tls.client(ca = \"gone.pem\")"), "gone.pem", "there is no such file", "mend"),
        (consul("tls = tls.client(ca = \"text.pem\")"), "text.pem", "has no certificate", "mend"),
        (kubernetes("gone.yaml"), "gone.yaml", "there is no such file", "write `kubeconfig=`"),
        (kubernetes("blank"), "blank", "is empty", "write a kubeconfig into it"),
        (kubernetes("data.yaml"), "data.yaml: certificate-authority-data\" ", "has no certificate", "mend"),
        (kubernetes("odd.yaml"), "odd.yaml", "is no kubeconfig in YAML", "correct it there"),
        (kubernetes("kube.yaml"), "gone.token", "there is no such file", "write the token"),
    ] {
        let path = scratch.file("edge.star", with_source(&call));
        let warned = run(&["check", &path]);
        warned.succeeds();
        for word in ["warning: fleet apps: the ", file, says, "edge.star:3:", "= help: ", remedy] {
            assert!(warned.err.contains(word), "`{word}` is not in: {}", warned.err);
        }
        assert!(!warned.err.contains("hush"), "{}", warned.err);
        assert_eq!(run(&["check", "--quiet", &path]).err, "");
        // As of a certificate.
        let refused = run(&["check", "--serve", &path]);
        refused.fails(2, says);
        assert!(
            refused.err.contains("error: fleet apps: the ") && refused.err.contains("edge.star:3:"),
            "{}",
            refused.err
        );
    }
}

/// What a fleet's function makes may be far from the call, and several fleets may share it.
#[test]
fn a_file_of_a_source_is_said_at_the_call_whichever_line_its_function_is_in() {
    let scratch = Scratch::new("source-places");
    let file = "def app():\n    return server(\"app\")\n\n\
        a = find.consul(\"http://127.0.0.1:1\", \"a\", app, token = \"gone\")\n\
        b = find.consul(\"http://127.0.0.1:1\", \"b\", app, token = \"gone\")\n\
        listen(\"127.0.0.1:1\", lb.random([a, b]), name = \"web\")\n";
    let path = scratch.file("edge.star", file);
    let warned = run(&["check", &path]);
    warned.succeeds();
    for (fleet, line) in [("a", 4), ("b", 5)] {
        let said = warned.err.split("warning: ").find(|said| said.starts_with(&format!("fleet {fleet}: ")));
        let said = said.unwrap_or_else(|| panic!("nothing of {fleet}: {}", warned.err));
        assert!(said.contains(&format!("edge.star:{line}:5")), "{said}");
    }
    assert!(!warned.err.contains("edge.star:2:"), "{}", warned.err);
}

#[test]
fn each_file_of_a_source_is_looked_at_and_no_other() {
    let scratch = Scratch::new("source-files-all");
    let authority = Authority::new("sources");
    scratch.file("token", "secret\n");
    scratch.file("kube.yaml", kubeconfig("tokenFile: token"));
    let check = |call: &str| run(&["check", "--serve", &scratch.file("edge.star", with_source(call))]);
    let both = check(&consul("token = \"gone\", tls = tls.client(ca = \"gone.pem\")"));
    both.fails(2, "gone.pem");
    assert_eq!(both.err.matches("error: fleet apps: the ").count(), 2, "{}", both.err);
    let pair = authority.files(&["a.test"]);
    let own = format!("ca = \"{}\", cert = \"{}\", key = \"{}\"", authority.file, pair.cert, pair.key);
    let usable = consul(&format!("token = \"token\", tls = tls.client({own})"));
    for call in [
        usable.as_str(),
        "find.kubernetes(\"shop\", lambda: server(\"app\"), kubeconfig = \"kube.yaml\")",
        // No list is looked at.
        "find.file(\"gone.json\", lambda: server(\"app\"))",
        "find.dns(\"app.internal\", lambda: server(\"app\"), port = 80)",
    ] {
        check(call).succeeds();
    }
}

/// As `weir serve` and `weir find` read it. What a pod has is looked at there only.
#[test]
fn a_kubeconfig_that_the_topology_does_not_name_is_looked_at_outside_of_pods() {
    let scratch = Scratch::new("source-kubeconfig");
    scratch.file("token", "secret\n");
    let good = scratch.file("good.yaml", kubeconfig("tokenFile: token"));
    let bad = scratch.file("bad.yaml", kubeconfig("tokenFile: gone.token"));
    let path = scratch.file("edge.star", with_source("find.kubernetes(\"shop\", lambda: server(\"app\"))"));
    let check = |args: &[&str], kubeconfig: &str, pod: &str| {
        let mut command = weir();
        command.arg("check").args(args).arg(&path);
        // A home folder without a kubeconfig.
        command
            .env("HOME", scratch.path(""))
            .env("KUBECONFIG", kubeconfig)
            .env("KUBERNETES_SERVICE_HOST", pod);
        let output = command.output().expect("the binary starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (kubeconfig, pod) in [("", ""), (good.as_str(), ""), (bad.as_str(), "10.96.0.1")] {
        assert_eq!(check(&["--serve"], kubeconfig, pod).0, Some(0), "{kubeconfig} {pod}");
    }
    let (code, words) = check(&["--serve"], &bad, "");
    assert!(code == Some(2) && words.contains("error: fleet apps: the "), "{words}");
    assert!(words.contains("gone.token") && words.contains("KUBECONFIG"), "{words}");
    let (code, words) = check(&[], &bad, "");
    assert!(code == Some(0) && words.contains("warning: fleet apps: the "), "{words}");
}
