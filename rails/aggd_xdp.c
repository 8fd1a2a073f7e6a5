/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/aggd_xdp.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tuning/log.h"
#include "tuning/status.h"

#define UNIT (2 * NEZHA_INA_WINDOW_MIN)  /* versions are given out in such */

struct aggd_xdp {
	struct bpf_object *object;
	int aggregate, beacon;                        /* programs */
	int sessions, versions, ports, counts;        /* maps */
	int links[NEZHA_XDP_PORTS];
	uint32_t link_count;
	uint32_t units;
	bool *taken;                                  /* units */
};

const char *aggd_xdp_about(void)
{
	static char text[32];

	snprintf(text, sizeof text, "with libbpf %s", libbpf_version_string() + 1);      /* v1.1 */
	return text;
}

/* ---- loading ---- */

static int say(enum libbpf_print_level level, const char *form, va_list values)
{
	char text[256];
	int length = vsnprintf(text, sizeof text, form, values);

	if (level == LIBBPF_DEBUG || length <= 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	nezha_debug("%s", text);
	return 0;
}

static int find(struct aggd_xdp *xdp)
{
	struct bpf_program *aggregate = bpf_object__find_program_by_name(xdp->object, "nezha_aggregate");
	struct bpf_program *beacon = bpf_object__find_program_by_name(xdp->object, "nezha_beacon");

	xdp->aggregate = bpf_program__fd(aggregate);
	xdp->beacon = bpf_program__fd(beacon);
	xdp->sessions = bpf_object__find_map_fd_by_name(xdp->object, "sessions");
	xdp->versions = bpf_object__find_map_fd_by_name(xdp->object, "versions");
	xdp->ports = bpf_object__find_map_fd_by_name(xdp->object, "ports");
	xdp->counts = bpf_object__find_map_fd_by_name(xdp->object, "counts");
	return xdp->aggregate < 0 || xdp->beacon < 0 || xdp->sessions < 0 || xdp->versions < 0 || xdp->ports < 0 ||
	       xdp->counts < 0;
}

static int load(struct aggd_xdp *xdp)
{
	struct bpf_map *versions;

	libbpf_set_print(say);
	xdp->object = bpf_object__open_mem(nezha_xdp_object, nezha_xdp_object_size, NULL);
	versions = xdp->object ? bpf_object__find_map_by_name(xdp->object, "versions") : NULL;
	if (!versions || bpf_map__set_max_entries(versions, xdp->units * UNIT) || bpf_object__load(xdp->object) || find(xdp)) {
		nezha_error("the XDP program cannot be loaded: %m%s", errno == EPERM || errno == EACCES ?
		            "; it takes root's rights (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON) in the first user namespace" : "");
		return NEZHA_ERR_SYSTEM;
	}
	return NEZHA_OK;
}

int aggd_xdp_create(uint64_t memory, struct aggd_xdp **out)
{
	struct aggd_xdp *xdp = calloc(1, sizeof *xdp);
	uint64_t units = memory / (UNIT * AGGD_XDP_VERSION_BYTES);
	int rc = NEZHA_ERR_NOMEM;

	if (!xdp)
		goto no_memory;
	xdp->units = units < 1 ? 1 : units > UINT16_MAX ? UINT16_MAX : (uint32_t)units;
	xdp->taken = calloc(xdp->units, sizeof *xdp->taken);
	if (!xdp->taken)
		goto no_memory;
	rc = load(xdp);
	if (rc != NEZHA_OK) {
		aggd_xdp_destroy(xdp);
		return rc;
	}
	*out = xdp;
	return NEZHA_OK;

no_memory:
	nezha_error("no memory for XDP");
	free(xdp);
	return rc;
}

void aggd_xdp_destroy(struct aggd_xdp *xdp)
{
	if (!xdp)
		return;
	for (uint32_t i = 0; i < xdp->link_count; i++)
		close(xdp->links[i]);
	bpf_object__close(xdp->object);
	free(xdp->taken);
	free(xdp);
}

int aggd_xdp_program(const struct aggd_xdp *xdp)
{
	return xdp->aggregate;
}

/* ---- devices ---- */

static const char *hint(int error)
{
	switch (error) {
	case ENODEV:
		return "; there is no such device";
	case EBUSY:
		return "; another XDP program is there";
	case EOPNOTSUPP:
	case EINVAL:
		return "; its driver has no XDP";
	case ENOSPC:
		return "; allowed are 256 devices";
	case ERANGE:
		return "; its MTU is too large for its driver's XDP";
	default:
		return "";
	}
}

int aggd_xdp_attach(struct aggd_xdp *xdp, const char *device)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = XDP_FLAGS_DRV_MODE);
	uint32_t index = if_nametoindex(device), at = xdp->link_count;
	int link = -1;

	if (at == NEZHA_XDP_PORTS)
		errno = ENOSPC;
	else if (!index)
		errno = ENODEV;
	else if (!bpf_map_update_elem(xdp->ports, &at, &index, BPF_ANY))
		link = bpf_link_create(xdp->aggregate, (int)index, BPF_XDP, &options);
	if (link < 0) {
		nezha_error("the XDP program cannot be attached to %s: %m%s", device, hint(errno));
		return NEZHA_ERR_SYSTEM;
	}
	xdp->links[xdp->link_count++] = link;
	return NEZHA_OK;
}

