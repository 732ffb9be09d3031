"""socket.io: long polls, WebSocket, the change from one to the other; one server, and two that know nothing of each other."""
from harness import Application, Row, by_hand
from proxies import Route


def check(name):
    return lambda bench, target, seconds: bench.node_client("socketio_client.js", name, target, seconds)


def one(bench):
    return Route([bench.node_server("socketio.js")], websocket=True, nginx="proxy_read_timeout 1h;")


def two(bench):
    return Route([bench.node_server("socketio.js") for _ in range(2)], websocket=True, nginx="proxy_read_timeout 1h;",
                 weir_balance='lb.ring_hash({targets}, key = key.client(), name = "apps")', nginx_upstream="ip_hash;",
                 haproxy="balance source")


ROWS = [Row("long polls", check("polling")), Row("WebSocket", check("websocket")), Row("polls, then WebSocket", check("upgrade")),
        Row("a room of ten", check("rooms")), Row("comes again", check("again"))]
NEEDS = ["node", "npm:socket.io", "npm:socket.io-client"]
APPLICATIONS = [
    Application("socket.io", "one server", NEEDS, "", one, [*by_hand(ROWS[:2]), *ROWS[2:]]),
    Application("socket.io, two servers", "sticky by the client's address", NEEDS, "lb.ring_hash(..., key = key.client())", two, [*by_hand([ROWS[0], ROWS[3]]), ROWS[2]]),
]
