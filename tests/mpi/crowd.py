# SPDX-License-Identifier: BSD-3-Clause
"""Strangers at the doors of a job's processes.

    crowd.py [--kinds KIND,...] [--hello FILE] SECONDS ADDRESS[:PORT]...
    crowd.py --hear SECONDS FILE

Finds the doors of an address without a port by a scan of all ports (what is no door of Nezha's says nothing), and crowds all doors for so
long.  silent: connections that say nothing, 1,000 at a time; noise: wrong answers, a byte now and then, connections that end at once;
syns: SYNs that nothing follows, where it may; replays: the hello in FILE, once there is one, which --hear takes down as a process of
this host says it.  Prints what it has found and done."""
import argparse
import ctypes
import os
import random
import socket
import struct
import sys
import time

SILENT = 1000
FIRST, LAST = 32768, 60999     # what the kernel gives out
MAGIC = struct.pack("<I", 0x5A485A4E)     # of struct nezha_challenge
HELLO = 68      # bytes: struct nezha_hello
CHALLENGE = 24  # struct nezha_challenge
KINDS = ["silent", "noise", "syns", "replays"]
ALL_FRAMES = 3  # ETH_P_ALL
ETHERNET, IP, TCP = 14, 20, 32  # bytes before a hello; TCP with time stamps


def hear(seconds, path):
    """Takes down the first hello that comes by."""
    # of all frames those with an IP packet of a hello's length: else there would be too many
    program = struct.pack("HBBI" * 4, 0x28, 0, 0, ETHERNET + 2, 0x15, 0, 1, IP + TCP + HELLO, 6, 0, 0, 0xFFFF, 6, 0, 0, 0)
    steps = ctypes.create_string_buffer(program)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES)) as ear:
        ear.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HL", 4, ctypes.addressof(steps)))  # SO_ATTACH_FILTER
        ear.settimeout(seconds)
        try:
            while (frame := ear.recv(2048))[ETHERNET + IP + TCP :][:4] != MAGIC:
                pass
        except TimeoutError:
            print("crowd: heard nothing")
            return 1
    with open(path + ".new", "wb") as file:
        file.write(frame[ETHERNET + IP + TCP :])
    os.rename(path + ".new", path)
    print("crowd: heard a hello")
    return 0


def scan(address):
    """The ports that greet with a challenge, of those that the kernel gives out."""
    found = []
    for port in range(FIRST, LAST + 1):
        with socket.socket() as door:
            door.settimeout(0.5)
            try:
                door.connect((address, port))
                if door.recv(4) == MAGIC:
                    found.append(port)
            except OSError:
                pass
    return found


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Syns:
    """Half-open connections: SYNs from addresses that nobody has."""

    def __init__(self):
        try:
            self.raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        except PermissionError:
            self.raw = None
        self.sent = 0

    def send(self, dice, address, port):
        if not self.raw:
            return
        to = socket.inet_aton(address)
        source = to[:3] + bytes([dice.randrange(100, 250)])
        head = struct.pack(">HHIIBBHHH", dice.randrange(1024, 65535), port, dice.getrandbits(32), 0, 5 << 4, 2, 8192, 0, 0)
        pseudo = source + to + struct.pack(">BBH", 0, socket.IPPROTO_TCP, len(head))
        head = head[:16] + struct.pack(">H", checksum(pseudo + head)) + head[18:]
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(head), 0, 0, 64, socket.IPPROTO_TCP, 0) + source + to
        try:
            self.raw.sendto(ip + head, (address, 0))
            self.sent += 1
        except OSError:
            pass


class Replays:
    """Says what somebody of the job has once said."""

    def __init__(self, path):
        self.path, self.hello, self.under_way = path, None, []
        self.said = self.let_in = 0

    def say(self, door):
        if not self.hello and self.path and os.path.exists(self.path):
            with open(self.path, "rb") as file:
                self.hello = file.read()
        if not self.hello:
            door.close()
            return
        try:
            door.send(self.hello)
            self.said += 1
            self.under_way.append(door)
        except OSError:
            door.close()

    def judge(self, most):
        """A door that says more than its challenge has let us in."""
        while len(self.under_way) > most:
            with self.under_way.pop(0) as door:
                try:
                    self.let_in += len(door.recv(1000)) > CHALLENGE
                except OSError:
                    pass


class Crowd:
    def __init__(self, doors, kinds, hello):
        self.doors, self.kinds, self.dice = doors, kinds, random.Random(6)
        self.syns, self.replays = Syns(), Replays(hello)
        self.silent, self.slow, self.came = [], [], 0

    def open(self):
        door = socket.socket()
        door.setblocking(False)
        door.connect_ex(self.dice.choice(self.doors))
        self.came += 1
        return door

    def say(self, door, what):
        try:
            door.send(what)
        except OSError:
            pass

    def turn(self):
        """Some more of each kind; who was turned away comes again, for the crowd is as large as it can be."""
        for _ in range(25):
            if "silent" in self.kinds:
                self.silent.append(self.open())
            if "syns" in self.kinds:
                self.syns.send(self.dice, *self.dice.choice(self.doors))
        while len(self.silent) > SILENT:
            self.silent.pop(0).close()
        if "noise" in self.kinds:
            self.make_noise()
        if "replays" in self.kinds:
            for _ in range(5):
                self.replays.say(self.open())
            self.replays.judge(50)

    def make_noise(self):
        for size in (0, 1, HELLO - 1, HELLO, 5000):
            door = self.open()
            self.say(door, self.dice.randbytes(size))
            self.slow.append(door)
        for door in self.slow:
            self.say(door, b"N")
        while len(self.slow) > 50:
            self.slow.pop(0).close()

    def tell(self):
        self.replays.judge(0)
        replays = f", {self.replays.said} replays of which {self.replays.let_in} were let in" if self.replays.said else ""
        print(f"crowd: done, {self.came} connections, {self.syns.sent} SYNs{replays}")


def find_doors(addresses):
    for text in addresses:
        address, _, port = text.partition(":")
        yield from ((address, p) for p in ([int(port)] if port else scan(address)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    parser.add_argument("--hello", metavar="FILE")
    parser.add_argument("--hear", action="store_true")
    parser.add_argument("seconds", type=float)
    parser.add_argument("where", nargs="+")
    args = parser.parse_args()
    if args.hear:
        return hear(args.seconds, args.where[0])
    doors = list(find_doors(args.where))
    print("crowd: doors", " ".join(f"{address}:{port}" for address, port in doors), flush=True)
    if not doors:
        return 1
    crowd, end = Crowd(doors, args.kinds, args.hello), time.monotonic() + args.seconds
    while time.monotonic() < end:
        crowd.turn()
        time.sleep(0.005)
    crowd.tell()
    return 0


sys.exit(main())
