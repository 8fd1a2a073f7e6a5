# SPDX-License-Identifier: BSD-3-Clause
# The lab: scripts that run from the source tree; the few programs that they need they build themselves.
EXTRA_DIST += tests/lab/README tests/lab/lab tests/lab/keeper tests/lab/inside tests/lab/net.sh \
	tests/lab/job.sh tests/lab/job tests/lab/mpirun tests/lab/agent tests/lab/idle.c tests/lab/finalize.c \
	tests/lab/lab.test tests/lab/flow.c tests/lab/hello.c
TESTS += tests/lab/lab.test
