//! The examples of the functions: each a whole file, which `weir help` and `docs/reference.md` show and a test runs.

pub(crate) const QUEUE: &str = r#"def app():
    work = delay(dist.exponential(20*ms), server("app"))
    return queue(work, concurrency = 2, capacity = 50, timeout = 500*ms)

apps = pool(3, app)
front = lb.random(apps)
scenario("main", front, traffic.poisson(rate = 200), requests = 5000)
"#;

pub(crate) const FLEET: &str = r#"def app():
    work = delay(dist.exponential(20*ms), server("app"))
    return queue(work, concurrency = 2)

apps = fleet(8, app)
front = lb.least_conn(apps)
users = traffic.poisson(rate = 400)
week = [
    change.join(apps, at = 7*s, k = 2),
    change.leave(apps, at = 9*s),
    change.unlist(apps, at = 10*s, lasts = 2*s, share = 0.5),
    change.rolling(apps, at = 13*s, batch = 2),
    change.scale(apps, at = 18*s, to = 4),
]
scenario("main", front, users, requests = 10000, events = week)
"#;

pub(crate) const LIFE: &str = r#"def app():
    work = delay(dist.exponential(20*ms), server("app"))
    return queue(work, concurrency = 4)

process = life(boot = dist.uniform(10*s, 20*s), drain = 5*s)
apps = fleet(8, app, life = process)
front = lb.least_conn(apps)
acts = [
    change.rolling(apps, at = 9*s, first = "in_place", wait = "running"),
    change.down(apps, at = 20*s, lasts = 5*s, k = 2),
    change.set(apps, at = 40*s, lasts = 9*s, k = 1, state = "drain"),
]
users = traffic.poisson(rate = 400)
scenario("main", front, users, duration = 3*minutes, events = acts)
"#;

pub(crate) const FIND_FILE: &str = r#"def app():
    return server("app", model = 20*ms)

apps = find.file("servers.json", app, size = 4)
web = listen("127.0.0.1:8080", lb.p2c(apps))
scenario("main", web, traffic.poisson(rate = 50), requests = 5000)
"#;

pub(crate) const FIND_DNS: &str = r#"def app():
    return server("app", model = 20*ms)

apps = find.dns("app.internal", app, port = 8080, size = 4)
web = listen("127.0.0.1:8080", lb.p2c(apps))
scenario("main", web, traffic.poisson(rate = 50), requests = 5000)
"#;

pub(crate) const FIND_EUREKA: &str = r#"def app():
    return server("app", model = 20*ms)

registry = ["http://10.0.0.2:8761/eureka", "http://10.0.0.3:8761/eureka"]
apps = find.eureka(registry, "SHOP", app, size = 4)
web = listen("127.0.0.1:8080", lb.p2c(apps))
scenario("main", web, traffic.poisson(rate = 50), requests = 5000)
"#;

pub(crate) const FIND_CONSUL: &str = r#"def app():
    return server("app", model = 20*ms)

apps = find.consul("http://127.0.0.1:8500", "shop", app, size = 4)
web = listen("127.0.0.1:8080", lb.p2c(apps))
scenario("main", web, traffic.poisson(rate = 50), requests = 5000)
"#;

pub(crate) const FIND_KUBERNETES: &str = r#"def app():
    return server("app", model = 20*ms)

apps = find.kubernetes("shop", app, port = "http", size = 4)
web = listen("127.0.0.1:8080", lb.p2c(apps))
scenario("main", web, traffic.poisson(rate = 50), requests = 5000)
"#;

pub(crate) const EDGE: &str = r#"work = dist.exponential(20*ms)
apps = pool(2, lambda i: server("app%d" % i, model = work))
limits = http(max_body = 1*MiB, access_log = "stdout")
web = listen("127.0.0.1:8080", lb.least_conn(apps), http = limits)
scenario("main", web, traffic.poisson(rate = 50), requests = 5000)
"#;

pub(crate) const ORIGIN: &str = r#"def app(i):
    return server(
        "app%d" % i,
        addr = "10.0.0.%d:8000" % i,
        model = dist.exponential(20*ms),
        connect_timeout = 500*ms,
    )

apps = lb.least_conn([app(1), app(2)])
scenario("main", apps, traffic.poisson(rate = 50), requests = 5000)
"#;

