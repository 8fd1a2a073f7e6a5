# SPDX-License-Identifier: BSD-3-Clause
"""What the host takes of a virtual machine's processors: time in which they had work and did not run ("steal" of proc(5))."""
import bisect
import os
import threading
import time

EVERY = 0.05  # s between two looks; the kernel tells it in hundredths of a second
STEAL = 8  # its place among the times of the line


class Stolen:
    """`with Stolen() as stolen: stolen.percent(begin, end)`; of a machine of one's own it is 0."""

    def __init__(self, path="/proc/stat"):
        self.file = os.open(path, os.O_RDONLY)
        self.looks = []  # (s of CLOCK_MONOTONIC, time so far, of which stolen: of all processors, in the kernel's units)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._look()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        os.close(self.file)

    def _look(self):
        times = [int(word) for word in os.pread(self.file, 256, 0).split(b"\n")[0].split()[1:9]]  # guests' time is in that of programs
        self.looks.append((time.monotonic(), sum(times), times[STEAL - 1]))

    def _watch(self):
        while not self.over.wait(EVERY):
            self._look()

    def percent(self, begin, end):
        """Of the time of all processors from the last look before `begin` to the first after `end`, for which it waits."""
        while self.looks[-1][0] < end and self.thread.is_alive() and not self.over.wait(EVERY):
            pass
        first = max(0, bisect.bisect_right(self.looks, begin, key=lambda look: look[0]) - 1)
        last = min(len(self.looks) - 1, bisect.bisect_left(self.looks, end, key=lambda look: look[0]))
        passed = self.looks[last][1] - self.looks[first][1]
        return 100 * (self.looks[last][2] - self.looks[first][2]) / passed if passed else 0.0
