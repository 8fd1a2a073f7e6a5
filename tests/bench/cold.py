# SPDX-License-Identifier: BSD-3-Clause
"""What a fresh job without a table reaches, and how soon, against the best that any fixed setting does."""
import statistics

import bed
from bed import NEZHA_MPICH, NEZHA_OPENMPI, Bed
from stepping import BY_CHANCE, CALLS_ALLOWED, WITHIN, back, count_text, is_late, late, step_often, tell_chance, tell_noise
from turns import Player, calls_of_turn, in_turn, ratio_of_turns

RAILS = [(500, 500), (800, 200)]
SIZES = [256 << 10, 1 << 20, 4 << 20, 16 << 20]
BLOCKS = ["4K", "8K", "16K", "32K", "64K", "128K", "256K"]
QUICK_BLOCKS = ["16K", "32K", "64K", "128K"]
SINGLE_BLOCKS = ["64K"]  # quick
WARM = 3


def cold(args, verdict):
    """from cold, without a table, 256 KiB to 16 MiB on 500+500 and 800+200: calls 4 and on within 5 % of the best
    fixed setting, and again within 5 calls after each step between these rates: the median of each call over the steps; and no
    more single steps are later than chance makes of those of jobs that have always known the rates"""
    args.sizes = args.sizes or SIZES
    args.rounds = args.rounds or (2 if args.quick else 5)
    steps = []
    with Bed(4, RAILS[0]) as lab:
        for contender in bed.present([NEZHA_OPENMPI, NEZHA_MPICH]):
            best = {}
            for mbits in RAILS:
                lab.rates(mbits)
                best[mbits] = _sweep(args, lab, contender)
                for size in args.sizes:
                    _fresh(args, verdict, lab, contender, size, best[mbits][size])
            for size in args.sizes:
                steps += _steps(args, verdict, lab, contender, size, best)
    verdict.check(tell_chance(steps), f"{late(steps)} of {len(steps)} steps late: more than chance ({BY_CHANCE})")


def _settings(lab, quick):
    """All fixed ones, as NEZHA_TUNE has them."""
    for block in QUICK_BLOCKS if quick else BLOCKS:
        yield f"alg=ring,block={block}"
    for rail in lab.rails.split(","):
        for block in SINGLE_BLOCKS if quick else BLOCKS:
            yield f"alg=ring,block={block},rails={rail}"
    yield "alg=native"


def _fixed(setting):
    return {"environment": [f"NEZHA_TUNE={setting}"]}


def _sweep(args, lab, contender):
    """{size: the best setting}"""
    medians = {}
    for setting in _settings(lab, args.quick):
        calls = lab.measure(contender, args.sizes, args.calls, WARM, seconds=200, **_fixed(setting))
        for size, some in calls.items():
            medians.setdefault(size, {})[setting] = bed.median(some)
    print(f"{contender.name}, {bed.rails_name(lab.mbits)} Mbit: ms of a call, fixed settings")
    print(f"  {'':<44}" + "".join(f"{bed.size_text(s):>9}" for s in args.sizes))
    for setting in medians[args.sizes[0]]:
        print(f"  {setting:<44}" + "".join(f"{medians[s][setting] / 1000:9.2f}" for s in args.sizes), flush=True)
    return {s: min(m, key=m.get) for s, m in medians.items()}


def _fresh(args, verdict, lab, contender, size, setting):
    """Compares fresh jobs that take turns: whatever a sweep finds best was also lucky."""
    count = calls_of_turn(bed.bound_us(lab.nodes, size, lab.mbits))
    turns = -(-args.calls // count)
    ours, fixed, ratios = [], [], []
    for k in range(args.rounds):
        sizes = f"{size}:{WARM + turns * count}"
        with Player(lab, contender, sizes) as one, Player(lab, contender, sizes, **_fixed(setting)) as other:
            done = in_turn([one, other], turns, count, WARM, first=k)
        for calls, some in zip((ours, fixed), done):
            calls += some
        ratios.append(ratio_of_turns(*done)[1])
    ratio = ratio_of_turns(ours, fixed)[1]
    best, middle = (statistics.median(us for turn in some for us in turn) for some in (fixed, ours))
    what = f"{contender.name}, {bed.rails_name(lab.mbits)}, {bed.size_text(size)} from cold"
    good = verdict.check(ratio <= WITHIN, f"{what}: {ratio:.3f} times the time of {setting}")
    print(
        f"  {bed.size_text(size):>6}: {middle / 1000:.2f} ms, {best / 1000:.2f} ms with {setting}: "
        f"{ratio:.3f}{'' if good else '!'} (rounds {' '.join(f'{r:.3f}' for r in ratios)})",
        flush=True,
    )


def _steps(args, verdict, lab, contender, size, best):
    """All steps of a size."""
    more = {mbits: _fixed(best[mbits][size]) for mbits in reversed(RAILS)}
    done = step_often(lab, contender, size, more, args.times)
    for mbits, steps in done.items():
        shown = " ".join(count_text(s.back) for s in steps)
        then = " ".join(f"{s.then:.2f}" for s in steps)
        what = f"{contender.name}, {bed.size_text(size)}, step to {bed.rails_name(mbits)}"
        print(f"{what}: calls until within 5 % of {best[mbits][size]}: {shown}; then {then} times it", flush=True)
        tell_noise(steps)
        middle = back(steps)
        verdict.check(not is_late(middle), f"{what}: the calls' medians are within 5 % after {count_text(middle)} calls, not {CALLS_ALLOWED}")
    return sum(done.values(), [])
