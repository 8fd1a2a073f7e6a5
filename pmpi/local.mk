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
	pmpi/allreduce.c \
	pmpi/announce.c pmpi/announce.h \
	pmpi/backend.c \
	pmpi/calls.h \
	pmpi/comm.c pmpi/comm.h \
	pmpi/context.h \
	pmpi/counters.c \
	pmpi/failure.c pmpi/failure.h \
	pmpi/finalize.c pmpi/finalize.h \
	pmpi/handles.c pmpi/handles.h \
	pmpi/info.c \
	pmpi/init.c \
	pmpi/job.c pmpi/job.h \
	pmpi/missing.c pmpi/missing.h \
	pmpi/native.h \
	pmpi/patience.c pmpi/patience.h \
	pmpi/pcontrol.c \
	pmpi/pmi.c pmpi/pmi.h \
	pmpi/progress.c pmpi/progress.h \
	pmpi/rails.c pmpi/rails.h \
	pmpi/scale.c pmpi/scale.h \
	pmpi/summary.c pmpi/summary.h \
	pmpi/team.c pmpi/team.h
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
