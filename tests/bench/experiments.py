# SPDX-License-Identifier: BSD-3-Clause
"""The experiments of `results`: which contenders, sizes, nodes and rates; nothing is measured here."""
import math

import bed
from bed import MPICH, NEZHA_MPICH, NEZHA_OPENMPI, OPENMPI, OPENMPI_RING
from runs import Part

# The first is the default.  A new policy is one more name.
POLICIES = ["ecf", "static", "slice", "share"]
NODES = (2, 4, 8)
# What is compared on the rails must not be handed to the MPI library because that was found faster.
RAILS_ONLY = ("NEZHA_REPRODUCIBLE=1",)
# Small vectors, too, go to the rails, in blocks that are small enough to keep more than one rank busy.
RINGS_SMALL = ("NEZHA_TUNE=alg=ring,block=8K,max=65535",)
BOTH = (NEZHA_OPENMPI.name, NEZHA_MPICH.name)
EQUAL, UNEQUAL = (500, 500), (800, 200)
EIGHT = [(250, 250), (400, 100)]  # what two cores can carry for 8 nodes
LARGE = 1 << 20  # from here on few calls of each size
WARM = 4  # a size's first calls, which are left out: Nezha learns from the first three or four what is faster;
SMALL = 128 << 10  # below this from up to five, and from runs of calls,
SETTLE = 100  # most of it in so many: OSU's benchmarks make a thousand calls of such a size


def named(contender, name, **fields):
    return contender._replace(name=name, **fields)


def sizes_from(low, high, step):
    found = []
    while low <= high:
        found.append(low)
        low *= step
    return found


def _spans(sizes, middle, large, small=0):
    """Few calls of large sizes, more of others; `small`: of those below SMALL, if they have a number of their own."""
    border = SMALL if small else 0
    groups = (0, border, small), (border, LARGE, middle), (LARGE, math.inf, large)
    spans = [([s for s in sizes if low <= s < high], calls) for low, high, calls in groups]
    return [span for span in spans if span[0]]


def _rates_of(nodes):
    return EIGHT if nodes > 4 else [EQUAL, UNEQUAL]


def latency(quick, wanted):
    """time and throughput over size: Nezha, the peers at their defaults and at their best, one rail alone"""
    parts = []
    for nodes in wanted:
        for mbits in _rates_of(nodes):
            fastest = mbits.index(max(mbits))
            contenders = [
                NEZHA_OPENMPI,
                NEZHA_MPICH,
                named(OPENMPI, "Open MPI, default"),
                OPENMPI_RING,
                named(MPICH, "MPICH, default", best=False),
                MPICH,
                named(OPENMPI_RING, "Open MPI, ring, one rail", rail=fastest),
                named(NEZHA_OPENMPI, "Nezha, Open MPI, one rail", rail=fastest),
            ]
            if mbits[0] != mbits[-1]:
                # it stripes by halves, so the fast rail alone is its best then
                contenders.insert(6, named(MPICH, "MPICH, ring, one rail", rail=fastest))
            most = (8 if nodes > 4 else 64) << 20
            sizes = sizes_from(2 << 10, most, 4 if quick else 2)
            spans = _spans(sizes, 6 if quick else 15, 2 if quick else 3, 20 if quick else 60)
            # there it is slower than its ring by far, and would take most of the time
            limits = {"MPICH, default": LARGE} if nodes > 2 else {}
            parts.append(Part("latency", nodes, mbits, contenders, BOTH, spans, WARM, 2, limits, settle=(SMALL, SETTLE)))
    return parts


def shares(quick, _):
    """the bytes over each rail, by size, as Nezha's report counts them"""
    contenders = [named(c, c.name, settings=RAILS_ONLY) for c in (NEZHA_OPENMPI, NEZHA_MPICH)]
    spans = [(sizes_from(64 << 10, (16 if quick else 64) << 20, 4), 4 if quick else 6)]
    return [
        Part("shares", 4, mbits, contenders, BOTH, spans, WARM, 1, report=True)
        for mbits in (EQUAL, UNEQUAL, (600, 300, 100))
    ]


def threshold(quick, wanted):
    """from which size the rails are faster than the MPI library: calls with Nezha and without in turn in one job"""
    settings = RAILS_ONLY + RINGS_SMALL
    contenders = [named(c, c.name, settings=settings) for c in (NEZHA_OPENMPI, NEZHA_MPICH)]
    spans = _spans(sizes_from(2 << 10, (512 << 10) if quick else 1 << 20, 2), 12 if quick else 30, 6)
    rounds = 1 if quick else 2
    return [
        Part("threshold", nodes, _rates_of(nodes)[0], contenders, BOTH, spans, WARM, rounds, pairs=True)
        for nodes in wanted
    ]


def _by_policy():
    return [
        named(NEZHA_OPENMPI, "Nezha, " + policy, settings=(*RAILS_ONLY, f"NEZHA_POLICY={policy}"))
        for policy in POLICIES
    ]


def fixed(quick, _):
    """one rail alone, the other, and policies that do not measure against the one that balances by measured rates"""
    contenders = [named(NEZHA_OPENMPI, "Nezha, " + POLICIES[0], settings=RAILS_ONLY)]
    contenders += [c for c in _by_policy() if c.name in ("Nezha, static", "Nezha, slice")]
    for rail, mbit in enumerate(UNEQUAL):
        contenders.append(named(NEZHA_OPENMPI, f"Nezha, {mbit} alone", settings=RAILS_ONLY, rail=rail))
    sizes = [256 << 10, 1 << 20, 8 << 20] + ([] if quick else [16 << 20])
    spans = _spans(sizes, 6 if quick else 10, 2 if quick else 3)
    ours = contenders[0].name
    return [Part("fixed", 4, UNEQUAL, contenders, (ours,), spans, WARM, 1 if quick else 2, report=True)]


def policies(quick, _):
    """the policies that share a link among its rails, side by side"""
    sizes = sizes_from(256 << 10, (4 if quick else 16) << 20, 4)
    spans = _spans(sizes, 6 if quick else 15, 3 if quick else 5)
    by_policy = _by_policy()
    return [
        Part("policies", 4, mbits, by_policy, (by_policy[0].name,), spans, WARM, 1 if quick else 2, report=True)
        for mbits in (EQUAL, UNEQUAL, (900, 100))
    ]


def adaptation(quick, _):
    """the time of each call while one rail's rate steps down and up again"""
    mpich = named(NEZHA_MPICH, NEZHA_MPICH.name, settings=RAILS_ONLY)
    contenders = [*_by_policy(), mpich, OPENMPI_RING]
    phases = (EQUAL, (500, 200), EQUAL)
    spans = [([4 << 20], 12 if quick else 20)]
    ours = (contenders[0].name, mpich.name)
    return [Part("adaptation", 4, EQUAL, contenders, ours, spans, 8, 1 if quick else 4, phases=phases)]


EXPERIMENTS = {
    function.__name__: function for function in (latency, shares, threshold, fixed, policies, adaptation)
}


def parts_of(names, quick, nodes):
    """All parts of these experiments, in order, of the contenders whose MPI is here."""
    found = [part for name in names for part in EXPERIMENTS[name](quick, nodes)]
    return [part._replace(contenders=bed.present(part.contenders)) for part in found]
