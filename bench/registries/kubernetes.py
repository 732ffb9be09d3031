"""Kubernetes: a stand-in for the API server, written from the API's documentation. It lists and watches the EndpointSlices of one
service; no line of Kubernetes runs here. (A real one refuses slices with addresses of loopback.)"""

import json
import threading
import time
import urllib.parse

from servers import Handler, Server

PATH = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
SLICE = 10


class Kubernetes:
    """The slices of `app`, each with the members of ten numbers, and what has happened to them."""

    label = "kubernetes (stand-in)"
    bound_s = 0.2

    def __init__(self, site):
        self.port, self.member_port = site.free_port(), site.member_port
        self.changed = threading.Condition()
        self.slices, self.version, self.events, self.server = {}, 0, [], None
        self.config = site.folder / "kubeconfig"
        self.config.write_text(f"""apiVersion: v1
kind: Config
clusters:
- cluster:
    server: http://127.0.0.1:{self.port}
  name: bench
contexts:
- context:
    cluster: bench
    namespace: default
    user: bench
  name: bench
current-context: bench
users:
- name: bench
  user:
    token: bench
""")

    @staticmethod
    def missing(_):
        return None

    def fleet(self):
        return f'find.kubernetes("app", lambda: server("app"), kubeconfig="{self.config}")'

    def start(self):
        """Begins without any slice, with versions that are lower than before."""
        self.slices, self.version, self.events = {}, 100, []
        kubernetes = self

        class Answers(Handler):
            def do_GET(self):
                kubernetes.answer(self)

        self.server = Server(self.port, Answers)

    def stop(self):
        self.server.stop()
        with self.changed:
            self.changed.notify_all()

    def set(self, hosts):
        wanted = {}
        for host in sorted(hosts, key=lambda host: [int(part) for part in host.split(".")]):
            wanted.setdefault(f"app-{int(host.rsplit('.', 1)[1]) // SLICE}", []).append(host)
        with self.changed:
            for name in sorted(wanted.keys() | self.slices.keys()):
                before = self.slices.get(name)
                if before and before["hosts"] == wanted.get(name):
                    continue
                self.version += 1
                kind = "ADDED" if not before else "MODIFIED" if name in wanted else "DELETED"
                if name in wanted:
                    self.slices[name] = {"hosts": wanted[name], "object": self.slice(name, wanted[name])}
                    value = self.slices[name]["object"]
                else:
                    value = self.slices.pop(name)["object"]
                    value = {**value, "metadata": {**value["metadata"], "resourceVersion": str(self.version)}}
                self.events.append((self.version, {"type": kind, "object": value}))
            self.changed.notify_all()

    def slice(self, name, hosts):
        def endpoint(host):
            conditions = {"ready": True, "serving": True, "terminating": False}
            pod = {"kind": "Pod", "name": f"app-{host}", "namespace": "default", "uid": f"uid-{host}"}
            return {"addresses": [host], "conditions": conditions, "targetRef": pod, "nodeName": "node-1"}

        return {
            "kind": "EndpointSlice",
            "apiVersion": "discovery.k8s.io/v1",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "resourceVersion": str(self.version),
                "labels": {"kubernetes.io/service-name": "app"},
            },
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": self.member_port, "protocol": "TCP"}],
            "endpoints": [endpoint(host) for host in hosts],
        }

    def answer(self, question):
        url = urllib.parse.urlsplit(question.path)
        query = {name: values[0] for name, values in urllib.parse.parse_qs(url.query).items()}
        if question.headers.get("Authorization") != "Bearer bench":
            return question.give(401, status(401, "Unauthorized"))
        if url.path != PATH:
            return question.give(404, status(404, "NotFound"))
        is_app = query.get("labelSelector") == "kubernetes.io/service-name=app"
        if query.get("watch") in ("1", "true"):
            return self.watch(question, query, is_app)
        with self.changed:
            items = [named["object"] for _, named in sorted(self.slices.items())] if is_app else []
            version = str(self.version)
        found = {"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1"}
        question.give(200, {**found, "metadata": {"resourceVersion": version}, "items": items})

    def watch(self, question, query, is_app):
        version = int(query.get("resourceVersion", "0"))
        end = time.monotonic() + float(query.get("timeoutSeconds", "1800"))
        server = self.server
        question.send_response(200)
        question.send_header("Content-Type", "application/json")
        question.send_header("Transfer-Encoding", "chunked")
        question.end_headers()

        def send(event):
            line = json.dumps(event).encode() + b"\n"
            question.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

        if version > self.version:
            send({"type": "ERROR", "object": status(410, "Expired")})
            end = 0
        while time.monotonic() < end and self.server is server and server.socket.fileno() >= 0:
            with self.changed:
                news = [(number, event) for number, event in self.events if number > version]
                if not news:
                    self.changed.wait(min(1, max(0, end - time.monotonic())))
            for number, event in news:
                version = number
                if is_app:
                    send(event)
        question.wfile.write(b"0\r\n\r\n")


def status(code, reason):
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": reason}
