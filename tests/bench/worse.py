# SPDX-License-Identifier: BSD-3-Clause
"""Whether Nezha, as it is shipped, is ever slower than what it replaces, or than one rail alone."""
import contextlib
import itertools
import math
import statistics

import bed
from bed import Bed, Contender
from turns import Player, calls_of_turn, in_turn, ratio_of_turns

SLOWER = 1.02  # than the best alternative, at any size
RAILS = [(500, 500), (800, 200), (500,)]
RAILS_OF = {8: [(250, 250), (400, 100), (250,)]}  # more than that, and two cores are what is measured
SIZES = [4 << k for k in range(25)]
QUICK_SIZES = [4, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]
SMALLEST = 16 << 10  # that the built-in rules send to the rails
UNEVEN = 64 << 10  # below this jobs of one kind differ by a third, with where their ranks come to lie on the host's processors
RUN = 64  # calls in a row of each way, there: the first of them may live on what the other way has left
NAMES = ["nezha", "native", "one rail"]
IN_TURN = "in turn"  # Nezha within one job with the library
LONGER = 4  # times as long for each smaller size: microseconds are noisy
LEAST_US = 200  # that a call which the rails may do takes for sure: a size's first 900 have its tries among them, which in fewer calls would weigh more
CLEAR = 0.9  # jobs of one kind do not differ by so much, below UNEVEN not over so many rounds: what they show is right
# Times as many rounds for sizes of which a round, or the 95 % of all turns, is on the other side of the allowed ratio, and for those between SMALLEST and
# UNEVEN, where three rounds agree by chance;
MOST = 3
UNSURE_MOST = 5  # ... and while the 95 % of the rounds are on both sides of it
WARM = 3  # calls of each size that it may take to learn


def worse(args, verdict):
    """every size, with Nezha as it is shipped and by the better of the library alone and Nezha on the fastest rail
    alone, in rounds of live jobs that take turns: none more than 2 % slower after 3 calls.  Below 64 KiB jobs differ by more than that, so there Nezha
    and the library are compared within one job, in which Nezha is switched on and off in turn: for runs of 64 calls, and
    below 16 KiB, where the library always does the calls, for single ones, after some that have used the rails"""
    args.sizes = args.sizes or (QUICK_SIZES if args.quick else SIZES)
    args.rounds = args.rounds or (5 if args.quick else 9)
    for nodes, mbits in beds(args):
        with Bed(nodes, mbits) as lab:
            for mpi in bed.mpis():
                _compare(args, verdict, lab, mpi)


def beds(args):
    """[(ranks, the rails' Mbit/s)] that the arguments ask for"""
    ranks = args.ranks or ([4] if args.quick else [2, 4, 8])
    return [(n, mbits) for n in ranks for mbits in RAILS_OF.get(n, RAILS) if mbits in (args.rails or [mbits])]


def _jobs_in_turn(args, lab, ours, sizes, first):
    """One round of live jobs that take turns, one for each of NAMES.  Yields name, size, turns.  MPI's own traffic, such as the barriers
    between the calls, goes where it likes in all of them."""
    fastest = lab.mbits.index(max(lab.mbits))
    alone = ours._replace(settings=("NEZHA_RAILS=" + lab.rails.split(",")[fastest], "NEZHA_REPRODUCIBLE=1"))
    ways = {NAMES[0]: (ours, sizes), NAMES[1]: (ours._replace(nezha=False), [s for s in sizes if s >= UNEVEN]), NAMES[2]: (alone, sizes)}
    plan = {size: _turns(args, lab, size) for size in sizes}
    with contextlib.ExitStack() as stack:
        players = {}
        for name, (contender, some) in ways.items():
            if some:
                counts = ",".join(f"{s}:{WARM + math.prod(plan[s])}" for s in some)
                players[name] = stack.enter_context(Player(lab, contender, counts, seconds=600))
        for size in sizes:
            names = [n for n in players if size in ways[n][1]]
            yield from ((n, size, t) for n, t in zip(names, in_turn([players[n] for n in names], *plan[size], WARM, first)))


def _turns(args, lab, size):
    """(how many turns, of how many calls)."""
    expected = LEAST_US + 1.2 * bed.bound_us(lab.nodes, size, lab.mbits)
    calls = max(args.calls, args.seconds * 1e6 / expected)
    count = calls_of_turn(expected)
    return math.ceil(calls / count), count


