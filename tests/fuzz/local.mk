# SPDX-License-Identifier: BSD-3-Clause
# A fuzz target is fuzz_NAME.c with LLVMFuzzerTestOneInput and a folder corpus/NAME.  `make check` links it with
# replay.c, which feeds it the corpus and a fixed number of seeded mutations; --enable-fuzz links it with libFuzzer too:
# tests/fuzz/fuzz_NAME -max_total_time=600 DIR-FOR-NEW-INPUTS $(srcdir)/tests/fuzz/corpus/NAME, or make check-fuzz
fuzz_replays = tests/fuzz/replay_table tests/fuzz/replay_override tests/fuzz/replay_settings \
	tests/fuzz/replay_elf tests/fuzz/replay_rails tests/fuzz/replay_hello tests/fuzz/replay_wire tests/fuzz/replay_ina
tests_fuzz_replay_table_SOURCES = tests/fuzz/fuzz_table.c tests/fuzz/replay.c
tests_fuzz_replay_override_SOURCES = tests/fuzz/fuzz_override.c tests/fuzz/replay.c
tests_fuzz_replay_settings_SOURCES = tests/fuzz/fuzz_settings.c tests/fuzz/replay.c
tests_fuzz_replay_elf_SOURCES = tests/fuzz/fuzz_elf.c tests/fuzz/replay.c
tests_fuzz_replay_elf_LDADD = libnezha_info.la
tests_fuzz_replay_rails_SOURCES = tests/fuzz/fuzz_rails.c tests/fuzz/replay.c
tests_fuzz_replay_hello_SOURCES = tests/fuzz/fuzz_hello.c tests/fuzz/replay.c
tests_fuzz_replay_wire_SOURCES = tests/fuzz/fuzz_wire.c tests/fuzz/replay.c
tests_fuzz_replay_ina_SOURCES = tests/fuzz/fuzz_ina.c tests/fuzz/replay.c
tests_fuzz_replay_ina_LDADD = libnezha_aggd.la
check_PROGRAMS += $(fuzz_replays)
TESTS += $(fuzz_replays)

if ENABLE_FUZZ
fuzz_targets = $(fuzz_replays:tests/fuzz/replay_%=tests/fuzz/fuzz_%)
noinst_PROGRAMS += tests/fuzz/fuzz_table tests/fuzz/fuzz_override tests/fuzz/fuzz_settings \
	tests/fuzz/fuzz_elf tests/fuzz/fuzz_rails tests/fuzz/fuzz_hello tests/fuzz/fuzz_wire tests/fuzz/fuzz_ina
endif
tests_fuzz_fuzz_table_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_override_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_settings_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_elf_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_elf_LDADD = libnezha_info.la
tests_fuzz_fuzz_rails_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_hello_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_wire_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_ina_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_ina_LDADD = libnezha_aggd.la

EXTRA_DIST += tests/fuzz/corpus tests/fuzz/fuzz.h tests/fuzz/campaign

# so many executions in all, spread over the targets; goes on where it was left: make check-fuzz RUNS=n FUZZ="options"
RUNS = 100000
check-fuzz:
if ENABLE_FUZZ
	$(MAKE) $(AM_MAKEFLAGS) $(fuzz_targets)
	abs_top_srcdir='$(abs_top_srcdir)' abs_top_builddir='$(abs_top_builddir)' \
		$(PYTHON3) $(top_srcdir)/tests/fuzz/campaign --runs $(RUNS) $(FUZZ)
else
	@echo "check-fuzz needs a build of its own: configure CC=clang --enable-fuzz" >&2; exit 1
endif
.PHONY: check-fuzz
