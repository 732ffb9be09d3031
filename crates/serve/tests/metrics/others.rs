//! What is not counted by requests: health, handshakes, hedges, rates, several threads, what is removed.

use super::common::certificates::Authority;
use super::common::{Conn, Origin, Reply, get as ask, serve, serve_with, until};
use super::scraped::Scraped;

#[test]
fn health_is_counted_with_its_reasons() {
    let (bad, good) = (Origin::new(|_, _| Reply::Status(500)), Origin::named("good"));
    let served = serve(&format!(
        "good = server(\"good\", addr=\"{}\")\n\
         checked = lb.first([good], name=\"checked\", health=health.http(\"/\", interval=50*ms))\n\
         apps = lb.first([server(\"bad\", addr=\"{}\"), good], name=\"apps\", eject=eject(consecutive=2, base=100*s))\n\
         listen(\"127.0.0.1:0\", route([(when(path=\"/checked\"), checked)], otherwise=apps))",
        good.addr, bad.addr
    ));
    let begun = Scraped::new(&served);
    assert_eq!(begun.sum("weir_target_eligible", "pool=\"apps\""), 2.0);
    until(|| {
        ask(&served.addr, "/");
        Scraped::new(&served).get("weir_target_eligible{pool=\"apps\",target=\"bad\"}") == 0.0
    });
    let now = Scraped::new(&served);
    let ejections = now.all("weir_ejections_total");
    assert_eq!(
        ejections,
        [("pool=\"apps\",target=\"bad\",reason=\"ejected_consecutive\"".to_owned(), 1.0)].into()
    );
    let state = |state: &str| now.get(&format!("weir_targets{{pool=\"apps\",state=\"{state}\"}}"));
    assert_eq!([state("eligible"), state("ejected"), state("down")], [1.0, 1.0, 0.0]);
    assert_eq!(now.get("weir_panic{pool=\"apps\"}"), 0.0);
    let out = "weir_target_out_seconds_total{pool=\"apps\",target=\"bad\",reason=\"ejected_consecutive\"}";
    let before = now.get(out);
    until(|| Scraped::new(&served).get(out) > before);
    until(|| {
        Scraped::new(&served)
            .sum("weir_health_checks_total", "pool=\"checked\",target=\"good\",result=\"passed\"")
            > 1.0
    });
}

/// A target that is ejected has no share, one that a reload adds that of its ramp, any other the whole.
#[test]
fn the_share_of_each_target_is_said() {
    let (bad, good) = (Origin::new(|_, _| Reply::Status(500)), Origin::named("good"));
    let text = |more: &str| {
        format!(
            "listen(\"127.0.0.1:0\", lb.round_robin([server(\"bad\", addr=\"{}\"), server(\"good\", addr=\"{}\"){more}], \
               name=\"apps\", eject=eject(consecutive=2, base=100*s), slow_start=slow_start(3600*s, min_weight=0.25)))",
            bad.addr, good.addr
        )
    };
    let served = serve(&text(""));
    let share = |target: &str| {
        let series = format!("weir_target_share_ratio{{pool=\"apps\",target=\"{target}\"}}");
        Scraped::new(&served).0.get(&series).copied()
    };
    assert_eq!([share("bad"), share("good")], [Some(1.0); 2], "no ramp begins at the start");
    until(|| {
        ask(&served.addr, "/");
        share("bad") == Some(0.0)
    });
    served.reload(&text(&format!(", server(\"new\", addr=\"{}\")", good.addr)));
    until(|| share("new") == Some(0.25));
    assert_eq!([share("bad"), share("good")], [Some(0.0), Some(1.0)]);
}

