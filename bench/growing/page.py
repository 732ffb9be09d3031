"""The tables of docs/growth.md, between the markers that are in the page."""
import re

from figures import LIMIT, NAMES, SWEEPS, growth, judged_points, points, reasons, unkept, verdicts

RATE_PER_S, CLIENTS = 10_000, 10_000
RESERVE = 64  # descriptors that weir keeps for itself


def show(value):
    """A figure with two or three digits that count."""
    if value is None:
        return "–"
    if value >= 99.95 or float(value).is_integer():
        return f"{value:,.0f}"
    for least, digits in ((9.995, 1), (0.9995, 2), (0.0995, 2), (0.00995, 3)):
        if value >= least:
            return f"{value:.{digits}f}"
    return f"{value:.4f}"


def show_size(size, of):
    if "bytes" not in of:
        return f"{size:,}"
    if size < 1024:
        return f"{size / 1024:g} KiB"
    return f"{size >> 20:,} MiB" if size >= 1 << 20 else f"{size >> 10:,} KiB"


def name(curve):
    return NAMES.get(curve, curve)


def table(results, sweep, measure):
    """One figure by size and contender, the ratio to the best of the others, and the growth of each curve."""
    sizes = sorted(map(int, results[sweep.name]))
    curves = [c for c in sweep.curves if c not in measure.without]
    values = {curve: dict(points(results, sweep, measure, curve)) for curve in curves}
    if not any(values.values()):
        return ""
    others = [c for c in curves if c not in sweep.ours]
    compared = measure.rivals and others
    heading = [sweep.of.replace("bytes of fields", "fields").replace("bytes", "body"), *map(name, curves)]
    lines = [f"{measure.title}{', ' + measure.unit if measure.unit else ''}:", "",
             "| " + " | ".join(heading + (["ratio"] if compared else [])) + " |", "|---" * (len(heading) + bool(compared)) + "|"]
    for size in sizes:
        at = {curve: values[curve].get(size) for curve in curves}
        cells = [show_size(size, sweep.of) + ("¹" if unkept(results, sweep, size) else ""), *(show(at[curve]) for curve in curves)]
        if compared:
            best = min((at[c] for c in others if at[c]), default=None)
            cells.append(f"{at[sweep.ours[0]] / best:.2f}" if best and at[sweep.ours[0]] is not None else "–")
        lines.append("| " + " | ".join(cells) + " |")
    if measure.judged:
        grown = {curve: growth(judged_points(results, sweep, measure, curve)) for curve in curves}
        label = f"growth ({measure.cost_unit})" if measure.each else "growth"
        cells = [label, *(f"{grown[c][0]:.2f}" if grown[c] else "–" for c in curves)] + ([""] if compared else [])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def notes(results, sweep):
    """Why figures are missing or are of another kind."""
    words = []
    if any(unkept(results, sweep, int(size)) for size in results[sweep.name]):
        words.append("¹ More targets than a process here may have descriptors: with round robin each request opens a connection, so "
                     "the growth of CPU time and of used memory is that of the sizes before.")
    for curve, size, why in reasons(results, sweep):
        why = " ".join(re.sub(r"/\S*/", "", why).split()).replace("|", "/")
        words.append(f"{name(curve)} at {show_size(size, sweep.of)}: {why}.")
    return "".join(f"\n{w}\n" for w in words)


def section(results, sweep):
    if sweep.name not in results:
        return "Not measured.\n"
    tables = [table(results, sweep, measure) for measure in sweep.measures]
    return "\n".join(t for t in tables if t) + notes(results, sweep)


def machine(doc):
    m = doc["machine"]
    versions = "; ".join(f"{name(k)} {v}" for k, v in m["versions"].items())
    how = f"{doc['rounds']} round{'s' if doc['rounds'] > 1 else ''} of {doc['seconds']:g} s"
    text = (f"Measured on {m['date']} on {m['cores']} cores ({m['cpu']}), {m['memory_gib']} GiB, Linux {m['kernel']}, at most "
            f"{m['descriptors']:,} descriptors for a process; {how}.\n{versions}.\n")
    return text + ("\nThis was a quick run: its figures only show that the script works.\n" if doc["quick"] else "")


def verdict_table(results):
    lines = ["| what | curve | sizes | growth | end over least | the others' | bends up |", "|---|---|---|---|---|---|---|"]
    for v in verdicts(results):
        others = ", ".join(f"{name(c)} {bend:.2f}" for c, bend in v.rivals.items()) or "–"
        sizes = " to ".join(show_size(size, v.sweep.of) for size in v.sizes)
        what = f"{v.sweep.title}: {v.measure.title[0].lower()}{v.measure.title[1:]}, {v.measure.cost_unit}"
        lines.append(f"| {what.replace(': cPU', ': CPU')} | {v.curve} | {sizes} | {v.overall:.2f} | {v.bend:.2f} | {others} | {v.words()} |")
    return "\n".join(lines) + "\n"


def sites(results):
    """What a site of each size needs, computed from the figures of weir."""
    rows, idle = results.get("targets", {}), results.get("idle", {})
    client_kib = next((idle[s]["weir"]["client_kib"] for s in sorted(idle, key=int, reverse=True)
                       if "client_kib" in idle[s].get("weir", {})), None)
    if not rows or client_kib is None:
        return "Not measured.\n"
    lines = [f"| targets | descriptors | memory, MiB | cores at {RATE_PER_S:,} requests/s | start, s |", "|---|---|---|---|---|"]
    for size in sorted(map(int, rows)):
        figures = rows[str(size)].get("weir", {})
        if "cpu_us" not in figures:
            lines.append(f"| {size:,} | – | – | – | – |")
            continue
        mark = "²" if figures["unkept"] else ""
        # Clients get at most half of the descriptors, and each target a connection.
        files = max(2 * CLIENTS, CLIENTS + size) + RESERVE
        memory = figures["used_mib"] + CLIENTS * client_kib / 1024
        lines.append(f"| {size:,}{mark} | {files:,} | {show(memory)} | {figures['cpu_us'] * RATE_PER_S / 1e6:.2f} | {show(figures['start_s'])} |")
    text = "\n".join(lines) + "\n"
    return text + ("\n² Measured with fewer descriptors than this, so that each request opened a connection: with enough of them the "
                   "cores are nearer to those of the row before, and memory is more.\n" if "²" in text else "")


def blocks(doc):
    results = doc["results"]
    return {"machine": machine(doc), "verdicts": verdict_table(results), "sites": sites(results),
            **{sweep.name: section(results, sweep) for sweep in SWEEPS}}


def fill(text, doc):
    """The page with new figures; a marker that is missing is an error, since its figures would be lost."""
    for key, block in blocks(doc).items():
        pattern = re.compile(rf"(<!-- figures {key} -->\n).*?(<!-- end {key} -->)", re.S)
        if not pattern.search(text):
            raise SystemExit(f"the page has no `<!-- figures {key} -->` ... `<!-- end {key} -->`")
        text = pattern.sub(lambda m: f"{m[1]}\n{block}\n{m[2]}", text)
    return text


def summary(results):
    """The verdicts as lines of text, and whether a curve bends up that no other's does."""
    lines, alone = [], False
    for v in verdicts(results):
        others = "".join(f", {name(c)} {bend:.2f}" for c, bend in v.rivals.items())
        word = "ok" if not v.bends else v.words().replace("**yes**", "BENDS UP")
        alone |= v.bends and not v.shared
        lines.append(f"{v.sweep.title}: {v.measure.title}, {v.measure.cost_unit}, {v.curve}: {v.bend:.2f} (limit {LIMIT}{others}): {word}")
    return lines, alone
