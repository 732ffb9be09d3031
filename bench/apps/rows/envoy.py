"""Envoy as a peer that speaks HTTP/2: behind the proxy, where clients see its streams, and in front of it, as its client."""
import dataclasses

from envoy import Envoy
from harness import Application, Outcome, Row
from proxies import Route
from rows import grpc
from rows.grpc_go import during, hand_overs, reloads

BIG = "client_max_body_size 0;"
NEEDS = ["envoy", "node"]


def check(name):
    return lambda bench, target, seconds: bench.node_client("h2_client.js", name, target, seconds)


BODIES = [
    ("ten downloads of 1 MiB at once", "downloads"),
    ("ten uploads of 1 MiB at once", "uploads"),
    ("1 MiB there and back, with trailers", "echoes"),
    ("trailers behind bodies of 0 bytes, 1, and 1 MiB", "trailers"),
    ("cancelled before the head", "cancel_head"),
    ("cancelled amid a download", "cancel_body"),
    ("cancelled amid an upload", "cancel_upload"),
    ("a client that stalls beside quick ones", "reader"),
    ("an origin that stalls beside quick ones", "taker"),
]
IN_CI = ["echoes", "trailers", "cancel_head", "cancel_body", "cancel_upload", "reader", "taker"]
CANCELLED = Row("downloads beside 1,500 requests that are cancelled", check("resets"))
# In front it fails through weir (docs/applications.md).
CANCELLED_IN_FRONT = dataclasses.replace(CANCELLED, ci=False)
CALLS = ["unary", "unary_parallel", "status", "server_stream", "client_stream", "both", "large", "deadline", "cancel"]
CALLS_IN_CI = ["unary_parallel", "large", "cancel"]


def bodies(ci):
    """Rows of HTTP/2 itself, of which CI has `ci`."""
    return [Row(title, check(name), ci=name in ci) for title, name in BODIES]


def calls(only=CALLS, ci=()):
    """Rows of gRPC, of which CI has `ci`."""
    return grpc.rows(only, ci)


# Behind the proxy: client, proxy, Envoy, origin

def behind(bench, origin, tls=False, peers=1, **more):
    envoys = [Envoy(bench, [origin], tls, **more) for _ in range(peers)]
    return Route([e.address for e in envoys], origin="auto" if tls else "h2", origin_tls=tls, front="h2", front_tls=tls,
                 nginx_grpc=True, nginx=BIG, envoys=envoys)


def node(bench, *words):
    return bench.node_server("h2_origin.js", *words)


def behind_clear(bench):
    return behind(bench, node(bench))


def behind_tls(bench):
    return behind(bench, node(bench), tls=True)


def behind_calls(bench):
    return behind(bench, bench.python_server("grpc_echo.py"))


def behind_calls_tls(bench):
    return behind(bench, bench.python_server("grpc_echo.py"), tls=True)


# In front of it: client, Envoy, proxy, origin

def before(origins, tls=False, **more):
    return Route(origins, origin="auto" if tls else "h2", origin_tls=tls, front="h2", front_tls=tls, nginx_grpc=True, nginx=BIG,
                 behind_envoy=True, **more)


def before_clear(bench):
    return before([node(bench)])


def before_tls(bench):
    return before([node(bench, "tls")], tls=True)


def before_calls(bench):
    return before([bench.python_server("grpc_echo.py")])


def before_calls_tls(bench):
    return before([bench.python_server("grpc_echo.py", "tls")], tls=True)


# Connections that end under load

def under_load(name, act=None, least_s=0, ci=True, goaways=True):
    """Requests through weir while `act` acts; without a GOAWAY where the row is about them, it shows nothing and fails."""
    load = during(act, steady) if act else steady

    def run(bench, target, seconds):
        if target.way != "weir":
            return None
        proxy = target.proxy
        outcome = load(bench, target, seconds)
        seen = sum(envoy.goaways() for envoy in (proxy.route.envoys or [proxy.envoy]))
        if goaways and outcome.good and not seen:
            return Outcome(failed=1, why="no connection of Envoy's ended by GOAWAY")
        return outcome

    return Row(name, run, ci=ci, least_s=least_s)


