"""The sweeps: how each cost is measured at one size.

A sweep is a function from a size to figures of each curve: `{curve: {measure: number}}`, or `{"why": text}` where a contender
cannot. What is asked of contenders in rounds is asked of each in turn, and the median of the rounds counts.
"""
import dataclasses
import socket
import statistics
import subprocess
import time

import contenders
from contenders import KINDS, Plan, targets
from lab import ALL_CORES, HERE, Failure, request

MIB = 1 << 20
LONG_START_S = 3
WARM_S = 6  # at most, to reach every target once
BY_HAND = "by hand, in C"
FIRST = "weir, first of least"


@dataclasses.dataclass
class Run:
    """What all sweeps share."""

    lab: object
    rounds: int = 3
    seconds: float = 1.0
    proxies: tuple = ()  # the names of those that are installed

    def start(self, name, *args, **more):
        return KINDS[name](self.lab, *args, **more)


def guarded(measure, *args):
    """The figures, or why there are none."""
    try:
        return measure(*args)
    except (Failure, RuntimeError, subprocess.CalledProcessError) as why:
        return {"why": str(why)}


def loaded(run, proxy, head, **more):
    """One load with what it cost: CPU us for each request, and the load's own figures."""
    before = proxy.cpu_s()
    seen = run.lab.load(proxy.port, head, **more)
    spent = proxy.cpu_s() - before
    if seen["failed"] or not (seen["requests"] or seen["bytes"]):
        raise Failure(f"{seen['failed']} of {seen['failed'] + seen['requests']} requests failed: {seen['why'] or 'no answer'}")
    seen["cpu_s"] = spent
    return seen


def in_rounds(run, running, head, each, warm=1000, **more):
    """Rounds of load on all that run: the median of `each(seen)` by name. Before each round every target is reached once."""
    values, broken = {name: [] for name in running}, {}
    for _ in range(run.rounds):
        for name, proxy in running.items():
            if name in broken:
                continue
            try:
                loaded(run, proxy, head, requests=warm, seconds=WARM_S)
                values[name].append(each(loaded(run, proxy, head, seconds=run.seconds, **more)))
            except Failure as why:
                broken[name] = {"why": str(why)}
    return {name: broken.get(name) or {"cpu_us": statistics.median(values[name])} for name in running}


def per_request(seen):
    return seen["cpu_s"] / seen["requests"] * 1e6


def started(run, name, plan, head):
    """A running proxy and the time that it took to start: the median of rounds, unless they take long."""
    took = []
    while True:
        proxy = run.start(name, plan, head)
        took.append(proxy.start_s)
        if len(took) >= run.rounds or sum(took) > LONG_START_S:
            return proxy, statistics.median(took)
        proxy.close()


