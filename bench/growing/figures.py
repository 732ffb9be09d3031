"""Which figures there are: each sweep with its sizes, its curves, and what is shown and judged of it."""
import dataclasses

import sweeps
from sweeps import BY_HAND, FIRST

KIB, MIB = 1 << 10, 1 << 20
NAMES = {"nginx": "nginx", "haproxy": "HAProxy"}
LIMIT = 1.3  # a curve bends up if it ends above this many times its least value at a smaller size


@dataclasses.dataclass
class Measure:
    """One figure of a sweep. `each` is the factor and the words for the figure per unit of size: that one must not grow."""

    key: str
    title: str
    unit: str
    each: tuple = ()
    judged: bool = True
    drawn: bool = False
    least: float = 0.0  # figures below count as this: noise of the machine
    rivals: bool = True  # whether weir is to be compared with the others
    without: tuple = ()  # curves that say nothing new about it

    def cost(self, value, size):
        """What is drawn and judged."""
        value = max(value, self.least)
        return value * self.each[0] / size if self.each else value

    @property
    def cost_unit(self):
        return self.each[1] if self.each else self.unit


@dataclasses.dataclass
class Sweep:
    name: str
    title: str
    of: str  # what its sizes count
    sizes: list
    quick: list
    run: object
    measures: list
    curves: tuple = ("weir", "nginx", "haproxy")
    ours: tuple = ("weir",)


def request_cost(**more):
    return Measure("cpu_us", "CPU time of a request", "µs", drawn=True, **more)


def route_measures():
    return [request_cost(), Measure("start_s", "Time from the start to the first answer", "s", (1e6, "µs per route")),
            Measure("memory_mib", "Memory after the start", "MiB", (1024, "KiB per route"))]


def body_measures():
    return [Measure("cpu_us", "CPU time of a request", "µs", (MIB, "µs per MiB"), drawn=True)]


POWERS = [10, 100, 1000, 10_000]
TO_30_000, TO_100_000 = [*POWERS, 30_000], [*POWERS, 100_000]
QUICK = [10, 1000]
BODIES, FEW_BODIES = [KIB, 64 * KIB, MIB, 10 * MIB, 100 * MIB], [KIB, MIB]

SWEEPS = [
    Sweep("targets", "Targets", "targets", TO_100_000, QUICK, sweeps.per_target, [
        request_cost(),
        Measure("start_s", "Time from the start to the first answer", "s", (1e6, "µs per target"), drawn=True, without=(FIRST,)),
        Measure("memory_mib", "Memory after the start", "MiB", (1024, "KiB per target"), drawn=True, without=(FIRST,)),
        Measure("used_mib", "Memory after each target has had requests", "MiB", (1024, "KiB per target"), without=(FIRST,)),
        Measure("descriptors", "Descriptors then", "", judged=False, rivals=False, without=(FIRST,)),
    ], ("weir", FIRST, "nginx", "haproxy"), ("weir", FIRST)),
    Sweep("paths", "Routes by path", "routes", TO_30_000, QUICK, sweeps.by_route("path"), route_measures()),
    Sweep("hosts", "Routes by host", "routes", TO_30_000, QUICK, sweeps.by_route("host"), route_measures()),
    Sweep("idle", "Idle clients", "idle clients", [0, 1000, 3000, 9000], [0, 1000], sweeps.beside_idle, [
        request_cost(), Measure("client_kib", "Memory of an idle client", "KiB", drawn=True)]),
    Sweep("heads", "Heads of requests", "bytes of fields", [256, KIB, 4 * KIB, 16 * KIB], [256, 4 * KIB], sweeps.with_head, [
        Measure("cpu_us", "CPU time of a request", "µs", (KIB, "µs per KiB"), drawn=True)]),
    Sweep("downloads", "Bodies of answers", "bytes", BODIES, FEW_BODIES, sweeps.with_body(False), body_measures()),
    Sweep("uploads", "Bodies of requests", "bytes", BODIES, FEW_BODIES, sweeps.with_body(True), body_measures()),
    Sweep("reloads", "Reloads", "targets", TO_30_000, QUICK, sweeps.of_reloads, [
        Measure("same_s", "Reload of the same file", "s", (1e6, "µs per target")),
        Measure("one_s", "Reload with one target changed", "s", (1e6, "µs per target")),
        Measure("all_s", "Reload with all targets changed", "s", (1e6, "µs per target"), drawn=True),
        Measure("slowest_ms", "Slowest request beside the three reloads", "ms", drawn=True, least=10),
        Measure("failed", "Requests that failed beside them", "", judged=False, rivals=False),
        Measure("before_mib", "Memory before", "MiB", (1024, "KiB per target")),
        Measure("after_mib", "Memory after", "MiB", (1024, "KiB per target")),
        Measure("more", "Memory after over memory before", "times", rivals=False),
    ]),
    Sweep("scrapes", "Scrapes of metrics", "targets", TO_100_000, QUICK, sweeps.of_scrapes, [
        Measure("cpu_ms", "CPU time of a scrape", "ms", (1000, "µs per target"), drawn=True),
        Measure("scrape_ms", "Time of a scrape", "ms", (1000, "µs per target")),
        Measure("scrape_mib", "Length of a scrape", "MiB", (1024, "KiB per target")),
        Measure("slowest_ms", "Slowest request beside it", "ms", drawn=True, least=10),
    ], ("weir", "haproxy")),
    Sweep("scenarios", "Scenarios in a file", "scenarios", TO_30_000, QUICK, sweeps.of_scenarios, [
        Measure("seconds", "Time of `weir check`", "s", (1e6, "µs per scenario"), drawn=True),
        Measure("peak_mib", "Peak memory of it", "MiB", (1024, "KiB per scenario")),
    ], ("weir",)),
    Sweep("lines", "Servers in a file", "servers", TO_100_000, QUICK, sweeps.of_lines, [
        Measure("seconds", "Time of `weir check`", "s", (1e6, "µs per server"), drawn=True),
        Measure("peak_mib", "Peak memory of it", "MiB", (1024, "KiB per server")),
    ], ("a line each", "one line"), ("a line each", "one line")),
    Sweep("simulation", "Servers in a simulation", "servers", [*TO_100_000, 1_000_000], QUICK, sweeps.of_simulation, [
        Measure("request_ns", "CPU time of a simulated request", "ns", drawn=True),
        Measure("peak_mib", "Peak memory", "MiB", (1024, "KiB per server"), drawn=True, rivals=False),
    ], ("weir", BY_HAND), ("weir",)),
]


