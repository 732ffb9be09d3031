"""What a source is played against: its registry, members, weir with a fleet of them, and clients."""

import json
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from origins import host

FOLDER = pathlib.Path(__file__).resolve().parent
STAY, ROLL = 10, 20
# Longer than the longest pause after failures, 30 s.
SERVED_S = 60
QUIET_S = 2
# Below those that the system gives to clients: nobody else takes one while a registry is stopped.
PORTS = range(20000, 32000)


class Absent(Exception):
    """A registry does not begin, which weir has no part in."""


class Site:
    """The members, a registry, weir and its clients."""

    given, all = set(), []
    lock = threading.Lock()

    def __init__(self, args, folder, kind):
        self.args, self.folder = args, folder
        self.processes, self.turn, self.weir = [], 0, None
        self.member_port, self.port, self.admin = (self.free_port() for _ in range(3))
        hosts = [host(n, kind.network) for n in range(STAY + 2 * ROLL)]
        self.members, self.others = hosts[: STAY + ROLL], hosts[STAY + ROLL :]
        self.file, self.log, self.control = (folder / name for name in ("registries.star", "weir.log", "control"))
        self.registry = kind(self)
        self.all.append(self)

    def start(self):
        count = len(self.members) + len(self.others)
        self.origins = self.start_child("origins.py", self.member_port, count, self.registry.network)
        try:
            self.registry.start()
        except (SystemExit, OSError, subprocess.SubprocessError) as e:
            raise Absent(str(e)) from e
        self.registry.set(self.members)
        self.write()
        self.weir = self.start_weir()
        self.await_members(self.members)
        self.clients = self.start_child("clients.py", self.port, self.args.rate, self.args.connections)

    def write(self):
        """The topology; each time another one."""
        self.turn += 1
        pool = f'lb.round_robin([apps], name="pool", max_in_flight={1000 + self.turn})'
        self.serve_text(
            f"apps = {self.registry.fleet()}\n"
            f'listen("127.0.0.1:{self.port}", {pool}, name="web", loops={self.args.loops})\n'
        )

    def serve_text(self, text):
        new = self.file.with_suffix(".new")
        new.write_text(text)
        new.rename(self.file)

    def start_weir(self, *more):
        words = [self.args.weir, "serve", str(self.file), "--admin", f"127.0.0.1:{self.admin}", "--control", str(self.control), *more]
        with open(self.log, "a", encoding="utf-8") as log:
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log, cwd=self.folder)
        self.processes.append(process)
        return process

    def reload(self, by_signal):
        """Begins a reload with another limit in the file. Returns the generation that has it."""
        generation = self.get("/config")["generation"] + 1
        self.write()
        if by_signal:
            self.weir.send_signal(signal.SIGHUP)
        else:
            words = [self.args.weir, "admin", "reload", "--control", str(self.control)]
            told = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SERVED_S)
            if told.returncode != 0:
                raise SystemExit(f"weir does not reload: {told.stdout}")
        return generation

    def await_generation(self, generation):
        end = time.monotonic() + SERVED_S
        while (config := self.get("/config"))["generation"] < generation:
            last = config["last_reload"]
            if time.monotonic() > end:
                raise SystemExit(f"a reload is not applied: {last}\n{self.log_end()}")
            time.sleep(0.01)

    def hand_over(self):
        """A new process takes over; returns when the old one has ended."""
        old, self.weir = self.weir, self.start_weir("--replace")
        if old.wait(SERVED_S) != 0:
            raise SystemExit(f"the old process of a hand-over ends badly:\n{self.log_end()}")

    def free_port(self):
        """A port that no site has given before."""
        while True:
            port = random.choice(PORTS)
            try:
                socket.create_server(("127.0.0.1", port)).close()
            except OSError:
                continue
            with self.lock:
                if port not in self.given:
                    self.given.add(port)
                    return port

    def start_child(self, name, *words):
        words = [sys.executable, "-B", str(FOLDER / name), *map(str, words)]
        child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(child)
        if child.stdout.readline() != "ready\n":
            raise SystemExit(f"{name} does not begin")
        return child

    @staticmethod
    def report(child):
        child.stdin.write("\n")
        child.stdin.flush()
        return json.loads(child.stdout.readline())

    def text(self, path):
        """What weir's admin answers. It is asked again while a hand-over closes connections."""
        end = time.monotonic() + SERVED_S
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=20) as answer:
                    return answer.read().decode()
            except OSError:
                if self.weir.poll() is not None or time.monotonic() > end:
                    raise SystemExit(f"weir does not answer:\n{self.log_end()}") from None
                time.sleep(0.02)

    def get(self, path):
        return json.loads(self.text(path))

    def log_end(self):
        return self.log.read_text(errors="replace")[-4000:]

    def await_state(self, has_come, what):
        """Waits until weir says that it has come. Returns the instant."""
        end = time.monotonic() + SERVED_S
        while time.monotonic() < end:
            if has_come(self.get("/topology?loops=1")):
                return time.monotonic()
            time.sleep(0.02 if self.args.ci else 0.004)
        raise SystemExit(f"{what} after {SERVED_S} s:\n{self.log_end()}")

    def await_members(self, hosts):
        """Waits until all loops have these members."""
        wanted = sorted(f"{host}:{self.member_port}" for host in hosts)

        def has_come(topology):
            targets = topology["pools"][0]["targets"]
            is_everywhere = all(len(target.get("loops", [])) == self.args.loops for target in targets)
            return is_everywhere and not topology["silent"] and sorted(target["addr"] for target in targets) == wanted

        return self.await_state(has_come, f"not all loops have the {len(wanted)} members that are listed")

    def warm_up(self):
        """Waits until every loop has a connection to every member."""
        end, quiet, before = time.monotonic() + SERVED_S, time.monotonic() + QUIET_S, None
        while time.monotonic() < quiet:
            if time.monotonic() > end:
                raise SystemExit("connections to members are opened without end")
            opened = self.report(self.origins)
            if opened != before:
                before, quiet = opened, time.monotonic() + QUIET_S
            time.sleep(0.1)

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.registry.close()
