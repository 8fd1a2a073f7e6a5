# SPDX-License-Identifier: BSD-3-Clause
# The benchmarks: programs for each MPI, built by `make check`; their drivers run by hand (tests/bench/core
# --help, tests/bench/control --help).
bench_names = tests/bench/allreduce_bench tests/bench/price_bench tests/bench/train
if HAVE_MPICH_CC
check_DATA += $(bench_names:=.mpich)
endif
if HAVE_OPENMPI_CC
check_DATA += $(bench_names:=.openmpi)
endif
CLEANFILES += $(bench_names:=.mpich) $(bench_names:=.openmpi)
EXTRA_DIST += $(bench_names:=.c) tests/bench/core tests/bench/node tests/bench/control tests/bench/ina \
	tests/bench/results tests/bench/demo \
	tests/bench/bed.py tests/bench/changes.py tests/bench/cold.py tests/bench/experiments.py tests/bench/faults.py \
	tests/bench/figures.py tests/bench/mixes.py tests/bench/pages.py tests/bench/plot.py tests/bench/prices.py \
	tests/bench/runs.py tests/bench/worse.py
