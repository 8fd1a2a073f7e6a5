# SPDX-License-Identifier: BSD-3-Clause
# MPI test programs, each built for both MPIs by the suffix rules of tests/local.mk, and their drivers.
mpitest_single = tests/mpi/agree tests/mpi/comms tests/mpi/counters tests/mpi/death tests/mpi/device tests/mpi/family tests/mpi/freed tests/mpi/lack tests/mpi/late tests/mpi/life tests/mpi/many tests/mpi/passes tests/mpi/plain tests/mpi/progress tests/mpi/remap \
	tests/mpi/scarce tests/mpi/threads tests/mpi/thrown
mpitest_values = tests/mpi/huge tests/mpi/native tests/mpi/results
mpitest_osu = tests/mpi/osu_hooks
mpitest_fortran = tests/mpi/fortran_f08 tests/mpi/fortran_mpi tests/mpi/fortran_mpifh
mpitest_math = tests/mpi/fixed
mpitest_names = $(mpitest_single) $(mpitest_math) $(mpitest_values) $(mpitest_osu)
mpitest_scripts = \
	tests/mpi/aggregators.test \
	tests/mpi/agree.test \
	tests/mpi/comms.test \
	tests/mpi/counters.test \
	tests/mpi/death.test \
	tests/mpi/device.test \
	tests/mpi/failover.test \
	tests/mpi/huge.test \
	tests/mpi/ina-xdp.test \
	tests/mpi/ina.test \
	tests/mpi/inajobs.test \
	tests/mpi/integrity.test \
	tests/mpi/interpose.test \
	tests/mpi/lack.test \
	tests/mpi/late.test \
	tests/mpi/launcher.test \
	tests/mpi/learn.test \
	tests/mpi/learned.test \
	tests/mpi/life.test \
	tests/mpi/native.test \
	tests/mpi/node.test \
	tests/mpi/osu.test \
	tests/mpi/osu_real.test \
	tests/mpi/outage.test \
	tests/mpi/partial.test \
	tests/mpi/passes.test \
	tests/mpi/progress.test \
	tests/mpi/results.test \
	tests/mpi/settings.test \
	tests/mpi/share.test \
	tests/mpi/sharp.test \
	tests/mpi/strangers.test \
	tests/mpi/threads.test \
	tests/mpi/trace.test \
	tests/mpi/tune.test \
	tests/mpi/unreached.test
TESTS += $(mpitest_scripts)
EXTRA_DIST += $(mpitest_scripts) $(mpitest_names:=.c) tests/mpi/common.h tests/mpi/values.c \
	tests/mpi/values.h tests/mpi/lib.sh tests/mpi/ina_lib.sh tests/mpi/osu_lib.sh tests/mpi/report.py tests/mpi/python_allreduce.py tests/mpi/strangers.py tests/mpi/crowd.py tests/mpi/trace.py \
	tests/mpi/corrupt.c tests/mpi/flip.c tests/mpi/gpu.c tests/mpi/nomemory.c tests/mpi/noshare.c tests/mpi/nothread.c tests/mpi/serial.c tests/mpi/tool.c tests/mpi/fortran_mpifh.f tests/mpi/fortran_mpi.f90 tests/mpi/fortran_f08.f90

mpitest_headers = $(top_srcdir)/tests/mpi/common.h $(top_srcdir)/tests/mpi/values.h
mpitest_programs = $(mpitest_names:=.mpich) $(mpitest_names:=.openmpi)
$(mpitest_programs): $(mpitest_headers)
tests/mpi/counters.mpich tests/mpi/counters.openmpi: $(top_srcdir)/pmpi/nezha.h

# these are linked with the made-up values
mpitest_with_values = $(mpitest_values:=.mpich) $(mpitest_values:=.openmpi)
$(mpitest_with_values): tests/mpi/values.c
tests/mpi/huge.mpich tests/mpi/huge.openmpi: tests/mpi/huge.c
tests/mpi/native.mpich tests/mpi/native.openmpi: tests/mpi/native.c
tests/mpi/results.mpich tests/mpi/results.openmpi: tests/mpi/results.c
tests/mpi/results.mpich tests/mpi/native.mpich tests/mpi/huge.mpich:
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(MPICH_CC) $(MPITEST_CFLAGS) \
		-o $@ $(top_srcdir)/$(@:.mpich=.c) $(top_srcdir)/tests/mpi/values.c -lm
tests/mpi/results.openmpi tests/mpi/native.openmpi tests/mpi/huge.openmpi:
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(OPENMPI_CC) $(MPITEST_CFLAGS) \
		-o $@ $(top_srcdir)/$(@:.openmpi=.c) $(top_srcdir)/tests/mpi/values.c -lm

tests/mpi/fixed.mpich: tests/mpi/fixed.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(MPICH_CC) $(MPITEST_CFLAGS) -o $@ $(top_srcdir)/tests/mpi/fixed.c -lm
tests/mpi/fixed.openmpi: tests/mpi/fixed.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(OPENMPI_CC) $(MPITEST_CFLAGS) -o $@ $(top_srcdir)/tests/mpi/fixed.c -lm

# what osu-patches/apply puts into an OSU tree, which finds nezha.h beside it
mpitest_osu_headers = $(top_srcdir)/osu-patches/osu_nezha.h $(top_srcdir)/pmpi/nezha.h
tests/mpi/osu_hooks.mpich: tests/mpi/osu_hooks.c $(mpitest_osu_headers)
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(MPICH_CC) $(MPITEST_CFLAGS) -iquote $(top_srcdir)/pmpi \
		-o $@ $(top_srcdir)/tests/mpi/osu_hooks.c
