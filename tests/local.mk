# SPDX-License-Identifier: BSD-3-Clause
# All tests run under automake's parallel harness: exit 0 = passed, 77 = skipped (say why), anything else =
# failed.  Scripts are called *.test, are executable, and find the trees in abs_top_srcdir and abs_top_builddir.
TEST_EXTENSIONS = .test
AM_TESTS_ENVIRONMENT = \
	abs_top_srcdir='$(abs_top_srcdir)'; abs_top_builddir='$(abs_top_builddir)'; \
	MPICH_RUN='$(MPICH_RUN)'; OPENMPI_RUN='$(OPENMPI_RUN)'; PYTHON3='$(PYTHON3)'; \
	export abs_top_srcdir abs_top_builddir MPICH_RUN OPENMPI_RUN PYTHON3;
LOG_DRIVER = $(SHELL) $(top_srcdir)/tests/driver
TEST_LOG_DRIVER = $(LOG_DRIVER)
EXTRA_DIST += tests/count-results tests/show-failures tests/slowest tests/driver

# ---- Unit tests (cmocka) ---------------------------------------------------------------------------------
# One line adds one: the source of tests/unit/test_x is tests/unit/test_x.c, linked with LDADD.
LDADD = libnezha_core.la $(CMOCKA_LIBS)
unit_tests =
unit_tests += tests/unit/test_agree
unit_tests += tests/unit/test_grid
unit_tests += tests/unit/test_learned tests/unit/test_learned_file
tests_unit_test_learned_SOURCES = tests/unit/test_learned.c tests/unit/learned_bed.h
tests_unit_test_learned_file_SOURCES = tests/unit/test_learned_file.c tests/unit/learned_bed.h
unit_tests += tests/unit/test_log
unit_tests += tests/unit/test_model tests/unit/test_model_claim tests/unit/test_model_lost tests/unit/test_model_mix \
	tests/unit/test_model_run tests/unit/test_model_noise tests/unit/test_model_cost \
	tests/unit/test_model_quiet
tests_unit_test_model_SOURCES = tests/unit/test_model.c tests/unit/model_bed.h
tests_unit_test_model_claim_SOURCES = tests/unit/test_model_claim.c tests/unit/model_bed.h
tests_unit_test_model_lost_SOURCES = tests/unit/test_model_lost.c tests/unit/model_bed.h
tests_unit_test_model_mix_SOURCES = tests/unit/test_model_mix.c tests/unit/model_bed.h
tests_unit_test_model_run_SOURCES = tests/unit/test_model_run.c tests/unit/model_bed.h
tests_unit_test_model_noise_SOURCES = tests/unit/test_model_noise.c tests/unit/model_bed.h
tests_unit_test_model_quiet_SOURCES = tests/unit/test_model_quiet.c tests/unit/model_bed.h
tests_unit_test_model_cost_SOURCES = tests/unit/test_model_cost.c tests/unit/model_bed.h
tests_unit_test_model_cost_LDADD = $(LDADD) -lm
unit_tests += tests/unit/test_plan
unit_tests += tests/unit/test_settings
unit_tests += tests/unit/test_table tests/unit/test_table_override
# the report:
unit_tests += tests/unit/test_report
# the timeline:
unit_tests += tests/unit/test_trace
# NEZHA_CHECK=native (pmpi/, but no MPI in it):
unit_tests += tests/unit/test_compare
tests_unit_test_compare_SOURCES = tests/unit/test_compare.c pmpi/compare.c
# what rank 0 tells all (pmpi/, but no MPI in it):
unit_tests += tests/unit/test_job
tests_unit_test_job_SOURCES = tests/unit/test_job.c pmpi/job.c pmpi/job_files.c
unit_tests += tests/unit/test_pmi
tests_unit_test_pmi_SOURCES = tests/unit/test_pmi.c pmpi/pmi.c
# includes pmpi/helper.c:
unit_tests += tests/unit/test_helper
# with a made-up mpi.h:
unit_tests += tests/unit/test_finalize
tests_unit_test_finalize_SOURCES = tests/unit/test_finalize.c tests/unit/mpi/mpi.h pmpi/finalize.c
tests_unit_test_finalize_CPPFLAGS = -I$(top_srcdir)/tests/unit/mpi $(AM_CPPFLAGS)
unit_tests += tests/unit/test_floor
tests_unit_test_floor_SOURCES = tests/unit/test_floor.c tests/unit/mpi/mpi.h pmpi/allreduce.c
tests_unit_test_floor_CPPFLAGS = -I$(top_srcdir)/tests/unit/mpi $(AM_CPPFLAGS)
unit_tests += tests/unit/test_passes
tests_unit_test_passes_SOURCES = tests/unit/test_passes.c tests/unit/mpi/mpi.h pmpi/passes.c
tests_unit_test_passes_CPPFLAGS = -I$(top_srcdir)/tests/unit/mpi $(AM_CPPFLAGS)
unit_tests += tests/unit/test_nonblocking
tests_unit_test_nonblocking_SOURCES = tests/unit/test_nonblocking.c tests/unit/mpi/mpi.h pmpi/nonblocking.c
tests_unit_test_nonblocking_CPPFLAGS = -I$(top_srcdir)/tests/unit/mpi $(AM_CPPFLAGS)
unit_tests += tests/unit/test_nonblocking_copied
tests_unit_test_nonblocking_copied_SOURCES = $(tests_unit_test_nonblocking_SOURCES)
tests_unit_test_nonblocking_copied_CPPFLAGS = $(tests_unit_test_nonblocking_CPPFLAGS) -DOPEN_MPI
tests_unit_test_nonblocking_copied_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc

