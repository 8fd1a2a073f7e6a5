# SPDX-License-Identifier: BSD-3-Clause
"""The bed of the benchmarks: a lab of its own, the contenders, and calls as allreduce_bench prints them."""
import contextlib
import math
import os
import queue
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections import namedtuple

HERE = os.path.dirname(os.path.realpath(__file__))
# After ../configure the first is build/..; commands are shown without either (runs.py).
SRC = os.path.normpath(os.environ.get("abs_top_srcdir") or os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.normpath(os.environ.get("abs_top_builddir") or SRC)
LAB = os.path.join(SRC, "tests/lab/lab")
PRELOAD = os.environ.get("NEZHA_TEST_PRELOAD") or os.path.join(BUILD, ".libs/libnezha_pmpi.so")
PROGRAMS = os.environ.get("NEZHA_TEST_PROGRAMS") or os.path.join(BUILD, "tests/bench")

Call = namedtuple("Call", "bytes how index start end us cpu_us wrong")
# name for tables; which launcher; whether Nezha is preloaded; whether the peer's best options are given; the only
# rail it has (None: all); settings of Nezha's, NAME=VALUE; more options of the launcher; another build's library (None: PRELOAD)
Contender = namedtuple("Contender", "name mpi nezha best rail settings launcher preload", defaults=(None, (), (), None))
NEZHA_OPENMPI = Contender("Nezha, Open MPI", "openmpi", True, False)
NEZHA_MPICH = Contender("Nezha, MPICH", "mpich", True, False)
OPENMPI_RING = Contender("Open MPI, ring", "openmpi", False, True)
OPENMPI = Contender("Open MPI", "openmpi", False, False)
MPICH = Contender("MPICH, ring", "mpich", False, True)
# MPICH 4.0 has a ring for nonblocking calls only; by it the blocking one is up to twice as fast as by default.
MPICH_BEST = [
    ("MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE", "0"),
    ("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "nb"),
    ("MPIR_CVAR_IALLREDUCE_DEVICE_COLLECTIVE", "0"),
    ("MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM", "tsp_ring"),
]


class BenchError(Exception):
    """A job or the lab failed; the text is for people."""


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def program(name, mpi):
    return os.path.join(PROGRAMS, f"{name}.{mpi}")


_WANTED = ["openmpi", "mpich"]


def only_mpi(mpi):
    """Leaves the other one out; None: neither."""
    if mpi:
        _WANTED[:] = [mpi]


def mpis():
    """The MPIs whose programs are built."""
    found = [m for m in _WANTED if os.path.exists(program("allreduce_bench", m))]
    if not found:
        skip(f"no benchmark is built in {PROGRAMS}: make check TESTS= builds them")
    return found


def present(contenders):
    return [c for c in contenders if c.mpi in mpis()]


def parse_call(line):
    f = line.split()
    if len(f) != 9 or f[0] != "call":
        return None
    return Call(int(f[1]), f[2], int(f[3]), *(float(x) for x in f[4:8]), int(f[8]))


def size_text(size):
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def size_number(text):
    unit = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:].upper(), 1)
    try:
        return int(text[:-1] if unit > 1 else text) * unit
    except ValueError:
        raise SystemExit(f"size {text!r}: a number is allowed, with K or M") from None


def sizes_argument(text):
    return [size_number(x) for x in text.split(",")]


def rails_name(mbits):
    return "+".join(str(m) for m in mbits) + (" alone" if len(mbits) == 1 else "")


def bound_us(ranks, size, mbits):
    """2(N-1)/N S / sum of rates, in microseconds."""
    return 2 * (ranks - 1) / ranks * size * 8 / sum(mbits)


def median(calls):
    return statistics.median(c.us for c in calls)