tests/mpi/osu_hooks.openmpi: tests/mpi/osu_hooks.c $(mpitest_osu_headers)
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(OPENMPI_CC) $(MPITEST_CFLAGS) -iquote $(top_srcdir)/pmpi \
		-o $@ $(top_srcdir)/tests/mpi/osu_hooks.c

# MPI_IN_PLACE has another type than a buffer, which newer gfortrans refuse in mpif.h programs
MPITEST_FFLAGS = -O1 -std=legacy -w
SUFFIXES += .f .f90
.f.mpich:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(MPICH_FC) $(MPITEST_FFLAGS) -o $@ $<
.f90.mpich:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(MPICH_FC) $(MPITEST_FFLAGS) -o $@ $<
.f.openmpi:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(OPENMPI_FC) $(MPITEST_FFLAGS) -o $@ $<
.f90.openmpi:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(OPENMPI_FC) $(MPITEST_FFLAGS) -o $@ $<

# a profiling tool to preload before and after Nezha
tests/mpi/tool.mpich.so: tests/mpi/tool.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(MPICH_CC) $(MPITEST_CFLAGS) -shared -fPIC \
		-o $@ $(top_srcdir)/tests/mpi/tool.c
tests/mpi/tool.openmpi.so: tests/mpi/tool.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(OPENMPI_CC) $(MPITEST_CFLAGS) -shared -fPIC \
		-o $@ $(top_srcdir)/tests/mpi/tool.c

# faults to preload, without any MPI in them
tests/mpi/nothread.so: $(top_srcdir)/tests/mpi/nothread.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -D_GNU_SOURCE= -shared -fPIC \
		-o $@ $(top_srcdir)/tests/mpi/nothread.c -ldl
# an MPI that is none of ours
tests/mpi/serial.so: $(top_srcdir)/tests/mpi/serial.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -shared -fPIC -o $@ $(top_srcdir)/tests/mpi/serial.c
tests/mpi/strange.so: $(top_srcdir)/tests/mpi/serial.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -DVERSION='"Strange MPI 1.0"' -shared -fPIC -o $@ \
		$(top_srcdir)/tests/mpi/serial.c
tests/mpi/libmpi_abi.so: $(top_srcdir)/tests/mpi/serial.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -DVERSION='"MPICH Version: 5.0"' -shared -fPIC -o $@ \
		$(top_srcdir)/tests/mpi/serial.c
# a GPU's library, as far as one is looked for
tests/mpi/libcuda.so: $(top_srcdir)/tests/mpi/gpu.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -shared -fPIC -o $@ $(top_srcdir)/tests/mpi/gpu.c

tests/mpi/nomemory.so: $(top_srcdir)/tests/mpi/nomemory.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -fno-builtin -D_GNU_SOURCE= -shared -fPIC \
		-o $@ $(top_srcdir)/tests/mpi/nomemory.c
tests/mpi/corrupt.so: $(top_srcdir)/tests/mpi/corrupt.c $(top_srcdir)/tuning/model.h $(top_srcdir)/tuning/model_run.h
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -I$(top_srcdir) -shared -fPIC \
		-o $@ $(top_srcdir)/tests/mpi/corrupt.c
tests/mpi/noshare.so: $(top_srcdir)/tests/mpi/noshare.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -D_GNU_SOURCE= -shared -fPIC \
		-o $@ $(top_srcdir)/tests/mpi/noshare.c -ldl
tests/mpi/flip.so: $(top_srcdir)/tests/mpi/flip.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -D_GNU_SOURCE= -shared -fPIC \
		-o $@ $(top_srcdir)/tests/mpi/flip.c
check_DATA += tests/mpi/corrupt.so tests/mpi/flip.so tests/mpi/libcuda.so tests/mpi/nomemory.so tests/mpi/noshare.so tests/mpi/nothread.so tests/mpi/serial.so tests/mpi/strange.so tests/mpi/libmpi_abi.so
CLEANFILES += tests/mpi/corrupt.so tests/mpi/flip.so tests/mpi/libcuda.so tests/mpi/nomemory.so tests/mpi/noshare.so tests/mpi/nothread.so tests/mpi/serial.so tests/mpi/strange.so tests/mpi/libmpi_abi.so

mpitest_mpich = $(mpitest_names:=.mpich) tests/mpi/tool.mpich.so
mpitest_openmpi = $(mpitest_names:=.openmpi) tests/mpi/tool.openmpi.so
mpitest_mpich_fortran = $(mpitest_fortran:=.mpich)
mpitest_openmpi_fortran = $(mpitest_fortran:=.openmpi)
if HAVE_MPICH_CC
check_DATA += $(mpitest_mpich)
endif
if HAVE_MPICH_FC
check_DATA += $(mpitest_mpich_fortran)
endif
if HAVE_OPENMPI_CC
check_DATA += $(mpitest_openmpi)
endif
if HAVE_OPENMPI_FC
check_DATA += $(mpitest_openmpi_fortran)
endif
CLEANFILES += $(mpitest_mpich) $(mpitest_openmpi) $(mpitest_mpich_fortran) $(mpitest_openmpi_fortran)