# NICs, reduction, nezha-info:
unit_tests += tests/unit/test_intercept
tests_unit_test_intercept_LDADD = libnezha_info.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_manual
nic_host = tests/unit/nic_host.c tests/unit/nic_host.h
unit_tests += tests/unit/test_nic
tests_unit_test_nic_SOURCES = tests/unit/test_nic.c $(nic_host)
tests_unit_test_nic_LDADD = libnezha_info.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_fingerprint
tests_unit_test_fingerprint_SOURCES = tests/unit/test_fingerprint.c $(nic_host)
tests_unit_test_fingerprint_LDADD = libnezha_info.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_nic_rails
tests_unit_test_nic_rails_SOURCES = tests/unit/test_nic_rails.c $(nic_host)
tests_unit_test_nic_rails_LDADD = libnezha_info.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_reduce
unit_tests += tests/unit/test_verbs_message
unit_tests += tests/unit/test_verbs_port

# nezha-tune:
unit_tests += tests/unit/test_choose tests/unit/test_sweep tests/unit/test_tune
tests_unit_test_choose_LDADD = libnezha_tune.la $(CMOCKA_LIBS)
tests_unit_test_sweep_LDADD = libnezha_tune.la $(CMOCKA_LIBS)
tests_unit_test_tune_LDADD = libnezha_tune.la $(CMOCKA_LIBS)