pub(crate) const ROUTES: &str = r#"app = server("api", model = 10*ms)
api = rewrite(app, path = ("/api/", "/"), set = {"x-client": "{client}"})
rules = [
    (when(path = "/old/*"), redirect("https://{host}/new")),
    (when(path = "/api/*", method = ["GET", "POST"]), buffered(api, 64*KiB)),
]
edge = route(rules, otherwise = respond(404, body = "not here"))
kinds = [(9, request(path = "/api/users")), (1, request(path = "/old/page"))]
users = traffic.mix(traffic.poisson(rate = 100), kinds)
scenario("main", edge, users, requests = 5000)
"#;

pub(crate) const RETRY: &str = r#"def app():
    work = delay(dist.exponential(20*ms), server("app"))
    return faulty(60*s, 5*s, queue(work))

apps = lb.least_conn(pool(5, app))
spare = budget(ratio = 0.1)
tries = retry(3, timeout(1*s, apps), backoff = 10*ms, budget = spare)
scenario("main", tries, traffic.poisson(rate = 50), requests = 10000)
"#;

pub(crate) const HEDGE: &str = r#"def app():
    return queue(delay(dist.exponential(20*ms), server("app")))

apps = lb.p2c(pool(10, app))
hedged = hedge(80*ms, apps)
scenario("main", hedged, traffic.poisson(rate = 150), requests = 5000)
"#;

pub(crate) const RATE: &str = r#"app = server("app", model = 5*ms)
limited = limit.rate(app, 100, burst = 20)
scenario("main", limited, traffic.poisson(rate = 120), requests = 5000)
"#;

pub(crate) const SPLIT: &str = r#"def version(name, work):
    return queue(delay(dist.exponential(work), server(name)), concurrency = 8)

canary = split([(95, version("v1", 20*ms)), (5, version("v2", 15*ms))])
scenario("main", canary, traffic.poisson(rate = 200), requests = 5000)
"#;

pub(crate) const POLICIES: &str = r#"def app():
    return queue(delay(dist.exponential(10*ms), server("app")))

big = queue(delay(dist.exponential(5*ms), server("big")))
apps = pool(9, app) + [weight(2, big)]

def run(name, balancer):
    scenario(name, balancer, traffic.poisson(rate = 700), requests = 5000)

run("random", lb.random(apps))
run("round_robin", lb.round_robin(apps))
run("least_conn", lb.least_conn(apps))
run("p2c", lb.p2c(apps))
run("peak_ewma", lb.peak_ewma(apps))
run("zuul", lb.zuul(apps))
run("prequal", lb.prequal(apps))
run("first", lb.first(apps, max_in_flight = 2))
"#;

pub(crate) const SUBSETS: &str = r#"def app():
    return queue(delay(dist.exponential(20*ms), server("app")))

def front(name, subset_of_loop):
    balancer = lb.least_conn(pool(128, app), subset = subset_of_loop)
    web = listen("127.0.0.1:0", balancer, loops = 16)
    scenario(name, web, traffic.poisson(rate = 5000), requests = 20000)

front("loops", subset.loops(min = 10, max = 20))
front("random", subset.random(16))
front("rendezvous", subset.rendezvous(16))
front("deterministic", subset.deterministic(16))
front("ringsteady", subset.ringsteady(16))
"#;

pub(crate) const SCOPES: &str = r#"def app():
    return queue(delay(dist.exponential(20*ms), server("app")))

def front(name, known):
    balancer = lb.p2c(pool(64, app), scope = known)
    web = listen("127.0.0.1:0", balancer, loops = 16)
    scenario(name, web, traffic.poisson(rate = 2500), requests = 20000)

front("alone", "loop")
front("late", lagged(10*ms))
front("at once", "process")
"#;

pub(crate) const HASHED: &str = r#"def app():
    return queue(delay(dist.exponential(10*ms), server("app")))

apps = pool(10, app)
user = request(key = keys.zipf(1000, 0.8))
users = traffic.mix(traffic.poisson(rate = 400), [(1, user)])

def run(name, balancer):
    scenario(name, balancer, users, requests = 5000)

