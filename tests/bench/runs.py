# SPDX-License-Identifier: BSD-3-Clause
"""Taking the measurements of `results`: jobs of the contenders in turn, kept as JSON after each part.

A part is one experiment on one lab (nodes and rates).  results.json is
  {"version": 1, "parts": [{"experiment", "nodes", "mbits", "date", "machine", "command", "lab", "quick",
                            "rounds", "settle": [bytes, calls], "ours": [names], "runs": [run]}]}
and a run, what one contender did,
  {"contender", "command", "warm", "us": {size: [time of each call]}, "errors": [text],
   "rails": {size: {device: bytes sent}} (where the report was asked for),
   "steps": [[[time of each call] for each phase] for each round] (adaptation),
   "changing": [[how many of a phase's calls ended before the new rates were all set] for each round]}.
Times are the slowest rank's, in microseconds, in the order in which they were taken."""
import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

import bed
import changes
from bed import Bed

VERSION = 1
LINE = 79  # columns of the progress line
FIELDS = "experiment nodes mbits date machine command lab quick rounds ours runs".split()

# spans: [(sizes, calls of each)], one job each; settle: (bytes, calls): of sizes below, every contender's first calls that
# are left out; limits: {contender's name: its largest size}; pairs: each job also takes every other call without Nezha; report: Nezha's own report gives the bytes over each rail; phases: the
# rates that follow one another while the job runs, with `calls` in each; ours: whom the others are compared with
Part = namedtuple(
    "Part",
    "experiment nodes mbits contenders ours spans warm rounds limits pairs report phases settle",
    defaults=({}, False, False, (), (0, 0)),
)


def key(part):
    """What replaces what in results.json."""
    return part["experiment"], part["nodes"], tuple(part["mbits"])


class Store:
    """results.json in `folder`."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "results.json")
        self.parts = []

    def load(self):
        try:
            with open(self.path, encoding="utf-8") as file:
                data = json.load(file)
            if data["version"] != VERSION:
                raise bed.BenchError(f"{self.path}: version {data['version']}: {VERSION} is allowed")
            for part in data["parts"]:
                missing = [name for name in FIELDS if name not in part]
                if missing:
                    raise ValueError(f"a part without {missing[0]}")
            self.parts = data["parts"]
        except (ValueError, KeyError, TypeError) as error:
            raise bed.BenchError(f"{self.path} is not what `results` wrote: {error!r}") from None
        return self

    def add(self, part):
        """Replaces the part of the same key, and writes; a reader never sees half a file."""
        self.parts = [p for p in self.parts if key(p) != key(part)] + [part]
        text = json.dumps({"version": VERSION, "parts": self.parts}, separators=(",", ":"))
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            file.write(re.sub(r'(?=\{"(?:experiment|contender)":)', "\n", text) + "\n")
        os.replace(self.path + ".new", self.path)


class Progress:
    """One line on stderr: what is being done, and the time that is left."""

    def __init__(self, parts):
        self.total = sum(job[-1] for part in parts for job in jobs(part))
        self.done, self.began = 0.0, time.monotonic()
        self.terminal = sys.stderr.isatty()

    def left(self):
        """Seconds: the estimate, corrected by how long what is done took."""
        spent = time.monotonic() - self.began
        factor = spent / self.done if self.done > 20 else 1
        return (self.total - self.done) * factor

    def tell(self, what):
        left = round(self.left())
        share = 100 * self.done / self.total
        text = f"{what[: LINE - 22]:<{LINE - 22}} {share:3.0f} %, {left // 60:2d}:{left % 60:02d} left"
        print("\r" + text if self.terminal else text, end="" if self.terminal else "\n", file=sys.stderr, flush=True)

    def end(self):
        if self.terminal:
            print(file=sys.stderr)


def expected_us(contender, nodes, mbits, size):
    """About how long a call takes: for the time that is left and for limits, nothing else."""
    rails = mbits if contender.rail is None else [mbits[contender.rail]]
    if "NEZHA_POLICY=ecf" not in contender.settings and any("POLICY" in s for s in contender.settings):
        rails = [min(rails) * len(rails)]
    factor = 1.1 if contender.nezha or contender.rail is not None else 1.4
    if contender.mpi == "mpich" and not contender.nezha:
        factor = 2.2 if contender.best else 4
    return 300 + factor * bed.bound_us(nodes, size, rails)


def _warm(part, contender):
    """The first calls of a size that are left out.  The library's own call within what Nezha learns from is the slow one."""
    return part.warm if contender.nezha else 1


def jobs(part):
    """The jobs of one round: [(contender, sizes, calls, warm, estimated seconds)]."""
    found = []
    for contender in part.contenders:
        slow = bed.Contender("", contender.mpi, False, False)
        for sizes, calls in part.spans:
            sizes = [s for s in sizes if s <= part.limits.get(contender.name, s)]
            if not sizes:
                continue
            warm = part.settle[1] if sizes[-1] < part.settle[0] else _warm(part, contender)
            us = sum((warm + calls) * expected_us(contender, part.nodes, part.mbits, s) for s in sizes)
            if contender.nezha:
                times = calls + warm if part.pairs else 1
                us += sum(times * expected_us(slow, part.nodes, part.mbits, s) for s in sizes)
            us *= max(1, len(part.phases))
            found.append((contender, sizes, calls, warm, part.rounds * (0.7 + us / 1e6)))
    return found


