# SPDX-License-Identifier: BSD-3-Clause
"""Charts as plain SVG: lines with whiskers, and bars.  No library; colours and shapes that read on light and dark."""
import math
from collections import namedtuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 820, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 230, 40, 55
COLOURS = ["#2f7fd1", "#dd7416", "#2a9d6f", "#d0454c", "#9467bd", "#a1794f", "#cf5f9d", "#7d8f1f", "#17a2b8"]
DASHES = ["", "", "", "7 3", "7 3", "7 3", "2 3", "2 3", "2 3"]
STYLE = """
  .back { fill: #ffffff } .text { fill: #24292f } .grid { stroke: #d0d7de } .axis { stroke: #57606a }
  .bound { stroke: #6e7781; fill: #6e7781 }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117 } .text { fill: #e6edf3 } .grid { stroke: #30363d } .axis { stroke: #8b949e }
    .bound { stroke: #8b949e; fill: #8b949e }
  }
  text { font: 12px sans-serif } .title { font-size: 14px; font-weight: bold }
"""

# points: [(x, y, least, most)], by x; bound: a thin grey line without markers, for what cannot be surpassed
Series = namedtuple("Series", "name points bound", defaults=(False,))


def number_text(value):
    """Three digits of a number, without an exponent."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class Scale:
    """Values to pixels."""

    def __init__(self, low, high, start, end, log):
        self.log = log
        self.low, self.high = self._of(low), self._of(high)
        if self.high == self.low:
            self.high = self.low + 1
        self.start, self.end = start, end

    def _of(self, value):
        return math.log10(value) if self.log else value

    def __call__(self, value):
        share = (self._of(value) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


def linear_ticks(high):
    """0 to at least `high` in steps of 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(high / 5)) if high > 0 else 1
    step = next((s for s in (power, 2 * power, 5 * power) if high / s <= 6), 10 * power)
    return [k * step for k in range(math.ceil(high / step - 1e-9) + 1)] if high > 0 else [0, 1]


def log_ticks(low, high):
    """Powers of ten that enclose the range; with 2 and 5 between where that is a short one."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    between = (1, 2, 5) if last - first <= 2 else (1,)
    return [m * 10.0**p for p in range(first, max(last, first + 1)) for m in between] + [
        10.0 ** max(last, first + 1)
    ]


def thin(values, most):
    """Every n-th value, so that at most `most` are left."""
    step = max(1, math.ceil(len(values) / most))
    return values[::step]


def _text(x, y, text, anchor="middle", kind="text", more=""):
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _line(x1, y1, x2, y2, kind, more=""):
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"{more}/>'


def _marker(which, x, y, colour):
    """One of four shapes."""
    shape = which % 4
    if shape == 0:
        return f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>'
    if shape == 1:
        return f'<rect x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4" fill="{colour}"/>'
    corners = ((0, -4.6), (4.4, 3.4), (-4.4, 3.4)) if shape == 2 else ((0, -4.8), (4.8, 0), (0, 4.8), (-4.8, 0))
    points = " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


def _whisker(x, low, high, colour):
    """From the least to the most, with caps."""
    more = f' stroke="{colour}" opacity="0.7"'
    return [
        _line(x, low, x, high, "whisker", more),
        _line(x - 3, low, x + 3, low, "whisker", more),
        _line(x - 3, high, x + 3, high, "whisker", more),
    ]


def _frame(title, x_label, y_label, y_ticks, y_scale, y_text):
    """All that is behind the data, but for the horizontal axis's ticks."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    middle = (TOP + bottom) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="back" width="{WIDTH}" height="{HEIGHT}"/>',
        _text((LEFT + right) / 2, 22, title, kind="text title"),
        _text((LEFT + right) / 2, HEIGHT - 12, x_label),
        _text(16, middle, y_label, more=f' transform="rotate(-90 16 {middle})"'),
    ]
    for tick in y_ticks:
        y = y_scale(tick)
        parts += [_line(LEFT, y, right, y, "grid"), _text(LEFT - 6, y + 4, y_text(tick), "end")]
    parts += [_line(LEFT, bottom, right, bottom, "axis"), _line(LEFT, TOP, LEFT, bottom, "axis")]
    return parts


def _legend(parts, row, name, sample):
    y = TOP + 12 + 20 * row
    parts += sample(WIDTH - RIGHT + 14, y - 4)
    parts.append(_text(WIDTH - RIGHT + 46, y, name, "start"))


