# SPDX-License-Identifier: BSD-3-Clause
"""What Nezha costs where it does not help, and what it takes of the processors where it does."""
import os
import statistics
import subprocess

import bed
from bed import NEZHA_MPICH, NEZHA_OPENMPI, OPENMPI_RING, Bed

PRICE_NS = 60  # a pass-through call may cost so much more
SLOWER = 1.02  # than native, at any size
SHORT_RUN = 64  # calls of up to 16 KiB in a row with Nezha, and without


def _price_once(mpi, preload):
    """(median, least) nanoseconds of an 8-byte call between two ranks on this host."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if mpi == "openmpi":
        command = [
            os.environ.get("OPENMPI_RUN") or "mpirun.openmpi",
            "--oversubscribe",
            "--bind-to",
            "core",
            "-n",
            "2",
        ]
        command += ["-x", f"LD_PRELOAD={bed.PRELOAD}"] if preload else []
    else:
        command = [os.environ.get("MPICH_RUN") or "mpirun.mpich", "-bind-to", "core", "-n", "2"]
        command += ["-genv", "LD_PRELOAD", bed.PRELOAD] if preload else []
    done = subprocess.run(
        [*command, bed.program("price_bench", mpi)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith("price "):
            return tuple(float(x) for x in line.split()[1:])
    raise bed.BenchError(f"price_bench said: {done.stdout}{done.stderr}")


def price(args, verdict):
    """the price of interception: 8 bytes between 2 ranks on one node, paired runs, at most 60 ns more"""
    for mpi in bed.mpis():
        pairs = []
        for k in range(args.times):
            order = (True, False) if k % 2 else (False, True)
            times = {preload: _price_once(mpi, preload) for preload in order}
            pairs.append((times[False], times[True]))
        more = [b[0] - a[0] for a, b in pairs]
        least = [b[1] - a[1] for a, b in pairs]
        middle = statistics.median(more)
        quarters = statistics.quantiles(more, n=4) if len(more) > 1 else [middle] * 3
        print(
            f"{mpi}: {statistics.median(a[0] for a, _ in pairs):.0f} ns without, "
            f"{statistics.median(b[0] for _, b in pairs):.0f} ns with Nezha; pairs differ by "
            f"{middle:+.0f} ns (quartiles {quarters[0]:+.0f} to {quarters[2]:+.0f}; "
            f"of the least times {statistics.median(least):+.0f})",
            flush=True,
        )
        verdict.check(
            middle <= PRICE_NS,
            f"{mpi}: a pass-through call costs {middle:.0f} ns more, allowed are {PRICE_NS}",
        )


def natives(args, verdict):
    """every size on the lab, with Nezha and without in turn within one process: none more than 2 % slower"""
    sizes = args.sizes or [
        8,
        256,
        4 << 10,
        16 << 10,
        32 << 10,
        64 << 10,
        128 << 10,
        256 << 10,
        1 << 20,
        4 << 20,
        16 << 20,
    ]
    for mbits in ([500, 500], [900, 100]):
        with Bed(4, mbits) as lab:
            for contender in bed.present([NEZHA_OPENMPI, NEZHA_MPICH]):
                _compare(args, verdict, lab, contender, sizes)


def _compare(args, verdict, lab, contender, sizes):
    print(
        f"{contender.mpi}, {'+'.join(map(str, lab.mbits))} Mbit: us with Nezha, us native, "
        f"Nezha/native (median of pairs, 95 %)"
    )
    for size in sizes:
        # Short calls scatter by a tenth and more, so 2 % show in thousands of them only; and one that follows one over the other way
        # finds the shapers' buckets fuller than in a program, so they change after runs.
        count, run = (400 * args.calls, SHORT_RUN) if size <= 16 << 10 else ((40 if size < 1 << 20 else 2) * args.calls, 1)
        calls = lab.measure(contender, [size], count, 3, "-b", "-r", str(run), seconds=280)[size]
        ours = {c.index: c.us for c in calls if c.how == "nezha"}
        native = {c.index: c.us for c in calls if c.how == "native"}
        low, middle, high = bed.ratio_range([ours[k] for k in ours], [native[k] for k in ours])
        print(
            f"  {bed.size_text(size):>6} {statistics.median(ours.values()):>10.0f}"
            f" {statistics.median(native.values()):>10.0f}"
            f" {middle:>7.3f} ({low:.3f} to {high:.3f})",
            flush=True,
        )
        verdict.check(
            middle <= SLOWER or low <= 1,
            f"{contender.mpi} {lab.mbits} {bed.size_text(size)}: "
            f"{100 * (middle - 1):.1f} % slower than native",
        )


def unshaped(args, verdict):
    """unshaped rails, 64 MiB: 1.5 times Open MPI's ring's throughput, at most its processor time per GB"""
    size = 64 << 20
    with Bed(4, [0, 0]) as lab:
        contenders = bed.present([NEZHA_OPENMPI, NEZHA_MPICH, OPENMPI_RING])
        calls = {c.name: [] for c in contenders}
        for _ in range(1 if args.quick else 3):
            for c in contenders:
                calls[c.name] += lab.measure(c, [size], args.calls)[size]
    speed = {name: size * 8 / bed.median(some) / 1000 for name, some in calls.items()}
    cpu = {
        name: statistics.median(c.cpu_us for c in some) / 1e6 / (size / 1e9) for name, some in calls.items()
    }
    for name in calls:
        print(
            f"{name:<18} {speed[name]:6.2f} Gbit/s of vector on each node, "
            f"{cpu[name]:6.2f} processor seconds per GB"
        )
    ring = OPENMPI_RING.name
    for c in contenders:
        if c.nezha and ring in speed:
            verdict.check(
                speed[c.name] >= 1.5 * speed[ring],
                f"{c.name}: {speed[c.name] / speed[ring]:.2f} x, wanted 1.5 x",
            )
            verdict.check(
                cpu[c.name] <= cpu[ring], f"{c.name}: {cpu[c.name]:.2f} s/GB, the ring takes {cpu[ring]:.2f}"
            )
