# SPDX-License-Identifier: BSD-3-Clause
"""What a fault acts on: the lab's network, by orders that take effect within milliseconds, and the ranks of a job."""
import os
import select
import shutil
import signal
import subprocess
import time

import bed


class Orders:
    """`lab batch`: `with Orders(lab) as orders: orders.give("link", 2, 0, "down")`."""

    LIMIT = 20  # s

    def __init__(self, lab):
        self.process = subprocess.Popen(
            [bed.LAB, "batch", "-d", lab.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()

    def give(self, *words):
        """Returns when it is carried out; BenchError if that failed."""
        order = " ".join(str(w) for w in words)
        self.process.stdin.write(order.encode() + b"\n")
        if not select.select([self.process.stdout], [], [], self.LIMIT)[0]:
            raise bed.BenchError(f"the lab did not carry out {order!r} within {self.LIMIT} s")
        answer = self.process.stdout.readline().decode().strip()
        if answer != "done 0":
            raise bed.BenchError(f"the lab could not carry out {order!r}: {answer}")


class Ranks:
    """The processes of a job, known by a word that only their command line has."""

    def __init__(self, program, word, count):
        until = time.monotonic() + 10
        while len(found := self._find(program, word)) < count:
            if time.monotonic() > until:
                raise bed.BenchError(f"{len(found)} of {count} ranks are found")
            time.sleep(0.05)
        self.pids = [found[rank] for rank in sorted(found)]

    @staticmethod
    def _find(program, word):
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").split("\0")
                if words[0] != program or word not in words:
                    continue
                with open(f"/proc/{pid}/environ", "rb") as file:
                    names = dict(v.split("=", 1) for v in file.read().decode(errors="replace").split("\0") if "=" in v)
                found[int(names.get("OMPI_COMM_WORLD_RANK") or names["PMI_RANK"])] = int(pid)
            except (OSError, KeyError):
                continue
        return found

    def stop(self, rank):
        os.kill(self.pids[rank], signal.SIGSTOP)

    def go_on(self, rank):
        os.kill(self.pids[rank], signal.SIGCONT)

    def bytes(self, rank, rail):
        """(received, sent) by the rank's node on the rail."""
        with open(f"/proc/{self.pids[rank]}/net/dev", encoding="ascii") as file:
            for line in file:
                name, _, numbers = line.partition(":")
                if name.strip() == f"e{rail}":
                    fields = numbers.split()
                    return int(fields[0]), int(fields[8])
        raise bed.BenchError(f"rank {rank} has no device e{rail}")

    def stacks(self, path):
        """Writes down where each thread of each rank is."""
        with open(path, "w", encoding="utf-8") as file:
            for rank, pid in enumerate(self.pids):
                file.write(f"==== rank {rank}, process {pid}\n{self._stack(pid)}\n")

    @staticmethod
    def _stack(pid):
        if shutil.which("gdb"):
            command = ["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "thread apply all bt 30"]
        else:
            command = ["sh", "-c", f"for t in /proc/{pid}/task/*; do cat $t/comm $t/wchan $t/syscall; echo; done"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        except subprocess.TimeoutExpired:
            return "no answer within 30 s"
        return done.stdout
