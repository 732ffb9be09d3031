"""WebSocket: ws and hypercorn as servers, in clear and with TLS that offers HTTP/2 by ALPN."""
from harness import Application, Row, by_hand
from proxies import Route


def python(name, limit=15):
    return lambda bench, target, seconds: bench.python_client("websocket_client.py", name, target, seconds, limit_s=seconds + limit)


def node(name):
    return lambda bench, target, seconds: bench.node_client("ws_client.js", name, target, seconds)


PYTHON = [
    Row("echo (websockets)", python("echo")),
    Row("a new socket each, with a subprotocol", python("connects")),
    Row("messages of 4 MiB", python("large")),
    Row("closed by the server with code and reason", python("bye")),
    Row("only the server sends", python("ticks")),
]
NODE = [Row("echo, pings, close (ws)", node("echo")), Row("50 sockets at once", node("many")), Row("pings of the server's", node("pings"))]
QUIET = [Row("silent for 65 s, then an echo", python("quiet", 90), ci=False, waits_s=65)]
TLS = [PYTHON[0], NODE[0], *by_hand([PYTHON[1], PYTHON[3]])]

LONG_TUNNEL = dict(websocket=True, nginx="proxy_read_timeout 1h;")


def ws(bench):
    return Route([bench.node_server("ws_echo.js")], **LONG_TUNNEL)


def ws_tls(bench):
    return Route([bench.node_server("ws_echo.js", "tls")], origin="auto", origin_tls=True, front_tls=True, **LONG_TUNNEL)


def hypercorn(bench):
    import harness
    port = harness.free_port()
    child = bench.spawn([bench.python, "-m", "hypercorn", "--bind", f"127.0.0.1:{port}", "--certfile", bench.cert, "--keyfile", bench.key,
                         "--websocket-ping-interval", "20", "asgi_app:app"],
                        cwd=harness.SERVERS)
    bench.await_port(port, child)
    return Route([f"127.0.0.1:{port}"], origin="auto", origin_tls=True, front_tls=True, **LONG_TUNNEL)


APPLICATIONS = [
    Application("WebSocket, ws", "ws in Node, in clear", ["node", "npm:ws", "python:websockets"], "", ws, [PYTHON[0], PYTHON[2], PYTHON[3], *NODE, *by_hand([PYTHON[1], PYTHON[4]]), *QUIET]),
    Application("WebSocket, ws on HTTPS with h2", "Node's http2 server that also takes HTTP/1.1", ["node", "npm:ws", "python:websockets"],
                "tls = tls.client(...)", ws_tls, TLS),
    Application("WebSocket, hypercorn on HTTPS with h2", "hypercorn, which offers HTTP/2 by ALPN", ["python:hypercorn", "python:websockets"],
                "tls = tls.client(...)", hypercorn, TLS),
]
