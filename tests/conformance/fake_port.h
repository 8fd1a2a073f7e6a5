/* SPDX-License-Identifier: BSD-3-Clause
 * What the port of fake_verbs.h's device says of itself, as the test wants it. */
#ifndef NEZHA_TESTS_FAKE_PORT_H
#define NEZHA_TESTS_FAKE_PORT_H

#include "rails/verbs_api.h"

#define FAKE_GIDS 4

struct fake_port {
	enum ibv_port_state state;
	enum ibv_mtu mtu;
	uint16_t lid;
	unsigned char gids[FAKE_GIDS];   /* each stands for 16 such bytes */
};

/* As it is until the test says otherwise: active. */
extern const struct fake_port fake_port_good;

/* From now on.  Tells nobody: see fake_verbs_event. */
void fake_port_set(const struct fake_port *port);

/* For the table of verbs. */
int fake_port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out);
int fake_port_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *out);

#endif
