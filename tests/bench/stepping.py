# SPDX-License-Identifier: BSD-3-Clause
"""Steps of the rails' rates in the middle of a job, beside jobs that have known only the one rates or the other."""
import contextlib
import statistics
from collections import namedtuple

import bed
from chance import by_chance
from turns import Player

WITHIN = 1.05  # of the new figure's time counts as back
CALLS_ALLOWED = 5
SETTLED = 12  # calls before the first step, of each job
AFTER = 14  # calls that are looked at after a step
BESIDE = 10  # calls of the job beside it before these, and after
LIMIT = 1800  # s, for all steps of a size: 40 of 16 MiB are 2,000 calls of 0.3 s
SHOWN = 8  # calls after a step, whose medians are told
BY_CHANCE = 0.05  # more late steps than what is less likely are no chance


class Step(namedtuple("Step", "bytes figure us known")):
    """The times of the calls after a step, microseconds: the median of one that has known only the new rates, those of the job
    that has met the step, and of one more that has not."""

    @property
    def back(self):
        return _back(self.us, self.figure)

    @property
    def then(self):
        """The time of the later half of the calls to the figure."""
        return statistics.median(self.us[AFTER // 2 :]) / self.figure


def _back(times, figure):
    """After how many calls the figure is reached and, in the median, kept; None if not."""
    for k, us in enumerate(times):
        if us <= WITHIN * figure:
            return k + 1 if statistics.median(times[k:]) <= WITHIN * figure else None
    return None


def count_text(back):
    return "-" if back is None else str(back)


def is_late(back):
    return back is None or back > CALLS_ALLOWED


def late(steps):
    """How many of them."""
    return sum(is_late(s.back) for s in steps)


def _seem_late(steps):
    """How many, by the same rule, of those that cannot be."""
    return sum(is_late(_back(s.known, s.figure)) for s in steps)


def _medians(steps):
    """Of each call after the steps, times the figure."""
    return [statistics.median(s.us[k] / s.figure for s in steps) for k in range(AFTER)]


def back(steps):
    """As Step.back, of the calls' medians over repeated steps."""
    return _back(_medians(steps), 1)


def step_often(lab, contender, size, rates, times):
    """{rates: [Step]}; `rates`, in the order of the steps, has what distinguishes the jobs beside it from the one that meets the
    steps.  That begins at the last of them; no job makes a call while the rates change."""
    calls = times * max(len(rates) * AFTER, 2 * BESIDE) + SETTLED + 1  # none ends by itself
    done = {mbits: [] for mbits in rates}
    with contextlib.ExitStack() as stack:

        def settled(**more):
            one = stack.enter_context(Player(lab, contender, f"{size}:{calls}", seconds=LIMIT, **more))
            one.turn(SETTLED)
            return one

        beside = {}
        for mbits, more in rates.items():
            lab.rates(mbits)
            beside[mbits] = settled(**more), settled(**more)
        job = settled()
        for _ in range(times):
            for mbits in rates:
                lab.rates(mbits)
                one, another = beside[mbits]
                some = one.turn(BESIDE)
                after, known = ([c.us for c in player.turn(AFTER)] for player in (job, another))
                some += one.turn(BESIDE)
                done[mbits].append(Step(size, bed.median(some), after, known))
    return done


def tell_noise(steps):
    """What a miss is worth: single calls' noise is taken out by the steps' number, or seen in a job that cannot be late."""
    known = _seem_late(steps)
    print(f"  each call's median, times the figure: {' '.join(f'{m:.2f}' for m in _medians(steps)[:SHOWN])}", end="; ")
    print(f"of a job that knew the rates {known} of {len(steps)} seem late", flush=True)


def tell_chance(steps):
    """The same for the steps of a whole command.  Whether what is late may be chance."""
    met, known, all_of = late(steps), _seem_late(steps), len(steps)
    chance = by_chance(all_of, met, all_of, known)
    print(
        f"later than {CALLS_ALLOWED} calls: {met} of {all_of}, of jobs that knew the rates {known}; so many are by chance with a probability of {chance:.2f}",
        flush=True,
    )
    return chance >= BY_CHANCE
