/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/conformance/fake_port.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

const struct fake_port fake_port_good = { .state = IBV_PORT_ACTIVE, .mtu = IBV_MTU_1024, .gids = { 0, 1, 2, 3 } };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_port now = { .state = IBV_PORT_ACTIVE, .mtu = IBV_MTU_1024, .gids = { 0, 1, 2, 3 } };

void fake_port_set(const struct fake_port *port)
{
	pthread_mutex_lock(&lock);
	now = *port;
	pthread_mutex_unlock(&lock);
}

int fake_port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out)
{
	(void)context;
	pthread_mutex_lock(&lock);
	out->state = now.state;
	out->active_mtu = now.mtu;
	out->lid = now.lid;
	out->gid_tbl_len = FAKE_GIDS;
	pthread_mutex_unlock(&lock);
	return port == 1 ? 0 : EINVAL;
}

int fake_port_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *out)
{
	(void)context, (void)port;
	if (index < 0 || index >= FAKE_GIDS)
		return EINVAL;
	pthread_mutex_lock(&lock);
	memset(out, now.gids[index], sizeof *out);
	pthread_mutex_unlock(&lock);
	return 0;
}
