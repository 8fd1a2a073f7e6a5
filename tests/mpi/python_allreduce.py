# SPDX-License-Identifier: BSD-3-Clause
"""MPI_Allreduce as a Python program calls it through mpi4py, which loads libmpi into a scope of its own."""
import array
import sys

try:
    from mpi4py import MPI
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

comm = MPI.COMM_WORLD
rank, ranks, n = comm.Get_rank(), comm.Get_size(), 300001
x = array.array("f", [rank + i % 97 for i in range(n)])
y = array.array("f", bytes(4 * n))
k = array.array("l", [rank * 3 + i % 101 for i in range(n)])
comm.Allreduce([x, MPI.FLOAT], [y, MPI.FLOAT], op=MPI.SUM)
comm.Allreduce(MPI.IN_PLACE, [k, MPI.LONG], op=MPI.MAX)
wrong = sum(y[i] != ranks * (ranks - 1) // 2 + ranks * (i % 97) for i in range(n))
wrong += sum(k[i] != (ranks - 1) * 3 + i % 101 for i in range(n))
wrong += comm.allreduce(1) != ranks
wrong = comm.reduce(wrong)
if rank == 0:
    print("python: passed" if wrong == 0 else f"python: {wrong} failures", flush=True)
