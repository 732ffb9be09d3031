"""Consul: a stand-in, written from the documentation of its HTTP API (health, blocking queries). No line of Consul runs here."""

import threading
import time
import urllib.parse

from registry import Registry
from servers import Handler, Server

MOST_WAIT_S = 600


class Consul(Registry):
    """Services whose names begin with `app`, all with the same instances, which have an index, which begins anew with the process."""

    label = "consul (stand-in)"

    def __init__(self, site):
        super().__init__(site)
        self.port = site.free_port()
        self.changed = threading.Condition()
        self.members, self.index, self.server = [], 0, None

    def fleet(self, name="app"):
        return f'find.consul("http://127.0.0.1:{self.port}", "{name}", lambda: server("app"))'

    def start(self):
        """Begins without any instance."""
        self.members, self.index = [], 10
        consul = self

        class Answers(Handler):
            def do_GET(self):
                consul.answer(self)

        self.server = Server(self.port, Answers)

    def stop(self):
        self.server.stop()
        with self.changed:
            self.changed.notify_all()

    def set(self, hosts):
        with self.changed:
            self.members = sorted(hosts)
            self.index += 1
            self.changed.notify_all()

    def answer(self, question):
        url = urllib.parse.urlsplit(question.path)
        query = urllib.parse.parse_qs(url.query, keep_blank_values=True)
        if not url.path.startswith("/v1/health/service/"):
            return question.give(404, "no such path")
        index = int(query.get("index", ["0"])[0])
        end = time.monotonic() + min(seconds(query.get("wait", ["5m"])[0]), MOST_WAIT_S)
        server = self.server
        with self.changed:
            while index and self.index <= index and self.server is server:
                if not self.changed.wait(end - time.monotonic()) or server.socket.fileno() < 0:
                    break
            members = self.members if url.path.rsplit("/", 1)[1].startswith("app") else []
            found = [self.entry(host) for host in members]
            at = self.index
        question.give(200, found, X_Consul_Index=str(at), X_Consul_KnownLeader="true", X_Consul_LastContact="0")

    def entry(self, host):
        return {
            "Node": {"ID": "", "Node": f"node-{host}", "Address": host, "Datacenter": "dc1"},
            "Service": {
                "ID": f"app-{host}",
                "Service": "app",
                "Tags": [],
                "Address": "",
                "Port": self.member_port,
                "Weights": {"Passing": 1, "Warning": 1},
            },
            "Checks": [{"Node": f"node-{host}", "CheckID": "serfHealth", "Status": "passing"}],
        }


def seconds(text):
    """A duration as Go writes it, of one unit."""
    units = {"ms": 1e-3, "s": 1, "m": 60, "h": 3600}
    unit = "ms" if text.endswith("ms") else text[-1:]
    return float(text[: -len(unit)]) * units[unit]
