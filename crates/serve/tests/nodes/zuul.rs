//! `lb.zuul`: loads that targets report, failures, targets that were not heard from.

use crate::common::{Conn, Origin, Reply, Response, RunningBalancer, get, serve_node, until};
use weir_serve::Exposition;

/// An origin that answers with these fields.
fn reporting(name: &'static str, fields: impl Fn(usize) -> String + Send + Sync + 'static) -> Origin {
    Origin::new(move |n, _| {
        let (fields, length) = (fields(n), name.len());
        Reply::Raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n{name}").into_bytes())
    })
}

fn server(name: &str, origin: &Origin) -> String {
    format!("server(\"{name}\", addr=\"{}\")", origin.addr)
}

/// The load in the metrics; `None`: there is none.
fn load(served: &RunningBalancer, target: &str) -> Option<f64> {
    let text = served.scrape(Exposition::Prometheus);
    let begin = format!("weir_target_load{{pool=\"apps\",target=\"{target}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&begin)).map(|value| value.parse().expect("a number"))
}

fn bodies(served: &RunningBalancer, n: usize) -> Vec<String> {
    let mut conn = Conn::new(&served.addr);
    (0..n).map(|_| conn.get("/", "").body).collect()
}

/// All forms of the field, and what is none: it changes nothing.
const FIELDS: &[(&str, f64)] = &[
    ("X-Load: 0.37\r\n", 0.37),
    ("X-Load: -1\r\n", 0.37),
    ("X-Load: NaN\r\n", 0.37),
    ("X-Load: \r\n", 0.37),
    ("", 0.37),
    ("X-Other: 0.5\r\n", 0.37),
    ("x-LOAD: 37, target=80\r\n", 0.37),
    ("X-Load: TEXT cpu_utilization=0.8,application_utilization=0.25\r\n", 0.25),
    ("X-Load: TEXT mem_utilization=0.8\r\n", 0.25),
    ("X-Load: 1e9\r\n", 1.0),
    ("X-Load: 0.5\r\nX-Load: 0.75\r\n", 0.5),
    ("X-Load: none\r\nX-Load: 0.75\r\n", 0.75),
    ("X-Load: 0\r\n", 0.0),
];

#[test]
pub fn all_forms_of_a_load_are_read() {
    let origin = reporting("a", |n| FIELDS.get(n).map_or(String::new(), |(fields, _)| (*fields).to_owned()));
    let served = serve_node(&format!("lb.zuul([{}], name=\"apps\")", server("a", &origin)));
    assert_eq!(load(&served, "a"), None, "none was reported");
    for (fields, want) in FIELDS {
        assert_eq!(get(&served.addr, "/").status, 200);
        let got = load(&served, "a").expect("a load");
        assert!((got - want).abs() < 1e-6, "{fields:?}: {got}");
    }
    // A field of 10 KB is none.
    let origin = reporting("a", |n| match n {
        0 => "x-busy: 0.5\r\n".to_owned(),
        _ => format!("x-busy: 0.2{}\r\n", "0".repeat(10_000)),
    });
    let served = serve_node(&format!("lb.zuul([{}], name=\"apps\", load=\"X-Busy\")", server("a", &origin)));
    assert_eq!((get(&served.addr, "/").status, get(&served.addr, "/").status), (200, 200));
    assert_eq!(load(&served, "a"), Some(0.5));
}

#[test]
pub fn the_less_loaded_is_taken() {
    let hot = reporting("hot", |_| "x-load: 0.9\r\n".to_owned());
    let cool = reporting("cool", |_| "x-load: 0.3\r\n".to_owned());
    let both = format!("[{}, {}]", server("hot", &hot), server("cool", &cool));
    let served = serve_node(&format!("lb.zuul({both}, name=\"apps\")"));
    bodies(&served, 40);
    assert!(hot.count() <= 1, "{} of 40", hot.count());
    // Beside an idle one that reports nothing: it is taken for less loaded, until it is above the limit of neither.
    let silent = Origin::named("silent");
    let three =
        format!("[{}, {}, {}]", server("hot", &hot), server("cool", &cool), server("silent", &silent));
    let served = serve_node(&format!("lb.zuul({three}, max_load=0.5, name=\"apps\")"));
    let before = hot.count();
    bodies(&served, 60);
    assert!(hot.count() <= before + 1, "above `max_load`");
    assert!(cool.count() > 0 && silent.count() > 0);
}

#[test]
pub fn what_fails_fast_is_left_alone() {
    let (bad, good) = (Origin::new(|_, _| Reply::Status(500)), Origin::named("good"));
    let both = format!("[{}, {}]", server("bad", &bad), server("good", &good));
    for scope in ["\"loop\"", "\"process\"", "lagged(10*ms)"] {
        let before = bad.count();
        let served = serve_node(&format!("lb.zuul({both}, scope={scope})"));
        bodies(&served, 60);
        assert!(bad.count() <= before + 1, "{scope}: {}", bad.count() - before);
    }
}

#[test]
pub fn what_hangs_behind_a_timeout_fails() {
    let hangs = Origin::new(|_, _| Reply::After(60_000, Box::new(Reply::Close)));
    let good = Origin::named("good");
    let both = format!("[{}, {}]", server("hangs", &hangs), server("good", &good));
    let served = serve_node(&format!("timeout(400*ms, lb.zuul({both}))"));
    // Until it was drawn first, of two that are equally unknown.
    (0..40).for_each(|_| _ = get(&served.addr, "/"));
    assert!(hangs.count() <= 2, "{}", hangs.count());
}

#[test]
pub fn an_unknown_target_gets_one_request_at_a_time() {
    let origins: Vec<Origin> = ["0", "1"]
        .map(|name| {
            Origin::new(move |_, head| match head.contains("/slow") {
                true => Reply::After(1_000, Box::new(Reply::Ok(name.into()))),
                false => Reply::Ok(name.into()),
            })
        })
        .into();
    let list = format!("[{}, {}]", server("0", &origins[0]), server("1", &origins[1]));
    let served = serve_node(&format!("lb.zuul({list})"));
    let mut slow = Conn::new(&served.addr);
    slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    until(|| origins.iter().any(|origin| origin.busy() == 1));
    let taken = origins.iter().position(|origin| origin.busy() == 1).expect("one is busy");
    let seen = bodies(&served, 20);
    assert!(seen.iter().all(|body| *body != taken.to_string()), "{taken}: {seen:?}");
}

/// Three at once in four slots: those that leave see two, one and none of the others.
#[test]
pub fn built_in_servers_report_what_is_busy() {
    let loads = |served: &RunningBalancer, name: &str| -> Vec<String> {
        let addr = &served.addr;
        let ask = || get(addr, "/");
        let answers: Vec<Response> = std::thread::scope(|scope| {
            let asks: Vec<_> = (0..3).map(|_| scope.spawn(ask)).collect();
            asks.into_iter().map(|ask| ask.join().expect("an answer")).collect()
        });
        let read = |answer: &Response| answer.header(name).unwrap_or("none").to_owned();
        let mut loads: Vec<String> = answers.iter().map(read).collect();
        loads.sort();
        loads
    };
    let slots = "queue(delay(500*ms, server(\"app\")), concurrency=4)";
    let served = serve_node(slots);
    assert_eq!(loads(&served, "x-load"), ["0", "0.25", "0.5"]);
    let served = serve_node(&format!("lb.zuul([{slots}], load=\"x-busy\", name=\"apps\")"));
    assert_eq!(loads(&served, "x-busy"), ["0", "0.25", "0.5"]);
    assert_eq!(load(&served, "app"), Some(0.0), "the last one");
    assert_eq!(get(&served.addr, "/").header("x-load"), None);
    let cores = "server(\"app\", model=concurrent(100*ms, cores=2))";
    let served = serve_node(cores);
    let seen = loads(&served, "x-load");
    assert_eq!((seen.len(), seen[0].as_str()), (3, "0"));
    // Without slots and cores there is nothing to report.
    assert_eq!(get(&serve_node("delay(1*ms, server(\"app\"))").addr, "/").header("x-load"), None);
}
