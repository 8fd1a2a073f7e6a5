# SPDX-License-Identifier: BSD-3-Clause
"""results.md and its plots, out of what results.json holds."""
import os
import statistics
import textwrap

import bed
import plot
from experiments import EXPERIMENTS, WARM
from figures import ahead_lines, calls_text, cell, of, rails_text, rows_of, sizes_of, table, threshold, until_back
from plot import Series, number_text

TITLES = {
    "latency": "Latency and throughput",
    "shares": "Which rail carries how much",
    "threshold": "From which size the rails are faster",
    "fixed": "Fixed shares against shares that follow the rails",
    "policies": "The policies",
    "adaptation": "While a rail's rate changes",
}
WORDS = {
    "latency": """The time of a call and the throughput, size over time, with whiskers from the least to the most.
        "default": the MPI library as it is, with all rails; "ring": its ring forced, all rails allowed and, for Open
        MPI where they differ, their bandwidths told by hand; "one rail": everything on the fastest rail alone.
        "bound" is 2(N-1)/N * size / sum of rates, which TCP can reach to 95.6 %. With more than 2
        nodes MPICH's default is measured below 1 MiB only.""",
    "shares": """The share of the bytes that rank 0 sent over each rail, in per cent, all calls of the size counted,
        those that are left out of the times, too.""",
    "threshold": """Each call with Nezha and the same without ("off") follow one another in one job. The rails are
        forced for all sizes; by itself Nezha leaves what is below 16K to the library, which is at its defaults. The
        plot has the median ratio of the pairs; the whiskers, and "faster from", go by its 95 % interval. A ratio below
        1: the rails are faster.""",
    "fixed": """All on the rails, whatever the library could do better. static goes by the nominal speeds, which are
        equal on the lab: halves. In brackets: the first rail's share of what rank 0 sent.""",
    "policies": """All on the rails; the policy alone differs. In brackets: the first rail's share of what rank 0
        sent.""",
    "adaptation": """One job for each contender and round; the upright lines are where the lab begins to set the new
        rates, which takes it a few calls. Settled: the median of the second half of a phase. Calls until back: of each
        round, from the first call that ended after all rates were set to the first that takes at most 5 % more than
        the settled time.""",
}


def write(parts, folder):
    """Writes results.md and results/*.svg below `folder`."""
    text, plots = page(parts)
    os.makedirs(os.path.join(folder, "results"), exist_ok=True)
    for name, svg in plots.items():
        with open(os.path.join(folder, "results", name), "w", encoding="utf-8") as file:
            file.write(svg)
    with open(os.path.join(folder, "results.md"), "w", encoding="utf-8") as file:
        file.write(text)


def page(parts):
    """(the text of results.md, {name: SVG})."""
    order = list(EXPERIMENTS)
    parts = sorted(parts, key=lambda p: (order.index(p["experiment"]), p["nodes"], len(p["mbits"]), p["mbits"][0]))
    machines = []
    for part in parts:
        if part["machine"] not in machines:
            machines.append(part["machine"])
    lines, plots = _head(machines), {}
    lines += _where_ahead(parts)
    for name in order:
        some = [part for part in parts if part["experiment"] == name]
        if some:
            lines += [f"## {TITLES[name]}", "", *_paragraph(WORDS[name])]
            lines += SECTIONS[name](some, plots)
            for part in some:
                lines += _facts(part, machines)
    return "\n".join(lines).rstrip() + "\n", plots


def _paragraph(text):
    return [*textwrap.wrap(" ".join(text.split()), 118, break_on_hyphens=False), ""]