run("ring", lb.ring_hash(apps, key = key.header("x-user")))
run("ring_bound", lb.ring_hash(apps, bound = 1.25))
run("maglev", lb.maglev(apps))
run("maglev_bound", lb.maglev(apps, bound = 1.25))
"#;

pub(crate) const KEYS: &str = r#"def run(name, of):
    limited = limit.rate(server("app", model = 5*ms), 2, burst = 5, key = of)
    user = request(path = "/cart", key = keys.uniform(100))
    users = traffic.mix(traffic.poisson(rate = 200), [(1, user)])
    scenario(name, limited, users, requests = 5000)

run("by_client", key.client())
run("by_cookie", key.cookie("session"))
run("by_path", key.path())
run("by_nothing", None)
"#;

pub(crate) const LEAST_WORK: &str = r#"def app():
    return queue(delay(dist.exponential(10*ms), server("app")))

best = lb.least_work(pool(10, app))
"#;

pub(crate) const HEALTH: &str = r#"def app():
    work = queue(delay(dist.exponential(20*ms), server("app")))
    return faulty(30*s, 10*s, work, mode = "blackhole")

checked = lb.least_conn(
    pool(5, app),
    health = health.http("/healthz", interval = 1*s),
    slow_start = slow_start(10*s),
)
limited = timeout(1*s, checked)
scenario("main", limited, traffic.poisson(rate = 50), requests = 10000)
"#;

pub(crate) const HEALTH_TCP: &str = r#"def app():
    work = queue(delay(dist.exponential(20*ms), server("app")))
    return faulty(30*s, 10*s, work, mode = "crash")

checked = lb.least_conn(pool(5, app), health = health.tcp(interval = 500*ms))
limited = timeout(1*s, checked)
scenario("main", limited, traffic.poisson(rate = 50), requests = 10000)
"#;

pub(crate) const EJECT: &str = r#"def app():
    work = queue(delay(dist.exponential(20*ms), server("app")))
    return faulty(30*s, 10*s, work)

apps = lb.least_conn(pool(5, app), eject = eject(consecutive = 3, base = 5*s))
scenario("main", apps, traffic.poisson(rate = 50), requests = 10000)
"#;

pub(crate) const OUTLIER: &str = r#"def app(i):
    work = queue(delay(dist.exponential(20*ms), server("app%d" % i)))
    return flaky(0.3 if i == 0 else 0.001, work)

apps = lb.least_conn(pool(10, app), eject = outlier(interval = 5*s))
scenario("main", apps, traffic.poisson(rate = 300), requests = 20000)
"#;

pub(crate) const CABLE: &str = r#"app = queue(delay(dist.exponential(5*ms), server("app")))
near = cable(1*ms, app)
lossy = cable(dist.uniform(1*ms, 3*ms), app, loss = 0.01, resend = 200*ms)
scenario("near", near, traffic.poisson(rate = 100), requests = 5000)
scenario("lossy", lossy, traffic.poisson(rate = 100), requests = 5000)
"#;

pub(crate) const CONCURRENT: &str = r#"app = concurrent(dist.exponential(20*ms), cores = 4, contention = 0.01)
scenario("main", app, traffic.poisson(rate = 100), requests = 5000)
"#;

pub(crate) const WARMUP: &str = r#"work = queue(delay(dist.exponential(10*ms), server("app")))
cold = warmup(work, 5, requests = 1000)
steady = traffic.poisson(rate = 60)
scenario("main", cold, steady, requests = 5000, window = "all")
"#;

pub(crate) const GATE: &str = r#"def app():
    work = delay(dist.exponential(20*ms), server("app"))
    cold = warmup(work, 5, requests = 1000)
    return gate(queue(cold, concurrency = 4), ramp = 30*s)

apps = fleet(4, app)
check = health.http("/health", interval = 1*s, rise = 1, initial = "checked")
routers = pool(4, lambda: lb.round_robin(apps, health = check))
top = lb.random(routers)
users = traffic.poisson(rate = 100)
deploy = change.rolling(apps, at = 20*s, every = 10*s)
scenario("main", top, users, duration = 2*minutes, events = [deploy])
"#;

pub(crate) const FAULTY: &str = r#"def app(mode):
    work = queue(delay(dist.exponential(20*ms), server("app")))
    return faulty(60*s, dist.fixed(5*s), work, mode = mode)

