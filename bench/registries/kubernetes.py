"""Kubernetes: a stand-in for the API server, written from the API's documentation. It lists and watches the EndpointSlices of one
service; no line of Kubernetes runs here. (A real one refuses slices with addresses of loopback.)"""

import json
import threading
import time
import urllib.parse

from registry import Registry
from servers import Handler, Server

PATH = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
APP, LABEL = "kubernetes.io/service-name=app", "kubernetes.io/service-name"


class Kubernetes(Registry):
    """The slices of `app`, each with the members of some numbers, and what has happened to them. Any other service whose name begins
    with `app` has the same."""

    label = "kubernetes (stand-in)"

    def __init__(self, site):
        super().__init__(site)
        self.port = site.free_port()
        self.changed = threading.Condition()
        self.slices, self.version, self.events, self.server = {}, 0, [], None
        self.config = site.folder / "kubeconfig"
        self.config.write_text(kubeconfig(f"http://127.0.0.1:{self.port}", "bench"))

    def fleet(self, name="app"):
        return f'find.kubernetes("{name}", lambda: server("app"), kubeconfig="{self.config}")'

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
        wanted = in_slices(hosts)
        with self.changed:
            for name in sorted(wanted.keys() | self.slices.keys()):
                before = self.slices.get(name)
                if before and before["hosts"] == wanted.get(name):
                    continue
                self.version += 1
                kind = "ADDED" if not before else "MODIFIED" if name in wanted else "DELETED"
                if name in wanted:
                    value = endpoint_slice(name, wanted[name], self.member_port)
                    value["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": str(self.version)}
                    self.slices[name] = {"hosts": wanted[name], "object": value}
                else:
                    value = self.slices.pop(name)["object"]
                    value = {**value, "metadata": {**value["metadata"], "resourceVersion": str(self.version)}}
                self.events.append((self.version, {"type": kind, "object": value}))
            self.changed.notify_all()

    def answer(self, question):
        url = urllib.parse.urlsplit(question.path)
        query = {name: values[0] for name, values in urllib.parse.parse_qs(url.query).items()}
        if question.headers.get("Authorization") != "Bearer bench":
            return question.give(401, status(401, "Unauthorized"))
        if url.path != PATH:
            return question.give(404, status(404, "NotFound"))
        is_app = query.get("labelSelector", "").startswith(APP)
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


def in_slices(hosts):
    """Names of slices, each with its members: ten in each, a hundred where there are many. An address is always in the same one."""
    size, found = 10 if len(hosts) <= 100 else 100, {}
    for host in sorted(hosts, key=lambda host: [int(part) for part in host.split(".")]):
        third, last = host.split(".")[2:]
        found.setdefault(f"app-{third}-{int(last) // size}", []).append(host)
    return found


def endpoint_slice(name, hosts, port):
    def endpoint(host):
        conditions = {"ready": True, "serving": True, "terminating": False}
        pod = {"kind": "Pod", "name": f"app-{host}", "namespace": "default", "uid": f"uid-{host}"}
        return {"addresses": [host], "conditions": conditions, "targetRef": pod, "nodeName": "node-1"}

    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": name, "namespace": "default", "labels": {LABEL: "app"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
        "endpoints": [endpoint(host) for host in hosts],
    }


def kubeconfig(server, token, authority=""):
    return f"""apiVersion: v1
kind: Config
clusters:
- cluster:
    server: {server}{authority and f"{chr(10)}    certificate-authority: {authority}"}
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
    token: {token}
"""


def status(code, reason):
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": reason}
