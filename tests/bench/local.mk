# SPDX-License-Identifier: BSD-3-Clause
# The benchmarks: programs for each MPI, built by `make check`; their drivers run by hand (tests/bench/core
# --help, tests/bench/control --help).
bench_names = tests/bench/allreduce_bench tests/bench/price_bench tests/bench/storm tests/bench/train
if HAVE_MPICH_CC
check_DATA += $(bench_names:=.mpich)
endif
if HAVE_OPENMPI_CC
check_DATA += $(bench_names:=.openmpi)
endif
CLEANFILES += $(bench_names:=.mpich) $(bench_names:=.openmpi)
EXTRA_DIST += $(bench_names:=.c) tests/bench/core tests/bench/node tests/bench/control tests/bench/ina \
	tests/bench/results tests/bench/demo tests/bench/storm tests/bench/verbs_faults \
	tests/bench/bed.py tests/bench/chance.py tests/bench/changes.py tests/bench/checks.py tests/bench/cold.py tests/bench/crowds.py tests/bench/experiments.py tests/bench/faults.py \
	tests/bench/figures.py tests/bench/hits.py tests/bench/kinds.py tests/bench/labours.py tests/bench/mixes.py tests/bench/pages.py tests/bench/plot.py tests/bench/prices.py \
	tests/bench/runs.py tests/bench/scene.py tests/bench/standstill.py tests/bench/stepping.py tests/bench/stolen.py tests/bench/tally.py tests/bench/turns.py tests/bench/verbs tests/bench/worse.py
# make would take the script for something to be built from storm.c
tests/bench/storm: ;
tests/bench/storm.mpich tests/bench/storm.openmpi: $(top_srcdir)/tests/mpi/common.h

# faults of TCP rails while calls run: make check-faults SEED=n COUNT=n; a slice of it is part of make check
TESTS += tests/bench/storm.test tests/bench/stolen.test tests/bench/tally.test tests/bench/turns.test
EXTRA_DIST += tests/bench/storm.test tests/bench/stolen.test tests/bench/tally.test tests/bench/turns.test
SEED = 1
COUNT = 100
check-faults:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS=
	abs_top_srcdir='$(abs_top_srcdir)' abs_top_builddir='$(abs_top_builddir)' MPICH_RUN='$(MPICH_RUN)' OPENMPI_RUN='$(OPENMPI_RUN)' \
		$(PYTHON3) $(top_srcdir)/tests/bench/storm --seed $(SEED) --count $(COUNT) $(STORM)
.PHONY: check-faults

# without MPI, for tests/bench/storm: when the machine stands still
check_PROGRAMS += tests/bench/standstill
tests_bench_standstill_LDADD =
TESTS += tests/bench/standstill.test
EXTRA_DIST += tests/bench/standstill.test

# without MPI, for tests/bench/node: how far its processors are apart
check_PROGRAMS += tests/bench/apart
tests_bench_apart_LDADD =
TESTS += tests/bench/apart.test
EXTRA_DIST += tests/bench/apart.test

# without MPI, for tests/bench/verbs
if HAVE_VERBS
tests_bench_block_bench_SOURCES = tests/bench/block_bench.c $(fake_provider)
tests_bench_block_bench_LDADD = libnezha_core.la
check_PROGRAMS += tests/bench/block_bench
endif
