/* SPDX-License-Identifier: BSD-3-Clause
 * A build without libibverbs: no port can be opened, so nothing else is ever called. */
#include <stdlib.h>

#include "rails/verbs.h"
#include "tuning/log.h"
#include "tuning/status.h"

const struct nezha_rail_ops nezha_verbs_rail = { .name = "verbs" };

bool nezha_verbs_built(void)
{
	return false;
}

int nezha_verbs_open(const struct nezha_verbs_port *port, const struct nezha_verbs_options *options,
                     struct nezha_verbs_memory *memory, struct nezha_verbs_device **out)
{
	(void)options, (void)memory, (void)out;
	nezha_warn("verbs rail %s:%u is left out: this Nezha was built without libibverbs", port->device, port->port);
	return NEZHA_ERR_UNSUPPORTED;
}

void nezha_verbs_close(struct nezha_verbs_device *device)
{
	(void)device;
}

int nezha_verbs_end_create(struct nezha_verbs_device *device, bool sender, struct nezha_verbs_end **out)
{
	(void)device, (void)sender, (void)out;
	return NEZHA_ERR_UNSUPPORTED;
}

void nezha_verbs_end_offer(const struct nezha_verbs_end *end, struct nezha_verbs_offer *out)
{
	(void)end, (void)out;
}

int nezha_verbs_end_connect(struct nezha_verbs_end *end, const struct nezha_verbs_offer *peer)
{
	(void)end, (void)peer;
	return NEZHA_ERR_UNSUPPORTED;
}

const char *nezha_verbs_why(const struct nezha_verbs_device *device)
{
	(void)device;
	return "";
}

int nezha_verbs_end_prove(struct nezha_verbs_end *end)
{
	(void)end;
	return NEZHA_ERR_UNSUPPORTED;
}

int nezha_verbs_end_proved(struct nezha_verbs_end *end)
{
	(void)end;
	return NEZHA_ERR_UNSUPPORTED;
}

int nezha_verbs_end_take_proof(struct nezha_verbs_end *end)
{
	(void)end;
	return NEZHA_ERR_UNSUPPORTED;
}

int nezha_verbs_end_events(const struct nezha_verbs_end *end)
{
	(void)end;
	return -1;
}

void nezha_verbs_end_destroy(struct nezha_verbs_end *end)
{
	(void)end;
}

void nezha_verbs_bury(struct nezha_verbs_device *device, struct nezha_engine *engine)
{
	(void)device, (void)engine;
}

int nezha_verbs_watch(const struct nezha_verbs_device *device)
{
	(void)device;
	return -1;
}

enum nezha_verbs_event nezha_verbs_event(struct nezha_verbs_device *device)
{
	(void)device;
	return NEZHA_VERBS_NOTHING;
}

bool nezha_verbs_usable(const struct nezha_verbs_device *device)
{
	(void)device;
	return false;
}

uint64_t nezha_verbs_revive(struct nezha_verbs_device *device, uint64_t now, bool *back)
{
	(void)device, (void)now, (void)back;
	return UINT64_MAX;
}
