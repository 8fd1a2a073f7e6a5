# SPDX-License-Identifier: BSD-3-Clause
"""When the machine stood still (standstill.c), and how much of a time that was."""
import os
import subprocess
import threading

import bed

PROGRAM = os.path.join(bed.BUILD, "tests/bench/standstill")


class Standstill:
    """`with Standstill() as standstill: standstill.seconds(begin, end)`; without real-time priority: 0, as `why` says."""

    def __init__(self, program=PROGRAM):
        self.times, self.why = [], None  # (begin, end) of any processor, s of CLOCK_MONOTONIC, as they are told
        try:
            self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            self.process, self.why = None, f"{program}: {error.strerror}"

    def __enter__(self):
        if self.process:
            if self.process.stdout.readline() != "ready\n":
                self.why = self.process.stderr.read().strip()
            threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.stdin.close()
            self.process.wait()

    def _read(self):
        for line in self.process.stdout:
            _, begin, end = line.split()
            self.times.append((float(begin), float(end)))

    def seconds(self, begin, end):
        """How long one of the processors at least stood still between the two."""
        return covered(list(self.times), begin, end)


def covered(times, begin, end):
    """How much of begin to end is in one of the times at least."""
    total, reached = 0.0, begin
    for first, last in sorted(times):
        first, last = max(first, reached), min(last, end)
        if last > first:
            total += last - first
            reached = last
    return total
