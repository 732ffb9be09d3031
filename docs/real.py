#!/usr/bin/env python3
"""Draws the README's second picture: what was predicted of sixteen router processes, and what was measured.

  weir verify examples/hops.star --processes --output json | python3 docs/real.py > docs/real.svg

Each point carries its scenario and both figures.
"""
import json
import sys

sys.dont_write_bytecode = True
from p99 import BOTTOM, H, LEFT, RIGHT, STYLE, TOP, W, text, x  # noqa: E402

ROUTERS = [1, 4, 16]
RING = ".real { fill: none; stroke-width: 2 }"


def main():
    doc = json.load(sys.stdin)
    of = {}
    for scenario in doc["scenarios"]:
        for s in scenario["statistics"]:
            if s["name"] == "p99":
                of[scenario["name"]] = (s["simulated"], s["real"])
    most = max(e["high"] or e["value"] for pair in of.values() for e in pair)
    top = (int(most / 500) + 1) * 500

    def y(ms):
        return BOTTOM - (BOTTOM - TOP) * ms / top

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W} {H}" width="{W}" height="{H}" role="img" aria-labelledby="t d">',
           '<title id="t">p99 latency of real router processes, predicted and measured</title>',
           '<desc id="d">Lines are the simulation, rings what was measured: they lie on each other.</desc>',
           f"<style>{STYLE}  {RING}\n</style>",
           text(LEFT - 40, 24, "p99: lines are predicted, rings are measured", "title")]
    for ms in range(0, top + 1, 500):
        out.append(f'<path class="grid" d="M{LEFT} {y(ms):.1f}H{RIGHT}"/>')
        out.append(text(LEFT - 8, y(ms) + 4.5, f"{ms / 1000:g} s", "quiet", "end"))
    for routers in ROUTERS:
        out.append(text(x(routers), BOTTOM + 22, routers, "", "middle"))
    out.append(text((LEFT + RIGHT) / 2, BOTTOM + 46, "router processes, each with its own counts, over the same 250 servers", "quiet", "middle"))
    for kind, prefix, words in (("first", "first_index", "the first of equals"), ("random", "random_ties", "any of equals")):
        pairs = [(n, *of[f"{prefix}_{n}"]) for n in ROUTERS if f"{prefix}_{n}" in of]
        path = "L".join(f"{x(n):.1f} {y(sim['value']):.1f}" for n, sim, _ in pairs)
        out.append(f'<path class="line {kind}" d="M{path}"/>')
        for n, sim, real in pairs:
            name = f"{prefix}_{n}"
            bar = f'<path class="line {kind}" style="stroke-width:1.5" d="M{x(n):.1f} {y(real["low"]):.1f}V{y(real["high"]):.1f}"/>' if real["low"] is not None else ""
            out.append(bar + f'<circle class="real {kind}" cx="{x(n):.1f}" cy="{y(real["value"]):.1f}" r="7" data-scenario="{name}" data-simulated-ms="{sim["value"]:.1f}" data-real-ms="{real["value"]:.1f}"><title>{name}: predicted {sim["value"]:.0f} ms, measured {real["value"]:.0f} ms</title></circle>')
        out.append(text(RIGHT + 12, y(pairs[-1][1]["value"]) + 4, words, f"{kind}-ink"))
    out.append("</svg>")
    print("\n".join(out))


main()
