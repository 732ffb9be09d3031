"""What sources cost: one of many members that changes, and many fleets at rest."""

import collections
import pathlib
import re
import time

from consul import Consul
from kubernetes import Kubernetes
from names import Names
from origins import host
from sites import Site

CHANGES = 20
LIMIT_MS = 50
REST_S = 10
SERVED_S = 300
FLEETS, EACH = 100, 3
HEAD = (
    f"{'source':28} {'members':>7} {'changes':>7} {'at rest ms/s':>12}   "
    f"ms per change: {'its thread':>10} {'weir-discovery':>14} {'weir-fleets':>11} {'limit':>6}"
)


def threads(pid):
    """Milliseconds of a processor that the threads of each name have had, and how many there are."""
    spent, count = collections.Counter(), collections.Counter()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            name, times = (task / "comm").read_text().strip(), (task / "schedstat").read_text()
        except OSError:
            continue
        spent[name] += int(times.split()[0]) / 1e6
        count[name] += 1
    return spent, count


def sample(text, name, **labels):
    """The samples of a metric with these labels."""
    found = re.findall(rf"^{name}{{(.*)}} (\S+)$", text, re.M)
    return [float(value) for told, value in found if all(f'{key}="{is_}"' in told for key, is_ in labels.items())]


def await_members(site, fleets, members):
    end = time.monotonic() + SERVED_S
    while sample(site.text("/metrics"), "weir_fleet_members", state="up") != [members] * fleets:
        if time.monotonic() > end:
            raise SystemExit(f"not all of {fleets} fleets have {members} members after {SERVED_S} s:\n{site.log_end()}")
        time.sleep(0.5)


def lists(site):
    return sum(sample(site.text("/metrics"), "weir_fleet_lists_total", result="changed"))


def change_one(args, kind, folder):
    """One of `--members` leaves and comes back. Returns what is wrong."""
    members = min(args.members, kind.most)
    site = Site(args, folder, kind)
    try:
        site.registry.forget_soon()
        hosts = [host(n, kind.network) for n in range(members)]
        site.registry.start()
        site.registry.set(hosts)
        site.write()
        site.weir = site.start_weir()
        await_members(site, 1, members)
        time.sleep(REST_S)
        before, _ = threads(site.weir.pid)
        time.sleep(REST_S)
        rest, _ = threads(site.weir.pid)
        a_second = (rest[kind.thread] - before[kind.thread]) / REST_S
        begun, seen = time.monotonic(), lists(site)
        before, _ = threads(site.weir.pid)
        for n in range(CHANGES):
            site.registry.set(hosts if n % 2 else hosts[1:])
            end = time.monotonic() + SERVED_S
            while lists(site) < seen + n + 1:
                if time.monotonic() > end:
                    raise SystemExit(f"change {n} is not taken after {SERVED_S} s:\n{site.log_end()}")
                time.sleep(0.3)
        took = time.monotonic() - begun
        after, count = threads(site.weir.pid)
    finally:
        site.close()
    # What it does without a change is no part of a change's cost.
    its = (after[kind.thread] - before[kind.thread] - a_second * took) / CHANGES
    others = [(after[name] - before[name]) / CHANGES for name in ("weir-discovery", "weir-fleets")]
    wrong = []
    if count[kind.thread] != 1:
        wrong.append(f"{kind.label}: {count[kind.thread]} threads {kind.thread}")
    if its > LIMIT_MS:
        wrong.append(f"{kind.label}: a change of one of {members} members takes {its:.1f} ms of {kind.thread}")
    word = "FAIL" if wrong else "ok"
    print(
        f"{kind.label:28} {members:7} {CHANGES:7} {a_second:12.2f}   {'':14} {its:10.2f} {others[0]:14.2f} {others[1]:11.2f} "
        f"{LIMIT_MS:6}  {word}\n",
        end="",
        flush=True,
    )
    return [] if args.ci else wrong


def one_thread(args, folder):
    """A hundred fleets with names of their own, by three registries. Returns what is wrong."""
    site = Site(args, folder, Consul)
    registries = [site.registry, Kubernetes(site), Names(site)]
    try:
        for registry in registries:
            registry.start()
            registry.set(site.members[:EACH])
        lines = [f"f{n} = {registries[n % len(registries)].fleet(f'app-{n}')}" for n in range(FLEETS)]
        pool = f"lb.round_robin([{', '.join(f'f{n}' for n in range(FLEETS))}])"
        site.serve_text("\n".join([*lines, f'listen("127.0.0.1:{site.port}", {pool}, name="web", loops={args.loops})\n']))
        site.weir = site.start_weir()
        await_members(site, FLEETS, EACH)
        before, _ = threads(site.weir.pid)
        time.sleep(REST_S / 2)
        after, count = threads(site.weir.pid)
    finally:
        site.close()
    spent = 2 * (after["weir-registries"] - before["weir-registries"]) / REST_S
    is_one = count["weir-registries"] == 1
    print(
        f"{FLEETS} fleets (consul, kubernetes, dns): {count['weir-registries']} thread weir-registries of {sum(count.values())} in all, "
        f"{spent:.2f} ms/s at rest  {'ok' if is_one else 'FAIL'}\n",
        end="",
        flush=True,
    )
    return [] if is_one else [f"{count['weir-registries']} threads weir-registries for {FLEETS} fleets"]
