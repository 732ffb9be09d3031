"""gRPC in Go: its clients, and calls at a constant rate while the proxy is reloaded, drained of a target, and replaced."""
import concurrent.futures
import time

from harness import INSTALLED, Application, Outcome, Row
from proxies import Route

PROGRAM = INSTALLED / "grpc-go"


def check(name):
    return lambda bench, target, seconds: bench.client([PROGRAM], name, target, seconds)


def steady(bench, target, seconds):
    """5,000 calls a second over eight connections: as many as the issue asks for if --seconds is 60."""
    return bench.client([PROGRAM], "rate", target, seconds, limit_s=seconds + 30, RATE="5000", CONNECTIONS="8")


def during(act, load=steady):
    """The load, while `act(proxy, at)` acts; `at(share)` waits until that share of the time is over."""
    def run(bench, target, seconds):
        if target.way == "direct":
            return None
        begun = time.monotonic()

        def at(share):
            time.sleep(max(0, begun + share * seconds - time.monotonic()))

        # What `act` starts ends with the thread that started it (harness.preload), so the load has the other thread.
        with concurrent.futures.ThreadPoolExecutor(1) as worker:
            outcome = worker.submit(load, bench, target, seconds)
            act(target.proxy, at)
            return outcome.result()
    return run


def reloads(proxy, at):
    for share in [0.2, 0.4, 0.6, 0.8]:
        at(share)
        proxy.reload()


def drains(proxy, at):
    for share, index in [(0.2, 0), (0.6, 1)]:
        at(share)
        proxy.drain(index)
        at(share + 0.2)
        proxy.undrain(index)


def hand_overs(proxy, at):
    for share in [0.25, 0.6]:
        at(share)
        proxy.hand_over()


def start(bench):
    origins = [bench.server([PROGRAM, "serve"]) for _ in range(3)]
    return Route(origins, origin="h2", front="h2")


LOAD = dict(least_s=5, ci=False)
APPLICATIONS = [
    Application("gRPC in Go", "grpc-go's client and three servers", [f"file:{PROGRAM}"], 'server(..., protocol = "h2")', start, [
        Row("both ways in turns", check("both")),
        # Not in CI: through weir about one call in a hundred is UNAVAILABLE (docs/applications.md).
        Row("deadlines", check("deadline"), least_s=8, ci=False),
        Row("health", check("health")),
    ]),
    # The rows of the load come each with its own proxies: one that was replaced is not the same any more.
    *(Application("gRPC in Go, 5,000 calls/s, 8 connections", "calls at a constant rate", [f"file:{PROGRAM}"], 'server(..., protocol = "h2")', start,
                  [Row(name, run, **LOAD)])
      for name, run in [("nothing else", steady), ("through reloads that change targets", during(reloads)),
                        ("through drained targets", during(drains)), ("through hand-overs", during(hand_overs))]),
]
