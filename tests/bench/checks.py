# SPDX-License-Identifier: BSD-3-Clause
"""What the checks cost that a user may switch on."""
import os
import statistics
import tempfile

import bed
from bed import NEZHA_MPICH, NEZHA_OPENMPI, Bed


def _ratio(ours, others, what):
    """The ratio of the jobs' medians, round by round: (least, median, most)."""
    ratios = sorted(statistics.median(a) / statistics.median(b) for a, b in zip(ours, others))
    return f"{what} {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"


def _measure(args, lab, contender, sizes, kinds):
    """{size: {kind: [calls of each job]}}; the kinds take turns, in the other order every other round."""
    found = {s: {k: [] for k in kinds} for s in sizes}
    for turn in range(args.times):
        for kind in list(kinds)[:: -1 if turn % 2 else 1]:
            settings = ("NEZHA_REPRODUCIBLE=1", *kinds[kind])
            calls = lab.measure(contender._replace(settings=settings), sizes, args.calls)
            for size in sizes:
                found[size][kind].append(calls[size])
    return found


def checks(args, _):
    """NEZHA_CHECK=crc and NEZHA_TRACE beside neither, jobs in turn, shaped and not: times and processor time of the calls"""
    sizes = args.sizes or [256 << 10, 4 << 20, 64 << 20]
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.%r")
        kinds = {"off": (), "crc": ("NEZHA_CHECK=crc",), "trace": (f"NEZHA_TRACE={trace}",)}
        for mbits in ([500, 500], [0, 0]):
            with Bed(4, mbits) as lab:
                for contender in bed.present([NEZHA_OPENMPI, NEZHA_MPICH]):
                    _tell(contender, mbits, _measure(args, lab, contender, sizes, kinds))


def _tell(contender, mbits, found):
    print(f"{contender.name}, {bed.rails_name(mbits) if any(mbits) else 'unshaped'}: ratios to neither, round by round")
    for size, by_kind in found.items():
        off = by_kind["off"]
        middle = statistics.median(c.us for job in off for c in job) / 1000
        for kind in [k for k in by_kind if k != "off"]:
            some = by_kind[kind]
            times = _ratio([[c.us for c in j] for j in some], [[c.us for c in j] for j in off], "time")
            cpu = _ratio([[c.cpu_us for c in j] for j in some], [[c.cpu_us for c in j] for j in off], "processor")
            print(f"  {bed.size_text(size):>6} {middle:9.2f} ms  {kind:<6} {times}  {cpu}", flush=True)


def against(args, _):
    """this build beside another one's library (--library), jobs in turn, shaped and not: times and processor time of the calls"""
    sizes = args.sizes or [4 << 20, 16 << 20]
    for mbits in args.rails or ([500, 500], [0, 0]):
        with Bed(4, mbits) as lab:
            for contender in bed.present([NEZHA_OPENMPI, NEZHA_MPICH]):
                contender = contender._replace(settings=("NEZHA_REPRODUCIBLE=1",))
                _compare(args, lab, contender, contender._replace(preload=args.library), sizes)


def _compare(args, lab, this, other, sizes):
    """Pairs of jobs, the first of which is now the one, now the other."""
    pairs = {size: [] for size in sizes}
    print(f"{this.name}, {bed.rails_name(lab.mbits) if any(lab.mbits) else 'unshaped'}: ratios to the other build, of pairs of jobs (95 %)", flush=True)
    for turn in range(args.times):
        found = {who: lab.measure(who, sizes, args.calls) for who in ((this, other), (other, this))[turn % 2]}
        for size in sizes:
            pairs[size].append((found[this][size], found[other][size]))
    for size in sizes:
        times = bed.ratio_range(*zip(*((bed.median(a), bed.median(b)) for a, b in pairs[size])))
        work = bed.ratio_range(*zip(*((statistics.mean(c.cpu_us for c in a), statistics.mean(c.cpu_us for c in b)) for a, b in pairs[size])))
        middle = statistics.median(bed.median(b) for _, b in pairs[size]) / 1000
        print(
            f"  {bed.size_text(size):>6} {middle:9.2f} ms   time {times[1]:.4f} ({times[0]:.4f}-{times[2]:.4f})   "
            f"processor {work[1]:.4f} ({work[0]:.4f}-{work[2]:.4f})   {args.times} pairs",
            flush=True,
        )
