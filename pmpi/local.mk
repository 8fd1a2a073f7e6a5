# SPDX-License-Identifier: BSD-3-Clause
# The stub and the backends: modules without a version, all in $(libdir).

# What is preloaded: knows no MPI and links none of the rest.
lib_LTLIBRARIES += libnezha_pmpi.la
include_HEADERS += pmpi/nezha.h
libnezha_pmpi_la_SOURCES = \
	pmpi/entry.h \
	pmpi/folder.c pmpi/folder.h \
	pmpi/launcher.c \
	pmpi/library.c pmpi/library.h \
	pmpi/nezha.h \
	pmpi/stub.c
libnezha_pmpi_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared

# What the stub loads: the same sources with each MPI's headers, linked to neither library.
backend_sources = \
	pmpi/agree.c pmpi/agree.h \
	pmpi/allreduce.c \
	pmpi/announce.c pmpi/announce.h \
	pmpi/backend.c \
	pmpi/calls.h \
	pmpi/buffers.h \
	pmpi/comm.c pmpi/comm.h \
	pmpi/compare.c pmpi/compare.h \
	pmpi/context.h \
	pmpi/counters.c \
	pmpi/failure.c pmpi/failure.h \
	pmpi/finalize.c pmpi/finalize.h \
	pmpi/handles.c pmpi/handles.h \
	pmpi/helper.c pmpi/helper.h \
	pmpi/info.c \
	pmpi/init.c \
	pmpi/job.c pmpi/job.h \
	pmpi/job_files.c pmpi/job_files.h \
	pmpi/learned.c pmpi/learned.h \
	pmpi/missing.c pmpi/missing.h \
	pmpi/origin.c pmpi/origin.h \
	pmpi/native.h \
	pmpi/patience.c pmpi/patience.h \
	pmpi/pcontrol.c \
	pmpi/nonblocking.c pmpi/nonblocking.h \
	pmpi/passes.c pmpi/passes.h \
	pmpi/pmi.c pmpi/pmi.h \
	pmpi/progress.c pmpi/progress.h \
	pmpi/rails.c pmpi/rails.h \
	pmpi/run.c pmpi/run.h \
	pmpi/scale.c pmpi/scale.h \
	pmpi/staging.c pmpi/staging.h \
	pmpi/summary.c pmpi/summary.h \
	pmpi/team.c pmpi/team.h \
	pmpi/timeline.c pmpi/timeline.h \
	pmpi/tuner.c pmpi/tuner.h \
	pmpi/attended.c pmpi/attended.h pmpi/verify.c pmpi/verify.h
backend_ldflags = $(AM_LDFLAGS) -module -avoid-version -shared

if HAVE_MPICH
lib_LTLIBRARIES += libnezha_pmpi_mpich.la
endif
libnezha_pmpi_mpich_la_SOURCES = $(backend_sources)
libnezha_pmpi_mpich_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPICH_CPPFLAGS)
libnezha_pmpi_mpich_la_LDFLAGS = $(backend_ldflags)
libnezha_pmpi_mpich_la_LIBADD = libnezha_core.la

if HAVE_OPENMPI
lib_LTLIBRARIES += libnezha_pmpi_openmpi.la
endif
libnezha_pmpi_openmpi_la_SOURCES = $(backend_sources)
libnezha_pmpi_openmpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(OPENMPI_CPPFLAGS)
libnezha_pmpi_openmpi_la_LDFLAGS = $(backend_ldflags)
libnezha_pmpi_openmpi_la_LIBADD = libnezha_core.la

# nezha-tune's worker is an MPI program, so it takes each MPI's own compiler; where there is none, there is no worker.
worker_sources = $(top_srcdir)/pmpi/tune_worker.c $(top_srcdir)/tuning/rail_set.c $(top_srcdir)/tuning/sweep.c
worker_headers = $(top_srcdir)/pmpi/entry.h $(top_srcdir)/pmpi/tuner.h $(top_srcdir)/tuning/fingerprint.h \
	$(top_srcdir)/tuning/measured.h $(top_srcdir)/tuning/rail_set.h $(top_srcdir)/tuning/sweep.h
WORKER_CFLAGS = -std=gnu17 -g -O2 $(WARN_CFLAGS) -D_GNU_SOURCE= -I$(top_srcdir)
nezha-tune-worker.mpich: $(worker_sources) $(worker_headers)
	$(AM_V_CC)$(MPICH_CC) $(WORKER_CFLAGS) -o $@ $(worker_sources) -ldl -lm
nezha-tune-worker.openmpi: $(worker_sources) $(worker_headers)
	$(AM_V_CC)$(OPENMPI_CC) $(WORKER_CFLAGS) -o $@ $(worker_sources) -ldl -lm
pkglibexec_SCRIPTS =
if HAVE_MPICH_CC
pkglibexec_SCRIPTS += nezha-tune-worker.mpich
endif
if HAVE_OPENMPI_CC
pkglibexec_SCRIPTS += nezha-tune-worker.openmpi
endif
CLEANFILES += nezha-tune-worker.mpich nezha-tune-worker.openmpi
EXTRA_DIST += pmpi/tune_worker.c
