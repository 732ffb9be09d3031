"""weir, nginx and HAProxy before the same origins, each set up as its manual says."""
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from envoy import Envoy
from harness import Target, free_port


@dataclasses.dataclass
class Route:
    """What a proxy is to do: from a listener to origins."""

    origins: list  # host:port
    origin: str = "h1"  # what is spoken to them: h1, h2 (in clear: with prior knowledge), or auto with TLS
    origin_tls: bool = False
    front: str = "h1"  # nginx 1.22 speaks only one of h1 and h2 on a port without TLS
    front_tls: bool = False
    websocket: bool = False
    behind_nginx: bool = False  # an nginx in front, which reaches the proxy by a Unix socket
    behind_envoy: bool = False  # an Envoy in front, which speaks HTTP/2 to the proxy, with TLS if `front_tls`
    envoys: list = dataclasses.field(default_factory=list)  # those among the origins, for rows that drain them
    direct: str = ""  # where a client without a proxy goes; else the first origin
    direct_tls: bool = None
    weir_balance: str = "lb.least_conn({targets}, name = \"apps\")"
    weir_server: str = ""  # further arguments of server(...)
    weir_http: str = ""  # arguments of http(...)
    nginx: str = ""  # further lines of the location
    nginx_grpc: bool = None  # grpc_pass, the only way in which it speaks HTTP/2 to origins; None: if the origin is h2
    nginx_upstream: str = ""
    haproxy: str = ""  # further lines of the backend
    haproxy_server: str = ""  # further words of each server


class Direct:
    name = "direct"

    def __init__(self, bench, route):
        tls = route.origin_tls if route.direct_tls is None else route.direct_tls
        self.children = []
        self.target = Target("direct", route.direct or route.origins[0], tls, self)
        if route.behind_nginx:
            self.target.address = before(bench, self.children, route.origins[0])
        if route.behind_envoy:
            front = Envoy(bench, route.origins, route.front_tls, route.origin_tls)
            self.children.append(front.child)
            self.target = Target("direct", front.address, route.front_tls, self)
        self.bench = bench

    def close(self):
        self.bench.stop(self.children)


def before(bench, children, to):
    """Starts the nginx in front; it names a client of its own, so that one sees who is believed."""
    port = free_port()
    folder = bench.folder / f"front-{port}"
    folder.mkdir()
    temporary = " ".join(f"{k}_temp_path {folder}/{k};" for k in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    (folder / "nginx.conf").write_text(f"""daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1; user root;
events {{ worker_connections 1024; }}
http {{
  access_log off; {temporary}
  upstream behind {{ server {to}; keepalive 16; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For 198.51.100.7; proxy_set_header X-Forwarded-Proto https;
    }}
  }}
}}
""")
    child = bench.spawn(["nginx", "-c", folder / "nginx.conf", "-e", folder / "error.log", "-p", folder])
    children.append(child)
    bench.await_port(port, child)
    return f"127.0.0.1:{port}"


class Proxy:
    """A running proxy; `drain`, `reload` and `hand_over` act on it under load."""

    def __init__(self, bench, route):
        self.bench, self.route = bench, route
        # A port may come again, a name made so does not.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=bench.folder))
        self.folder.chmod(0o755)
        self.file = self.folder / self.config_name
        self.turn, self.drained = 0, set()
        self.children, self.fronts = [], []
        self.socket = self.folder / "socket"
        self.port = free_port()
        self.start()
        address = f"127.0.0.1:{self.port}"
        if route.behind_nginx:
            self.await_socket()
            address = before(bench, self.fronts, f"unix:{self.socket}")
        if route.behind_envoy:
            self.envoy = Envoy(bench, [address], route.front_tls, route.front_tls)
            self.fronts.append(self.envoy.child)
            address = self.envoy.address
        self.target = Target(self.name, address, route.front_tls, self)

    def await_listener(self, child, **more):
        if not self.route.behind_nginx:
            self.bench.await_port(self.port, child, **more)

    def await_socket(self):
        for _ in range(200):
            if self.socket.exists():
                return
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} makes no socket: {self.said()[-300:]}")

    @property
    def listen(self):
        """Where it listens, for weir and nginx."""
        return f"unix:{self.socket}" if self.route.behind_nginx else f"127.0.0.1:{self.port}"

    def close(self):
        self.bench.stop([*self.fronts, *self.children])

    def members(self):
        """The origins with their numbers; each turn of a reload leaves another one out."""
        left_out = self.turn % len(self.route.origins) if self.turn and len(self.route.origins) > 1 else None
        return [(i, origin) for i, origin in enumerate(self.route.origins) if i != left_out]

    def said(self):
        return "".join(child.log.read_text(errors="replace") for child in self.children)


