"""docs/growth.svg: a panel for each curve that is judged first, sizes across and cost upwards, both logarithmic."""
import math

from figures import SWEEPS, points
from page import name, show
from sweeps import BY_HAND, FIRST

W, COLUMNS = 800, 3
PANEL_W, PANEL_H = 262, 188
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 44, 28  # within a panel
HEAD = 74

STYLE = """
  text { font: 11px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #3d444d }
  .title { font-size: 15px; font-weight: 600; fill: #1f2328 }
  .panel { font-size: 12px; font-weight: 600; fill: #1f2328 }
  .quiet { fill: #656d76 }
  .grid { stroke: #d1d9e0; stroke-width: 1; fill: none }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round }
  .weir { stroke: #c4432b } .weir-dot { fill: #c4432b }
  .other { stroke: #c4432b; stroke-dasharray: 4 3 } .other-dot { fill: #c4432b }
  .nginx { stroke: #0a69c7 } .nginx-dot { fill: #0a69c7 }
  .haproxy { stroke: #4f8a10 } .haproxy-dot { fill: #4f8a10 }
  .hand { stroke: #6e7781 } .hand-dot { fill: #6e7781 }
  @media (prefers-color-scheme: dark) {
    text { fill: #c9d1d9 } .title, .panel { fill: #f0f6fc } .quiet { fill: #9198a1 } .grid { stroke: #30363d }
    .weir, .other { stroke: #ff8a70 } .weir-dot, .other-dot { fill: #ff8a70 }
    .nginx { stroke: #5aaeff } .nginx-dot { fill: #5aaeff }
    .haproxy { stroke: #8fce4a } .haproxy-dot { fill: #8fce4a }
    .hand { stroke: #9198a1 } .hand-dot { fill: #9198a1 }
  }
"""
KINDS = {"weir": "weir", "a line each": "weir", FIRST: "other", "one line": "other", "nginx": "nginx",
         "haproxy": "haproxy", BY_HAND: "hand"}
LEGEND = [("weir", "weir"), ("other", "weir, least connections: the first of equals; servers in one line"),
          ("nginx", "nginx"), ("haproxy", "HAProxy"), ("hand", "a loop by hand, in C")]
TITLES = {("targets", "cpu_us"): "Targets: a request", ("targets", "start_s"): "Targets: start", ("targets", "memory_mib"): "Targets: memory",
          ("paths", "cpu_us"): "Routes by path: a request", ("hosts", "cpu_us"): "Routes by host: a request",
          ("idle", "cpu_us"): "Idle clients: a request beside", ("idle", "client_kib"): "Idle clients: memory of one",
          ("heads", "cpu_us"): "Heads of requests", ("downloads", "cpu_us"): "Bodies of answers", ("uploads", "cpu_us"): "Bodies of requests",
          ("reloads", "all_s"): "Reload, all targets new", ("reloads", "slowest_ms"): "Reloads: slowest request",
          ("scrapes", "cpu_ms"): "Scrape of metrics", ("scrapes", "slowest_ms"): "Scrapes: slowest request",
          ("scenarios", "seconds"): "Check: scenarios", ("lines", "seconds"): "Check: servers",
          ("simulation", "request_ns"): "Simulated request", ("simulation", "peak_mib"): "Simulation: memory"}


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def short(size, of):
    if "bytes" in of:
        return f"{size >> 20}M" if size >= 1 << 20 else f"{size / 1024:g}K"
    return f"{size // 1_000_000}M" if size >= 1_000_000 else f"{size // 1000}k" if size >= 1000 else f"{size}"


def ticks(low, high):
    """1, 10, 100 ...; with 2 and 5 between them where there are few."""
    few = math.log10(high / low) < 2.2
    steps = (1, 2, 5) if few else (1,)
    found = [m * 10.0**e for e in range(-6, 10) for m in steps]
    every = 2 if math.log10(high / low) > 5 else 1
    return [t for t in found if low * 0.999 <= t <= high * 1.001][::every]


