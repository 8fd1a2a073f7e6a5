# SPDX-License-Identifier: BSD-3-Clause
"""Whether Nezha, as it is shipped, is ever slower than what it replaces, or than one rail alone."""
import statistics

import bed
from bed import Bed, Contender

SLOWER = 1.02  # than the best alternative, at any size
RAILS = [(500, 500), (800, 200), (500,)]
RAILS_OF = {8: [(250, 250)]}  # more than that, and two cores are what is measured
SIZES = [4 << k for k in range(25)]
QUICK_SIZES = [4, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]
SMALLEST = 16 << 10  # that the built-in rules send to the rails
UNEVEN = 64 << 10  # below this jobs of one kind differ by a third, with where their ranks come to lie on the host's processors
RUN = 64  # calls in a row of each way, there: the first of them may live on what the other way has left
NAMES = ["nezha", "native", "one rail"]
IN_TURN = "in turn"  # Nezha within one job with the library
LONGER = 4  # times as long for each smaller size: microseconds are noisy
WARM = 3  # calls of each size that it may take to learn


def worse(args, verdict):
    """every size, with Nezha as it is shipped and by the better of the library alone and Nezha on the fastest rail
    alone, in rounds: none more than 2 % slower after 3 calls.  Below 64 KiB jobs differ by more than that, so there Nezha
    and the library are compared within one job, in which Nezha is switched on and off in turn: for runs of 64 calls, and
    below 16 KiB, where the library always does the calls, for single ones, after some that have used the rails"""
    args.sizes = args.sizes or (QUICK_SIZES if args.quick else SIZES)
    args.rounds = args.rounds or (5 if args.quick else 9)
    for nodes in args.ranks or ([4] if args.quick else [2, 4, 8]):
        for mbits in RAILS_OF.get(nodes, RAILS):
            if args.rails and mbits not in args.rails:
                continue
            with Bed(nodes, mbits) as lab:
                for mpi in bed.mpis():
                    _compare(args, verdict, lab, mpi)


def _job(args, lab, contender, sizes, seconds, *options):
    return lab.measure(contender, sizes, args.calls, WARM, "-T", str(seconds), *options, seconds=300)


def _jobs_in_turn(args, lab, ours, sizes, k):
    """One round of a job for each of NAMES; another one goes first in each round.  Yields name, size, calls."""
    fastest = lab.mbits.index(max(lab.mbits))
    ways = [
        (NAMES[0], ours, sizes),
        (NAMES[1], ours._replace(nezha=False), [s for s in sizes if s >= UNEVEN]),
        (NAMES[2], ours._replace(rail=fastest, settings=("NEZHA_REPRODUCIBLE=1",)), sizes),
    ]
    for name, contender, some in ways[k % 3 :] + ways[: k % 3]:
        for size, calls in _job(args, lab, contender, some, args.seconds).items() if some else ():
            yield name, size, calls


def _within_a_job(args, lab, ours, sizes, first, *options):
    """One round of one job in which Nezha is on and off in turn, of the sizes `first` and then of `sizes`."""
    done = _job(args, lab, ours, [*first, *sizes], LONGER * args.seconds, "-b", *options)
    for size in sizes:
        for name, how in ((IN_TURN, NAMES[0]), (NAMES[1], NAMES[1])):
            yield name, size, [c for c in done[size] if c.how == how]


def _measure(args, lab, mpi):
    """{name: {size: [[microseconds of each call] of each round]}}"""
    times = {name: {s: [] for s in args.sizes} for name in [*NAMES, IN_TURN]}
    ours = Contender("Nezha", mpi, True, False)
    small = [s for s in args.sizes if s < SMALLEST]
    uneven = [s for s in args.sizes if SMALLEST <= s < UNEVEN]
    large = [s for s in args.sizes if s >= SMALLEST]
    for k in range(args.rounds):
        done = list(_jobs_in_turn(args, lab, ours, large, k)) if large else []
        done += _within_a_job(args, lab, ours, uneven, [], "-r", str(RUN)) if uneven else []
        done += _within_a_job(args, lab, ours, small, [SMALLEST]) if small else []
        for name, size, calls in done:
            times[name][size].append([c.us for c in calls])
    return times


def _ratio(times):
    """Of Nezha's median to the least of the others', each of the same kind of job as Nezha's beside it."""
    medians = {name: statistics.median(some) for name, some in times.items()}
    ours = medians.get(NAMES[0])
    return max((medians.get(IN_TURN, ours) if name == NAMES[1] else ours) / medians[name] for name in NAMES[1:] if name in medians)


def _compare(args, verdict, lab, mpi):
    where = f"{mpi}, {lab.nodes} ranks, {bed.rails_name(lab.mbits)}"
    print(f"{where} Mbit, {args.rounds} rounds: median us, Nezha's to the least other (! missed)")
    print(f"  {'size':>6}" + "".join(f"{n:>11}" for n in [*NAMES, IN_TURN]) + f" {'ratio':>7}  quartiles of the rounds")
    times = _measure(args, lab, mpi)
    for size in args.sizes:
        rounds = {name: one[size] for name, one in times.items() if one[size]}
        ratio = _ratio({name: sum(one, []) for name, one in rounds.items()})
        each = [_ratio({name: one[k] for name, one in rounds.items()}) for k in range(args.rounds)]
        quarters = statistics.quantiles(each, n=4, method="inclusive") if len(each) > 1 else each * 3
        spread = " ".join(f"{q:.3f}" for q in quarters)
        good = verdict.check(
            ratio <= SLOWER,
            f"{where}, {bed.size_text(size)}: {100 * (ratio - 1):+.1f} % (quartiles of the rounds {spread})",
        )
        cells = [f"{statistics.median(sum(rounds[n], [])):.0f}" if n in rounds else "" for n in [*NAMES, IN_TURN]]
        print(
            f"  {bed.size_text(size):>6}"
            + "".join(f"{c:>11}" for c in cells)
            + f" {ratio:>7.3f}{' ' if good else '!'} {spread}",
            flush=True,
        )
