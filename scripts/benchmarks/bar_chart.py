"""Draws shares of a machine's limit as bars, one group for each model and one bar for each engine."""

import html
import math

from benchmarks import svg

LABELS, WIDTH, RIGHT, TOP, BOTTOM = 200, 520, 110, 74, 36
BAR, GAP = 12, 8
# Inlay's colour comes first.
COLOURS = (svg.COLOURS[2], svg.COLOURS[0], svg.COLOURS[4], svg.COLOURS[5])


def draw(title, engines, groups):
    """`groups` is [(label, {engine: (percent of the limit, words at the bar's end)})]."""
    rows = [max(1, sum(engine in bars for engine in engines)) for _, bars in groups]
    highest = max((percent for _, bars in groups for percent, _ in bars.values()), default=0)
    end = max(100, math.ceil(highest / 10) * 10)
    height = TOP + sum(rows) * BAR + len(rows) * GAP + BOTTOM
    bottom = height - BOTTOM
    parts = [svg.text(16, 24, title, "title")]
    x = 16
    for engine, colour in zip(engines, COLOURS):
        parts += [f'<rect x="{x}" y="36" width="{BAR}" height="{BAR}" fill="{colour}"/>',
                  svg.text(x + BAR + 6, 46, engine)]
        x += BAR + 30 + 7 * len(engine)
    for percent in range(0, end + 1, 20):
        x = LABELS + percent / end * WIDTH
        parts += [f'<path class="grid" d="M{x:.1f} {TOP - 6}V{bottom}"/>',
                  svg.text(x, bottom + 16, f"{percent} %", "small", "middle")]
    y = TOP
    for (label, bars), count in zip(groups, rows):
        parts.append(svg.text(LABELS - 10, y + count * BAR / 2 + 4, label, "small", "end"))
        for engine, colour in zip(engines, COLOURS):
            if engine not in bars:
                continue
            percent, words = bars[engine]
            length = percent / end * WIDTH
            parts += [f'<rect x="{LABELS}" y="{y}" width="{length:.1f}" height="{BAR - 2}" '
                      f'fill="{colour}"><title>{html.escape(engine)}: {percent:.0f} % of the limit'
                      "</title></rect>",
                      svg.text(LABELS + length + 6, y + BAR - 3, words, "small")]
            y += BAR
        y += GAP + (0 if bars else BAR)
    parts.append(f'<path class="roof" d="M{LABELS + 100 / end * WIDTH:.1f} {TOP - 6}V{bottom}"/>')
    return svg.document(LABELS + WIDTH + RIGHT, height, title, parts)
