# SPDX-License-Identifier: BSD-3-Clause
# RDMA devices in a guest: see README.  All tests of guest_tests run in one boot, which boot.test makes; those of
# guest_alone boot guests themselves, or what plays one.
guest_boot = tests/guest/boot.test
guest_tests = tests/guest/devices.test tests/guest/conformance.test tests/guest/results.test tests/guest/faults.test \
	tests/guest/memory.test
guest_alone = tests/guest/pair.test tests/guest/still.test
EXTRA_DIST += $(guest_boot) $(guest_tests) $(guest_alone) tests/guest/README tests/guest/agent tests/guest/first \
	tests/guest/guest tests/guest/inside tests/guest/lib.sh tests/guest/prepare tests/guest/rdma.sh tests/guest/seat \
	tests/guest/serve tests/guest/tsckhz.c tests/guest/vmlinux.py

# what moves queue pairs to the error state
if HAVE_VERBS
tests/guest/break_qp.so: $(top_srcdir)/tests/guest/break_qp.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) $(VERBS_CFLAGS) -D_GNU_SOURCE= -shared -fPIC \
		-o $@ $(top_srcdir)/tests/guest/break_qp.c -ldl -pthread
check_DATA += tests/guest/break_qp.so
CLEANFILES += tests/guest/break_qp.so
endif
EXTRA_DIST += tests/guest/break_qp.c
TESTS += $(guest_boot) $(guest_tests) $(guest_alone)
$(guest_tests:.test=.log) $(guest_alone:.test=.log): tests/guest/boot.log
AM_TESTS_ENVIRONMENT += GUEST_TESTS='$(guest_tests)'; export GUEST_TESTS;

check-verbs:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS=
	rm -f $(TEST_SUITE_LOG) $(guest_boot:.test=.log) $(guest_tests:.test=.log) $(guest_alone:.test=.log)
	$(MAKE) $(AM_MAKEFLAGS) $(TEST_SUITE_LOG) TESTS='$(guest_boot) $(guest_tests) $(guest_alone)'
.PHONY: check-verbs

# As many calls on changing buffers as show a leak of a page or a descriptor in a thousand of them: minutes.
check-verbs-calls:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS=
	abs_top_srcdir='$(abs_top_srcdir)' abs_top_builddir='$(abs_top_builddir)' MPICH_RUN='$(MPICH_RUN)' OPENMPI_RUN='$(OPENMPI_RUN)' \
		GUEST_CALLS=$${GUEST_CALLS-10000} GUEST_BYTES=$${GUEST_BYTES-49152} GUEST_SECONDS=$${GUEST_SECONDS-900} \
		$(SHELL) $(top_srcdir)/tests/guest/memory.test
.PHONY: check-verbs-calls

clean-local: clean-guest
clean-guest:
	rm -rf tests/guest/cache tests/guest/results
.PHONY: clean-guest
