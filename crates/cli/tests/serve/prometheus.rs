//! A real Prometheus scrapes a weir in trouble: every query of the dashboard returns data, every alert reports its
//! trouble.

use crate::shared::common::Scratch;
use crate::shared::serve;
use crate::shared::serve::admin::{addr, ask, get};
use crate::shared::serve::{Origin, Stream, Weir, closed_port, free_port, reply, until};
use rustix::process::Signal;
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

fn text(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// One starts after the other: it takes a port that is free now, which must not be given to two.
static STARTING: Mutex<()> = Mutex::new(());

/// Prometheus, which asks this address five times a second.
struct Prometheus {
    child: Child,
    at: String,
    _scratch: Scratch,
}

impl Prometheus {
    /// None where there is no such program.
    fn watching(weir: &str, more: &[&str]) -> Option<Prometheus> {
        Command::new("prometheus").arg("--version").output().ok()?;
        let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = Scratch::new("prometheus");
        let config = format!(
            "global: {{scrape_interval: 200ms}}\nscrape_configs:\n- job_name: weir\n  static_configs: [{{targets: [\"{weir}\"]}}]\n"
        );
        let config = scratch.file("prometheus.yml", config);
        let at = free_port().to_string();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={config}"))
            .arg(format!("--storage.tsdb.path={}", scratch.path("data")))
            .arg(format!("--web.listen-address={at}"))
            .arg("--log.level=error")
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let prometheus = Prometheus { child, at, _scratch: scratch };
        let answers = || Stream::connect(&prometheus.at).is_ok() && get(&prometheus.at, "/-/ready").0 == 200;
        // On a busy machine it takes its time.
        assert!((0..3).any(|_| until(answers)), "Prometheus does not start");
        Some(prometheus)
    }

    /// The series that a query returns.
    fn ask(&self, query: &str) -> Vec<Value> {
        let encoded: String = query.bytes().map(|b| format!("%{b:02X}")).collect();
        let answer = ask(&self.at, &format!("GET /api/v1/query?query={encoded}"), "", "").body_text();
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}"));
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A certificate that ends tomorrow, and its key.
fn certificate(scratch: &Scratch) -> [String; 2] {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut wants = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let tomorrow = std::time::SystemTime::now() + std::time::Duration::from_secs(86_400);
    wants.not_after = tomorrow.into();
    let signed = wants.self_signed(&key).expect("a certificate");
    [scratch.file("cert.pem", signed.pem()), scratch.file("key.pem", key.serialize_pem())]
}

/// A topology that has one of each that the dashboard shows, and of each trouble.
fn troubled(origin: &Origin, certificate: &[String; 2]) -> String {
    let (app, dead, [cert, key]) = (origin.addr(), closed_port(), certificate);
    format!(
        r#"app = server("app", addr="{app}")
dead = server("dead", addr="{dead}")
none = lb.p2c([server("gone", addr="{dead}"), server("lost", addr="{dead}")], name="none", health=health.tcp(interval=200*ms, fall=1))
apps = lb.round_robin([app, dead], name="apps", eject=eject(consecutive=1, base=300*s, max_percent=100), pass_over=0*s)
out = lb.random([server("out", addr="{dead}")], name="out", panic=0.0, health=health.tcp(interval=200*ms, fall=1))
again = retry(3, none, budget=budget(ratio=0.0, min_per_s=0.1), name="again")
unlisted = lb.random(find.file("missing.json", lambda: server("unlisted"), name="unlisted"), name="unlisted")
other = route([(when(path="/none"), again), (when(path="/unlisted"), unlisted), (when(path="/hedge"), hedge(1*ms, app, name="hedge")), (when(path="/late"), timeout(1*ms, app))], otherwise=queue(apps, concurrency=9, name="desk"))
listen("127.0.0.1:0", other, name="web")
listen("127.0.0.1:0", out, name="lost")
listen("127.0.0.1:0", other, name="few", http=http(max_clients=1))
listen("127.0.0.1:0", other, name="secure", tls=tls.server("{cert}", "{key}"))
"#
    )
}

/// The side of an alert that is compared.
fn compared(alert: &str) -> &str {
    [" > ", " < ", " == "].iter().find_map(|sign| alert.rsplit_once(sign)).expect("a comparison").0
}

#[test]
fn every_query_returns_data_and_every_alert_tells_of_its_trouble() {
    let origin = Origin::answering(|_| {
        serve::pause(20);
        reply("here")
    });
    let scratch = Scratch::new("prometheus-tls");
    let certificate = certificate(&scratch);
    let weir = Weir::with(&troubled(&origin, &certificate), &["--admin", "127.0.0.1:0"], 4);
    let Some(prometheus) = Prometheus::watching(&addr(&weir, "admin"), &[]) else {
        return serve::tell("skipped: there is no prometheus");
    };
    assert!(until(|| !prometheus.ask("weir_config_generation").is_empty()), "nothing was scraped");
    let rules = text("deploy/prometheus/weir.rules.yml");
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    let board: Value = serde_json::from_str(&text("deploy/grafana/weir.json")).expect("JSON");
    let panels = board["panels"].as_array().expect("panels");
    let shown = panels.iter().flat_map(|p| p["targets"].as_array().into_iter().flatten());
    let shown = shown.map(|t| t["expr"].as_str().expect("a query"));
    let shown: Vec<String> =
        shown.map(|q| q.replace("$instance", ".*").replace("$__rate_interval", "1m")).collect();

    weir.replace("this is no topology(");
    weir.signal(Signal::HUP);
    let silent = |alert: &&&str| {
        let seen = if alert.contains("weir_loop_lag") {
            // How late the loops are is the machine's affair.
            compared(alert).to_owned()
        } else if alert.contains("weir_fleet_stale") {
            // That takes minutes.
            format!("{} > 0", compared(alert))
        } else {
            (**alert).to_owned()
        };
        prometheus.ask(&seen).is_empty()
    };
    let trouble = || {
        serve::pause(100);
        // No TLS: a handshake that fails.
        let _ = weir.connect("secure").ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        // A second client, where there is room for one.
        let clients = [weir.connect("few"), weir.connect("few")];
        for path in ["/", "/none", "/hedge", "/late"] {
            weir.get(path);
        }
        drop(clients);
        alerts
            .iter()
            .find(silent)
            .copied()
            .or_else(|| shown.iter().map(String::as_str).find(|query| prometheus.ask(query).is_empty()))
    };
    let mut left = None;
    let all = until(|| {
        left = trouble().map(str::to_owned);
        left.is_none()
    });
    assert!(all, "no data: {left:?}");
}

/// Asked for native histograms, it scrapes the other format: all requests are in them, and each about where it was.
#[test]
fn native_histograms_are_scraped() {
    let origin = Origin::answering(|_| {
        serve::pause(30);
        reply("here")
    });
    let file = format!("listen(\"127.0.0.1:0\", server(addr=\"{}\"), name=\"web\")\n", origin.addr());
    let weir = Weir::with(&file, &["--admin", "127.0.0.1:0"], 1);
    let native = ["--enable-feature=native-histograms"];
    let Some(prometheus) = Prometheus::watching(&addr(&weir, "admin"), &native) else {
        return serve::tell("skipped: there is no prometheus");
    };
    for _ in 0..20 {
        assert_eq!(weir.get("/").status(), 200);
    }
    let one = |query: &str| {
        let all = prometheus.ask(query);
        all.first().and_then(|series| series["value"][1].as_str()?.parse::<f64>().ok())
    };
    let counted = || one("histogram_count(weir_request_duration_seconds)") == Some(20.0);
    assert!(until(counted), "{:?}", prometheus.ask("weir_request_duration_seconds"));
    let sum = one("histogram_sum(weir_request_duration_seconds)").expect("a sum");
    let p01 = one("histogram_quantile(0.01, weir_request_duration_seconds)").expect("a quantile");
    // A bucket is 9 % wide, and no request is faster than its origin.
    assert!(sum >= 0.6 && p01 > 0.027, "{sum} {p01}");
    assert_eq!(one("weir_config_generation"), Some(0.0), "other metrics come in the same format");
}