class Started:
    """Proxies that run at once, each with an origin of its own; they end with the `with`."""

    def __init__(self, run, plans, head=None):
        self.run, self.proxies, self.figures, self.origins = run, {}, {}, []
        for curve, (name, plan) in plans.items():
            origin, port = run.lab.origin()
            self.origins.append(origin)
            try:
                self.proxies[curve], start_s = started(run, name, plan(port), head)
                self.figures[curve] = {"start_s": start_s}
            except Failure as why:
                self.figures[curve] = {"why": str(why)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for proxy in self.proxies.values():
            proxy.close()
        self.run.lab.stop(self.origins)

    def note(self, figures):
        for curve, more in figures.items():
            self.figures[curve].update(more)


def per_target(run, n):
    """Round robin over n targets; of weir also the first of the least loaded, which opens no connection to the others."""
    plan = lambda port: Plan(targets(n, port))
    first = lambda port: Plan(targets(n, port), policy='lb.least_conn({}, name="apps", ties="first")')
    plans = {name: (name, plan) for name in run.proxies}
    plans[FIRST] = ("weir", first)
    with Started(run, plans) as started:
        for curve, proxy in started.proxies.items():
            started.figures[curve]["memory_mib"] = proxy.memory_mib()
        started.note(in_rounds(run, started.proxies, request(), per_request, warm=max(1000, n * 6 // 5)))
        for curve, proxy in started.proxies.items():
            started.figures[curve].update(used_mib=proxy.memory_mib(), descriptors=proxy.descriptors(),
                                          unkept=float(n * 1.05 > run.lab.descriptors))
        return started.figures


def by_route(kind):
    def measure(run, n):
        head = request(f"/p{n - 1}/64") if kind == "path" else request(host=f"h{n - 1}.example")
        plan = lambda port: Plan(targets(1, port), routes=(kind, n))
        with Started(run, {name: (name, plan) for name in run.proxies}, head) as started:
            started.note({curve: {"memory_mib": proxy.memory_mib()} for curve, proxy in started.proxies.items()})
            started.note(in_rounds(run, started.proxies, head, per_request))
            return started.figures
    return measure


def beside_idle(run, n):
    """A busy client's requests beside n others that have asked once."""
    plan = lambda port: Plan(targets(4, port))
    with Started(run, {name: (name, plan) for name in run.proxies}) as started:
        held = []
        for curve, proxy in list(started.proxies.items()):
            try:
                loaded(run, proxy, request(), requests=5000, seconds=10)
                before = proxy.memory_mib()
                if n:
                    held.append(run.lab.hold(proxy.port, request(), n))
                    time.sleep(0.3)
                    started.figures[curve]["client_kib"] = (proxy.memory_mib() - before) * 1024 / n
            except Failure as why:
                started.figures[curve] = {"why": str(why)}
                started.proxies.pop(curve).close()
        started.note(in_rounds(run, started.proxies, request(), per_request))
        run.lab.stop(held)
        return started.figures


def with_head(run, size):
    """Requests whose fields take `size` bytes: one in 256 bytes each."""
    fields = [f"X-Field-{i:03}: ".ljust(254, "a") for i in range(size // 256)]
    plan = lambda port: Plan(targets(4, port), big_heads=True)
    head = request(fields=fields)
    with Started(run, {name: (name, plan) for name in run.proxies}, head) as started:
        started.note(in_rounds(run, started.proxies, head, per_request))
        return started.figures


def with_body(upload):
    def measure(run, size):
        head = request("/2", body=size) if upload else request(f"/{size}")
        # What has passed counts, not which bodies are complete: the largest take a second each.
        each = lambda seen: seen["cpu_s"] * 1e6 / max(seen["requests"], seen["bytes"] / size)
        more = {"clients": 8, "upload": size if upload else 0}
        plan = lambda port: Plan(targets(4, port))
        with Started(run, {name: (name, plan) for name in run.proxies}) as started:
            values = {name: [] for name in started.proxies}
            for _ in range(run.rounds):
                for name, proxy in started.proxies.items():
                    values[name].append(guarded(lambda: {"cpu_us": each(loaded(run, proxy, head, seconds=run.seconds, **more))}))
            for name, rounds in values.items():
                broken = [r for r in rounds if "why" in r]
                started.figures[name].update(broken[0] if broken else {"cpu_us": statistics.median(r["cpu_us"] for r in rounds)})
            return started.figures
    return measure


def of_reloads(run, n):
    """The same file, one other target, all other targets: how long, and what a client sees that asks every millisecond."""
    def measure(name):
        origin, port = run.lab.origin()
        plan = Plan(targets(n, port), reloads=True, cores=ALL_CORES)
        one = targets(n, port)
        one[n // 2] = contenders.address(n // 2, port, 100)
        proxy = None
        try:
            proxy = run.start(name, plan)
            warm = lambda: loaded(run, proxy, request(), clients=8, requests=n, seconds=WARM_S)
            warm()
            figures = {"before_mib": proxy.memory_mib(), "failed": 0}
            for kind, to in [("same", plan.targets), ("one", one), ("all", targets(n, port, 100))]:
                figures.update(reload_beside_probe(run, proxy, kind, dataclasses.replace(plan, targets=to), figures["failed"]))
                proxy.await_old_workers()
            warm()
            time.sleep(2)
            figures["after_mib"] = proxy.memory_mib()
            figures["more"] = figures["after_mib"] / figures["before_mib"]
            figures["slowest_ms"] = max(figures[f"{kind}_ms"] for kind in ("same", "one", "all"))
            return figures
        finally:
            if proxy:
                proxy.close()
            run.lab.stop([origin])
    return {name: guarded(measure, name) for name in run.proxies}


def reload_beside_probe(run, proxy, kind, plan, failed):
    probe = run.lab.probe(proxy.port, request())
    time.sleep(0.3)
    took = proxy.reload(plan)
    time.sleep(0.7)
    seen = probe.result(end=True)
    return {f"{kind}_s": took, f"{kind}_ms": max(seen["most_ms"], seen["oldest_ms"]), "failed": failed + seen["failed"]}


def scrape(port):
    """Bytes of one GET /metrics."""
    size = 0
    with socket.create_connection(("127.0.0.1", port), 60) as s:
        s.sendall(f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        first = data = s.recv(1 << 20)
        while data:
            size += len(data)
            data = s.recv(1 << 20)
    if not first.startswith(b"HTTP/1.1 200"):
        raise Failure(f"/metrics: {first[:40]!r}")
    return size


def of_scrapes(run, n):
    """One scrape after each target has had a request, and what a client sees beside it."""
    def measure(name):
        origin, port = run.lab.origin()
        proxy = None
        try:
            proxy = run.start(name, Plan(targets(n, port), scrapes=True, cores=ALL_CORES))
            loaded(run, proxy, request(), requests=n * 6 // 5, seconds=2 * WARM_S)
            taken, spent = [], []
            probe = run.lab.probe(proxy.port, request())
            for _ in range(run.rounds):
                # The probe's own requests cost little beside that: a thousand a second.
                time.sleep(0.2)
                cpu, begun = proxy.cpu_s(), time.monotonic()
                size = scrape(proxy.admin)
                taken.append(time.monotonic() - begun)
                spent.append(proxy.cpu_s() - cpu)
            time.sleep(0.2)
            seen = probe.result(end=True)
            if seen["failed"]:
                raise Failure(f"{seen['failed']} requests failed beside it: {seen['why']}")
            return {"scrape_ms": statistics.median(taken) * 1e3, "scrape_mib": size / MIB, "cpu_ms": statistics.median(spent) * 1e3,
                    "slowest_ms": max(seen["most_ms"], seen["oldest_ms"])}
        except OSError as why:
            raise Failure(f"/metrics: {why}") from None
        finally:
            if proxy:
                proxy.close()
            run.lab.stop([origin])
    return {name: guarded(measure, name) for name in run.proxies if name != "nginx"}


def checked(run, text):
    """`weir check` of a file."""
    file = run.lab.scratch("check") / "t.star"
    file.write_text(text)
    runs = [run.lab.run_once([run.lab.weir, "check", file]) for _ in range(run.rounds)]
    return {key: statistics.median(r[key] for r in runs) for key in ("seconds", "peak_mib")}


def of_scenarios(run, n):
    """n scenarios, each with ten nodes of its own."""
    node = "lb.random(pool(10, lambda: delay(dist.exponential(5*ms), server(\"x\"))))"
    text = f'for i in range({n}):\n    scenario("s%d" % i, {node}, traffic.poisson(every=1*ms), requests=10)\n'
    return {"weir": guarded(checked, run, text)}


def of_lines(run, n):
    """n servers written out, in one line or each in its own."""
    servers = [f'server("s{i}", addr="{to}")' for i, to in enumerate(targets(n, 80))]
    text = 'scenario("s", lb.random([{}]), traffic.poisson(every=1*ms), requests=10)\n'
    return {"a line each": guarded(checked, run, text.format(",\n".join(servers))),
            "one line": guarded(checked, run, text.format(", ".join(servers)))}


def of_simulation(run, n):
    """One balancer over n queues; the loop by hand, at the same load for each server, has a second cable in front of each."""
    many, few = max(1_000_000, 2 * n), 1000
    file = run.lab.scratch("sim") / "t.star"
    file.write_text("work = dist.sum(20*ms, dist.exponential(100*ms))\n"
                    "rails = server(\"rails\")\n"
                    f'dynos = pool({n}, lambda: queue(delay(work, rails)))\n'
                    f'scenario("bamboo", cable(7*ms, lb.least_conn(dynos)), traffic.poisson(rate={4 * n}), '
                    'requests=100000, window="middle")\n')
    commands = {"weir": lambda k: [run.lab.weir, "sim", file, "--output", "json", "--threads", 1, "--replications", 1, "--requests", k]}
    loop = file.parent / "handloop"
    subprocess.run(["cc", "-O2", "-DROUTERS=1", f"-DDYNOS={n}", "-o", loop, HERE.parent / "handloop.c", "-lm"], check=True)
    commands[BY_HAND] = lambda k: [loop, k, 1, 1]

    def measure(curve):
        small, large = run.lab.run_once(commands[curve](few)), run.lab.run_once(commands[curve](many))
        return {"request_ns": (large["cpu_s"] - small["cpu_s"]) / (many - few) * 1e9, "peak_mib": large["peak_mib"]}
    rounds = [{curve: guarded(measure, curve) for curve in commands} for _ in range(run.rounds)]
    figures = {}
    for curve in commands:
        broken = [r[curve] for r in rounds if "why" in r[curve]]
        figures[curve] = broken[0] if broken else {key: statistics.median(r[curve][key] for r in rounds) for key in ("request_ns", "peak_mib")}
    return figures