for mode in ["refuse", "crash", "slow"]:
    apps = lb.least_conn(pool(5, lambda: app(mode)))
    scenario(mode, apps, traffic.poisson(rate = 50), requests = 10000)
"#;

pub(crate) const BLOCK: &str = r#"def rack():
    work = dist.exponential(20*ms)
    apps = pool(5, lambda: queue(delay(work, server("app"))))
    return block(60*s, 5*s, apps)

apps = lb.least_conn(rack() + rack())
tries = retry(3, apps)
scenario("main", tries, traffic.poisson(rate = 100), requests = 10000)
"#;

pub(crate) const FLAKY: &str = r#"app = flaky(0.01, queue(delay(dist.exponential(20*ms), server("app"))))
scenario("main", app, traffic.poisson(rate = 20), requests = 5000)
"#;

pub(crate) const SEQUENCE: &str = r#"def call(name):
    work = delay(dist.exponential(10*ms), server(name))
    return queue(work, concurrency = 10)

parts = fanout([call("cart"), call("stock"), call("ads")], need = 2)
page = sequence([call("session"), parts])
scenario("main", page, traffic.poisson(rate = 200), requests = 5000)
"#;

pub(crate) const PARAM: &str = r#"servers = param("servers", 4, sweep = [3, 4, 6])

def app():
    return queue(delay(dist.exponential(20*ms), server("app")))

apps = lb.least_conn(pool(servers, app))
scenario("main", apps, traffic.poisson(rate = 120), requests = 5000)
"#;

pub(crate) const TRAFFIC: &str = r#"app = queue(delay(dist.exponential(8*ms), server("app")))

def run(name, requests):
    scenario(name, app, requests, requests = 5000)

run("constant", traffic.constant(rate = 100))
run("poisson", traffic.poisson(rate = 100))
run("renewal", traffic.renewal(dist.lognormal(10*ms, 2.0)))
run("mmpp", traffic.mmpp([(80, 1*s), (115, 200*ms)]))
run("schedule", traffic.schedule([(0*s, 20), (30*s, 110)], repeat = True))
"#;

pub(crate) const CLOSED: &str = r#"app = queue(delay(dist.exponential(20*ms), server("app")))
users = traffic.closed(20, think = dist.exponential(1*s))
scenario("main", app, users, requests = 5000)
"#;

pub(crate) const TRACE: &str = r#"# A file requests.csv with: arrival_ms,method,path
app = queue(delay(dist.exponential(20*ms), server("app")))
recorded = traffic.trace("requests.csv")
scenario("main", app, recorded, requests = 200, window = "all")
"#;

pub(crate) const DIST: &str = r#"def run(name, work):
    app = queue(delay(work, server("app")))
    scenario(name, app, traffic.poisson(rate = 30), requests = 5000)

run("fixed", dist.fixed(20*ms))
run("exponential", dist.exponential(20*ms))
run("uniform", dist.uniform(10*ms, 30*ms))
run("lognormal", dist.lognormal(20*ms, 1.5))
run("pareto", dist.pareto(10*ms, 2.0))
run("erlang", dist.erlang(3, 20*ms))
run("hyperexponential", dist.hyperexponential([(0.9, 10*ms), (0.1, 110*ms)]))
run("empirical", dist.empirical([12*ms, 18*ms, 30*ms]))
run("sum", dist.sum(5*ms, dist.exponential(15*ms)))
run("rounded", dist.rounded(dist.exponential(20*ms), 1*ms))
"#;

pub(crate) const TLS: &str = r#"origin = server(
    "app",
    addr = "app.example.com:443",
    tls = tls.client(ca = "ca.pem"),
    model = 20*ms,
)
secure = listen(":8443", origin, tls = tls.server("cert.pem", "key.pem"))
scenario("main", secure, traffic.poisson(rate = 50), requests = 5000)
"#;

/// The example of `expect`.
pub(crate) const EXPECT: &str = r#"app = queue(delay(dist.exponential(10*ms), server()), name = "desk")
scenario("main", app, traffic.poisson(rate = 50), requests = 20000)
expect("main", mean = ["<25ms", ">15ms"], p99 = "<150ms", success = ">=99.9%")
expect("main", errors = {"timeout": "<=0.001"})
expect("main", node = "desk", utilisation = "<0.6")
"#;
