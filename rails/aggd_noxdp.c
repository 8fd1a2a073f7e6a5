/* SPDX-License-Identifier: BSD-3-Clause
 * In place of aggd_xdp.c where clang or libbpf was missing: nothing of it can be created, so nothing else is ever called. */
#include "rails/aggd_xdp.h"
#include "tuning/log.h"
#include "tuning/status.h"

const char *aggd_xdp_about(void)
{
	return "not built in (clang or libbpf was missing)";
}

int aggd_xdp_create(uint64_t memory, struct aggd_xdp **out)
{
	(void)memory, (void)out;
	nezha_error("XDP is not built into this nezha-aggd: clang or libbpf was missing");
	return NEZHA_ERR_UNSUPPORTED;
}

void aggd_xdp_destroy(struct aggd_xdp *xdp)
{
	(void)xdp;
}

int aggd_xdp_attach(struct aggd_xdp *xdp, const char *device)
{
	(void)xdp, (void)device;
	return NEZHA_ERR_UNSUPPORTED;
}

bool aggd_xdp_reserve(struct aggd_xdp *xdp, uint32_t window, uint32_t *base)
{
	(void)xdp, (void)window, (void)base;
	return false;
}

void aggd_xdp_release(struct aggd_xdp *xdp, uint32_t window, uint32_t base)
{
	(void)xdp, (void)window, (void)base;
}

bool aggd_xdp_open(struct aggd_xdp *xdp, uint64_t token, const struct nezha_xdp_session *session)
{
	(void)xdp, (void)token, (void)session;
	return false;
}

void aggd_xdp_close(struct aggd_xdp *xdp, uint64_t token)
{
	(void)xdp, (void)token;
}

bool aggd_xdp_look(struct aggd_xdp *xdp, const struct nezha_xdp_session *session, uint32_t seq,
                   struct nezha_xdp_version *out)
{
	(void)xdp, (void)session, (void)seq, (void)out;
	return false;
}

bool aggd_xdp_send(struct aggd_xdp *xdp, const void *frame, uint32_t size)
{
	(void)xdp, (void)frame, (void)size;
	return false;
}

void aggd_xdp_count(const struct aggd_xdp *xdp, struct nezha_xdp_counts *out)
{
	(void)xdp;
	*out = (struct nezha_xdp_counts){ 0 };
}

int aggd_xdp_program(const struct aggd_xdp *xdp)
{
	(void)xdp;
	return -1;
}