#[test]
fn a_budget_hedges_and_rates_are_counted() {
    let slow = Origin::new(|n, _| match n {
        0 => Reply::After(60_000, Box::new(Reply::Close)),
        _ => Reply::Ok("x".to_owned()),
    });
    let served = serve(&format!(
        "listen(\"127.0.0.1:0\", route([\n\
           (when(path=\"/hedge\"), hedge(5*ms, server(\"s\", addr=\"{}\"), name=\"twice\", \
             budget=budget(ratio=0.0, min_per_s=0.1, window=10*s))),\n\
         ], otherwise=limit.rate(respond(200), 0.001, burst=2, name=\"few\")))",
        slow.addr
    ));
    assert_eq!(Scraped::new(&served).get("weir_budget_tokens{node=\"twice\"}"), 1.0);
    assert_eq!(ask(&served.addr, "/hedge").status, 200);
    let now = Scraped::new(&served);
    assert_eq!(now.get("weir_hedges_total{node=\"twice\",won=\"true\"}"), 1.0);
    assert!(now.get("weir_budget_tokens{node=\"twice\"}") < 0.5);
    assert_eq!(now.get("weir_limited_total{node=\"few\"}"), 0.0);
    let statuses: Vec<u16> = (0..4).map(|_| ask(&served.addr, "/").status).collect();
    assert_eq!(statuses, [200, 200, 429, 429]);
    assert_eq!(Scraped::new(&served).get("weir_limited_total{node=\"few\"}"), 2.0);
}

#[test]
fn handshakes_and_certificates_are_counted() {
    let authority = Authority::new("metrics");
    let words = authority.words(&["a.test"]);
    let served =
        serve(&format!("listen(\"127.0.0.1:0\", respond(200), name=\"tls\", tls=tls.server({words}))"));
    assert_eq!(ask(&served.addr, "/").status, 400, "cleartext");
    let cleartext = "weir_tls_handshakes_total{listener=\"tls\",result=\"cleartext\"}";
    until(|| Scraped::new(&served).get(cleartext) == 1.0);
    let now = Scraped::new(&served);
    let until_s: Vec<f64> = now.each("weir_tls_certificate_not_after_seconds").map(|(_, at)| at).collect();
    assert!(matches!(until_s[..], [at] if at > now.get("process_start_time_seconds")), "{until_s:?}");
}

/// Many connections over many loops: each counts for itself, and nothing is lost between them.
#[test]
fn threads_add_up() {
    let origin = Origin::named("a");
    let text = format!(
        "listen(\"127.0.0.1:0\", lb.p2c([server(\"a\", addr=\"{0}\"), server(\"b\", addr=\"{0}\")], name=\"apps\"), name=\"edge\")",
        origin.addr
    );
    let served = serve_with(&text, 4, false);
    let mut conns: Vec<Conn> = (0..40).map(|_| Conn::new(&served.addr)).collect();
    for _ in 0..5 {
        conns.iter_mut().for_each(|conn| assert_eq!(conn.get("/", "").status, 200));
    }
    let ok = "weir_requests_total{listener=\"edge\",method=\"GET\",code=\"200\",protocol=\"1.1\"}";
    // A loop counts a request once its answer is sent, which the client may see before.
    until(|| Scraped::new(&served).get(ok) == 200.0);
    let now = Scraped::new(&served);
    assert_eq!(now.sum("weir_attempts_total", "outcome=\"ok\""), 200.0);
    assert_eq!(now.get("weir_connections{listener=\"edge\",state=\"idle\"}"), 40.0);
    assert_eq!(now.all("weir_loop_busy_ratio").len(), 4);
    drop(conns);
    until(|| {
        Scraped::new(&served).get("weir_connections_closed_total{listener=\"edge\",reason=\"client\"}")
            == 40.0
    });
}

/// The series of a target end with it.
#[test]
fn a_target_that_is_removed_has_no_series() {
    let origin = Origin::named("a");
    let text = format!(
        "listen(\"127.0.0.1:0\", \
           lb.round_robin([server(\"a\", addr=\"{0}\"), server(\"b\", addr=\"{0}\")], name=\"apps\"))",
        origin.addr
    );
    let served = serve(&text);
    (0..4).for_each(|_| assert_eq!(ask(&served.addr, "/").status, 200));
    until(|| Scraped::new(&served).sum("weir_attempts_total", "target=\"b\"") == 2.0);
    let one = format!(
        "listen(\"127.0.0.1:0\", lb.round_robin([server(\"a\", addr=\"{}\")], name=\"apps\"))",
        origin.addr
    );
    served.reload(&one);
    assert_eq!(Scraped::new(&served).get("weir_config_generation"), 1.0);
    until(|| Scraped::new(&served).0.keys().all(|series| !series.contains("target=\"b\"")));
    assert_eq!(Scraped::new(&served).sum("weir_attempts_total", "target=\"a\""), 2.0);
}
