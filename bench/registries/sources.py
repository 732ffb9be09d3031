"""The sources that need no stand-in: a file, and Eureka by Spring Cloud's own server, alone or with a peer."""

import collections
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

from registry import Program, Registry, ask, demand

PROJECT = pathlib.Path(__file__).resolve().parent / "eureka"
BUILD_S = 1800
AGREE_S = 30
# Maven, while it builds.
building = []


class File(Registry):
    """A list that is moved over the one before. Without its registry there is none."""

    label = "file"
    thread = "weir-list"
    ci_s = 25

    def __init__(self, site):
        super().__init__(site)
        self.path = site.folder / "list.json"

    def fleet(self, name="app"):
        return 'find.file("list.json", lambda: server("app"))'

    def start(self):
        self.set([])

    def stop(self):
        self.path.unlink()

    def set(self, hosts):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps([f"{host}:{self.member_port}" for host in hosts]))
        new.rename(self.path)


class Eureka(Registry):
    """Spring Cloud's server, built by Maven once."""

    label = "eureka (Spring Cloud)"
    poll_s = 1
    # A poll is drawn within a tenth, and a difference costs one reading more. Besides, a list that a server makes while it is told of a
    # change can lack that change until the server makes it anew: after three minutes by default, here after a second.
    bound_s = 3.5
    at_once = False
    ci_s = 80
    servers = 1

    def __init__(self, site):
        super().__init__(site)
        self.ports = [site.free_port() for _ in range(self.servers)]
        self.programs = [None] * self.servers
        self.hosts, self.more = set(), []
        # How often each has left.
        self.left = collections.Counter()
        self.jar = jar(site.args.cache)

    @staticmethod
    def missing(args):
        if not shutil.which("java"):
            return "java is missing: apt install default-jre-headless"
        if not jar_path(args.cache).exists():
            if not shutil.which("mvn"):
                return "mvn is missing, which builds its server: apt install default-jdk-headless maven"
            if args.ci:
                return "its server is not built yet: bench/registries/run --build"
        return None

    def fleet(self, name="app"):
        urls = json.dumps([url(port) for port in self.ports])
        return f'find.eureka({urls}, "{name.upper()}", lambda: server("app"), poll={self.poll_s}*s)'

    def start(self):
        self.hosts = set()
        for n in range(self.servers):
            self.begin(n)
        for n in range(self.servers):
            self.await_ready(n)

    def begin(self, n):
        words = ["java", "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", self.jar, f"--server.port={self.ports[n]}"]
        words.append("--eureka.server.response-cache-auto-expiration-in-seconds=1")
        self.programs[n] = Program(self.site, f"eureka{n}", words + self.properties(n) + self.more)

    def forget_soon(self):
        """By default a difference has the last three minutes: at the beginning all members."""
        self.more = ["--eureka.server.retention-time-in-m-s-in-delta-queue=5000"]
        self.more += ["--eureka.server.delta-retention-timer-interval-in-ms=1000"]

    def properties(self, n):
        """How this server differs from its application.properties."""
        return []

    def await_ready(self, n):
        self.programs[n].await_ready(lambda: ask("GET", f"{url(self.ports[n])}/apps")[0] == 200)

    def alive(self):
        return [n for n, program in enumerate(self.programs) if program and program.process.poll() is None]

    def stop(self):
        for n in self.alive():
            self.programs[n].kill()

    def set(self, hosts):
        hosts, to = set(hosts), url(self.ports[self.alive()[0]])
        for host in sorted(hosts - self.hosts):
            demand([204], "POST", f"{to}/apps/APP", {"instance": self.instance(host)})
        for host in sorted(self.hosts - hosts):
            demand([200], "DELETE", f"{to}/apps/APP/{self.id(host)}")
            self.left[host] += 1
        self.hosts = hosts

    def id(self, host):
        """One that comes back is another instance: servers may tell each other of one instance in another order than it happened."""
        return f"app-{host}-{self.left[host]}"

    def instance(self, host):
        return {
            "instanceId": self.id(host),
            "hostName": host,
            "app": "APP",
            "ipAddr": host,
            "status": "UP",
            "port": {"$": self.member_port, "@enabled": "true"},
            "securePort": {"$": 443, "@enabled": "false"},
            "vipAddress": "app",
            "dataCenterInfo": {"@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "name": "MyOwn"},
            # No heartbeat comes while this bench runs.
            "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 36000},
        }


class Peers(Eureka):
    """Two servers that copy what they are told to each other. A change is made when both of them have it."""

    label = "eureka (two peers)"
    servers = 2
    ci_s = 100

    def properties(self, n):
        return [
            f"--eureka.client.service-url.defaultZone={url(self.ports[1 - n])}/",
            # A server takes an address with its own host name for its own.
            f"--eureka.instance.hostname=registry-{n}",
            # It begins with what its peer has.
            "--eureka.client.fetch-registry=true",
            "--eureka.server.registry-sync-retries=1",
        ]

    def set(self, hosts):
        gone = [self.id(host) for host in self.hosts - set(hosts)]
        come = set(hosts) - self.hosts
        super().set(hosts)
        self.agree(come, gone)

    def agree(self, come, gone=()):
        """Waits until all servers that run have these hosts, and not those instances. (Lists would be ones that a server has kept.)"""
        end = time.monotonic() + AGREE_S
        wanted = {**{self.id(host): 200 for host in come}, **{instance: 404 for instance in gone}}
        for n in self.alive():
            for instance, status in sorted(wanted.items()):
                while (came := ask("GET", f"{url(self.ports[n])}/apps/APP/{instance}")[0]) != status:
                    if time.monotonic() > end:
                        raise SystemExit(f"Eureka's server {n} says {came} of {instance}, not {status}, for {AGREE_S} s")
                    time.sleep(0.05)

    def own_parts(self):
        return [("peer killed", self.kill_peers)]

    def kill_peers(self, part):
        """Kills the server that weir asks; without --ci the other one too, after the first one has come back."""
        for n in range(1 if self.site.args.ci else 2):
            asked = self.asked()
            self.programs[asked].kill()
            part.flap()
            if not self.site.args.ci:
                self.begin(asked)
                self.await_ready(asked)
                self.agree(self.hosts)

    def asked(self):
        """The server to which weir has a connection."""
        end = time.monotonic() + AGREE_S
        while time.monotonic() < end:
            for n in self.alive():
                if is_connected(self.site.weir.pid, self.ports[n]):
                    return n
            time.sleep(0.05)
        raise SystemExit(f"weir has no connection to Eureka for {AGREE_S} s")


def url(port):
    return f"http://127.0.0.1:{port}/eureka"


def is_connected(pid, port):
    """Whether a process has an open TCP connection to this port."""
    held = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            held.update(re.findall(r"^socket:\[(\d+)\]$", os.readlink(entry)))
        except OSError:
            continue
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table][1:]
    return any(row[2].endswith(f":{port:04X}") and row[3] == "01" and row[9] in held for row in rows)


