# SPDX-License-Identifier: BSD-3-Clause
"""Looks at timelines that NEZHA_TRACE=FILE wrote, one of each rank.  trace.py WHAT FILE...: fails, and says why, unless

    whole      each is one JSON object of its rank, with calls and with blocks sent and received within them
    failover   ... and in one of them a path is lost, nothing is sent over it while it is down, then it is used again

Prints what it found."""
import json
import sys


def check(truth, message):
    if not truth:
        sys.exit(f"trace.py: {message}")


class Timeline:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            whole = json.load(file)
        self.path, self.other, self.events = path, whole["otherData"], whole["traceEvents"]
        self.lanes = {e["tid"]: e["args"]["name"] for e in self.events if e["name"] == "thread_name"}
        for event in self.events:
            check(event["pid"] == self.other["rank"], f"{path}: {event} is of another rank")
            check(event["ph"] in "MXi", f"{path}: {event} is of no kind that is used")
            check(event["ph"] != "X" or event["dur"] >= 0, f"{path}: {event} ends before it begins")

    def of(self, category):
        return [e for e in self.events if e.get("cat") == category]

    def check_whole(self):
        calls = [e for e in self.of("call") if e["name"].startswith("ring")]
        check(calls, f"{self.path}: no call over the rails")
        for category in ("sent", "received"):
            check(self.of(category), f"{self.path}: nothing was {category}")
        first, last = calls[0]["ts"], max(e["ts"] + e["dur"] for e in calls)
        for event in self.of("sent"):
            check(event["tid"] in self.lanes, f"{self.path}: {event} has no lane")
            check(first - 1 <= event["ts"] <= last, f"{self.path}: {event} is in no call")

    def failovers(self):
        """Outages of paths to a peer that were used before and afterwards."""
        found = []
        for down in self.of("down"):
            end = down["ts"] + down["dur"]
            sent = [e for e in self.of("sent") if e["tid"] == down["tid"]]
            check(not [e for e in sent if down["ts"] < e["ts"] < end], f"{self.path}: blocks were sent over a path that was down")
            check([e for e in self.of("lost") if e["tid"] == down["tid"] and abs(e["ts"] - down["ts"]) < 1],
                  f"{self.path}: {down} has no beginning")
            elsewhere = [e for e in self.of("sent") if e["tid"] != down["tid"] and down["ts"] < e["ts"] < end]
            if elsewhere and min((e["ts"] for e in sent), default=end) < down["ts"] and max((e["ts"] for e in sent), default=0) > end:
                found.append((self.lanes[down["tid"]], down["name"], down["dur"] / 1e3))
        return found


def main(what, *paths):
    check(what in ("whole", "failover"), f"{what!r} is none of whole, failover")
    lines = [Timeline(path) for path in paths]
    check(len({t.other["rank"] for t in lines}) == len(lines), "two timelines are of one rank")
    for line in lines:
        line.check_whole()
        check(line.other["overwritten"] == 0, f"{line.path}: {line.other['overwritten']} events overwritten")
    if len(lines) > 1:
        # the last call of all is one: it overlaps on all ranks
        last = [max((e for e in t.of("call") if e["name"].startswith("ring")), key=lambda e: e["ts"]) for t in lines]
        check(max(e["ts"] for e in last) < min(e["ts"] + e["dur"] for e in last), "the ranks' last calls do not overlap")
    found = [f"rank {t.other['rank']}, {lane}, {name}, {ms:.1f} ms" for t in lines for lane, name, ms in t.failovers()]
    check(what != "failover" or found, "no path was lost and used again")
    print(f"{sum(len(t.events) for t in lines)} events; clocks within "
          f"{max(t.other['clocks_differ_by_ns'] for t in lines) / 1e3:.0f} us; {'; '.join(found) or 'no failover'}")


if len(sys.argv) < 3:
    sys.exit(__doc__)
try:
    main(*sys.argv[1:])
except (OSError, ValueError, KeyError) as error:
    sys.exit(f"trace.py: {error!r}")
