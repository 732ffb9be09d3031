"""The parts that each source is played in, and what is counted in them."""

import statistics
import threading
import time

from sites import QUIET_S, ROLL, STAY

FLAPPING = 3
# Between two changes: none waits for the pause after another.
APART_S = 0.4
HEAD = (
    f"{'source':28} {'part':11} {'requests':>8} {'failed':>6} {'worst ms':>8} {'opened':>6} {'changes':>7} "
    f"{'median s':>8} {'worst s':>8} {'limit':>6}"
)


class Part:
    """A part of the scenario: what the clients saw, and the openings and delays in it."""

    def __init__(self, site, name, staying):
        """`staying`: of so many members, from the first, no connection may be opened; `None`: of any."""
        self.site, self.name, self.staying = site, name, staying
        self.delays_s, self.wrong = [], []
        args, self.bound_s = site.args, site.registry.bound_s
        if args.limit and self.bound_s <= 0.5:
            self.bound_s = args.limit

    def __enter__(self):
        self.opened = self.site.report(self.site.origins)
        self.site.report(self.site.clients)
        return self

    def __exit__(self, *failure):
        if failure[0]:
            return
        # What goes wrong shows in the requests after it.
        time.sleep(APART_S)
        self.told = self.site.report(self.site.clients)
        opened = self.site.report(self.site.origins)
        self.openings = sum(opened[: self.staying]) - sum(self.opened[: self.staying])
        if self.told["failed"]:
            self.wrong.append(f"requests failed: {self.told['errors']}")
        if not self.told["requests"]:
            self.wrong.append("no request was answered")
        if self.openings and self.staying is not None:
            self.wrong.append(f"{self.openings} connections were opened to members that stayed")
        is_late = self.delays_s and max(self.delays_s) > self.bound_s
        if is_late and not self.site.args.ci:
            self.wrong.append(f"a change took {max(self.delays_s):.3f} s to all loops")
        print(self.row() + "\n", end="", flush=True)

    def change(self, hosts, beside=lambda: None):
        """Has the registry list these members, and waits until all loops have them, and for what is done beside that."""
        time.sleep(APART_S)
        self.site.registry.set(hosts)
        begun = time.monotonic()
        beside()
        self.delays_s.append(self.site.await_members(hosts) - begun)

    def flap(self, beside=lambda: None):
        """Some members leave the registry, and come back."""
        self.change(self.site.members[:-FLAPPING], beside)
        self.change(self.site.members, beside)

    def row(self):
        delays = f"{statistics.median(self.delays_s):8.3f} {max(self.delays_s):8.3f} {self.bound_s:6.1f}" if self.delays_s else " " * 24
        told, word = self.told, "FAIL" if self.wrong else "ok"
        return (
            f"{self.site.registry.label:28} {self.name:11} {told['requests']:8} {told['failed']:6} {told['slowest_ms']:8.1f} "
            f"{self.openings:6} {len(self.delays_s):7} {delays}  {word}"
        )


def roll_out(part, steps):
    """Replaces members by others, then those by the first ones: newcomers are listed before others leave."""
    members, others = part.site.members, part.site.others
    for old, new in ((members[STAY:], others), (others, members[STAY:])):
        size = ROLL // steps
        for done in range(0, ROLL, size):
            listed = members[:STAY] + old[done:] + new[:done]
            part.change(listed + new[done : done + size])
            part.change([host for host in listed + new[done : done + size] if host not in old[done : done + size]])


def reload(part, count):
    """Reloads, each beside a change: half of them begin before weir has seen it, by signal or by the control socket."""
    site, generations = part.site, []

    def turn(by_signal):
        generations.append(site.reload(by_signal))

    for n in range(count):
        hosts = site.members if n % 2 else site.members[:-FLAPPING]
        if n % 4 < 2:
            part.change(hosts, lambda: turn(by_signal=n % 2 == 0))
        else:
            turn(by_signal=True)
            part.change(hosts)
        site.await_generation(generations[-1])
        site.await_members(hosts)


class Flapping(threading.Thread):
    """Has members leave the registry and come back, until it is left; all are there at the end."""

    def __init__(self, site):
        super().__init__(daemon=True)
        self.site, self.ends, self.failure = site, threading.Event(), None

    def run(self):
        try:
            while not self.ends.wait(0.2):
                self.site.registry.set(self.site.members[:-FLAPPING])
                self.ends.wait(0.2)
                self.site.registry.set(self.site.members)
        except BaseException as e:
            self.failure = e

    def __enter__(self):
        self.start()

    def __exit__(self, *_):
        self.ends.set()
        self.join()
        if self.failure:
            raise self.failure


def hand_over(part, count):
    """New processes take over while members come and go."""
    for _ in range(count):
        with Flapping(part.site):
            time.sleep(APART_S)
            part.site.hand_over()
        part.site.await_members(part.site.members)
        part.flap()


def fleet(topology):
    return topology["fleets"][0]


def play(site):
    """Plays all parts; returns them."""
    args, everyone, parts = site.args, len(site.members), []

    def begin(name, staying):
        parts.append(Part(site, name, staying))
        return parts[-1]

    site.warm_up()
    with begin("rollout", STAY) as part:
        roll_out(part, args.steps)
    with begin("flaps", STAY) as part:
        for _ in range(args.flaps):
            part.flap()
    with begin("reloads", everyone - FLAPPING) as part:
        reload(part, args.reloads)
    for name, act in site.registry.own_parts():
        with begin(name, everyone - FLAPPING) as part:
            act(part)
    with begin("hand-over", None) as part:
        hand_over(part, args.hand_overs)
    site.warm_up()
    with begin("stopped", everyone) as part:
        site.registry.stop()
        time.sleep(args.stopped_s / 2)
        site.await_generation(site.reload(by_signal=True))
        time.sleep(args.stopped_s / 2)
        site.await_members(site.members)
    with begin("blind", None) as part:
        site.hand_over()
        site.await_members(site.members)
        site.warm_up()
    with begin("empty", everyone) as part:
        site.registry.start()
        site.await_state(lambda topology: fleet(topology)["withdrawn"] == everyone, "the empty list is not taken")
        time.sleep(QUIET_S)
        site.await_members(site.members)
    # A list with more than half of the members is believed. It takes the others away, until they are registered too.
    with begin("filled", everyone if site.registry.at_once else None) as part:
        site.registry.set(site.members)
        begun = time.monotonic()
        filled = site.await_state(
            lambda topology: fleet(topology)["withdrawn"] == 0 and fleet(topology)["stale_s"] is None,
            "the members that are listed again are still withdrawn",
        )
        part.delays_s.append(filled - begun)
        site.await_members(site.members)
    return parts