def jar_path(cache):
    """Where the server is, once it is built from what the project holds now."""
    files = sorted(path for path in PROJECT.rglob("*") if path.is_file())
    text = b"".join(path.read_bytes() for path in files)
    return cache / f"eureka-{hashlib.sha256(text).hexdigest()[:16]}.jar"


class NotBuilt(SystemExit):
    """Maven has not built Eureka's server."""


def jar(cache, limit_s=BUILD_S):
    path = jar_path(cache)
    if path.exists():
        return path
    print("eureka: Maven builds its server once, which takes two minutes", flush=True)
    folder = cache / "eureka-build"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PROJECT, folder)
    log = folder / "maven.log"
    words = ["mvn", "-q", "-B", f"-Dmaven.repo.local={cache / 'maven'}", "package"]
    with open(log, "wb") as out:
        maven = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    building.append(maven)
    try:
        code = maven.wait(limit_s)
    except subprocess.TimeoutExpired:
        raise NotBuilt(f"Maven has not ended within {limit_s} s") from None
    finally:
        maven.kill()
        maven.wait()
        building.remove(maven)
    if code != 0:
        raise NotBuilt(f"Maven fails:\n{log.read_text(errors='replace')[-4000:]}")
    shutil.move(folder / "target" / "registry.jar", path)
    shutil.rmtree(folder)
    return path


def end_build():
    """Ends Maven, if it runs, and waits for nothing."""
    for maven in list(building):
        maven.kill()
