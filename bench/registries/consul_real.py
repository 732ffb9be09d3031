"""Consul itself: an agent as server, in its mode for development, which keeps nothing on disk. bench/registries/build-consul builds one."""

import json
import os

from consul import Consul
from registry import Program, ask, demand


class ConsulAgent(Consul):
    """The agent; what is asked of it is what is asked of the stand-in."""

    label = "consul (agent -dev)"
    # A change is made by as many calls as there are members in it.
    bound_s = 0.5
    at_once = False

    def __init__(self, site):
        super().__init__(site)
        self.ports = {"http": self.port, "server": site.free_port(), "serf_lan": site.free_port()}
        self.program = None

    @staticmethod
    def missing(args):
        if not args.consul:
            return "it is not built: bench/registries/build-consul, or --consul PATH"
        return None if os.access(args.consul, os.X_OK) else f"{args.consul} is no program"

    def start(self):
        """Begins without any instance."""
        self.members = []
        others = {"dns": -1, "https": -1, "grpc": -1, "grpc_tls": -1, "serf_wan": -1}
        file = self.site.folder / "consul.json"
        file.write_text(json.dumps({"ports": {**self.ports, **others}, "disable_update_check": True}))
        words = [self.site.args.consul, "agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1", "-log-level=warn", "-node=bench"]
        self.program = Program(self.site, "consul", [*words, f"-config-file={file}"]).await_ready(self.is_ready)

    def is_ready(self):
        """Whether it has a leader, which lists this agent as healthy: before that no instance passes."""
        status, body = ask("GET", self.url("/v1/health/node/bench"))
        return status == 200 and any(check["Status"] == "passing" for check in json.loads(body))

    def stop(self):
        self.program.kill()

    def set(self, hosts):
        for host in sorted(set(hosts) - set(self.members)):
            service = {"ID": f"app-{host}", "Name": "app", "Address": host, "Port": self.member_port}
            demand([200], "PUT", self.url("/v1/agent/service/register"), service)
        for host in sorted(set(self.members) - set(hosts)):
            demand([200], "PUT", self.url(f"/v1/agent/service/deregister/app-{host}"))
        self.members = sorted(hosts)

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"