class Weir(Proxy):
    name, config_name = "weir", "app.star"

    def text(self):
        bench, route = self.bench, self.route
        more = f', protocol = "{route.origin}"' if route.origin == "h2" else ""
        if route.origin == "h1" and route.origin_tls:
            more += ', protocol = "h1"'
        if route.origin_tls:
            more += f', tls = tls.client(ca = "{bench.ca}", name = "localhost")'
        if route.weir_server:
            more += f", {route.weir_server}"
        servers = ", ".join(f'server("app{i}", addr = "{origin}"{more})' for i, origin in self.members())
        balance = route.weir_balance.replace("{targets}", f"[{servers}]")
        listen = f'listen("{self.listen}", apps, name = "front"'
        listen += f', tls = tls.server(cert = "{bench.cert}", key = "{bench.key}")' if route.front_tls else ""
        return f"apps = {balance}\n{listen}{f', http = http({route.weir_http})' if route.weir_http else ''})\n"

    def start(self):
        self.control = self.folder / "control"
        self.file.write_text(self.text())
        self.serve()

    def serve(self, *more):
        child = self.bench.spawn([self.bench.weir, "serve", self.file, "--control", self.control, *more])
        self.children.append(child)
        for _ in range(200):
            if "control " in child.log.read_text():
                return child
            if child.poll() is not None:
                raise RuntimeError(f"weir does not serve: {child.log.read_text()}")
            time.sleep(0.05)
        raise RuntimeError("weir does not serve within 10 s")

    def reload(self):
        self.turn += 1
        self.file.write_text(self.text())
        self.children[-1].send_signal(signal.SIGHUP)

    def drain(self, index, state="drain"):
        done = subprocess.run([self.bench.weir, "admin", "set", "apps", f"app{index}", "--state", state,
                               "--control", str(self.control)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"weir admin set: {done.stderr.strip()}")

    def undrain(self, index):
        self.drain(index, "file")

    def hand_over(self):
        self.serve("--replace")


class Nginx(Proxy):
    name, config_name = "nginx", "nginx.conf"

    def text(self):
        bench, route, folder = self.bench, self.route, self.folder
        servers = "\n".join(f"    server {origin}{' down' if i in self.drained else ''};" for i, origin in self.members())
        tls = "s" if route.origin_tls else ""
        kind = "grpc" if (route.nginx_grpc if route.nginx_grpc is not None else route.origin == "h2") else "proxy"
        location = [f"{kind}_pass {'grpc' if kind == 'grpc' else 'http'}{tls}://apps;"]
        if route.origin_tls:
            location += [f"{kind}_ssl_trusted_certificate {bench.ca};", f"{kind}_ssl_verify on;", f"{kind}_ssl_name localhost;",
                         f"{kind}_ssl_server_name on;"]
        if kind == "proxy":
            location += ["proxy_http_version 1.1;", "proxy_set_header Host $http_host;",
                         "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"]
            location += ["proxy_set_header Upgrade $http_upgrade;", "proxy_set_header Connection $connection_upgrade;"] \
                if route.websocket else ['proxy_set_header Connection "";']
        if route.nginx:
            location.append(route.nginx)
        listen = f"listen {self.listen}{' ssl http2' if route.front_tls else ' http2' if route.front == 'h2' else ''};"
        temporary = "\n".join(f"  {k}_temp_path {folder}/{k};" for k in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        certificate = f"  ssl_certificate {bench.cert}; ssl_certificate_key {bench.key};" if route.front_tls else ""
        newline = "\n      "
        return f"""daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off; server_tokens off; keepalive_requests 1000000; # {self.turn}
{temporary}
  map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  upstream apps {{
{servers}
    {route.nginx_upstream}
    keepalive 64;
  }}
  server {{
    {listen}
  {certificate}
    location / {{
      {newline.join(location)}
    }}
  }}
}}
"""

    def start(self):
        self.file.write_text(self.text())
        # Its parent ends soon, and it has a whole path: otherwise it could not replace itself (SIGUSR2).
        command = f"{shutil.which('nginx')} -c {self.file} -e {self.folder}/error.log -p {self.folder} & sleep 0.5"
        child = self.bench.spawn(["sh", "-c", command])
        self.children.append(child)
        child.wait(10)
        self.await_listener(child, ended=self.said)

    def said(self):
        log = self.folder / "error.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def reload(self):
        self.turn += 1
        self.file.write_text(self.text())
        os.kill(self.master(), signal.SIGHUP)

    def drain(self, index):
        self.drained.add(index)
        self.reload()

    def undrain(self, index):
        self.drained.discard(index)
        self.reload()

    def hand_over(self):
        """Its upgrade of the program in place: a second master, then the first one quits."""
        old = self.master()
        os.kill(old, signal.SIGUSR2)
        for _ in range(100):
            time.sleep(0.05)
            if self.master() not in (None, old):
                break
        time.sleep(0.3)
        os.kill(old, signal.SIGQUIT)

    def master(self):
        pid = self.folder / "pid"
        text = pid.read_text().strip() if pid.exists() else ""
        return int(text) if text else None


class Haproxy(Proxy):
    name, config_name = "haproxy", "haproxy.cfg"

    def text(self):
        bench, route = self.bench, self.route
        bind = f"bind {f'unix@{self.socket}' if route.behind_nginx else f'127.0.0.1:{self.port}'}" + (f" ssl crt {bench.both} alpn h2,http/1.1" if route.front_tls else "")
        more = ""
        if route.origin_tls:
            more += f" ssl verify required ca-file {bench.ca} verifyhost localhost sni str(localhost)"
            more += " alpn h2,http/1.1" if route.origin in ("h2", "auto") else " alpn http/1.1"
        elif route.origin == "h2":
            more += " proto h2"
        servers = "\n".join(f"  server app{i} {origin}{more} {route.haproxy_server.replace('{i}', str(i))}"
                            for i, origin in self.members())
        return f"""global
  maxconn 4096
  stats socket {self.folder}/admin mode 600 level admin
# {self.turn}
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout tunnel 1h
  timeout http-request 10s
  option forwardfor
frontend front
  {bind}
  default_backend apps
backend apps
  {route.haproxy}
{servers}
"""

    def start(self):
        self.file.write_text(self.text())
        child = self.bench.spawn(["haproxy", "-W", "-db", "-f", self.file])
        self.children.append(child)
        self.await_listener(child)

    def command(self, line):
        import socket
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(5)
            s.connect(str(self.folder / "admin"))
            s.sendall(line.encode() + b"\n")
            return s.recv(65536).decode()

    def reload(self):
        self.turn += 1
        self.file.write_text(self.text())
        self.children[0].send_signal(signal.SIGUSR2)

    def drain(self, index):
        self.command(f"set server apps/app{index} state drain")

    def undrain(self, index):
        self.command(f"set server apps/app{index} state ready")

    hand_over = reload


KINDS = {"direct": Direct, "weir": Weir, "nginx": Nginx, "haproxy": Haproxy}
