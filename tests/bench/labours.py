# SPDX-License-Identifier: BSD-3-Clause
"""The faults of a storm that are left, for several labs at once."""
import threading
import time

from hits import groups, keep
from scene import Orders


class Work:
    """What is to be done; `run_group(args, lab, orders, faults)` does what it can of a group: the rows, and the faults that are left."""

    def __init__(self, args, faults, run_group):
        self.args, self.run_group, self.lock = args, run_group, threading.Lock()
        self.left = list(groups(faults, args.group))
        self.rows, self.error = [], None

    def _take(self):
        """The next group; None: there is none, or no time for it."""
        with self.lock:
            return self.left.pop(0) if self.left and not self.error and time.monotonic() < self.args.until else None

    def _done(self, rows, again):
        with self.lock:
            self.rows += rows
            keep(self.args.keep, rows)
            if again:
                self.left.insert(0, again)

    def _labour(self, lab):
        """What a lab does until nothing is left."""
        try:
            with Orders(lab) as orders:
                while some := self._take():
                    self._done(*self.run_group(self.args, lab, orders, some))
        except Exception as error:  # of a thread: else nobody would hear of it
            self.error = self.error or error

    def run(self, labs):
        """Until nothing is left, or no time."""
        threads = [threading.Thread(target=self._labour, args=(lab,)) for lab in labs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.error:
            raise self.error
