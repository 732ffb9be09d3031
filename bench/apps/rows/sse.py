"""Server-sent events: a server in Node, and EventSource as clients have it."""
from harness import Application, Row
from proxies import Route


def check(name, limit=15):
    return lambda bench, target, seconds: bench.node_client("sse_client.js", name, target, seconds, limit_s=seconds + limit)


def start(bench):
    return Route([bench.node_server("sse.js")], nginx="proxy_buffering off; proxy_read_timeout 1h;", haproxy="timeout server 1h",
                 weir_server="body_timeout = 1*hours")


APPLICATIONS = [
    Application("server-sent events", "eventsource in Node", ["node", "npm:eventsource"],
                "server(..., body_timeout = 1*hours), only if nothing is sent for a minute", start, [
                    Row("events come as they are sent", check("ticks")),
                    Row("reconnects with Last-Event-ID", check("again")),
                    Row("20 clients leave", check("leave")),
                    Row("silent for 65 s", check("quiet", 80), ci=False, waits_s=65),
                ]),
]
