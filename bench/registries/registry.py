"""What all sources of the bench share: what a registry is asked for by the parts, and how a real one is started and asked."""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request

LOOPBACK = "127.40"
STARTS_S = 180


class Registry:
    """A registry with the service `app`. `start` begins without a member, `stop` ends as a killed process does."""

    label = ""
    # From the moment that a change is made until all loops have it.
    bound_s = 0.2
    # The first two bytes of the members' addresses.
    network = LOOPBACK
    # Members that its list can have.
    most = 100_000
    # Whether a change of many members is one step for whoever asks.
    at_once = True
    # How long all parts take with --ci.
    ci_s = 30
    thread = "weir-registries"

    def __init__(self, site):
        self.site, self.member_port = site, site.member_port

    @staticmethod
    def missing(_args):
        """What this machine lacks to play it."""
        return None

    def fleet(self, name="app"):
        raise NotImplementedError

    def start(self):
        raise NotImplementedError

    def stop(self):
        raise NotImplementedError

    def set(self, hosts):
        raise NotImplementedError

    def forget_soon(self):
        """Its differences shall not have what changed more than some seconds ago."""

    def own_parts(self):
        """Parts that only this one has: names, and what is done in them."""
        return []

    def close(self):
        """Gives back what is not in the site's folder."""


class Program:
    """A registry's process. Its output is kept in the site's folder."""

    def __init__(self, site, name, words, **more):
        self.name, self.log = name, site.folder / f"{name}.log"
        with open(self.log, "a", encoding="utf-8") as log:
            more.setdefault("cwd", site.folder)
            words = [str(word) for word in words]
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, **more)
        site.processes.append(self.process)

    def await_ready(self, is_ready):
        end = time.monotonic() + STARTS_S
        while not is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{self.name} does not serve:\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.1)
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()


def program(name):
    """The path of a program, also where the folders for administrators are not in PATH."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin")


def ask(method, url, value=None, context=None, **fields):
    """The status and the body; `None`: no answer."""
    body = None if value is None else json.dumps(value).encode()
    fields = {"Accept": "application/json", "Content-Type": "application/json", **fields}
    request = urllib.request.Request(url, body, fields, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()
    except OSError:
        return None, b""


def demand(wanted, method, url, value=None, context=None, **fields):
    """The body of an answer that has one of these statuses."""
    status, body = ask(method, url, value, context, **fields)
    if status not in wanted:
        raise SystemExit(f"{status} answers {method} {url}, not {wanted}: {body[:300]!r}")
    return body
