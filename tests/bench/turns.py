# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that live side by side and take turns, a few calls each: what disturbs the machine for longer than a turn disturbs all alike."""
import mmap
import os
import statistics
import struct
import tempfile

import bed

TURN_US = 30000  # of one job at a stretch; ranks that have slept find cold caches, so a turn of small calls has many


def calls_of_turn(us):
    """How many calls, each of so many microseconds, are a turn."""
    return max(1, int(TURN_US / us))


class Player:
    """An allreduce_bench that makes calls only when it is told to: `with Player(lab, contender, "64K:12,1M:6") as one`."""

    def __init__(self, lab, contender, sizes, *args, **more):
        fd, self.path = tempfile.mkstemp(prefix="nezha-turn-")
        os.ftruncate(fd, mmap.PAGESIZE)
        self.word = mmap.mmap(fd, mmap.PAGESIZE)
        os.close(fd)
        self.allowed = 0
        self.job = lab.start(contender, [sizes], "-w", "0", "-t", self.path, *args, **more)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.job.end()
        self.word.close()
        os.unlink(self.path)

    def turn(self, count=1):
        """The next `count` calls, made now."""
        self.allowed += count
        struct.pack_into("=i", self.word, 0, self.allowed)
        return self.job.collect(count)


def in_turn(players, turns, count, warm, first=0):
    """`turns` of `count` calls of each, after `warm` calls that are not looked at: for each player a list of turns, these lists of
    microseconds.  Another one begins each time."""
    done = [[] for _ in players]
    for k in range(-1, turns):
        for i in range(len(players)):
            who = (first + k + i) % len(players)
            calls = players[who].turn(count if k >= 0 else warm)
            if k >= 0:
                done[who].append([c.us for c in calls])
    return done


def ratio_of_turns(ours, others):
    """(low, median, high), see bed.ratio_range, of the ratios of the turns' medians."""
    return bed.ratio_range([statistics.median(t) for t in ours], [statistics.median(t) for t in others])