# the engine:
unit_tests += tests/unit/test_contact
unit_tests += tests/unit/test_telling
unit_tests += tests/unit/test_damping
unit_tests += tests/unit/test_estimator
unit_tests += tests/unit/test_fairlock
unit_tests += tests/unit/test_recorded
unit_tests += tests/unit/test_crc32c
unit_tests += tests/unit/test_hello
unit_tests += tests/unit/test_lend
unit_tests += tests/unit/test_node
aggd_bed = tests/unit/aggd_bed.c tests/unit/aggd_bed.h
unit_tests += tests/unit/test_aggd
tests_unit_test_aggd_SOURCES = tests/unit/test_aggd.c $(aggd_bed)
tests_unit_test_aggd_LDADD = libnezha_aggd.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_aggd_group
tests_unit_test_aggd_group_SOURCES = tests/unit/test_aggd_group.c $(aggd_bed)
tests_unit_test_aggd_group_LDADD = libnezha_aggd.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_aggd_control
tests_unit_test_aggd_control_SOURCES = tests/unit/test_aggd_control.c $(aggd_bed)
tests_unit_test_aggd_control_LDADD = libnezha_aggd.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_aggd_drain
tests_unit_test_aggd_drain_SOURCES = tests/unit/test_aggd_drain.c $(aggd_bed)
tests_unit_test_aggd_drain_LDADD = libnezha_aggd.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_aggd_shun
tests_unit_test_aggd_shun_LDADD = libnezha_aggd.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_ina_buffers
tests_unit_test_ina_buffers_LDADD = libnezha_aggd.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_ina_slots
tests_unit_test_ina_slots_LDADD = libnezha_aggd.la $(CMOCKA_LIBS)
unit_tests += tests/unit/test_split
unit_tests += tests/unit/test_past
if HAVE_XDP
unit_tests += tests/unit/test_xdp
endif
tests_unit_test_xdp_SOURCES = tests/unit/test_xdp.c tests/tools/xdp_here.h
tests_unit_test_xdp_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(BPF_CFLAGS)
tests_unit_test_xdp_LDADD = libnezha_aggd.la $(CMOCKA_LIBS) $(BPF_LIBS)
unit_tests += tests/unit/test_fixed
tests_unit_test_fixed_LDADD = $(LDADD) -lm
unit_tests += tests/unit/test_ina_window
unit_tests += tests/unit/test_ina_answers
unit_tests += tests/unit/test_ina_run
unit_tests += tests/unit/test_ina_wire
unit_tests += tests/unit/test_ack_delay
unit_tests += tests/unit/test_bound
unit_tests += tests/unit/test_departures
unit_tests += tests/unit/test_short_calls
unit_tests += tests/unit/test_steps
unit_tests += tests/unit/test_overdue
unit_tests += tests/unit/test_pause
unit_tests += tests/unit/test_policy
unit_tests += tests/unit/test_probe
unit_tests += tests/unit/test_share
unit_tests += tests/unit/test_sieve
unit_tests += tests/unit/test_strangers
unit_tests += tests/unit/test_tcp
unit_tests += tests/unit/test_tcp_await

# the engine as a whole, N of them in a process
world = tests/conformance/world.c tests/conformance/world.h tests/conformance/reference.c tests/conformance/reference.h
daemons = tests/conformance/daemons.c tests/conformance/daemons.h
ina_world = tests/conformance/ina_world.c tests/conformance/ina_world.h $(daemons) $(world)
unit_tests += tests/conformance/test_ina
tests_conformance_test_ina_SOURCES = tests/conformance/test_ina.c $(ina_world)
unit_tests += tests/conformance/test_ina_lost
tests_conformance_test_ina_lost_SOURCES = tests/conformance/test_ina_lost.c $(ina_world)
unit_tests += tests/conformance/test_ina_roused
tests_conformance_test_ina_roused_SOURCES = tests/conformance/test_ina_roused.c $(ina_world)
unit_tests += tests/conformance/test_ina_fixed
tests_conformance_test_ina_fixed_SOURCES = tests/conformance/test_ina_fixed.c $(ina_world)
tests_conformance_test_ina_fixed_LDADD = $(LDADD) -lm
unit_tests += tests/conformance/test_conformance
tests_conformance_test_conformance_SOURCES = tests/conformance/test_conformance.c $(world)
unit_tests += tests/conformance/test_losses
tests_conformance_test_losses_SOURCES = tests/conformance/test_losses.c $(world)
unit_tests += tests/conformance/test_gradual
tests_conformance_test_gradual_SOURCES = tests/conformance/test_gradual.c $(world)
unit_tests += tests/conformance/test_lent
tests_conformance_test_lent_SOURCES = tests/conformance/test_lent.c tests/conformance/mock_rail.c tests/conformance/mock_rail.h $(world)
unit_tests += tests/conformance/test_collective
tests_conformance_test_collective_SOURCES = tests/conformance/test_collective.c $(world) \
	tests/conformance/mock_rail.c tests/conformance/mock_rail.h
