# SPDX-License-Identifier: BSD-3-Clause
"""What a fresh job without a table reaches, and how soon, against the best that any fixed setting does."""
import statistics
import time

import bed
from bed import NEZHA_MPICH, NEZHA_OPENMPI, Bed
from changes import CALLS_ALLOWED, WITHIN, calls_until_back, collect

RAILS = [(500, 500), (800, 200)]
SIZES = [256 << 10, 1 << 20, 4 << 20, 16 << 20]
BLOCKS = ["4K", "8K", "16K", "32K", "64K", "128K", "256K"]
QUICK_BLOCKS = ["16K", "32K", "64K", "128K"]
SINGLE_BLOCKS = ["64K"]  # quick
WARM = 3
SETTLED = 12  # calls before a step
AFTER = 14  # calls that are looked at after a step


def cold(args, verdict):
    """from cold, without a table, 256 KiB to 16 MiB on 500+500 and 800+200: calls 4 and on within 5 % of the best
    fixed setting, and again within 5 calls after each step between these rates"""
    args.sizes = args.sizes or SIZES
    args.rounds = args.rounds or (2 if args.quick else 5)
    with Bed(4, RAILS[0]) as lab:
        for contender in bed.present([NEZHA_OPENMPI, NEZHA_MPICH]):
            figure = {}
            for mbits in RAILS:
                lab.rates(mbits)
                found = _sweep(args, lab, contender)
                for size in args.sizes:
                    figure[mbits, size] = _fresh(args, verdict, lab, contender, size, found[size])
            for size in args.sizes:
                _steps(args, verdict, lab, contender, size, figure)


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
    """Compares fresh jobs, in turn: whatever a sweep finds best was also lucky.  The setting's median."""
    ours, fixed, ratios = [], [], []
    for k in range(args.rounds):
        for way in (0, 1) if k % 2 else (1, 0):
            more = _fixed(setting) if way else {}
            calls = lab.measure(contender, [size], args.calls, WARM, **more)[size]
            (fixed if way else ours).append([c.us for c in calls])
        ratios.append(statistics.median(ours[-1]) / statistics.median(fixed[-1]))
    best = statistics.median(us for one in fixed for us in one)
    middle = statistics.median(us for one in ours for us in one)
    what = f"{contender.name}, {bed.rails_name(lab.mbits)}, {bed.size_text(size)} from cold"
    good = verdict.check(middle <= WITHIN * best, f"{what}: {middle / best:.3f} times the time of {setting}")
    print(
        f"  {bed.size_text(size):>6}: {middle / 1000:.2f} ms, {best / 1000:.2f} ms with {setting}: "
        f"{middle / best:.3f}{'' if good else '!'} (rounds {' '.join(f'{r:.3f}' for r in ratios)})",
        flush=True,
    )
    return best


def _steps(args, verdict, lab, contender, size, figure):
    lab.rates(RAILS[0])
    took = {mbits: [] for mbits in RAILS}
    kept = {mbits: [] for mbits in RAILS}
    job = lab.start(contender, [size], "-T", "3000", "-l", "-w", str(SETTLED), seconds=600)
    try:
        collect(job, 3)
        for _ in range(args.times):
            for mbits in reversed(RAILS):
                lab.rates(mbits)
                calls = collect(job, AFTER, time.monotonic())
                took[mbits].append(calls_until_back(calls, figure[mbits, size]))
                kept[mbits].append(bed.median(calls[AFTER // 2 :]) / figure[mbits, size])
    finally:
        job.end()
    for mbits in RAILS:
        shown = " ".join("-" if c is None else str(c) for c in took[mbits])
        then = " ".join(f"{k:.2f}" for k in kept[mbits])
        what = f"{contender.name}, {bed.size_text(size)}, step to {bed.rails_name(mbits)}"
        print(f"{what}: calls until within 5 % of the best fixed setting: {shown}; then {then} times it", flush=True)
        late = sum(c is None or c > CALLS_ALLOWED for c in took[mbits])
        verdict.check(not late, f"{what}: {late} of {len(took[mbits])} times later than {CALLS_ALLOWED} calls")
