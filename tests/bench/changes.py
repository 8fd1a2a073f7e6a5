# SPDX-License-Identifier: BSD-3-Clause
"""Rails that change while calls run: a rate that steps up or down, a rail that is cut and given back."""
import random
import statistics
import time

import bed
from bed import NEZHA_MPICH, NEZHA_OPENMPI, Bed
from stepping import CALLS_ALLOWED, count_text, late, step_often, tell_chance, tell_noise

# The library has the lab's unshaped network while rails are cut: it would rightly be found faster.
RAILS_ONLY = ["NEZHA_REPRODUCIBLE=1"]
ADDED_MS = 150
RETURN_S = 1.0


def steps(args, verdict):
    """a rate step, up and down, at 1, 4 and 16 MiB: back at the new figure within 5 calls, every time; the figure is that
    of a job that has known no other rates"""
    high, low = (500, 500), (500, 200)
    every = []
    for size in args.sizes or [1 << 20, 4 << 20, 16 << 20]:
        with Bed(4, high) as lab:
            for contender in bed.present([NEZHA_OPENMPI, NEZHA_MPICH]):
                done = step_often(lab, contender, size, {low: {}, high: {}}, args.times)
                for mbits, some in done.items():
                    _tell_steps(verdict, lab, f"{bed.size_text(size)} {contender.name}", mbits, some)
                    every += some
    tell_chance(every)


def _tell_steps(verdict, lab, what, mbits, some):
    what = f"{what}, step to {bed.rails_name(mbits)}"
    share = 100 * bed.bound_us(lab.nodes, some[0].bytes, mbits) / statistics.median(s.figure for s in some)
    shown = " ".join(count_text(s.back) for s in some)
    print(f"{what} (settled at {share:.0f} % of the bound): calls until back: {shown}", flush=True)
    tell_noise(some)
    back = len(some) - late(some)
    verdict.check(back == len(some), f"{what}: back within {CALLS_ALLOWED} calls {back} times of {len(some)}")


def cut(args, verdict):
    """a rail cut in the middle of 16 MiB calls and given back: bits, time lost, both again within 1 s"""
    size, mbits = 16 << 20, [500, 500]
    with Bed(4, mbits) as lab:
        for contender in bed.present([NEZHA_OPENMPI, NEZHA_MPICH]):
            _cut_often(args, verdict, lab, contender, size)


def _cut_often(args, verdict, lab, contender, size):
    both = bed.median(lab.measure(contender, [size], 5, 3, control=True, environment=RAILS_ONLY)[size])
    single = 2 * both
    rows = []
    options = {"seconds": 590, "control": True, "environment": RAILS_ONLY}
    job = lab.start(contender, [size], "-T", "3000", "-l", "-c", "-w", "3", **options)
    try:
        job.collect(4)
        for k in range(args.times):
            rows.append(_cut_once(lab, job, k % 2, both, single))
    finally:
        job.end()
    wrong = sum(c.wrong > 0 for c in job.calls)
    verdict.check(wrong == 0, f"{contender.name}: {wrong} calls with wrong results")
    print(f"{contender.name}: a call takes {both / 1000:.0f} ms; {len(job.calls)} calls, {wrong} wrong")
    print("  added to the hit call, ms:  " + " ".join(f"{r[0]:.0f}" for r in rows))
    print("  calls on one rail, ms:      " + " ".join(f"{r[1]:.0f}" for r in rows))
    print("  carries blocks again, s:    " + " ".join(f"{r[2]:.2f}" for r in rows))
    print("  first call at full speed, s:" + " ".join(f"{r[3]:.2f}" for r in rows), flush=True)
    for k, (added, alone, used, fast) in enumerate(rows):
        verdict.check(
            added <= ADDED_MS, f"{contender.name} cut {k + 1}: the hit call took {added:.0f} ms longer"
        )
        verdict.check(
            alone <= 1.1 * single / 1000, f"{contender.name} cut {k + 1}: {alone:.0f} ms a call on one rail"
        )
        verdict.check(
            used <= RETURN_S,
            f"{contender.name} cut {k + 1}: the rail carries blocks again after {used:.2f} s",
        )
        verdict.check(
            fast <= RETURN_S + both / 1e6, f"{contender.name} cut {k + 1}: full speed after {fast:.2f} s"
        )


def _cut_once(lab, job, rail, both, single):
    """(ms added to the hit call, ms of a call on one rail, seconds until traffic, until a fast call)."""
    time.sleep(random.random() * both / 1e6)
    lab.lab("rail", str(rail), "down")
    cut_at = time.monotonic()
    calls = job.collect(1)
    while calls[-1].end < cut_at:
        calls += job.collect(1)
    hit = calls[-1]
    spent = max(0.0, (cut_at - hit.start) * 1e6)
    expected = spent + (1 - min(1.0, spent / both)) * single
    alone = statistics.median(c.us for c in job.collect(5))
    sent = _sent(lab, rail)
    lab.lab("rail", str(rail), "up")
    given_back = time.monotonic()
    used = _used_again(lab, rail, sent, given_back)
    call = job.collect(1)[0]
    while call.us > 1.15 * both and call.start < given_back + 20:
        call = job.collect(1)[0]
    job.collect(3)
    return max(0.0, hit.us - expected) / 1000, alone / 1000, used, max(0.0, call.start - given_back)


def _sent(lab, rail):
    """Bytes that node 1 has sent on the rail."""
    return int(lab.lab("exec", "1", "cat", f"/sys/class/net/e{rail}/statistics/tx_bytes"))


def _used_again(lab, rail, sent, since):
    """Seconds until the rail carries blocks again, more than greetings and probes; 20 if it does not."""
    while time.monotonic() < since + 20:
        if _sent(lab, rail) > sent + (256 << 10):
            return time.monotonic() - since
        time.sleep(0.02)
    return 20.0
