"""Kubernetes' own API server with etcd, without controllers or nodes: the slices are written by this bench, as a controller would.
bench/registries/build-kube-apiserver builds one. It refuses addresses of loopback, so the members have some of 10.77.0.0/16, which
this machine takes for its own while the bench runs."""

import os
import shutil
import ssl
import subprocess

from kubernetes import PATH, endpoint_slice, in_slices, kubeconfig
from registry import Program, Registry, ask, demand, program

TOKEN = "bench"
LOCAL = ("local", "10.77.0.0/16", "dev", "lo")


class ApiServer(Registry):
    """The slices of `app`, by an etcd that begins empty."""

    label = "kubernetes (kube-apiserver)"
    network = "10.77"
    # A change is made by as many calls as there are slices in it.
    bound_s = 0.5
    at_once = False
    ci_s = 60

    def __init__(self, site):
        super().__init__(site)
        self.port, self.etcd_port, self.peer_port = (site.free_port() for _ in range(3))
        self.keys = site.folder / "keys"
        self.keys.mkdir()
        self.certify()
        self.config = site.folder / "kubeconfig"
        self.config.write_text(kubeconfig(self.url(""), TOKEN, self.keys / "ca.pem"))
        self.context = ssl.create_default_context(cafile=str(self.keys / "ca.pem"))
        self.slices, self.programs = {}, []
        subprocess.run([program("ip"), "route", "replace", *LOCAL], check=True)

    @staticmethod
    def missing(args):
        if not args.kube_apiserver:
            return "it is not built: bench/registries/build-kube-apiserver, or --kube-apiserver PATH"
        if not os.access(args.kube_apiserver, os.X_OK):
            return f"{args.kube_apiserver} is no program"
        for word, remedy in (("etcd", "etcd-server"), ("openssl", "openssl"), ("ip", "iproute2")):
            if not program(word):
                return f"{word} is missing: apt install {remedy}"
        if os.geteuid() != 0:
            return "only root can have addresses that are not of loopback"
        return None

    def certify(self):
        """An authority with a certificate for 127.0.0.1, and the key of service accounts."""
        ca, leaf, more = self.keys / "ca", self.keys / "leaf", self.keys / "more"
        more.write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
        new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        authority = ["-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", "2", "-extfile", more]
        for words in (
            [*new, "-x509", "-days", "2", "-subj", "/CN=bench", "-keyout", f"{ca}.key", "-out", f"{ca}.pem"],
            [*new, "-subj", "/CN=127.0.0.1", "-keyout", f"{leaf}.key", "-out", f"{leaf}.csr"],
            ["x509", "-req", "-in", f"{leaf}.csr", *authority, "-out", f"{leaf}.pem"],
            ["genrsa", "-out", self.keys / "accounts.key", "2048"],
        ):
            subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
        (self.keys / "tokens").write_text(f'{TOKEN},admin,1,"system:masters"\n')

    def fleet(self, name="app"):
        return f'find.kubernetes("{name}", lambda: server("app"), kubeconfig="{self.config}")'

    def start(self):
        data, self.slices = self.site.folder / "etcd", {}
        shutil.rmtree(data, ignore_errors=True)
        client, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{self.peer_port}"
        urls = {"listen-client-urls": client, "advertise-client-urls": client, "listen-peer-urls": peer}
        urls |= {"initial-advertise-peer-urls": peer, "initial-cluster": f"default={peer}", "data-dir": data}
        etcd = Program(self.site, "etcd", [program("etcd"), *flags(urls)])
        etcd.await_ready(lambda: ask("GET", f"{client}/health")[0] == 200)
        key = self.keys / "accounts.key"
        settings = {"etcd-servers": client, "bind-address": "127.0.0.1", "secure-port": self.port, "cert-dir": self.keys}
        settings |= {"tls-cert-file": self.keys / "leaf.pem", "tls-private-key-file": self.keys / "leaf.key"}
        settings |= {"service-account-issuer": "https://bench", "service-account-key-file": key}
        settings |= {"service-account-signing-key-file": key, "service-cluster-ip-range": "10.96.0.0/24"}
        settings |= {"authorization-mode": "AlwaysAllow", "token-auth-file": self.keys / "tokens"}
        settings |= {"disable-admission-plugins": "ServiceAccount"}
        server = Program(self.site, "kube-apiserver", [self.site.args.kube_apiserver, *flags(settings)])
        self.programs = [server, etcd]
        server.await_ready(lambda: self.ask("GET", "/readyz")[0] == 200)

    def stop(self):
        for running in self.programs:
            running.kill()

    def close(self):
        subprocess.run([program("ip"), "route", "del", *LOCAL], check=False, capture_output=True)

    def set(self, hosts):
        wanted = in_slices(hosts)
        for name in sorted(wanted.keys() | self.slices.keys()):
            if self.slices.get(name) == wanted.get(name):
                continue
            if name not in wanted:
                self.demand([200], "DELETE", f"{PATH}/{name}")
            elif name in self.slices:
                self.demand([200], "PUT", f"{PATH}/{name}", endpoint_slice(name, wanted[name], self.member_port))
            else:
                self.demand([201], "POST", PATH, endpoint_slice(name, wanted[name], self.member_port))
        self.slices = wanted

    def url(self, path):
        return f"https://127.0.0.1:{self.port}{path}"

    def ask(self, method, path):
        return ask(method, self.url(path), context=self.context, Authorization=f"Bearer {TOKEN}")

    def demand(self, wanted, method, path, value=None):
        return demand(wanted, method, self.url(path), value, self.context, Authorization=f"Bearer {TOKEN}")


def flags(settings):
    return [f"--{name}={value}" for name, value in settings.items()]
