//! The indexed rules against the list of them, and the work that they cost.

use super::RuleTable;
use std::cell::Cell;
use std::net::IpAddr;
use weir_plan::{MatchInput, RouteCondition};
use weir_testkit::{CountingAllocator, Random};

/// A request that counts what is asked of it.
#[derive(Clone, Debug, Default)]
struct Request {
    method: &'static str,
    path: String,
    host: Option<String>,
    headers: Vec<(&'static str, String)>,
    client: Option<IpAddr>,
    names: Vec<&'static str>,
    asked: Cell<usize>,
}

impl Request {
    fn count(&self) {
        self.asked.set(self.asked.get() + 1);
    }
}

impl MatchInput for Request {
    fn method(&self) -> &[u8] {
        self.count();
        self.method.as_bytes()
    }

    fn path(&self) -> &[u8] {
        self.count();
        self.path.as_bytes()
    }

    fn host(&self) -> Option<&[u8]> {
        self.count();
        self.host.as_deref().map(str::as_bytes)
    }

    fn has(&self, name: &str, fits: &dyn Fn(&[u8]) -> bool) -> bool {
        self.count();
        self.headers.iter().any(|(n, value)| *n == name && fits(value.as_bytes()))
    }

    fn client(&self) -> Option<IpAddr> {
        self.count();
        self.client
    }

