"""weir, nginx and HAProxy for the same plan, each with one worker, nothing logged, and connections to targets kept."""
import dataclasses
import os
import re
import shutil
import signal
import socket
import time

from lab import LONGEST_S, PROXY_CORES, Failure, cpu_s, descriptors, family, free_port, pss_mib, request

os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"


@dataclasses.dataclass
class Plan:
    """What a proxy is to do."""

    targets: list  # host:port
    policy: str = ""  # of weir, if it is not round robin
    routes: tuple = ()  # ("path" or "host", how many)
    big_heads: bool = False  # heads of 16 KiB are to pass
    reloads: bool = False
    scrapes: bool = False
    cores: str = PROXY_CORES


def address(i, port, base=1):
    """The i-th address of the origin."""
    return f"127.{base + (i >> 16)}.{i >> 8 & 255}.{i & 255}:{port}"


def targets(n, port, base=1):
    return [address(i, port, base) for i in range(n)]


def first_answer(port, head):
    """Whether a server answers with 200 at this port."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as s:
            s.sendall(head)
            return s.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


class Proxy:
    """A running proxy. `start_s` is the time until its first answer."""

    def __init__(self, lab, plan, head=None):
        self.lab, self.plan = lab, plan
        self.folder = lab.scratch(self.name)
        self.file = self.folder / self.file_name
        self.port, self.admin = free_port(), free_port()
        self.file.write_text(self.text())
        begun = time.monotonic()
        self.child = lab.launch(plan.cores, self.command())
        self.await_answer(head or request(), begun)
        self.start_s = time.monotonic() - begun

    def await_answer(self, head, begun):
        while not first_answer(self.port, head):
            if self.child.poll() is not None:
                self.close()
                raise Failure(f"does not start: {self.said()}")
            if time.monotonic() - begun > LONGEST_S:
                self.close()
                raise Failure(f"does not start in {LONGEST_S} s")
            time.sleep(0.002)

    def said(self):
        return " ".join(self.child.log.read_text(errors="replace").split())[-160:]

    def close(self):
        self.lab.stop([self.child])

    def cpu_s(self):
        return cpu_s(family(self.child.pid))

    def memory_mib(self):
        return pss_mib(self.child.pid)

    def descriptors(self):
        return descriptors(self.child.pid)

    def reload(self, plan):
        """Serves another plan; the seconds until it does. nginx and HAProxy serve it as soon as they have new workers."""
        self.plan = plan
        fresh = self.file.with_suffix(".new")
        fresh.write_text(self.text())
        os.replace(fresh, self.file)
        before = self.generation()
        begun = time.monotonic()
        self.signal_reload()
        while self.generation() == before:
            if self.child.poll() is not None:
                raise Failure(f"ended by a reload: {self.said()}")
            if time.monotonic() - begun > LONGEST_S:
                raise Failure(f"does not reload in {LONGEST_S} s")
            time.sleep(0.002)
        return time.monotonic() - begun

    def generation(self):
        """The newest worker; it changes with a reload."""
        return max(family(self.child.pid)[1:], default=0)

    def await_old_workers(self, within_s=10):
        """Waits until only the workers of the last reload are left, so that memory is of them alone."""
        until = time.monotonic() + within_s
        while len(family(self.child.pid)) > 2 and time.monotonic() < until:
            time.sleep(0.05)


class Weir(Proxy):
    name, file_name = "weir", "app.star"

    def text(self):
        servers = ",\n".join(f'    server("s{i}", addr="{to}", idle_timeout=kept)' for i, to in enumerate(self.plan.targets))
        node = "apps"
        if self.plan.routes:
            kind, n = self.plan.routes
            rule = {"path": '    (when(path="/p{}/*"), apps)', "host": '    (when(host="h{}.example"), apps)'}[kind]
            node = "route([\n" + ",\n".join(rule.format(i) for i in range(n)) + "\n], otherwise=apps)"
        policy = self.plan.policy or "lb.round_robin({}, name=\"apps\")"
        return (f"kept = 1*hours\napps = {policy.format(f'[{chr(10)}{servers}{chr(10)}]')}\n"
                f'limits = http(max_head=64*KiB, idle_timeout=1*hours, max_requests=None, max_age=None)\n'
                f'listen("127.0.0.1:{self.port}", {node}, name="front", http=limits)\n')

    def command(self):
        more = ["--admin", f"127.0.0.1:{self.admin}"] if self.plan.scrapes else []
        return [self.lab.weir, "serve", self.file, "--loops", "1", *more]

    def signal_reload(self):
        self.child.send_signal(signal.SIGHUP)

    def generation(self):
        return len(re.findall(r"reload: (?:generation|error)", self.child.log.read_text()))

    def reload(self, plan):
        took = super().reload(plan)
        if "reload: error" in self.child.log.read_text():
            raise Failure(f"does not reload: {self.said()}")
        return took


class Nginx(Proxy):
    name, file_name = "nginx", "nginx.conf"
    # A request looks through all kept connections, so more of them cost more than new ones do.
    KEPT = 512

    def text(self):
        temporary = "\n".join(f"  {k}_temp_path {self.folder}/{k};" for k in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        servers = "\n".join(f"    server {to};" for to in self.plan.targets)
        kind, n = self.plan.routes or ("", 0)
        listen = f"listen 127.0.0.1:{self.port}"
        paths = "".join(f"    location /p{i}/ {{ proxy_pass http://apps; }}\n" for i in range(n)) if kind == "path" else ""
        hosts = "".join(f"  server {{ {listen}; server_name h{i}.example; location / {{ proxy_pass http://apps; }} }}\n"
                        for i in range(n)) if kind == "host" else ""
        # Its manual asks for larger tables of names where there are many.
        names = f"server_names_hash_max_size {4 * n}; server_names_hash_bucket_size 128;" if kind == "host" else ""
        heads = "large_client_header_buffers 8 64k;" if self.plan.big_heads else ""
        return f"""daemon off; worker_processes 1; user root; pid {self.folder}/pid; error_log stderr crit;
