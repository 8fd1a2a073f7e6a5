# SPDX-License-Identifier: BSD-3-Clause
"""What strangers at a process's doors cost the job's calls; and what they cost at a port of the same host that nobody listens on,
which is no doing of the library's: the crowd lives on the same processors."""
import contextlib
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import bed
from bed import NEZHA_MPICH, NEZHA_OPENMPI, Bed
from hits import calls_until

CROWD = os.path.join(bed.SRC, "tests/mpi/crowd.py")
WINDOW = 2.0  # s with strangers, s without
SETTLE = 0.3  # s of either that do not count
OUTSIDE = "4"  # the node without a rank
BESIEGED = "10.77.0.2"
CLOSED = f"{BESIEGED}:9"  # discard
KINDS = ["silent", "noise", "syns", "replays", "silent,noise,syns,replays"]
NAMES = {"silent": "1,000 silent", "syns": "half-open", KINDS[-1]: "all of them"}


def _crowd(lab, node, *words):
    command = [bed.LAB, "exec", "-d", lab.name, node, sys.executable, CROWD, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _doors(lab):
    said = _crowd(lab, OUTSIDE, "0", BESIEGED).communicate(timeout=60)[0]
    found = re.search(r"^crowd: doors (\S+)", said, re.M)
    if not found:
        raise bed.BenchError(f"crowd.py finds no door: {said}")
    return found[1]


def _hear(lab, hello):
    """What a process of the job says as it connects again."""
    ear = _crowd(lab, "1", "--hear", "20", hello)
    time.sleep(0.5)
    lab.lab("rail", "0", "down")
    time.sleep(0.2)
    lab.lab("rail", "0", "up")
    if ear.wait(timeout=30):
        raise bed.BenchError("no hello was heard")


def _processor():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def _window(job, begin, end):
    """(median of the times, mean processor time) of the calls within it, ms."""
    calls = [c for c in calls_until(job, end) + job.calls[-1000:] if begin + SETTLE < c.start and c.end < end]
    calls = {c.index: c for c in calls}.values()
    return statistics.median(c.us for c in calls) / 1000, statistics.mean(c.cpu_us for c in calls) / 1000


def _alone(job):
    begin = time.monotonic()
    time.sleep(WINDOW)
    return _window(job, begin, time.monotonic())


def _crowded(lab, job, kind, door, hello):
    """(calls, how much of a processor the crowd took)."""
    used, crowd = _processor(), _crowd(lab, OUTSIDE, "--kinds", kind, "--hello", hello, str(WINDOW), door)
    crowd.stdout.readline()
    begin = time.monotonic()
    said = crowd.communicate(timeout=60)[0]
    end = begin + WINDOW
    # in a mixed crowd none may come so far: the host itself keeps them out
    replays = "replays" in said or (door != CLOSED and kind == "replays")
    if "crowd: done" not in said or (replays and " 0 were let in" not in said):
        raise bed.BenchError(f"crowd.py: {said}")
    return _window(job, begin, end), (_processor() - used) / WINDOW


def _turn(lab, job, kind, door, hello):
    """(without, at a closed port, at the door, how much of a processor the crowd took there)."""
    without = _alone(job)
    elsewhere, _ = _crowded(lab, job, kind, CLOSED, hello)
    return without, elsewhere, *_crowded(lab, job, kind, door, hello)


def _ratio(turns, this, other, what):
    low, middle, high = bed.ratio_range([t[this][what] for t in turns], [t[other][what] for t in turns])
    return f"{middle:.3f} ({low:.3f}-{high:.3f})"


def _tell(kind, turns):
    print(
        f"  {NAMES.get(kind, kind):<14} {statistics.median(t[0][0] for t in turns):8.2f} {_ratio(turns, 2, 0, 0):>21} "
        f"{_ratio(turns, 2, 0, 1):>21} {_ratio(turns, 1, 0, 0):>21} {_ratio(turns, 2, 1, 0):>21} "
        f"{statistics.median(t[3] for t in turns):.2f}",
        flush=True,
    )


def _besiege(args, lab, contender, size):
    with tempfile.TemporaryDirectory() as folder:
        end, hello = os.path.join(folder, "end"), os.path.join(folder, "hello")
        ranks = contender._replace(settings=("NEZHA_REPRODUCIBLE=1",), launcher=("-np", "3"))
        job = lab.start(ranks, [size], "-T", "900", "-e", end, "-l", seconds=900, control=True)
        try:
            for _ in range(5):
                job.next_call()
            door = _doors(lab)
            _hear(lab, hello)
            time.sleep(1.5)
            for kind in KINDS:
                calls_until(job, time.monotonic())
                _tell(kind, [_turn(lab, job, kind, door, hello) for _ in range(args.times)])
            with open(end, "w", encoding="ascii"):
                pass
            with contextlib.suppress(bed.BenchError):
                job.all_calls()
        finally:
            job.end()


def strangers(args, _):
    """calls while strangers crowd the doors of a process, and without them, in turn within one job, 3 ranks"""
    for contender in bed.present([NEZHA_OPENMPI, NEZHA_MPICH]):
        with Bed(4, [500, 500]) as lab:
            for size in args.sizes or [256 << 10, 4 << 20]:
                print(f"{contender.name}, 500+500, {bed.size_text(size)}: ms without; ratios of pairs (95 %): with to without of time and "
                      "of processor time, at a closed port to without, with to at a closed port; processors that the crowd itself takes",
                      flush=True)
                _besiege(args, lab, contender, size)
