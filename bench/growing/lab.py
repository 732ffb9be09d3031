"""Processes and what they cost: CPU, memory, descriptors; the origin and the clients of growth.c."""
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
import harness  # noqa: E402
from harness import free_port  # noqa: E402,F401

HERE = pathlib.Path(__file__).resolve().parent
PROXY_CORES, OTHER_CORES, ALL_CORES = "0", "1", "0,1"
LONGEST_S = 60  # for a start, a reload or a check


class Lab(harness.Bench):
    """The temporary folder, all processes, and growth.c compiled; `close` ends them, also on Ctrl-C and SIGTERM."""

    def __init__(self, weir):
        super().__init__(weir, name="growth", certificates=False)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.descriptors = hard
        self.tool = self.folder / "growth"
        subprocess.run(["cc", "-O2", "-o", self.tool, HERE / "growth.c"], check=True)

    def environment(self, **more):
        return {**os.environ, **more}

    def scratch(self, name):
        """A folder of its own."""
        folder = self.folder / f"{name}-{self.counter}"
        self.counter += 1
        folder.mkdir()
        return folder

    def launch(self, cores, command, **options):
        return self.spawn(["taskset", "-c", cores, *command], **options)

    def origin(self):
        """An origin at one port of each address of 127.0.0.0/8."""
        port = free_port()
        child = self.launch(OTHER_CORES, [self.tool, "origin", port])
        self.await_port(port, child)
        return child, port

    def load(self, port, request, clients=32, seconds=1.0, requests=0, upload=0):
        """What a load of clients has seen, as a dict; one that ends badly is a Failure."""
        clients = begin_load(self, port, request, clients, seconds, requests, upload)
        return clients.result(seconds + 30)

    def probe(self, port, request, seconds=LONGEST_S * 2):
        """A client that asks once in a millisecond until its result is asked for."""
        return begin_load(self, port, request, 1, seconds, 0, 0, gap_us=1000)

    def run_once(self, command, within_s=LONGEST_S):
        """Runs a program to its end: its `seconds`, `cpu_s` and `peak_mib`; one that fails or takes too long is a Failure."""
        file = self.folder / f"taken-{self.counter}"
        child = self.spawn([self.tool, "run", file, *command])
        try:
            child.wait(within_s)
        except subprocess.TimeoutExpired:
            raise Failure(f"takes more than {within_s} s") from None
        finally:
            self.stop([child])
        taken = json.loads(file.read_text())
        if taken["status"]:
            raise Failure(f"exit {taken['status']}: {child.log.read_text(errors='replace')[:200].strip()}")
        return taken

    def hold(self, port, request, clients):
        """Clients that have asked once and then say nothing."""
        child = self.launch(OTHER_CORES, [self.tool, "hold", port, clients], stdin_text=request)
        until = time.monotonic() + LONGEST_S
        while "held" not in child.log.read_text():
            if child.poll() is not None or time.monotonic() > until:
                raise Failure(f"{clients} idle clients: {child.log.read_text().strip()[-120:]}")
            time.sleep(0.02)
        return child

    def spawn(self, command, stdin_text=None, **options):
        if stdin_text is None:
            return super().spawn(command, **options)
        # harness.Bench gives its children no standard input, so a shell redirects a file.
        file = self.folder / f"request-{self.counter}"
        file.write_bytes(stdin_text)
        return super().spawn(["sh", "-c", 'exec "$@" < "$0"', file, *command], **options)


class Failure(Exception):
    """Why a figure is missing; its text is shown in place of it."""


class Running:
    """A load in the background."""

    def __init__(self, lab, child):
        self.lab, self.child = lab, child

    def result(self, within_s=5, end=False):
        if end:
            self.child.terminate()
        try:
            self.child.wait(within_s)
        except subprocess.TimeoutExpired:
            pass
        self.lab.stop([self.child])
        said = self.child.log.read_text()
        if not said.startswith("{"):
            raise Failure(f"the load failed: {said.strip()[-120:]}")
        return json.loads(said.splitlines()[0])


def begin_load(lab, port, request, clients, seconds, requests, upload, gap_us=0):
    command = [lab.tool, "load", port, clients, seconds, requests, upload, gap_us]
    return Running(lab, lab.launch(OTHER_CORES, command, stdin_text=request))


def request(path="/64", host="growth.example", fields=(), body=None):
    """The head of a request."""
    lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", f"Host: {host}", *fields]
    if body is not None:
        lines.append(f"Content-Length: {body}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def family(pid):
    """The process and its living descendants."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(pathlib.Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    found = [pid]
    for member in found:
        found += [child for child, parent in parents.items() if parent == member]
    return found


def cpu_s(pids):
    """User and system time so far, all threads included, to the nanosecond: the CPU clock of each process."""
    total = 0.0
    for pid in pids:
        try:
            total += time.clock_gettime((~pid << 3) | 2)
        except OSError:
            pass
    return total


def pss_mib(pid):
    """Memory of a process and its descendants; what they share counts once."""
    total = 0
    for member in family(pid):
        try:
            rollup = pathlib.Path(f"/proc/{member}/smaps_rollup").read_text()
        except OSError:
            continue
        total += int(re.search(r"^Pss:\s+(\d+)", rollup, re.M)[1])
    return total / 1024


def descriptors(pid):
    """The most that one process of the family has open: the limit is for each."""
    return max(len(os.listdir(f"/proc/{member}/fd")) for member in family(pid))


def machine(lab):
    """What the figures are of: cores, kernel, and the version of each contender."""
    first_line = lambda *command: (subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                                   .stdout.strip().splitlines() or ["?"])[0]
    cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    top = HERE.parents[1]
    commit = first_line("git", "-C", str(top), "log", "-1", "--format=%h of %cs")
    built = time.strftime("%Y-%m-%d", time.gmtime(os.path.getmtime(lab.weir)))
    versions = {"weir": f"{first_line(lab.weir, '--version').split()[-1]} (commit {commit}, built {built})"}
    if shutil.which("nginx"):
        versions["nginx"] = first_line("nginx", "-v").split("/")[-1]
    if shutil.which("haproxy"):
        versions["haproxy"] = first_line("haproxy", "-v").split()[2].split("-")[0]
    return {"cores": os.cpu_count(), "cpu": cpu[1] if cpu else "?", "memory_gib": round(int(memory[1]) / 2**20, 1),
            "kernel": os.uname().release, "descriptors": lab.descriptors, "versions": versions,
            "date": time.strftime("%Y-%m-%d", time.gmtime())}