def ratio_range(ours, others):
    """(low, median, high) of the ratios of pairs; low and high enclose the true median with 95 %."""
    ratios = sorted(a / b for a, b in zip(ours, others))
    count = len(ratios)
    margin = math.sqrt(count)  # of the median's rank
    low = ratios[max(0, int(count / 2 - margin))]
    return low, statistics.median(ratios), ratios[min(count - 1, int(count / 2 + margin))]


class Verdict:
    def __init__(self):
        self.missed, self.checked = [], 0

    def check(self, good, what):
        """Counts a target; `what` tells a missed one at the end, None: the table has marked it."""
        self.checked += 1
        if not good:
            self.missed.append(what)
        return good

    def tell(self):
        for what in filter(None, self.missed):
            print(f"missed: {what}")
        print(f"{self.checked - len(self.missed)} targets met, {len(self.missed)} missed")
        return 1 if self.missed else 0


class Job:
    """A running allreduce_bench; its calls come as they are printed."""

    def __init__(self, command, seconds):
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
        )
        self.deadline = time.monotonic() + seconds
        self.said, self.calls, self.done = [], [], False
        self.said_at = []  # when each line of `said` came
        self.witness = None  # called before a job whose time is up is ended
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put((time.monotonic(), line))
        self.lines.put(None)

    def _next_line(self):
        try:
            entry = self.lines.get(timeout=max(0.1, self.deadline - time.monotonic()))
        except queue.Empty:
            if self.witness:
                self.witness()
            self.end()
            raise BenchError("the job's time was up; it said:\n" + "".join(self.said[-10:])) from None
        if entry is None:
            raise BenchError("the job ended early; it said:\n" + "".join(self.said[-10:]))
        self.arrived, line = entry
        return line

    def _hear(self, line):
        self.said.append(line)
        self.said_at.append(self.arrived)

    def first_line(self, start):
        """The first line that begins so."""
        while not (line := self._next_line()).startswith(start):
            self._hear(line)
        self.done = True
        return line

    def next_call(self):
        """The next call, None after the last one."""
        while not self.done:
            line = self._next_line()
            if line.strip() == "done":
                self.done = True
                break
            call = parse_call(line)
            if call:
                self.calls.append(call)
                return call
            self._hear(line)
        return None

    def collect(self, count, after=0.0):
        """The next `count` calls that began after the time `after`."""
        calls = []
        while len(calls) < count:
            call = self.next_call()
            if call is None:
                raise BenchError("the job ended before all calls that were expected")
            if call.start >= after:
                calls.append(call)
        return calls

    def end(self):
        """Waits for the end, not long: MPICH often stays in MPI_Finalize when ranks outnumber cores."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=4 if self.done else 0.1)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def all_calls(self):
        try:
            while self.next_call():
                pass
        finally:
            self.end()
        return self.calls


class Bed:
    """A lab: `with Bed(4, [500, 500]) as bed`.  Rates are in Mbit/s, 0 is unshaped.  `which`: a letter, where a process has several."""

    def __init__(self, nodes, mbits, which=""):
        self.nodes, self.mbits = nodes, list(mbits)
        self.name = f"b{os.getpid()}{which}"

    @staticmethod
    def rate_text(mbits):
        return ",".join(f"{m}mbit" if m else "0" for m in mbits)

    def lab(self, command, *args):
        done = subprocess.run(
            [LAB, command, "-d", self.name, *args], capture_output=True, text=True, timeout=90, check=False
        )
        if done.returncode == 77:
            skip(done.stderr.strip())
        if done.returncode:
            raise BenchError(f"lab {command} failed: {done.stderr.strip()}")
        return done.stdout.strip()

    def __enter__(self):
        self.lab("up", "-w", str(os.getpid()), "-n", str(self.nodes), "-r", self.rate_text(self.mbits), "-b", "16384")
        self.rails = self.lab("rails-spec")
        return self

    def __exit__(self, *_):
        subprocess.run([LAB, "down", "-d", self.name], timeout=60, check=False)

    def rates(self, mbits):
        self.lab("rates", "-r", self.rate_text(mbits))
        self.mbits = list(mbits)

    def _launcher(self, contender, control):
        """Launcher options: a peer at its best; or where MPI's own traffic goes: control is False (over the rails), True
        (off them, where these are cut) or "rail" (over the first one only)."""
        options = []
        subnet, device = ("10.77.0.0/24", "e0") if control == "rail" else ("10.77.200.0/24", "em")
        if contender.mpi == "openmpi":
            if control:
                options += ["--mca", "btl_tcp_if_include", subnet]
            elif contender.rail is not None:
                options += ["--mca", "btl_tcp_if_include", f"e{contender.rail}"]
            if contender.best:
                options += [
                    "--mca",
                    "coll_tuned_use_dynamic_rules",
                    "1",
                    "--mca",
                    "coll_tuned_allreduce_algorithm",
                    "4",
                ]
                if len(set(self.mbits)) > 1 and contender.rail is None:
                    for rail, mbit in enumerate(self.mbits):
                        options += ["--mca", f"btl_tcp_bandwidth_e{rail}", str(mbit)]
        else:
            if control:
                options += ["-genv", "UCX_NET_DEVICES", device]
            elif contender.rail is not None:
                options += ["-genv", "UCX_NET_DEVICES", f"e{contender.rail}"]
            if contender.best:
                for name, value in MPICH_BEST:
                    options += ["-genv", name, value]
                options += ["-genv", "UCX_MAX_RNDV_RAILS", str(min(4, len(self.mbits)))]
        options += contender.launcher
        return [*options, "--"] if options else []

    def _command(self, contender, name, args, seconds, control=False, environment=(), ppn=1, idle=True):
        command = [LAB, "run", "-d", self.name, "-p", str(ppn), "-t", str(seconds)]
        if idle:
            command.append("-i")
        if contender.nezha:
            rails = self.rails if contender.rail is None else self.rails.split(",")[contender.rail]
            given = (f"LD_PRELOAD={contender.preload or PRELOAD}", f"NEZHA_RAILS={rails}", *contender.settings, *environment)
            for key, value in dict(a.split("=", 1) for a in given).items():  # the last one counts
                command += ["-e", f"{key}={value}"]
        return [
            *command,
            contender.mpi,
            *self._launcher(contender, control),
            program(name, contender.mpi),
            *args,
        ]

    def begin(self, contender, name, *args, seconds=120, **more):
        """A running program; control: see _launcher; ppn: ranks on a node."""
        return Job(self._command(contender, name, args, seconds, **more), seconds + 15)

    def start(self, contender, sizes, *args, **more):
        """A running allreduce_bench."""
        return self.begin(contender, "allreduce_bench", "-s", ",".join(str(s) for s in sizes), *args, **more)

    def answer(self, contender, name, *args, seconds=60):
        """The words with which another program answers, in a line that begins with its name."""
        job = self.begin(contender, name, *args, seconds=seconds)
        try:
            return job.first_line(name + " ").split()[1:]
        finally:
            job.end()

    def measure(self, contender, sizes, calls, warm=3, *args, **more):
        """The calls of one job, as {size: [Call]}."""
        done = self.start(contender, sizes, "-n", str(calls), "-w", str(warm), *args, **more).all_calls()
        return {s: [c for c in done if c.bytes == s] for s in sizes}


def quiet():
    """Waits a little for a calm machine."""
    subprocess.run([LAB, "quiet", "20"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def require_preload():
    if not os.path.exists(PRELOAD):
        skip(f"the preload is not built ({PRELOAD})")
    if not shutil.which("ip"):
        skip("ip (package iproute2) is missing")


def run(name, function, args, calm=True):
    """Runs one subcommand of a benchmark, function(args, verdict), on a calm machine if that may be waited for; the exit status."""
    require_preload()
    only_mpi(args.mpi)
    verdict = Verdict()
    if calm:
        quiet()
    try:
        function(args, verdict)
    except BenchError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    return verdict.tell()