events {{ worker_connections {self.lab.descriptors}; }}
http {{
  access_log off; server_tokens off; tcp_nodelay on; client_max_body_size 0; client_body_buffer_size 64k; {names} {heads}
  keepalive_timeout 3600s; keepalive_requests 1000000000;
{temporary}
  upstream apps {{
{servers}
    keepalive {self.KEPT}; keepalive_requests 1000000000; keepalive_timeout 3600s;
  }}
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
  proxy_request_buffering off; proxy_buffer_size 16k; proxy_buffers 16 16k; proxy_max_temp_file_size 0;
  server {{
    {listen} default_server backlog=4096;
    location / {{ proxy_pass http://apps; }}
{paths}  }}
{hosts}}}
"""

    def command(self):
        return [shutil.which("nginx"), "-c", self.file, "-p", self.folder, "-e", "stderr"]

    def signal_reload(self):
        self.child.send_signal(signal.SIGHUP)


class Haproxy(Proxy):
    name, file_name = "haproxy", "haproxy.cfg"

    def text(self):
        kind, n = self.plan.routes or ("", 0)
        use = ""
        if kind:
            keys = {"path": "/p{}/ apps", "host": "h{}.example apps"}[kind]
            (self.folder / "routes.map").write_text("".join(keys.format(i) + "\n" for i in range(n)))
            key = {"path": "path,map_beg", "host": "req.hdr(host),lower,map"}[kind]
            use = f"  use_backend %[{key}({self.folder}/routes.map,apps)]"
        servers = "\n".join(f"  server s{i} {to}" for i, to in enumerate(self.plan.targets))
        heads = "  tune.bufsize 65536\n  tune.http.maxhdr 256" if self.plan.big_heads else ""
        seamless = f"  stats socket {self.folder}/admin mode 600 level admin expose-fd listeners" if self.plan.reloads else ""
        scrapes = (f"frontend metrics\n  bind 127.0.0.1:{self.admin}\n"
                   "  http-request use-service prometheus-exporter if { path /metrics }\n") if self.plan.scrapes else ""
        # By default it closes idle connections to servers beyond a fifth of its descriptors.
        return f"""global
  nbthread 1
  maxconn {(self.lab.descriptors - 256) // 2}
  tune.pool-low-fd-ratio 80
  tune.pool-high-fd-ratio 90
{heads}
{seamless}
defaults
  mode http
  option http-keep-alive
  http-reuse always
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout http-keep-alive 1h
  timeout http-request 1h
frontend front
  bind 127.0.0.1:{self.port} backlog 4096
{use}
  default_backend apps
{scrapes}backend apps
  balance roundrobin
  default-server pool-purge-delay 1h
{servers}
"""

    def command(self):
        return [shutil.which("haproxy"), *(["-W"] if self.plan.reloads else []), "-db", "-f", self.file]

    def signal_reload(self):
        self.child.send_signal(signal.SIGUSR2)


KINDS = {kind.name: kind for kind in (Weir, Nginx, Haproxy)}
RIVALS = ("nginx", "haproxy")


def present():
    """Those that are installed; weir always is."""
    return [name for name in KINDS if name == "weir" or shutil.which(name)]