class Panel:
    """One plot at a place in the picture."""

    def __init__(self, results, sweep, measure, at):
        self.sweep, self.measure = sweep, measure
        self.x0, self.y0 = 8 + at % COLUMNS * PANEL_W, HEAD + at // COLUMNS * PANEL_H
        self.curves = {}
        for curve in sweep.curves:
            found = [(s, measure.cost(v, s)) for s, v in points(results, sweep, measure, curve) if s or not measure.each]
            self.curves[curve] = [(s, cost) for s, cost in found if cost > 0]
        self.sizes = sorted({s for found in self.curves.values() for s, _ in found})
        costs = [cost for found in self.curves.values() for _, cost in found]
        if costs:
            self.low, self.high = self.range(min(costs), max(costs))

    @staticmethod
    def range(low, high):
        """From the tick below to the one above, and at least a factor of ten, so that a small difference does not look large."""
        middle = math.sqrt(low * high)
        low, high = min(low * 0.9, middle / 3.2), max(high * 1.1, middle * 3.2)
        if high / low > 150:
            return 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))
        return low, high

    def x(self, size):
        """Sizes by their logarithm; 0 is one step before the first of the others."""
        first = next(s for s in self.sizes if s)
        span = math.log10(self.sizes[-1] / first) or 1
        step = span / max(1, len(self.sizes) - 1) if self.sizes[0] == 0 else 0
        place = 0 if size == 0 else step + math.log10(size / first)
        left, right = self.x0 + LEFT + 6, self.x0 + PANEL_W - RIGHT - 6
        return left + (right - left) * place / (span + step)

    def y(self, cost):
        top, bottom = self.y0 + TOP, self.y0 + PANEL_H - BOTTOM
        return bottom - (bottom - top) * math.log10(cost / self.low) / math.log10(self.high / self.low)

    def draw(self):
        title = TITLES[self.sweep.name, self.measure.key]
        out = [text(self.x0 + 4, self.y0 + 16, title, "panel"), text(self.x0 + 4, self.y0 + 31, self.measure.cost_unit, "quiet")]
        if len(self.sizes) < 2:
            return out + [text(self.x0 + LEFT, self.y0 + PANEL_H / 2, "not measured", "quiet")]
        left, right = self.x0 + LEFT, self.x0 + PANEL_W - RIGHT
        for tick in ticks(self.low, self.high):
            out.append(f'<path class="grid" d="M{left:.1f} {self.y(tick):.1f}H{right:.1f}"/>')
            out.append(text(left - 5, self.y(tick) + 4, f"{tick:,g}" if tick < 1e4 else f"{tick / 1000:,.0f}k", "quiet", "end"))
        for size in self.sizes:
            out.append(text(self.x(size), self.y0 + PANEL_H - BOTTOM + 15, short(size, self.sweep.of), "quiet", "middle"))
        # weir last, so that it lies above the others.
        for curve in reversed(self.sweep.curves):
            out += self.curve(curve)
        return out

    def curve(self, curve):
        kind, found = KINDS[curve], self.curves[curve]
        if not found:
            return []
        path = "L".join(f"{self.x(s):.1f} {self.y(cost):.1f}" for s, cost in found)
        dots = [f'<circle class="{kind}-dot" cx="{self.x(s):.1f}" cy="{self.y(cost):.1f}" r="2.8"><title>{name(curve)}, '
                f"{s:,} {self.sweep.of}: {show(cost)} {self.measure.cost_unit}</title></circle>" for s, cost in found]
        return [f'<path class="line {kind}" d="M{path}"/>', *dots]


def draw(doc):
    """The whole picture."""
    panels = [(sweep, measure) for sweep in SWEEPS for measure in sweep.measures if measure.drawn]
    height = HEAD + -(-len(panels) // COLUMNS) * PANEL_H + 8
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W} {height}" width="{W}" height="{height}" role="img" aria-labelledby="t d">',
           '<title id="t">What weir, nginx and HAProxy cost at each size</title>',
           '<desc id="d">One plot for each cost, sizes across and cost upwards, both logarithmic. A curve that is flat or falls means that '
           'a larger site costs no more for each request or each target. The tables of the page have the same figures.</desc>',
           f"<style>{STYLE}</style>",
           text(12, 22, "Cost against size: a curve that does not rise stays in proportion", "title")]
    x, y = 12, 44
    for kind, words in LEGEND:
        if kind == "nginx":
            x, y = 12, 62
        out.append(f'<path class="line {kind}" d="M{x} {y - 4}h26"/><circle class="{kind}-dot" cx="{x + 13}" cy="{y - 4}" r="2.8"/>')
        out.append(text(x + 32, y, words))
        x += 52 + 6.2 * len(words)
    for at, (sweep, measure) in enumerate(panels):
        out += Panel(doc["results"], sweep, measure, at).draw()
    out.append("</svg>")
    return "\n".join(out) + "\n"
