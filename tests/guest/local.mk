# SPDX-License-Identifier: BSD-3-Clause
# RDMA devices in a guest: see README.  All tests of guest_tests run in one boot, which boot.test makes; those of
# guest_pairs boot two guests themselves.
guest_boot = tests/guest/boot.test
guest_tests = tests/guest/devices.test tests/guest/conformance.test tests/guest/results.test tests/guest/faults.test
guest_pairs = tests/guest/pair.test
EXTRA_DIST += $(guest_boot) $(guest_tests) $(guest_pairs) tests/guest/README tests/guest/agent tests/guest/first \
	tests/guest/guest tests/guest/inside tests/guest/lib.sh tests/guest/prepare tests/guest/rdma.sh tests/guest/seat \
	tests/guest/serve tests/guest/tsckhz.c tests/guest/vmlinux.py
TESTS += $(guest_boot) $(guest_tests) $(guest_pairs)
$(guest_tests:.test=.log) $(guest_pairs:.test=.log): tests/guest/boot.log
AM_TESTS_ENVIRONMENT += GUEST_TESTS='$(guest_tests)'; export GUEST_TESTS;

check-verbs:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS=
	rm -f $(TEST_SUITE_LOG) $(guest_boot:.test=.log) $(guest_tests:.test=.log) $(guest_pairs:.test=.log)
	$(MAKE) $(AM_MAKEFLAGS) $(TEST_SUITE_LOG) TESTS='$(guest_boot) $(guest_tests) $(guest_pairs)'
.PHONY: check-verbs

clean-local: clean-guest
clean-guest:
	rm -rf tests/guest/cache tests/guest/results
.PHONY: clean-guest