def _within_a_job(args, lab, ours, sizes, first, *options):
    """One round of one job in which Nezha is on and off in turn, of the sizes `first` and then of `sizes`."""
    options = ["-T", str(LONGER * args.seconds), "-b", *options]
    done = lab.measure(ours, [*first, *sizes], args.calls, WARM, *options, seconds=300)
    for size in sizes:
        for name, how in ((IN_TURN, NAMES[0]), (NAMES[1], NAMES[1])):
            times = [c.us for c in done[size] if c.how == how]
            yield name, size, [times[k : k + RUN] for k in range(0, len(times), RUN)]


def _round(args, lab, mpi, sizes, k):
    """One round.  Yields name, size, turns."""
    ours = Contender("Nezha", mpi, True, False)
    small = [s for s in sizes if s < SMALLEST]
    uneven = [s for s in sizes if SMALLEST <= s < UNEVEN]
    large = [s for s in sizes if s >= SMALLEST]
    if large:
        yield from _jobs_in_turn(args, lab, ours, large, k)
    if uneven:
        yield from _within_a_job(args, lab, ours, uneven, [], "-r", str(RUN))
    if small:
        yield from _within_a_job(args, lab, ours, small, [SMALLEST])


def _measure(args, lab, mpi):
    """{size: [{name: [turn, that is a list of microseconds]} of each round]}"""
    rounds = {s: [] for s in args.sizes}
    for k in itertools.count():
        sizes = [s for s in args.sizes if not _decided(args, s, rounds[s])]
        if not sizes:
            return rounds
        for size in sizes:
            rounds[size].append({})
        for name, size, turns in _round(args, lab, mpi, sizes, k):
            rounds[size][-1][name] = turns


def _decided(args, size, rounds):
    """Whether more rounds would hardly change the answer, or it has had its rounds."""
    if not rounds:
        return False
    count, (low, _, high) = len(rounds), _ratio(_joined(rounds))
    if count < args.rounds:
        return size >= UNEVEN and high < CLEAR
    if count < MOST * args.rounds and SMALLEST <= size < UNEVEN:
        return high < CLEAR
    each = [_ratio(_joined([one]))[1] for one in rounds]
    if min(low, *each) > SLOWER or max(high, *each) <= SLOWER:
        return True
    if count < MOST * args.rounds or count % args.rounds:
        return False
    low, _, high = bed.ratio_range(each, [1] * count)
    return count >= UNSURE_MOST * args.rounds or not low <= SLOWER < high


def _joined(rounds):
    """{name: the turns of all rounds}"""
    return {name: sum((one[name] for one in rounds), []) for name in rounds[0]}


def _ratio(turns):
    """(low, median, high) of Nezha's time to the least of the others', each beside the turns of Nezha's that it was measured with."""
    pairs = [(IN_TURN if name == NAMES[1] and IN_TURN in turns else NAMES[0], name) for name in NAMES[1:] if name in turns]
    return max((ratio_of_turns(turns[ours], turns[name]) for ours, name in pairs if ours in turns), key=lambda r: r[1])


def _compare(args, verdict, lab, mpi):
    where = f"{mpi}, {lab.nodes} ranks, {bed.rails_name(lab.mbits)}"
    print(f"{where} Mbit: median us, Nezha's to the least other (! missed) with its 95 %, rounds and theirs")
    print(f"  {'size':>6}" + "".join(f"{n:>9}" for n in [*NAMES, IN_TURN]) + f" {'ratio':>6}{'95 %':>12} rounds", flush=True)
    for size, rounds in _measure(args, lab, mpi).items():
        turns = _joined(rounds)
        low, ratio, high = _ratio(turns)
        spread = f"{low:.3f}-{high:.3f}"
        good = verdict.check(ratio <= SLOWER, f"{where}, {bed.size_text(size)}: {100 * (ratio - 1):+.1f} % ({spread})")
        each = sorted(_ratio(_joined([one]))[1] for one in rounds)
        cells = [f"{statistics.median(sum(turns[n], [])):.0f}" if n in turns else "" for n in [*NAMES, IN_TURN]]
        print(
            f"  {bed.size_text(size):>6}{''.join(f'{c:>9}' for c in cells)} {ratio:6.3f}{' ' if good else '!'}{spread:>11}"
            f" {len(each):2} {each[0]:.3f}-{each[-1]:.3f}",
            flush=True,
        )