bool aggd_xdp_send(struct aggd_xdp *xdp, const void *frame, uint32_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = size, .repeat = 1,
	            .flags = BPF_F_TEST_XDP_LIVE_FRAMES);

	return !bpf_prog_test_run_opts(xdp->beacon, &options);
}

/* ---- sessions ---- */

bool aggd_xdp_reserve(struct aggd_xdp *xdp, uint32_t window, uint32_t *base)
{
	uint32_t want = 2 * window / UNIT, run = 0;

	for (uint32_t i = 0; i < xdp->units; i++) {
		run = xdp->taken[i] ? 0 : run + 1;
		if (run == want) {
			memset(&xdp->taken[i + 1 - want], true, want);
			*base = (i + 1 - want) * UNIT;
			return true;
		}
	}
	return false;
}

void aggd_xdp_release(struct aggd_xdp *xdp, uint32_t window, uint32_t base)
{
	memset(&xdp->taken[base / UNIT], false, 2 * window / UNIT);
}

/* The versions belong to the token from now on: what still runs with an older one leaves them alone. */
static bool empty_versions(struct aggd_xdp *xdp, uint64_t token, const struct nezha_xdp_session *session)
{
	struct nezha_xdp_version version = { .header.token = token };

	for (uint32_t at = session->base; at < session->base + 2 * session->window; at++)
		if (bpf_map_update_elem(xdp->versions, &at, &version, BPF_F_LOCK))
			return false;
	return true;
}

bool aggd_xdp_open(struct aggd_xdp *xdp, uint64_t token, const struct nezha_xdp_session *session)
{
	return empty_versions(xdp, token, session) && !bpf_map_update_elem(xdp->sessions, &token, session, BPF_NOEXIST);
}

void aggd_xdp_close(struct aggd_xdp *xdp, uint64_t token)
{
	bpf_map_delete_elem(xdp->sessions, &token);
}

bool aggd_xdp_look(struct aggd_xdp *xdp, const struct nezha_xdp_session *session, uint32_t seq,
                   struct nezha_xdp_version *out)
{
	uint32_t at = session->base + (seq & (2 * session->window - 1));

	return !bpf_map_lookup_elem_flags(xdp->versions, &at, out, BPF_F_LOCK);
}

void aggd_xdp_count(const struct aggd_xdp *xdp, struct nezha_xdp_counts *out)
{
	int cores = libbpf_num_possible_cpus();
	struct nezha_xdp_counts *each = cores > 0 ? calloc((size_t)cores, sizeof *each) : NULL;
	uint32_t at = 0;

	memset(out, 0, sizeof *out);
	if (each && !bpf_map_lookup_elem(xdp->counts, &at, each))
		for (int i = 0; i < cores; i++) {
			out->packets += each[i].packets;
			out->bytes += each[i].bytes;
			out->results += each[i].results;
			out->again += each[i].again;
			out->outside += each[i].outside;
			out->passed += each[i].passed;
		}
	free(each);
}