unit_tests += tests/conformance/test_last_call
tests_conformance_test_last_call_SOURCES = tests/conformance/test_last_call.c $(world)
unit_tests += tests/conformance/test_peers
tests_conformance_test_peers_SOURCES = tests/conformance/test_peers.c $(world)
unit_tests += tests/conformance/test_control
tests_conformance_test_control_SOURCES = tests/conformance/test_control.c $(world)
unit_tests += tests/conformance/test_opening
tests_conformance_test_opening_SOURCES = tests/conformance/test_opening.c $(world)
unit_tests += tests/conformance/test_paths
tests_conformance_test_paths_SOURCES = tests/conformance/test_paths.c $(world)
unit_tests += tests/conformance/test_regain
tests_conformance_test_regain_SOURCES = tests/conformance/test_regain.c $(world)
unit_tests += tests/conformance/test_await
tests_conformance_test_await_SOURCES = tests/conformance/test_await.c $(world)
unit_tests += tests/conformance/test_stalls
tests_conformance_test_stalls_SOURCES = tests/conformance/test_stalls.c $(world)
unit_tests += tests/conformance/test_integrity
tests_conformance_test_integrity_SOURCES = tests/conformance/test_integrity.c $(world)
if HAVE_VERBS
fake_provider = tests/conformance/fake_verbs.c tests/conformance/fake_verbs.h tests/conformance/fake_cq.c \
	tests/conformance/fake_qp.c tests/conformance/fake_inside.h tests/conformance/fake_port.c \
	tests/conformance/fake_port.h tests/conformance/fake_region.c tests/conformance/fake_region.h
fake_verbs_sources = $(fake_provider) tests/conformance/verbs_world.c tests/conformance/verbs_world.h $(world)
unit_tests += tests/conformance/test_verbs
tests_conformance_test_verbs_SOURCES = tests/conformance/test_verbs.c $(fake_verbs_sources)
unit_tests += tests/conformance/test_verbs_memory
tests_conformance_test_verbs_memory_SOURCES = tests/conformance/test_verbs_memory.c $(fake_verbs_sources)
unit_tests += tests/conformance/test_verbs_paths
tests_conformance_test_verbs_paths_SOURCES = tests/conformance/test_verbs_paths.c $(fake_verbs_sources)
endif
unit_tests += tests/conformance/test_hierarchy
tests_conformance_test_hierarchy_SOURCES = tests/conformance/test_hierarchy.c $(world)

unit_tests += tests/conformance/test_sharp
tests_conformance_test_sharp_SOURCES = tests/conformance/test_sharp.c $(world)
tests_conformance_test_sharp_LDADD = $(LDADD) -lm

# a libsharp_coll without InfiniBand
tests/conformance/fake/libsharp_coll.so: $(top_srcdir)/tests/conformance/fake_sharp.c $(top_srcdir)/rails/sharp_api.h
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -D_GNU_SOURCE= -I$(top_srcdir) -shared -fPIC \
		-o $@ $(top_srcdir)/tests/conformance/fake_sharp.c
check_DATA += tests/conformance/fake/libsharp_coll.so
CLEANFILES += tests/conformance/fake/libsharp_coll.so
EXTRA_DIST += tests/conformance/fake_sharp.c

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
else
TESTS += tests/unit/none.test
endif
EXTRA_DIST += tests/unit/none.test
EXTRA_DIST += tests/unit/parse.h tests/unit/skip.h tests/unit/unit.h
EXTRA_DIST += tests/unit/recorded/high-first-window.samples tests/unit/recorded/late-acknowledgements.samples
EXTRA_DIST += tests/unit/recorded/slow-first-windows.samples

