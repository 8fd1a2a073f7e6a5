# SPDX-License-Identifier: BSD-3-Clause
"""strangers.py ADDRESS PORT SECONDS: what does not belong to any job, sent to an aggregator: noise and packets of the right form
with made-up tokens by UDP; noise, joins with a made-up proof, and connections that say nothing by TCP."""
import random
import socket
import struct
import sys
import time

MAGIC, RECORD_MAGIC, VERSION = 0x414E, 0x43414E5A, 2
DATA, JOIN = 1, 2


def packet(dice):
    """A contribution of 512 bytes to a session that there is not (ina_wire.h)."""
    header = struct.pack(
        "<HBBBBBBQIIIHH", MAGIC, VERSION, DATA, 0, dice.randrange(8), 0, 0, dice.getrandbits(64), dice.randrange(512), 1, 0, 512, 0
    )
    return header + dice.randbytes(512)


def join(dice):
    """The right form, a team and a proof out of thin air."""
    head = struct.pack("<IBBH", RECORD_MAGIC, VERSION, JOIN, 0)
    body = dice.randbytes(32) + struct.pack("<HHHHHH", 3, dice.randrange(3), 4791, 1440, 256, 0) + dice.randbytes(64)
    return (head + body).ljust(136, b"\0")


def bother(address, dice, udp):
    for _ in range(50):
        udp.sendto(packet(dice), address)
        udp.sendto(dice.randbytes(dice.randrange(1, 1400)), address)
    for what in (join(dice), dice.randbytes(136), dice.randbytes(7), b""):
        with socket.create_connection(address, 2) as tcp:
            tcp.sendall(what)


def main():
    address, seconds = (sys.argv[1], int(sys.argv[2])), float(sys.argv[3])
    dice, end, rounds = random.Random(4), time.monotonic() + seconds, 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        while time.monotonic() < end:
            try:
                bother(address, dice, udp)
            except OSError as error:
                print(f"strangers: {error}")
            rounds += 1
            time.sleep(0.05)
    print(f"strangers: done, {rounds} rounds")


main()