steady = check("steady")


def short_lived(bench):
    return behind(bench, node(bench), max_requests=20)


def checked(bench):
    route = behind(bench, node(bench), peers=2)
    check = 'health.http("/healthz", interval = 250*ms, timeout = 250*ms)'
    route.weir_balance = f'lb.least_conn({{targets}}, health = {check}, name = "apps")'
    return route


def retried(bench):
    route = behind(bench, node(bench), peers=2)
    route.weir_balance = 'retry(2, lb.least_conn({targets}, name = "apps"))'
    return route


def drained(proxy, at):
    at(0.2)
    proxy.route.envoys[0].drain_connections()


def deployed(proxy, at):
    """Each Envoy in turn: its checks fail, its listener is drained and closed, then the process ends and comes back."""
    for begin, envoy in zip([0.1, 0.5], proxy.route.envoys):
        at(begin)
        envoy.fail_checks()
        at(begin + 0.1)
        envoy.drain()
        at(begin + 0.3)
        envoy.restart()


def closed(proxy, at):
    at(0.2)
    proxy.route.envoys[0].drain()


def limited(bench):
    return before([node(bench)], weir_http="max_requests = 20")


def two(bench):
    return before([node(bench), node(bench)])


CLEAR, TLS = 'server(..., protocol = "h2")', "tls = tls.client(...), tls = tls.server(...)"
CALLED = [*NEEDS, *grpc.NEEDS]
CALLS_TLS = ["unary", "both", "large", "cancel"]


def loads(side, *rows):
    """An application for each row: what was drained, replaced or reset is not the same any more."""
    return [Application(f"Envoy {side}, load", "many requests at once", NEEDS, CLEAR, start, [row]) for start, row in rows]


APPLICATIONS = [
    Application("Envoy behind", "an Envoy before Node's http2 server, in clear", NEEDS, CLEAR, behind_clear, bodies(IN_CI)),
    Application("Envoy behind, TLS", "the same with TLS to the Envoy", NEEDS, TLS, behind_tls, bodies(["echoes", "reader"])),
    Application("Envoy behind, gRPC", "an Envoy before grpcio's server, in clear", CALLED, CLEAR, behind_calls, calls(ci=CALLS_IN_CI)),
    Application("Envoy behind, gRPC, TLS", "the same with TLS to the Envoy", CALLED, TLS, behind_calls_tls, calls(CALLS_TLS, ci=["large"])),
    Application("Envoy in front", "an Envoy as client, Node's http2 server, in clear", NEEDS, CLEAR, before_clear, bodies(IN_CI)),
    Application("Envoy in front, TLS", "the same with TLS on all sides", NEEDS, TLS, before_tls, bodies(["echoes", "reader"])),
    Application("Envoy in front, gRPC", "an Envoy as client, grpcio's server, in clear", CALLED, CLEAR, before_calls, calls(ci=CALLS_IN_CI)),
    Application("Envoy in front, gRPC, TLS", "the same with TLS on all sides", CALLED, TLS, before_calls_tls, calls(CALLS_TLS, ci=["large"])),
    *loads("behind",
           (behind_clear, under_load("its connections are drained", drained, least_s=2)),
           (short_lived, under_load("its connections end after 20 requests")),
           (checked, under_load("two with checks, each drained and restarted", deployed, least_s=6)),
           (retried, under_load("one of two drained and closed, with a retry", closed, least_s=4, ci=False)),
           (behind_clear, CANCELLED)),
    *loads("in front",
           (limited, under_load("weir's connections end after 20 requests")),
           (two, under_load("through reloads that change targets", reloads, least_s=3, ci=False, goaways=False)),
           (two, under_load("through hand-overs", hand_overs, least_s=5)),
           (before_clear, CANCELLED_IN_FRONT)),
]
