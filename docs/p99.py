#!/usr/bin/env python3
"""Draws the README's picture: p99 against the number of routers.

  weir sim examples/bamboo.star --output json | python3 docs/p99.py > docs/p99.svg

Each point carries its scenario and its figure, which crates/cli/tests/docs/readme.rs compares with what the tool says.
"""
import json
import sys

W, H = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 600, 56, 340
ROUTERS = [1, 2, 4, 8, 16]
TOP_MS = 3000

STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #3d444d }
  .title { font-size: 16px; font-weight: 600; fill: #1f2328 }
  .quiet { fill: #656d76 }
  .grid { stroke: #d1d9e0; stroke-width: 1 }
  .line { fill: none; stroke-width: 2.5 }
  .first { stroke: #c4432b } .first-ink { fill: #c4432b; font-weight: 600 }
  .random { stroke: #0a69c7 } .random-ink { fill: #0a69c7; font-weight: 600 }
  .none { stroke: #6e7781; stroke-dasharray: 6 5 } .none-ink { fill: #656d76; font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #c9d1d9 } .title { fill: #f0f6fc } .quiet { fill: #9198a1 } .grid { stroke: #30363d }
    .first { stroke: #ff8a70 } .first-ink { fill: #ff8a70 }
    .random { stroke: #5aaeff } .random-ink { fill: #5aaeff }
    .none { stroke: #9198a1 } .none-ink { fill: #9198a1 }
  }
"""


def x(routers):
    return LEFT + (RIGHT - LEFT) * routers / 16.6


def y(ms):
    return BOTTOM - (BOTTOM - TOP) * ms / TOP_MS


def text(at_x, at_y, words, kind="", anchor="start"):
    return f'<text x="{at_x:.1f}" y="{at_y:.1f}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def point(scenario, routers, e, kind):
    """A dot with its interval; the figure stands in it for the test."""
    at, ms = x(routers), e["value"]
    bar = f'<path class="line {kind}" style="stroke-width:1.5;stroke-dasharray:none" d="M{at:.1f} {y(e["low"]):.1f}V{y(e["high"]):.1f}"/>'
    dot = (f'<circle class="{kind}-ink" cx="{at:.1f}" cy="{y(ms):.1f}" r="4.5" data-scenario="{scenario}" data-p99-ms="{ms:.1f}">'
           f'<title>{scenario}: p99 {ms:.0f} ms</title></circle>')
    return bar + dot


def main():
    doc = json.load(sys.stdin)
    p99 = {s["name"]: s["latency_ms"]["all"]["p99"] for s in doc["scenarios"]}
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W} {H}" width="{W}" height="{H}" role="img" aria-labelledby="t d">',
           '<title id="t">p99 latency against the number of routers</title>',
           '<desc id="d">With first-index ties p99 rises in proportion to the number of routers and passes a random router at four; '
           'with random ties it stays below that of a random router.</desc>',
           f"<style>{STYLE}</style>",
           text(LEFT - 40, 24, "99 % of requests are answered within ...", "title")]
    for ms in range(0, TOP_MS + 1, 500):
        out.append(f'<path class="grid" d="M{LEFT} {y(ms):.1f}H{RIGHT}"/>')
        out.append(text(LEFT - 8, y(ms) + 4.5, f"{ms / 1000:g} s", "quiet", "end"))
    for routers in ROUTERS:
        out.append(text(x(routers), BOTTOM + 22, routers, "", "middle"))
    out.append(text((LEFT + RIGHT) / 2, BOTTOM + 46, "routers, each with its own counts, over the same 250 dynos", "quiet", "middle"))

    alone = p99["random_router"]
    out.append(f'<path class="line none" d="M{LEFT} {y(alone["value"]):.1f}H{RIGHT}"/>')
    out.append(f'<g data-scenario="random_router" data-p99-ms="{alone["value"]:.1f}"/>')
    for kind, prefix in (("first", "first_index"), ("random", "random_ties")):
        of = [(n, p99[f"{prefix}_{n}"]) for n in ROUTERS]
        path = "L".join(f"{x(n):.1f} {y(e['value']):.1f}" for n, e in of)
        out.append(f'<path class="line {kind}" d="M{path}"/>')
        out += [point(f"{prefix}_{n}", n, e, kind) for n, e in of]
    end = RIGHT + 12
    out.append(text(end, y(p99["first_index_16"]["value"]) + 4, "least connections,", "first-ink"))
    out.append(text(end, y(p99["first_index_16"]["value"]) + 21, "ties to the first", "first-ink"))
    out.append(text(end, y(alone["value"]) - 2, "one random router", "none-ink"))
    out.append(text(end, y(p99["random_ties_16"]["value"]) + 12, "least connections,", "random-ink"))
    out.append(text(end, y(p99["random_ties_16"]["value"]) + 29, "random ties", "random-ink"))
    out.append("</svg>")
    print("\n".join(out))


if __name__ == "__main__":
    main()