# The unit tests and the replayed fuzz corpora alone, without building more: what a sanitizer build runs.
quick_tests = $(fuzz_replays)
if HAVE_CMOCKA
# test_ina* take more than five minutes with a sanitizer: by hand
quick_tests += $(filter-out tests/conformance/test_ina tests/conformance/test_ina_lost tests/conformance/test_ina_fixed tests/conformance/test_sharp,$(unit_tests))
endif
build-quick: $(quick_tests)
# Of what goes through all combinations, a sanitizer sees every third.
check-quick:
	rm -f $(TEST_SUITE_LOG) $(quick_tests:=.log) $(quick_tests:=.trs)
	NEZHA_TEST_EVERY=$${NEZHA_TEST_EVERY-3} $(MAKE) $(AM_MAKEFLAGS) $(TEST_SUITE_LOG) TESTS='$(quick_tests)'
.PHONY: build-quick check-quick

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
tool_tests = tests/tools/aggd.test tests/tools/failures.test tests/tools/info_arguments.test \
	tests/tools/info_check.test tests/tools/info_host.test tests/tools/info_table.test tests/tools/manual.test tests/tools/osu_apply.test \
	tests/tools/osu_tree.test tests/tools/results.test
TESTS += $(tool_tests)
# whether XDP programs can be loaded
if HAVE_XDP
check_PROGRAMS += tests/tools/xdp_here
endif
tests_tools_xdp_here_SOURCES = tests/tools/xdp_here.c tests/tools/xdp_here.h
tests_tools_xdp_here_CFLAGS = $(AM_CFLAGS) $(BPF_CFLAGS)
tests_tools_xdp_here_LDADD = $(BPF_LIBS)
tests/tools/at_once.so: $(top_srcdir)/tests/tools/at_once.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -D_GNU_SOURCE= -shared -fPIC \
		-o $@ $(top_srcdir)/tests/tools/at_once.c -ldl
check_DATA += tests/tools/at_once.so
CLEANFILES += tests/tools/at_once.so
EXTRA_DIST += tests/tools/at_once.c
EXTRA_DIST += $(tool_tests) tests/tools/lib.sh tests/tools/results_sample.json

# ---- Lab and benchmarks -----------------------------------------------------------------------------------
include $(top_srcdir)/tests/lab/local.mk
include $(top_srcdir)/tests/bench/local.mk

# ---- RDMA devices in a guest ------------------------------------------------------------------------------
include $(top_srcdir)/tests/guest/local.mk

# ---- All of it, in less time ------------------------------------------------------------------------------
# The same tests as `make check`.  First those without a cluster, -j of them at a time, the guest first, since it takes longest; then
# those that raise a cluster: two at a time where nothing is measured or must be fast, the longest first, the others alone.
paired_tests = $(filter $(mpitest_scripts),$(paired_names:%=tests/mpi/%.test))
paired_names = ina lack death aggregators partial sharp results native device integrity settings unreached trace
alone_tests = $(filter-out $(paired_tests),$(mpitest_scripts)) tests/lab/lab.test tests/bench/storm.test
beside_tests = $(guest_boot) $(filter-out $(paired_tests) $(alone_tests) $(guest_boot),$(TESTS))
check-lanes:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS=
	rm -f $(TEST_LOGS) $(TEST_LOGS:.log=.trs)
	status=0; \
	$(MAKE) $(AM_MAKEFLAGS) TEST_SUITE_LOG=tests-beside.log TESTS='$(beside_tests)' tests-beside.log || status=1; \
	$(MAKE) $(AM_MAKEFLAGS) -j2 TEST_SUITE_LOG=tests-paired.log TESTS='$(paired_tests)' tests-paired.log || status=1; \
	$(MAKE) $(AM_MAKEFLAGS) -j1 TEST_SUITE_LOG=tests-alone.log TESTS='$(alone_tests)' tests-alone.log || status=1; \
	exit $$status
CLEANFILES += tests-beside.log tests-paired.log tests-alone.log
.PHONY: check-lanes
