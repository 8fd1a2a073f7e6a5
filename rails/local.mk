# SPDX-License-Identifier: BSD-3-Clause
# the engine
libnezha_core_la_SOURCES += \
	rails/ack_delay.c rails/ack_delay.h rails/allreduce.c rails/await.c rails/await.h rails/backward.c rails/bound.c rails/bound.h rails/breakdown.c rails/breakdown.h rails/call.c rails/call.h rails/carrier.c rails/carrier.h rails/clock.h rails/collective.c rails/collective.h \
	rails/contact.c rails/contact.h rails/contact_control.c rails/contact_control.h rails/crc32c.c rails/crc32c.h rails/damping.c rails/damping.h rails/deal.c rails/deal.h \
	rails/departures.c rails/departures.h \
	rails/door.c rails/door.h rails/early.c rails/early.h \
	rails/engine.c rails/engine.h rails/estimator.c rails/estimator.h rails/event.c rails/event.h rails/fairlock.c rails/fairlock.h \
	rails/fingerprint.c rails/fingerprint.h rails/forward.c rails/gather.c rails/gather.h rails/grants.c rails/hello.c rails/hello.h rails/host.c rails/host.h \
	rails/inlink.c rails/inlink.h rails/lack.h rails/landing.c rails/landing.h rails/lend.c rails/lend.h rails/link.c rails/link.h rails/loop.c \
	rails/overdue.c rails/overdue.h rails/pace.h rails/path_sample.h rails/policy.c rails/policy.h rails/probe.c rails/probe.h rails/probing.c rails/probing.h rails/rail.h rails/recovery.c rails/regain.c rails/regain.h \
	rails/service.c rails/service.h \
	rails/share.c rails/share.h rails/split.c rails/split.h rails/siege.c rails/siege.h \
	rails/sieve.c rails/sieve.h rails/stream.c rails/strangers.c rails/strangers.h rails/tcp.c \
	rails/team.c rails/team.h rails/traffic.c rails/wire.c rails/wire.h

# the verbs rail; its ports are known without libibverbs
libnezha_core_la_SOURCES += \
	rails/contact_verbs.c rails/contact_verbs.h rails/service_verbs.c rails/service_verbs.h rails/verbs.h \
	rails/verbs_message.c rails/verbs_message.h rails/verbs_offer.c rails/verbs_offer.h rails/verbs_port.c rails/verbs_port.h
if HAVE_VERBS
libnezha_core_la_SOURCES += \
	rails/verbs.c rails/verbs_api.c rails/verbs_api.h rails/verbs_device.c rails/verbs_end.c rails/verbs_end.h \
	rails/verbs_make.c rails/verbs_proof.c
else
libnezha_core_la_SOURCES += rails/verbs_none.c
endif

# several ranks on a node
libnezha_core_la_SOURCES += \
	rails/hierarchy.c rails/hierarchy.h rails/node.c rails/node.h rails/nodecall.c rails/nodecall.h rails/past.c rails/past.h \
	rails/pieces.c rails/pieces.h rails/place.c rails/place.h

# the aggregator: what it and its ranks have in common
libnezha_core_la_SOURCES += \
	rails/ina_address.c rails/ina_address.h rails/ina_run.c rails/ina_run.h rails/ina_wire.c rails/ina_wire.h

# the rail that uses it
libnezha_core_la_SOURCES += \
	rails/fixed.c rails/fixed.h rails/ina.c rails/ina.h rails/ina_fixed.c rails/ina_fixed.h rails/ina_io.c rails/ina_session.c \
	rails/ina_window.c rails/ina_window.h

# the rail of switches with SHARP
libnezha_core_la_SOURCES += \
	rails/sharp.c rails/sharp.h rails/sharp_api.c rails/sharp_api.h rails/sharp_aside.c rails/sharp_aside.h \
	rails/sharp_exchange.c rails/sharp_exchange.h \
	rails/sharp_open.c

# nezha-aggd; what it does is a library of its own, so that tests can run it in a thread
noinst_LTLIBRARIES += libnezha_aggd.la
libnezha_aggd_la_SOURCES = \
	rails/aggd.c rails/aggd.h rails/aggd_control.c rails/aggd_data.c rails/aggd_offload.c rails/aggd_send.c \
	rails/aggd_session.c rails/aggd_shun.c rails/aggd_shun.h rails/aggd_state.h rails/aggd_xdp.h \
	rails/ina_buffers.c rails/ina_buffers.h rails/ina_slots.c rails/ina_slots.h rails/ina_xdp.h
libnezha_aggd_la_LIBADD = libnezha_core.la

# its XDP program, which lies within the daemon
xdp_sources = rails/ina_xdp.bpf.c rails/ina_xdp_fold.h
EXTRA_DIST += $(xdp_sources)
if HAVE_XDP
libnezha_aggd_la_SOURCES += rails/aggd_xdp.c
nodist_libnezha_aggd_la_SOURCES = rails/ina_xdp_object.c
libnezha_aggd_la_CFLAGS = $(AM_CFLAGS) $(BPF_CFLAGS)
libnezha_aggd_la_LIBADD += $(BPF_LIBS)
rails/ina_xdp_object.c: rails/ina_xdp.bpf.o
	$(AM_V_GEN){ echo '#include "rails/aggd_xdp.h"'; echo 'const unsigned char nezha_xdp_object[] = {'; \
		od -An -v -tu1 rails/ina_xdp.bpf.o | $(SED) 's/[0-9][0-9]*/&,/g'; \
		echo '};'; echo 'const size_t nezha_xdp_object_size = sizeof nezha_xdp_object;'; } >$@
rails/ina_xdp.bpf.o: $(xdp_sources) rails/ina_xdp.h rails/ina_wire.h tuning/types.h
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(CLANG) $(BPF_TARGET_CFLAGS) $(WARN_CFLAGS) -I$(top_srcdir) \
		-c $(top_srcdir)/rails/ina_xdp.bpf.c -o $@
CLEANFILES += rails/ina_xdp.bpf.o rails/ina_xdp_object.c
else
libnezha_aggd_la_SOURCES += rails/aggd_noxdp.c
endif

bin_PROGRAMS += nezha-aggd
nezha_aggd_SOURCES = rails/nezha-aggd.c
nezha_aggd_LDADD = libnezha_aggd.la

# the NIC selector
libnezha_core_la_SOURCES += \
	rails/nic.h \
	rails/nic_class.c rails/nic_class.h \
	rails/nic_kernel.c rails/nic_kernel.h \
	rails/nic_list.c \
	rails/nic_select.c \
	rails/nic_spec.c rails/nic_spec.h

# The reduction kernels have flags of their own: the bits of a fold must not depend on the machine.
noinst_LTLIBRARIES += libnezha_reduce.la
libnezha_reduce_la_SOURCES = rails/reduce.c rails/reduce.h rails/reduce_loops.h
libnezha_reduce_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
libnezha_core_la_LIBADD += libnezha_reduce.la
