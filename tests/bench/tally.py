# SPDX-License-Identifier: BSD-3-Clause
"""What a storm tells: a line for each fault, the sums of each kind, and whether the targets are met."""
import math
import statistics

import bed
import kinds
from chance import by_chance
from hits import quantile

TARGETS = {  # ms added: median, 99 %
    "carrier": (20, 60),
    "node-down": (20, 60),
    "rail-down": (20, 60),
    "black-hole": (100, 200),
    "one-way": (100, 200),
}
RETURN_S, LATER_MS, RATE = 1.0, 20, 0.95
RETURN = 10  # s until the rail is used again
GROWTH_KB = 4096  # of a rank's memory


def title():
    print(f"{'':5} {'fault':<10} {'MPI':<8} {'bytes':>9} {'call ms':>7} {'spread':>6} {'told':>5} {'added':>8} {'extra':>7} {'later':>7} {'still':>5} {'stolen':>6} {'first':>7} {'again':>6}", flush=True)


def disturbed(args, row):
    """Whether the host took more than --steal of the processors in a call that the row is made of."""
    return row.get("stolen", 0) > args.steal  # of a hung one nothing is said


def which(row):
    """The fault that it is a row of; there may be several of one."""
    return row["seed"], row["number"]


def lateness(over):
    """How many calls there are, and how many of them are late, from what each took more than it should, ms."""
    return [len(over), sum(ms > LATER_MS for ms in over)]


def show(args, row, fault):
    head = f"{fault.number:5} {fault.kind.name:<10} {fault.mpi:<8} {bed.size_text(fault.size):>9} "
    if row["hung"]:
        print(head + f"HUNG: {row['why']}", flush=True)
        return
    again = "" if not fault.kind.loses else "never" if row["again"] is None else f"{row['again']:.2f}"
    first = f"{row['first'][0]:+.1f}" if row["first"] else ""
    told = "" if row["told"] is None else format(row["told"], ".0f")
    print(
        head + f"{row['usual']:7.1f} {row['spread']:+6.1f} {told:>5} {row['added']:+8.1f} {row['extra']:+7.1f} {row['later']:+7.1f} {row['still']:5.0f} {row['stolen']:6.1f} {first:>7} {again:>6}  n{fault.node} e{fault.rail} {fault.what()}"
        + (f"  WRONG {row['wrong']}" if row["wrong"] else "")
        + ("  once more" if disturbed(args, row) else ""),
        flush=True,
    )


def tell(args, rows, verdict):
    whole = [r for r in rows if not r["hung"]]
    print(f"{'kind':<10} {'faults':>6} {'wrong':>5} {'hung':>4} {'told ms: median':>15} {'99 %':>6} {'added ms: median':>17} {'99 %':>7} {'most':>7} {'extra':>7} {'>20':>4} {'later':>7} {'>20':>4} {'again s: median':>16} {'most':>6} {'first ms: median':>16} {'most':>6} {'rate %: least':>13}")
    timed = [r for r in rows if not disturbed(args, r)]
    for kind in [k for k in kinds.KINDS if any(r["kind"] == k for r in timed)]:
        tell_kind(args, kind, [r for r in timed if r["kind"] == kind], verdict)
    tell_lateness([r for r in timed if "late_before" in r and r["again"] is not None and r["kind"] not in kinds.CONTROL])
    tell_disturbed(args, [r for r in whole if disturbed(args, r)], {which(r) for r in timed}, verdict)
    wrong, hung = sum(r["wrong"] for r in rows), len(rows) - len(whole)
    ends = [r for r in whole if "kb" in r]
    print(
        f"{len({which(r) for r in timed})} faults, {sum(r['calls'] for r in whole)} calls: {wrong} wrong, {hung} hung; {len(ends)} jobs, whose ranks grew by "
        f"at most {max((r['kb'] for r in ends), default=0)} KB and {max((r['fds'] for r in ends), default=0)} descriptors",
        flush=True,
    )
    verdict.check(rows, "there was no time for a fault")
    verdict.check(not wrong, f"{wrong} calls with wrong results")
    verdict.check(not hung, f"{hung} faults after which a call hung or the job ended")
    verdict.check(all(r["kb"] <= GROWTH_KB for r in ends), f"a rank has grown by more than {GROWTH_KB} KB")
    verdict.check(all(r["fds"] <= 0 for r in ends), "a rank holds more descriptors than at the beginning")
    unused = [r["number"] for r in whole if kinds.KINDS[r["kind"]].loses and r["again"] is None]
    verdict.check(not unused, f"the rail was not used again within {RETURN} s after faults {unused}")