def points(results, sweep, measure, curve):
    """(size, figure) of a curve, in order of size, as far as there are figures."""
    rows = results.get(sweep.name, {}) if curve not in measure.without else {}
    found = [(size, rows.get(str(size), {}).get(curve, {}).get(measure.key)) for size in sorted(map(int, rows))]
    return [(size, value) for size, value in found if value is not None]


def reasons(results, sweep):
    """(curve, size, why) of what has no figures."""
    rows = results.get(sweep.name, {})
    return [(curve, size, rows[str(size)][curve]["why"]) for size in sorted(map(int, rows)) for curve in sweep.curves
            if "why" in rows[str(size)].get(curve, {})]


def unkept(results, sweep, size):
    """Whether this size has more targets than a process may have connections."""
    return any(figures.get("unkept") for figures in results[sweep.name][str(size)].values())


def judged_points(results, sweep, measure, curve):
    """The costs by which a curve is judged. Where no connection to a target can be kept, a request of round robin is another one."""
    found = [(size, measure.cost(value, size)) for size, value in points(results, sweep, measure, curve) if size or not measure.each]
    if measure.key in ("cpu_us", "used_mib") and curve != FIRST:
        found = [(size, cost) for size, cost in found if not unkept(results, sweep, size)]
    return found


def growth(found):
    """How the cost at the largest size compares with the smallest size, and with the least of all smaller sizes."""
    if len(found) < 2 or not found[0][1]:
        return None
    least = min(cost for _, cost in found[:-1])
    return found[-1][1] / found[0][1], found[-1][1] / least if least else 1.0


@dataclasses.dataclass
class Verdict:
    sweep: Sweep
    measure: Measure
    curve: str
    sizes: tuple
    overall: float
    bend: float
    rivals: dict  # the bend of each other curve
    shared: list  # those that bend as much, and have figures at the largest size

    @property
    def bends(self):
        return self.bend > LIMIT

    def words(self):
        if not self.bends:
            return "no"
        shared = " and ".join(NAMES.get(curve, curve) for curve in self.shared)
        return "**yes**" + (f", as much as {shared}" if shared else "")


def verdict(sweep, measure, curve, found):
    """How one of weir's curves goes on, beside the others."""
    mine = found[curve]
    bend = growth(mine)[1]
    others = {c: found[c] for c in sweep.curves if c not in sweep.ours and growth(found[c])}
    rivals = {c: growth(points)[1] for c, points in others.items()}
    shared = [c for c, points in others.items() if points[-1][0] == mine[-1][0] and rivals[c] >= bend / 1.1]
    return Verdict(sweep, measure, curve, (mine[0][0], mine[-1][0]), growth(mine)[0], bend, rivals, shared)


def verdicts(results):
    found = []
    for sweep in SWEEPS:
        for measure in [m for m in sweep.measures if m.judged]:
            costs = {curve: judged_points(results, sweep, measure, curve) for curve in sweep.curves}
            found += [verdict(sweep, measure, curve, costs) for curve in sweep.ours if growth(costs[curve])]
    return found
