"""gRPC: grpcio's server and client, behind listeners with and without TLS."""
from harness import Application, Row
from proxies import Route

CHECKS = [
    ("unary calls, one after another", "unary", {}),
    ("200 unary calls at once", "unary_parallel", {}),
    ("an error with details", "status", {}),
    ("an unknown method", "unknown", {"ci": False}),
    ("a stream from the server", "server_stream", {"ci": False}),
    ("a stream to the server", "client_stream", {}),
    ("both ways in turns", "both", {}),
    ("messages of 8 MiB", "large", {}),
    ("gzip", "compressed", {"ci": False}),
    ("deadlines", "deadline", {}),
    ("cancellation", "cancel", {}),
    ("health, checked and watched", "health", {}),
    ("reflection", "reflection", {}),
    ("asks once, then listens for 35 s", "subscription", {"waits_s": 35, "ci": False}),
    ("answered after 35 s", "stream_idle", {"waits_s": 35, "ci": False}),
]
NEEDS = ["python:grpc", "python:grpc_health", "python:grpc_reflection"]


def check(name):
    return lambda bench, target, seconds: bench.python_client("grpc_client.py", name, target, seconds, limit_s=seconds + 60)


def rows(only=None, ci=None):
    """The rows of those checks; in CI all that are short, or those of `ci`."""
    some = [(title, name, dict(more)) for title, name, more in CHECKS if only is None or name in only]
    return [Row(title, check(name), **(more if ci is None or name in ci else {**more, "ci": False})) for title, name, more in some]


def clear(bench):
    return Route([bench.python_server("grpc_echo.py")], origin="h2", front="h2", nginx="client_max_body_size 64m;")


def encrypted(bench):
    return Route([bench.python_server("grpc_echo.py", "tls")], origin="auto", origin_tls=True, front="h2", front_tls=True,
                 nginx_grpc=True, nginx="client_max_body_size 64m;")


APPLICATIONS = [
    Application("gRPC in Python", "grpcio's server and client in clear", NEEDS, 'server(..., protocol = "h2")', clear, rows()),
    Application("gRPC in Python, TLS", "the same with TLS on both sides", NEEDS, 'tls = tls.client(...), tls = tls.server(...)',
                encrypted, rows(["unary", "both", "cancel", "health"], ci=["unary", "both"])),
]
