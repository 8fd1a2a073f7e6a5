# SPDX-License-Identifier: BSD-3-Clause
"""Calls around a fault: which one was hit, and rows of many faults that may be taken in slices."""
import json
import math
import os
import statistics
import time

import bed

HUNG = 20  # s for a call
NOTICED = 0.15  # s in which a fault shows


def next_call(job):
    job.deadline = time.monotonic() + HUNG
    call = job.next_call()
    if call is None:
        raise bed.BenchError("the job ended before the faults were over")
    return call


def calls_until(job, moment):
    """All calls up to the first one that ends after the moment."""
    calls = [next_call(job)]
    while calls[-1].end < moment:
        calls.append(next_call(job))
    return calls


def hit_call(calls, struck, done):
    """The call that a fault, which began at `struck` and was in force at `done`, has cost most."""
    later = [c for c in calls if c.end > struck]
    return max([c for c in later if c.start < done + NOTICED] or later[:1], key=lambda c: c.us)


def usual_us(calls):
    return statistics.median(c.us for c in calls)


def quantile(values, part):
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


def groups(faults, size):
    """Those that share a job: their numbers are in the same `size`."""
    some = []
    for fault in faults:
        if some and some[0].number // size != fault.number // size:
            yield some
            some = []
        some.append(fault)
    if some:
        yield some


def keep(path, rows):
    """Adds the rows to a file, if there is a path."""
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


def kept(path, rows):
    """All rows that are in the file; no path, or no file yet: these rows."""
    if not path or not os.path.exists(path):
        return rows
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]
