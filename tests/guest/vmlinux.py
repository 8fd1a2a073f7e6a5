#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""vmlinux.py BZIMAGE VMLINUX: takes the ELF kernel out of a bzImage, so that a guest without hardware support for
virtualisation need not unpack it.  The fields are those of Documentation/arch/x86/boot.rst."""
import gzip
import lzma
import struct
import subprocess
import sys

SETUP_SECTS, PAYLOAD = 0x1F1, 0x248  # one byte; two numbers of 32 bits: offset and length
UNPACK = {
    b"\xfd7zXZ\0": lambda data: lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data),
    b"\x1f\x8b": gzip.decompress,
    b"\x28\xb5\x2f\xfd": lambda data: subprocess.run(["zstd", "-dc"], input=data, stdout=-1, check=True).stdout,
}


def main():
    with open(sys.argv[1], "rb") as file:
        image = file.read()
    if image[0x202:0x206] != b"HdrS":
        sys.exit(f"{sys.argv[1]}: no bzImage")
    code = ((image[SETUP_SECTS] or 4) + 1) * 512
    offset, length = struct.unpack_from("<II", image, PAYLOAD)
    payload = image[code + offset : code + offset + length - 4]  # the last four bytes are the unpacked size
    for magic, unpack in UNPACK.items():
        if payload.startswith(magic):
            kernel = unpack(payload)
            break
    else:
        sys.exit(f"{sys.argv[1]}: the kernel is packed in an unknown way ({payload[:6].hex()})")
    if not kernel.startswith(b"\x7fELF"):
        sys.exit(f"{sys.argv[1]}: no ELF file in it")
    with open(sys.argv[2], "wb") as file:
        file.write(kernel)


main()