def shown(command):
    """A command as one gives it in the source tree, without this machine's paths."""
    text = shlex.join(command)
    for folder in (bed.BUILD, bed.SRC):  # that one may lie within this one
        text = text.replace(folder + "/", "")
    text = re.sub(r"NEZHA_REPORT=\S+", "NEZHA_REPORT=FILE", text.replace(".libs/", ""))
    return re.sub(r" -d b\d+ ", " ", text)


def _first_line(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return "none"
    return next((line.strip() for line in done.stdout.splitlines() if line.strip()), "none")


def _nezha():
    """Version, and which commit where the sources are a checkout."""
    version = _first_line(os.path.join(bed.BUILD, "nezha-info"), "--version").split()[-1]
    commit = _first_line("git", "-C", bed.SRC, "rev-parse", "--short", "HEAD")
    return version if commit == "none" else f"{version} ({commit})"


def machine():
    """What the figures depend on, without any name of the machine."""
    model = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    openmpi = _first_line(os.environ.get("OPENMPI_RUN") or "mpirun.openmpi", "--version")
    return {
        "cores": os.cpu_count(),
        "processor": model,
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
        "openmpi": openmpi.split()[-1],
        "mpich": _first_line("mpichversion").split(":")[-1].strip(),
        "nezha": _nezha(),
    }


def _report(path, sizes, run):
    """Adds the bytes over each rail, by size, from Nezha's report."""
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError) as error:
        run["errors"].append(f"no report: {error}")
        return
    total = run.setdefault("rails", {})
    for row in (row for comm in report["communicators"] for row in comm["sizes"]):
        for size in sizes:
            if row["bytes_min"] <= size <= row["bytes_max"] and row["path"] != "native":
                at = total.setdefault(str(size), {})
                for device, count in row["rails"].items():
                    at[device] = at.get(device, 0) + count


def _empty(part, contender):
    return {"contender": contender.name, "command": "", "warm": _warm(part, contender), "us": {}, "errors": []}


def _run_job(lab, part, job, scratch, runs):
    """One job: its calls go into `runs`; one that fails is noted there, and the others go on."""
    contender, sizes, calls, warm, estimate = job
    run = runs.setdefault(contender.name, _empty(part, contender))
    options = {"seconds": int(30 + 4 * estimate / part.rounds)}
    arguments = ["-n", str(calls), "-w", str(warm), *(["-b"] if part.pairs else [])]
    path = os.path.join(scratch, "report.json")
    if part.report and contender.nezha:
        options["environment"] = [f"NEZHA_REPORT={path}"]
    try:
        started = lab.start(contender, sizes, *arguments, **options)
        run["command"] = run["command"] or shown(started.process.args)
        done = started.all_calls()
    except bed.BenchError as error:
        run["errors"].append(str(error)[-400:])
        return
    for call in done:
        if call.how == "native":
            name = contender.name + ", off"
            to = runs.setdefault(name, dict(_empty(part, contender), contender=name, command=run["command"]))
        else:
            to = run
        to["us"].setdefault(str(call.bytes), []).append(call.us)
    if part.report and contender.nezha:
        _report(path, sizes, run)


def _step_job(lab, part, job, runs):
    """One job while the rates change; a phase begins with the call that runs when the lab begins to set its rates."""
    contender, sizes, calls, warm, _ = job
    run = runs.setdefault(contender.name, _empty(part, contender))
    lab.rates(part.phases[0])
    started = lab.start(contender, sizes, "-T", "3000", "-l", "-w", str(warm), seconds=120)
    began, done = [], []  # when the lab began to set a phase's rates, and when it had
    try:
        run["command"] = run["command"] or shown(started.process.args)
        for number, mbits in enumerate(part.phases):
            began.append(time.monotonic() if number else 0.0)
            if number:
                lab.rates(mbits)
            done.append(time.monotonic() if number else 0.0)
            started.collect(calls + 1, done[-1])
    except bed.BenchError as error:
        run["errors"].append(str(error)[-400:])
        return
    finally:
        started.end()
    phases, changing = [], []
    for since, ready, until in zip(began, done, [*began[1:], float("inf")]):
        inside = [c for c in started.calls if since < c.end <= until][:calls]
        phases.append([c.us for c in inside])
        changing.append(sum(c.end <= ready for c in inside))
    run.setdefault("steps", []).append(phases)
    run.setdefault("changing", []).append(changing)
    run["bytes"] = sizes[0]


def take(part, progress, command, quick):
    """Measures one part; the contenders take turns, each round another one goes first."""
    runs, todo = {}, jobs(part)
    with tempfile.TemporaryDirectory() as scratch, Bed(part.nodes, part.mbits) as lab:
        for turn in range(part.rounds):
            for job in todo[turn % len(todo) :] + todo[: turn % len(todo)]:
                rails = "+".join(map(str, part.mbits))
                progress.tell(f"{part.experiment}, {part.nodes} nodes, {rails}: {job[0].name}, round {turn + 1}")
                if part.phases:
                    _step_job(lab, part, job, runs)
                else:
                    _run_job(lab, part, job, scratch, runs)
                progress.done += job[-1] / part.rounds
        up = ["tests/lab/lab", "up", "-n", str(part.nodes), "-r", Bed.rate_text(part.mbits), "-b", "16384"]
    order = [c.name for c in part.contenders]
    return {
        "experiment": part.experiment,
        "nodes": part.nodes,
        "mbits": list(part.mbits),
        "phases": [list(p) for p in part.phases],
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "command": command,
        "lab": shlex.join(up),
        "quick": quick,
        "rounds": part.rounds,
        "settle": list(part.settle),
        "ours": [c.name for c in part.contenders if c.name in part.ours],
        "runs": sorted(runs.values(), key=lambda r: order.index(r["contender"].removesuffix(", off"))),
    }
