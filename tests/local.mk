# SPDX-License-Identifier: BSD-3-Clause
# All tests run under automake's parallel harness: exit 0 = passed, 77 = skipped (say why), anything else =
# failed.  Scripts are called *.test, are executable, and find the trees in abs_top_srcdir and abs_top_builddir.
TEST_EXTENSIONS = .test
AM_TESTS_ENVIRONMENT = \
	abs_top_srcdir='$(abs_top_srcdir)'; abs_top_builddir='$(abs_top_builddir)'; \
	MPICH_RUN='$(MPICH_RUN)'; OPENMPI_RUN='$(OPENMPI_RUN)'; PYTHON3='$(PYTHON3)'; \
	export abs_top_srcdir abs_top_builddir MPICH_RUN OPENMPI_RUN PYTHON3;
EXTRA_DIST += tests/count-results

# ---- Unit tests (cmocka) ---------------------------------------------------------------------------------
# One line adds one: the source of tests/unit/test_x is tests/unit/test_x.c, linked with LDADD.
LDADD = libnezha_core.la $(CMOCKA_LIBS)
unit_tests =
unit_tests += tests/unit/test_agree
unit_tests += tests/unit/test_grid
unit_tests += tests/unit/test_learned
unit_tests += tests/unit/test_log
unit_tests += tests/unit/test_model
unit_tests += tests/unit/test_plan
unit_tests += tests/unit/test_settings
unit_tests += tests/unit/test_table
# the report:
unit_tests += tests/unit/test_report
# what rank 0 tells all (pmpi/, but no MPI in it):
unit_tests += tests/unit/test_job
tests_unit_test_job_SOURCES = tests/unit/test_job.c pmpi/job.c
unit_tests += tests/unit/test_pmi
tests_unit_test_pmi_SOURCES = tests/unit/test_pmi.c pmpi/pmi.c
# includes pmpi/helper.c:
unit_tests += tests/unit/test_helper

# NICs, reduction, nezha-info:
unit_tests += tests/unit/test_intercept
tests_unit_test_intercept_LDADD = libnezha_info.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_manual
unit_tests += tests/unit/test_nic
tests_unit_test_nic_LDADD = libnezha_info.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_reduce
unit_tests += tests/unit/test_verbs_port

# nezha-tune:
unit_tests += tests/unit/test_choose tests/unit/test_sweep tests/unit/test_tune
tests_unit_test_choose_LDADD = libnezha_tune.la $(CMOCKA_LIBS)
tests_unit_test_sweep_LDADD = libnezha_tune.la $(CMOCKA_LIBS)
tests_unit_test_tune_LDADD = libnezha_tune.la $(CMOCKA_LIBS)

# the engine:
unit_tests += tests/unit/test_estimator
unit_tests += tests/unit/test_recorded
unit_tests += tests/unit/test_hello
unit_tests += tests/unit/test_node
unit_tests += tests/unit/test_aggd
tests_unit_test_aggd_LDADD = libnezha_aggd.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_ina_slots
tests_unit_test_ina_slots_LDADD = libnezha_aggd.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_split
if HAVE_XDP
unit_tests += tests/unit/test_xdp
endif
tests_unit_test_xdp_SOURCES = tests/unit/test_xdp.c
tests_unit_test_xdp_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(BPF_CFLAGS)
tests_unit_test_xdp_LDADD = libnezha_aggd.la $(CMOCKA_LIBS) $(BPF_LIBS)
unit_tests += tests/unit/test_ina_window
unit_tests += tests/unit/test_ina_wire
unit_tests += tests/unit/test_policy
unit_tests += tests/unit/test_probe
unit_tests += tests/unit/test_share
unit_tests += tests/conformance/test_ina
tests_conformance_test_ina_SOURCES = tests/conformance/test_ina.c tests/conformance/world.c tests/conformance/world.h
unit_tests += tests/conformance/test_conformance
tests_conformance_test_conformance_SOURCES = tests/conformance/test_conformance.c tests/conformance/world.c \
	tests/conformance/world.h tests/conformance/mock_rail.c tests/conformance/mock_rail.h