def _head(machines):
    lines = ["# Measured: Nezha and its peers", ""]
    lines += _paragraph(
        f"""Written by tests/bench/results out of results.json, which has every call. All of this was measured on one
        machine: the nodes are network namespaces, the rails are shaped links between them (tests/lab), and all ranks
        share the machine's cores. So it shows how well rails of given rates are used; it does not show what a real
        cluster's adapters would do. Times are the slowest rank's, of MPI_Allreduce of floats with MPI_SUM, one rank on
        each node, in ms: median (least-most). The contenders take turns, in each round another one goes first.
        Without a table Nezha learns in its first calls of a size class whether the rails or the library is faster; so
        the first calls of each size, {WARM} unless said, are left out: this is the steady state. (Of small sizes it
        learns longer, and more are left out, of all contenders: OSU's benchmarks make a thousand calls of these.)"""
    )
    for k, m in enumerate(machines):
        which = f"Machine {k + 1}: " if len(machines) > 1 else "The machine: "
        lines += _paragraph(
            f"{which}{m['cores']} cores, {m['processor']}, {m['memory']}; {m['kernel']}; Open MPI {m['openmpi']}, "
            f"MPICH {m['mpich']}, Nezha {m['nezha']}."
        )
    return lines


def _title(part):
    rates = " then ".join(rails_text(mbits) for mbits in part.get("phases") or [part["mbits"]])
    return f"{part['nodes']} nodes, {rates} Mbit/s"


def _where_ahead(parts):
    lines = ["## Where a peer is ahead", ""]
    lines += _paragraph(
        """Every row in which the median of a peer, of another policy or of a smaller set of rails is better than
        Nezha's, with the ratio of the medians; "~": the ranges from the least to the most overlap. "off" is the MPI
        library within a job with Nezha. In the rows of "threshold" the rails are forced also at sizes that Nezha by
        itself leaves to the library."""
    )
    for part in parts:
        lines += ahead_lines(part, f"{part['experiment']}, {_title(part)}")
    return [*lines, ""]


