"""DNS by real servers: PowerDNS with its bind backend, and Knot DNS. Each reads a zone file, and is told when there is a new one."""

import socket
import subprocess

from names import TTL_S, ZONE, Names
from registry import Program, program

TELLS_S = 20


class ZoneServer(Names):
    """A server with the zone of the bench."""

    def __init__(self, site):
        super().__init__(site)
        self.zone, self.serial, self.program = site.folder / "zone", 0, None

    def write(self, hosts):
        """The zone; without a member the name does not exist."""
        self.serial += 1
        lines = [f"$ORIGIN {ZONE}.", f"$TTL {TTL_S}", f"@ SOA ns root {self.serial} 60 60 60 {TTL_S}", "@ NS ns", "ns A 127.0.0.1"]
        new = self.zone.with_suffix(".new")
        new.write_text("\n".join(lines + [f"app A {host}" for host in hosts]) + "\n")
        new.rename(self.zone)

    def start(self):
        self.write([])
        self.program = Program(self.site, self.words[0], self.command()).await_ready(self.is_ready)

    def stop(self):
        self.program.kill()

    def set(self, hosts):
        self.write(hosts)
        told = subprocess.run(self.told(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TELLS_S)
        if told.returncode != 0:
            raise SystemExit(f"{self.words[0]} does not take the zone: {told.stdout}")

    def is_ready(self):
        with socket.socket(socket.AF_UNIX) as control, socket.socket() as tcp:
            return control.connect_ex(str(self.control)) == 0 and tcp.connect_ex(("127.0.0.1", self.port)) == 0


class PowerDns(ZoneServer):
    label = "dns (pdns_server)"
    words = ("pdns_server", "pdns_control")

    def __init__(self, site):
        super().__init__(site)
        self.control = site.folder / "pdns.controlsocket"

    @staticmethod
    def missing(_args):
        remedy = "apt install pdns-server pdns-backend-bind"
        path = program("pdns_server")
        if not path or not program("pdns_control"):
            return f"pdns_server is missing: {remedy}"
        tried = subprocess.run([path, "--no-config", "--launch=bind", "--config=check"], capture_output=True, timeout=TELLS_S)
        return None if tried.returncode == 0 else f"pdns_server has no bind backend: {remedy}"

    def command(self):
        names = self.site.folder / "named.conf"
        names.write_text(f'options {{ directory "{self.site.folder}"; }};\nzone "{ZONE}" {{ type master; file "{self.zone}"; }};\n')
        settings = {"daemon": "no", "guardian": "no", "launch": "bind", "bind-config": names, "socket-dir": self.site.folder}
        settings |= {"local-address": "127.0.0.1", "local-port": self.port, "receiver-threads": 1, "distributor-threads": 1}
        # Nothing is kept beyond a change, and nobody is asked whether this version is safe.
        settings |= {"cache-ttl": 0, "query-cache-ttl": 0, "negquery-cache-ttl": 0, "security-poll-suffix": ""}
        settings |= {"write-pid": "no", "disable-syslog": "yes", "webserver": "no"}
        return [program("pdns_server"), "--no-config", *(f"--{name}={value}" for name, value in settings.items())]

    def told(self):
        return [program("pdns_control"), "--no-config", f"--socket-dir={self.site.folder}", "bind-reload-now", ZONE]


class Knot(ZoneServer):
    label = "dns (knotd)"
    words = ("knotd", "knotc")

    def __init__(self, site):
        super().__init__(site)
        self.control = site.folder / "knot.sock"

    @staticmethod
    def missing(_args):
        return None if program("knotd") and program("knotc") else "knotd is missing: apt install knot"

    def command(self):
        file = self.site.folder / "knot.conf"
        file.write_text(f"""server:
  rundir: {self.site.folder}
  listen: 127.0.0.1@{self.port}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: {self.site.folder}
control:
  listen: {self.control}
log:
  - target: stderr
    any: warning
zone:
  - domain: {ZONE}
    file: {self.zone}
    semantic-checks: off
""")
        return [program("knotd"), "-c", file]

    def told(self):
        return [program("knotc"), "-s", self.control, "-b", "zone-reload", ZONE]