    fn has_client_name(&self, fits: &dyn Fn(&[u8]) -> bool) -> bool {
        self.count();
        self.names.iter().any(|name| fits(name.as_bytes()))
    }
}

/// What the list says.
fn listed(rules: &[RouteCondition], request: &Request) -> Option<usize> {
    rules.iter().position(|rule| rule.matches(request))
}

const PATHS: [&str; 22] = [
    "*",
    "/*",
    "/",
    "/a",
    "/a*",
    "/a/*",
    "/a/b",
    "/a/b*",
    "/a/b/c/*",
    "/b",
    "/~z",
    "/~*",
    "/a%2Fb",
    "/a%2F*",
    "/a%C*",
    "/caf%C3%A9*",
    "/%",
    "/b.",
    "h:1",
    "h*",
    "",
    "/a//*",
];
const TARGETS: [&str; 24] = [
    "*",
    "/",
    "/a",
    "/A",
    "/a/",
    "/a/b",
    "/a/b/c",
    "/a/b/c/",
    "/%61",
    "/a%2fb",
    "/a%2Fb/c",
    "/a%c3",
    "/caf%c3%a9/x",
    "/caf%C3",
    "/~z",
    "/%7Ez",
    "/%7ez/",
    "/%",
    "/%zz",
    "h:1",
    "",
    "/b.",
    "/a//b",
    "/bb",
];
const HOSTS: [&str; 12] = [
    "example.com",
    "*.example.com",
    "a.example.com",
    "*.a.example.com",
    "com",
    "*.com",
    "[::1]",
    "10.0.0.1",
    "x",
    "xx",
    "*.x",
    "é",
];
const SENT_HOSTS: [&str; 18] = [
    "example.com",
    "EXAMPLE.com.",
    "example.com..",
    "a.example.com",
    "A.b.Example.COM",
    ".example.com",
    "com",
    ".com",
    "",
    ".",
    "[::1]",
    "10.0.0.1",
    "x",
    "X.",
    "xx",
    "y.x",
    "é",
    "É",
];
const NETWORKS: [&str; 11] = [
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.3",
    "0.0.0.0/0",
    "::/0",
    "2001:db8::/32",
    "::ffff:10.0.0.0/104",
    "192.168.0.0/17",
    "10.0.0.1/8",
    "not a network",
    "2001:db8::1",
];
const CLIENTS: [&str; 9] = [
    "10.1.2.3",
    "10.2.0.1",
    "11.0.0.1",
    "::ffff:10.1.2.3",
    "::1",
    "2001:db8::1",
    "2001:db9::",
    "192.168.127.1",
    "192.168.128.1",
];
const VALUES: [&str; 9] = ["", "*", "gold", "gold*", "Gold", "g*", "golden*", "silver", "**"];
const SENT_VALUES: [&str; 8] = ["", "gold", "golden", "Gold", "g", "silver", "*", "*x"];
const METHODS: [&str; 5] = ["GET", "get", "POST", "OPTIONS", "CONNECT"];
const FIELDS: [&str; 3] = ["x-tier", "host", "accept"];

fn some(random: &mut Random, of: &[&str], percent: usize) -> Vec<String> {
    let count = if random.percent(percent) { 1 + random.below(3) } else { 0 };
    (0..count).map(|_| random.choose(of).to_owned()).collect()
}

/// A condition; with `numbered` its host, path or value is often one of many, as in a large table.
fn condition(random: &mut Random, percent: usize, numbered: bool) -> RouteCondition {
    let values = some(random, &VALUES, percent).into_iter();
    let mut rule = RouteCondition {
        path: some(random, &PATHS, percent),
        method: some(random, &METHODS, percent / 2),
        host: some(random, &HOSTS, percent),
        header: values.map(|value| (random.choose(&FIELDS).to_owned(), value)).collect(),
        client: some(random, &NETWORKS, percent / 2),
        client_name: some(random, &VALUES, percent / 3),
    };
    if numbered {
        let number = random.below(12);
        match random.below(4) {
            0 => rule.host.push(format!("h{number}.example.com")),
            1 => rule.path.push(format!("/p{number}/*")),
            2 => rule.header.push(("x-tier".to_owned(), format!("v{number}"))),
            _ => {}
        }
    }
    rule
}

fn request(random: &mut Random) -> Request {
    let number = random.below(12);
    let values: Vec<String> = (0..random.below(4))
        .map(|_| match random.percent(30) {
            true => format!("v{number}"),
            false => random.choose(&SENT_VALUES).to_owned(),
        })
        .collect();
    let host = match random.below(3) {
        0 => format!("H{number}.example.com"),
        _ => random.choose(&SENT_HOSTS).to_owned(),
    };
    let path = match random.below(3) {
        0 => format!("/p{number}/a"),
        _ => random.choose(&TARGETS).to_owned(),
    };
    Request {
        method: METHODS[random.below(METHODS.len())],
        path,
        host: random.percent(90).then_some(host),
        headers: values.into_iter().map(|value| (FIELDS[random.below(FIELDS.len())], value)).collect(),
        client: random.percent(80).then(|| random.choose(&CLIENTS).parse().unwrap()),
        names: (0..random.below(3)).map(|_| SENT_VALUES[random.below(SENT_VALUES.len())]).collect(),
        asked: Cell::default(),
    }
}

/// A million requests to tables of mixed kinds: duplicates, several values, case, final dots, escapes, targets that
/// are no paths, conditions that are empty, and tables that are.
#[test]
fn the_index_decides_as_the_list_does() {
    let mut random = Random::new(43);
    let (mut hits, mut late) = (0, 0);
    for round in 0..20_000 {
        let (percent, count) = ([6, 15, 30, 60][round % 4], [9, 30, 100, 3][round / 4 % 4]);
        let numbered = random.percent(70);
        let mut rules: Vec<RouteCondition> =
            (0..random.below(count + 1)).map(|_| condition(&mut random, percent, numbered)).collect();
        if percent < 30 && random.percent(80) {
            rules.retain(|rule| !rule.is_empty());
        }
        for _ in 0..random.below(1 + rules.len() / 2) {
            let (from, to) = (random.below(rules.len()), random.below(rules.len()));
            rules.insert(to, rules[from].clone());
        }
        let table = RuleTable::new(&rules);
        for _ in 0..50 {
            let request = request(&mut random);
            let want = listed(&rules, &request);
            assert_eq!(table.first(&request), want, "round {round}: {request:?} {rules:#?}");
            hits += usize::from(want.is_some());
            late += usize::from(want.is_some_and(|rule| rule >= 8));
        }
    }
    assert!(hits > 300_000 && hits < 900_000 && late > 50_000, "{hits} matched, {late} a later rule");
}

/// The conditions of a large table, and the request that the last one matches.
type Shape = (&'static str, fn(usize, usize) -> RouteCondition, fn(usize) -> Request);

fn plain() -> Request {
    Request { method: "GET", path: "/".to_owned(), ..Request::default() }
}

fn host(i: usize) -> RouteCondition {
    RouteCondition { host: vec![format!("h{i}.example")], ..RouteCondition::default() }
}

fn path(i: usize) -> RouteCondition {
    RouteCondition { path: vec![format!("/p{i}/*")], ..RouteCondition::default() }
}

fn header(i: usize) -> RouteCondition {
    RouteCondition { header: vec![("x-t".to_owned(), format!("v{i}"))], ..RouteCondition::default() }
}

fn asked(i: usize) -> Request {
    Request {
        path: format!("/p{i}/x"),
        host: Some(format!("h{i}.example")),
        headers: vec![("x-t", format!("v{i}"))],
        client: Some(IpAddr::from([10, 0, (i >> 8) as u8, i as u8])),
        ..plain()
    }
}

const SHAPES: [Shape; 10] = [
    ("paths", |i, _| path(i), asked),
    ("hosts", |i, _| host(i), asked),
    ("headers", |i, _| header(i), asked),
    (
        "networks",
        |i, _| RouteCondition {
            client: vec![format!("10.0.{}.{}", i >> 8, i & 255)],
            ..RouteCondition::default()
        },
        asked,
    ),
    ("by turns", |i, _| [host, path, header][i % 3](i), asked),
    ("one path, many headers", |i, _| RouteCondition { path: vec!["/*".to_owned()], ..header(i) }, asked),
    (
        "one host, many paths",
        |i, _| RouteCondition { host: vec!["H".to_owned()], ..path(i) },
        |i| Request { host: Some("h".to_owned()), ..asked(i) },
    ),
    (
        "hosts by paths",
        |i, all| {
            let side = all.isqrt();
            RouteCondition { host: host(i / side).host, ..path(i % side) }
        },
        |last| {
            let side = (last + 1).isqrt();
            Request { host: Some(format!("h{}.example", last / side)), ..asked(last % side) }
        },
    ),
    (
        "one rule of many hosts among others",
        |i, all| match i + 1 == all {
            true => RouteCondition { host: (0..all).map(|n| format!("h{n}.example")).collect(), ..path(i) },
            false => path(i),
        },
        asked,
    ),
    (
        "one rule of many hosts and paths behind others",
        |i, all| match i + 1 == all {
            true => RouteCondition {
                host: (0..all).map(|n| format!("h{n}.example")).collect(),
                path: (0..all).map(|n| format!("/p{n}/*")).collect(),
                ..RouteCondition::default()
            },
            false => header(i),
        },
        asked,
    ),
];

/// The last of 10,000 rules is found with as many questions to the request as that of 100, and none allocates.
#[test]
fn the_last_of_many_rules_costs_what_that_of_few_does() {
    for (what, rule, request) in SHAPES {
        let work = |all: usize| {
            let rules: Vec<RouteCondition> = (0..all).map(|i| rule(i, all)).collect();
            let (table, request) = (RuleTable::new(&rules), request(all - 1));
            assert_eq!(listed(&rules, &request), Some(all - 1), "{what}");
            request.asked.set(0);
            let before = CountingAllocator::count();
            assert_eq!(table.first(&request), Some(all - 1), "{what}");
            assert_eq!(CountingAllocator::count(), before, "{what}");
            request.asked.get()
        };
        let (few, many) = (work(100), work(10_000));
        assert!(many <= few && many <= 16, "{what}: {few} questions among 100, {many} among 10,000");
    }
}

/// Ten times as many rules take about ten times as many allocations to index: work is not squared.
#[test]
fn an_index_is_made_with_work_in_proportion_to_the_rules() {
    let many: fn(usize, usize) -> RouteCondition = |i, _| {
        let hosts = (0..9).map(|n| format!("h{}.example", (i + n) % 50)).collect();
        RouteCondition {
            host: hosts,
            path: (0..9).map(|n| format!("/p{}", (i * 7 + n) % 40)).collect(),
            ..header(i % 6)
        }
    };
    for (what, rule) in
        SHAPES.map(|(what, rule, _)| (what, rule)).into_iter().chain([("overlapping lists", many)])
    {
        let work = |all: usize| {
            let rules: Vec<RouteCondition> = (0..all).map(|i| rule(i, all)).collect();
            let before = CountingAllocator::count();
            drop(RuleTable::new(&rules));
            CountingAllocator::count() - before
        };
        let (few, many) = (work(1000), work(10_000));
        assert!(many <= 13 * few, "{what}: {few} allocations for 1,000 rules, {many} for 10,000");
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