def _facts(part, machines):
    """How a part was measured, so that it can be again."""
    title = f"How {part['experiment']}, {_title(part)}, was measured"
    which = f" on machine {machines.index(part['machine']) + 1}" if len(machines) > 1 else ""
    warm = sorted({run["warm"] for run in part["runs"]})
    left_out = f"{warm[-1]}" + (f" (peers: {warm[0]})" if len(warm) > 1 else "")
    below, settle = part.get("settle", (0, 0))
    if settle:
        left_out += f", of those below {bed.size_text(below)} {settle}"
    counted = calls_text(part)
    if part.get("phases"):
        steps = next((run["steps"] for run in part["runs"] if run.get("steps")), [[[]]])
        counted = f"{len(steps[0][0])} calls in each phase"
    lines = [f"<details><summary>{title}</summary>", ""]
    lines += _paragraph(
        f"{part['date']}{which}, {part['rounds']} round{'s' if part['rounds'] > 1 else ''}"
        f"{', quick' if part['quick'] else ''}; {counted}; left out: each size's first {left_out}. The lab, then "
        f"each contender's first job (the preload and the programs by their full paths):"
    )
    lines += ["```", part["command"], "", part["lab"]]
    for run in part["runs"]:
        if run["contender"].endswith(", off"):
            continue
        lines.append(f"# {run['contender']}")
        lines += textwrap.wrap(
            run["command"], 114, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
    lines = [l + " \\" if n + 1 < len(lines) and lines[n + 1].startswith("    ") else l for n, l in enumerate(lines)]
    lines += ["```", ""]
    errors = [f"{run['contender']}: {error.splitlines()[0]}" for run in part["runs"] for error in run["errors"]]
    lines += [f"- failed: {error}" for error in errors] + ([""] if errors else [])
    return [*lines, "</details>", ""]


def _keep(plots, part, what, svg):
    """The lines that show a plot, which goes into `plots`."""
    name = "-".join([part["experiment"], str(part["nodes"]), *map(str, part["mbits"]), *([what] if what else [])])
    plots[name + ".svg"] = svg
    return [f"![{part['experiment']} {what}](results/{name}.svg)".replace(" ]", "]"), ""]


def _lines(part, value):
    """A series for each run; value(size, µs) is what is drawn."""
    found = []
    for run in part["runs"]:
        points = []
        for size in sorted(run["us"], key=int):
            middle, *ends = (value(int(size), us) for us in of(run["us"][size]))
            points.append((int(size), middle, min(ends), max(ends)))
        found.append(Series(run["contender"], points))
    return found


def _bound(part, value):
    at = {s: value(s, bed.bound_us(part["nodes"], s, part["mbits"])) for s in sizes_of(part)}
    return Series("bound", [(s, y, y, y) for s, y in at.items()], True)


def _chart(part, y_label, value, low=0):
    series = [s._replace(points=[p for p in s.points if p[0] >= low]) for s in _lines(part, value)]
    bound = _bound(part, value)
    bound = bound._replace(points=[p for p in bound.points if p[0] >= max(low, 32 << 10)])
    return plot.line_chart(
        f"{_title(part)}: {y_label}", "size", y_label, [*series, bound], True, low == 0, bed.size_text
    )


def _times_table(part, runs, more=()):
    header = ["size", *(f"{run['contender']}, ms" for run in runs), *(name for name, _ in more)]
    rows = []
    for size in sizes_of(part):
        cells = [cell(run["us"].get(str(size))) for run in runs]
        rows.append([bed.size_text(size), *cells, *(value(size) for _, value in more)])
    return table(header, rows)


def _throughput_table(part):
    sizes = [s for s in sizes_of(part) if s >= 64 << 10]
    rows = []
    for run in part["runs"]:
        calls = (run["us"].get(str(size)) for size in sizes)
        rows.append([run["contender"], *(number_text(s / of(c)[0]) if c else "" for s, c in zip(sizes, calls))])
    return table(["MB/s", *(bed.size_text(s) for s in sizes)], rows)


def _latency(parts, plots):
    lines = []
    for part in parts:
        lines += [f"### {_title(part)}", ""]
        lines += _keep(plots, part, "time", _chart(part, "ms", lambda s, us: us / 1000))
        lines += _keep(plots, part, "throughput", _chart(part, "MB/s", lambda s, us: s / us, 64 << 10))
        bound = ("bound", lambda s, part=part: number_text(bed.bound_us(part["nodes"], s, part["mbits"]) / 1000))
        for mpi in ("Open MPI", "MPICH"):
            runs = [run for run in part["runs"] if mpi in run["contender"]]
            if runs:
                lines += _times_table(part, runs, [bound])
        lines += _throughput_table(part)
    return lines


def _share(run, size):
    """{device: per cent} of the bytes sent."""
    sent = run.get("rails", {}).get(str(size), {})
    return {device: 100 * count / sum(sent.values()) for device, count in sent.items() if sum(sent.values())}


def _shares(parts, plots):
    lines = []
    for part in parts:
        sizes, series, header = sizes_of(part), [], ["size"]
        columns = []
        for run in part["runs"]:
            for rail, mbit in enumerate(part["mbits"]):
                share = {size: _share(run, size).get(f"e{rail}") for size in sizes}
                points = [(s, v, v, v) for s, v in share.items() if v is not None]
                series.append(Series(f"{run['contender']}: {mbit}", points))
                header.append(f"{run['contender']}: {mbit}")
                columns.append(share)
        for mbit in sorted(set(part["mbits"]), reverse=True):
            ideal = 100 * mbit / sum(part["mbits"])
            series.append(Series(f"{mbit} of {sum(part['mbits'])}", [(s, ideal, ideal, ideal) for s in sizes], True))
        lines += [f"### {_title(part)}", ""]
        chart = plot.line_chart(f"{_title(part)}: share of each rail", "size", "%", series, True, False, bed.size_text)
        lines += _keep(plots, part, "", chart)
        rows = [
            [bed.size_text(s), *("" if c[s] is None else number_text(c[s]) for c in columns)] for s in sizes
        ]
        lines += table(header, rows)
    return lines


def _threshold(parts, plots):
    series, found, details = [], [], []
    for part in parts:
        runs = {run["contender"]: run for run in part["runs"]}
        for name in part["ours"]:
            if name not in runs or name + ", off" not in runs:
                continue
            ours, native = runs[name]["us"], runs[name + ", off"]["us"]
            sizes = sorted(set(ours) & set(native), key=int)
            if not sizes:
                continue
            points = []
            for s in sizes:
                low, middle, high = bed.ratio_range(ours[s], native[s])
                points.append((int(s), middle, low, high))
            series.append(Series(f"{name}, {part['nodes']} nodes", points))
            at = threshold(ours, native)
            text = bed.size_text(at) if at else f"not up to {bed.size_text(int(sizes[-1]))}"
            found.append([str(part["nodes"]), rails_text(part["mbits"]), name, text])
        details += [f"### {_title(part)}", "", *_times_table(part, part["runs"])]
    xs = sorted({p[0] for s in series for p in s.points})
    series.append(Series("as fast", [(x, 1, 1, 1) for x in xs], True))
    chart = plot.line_chart("Time with Nezha to time without", "size", "ratio", series, True, True, bed.size_text)
    plots["threshold.svg"] = chart
    lines = ["![threshold](results/threshold.svg)", ""]
    return lines + table(["nodes", "rails, Mbit/s", "", "faster from"], found) + details


def _split(run, size):
    """'80 %': the first rail's share of what was sent, if more than one rail sent."""
    share = _share(run, size)
    return f" [{share['e0']:.0f} %]" if len(share) > 1 and "e0" in share else ""


def _bars(parts, plots):
    lines = []
    for part in parts:
        sizes, runs = sizes_of(part), part["runs"]
        bars = []
        for run in runs:
            calls = (run["us"].get(str(size)) for size in sizes)
            bars.append((run["contender"], [tuple(x / 1000 for x in of(c)) if c else None for c in calls]))
        names = [bed.size_text(s) for s in sizes]
        chart = plot.bar_chart(f"{_title(part)}: time of a call", "size", "ms", names, bars, True)
        lines += [f"### {_title(part)}", "", *_keep(plots, part, "", chart)]
        rows = [
            [bed.size_text(s), *(cell(run["us"].get(str(s))) + _split(run, s) for run in runs)] for s in sizes
        ]
        lines += table(["size", *(run["contender"] + ", ms" for run in runs)], rows)
    return lines


def _adaptation(parts, plots):
    lines = []
    for part in parts:
        series, rows, marks = [], [], {}
        for run in part["runs"]:
            if not run.get("steps"):
                continue
            points, cells, at = [], [], 1
            for phase in range(len(part["phases"])):
                marks[at] = rails_text(part["phases"][phase])
                some = [steps[phase] for steps in run["steps"]]
                for together in zip(*some):
                    middle, least, most = of(together)
                    points.append((at, middle / 1000, least / 1000, most / 1000))
                    at += 1
                back = [until_back(calls, late[phase]) for calls, late in zip(some, run["changing"])]
                middle = statistics.median(rows_of(run)[f"phase {phase + 1}"]) / 1000
                cells += [number_text(middle), " ".join(map(str, back))]
            series.append(Series(run["contender"], points))
            rows.append([run["contender"], *cells])
        size = next((bed.size_text(run["bytes"]) for run in part["runs"] if "bytes" in run), "")
        title = f"{part['nodes']} nodes, {size}: each call while rates change"
        chart = plot.line_chart(title, "call", "ms", series, False, False, marks=sorted(marks.items()))
        lines += [f"### {_title(part)}, {size}", "", *_keep(plots, part, "", chart)]
        header = ["", *(w for p in part["phases"] for w in (f"{rails_text(p)}: settled, ms", "calls until back"))]
        lines += table(header, rows)
    return lines


SECTIONS = {
    "latency": _latency,
    "shares": _shares,
    "threshold": _threshold,
    "fixed": _bars,
    "policies": _bars,
    "adaptation": _adaptation,
}