def _y_axis(values, log):
    """(ticks, scale) for values that are above 0."""
    high = max(values, default=1)
    ticks = log_ticks(min(values, default=1), high) if log else linear_ticks(high)
    return ticks, Scale(ticks[0], ticks[-1], HEIGHT - BOTTOM, TOP, log)


def line_chart(title, x_label, y_label, series, x_log=False, y_log=False, x_text=number_text, marks=()):
    """The SVG text of lines over x; marks: [(x, what happened there)], upright lines."""
    series = [s for s in series if s.points]
    points = [p for s in series for p in s.points]
    xs = sorted({p[0] for p in points}) or [1]
    y_ticks, y_scale = _y_axis([y for p in points for y in p[1:]], y_log)
    x_scale = Scale(xs[0], xs[-1], LEFT + 12, WIDTH - RIGHT - 12, x_log)
    parts = _frame(title, x_label, y_label, y_ticks, y_scale, number_text)
    for x in thin(xs, 10):
        at = x_scale(x)
        parts += [
            _line(at, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 5, "axis"),
            _text(at, HEIGHT - BOTTOM + 19, x_text(x)),
        ]
    for x, what in marks:
        at = x_scale(x)
        parts += [
            _line(at, TOP, at, HEIGHT - BOTTOM, "axis", ' stroke-dasharray="4 3"'),
            _text(at + 4, TOP + 12, what, "start"),
        ]
    for k, one in enumerate(series):
        parts += _one_line(one, k, x_scale, y_scale)
        _legend(parts, k, one.name, lambda x, y, one=one, k=k: _line_sample(one, k, x, y))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _look(one, k):
    """(class, stroke) of a line."""
    if one.bound:
        return "bound", ' stroke-dasharray="1 3"'
    dash = DASHES[k % len(DASHES)]
    return "data", f' stroke="{COLOURS[k % len(COLOURS)]}"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _one_line(one, k, x_scale, y_scale):
    kind, stroke = _look(one, k)
    colour = COLOURS[k % len(COLOURS)]
    path = " ".join(f"{x_scale(p[0])},{y_scale(p[1])}" for p in one.points)
    parts = [f'<polyline class="{kind}" points="{path}" style="fill: none" stroke-width="1.6"{stroke}/>']
    for x, y, least, most in [] if one.bound else one.points:
        parts += _whisker(x_scale(x), y_scale(least), y_scale(most), colour)
        parts.append(_marker(k, x_scale(x), y_scale(y), colour))
    return parts


def _line_sample(one, k, x, y):
    kind, stroke = _look(one, k)
    sample = [_line(x, y, x + 26, y, kind, stroke + ' stroke-width="1.6"')]
    return sample if one.bound else [*sample, _marker(k, x + 13, y, COLOURS[k % len(COLOURS)])]


def bar_chart(title, x_label, y_label, groups, series, y_log=False):
    """The SVG text of bars side by side; groups: names below them; series: [(name, [(y, least, most) or None])]."""
    values = [y for _, bars in series for bar in bars if bar for y in bar]
    y_ticks, y_scale = _y_axis(values, y_log)
    parts = _frame(title, x_label, y_label, y_ticks, y_scale, number_text)
    room = (WIDTH - RIGHT - LEFT) / max(1, len(groups))
    wide = 0.8 * room / max(1, len(series))
    for g, group in enumerate(groups):
        left = LEFT + room * g
        parts.append(_text(round(left + room / 2, 1), HEIGHT - BOTTOM + 19, group))
        for k, (_, bars) in enumerate(series):
            if bars[g]:
                parts += _one_bar(bars[g], left + 0.1 * room + wide * k, wide, y_scale, COLOURS[k % len(COLOURS)])
    for k, (name, _) in enumerate(series):
        box = f'<rect x="{{}}" y="{{}}" width="16" height="10" fill="{COLOURS[k % len(COLOURS)]}"/>'
        _legend(parts, k, name, lambda x, y, box=box: [box.format(x + 5, y - 5)])
    return "\n".join([*parts, "</svg>"]) + "\n"


def _one_bar(bar, x, wide, y_scale, colour):
    top, bottom = y_scale(bar[0]), HEIGHT - BOTTOM
    parts = [
        f'<rect x="{x:.1f}" y="{top}" width="{max(1, wide - 1):.1f}" height="{bottom - top:.1f}" fill="{colour}"/>'
    ]
    middle = round(x + wide / 2, 1)
    return [*parts, _line(middle, y_scale(bar[1]), middle, y_scale(bar[2]), "axis")]
