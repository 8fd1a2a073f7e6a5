# SPDX-License-Identifier: BSD-3-Clause
libnezha_core_la_SOURCES += \
	tuning/agree.c tuning/agree.h \
	tuning/bytes.c tuning/bytes.h \
	tuning/file.c tuning/file.h \
	tuning/fingerprint.c tuning/fingerprint.h \
	tuning/grid.c tuning/grid.h \
	tuning/learned.c tuning/learned.h \
	tuning/json_object.c tuning/json_object.h \
	tuning/locate.c tuning/locate.h \
	tuning/log.c tuning/log.h \
	tuning/model.c tuning/model.h tuning/model_count.c tuning/model_known.c tuning/model_known.h tuning/model_learn.c \
	tuning/model_plan.c tuning/model_plan.h tuning/model_price.c tuning/model_price.h tuning/model_run.c tuning/model_run.h \
	tuning/pause.h \
	tuning/plan.c tuning/plan.h \
	tuning/rail_set.c tuning/rail_set.h \
	tuning/rules.h \
	tuning/scales.c tuning/scales.h \
	tuning/settings.c tuning/settings.h \
	tuning/settings_values.c tuning/settings_values.h \
	tuning/status.h \
	tuning/table.c tuning/table.h \
	tuning/table_builtin.c \
	tuning/table_file.c \
	tuning/table_override.c \
	tuning/table_parse.c \
	tuning/text.h \
	tuning/trace.c tuning/trace.h tuning/trace_data.h tuning/trace_json.c \
	tuning/types.h \
	tuning/verbs_options.c tuning/verbs_options.h

# the report
libnezha_core_la_SOURCES += \
	tuning/report.c tuning/report.h tuning/report_data.h \
	tuning/report_json.c \
	tuning/json_text.c tuning/json_text.h \
	tuning/report_text.c

# nezha-info; what it does is a library of its own, so that tests can call it.
noinst_LTLIBRARIES += libnezha_info.la
libnezha_info_la_SOURCES = \
	rails/ina_ask.c rails/ina_ask.h \
	rails/nic_locate.c \
	tuning/elf.c tuning/elf.h \
	tuning/info.h \
	tuning/info_aggregators.c tuning/info_check.c tuning/info_host.c tuning/info_table.c tuning/info_verbs.c \
	tuning/intercept.c tuning/intercept.h
libnezha_info_la_CPPFLAGS = $(AM_CPPFLAGS) -DNEZHA_SANITIZE_CFLAGS='"$(SANITIZE_CFLAGS)"'
libnezha_info_la_LIBADD = libnezha_core.la $(HWLOC_LIBS)

bin_PROGRAMS += nezha-info
nezha_info_SOURCES = tuning/nezha-info.c
nezha_info_LDADD = libnezha_info.la

# nezha-tune, in the same way
noinst_LTLIBRARIES += libnezha_tune.la
libnezha_tune_la_SOURCES = \
	tuning/choose.c \
	tuning/measured.c tuning/measured.h \
	tuning/sweep.c tuning/sweep.h \
	tuning/tune.h \
	tuning/tune_arguments.c \
	tuning/tune_job.c \
	tuning/tune_scale.c \
	tuning/tune_launcher.c \
	tuning/tune_progress.c \
	tuning/tune_output.c \
	tuning/tune_store.c
libnezha_tune_la_LIBADD = libnezha_core.la

bin_PROGRAMS += nezha-tune
nezha_tune_SOURCES = tuning/nezha-tune.c tuning/tune_options.c
nezha_tune_CPPFLAGS = $(AM_CPPFLAGS) -DNEZHA_LIBEXECDIR='"$(pkglibexecdir)"'
nezha_tune_LDADD = libnezha_tune.la

dist_pkgdata_DATA += tuning/table.schema.json
