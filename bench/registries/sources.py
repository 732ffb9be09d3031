"""The sources that need no stand-in: a file, and Eureka by Spring Cloud's own server."""

import hashlib
import json
import pathlib
import shutil
import subprocess
import time
import urllib.error
import urllib.request

PROJECT = pathlib.Path(__file__).resolve().parent / "eureka"
BUILD_S = 1800
STARTS_S = 180


class File:
    """A list that is moved over the one before. Without its registry there is none."""

    label = "file"
    bound_s = 0.2

    def __init__(self, site):
        self.path, self.member_port = site.folder / "list.json", site.member_port

    @staticmethod
    def missing(_):
        return None

    def fleet(self):
        return 'find.file("list.json", lambda: server("app"))'

    def start(self):
        self.set([])

    def stop(self):
        self.path.unlink()

    def set(self, hosts):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps([f"{host}:{self.member_port}" for host in hosts]))
        new.rename(self.path)


class Eureka:
    """Spring Cloud's server, built by Maven once."""

    label = "eureka (Spring Cloud)"
    poll_s = 1
    # A poll is drawn within a tenth, and a difference costs one reading more.
    bound_s = 2.5

    def __init__(self, site):
        self.site, self.port, self.member_port = site, site.free_port(), site.member_port
        self.url = f"http://127.0.0.1:{self.port}/eureka"
        self.hosts, self.process = set(), None
        self.jar = jar(site.args.cache)

    @staticmethod
    def missing(args):
        for word in ("java", "mvn"):
            if not shutil.which(word) and not (word == "mvn" and jar_path(args.cache).exists()):
                return f"{word} is missing: apt install default-jdk-headless maven"
        return None

    def fleet(self):
        return f'find.eureka(["{self.url}"], "APP", lambda: server("app"), poll={self.poll_s}*s)'

    def start(self):
        self.hosts = set()
        words = ["java", "-Xmx200m", "-XX:+UseSerialGC", "-jar", str(self.jar), f"--server.port={self.port}"]
        log = open(self.site.folder / "eureka.log", "a", encoding="utf-8")
        self.process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, cwd=self.site.folder)
        self.site.processes.append(self.process)
        end = time.monotonic() + STARTS_S
        while self.ask("GET", "/apps") != 200:
            if self.process.poll() is not None or time.monotonic() > end:
                text = (self.site.folder / "eureka.log").read_text()
                raise SystemExit(f"Eureka does not serve:\n{text[-4000:]}")
            time.sleep(0.1)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def set(self, hosts):
        hosts = set(hosts)
        for host in sorted(hosts - self.hosts):
            self.demand(204, "POST", "/apps/APP", {"instance": self.instance(host)})
        for host in sorted(self.hosts - hosts):
            self.demand(200, "DELETE", f"/apps/APP/app-{host}")
        self.hosts = hosts

    def instance(self, host):
        return {
            "instanceId": f"app-{host}",
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

    def demand(self, status, method, path, value=None):
        came = self.ask(method, path, value)
        if came != status:
            raise SystemExit(f"Eureka answers {came} to {method} {path}, not {status}")

    def ask(self, method, path, value=None):
        """The status; `None`: no answer."""
        body = None if value is None else json.dumps(value).encode()
        fields = {"Accept": "application/json", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body, fields, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                answer.read()
                return answer.status
        except urllib.error.HTTPError as e:
            return e.code
        except OSError:
            return None


def jar_path(cache):
    """Where the server is, once it is built from what the project holds now."""
    files = sorted(path for path in PROJECT.rglob("*") if path.is_file())
    text = b"".join(path.read_bytes() for path in files)
    return cache / f"eureka-{hashlib.sha256(text).hexdigest()[:16]}.jar"


def jar(cache):
    path = jar_path(cache)
    if path.exists():
        return path
    print("eureka: Maven builds its server once, which takes two minutes", flush=True)
    build = cache / "eureka-build"
    shutil.rmtree(build, ignore_errors=True)
    shutil.copytree(PROJECT, build)
    words = ["mvn", "-q", "-B", f"-Dmaven.repo.local={cache / 'maven'}", "package"]
    built = subprocess.run(words, cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_S)
    if built.returncode != 0:
        raise SystemExit(f"Maven fails:\n{built.stdout[-4000:]}")
    shutil.move(build / "target" / "registry.jar", path)
    shutil.rmtree(build)
    return path
