# SPDX-License-Identifier: BSD-3-Clause
# The lab: scripts that run from the source tree; the few programs that they need they build themselves.
EXTRA_DIST += tests/lab/README tests/lab/lab tests/lab/keeper tests/lab/inside tests/lab/net.sh \
	tests/lab/job.sh tests/lab/job tests/lab/mpirun tests/lab/agent tests/lab/idle.c tests/lab/finalize.c \
	tests/lab/lab.test tests/lab/flow.c tests/lab/hello.c
TESTS += tests/lab/lab.test
# make would take it for something to be built from job.sh
tests/lab/job: ;

# a bad link, for tests of the XDP program
if HAVE_XDP
tests/lab/lossy.bpf.o: $(top_srcdir)/tests/lab/lossy.bpf.c
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(CLANG) $(BPF_TARGET_CFLAGS) $(WARN_CFLAGS) \
		-c $(top_srcdir)/tests/lab/lossy.bpf.c -o $@
check_DATA += tests/lab/lossy.bpf.o
CLEANFILES += tests/lab/lossy.bpf.o
endif
EXTRA_DIST += tests/lab/lossy.bpf.c