if HAVE_VERBS
unit_tests += tests/conformance/test_verbs
tests_conformance_test_verbs_SOURCES = tests/conformance/test_verbs.c tests/conformance/fake_verbs.c \
	tests/conformance/fake_verbs.h tests/conformance/world.c tests/conformance/world.h
endif
unit_tests += tests/conformance/test_hierarchy
tests_conformance_test_hierarchy_SOURCES = tests/conformance/test_hierarchy.c tests/conformance/world.c \
	tests/conformance/world.h

# a bad network to preload to nezha-aggd
tests/conformance/lossy.so: $(top_srcdir)/tests/conformance/lossy.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -D_GNU_SOURCE= -shared -fPIC \
		-o $@ $(top_srcdir)/tests/conformance/lossy.c -ldl
check_DATA += tests/conformance/lossy.so
CLEANFILES += tests/conformance/lossy.so
EXTRA_DIST += tests/conformance/lossy.c

if HAVE_CMOCKA
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
EXTRA_DIST += tests/unit/parse.h tests/unit/unit.h
EXTRA_DIST += tests/unit/recorded/high-first-window.samples tests/unit/recorded/late-acknowledgements.samples
EXTRA_DIST += tests/unit/recorded/slow-first-windows.samples

# The unit tests and the replayed fuzz corpora alone, without building more: what a sanitizer build runs.
quick_tests = $(fuzz_replays)
if HAVE_CMOCKA
# test_ina takes more than five minutes with a sanitizer: by hand
quick_tests += $(filter-out tests/conformance/test_ina,$(unit_tests))
endif
check-quick:
	rm -f $(TEST_SUITE_LOG) $(quick_tests:=.log) $(quick_tests:=.trs)
	$(MAKE) $(AM_MAKEFLAGS) $(TEST_SUITE_LOG) TESTS='$(quick_tests)'
.PHONY: check-quick

# ---- Fuzz targets: tests/fuzz/local.mk --------------------------------------------------------------------
include $(top_srcdir)/tests/fuzz/local.mk

# ---- MPI tests --------------------------------------------------------------------------------------------
# check_DATA += tests/mpi/x.mpich tests/mpi/x.openmpi builds tests/mpi/x.c with each MPI's wrapper; list them
# within if HAVE_MPICH_CC / HAVE_OPENMPI_CC, and in CLEANFILES; the sources in EXTRA_DIST; scripts in TESTS
# and EXTRA_DIST.
SUFFIXES += .mpich .openmpi
MPITEST_CFLAGS = -std=gnu17 -g -O2 -pthread $(WARN_CFLAGS) -I$(top_srcdir)
.c.mpich:
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(MPICH_CC) $(MPITEST_CFLAGS) -o $@ $< -lm
.c.openmpi:
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(OPENMPI_CC) $(MPITEST_CFLAGS) -o $@ $< -lm
include $(top_srcdir)/tests/mpi/local.mk

# ---- Tools and manual pages ---------------------------------------------------------------------------------
tool_tests = tests/tools/aggd.test tests/tools/info_arguments.test tests/tools/info_check.test tests/tools/info_host.test \
	tests/tools/info_table.test tests/tools/manual.test tests/tools/osu_apply.test \
	tests/tools/osu_tree.test tests/tools/results.test
TESTS += $(tool_tests)
EXTRA_DIST += $(tool_tests) tests/tools/lib.sh tests/tools/results_sample.json

# ---- Lab and benchmarks -----------------------------------------------------------------------------------
include $(top_srcdir)/tests/lab/local.mk
include $(top_srcdir)/tests/bench/local.mk

# ---- RDMA devices in a guest ------------------------------------------------------------------------------
include $(top_srcdir)/tests/guest/local.mk
