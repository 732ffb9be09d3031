#!/usr/bin/env python3
"""Cuts the README's picture of a report out of the page: latency by percentile.

  weir sim examples/bamboo.star --html bamboo.html && python3 docs/report.py < bamboo.html > docs/report.svg

Lines and axes are those of the page, byte for byte, which crates/cli/tests/docs/readme.rs checks.
"""
import re
import sys

W, H = 760, 384
LEFT, TOP, WIDTH, HEIGHT = 52, 44, 540, 300

page = sys.stdin.read()
style = page[page.index("<style>") + 7:page.index("</style>")]
kept = [line for line in style.splitlines()
        if line.startswith((":root", "@media screen", "  --c", ".plot", ".s.on", ".small .plot"))]
chart = page[page.index('<div class="chosen">'):]
keys = re.findall(r'<label class="key" style="--c:(.*?)">.*?</span>(.*?)</label>', chart)
plot = chart[chart.index('<svg class="plot"'):]
plot = plot[:plot.index("</svg>\n</svg>") + 13]
plot = plot.replace('<svg class="plot"', f'<svg class="plot" x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}"', 1)

print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W} {H}" width="{W}" height="{H}" role="img" aria-label="Latency by percentile">')
print("<style>")
print("\n".join(kept))
print(f"svg {{ color: var(--ink); }} svg .plot {{ width: {WIDTH}px; height: {HEIGHT}px; }}")
print("text { font: 12px system-ui, sans-serif; fill: currentColor; } .title { font-size: 15px; font-weight: 600; }")
print("</style>")
print('<text class="title" x="12" y="24">Latency by percentile, ms</text>')
for at, (colour, name) in enumerate(keys):
    y = TOP + 14 + 22 * at
    print(f'<g style="--c:{colour}"><rect x="{LEFT + WIDTH + 22}" y="{y - 9}" width="10" height="10" rx="2" style="fill:var(--c)"/>'
          f'<text x="{LEFT + WIDTH + 38}" y="{y}">{name}</text></g>')
print(plot)
print("</svg>")
