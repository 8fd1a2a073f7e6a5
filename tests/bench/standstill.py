# SPDX-License-Identifier: BSD-3-Clause
"""When the machine stood still (standstill.c), all of its processors at once, and how much of a time that was."""
import os
import subprocess
import threading

import bed

PROGRAM = os.path.join(bed.BUILD, "tests/bench/standstill")


class Standstill:
    """`with Standstill() as standstill: standstill.seconds(begin, end)`; without real-time priority: 0, as `why` says."""

    def __init__(self, program=PROGRAM):
        self.times, self.why = {}, None  # of each processor (begin, end), s of CLOCK_MONOTONIC, as they are told
        self.processors = len(os.sched_getaffinity(0))
        try:
            self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            self.process, self.why = None, f"{program}: {error.strerror}"

    def __enter__(self):
        if self.process:
            while (line := self.process.stdout.readline()) and line != "ready\n":
                self._hear(line)
            if not line:
                self.why = self.process.stderr.read().strip()
            threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.stdin.close()
            self.process.wait()

    def _read(self):
        for line in self.process.stdout:
            self._hear(line)

    def _hear(self, line):
        processor, begin, end = line.split()
        self.times.setdefault(processor, []).append((float(begin), float(end)))

    def seconds(self, begin, end):
        """How long all processors stood still at once between the two."""
        each = [list(times) for times in list(self.times.values())]
        return common(each, begin, end) if len(each) == self.processors else 0.0


def common(each, begin, end):
    """How much of begin to end is in a time of each list; those of a list do not overlap."""
    shared = [(begin, end)]
    for times in each:
        shared = [(max(a, c), min(b, d)) for a, b in shared for c, d in times if max(a, c) < min(b, d)]
    return sum(b - a for a, b in shared)
