# SPDX-License-Identifier: BSD-3-Clause
"""Numbers out of the calls that `results` kept, and tables out of numbers."""
import statistics
import textwrap

import bed
from plot import number_text


def of(calls):
    """(median, least, most)."""
    return statistics.median(calls), min(calls), max(calls)


def rails_text(mbits):
    return "+".join(str(m) for m in mbits)


def sizes_of(part):
    return sorted({int(size) for run in part["runs"] for size in run["us"]})


def rows_of(run):
    """{what was measured: [times]}: by size; by the second half of a phase, when it has settled."""
    rows = {bed.size_text(int(size)): calls for size, calls in run["us"].items()}
    for steps in run.get("steps", []):
        for number, calls in enumerate(steps):
            rows.setdefault(f"phase {number + 1}", []).extend(calls[len(calls) // 2 :])
    return rows


def cell(calls, unit=1000.0):
    """'median (least-most)', in milliseconds."""
    if not calls:
        return ""
    middle, least, most = (number_text(x / unit) for x in of(calls))
    return f"{middle} ({least}-{most})"


def table(header, rows):
    """The lines of a Markdown table; the first column is text, the others are numbers."""
    cells = [[str(c) for c in row] for row in [header, *rows]]
    wide = [max(3, *(len(row[k]) for row in cells)) for k in range(len(header))]
    lines = [
        "| " + " | ".join(c.rjust(w) if k else c.ljust(w) for k, (c, w) in enumerate(zip(row, wide))) + " |"
        for row in cells
    ]
    rule = "|" + "|".join("-" * (w + 1) + ("-" if k == 0 else ":") for k, w in enumerate(wide)) + "|"
    return [lines[0], rule, *lines[1:], ""]


def calls_text(part):
    """'30 calls at 2K to 512K, 6 at 1M to 64M': of each contender that had its full number."""
    counts = {}
    for run in part["runs"]:
        for size, calls in run["us"].items():
            counts[int(size)] = max(counts.get(int(size), 0), len(calls))
    groups = []
    for size in sorted(counts):
        if groups and groups[-1][0] == counts[size]:
            groups[-1][2] = size
        else:
            groups.append([counts[size], size, size])
    words = [
        f"{count} {'' if k else 'calls '}at {bed.size_text(low)}" + (f" to {bed.size_text(high)}" if high > low else "")
        for k, (count, low, high) in enumerate(groups)
    ]
    return ", ".join(words)


def threshold(ours, native):
    """The least size from which on `ours` is certainly faster at all sizes, None if not at the largest; of pairs."""
    found = None
    for size in sorted(set(ours) & set(native), key=int, reverse=True):
        if bed.ratio_range(ours[size], native[size])[2] >= 1:
            break
        found = int(size)
    return found


def _rivals(part, name):
    """The runs that one of ours is compared with; the same calls without Nezha are its own rival only."""
    for run in part["runs"]:
        base = run["contender"].removesuffix(", off")
        if run["contender"] not in part["ours"] and (base == run["contender"] or base == name):
            yield run


def ahead(part):
    """Where others are faster: (comparisons, [(ours, rival, [(row, ratio, whether the ranges overlap)])])."""
    found, compared = [], 0
    for mine in (run for run in part["runs"] if run["contender"] in part["ours"]):
        rows = rows_of(mine)
        for rival in _rivals(part, mine["contender"]):
            better = []
            for row, calls in rows_of(rival).items():
                if not calls or not rows.get(row):
                    continue
                compared += 1
                his, my = of(calls), of(rows[row])
                if his[0] < my[0]:
                    better.append((row, my[0] / his[0], his[2] >= my[1]))
            if better:
                found.append((mine["contender"], rival["contender"], better))
    return compared, found


def ahead_lines(part, title):
    """The same as sentences of a list, one for each rival."""
    compared, found = ahead(part)
    if not compared:
        return []
    count = sum(len(better) for _, _, better in found)
    lines = [f"- {title}: a peer is ahead in {count} of {compared} comparisons" + (":" if found else ".")]
    for mine, rival, better in found:
        shown = ", ".join(f"{row} {'~' if close else ''}{ratio:.2f}" for row, ratio, close in better)
        text = f"{rival} is ahead of {mine}: {shown}"
        lines += textwrap.wrap(text, 116, initial_indent="  - ", subsequent_indent="    ")
    return lines


def until_back(calls, changing):
    """How many calls, after those `changing` ones, until one takes at most 5 % more than settled ones; "-": none."""
    settled = statistics.median(calls[len(calls) // 2 :])
    return next((k + 1 for k, us in enumerate(calls[changing:]) if us <= 1.05 * settled), "-")
