# SPDX-License-Identifier: BSD-3-Clause
"""Reads what NEZHA_REPORT=FILE wrote.  report.py FILE WHAT prints one number:

    rails [WHY]      calls that went to the rails (for this reason only)
    native [WHY]     calls that the MPI library did
    mix [WHY]        calls that the rails and the MPI library did together
    used             rails that carried bytes
    part N           per cent of all bytes that the N-th rail carried, from 0
    failures         paths lost;  returns: paths regained
    registered       bytes registered with RDMA devices at the end, and at most
    wrong            blocks that came with a wrong CRC
"""
import json
import sys


def rows(report):
    for comm in report["communicators"]:
        yield from comm["sizes"]
    yield from report["closed"]["sizes"]
    yield from report["other"]


def count(report, what, why=None):
    if what in ("rails", "mix", "native"):
        paths = {"rails": ("ring", "mix"), "mix": ("mix",), "native": ("native",)}[what]
        return sum(r["calls"] for r in rows(report) if r["path"] in paths and why in (None, r["why"]))
    if what == "used":
        return sum(1 for rail in report["rails"] if rail["bytes"] > 0)
    if what == "part":
        total = sum(rail["bytes"] for rail in report["rails"])
        return round(100 * report["rails"][int(why)]["bytes"] / max(total, 1))
    if what in ("failures", "returns"):
        return sum(rail[what] for rail in report["rails"])
    if what == "registered":
        return f'{report["registered"]["bytes"]} {report["registered"]["bytes_most"]}'
    if what == "wrong":
        return sum(rail["blocks_wrong"] for rail in report["rails"])
    sys.exit(f"report.py: {what!r} is none of rails, mix, native, used, part, failures, returns, registered, wrong")


if len(sys.argv) < 3:
    sys.exit(__doc__)
try:
    with open(sys.argv[1], encoding="utf-8") as file:
        print(count(json.load(file), *sys.argv[2:4]))
except (OSError, ValueError, KeyError) as error:
    sys.exit(f"report.py: {sys.argv[1]}: {error!r}")
