# SPDX-License-Identifier: BSD-3-Clause
"""The faults of TCP rails: what each kind does to a node's link (or its rank), and what number k of a seed is."""
import os
import random
import time

import bed

LOSSY = os.path.join(bed.BUILD, "tests/lab/lossy.bpf.o")
TYPES = {"float": 4, "double": 8, "int": 4, "long": 8, "short": 2}  # in the order of storm.c, as all that follow
OPS = ["sum", "prod", "min", "max", "band", "bxor"]
FLOATING = 2  # the first types
ARITHMETIC = 4  # the first operations
FOLDING = 2  # the first of those that Nezha takes for short integers, too, whatever the library
COMMS = ["world", "dup", "reversed", "pairs"]
SMALLEST, LARGEST = 16 << 10, 16 << 20


class Kind:
    """name; orders that begin and end it; whether the rail must be lost by it, and so come back."""

    def __init__(self, name, strike, undo, loses):
        self.name, self._strike, self._undo, self.loses = name, strike, undo, loses

    def strike(self, fault, orders, ranks):
        self._strike(fault, orders, ranks)

    def undo(self, fault, orders, ranks):
        self._undo(fault, orders, ranks)


def _link(*state):
    def order(fault, orders, _):
        orders.give(state[0], fault.node, fault.rail, *state[1:])

    return order


def _flap(fault, orders, _):
    """Down and up some times; down at the end."""
    for k, pause in enumerate(fault.pauses):
        orders.give("link", fault.node, fault.rail, "switch-up" if k % 2 else "switch-down")
        time.sleep(pause)


def _slow(fault, orders, _):
    orders.give("rate", fault.node, fault.rail, f"{max(1, fault.mbit // 100)}mbit")


def _fast(fault, orders, _):
    orders.give("rate", fault.node, fault.rail, f"{fault.mbit}mbit")


def _whole(state):
    return lambda fault, orders, _: orders.give("rail", fault.rail, state)


def _spoil(how):
    return lambda fault, orders, _: orders.give("spoil", fault.node, fault.rail, how, LOSSY)


KINDS = {
    kind.name: kind
    for kind in [
        Kind("carrier", _link("link", "switch-down"), _link("link", "switch-up"), True),
        Kind("black-hole", _link("drop", "on"), _link("drop", "off"), True),
        Kind("stopped", lambda f, _, ranks: ranks.stop(f.node - 1), lambda f, _, ranks: ranks.go_on(f.node - 1), False),
        Kind("node-down", _link("link", "down"), _link("link", "up"), True),
        Kind("one-way", _link("oneway", "on"), _link("oneway", "off"), True),
        Kind("lossy", _spoil("lose"), _link("spoil", "off"), False),
        Kind("flapping", _flap, _link("link", "switch-up"), True),
        Kind("slow", _slow, _fast, False),
        Kind("rail-down", _whole("down"), _whole("up"), True),
        Kind("corrupt", _spoil("corrupt"), _link("spoil", "off"), False),
        Kind("reorder", _spoil("reorder"), _link("spoil", "off"), False),
        Kind("nothing", lambda *_: None, lambda *_: None, True),
    ]
}
CONTROL = {"nothing"}  # no fault: what of the others' times is none of theirs.  Only where it is asked for
NEED_LOSSY = {"lossy", "corrupt", "reorder"}


class Fault:
    """Number k of a seed, always the same one."""

    def __init__(self, args, k, mpis):
        dice = random.Random(f"{args.seed} {k}")
        self.number = k
        self.mpi = mpis[k // args.group % len(mpis)]
        self.kind = KINDS[args.kinds[k % len(args.kinds)]]
        self.node = dice.randint(1, args.nodes)
        self.rail = dice.randrange(len(args.rails))
        self.mbit = args.rails[self.rail]
        self.moment = dice.random()  # of a call's time
        self.lasts = dice.uniform(*args.lasts)  # s
        self.pauses = [dice.uniform(0.02, 0.15) for _ in range(2 * dice.randint(2, 4) + 1)]
        self.size = args.sizes[k // len(args.kinds) % len(args.sizes)] if args.sizes else self._size(dice)
        self.type = dice.choice(list(TYPES))
        floating = list(TYPES).index(self.type) < FLOATING
        ops = OPS[:ARITHMETIC] if floating else OPS[FOLDING:] if self.type == "short" else OPS
        self.op = dice.choice(ops)
        self.comm = dice.choices(COMMS, [4, 2, 2, 2])[0] if not args.world else "world"
        self.in_place = dice.random() < 0.5
        self.pause = dice.choice([0, 0, 0, dice.randint(1, 3000)]) if not args.world else 0

    @staticmethod
    def _size(dice):
        return int(SMALLEST * (LARGEST / SMALLEST) ** dice.random()) & ~7

    def plan(self, episode=None):
        """What storm reads."""
        words = [list(TYPES).index(self.type), OPS.index(self.op), COMMS.index(self.comm), self.size // TYPES[self.type]]
        words += [int(self.in_place), self.pause]
        return " ".join(str(w) for w in [self.number if episode is None else episode, *words]) + "\n"

    def what(self):
        return f"{self.type} {self.op} {self.comm}{' in-place' if self.in_place else ''}"
