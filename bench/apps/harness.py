"""What every row needs: processes that end with us, ports, certificates, and a way to run a client and read its result."""
import atexit
import ctypes
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

APPS = pathlib.Path(__file__).resolve().parent
TOP = APPS.parents[1]
INSTALLED = TOP / "target/applications"
SERVERS, CLIENTS = APPS / "servers", APPS / "clients"


@dataclasses.dataclass
class Outcome:
    """What a client says of one run: how many operations went well, how many did not, and why the first did not."""

    ok: int = 0
    failed: int = 0
    why: str = ""
    note: str = ""

    @property
    def good(self):
        return self.ok > 0 and self.failed == 0


@dataclasses.dataclass
class Row:
    """One line of the table: a client that does one thing for some seconds."""

    name: str
    run: object  # (Bench, Target, seconds) -> Outcome
    ci: bool = True
    waits_s: int = 0  # it mostly waits, this long: all ways at once, and only if asked for
    least_s: int = 0  # less than this is too short to show anything


def by_hand(rows):
    """The rows, but not in CI, where others show the same."""
    return [dataclasses.replace(row, ci=False) for row in rows]


@dataclasses.dataclass
class Application:
    """A server, what stands before it, and the rows that its clients make."""

    name: str
    about: str
    needs: list  # "command", "python:module", "npm:package"
    line: str  # the line of weir's configuration without which it would not work, or ""
    start: object  # (Bench) -> Route
    rows: list


@dataclasses.dataclass
class Target:
    """Where a client connects to."""

    way: str
    address: str  # host:port
    tls: bool = False
    proxy: object = None

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://{self.address}"


