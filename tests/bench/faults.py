# SPDX-License-Identifier: BSD-3-Clause
"""Faults of the aggregator in the middle of calls: what they cost, and whether it is used again afterwards.

Fault number k of a seed is always the same one: its kind, moment and duration, the MPI and the size of the vector.  So
some hundred of them may be taken in slices (--first, --times), whose rows --keep puts together."""
import math
import os
import random
import statistics
import time

import bed
from hits import calls_until, groups, hit_call, keep, kept, next_call, quantile, usual_us

AGGD = os.environ.get("NEZHA_TEST_AGGD") or os.path.join(bed.BUILD, "nezha-aggd")
KINDS = ["killed", "stopped", "restarted", "port cut", "node cut"]
GROUP = 10  # faults to a job
NODES = 4
MBITS = [500, 500]
NEIGHBOURS = 8  # calls before the hit one
RETURN = 20  # s until it is used again
ADDED_MS = 100


class Fault:
    """What number k is, by the seed."""

    def __init__(self, seed, k, mpis, sizes):
        dice = random.Random(f"{seed} {k}")
        group = k // GROUP
        self.number = k
        self.kind = KINDS[k % len(KINDS)]
        self.mpi = mpis[group % len(mpis)]
        self.size = sizes[group // len(mpis) % len(sizes)]
        self.moment = dice.random()  # of two calls' time
        self.lasts = dice.uniform(0.05, 1.0)  # s
        self.node = str(dice.randint(1, NODES))

    def strike(self, lab):
        if self.kind == "killed":
            lab.lab("aggd", "0", "signal", "KILL")
        elif self.kind == "stopped":
            lab.lab("aggd", "0", "signal", "STOP")
        elif self.kind == "restarted":
            lab.lab("aggd", "0", "signal", "INT")
        else:
            lab.lab("aggd", "0", "cut", "all" if self.kind == "port cut" else self.node, "on")

    def undo(self, lab):
        if self.kind in ("killed", "restarted"):
            lab.lab("aggd", "0", "start", AGGD)
        elif self.kind == "stopped":
            lab.lab("aggd", "0", "signal", "CONT")
        else:
            lab.lab("aggd", "0", "cut", "all" if self.kind == "port cut" else self.node, "off")


def _packets(lab):
    """UDP packets that node 1 has sent: only the aggregator gets any."""
    lines = [line.split() for line in lab.lab("exec", "1", "cat", "/proc/net/snmp").splitlines()]
    names, values = [line for line in lines if line[0] == "Udp:"]
    return int(values[names.index("OutDatagrams")])


def _used(lab, job, since, sent):
    """Seconds until it is used, more than `sent` packets so far, None if it is not; and the calls meanwhile."""
    calls = []
    while time.monotonic() < since + RETURN:
        calls += calls_until(job, time.monotonic())
        if _packets(lab) > sent:
            return time.monotonic() - since, calls
    return None, calls


def _once(lab, job, fault):
    """A row: what the fault did."""
    before, calls = _used(lab, job, time.monotonic(), _packets(lab))
    usual = usual_us((calls + [next_call(job) for _ in range(NEIGHBOURS)])[-NEIGHBOURS:])
    time.sleep(fault.moment * 2 * usual / 1e6)
    struck = time.monotonic()
    fault.strike(lab)
    done = time.monotonic()
    calls = calls_until(job, done + (0 if fault.kind == "restarted" else fault.lasts))
    # It may be tried at once, found to be no faster, and be left out again before a count could be asked for afterwards.
    sent = _packets(lab)
    fault.undo(lab)
    undone = time.monotonic()
    calls += calls_until(job, undone)
    again, more = _used(lab, job, undone, sent)
    hit = hit_call(calls + more, struck, done)
    rest = [c.us for c in calls + more if c.start > hit.end]
    return {
        "added": (hit.us - usual) / 1000,
        "usual": usual / 1000,
        "in_place": hit.index % 2 == 1,
        "later": (max(rest, default=usual) - usual) / 1000,
        "before": before is not None,
        "again": again,
    }


def _row(fault, **more):
    row = {"number": fault.number, "kind": fault.kind, "mpi": fault.mpi, "size": fault.size, "hung": False, "wrong": 0, **more}
    if row["hung"]:
        print(f"{fault.number:4} {fault.kind:<10} {fault.mpi:<8} {bed.size_text(fault.size):>4}  HUNG: {row['why']}", flush=True)
    else:
        again = "never" if row["again"] is None else f"{row['again']:.2f}"
        print(
            f"{fault.number:4} {fault.kind:<10} {fault.mpi:<8} {bed.size_text(fault.size):>4} "
            f"{'in place' if row['in_place'] else '        '} {row['usual']:7.1f} {row['added']:+8.1f} {row['later']:+8.1f} {again:>7}",
            flush=True,
        )
    return row


def _group(lab, settings, faults):
    """The rows of faults that share a job."""
    rows = []
    who = bed.Contender("", faults[0].mpi, True, False, settings=settings)
    job = lab.start(who, [faults[0].size], "-T", "3000", "-l", "-c", "-i", "-w", "6", seconds=600, control=True)
    try:
        for fault in faults:
            rows.append(_row(fault, **_once(lab, job, fault)))
    except bed.BenchError as error:
        rows.append(_row(faults[len(rows)], hung=True, why=str(error).splitlines()[0], again=None))
        fault.undo(lab)
    finally:
        job.end()
    for row in rows[:1]:
        row["wrong"] = sum(c.wrong > 0 for c in job.calls)
        row["calls"] = len(job.calls)
    return rows


def _tell(rows, verdict):
    whole = [r for r in rows if not r["hung"]]
    for kind in [*KINDS, "all"]:
        some = [r for r in whole if kind in (r["kind"], "all")]
        added = [r["added"] for r in some]
        if some:
            used = [r["again"] for r in some if r["again"] is not None]
            print(
                f"{kind:<10} {len(some):4} faults: added ms median {statistics.median(added):.1f}, 99 % {quantile(added, 0.99):.1f}, "
                f"most {max(added):.1f}; later calls at most {max(r['later'] for r in some):+.1f}; used again {len(used)}, "
                f"after {statistics.median(used or [math.nan]):.2f} s, at most {max(used, default=math.nan):.2f}"
            )
    hung, wrong = len(rows) - len(whole), sum(r["wrong"] for r in rows)
    print(f"{sum(r.get('calls', 0) for r in rows)} calls, {wrong} wrong; {hung} hung")
    verdict.check(wrong == 0, f"{wrong} calls with wrong results")
    verdict.check(hung == 0, f"{hung} jobs hung")
    verdict.check(
        bool(whole) and statistics.median(r["added"] for r in whole) <= ADDED_MS, f"a fault costs more than {ADDED_MS} ms in the median"
    )
    unused = [r["number"] for r in rows if r["again"] is None]
    verdict.check(not unused, f"it was not used again within {RETURN} s after {unused}")


def faults(args, verdict):
    """The daemon killed, stopped, restarted and cut off from one or all nodes in the middle of calls: no wrong result, no
    hang, at most 100 ms more in the median, and it is used again."""
    plan = [Fault(args.seed, k, bed.mpis(), args.sizes) for k in range(args.first, args.first + args.times)]
    rows = []
    print(f"{'':4} {'fault':<10} {'MPI':<8} {'size':>4} {'':8} {'call ms':>7} {'added':>8} {'later':>8} {'again s':>7}")
    with bed.Bed(NODES, MBITS) as lab:
        lab.lab("aggd", "0", "start", AGGD)
        lab.rails += ",ina:10.77.0.254"
        for some in groups(plan, GROUP):
            done = _group(lab, args.settings, some)
            keep(args.keep, done)
            rows += done
    _tell(kept(args.keep, rows), verdict)
