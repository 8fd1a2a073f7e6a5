# SPDX-License-Identifier: BSD-3-Clause
"""Heterogeneous with native: the MPI library has a fast rail to itself, Nezha is given the slow one beside it."""
import bed
from bed import Bed, NEZHA_MPICH, NEZHA_OPENMPI

FAST = 600
RATIOS = {2: 90, 4: 90, 10: 90, 20: None}  # fast : slow; % of the bound of both, None: not slower than native
WARM = 10  # calls in which it learns
PIECES = "NEZHA_TUNE=alg=mix,share=0.999,call=nonblocking"  # all but a block by the library, the way that a mix has it done


def mix(args, verdict):
    """native on a fast rail, a slow one beside it: at least 90 % of S / (1/c_native + 1/c_rail); at 20:1 not slower than native alone.
    Native is the library's blocking call; in nonblocking pieces, as in a mix, it may be faster, so the share of that bound is told, too"""
    sizes = args.sizes or [16 << 20]
    for ratio, target in RATIOS.items():
        with Bed(4, [FAST, FAST // ratio]) as lab:
            lab.rails = lab.rails.split(",")[1]
            for contender in bed.present([NEZHA_OPENMPI, NEZHA_MPICH]):
                for size in sizes:
                    _compare(args, verdict, lab, contender, size, ratio, target)


def _compare(args, verdict, lab, contender, size, ratio, target):
    native = contender._replace(nezha=False)
    alone = contender._replace(settings=("NEZHA_REPRODUCIBLE=1",))
    pieces = contender._replace(settings=(PIECES,))
    calls = {"native": [], "pieces": [], "rail": [], "mix": []}
    for _ in range(args.rounds):
        calls["native"] += lab.measure(native, [size], args.calls, control="rail")[size]
        calls["pieces"] += lab.measure(pieces, [size], args.calls, control="rail", seconds=200)[size]
        calls["rail"] += lab.measure(
            alone, [size], max(2, args.calls // ratio), 2, control="rail", seconds=200
        )[size]
        calls["mix"] += lab.measure(contender, [size], args.calls, WARM, control="rail", seconds=200)[size]
    times = {name: bed.median(some) for name, some in calls.items()}
    bound = 1 / (1 / times["native"] + 1 / times["rail"])
    bound_of_pieces = 1 / (1 / min(times["native"], times["pieces"]) + 1 / times["rail"])
    percent = 100 * bound / times["mix"]
    spread = [100 * bound / pick(c.us for c in calls["mix"]) for pick in (max, min)]
    print(
        f"{ratio:>2}:1 {bed.size_text(size):>4} {contender.mpi:<8} native {times['native'] / 1000:7.1f} ms, "
        f"in pieces {times['pieces'] / 1000:7.1f}, rail {times['rail'] / 1000:7.1f}, both {times['mix'] / 1000:7.1f}:\n"
        f"     {percent:.0f} % of the bound ({spread[0]:.0f}-{spread[1]:.0f}), {times['mix'] / times['native']:.3f} x native; "
        f"{100 * bound_of_pieces / times['mix']:.0f} % of the bound with pieces",
        flush=True,
    )
    good = percent >= target if target else times["mix"] <= 1.02 * times["native"]
    verdict.check(good, f"{contender.name}, {ratio}:1, {bed.size_text(size)}: {percent:.0f} %")