def preload():
    """In the child: it gets SIGTERM if the thread that started it ends, so also if this process is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class Bench:
    """Owns a temporary folder and all processes; `close` ends them, also on Ctrl-C and SIGTERM."""

    def __init__(self, weir, verbose=False, name="applications", certificates=True):
        self.weir, self.verbose = weir, verbose
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"weir-{name}-"))
        self.folder.chmod(0o755)
        self.children = []
        self.python = str(INSTALLED / "venv/bin/python") if (INSTALLED / "venv/bin/python").exists() else sys.executable
        self.counter = 0
        atexit.register(self.close)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        if certificates:
            self._certify()

    # Processes

    def spawn(self, command, **options):
        """Starts a server; what it says goes to a file, whose name is `child.log`."""
        self.counter += 1
        log = self.folder / f"{self.counter}-{pathlib.Path(str(command[0])).name}.log"
        options.setdefault("env", self.environment())
        with open(log, "wb") as out:
            options.setdefault("stdout", out)
            child = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stderr=out,
                                     preexec_fn=preload, start_new_session=True, **options)
        child.log = log
        self.children.append(child)
        return child

    def stop(self, children, patience_s=3):
        for child in children:
            if child.poll() is None:
                child.terminate()
        end = time.monotonic() + patience_s
        for child in children:
            try:
                child.wait(max(0.05, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
            if child in self.children:
                self.children.remove(child)

    def close(self):
        self.stop(list(self.children), patience_s=1)
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self, **more):
        return {**os.environ, "NODE_PATH": str(INSTALLED / "node/node_modules"), "CA": str(self.ca), "CERT": str(self.cert),
                "KEY": str(self.key), "NODE_EXTRA_CA_CERTS": str(self.ca), "SSL_CERT_FILE": str(self.ca),
                "PYTHONUNBUFFERED": "1", "GRPC_VERBOSITY": "NONE", "NO_PROXY": "*", "no_proxy": "*", **more}

    # Servers

    def python_server(self, script, *arguments, **more):
        return self.server([self.python, SERVERS / script], *arguments, **more)

    def node_server(self, script, *arguments, **more):
        return self.server(["node", SERVERS / script], *arguments, **more)

    def server(self, command, *arguments, **more):
        """Starts a server with a free port as its first argument, and waits until it accepts; the result is its address."""
        port = free_port()
        child = self.spawn([*command, port, *arguments], env=self.environment(**more))
        self.await_port(port, child)
        return f"127.0.0.1:{port}"

    def await_port(self, port, child, limit_s=20, ended=None):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if ended and "[emerg]" in ended():
                raise RuntimeError(ended().strip()[-600:])
            if not ended and child.poll() is not None:
                raise RuntimeError(f"{child.args[:2]} ended: {child.log.read_text(errors='replace')[-600:]}")
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.03)
        raise RuntimeError(f"{child.args[:2]} does not accept: {child.log.read_text(errors='replace')[-600:]}")

    # Clients

    def python_client(self, script, check, target, seconds, **more):
        return self.client([self.python, CLIENTS / script], check, target, seconds, **more)

    def node_client(self, script, check, target, seconds, **more):
        return self.client(["node", CLIENTS / script], check, target, seconds, **more)

    def client(self, command, check, target, seconds, limit_s=None, **more):
        """Runs a client, whose last line is its result as JSON; one that does not end is a failure."""
        command = [*map(str, command), check, target.address, str(seconds)]
        environment = self.environment(SCHEME="https" if target.tls else "http", **more)
        done = self.run(command, limit_s or seconds + 15, env=environment)
        if done is None:
            return Outcome(failed=1, why=f"hangs: not done after {limit_s or seconds + 15} s")
        if self.verbose and done.stderr:
            print(f"    {target.way}: {done.stderr.strip()[-2000:]}", file=sys.stderr)
        try:
            return Outcome(**json.loads(done.stdout.strip().splitlines()[-1]))
        except (ValueError, IndexError, TypeError):
            return Outcome(failed=1, why=f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")

    def run(self, command, limit_s, **options):
        """Runs a command to its end; None if that takes too long (it is then killed with all that it started)."""
        options.setdefault("env", self.environment())
        child = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, errors="replace", preexec_fn=preload,
                                 start_new_session=True, **options)
        self.children.append(child)
        try:
            out, err = child.communicate(timeout=limit_s)
            return subprocess.CompletedProcess(command, child.returncode, out, err)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
            self.children.remove(child)

    # Certificates: an authority, and one certificate of it for localhost

    def _certify(self):
        self.ca, self.cert, self.key, self.both = (self.folder / n for n in ["ca.pem", "cert.pem", "key.pem", "both.pem"])
        elliptic = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        request, extensions = self.folder / "request.pem", self.folder / "extensions"
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        for command in [
            ["openssl", "req", "-x509", *elliptic, "-days", "2", "-subj", "/CN=weir applications",
             "-keyout", self.folder / "ca.key", "-out", self.ca],
            ["openssl", "req", *elliptic, "-subj", "/CN=localhost", "-keyout", self.key, "-out", request],
            ["openssl", "x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.folder / "ca.key", "-CAcreateserial",
             "-days", "2", "-extfile", extensions, "-out", self.cert],
        ]:
            subprocess.run([str(c) for c in command], check=True, capture_output=True)
        self.both.write_text(self.cert.read_text() + self.key.read_text())
        self.key.chmod(0o644)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def installed(command):
    """Where a command is that `--install` may have put beside Python's packages; else it is the system's."""
    own = INSTALLED / "venv/bin" / command
    return str(own) if own.exists() else str(command)


def missing(bench, needs):
    """What of `needs` is not installed."""
    return [need for need in needs if not has(bench, need)]


KNOWN = {}


def has(bench, need):
    if need not in KNOWN:
        kind, _, name = need.partition(":")
        if kind == "python":
            KNOWN[need] = subprocess.run([bench.python, "-c", f"import {name}"], capture_output=True).returncode == 0
        elif kind == "npm":
            KNOWN[need] = (INSTALLED / "node/node_modules" / name).exists()
        elif kind == "file":
            KNOWN[need] = pathlib.Path(name).exists()
        else:
            KNOWN[need] = shutil.which(installed(need)) is not None
    return KNOWN[need]