def tell_lateness(rows):
    """Calls after a return beside those of the same rows before the fault: the machine makes some of either late."""
    if rows:
        after, before = ([sum(column) for column in zip(*(r[key] for r in rows))] for key in ("late_after", "late_before"))
        if before[0]:
            print(
                f"more than {LATER_MS} ms late: {after[1]} of {after[0]} calls after a return, {before[1]} of {before[0]} calls before a fault; "
                f"so many after are by chance with a probability of {by_chance(*after, *before):.2f}"
            )


def tell_disturbed(args, rows, timed, verdict):
    """The tries whose times count nowhere, since the host took too much of the processors; the faults of `timed` have one that counts."""
    if rows:
        added, later = (statistics.median(r[key] for r in rows) for key in ("added", "later"))
        print(
            f"{len(rows)} tries more in which the host took over {args.steal:g} % of the processors in a call (median of the most {statistics.median(r['stolen'] for r in rows):.1f} %), "
            f"whose times count nowhere: added {added:.1f} ms in the median, later {later:.1f}"
        )
    never = sorted(number for _, number in {which(r) for r in rows} - timed)
    verdict.check(not never, f"the host took too much of the processors in all tries of faults {never}")


def rate_after(row):
    """Throughput of the first calls after the return (their median) as a part of that before the fault."""
    return row["usual"] / (row["usual"] + statistics.median(row["first"]))


def tell_kind(args, name, rows, verdict):
    whole = [r for r in rows if not r["hung"]]
    line = f"{name:<10} {len(rows):6} {sum(r['wrong'] for r in rows):5} {len(rows) - len(whole):4}"
    if whole:
        added = [r["added"] for r in whole]
        middle, high = statistics.median(added), quantile(added, 0.99)
        extra, later = ([r[key] for r in whole] for key in ("extra", "later"))
        told = [r["told"] for r in whole if r["told"] is not None] or [math.nan]
        line += f" {statistics.median(told):15.0f} {quantile(told, 0.99):6.0f}"
        line += f" {middle:17.1f} {high:7.1f} {max(added):7.1f}"
        for ms in (extra, later):
            line += f" {max(ms):+7.1f} {sum(x > LATER_MS for x in ms):4}"
        again = [r["again"] for r in whole if r["again"] is not None]
        if again:
            first = [r["first"][0] for r in whole if r.get("first")]
            rate = min((rate_after(r) for r in whole if r.get("first")), default=math.nan)
            line += f" {statistics.median(again):16.2f} {max(again):6.2f} {statistics.median(first):+16.1f} {max(first):+6.1f} {100 * rate:13.1f}"
        if args.targets and name in TARGETS:
            verdict.check(middle <= TARGETS[name][0], f"{name}: {middle:.1f} ms added in the median, more than {TARGETS[name][0]}")
            verdict.check(high <= TARGETS[name][1], f"{name}: {high:.1f} ms added in 99 %, more than {TARGETS[name][1]}")
        if args.targets and again and name not in {"flapping", *kinds.CONTROL}:  # the one is to be damped, of the other there is no return
            verdict.check(max(again) <= RETURN_S, f"{name}: used again after {max(again):.2f} s, more than {RETURN_S}")
            verdict.check(max(later) <= LATER_MS, f"{name}: {max(later):.1f} ms added by the return, more than {LATER_MS}")
            verdict.check(rate >= RATE, f"{name}: {100 * rate:.1f} % of the throughput after the return, less than {100 * RATE:.0f}")
    print(line)
