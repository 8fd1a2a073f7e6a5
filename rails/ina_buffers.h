/* SPDX-License-Identifier: BSD-3-Clause
 * The buffers that an aggregator receives packets into.  What comes before its turn may stay where it came, so that it is not
 * copied: it holds its buffer, and another one is posted for it.  Pure: no sockets. */
#ifndef NEZHA_RAILS_INA_BUFFERS_H
#define NEZHA_RAILS_INA_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nezha_ina_buffers;

struct nezha_ina_buffer {
	char *data;
	struct nezha_ina_buffers *of;
	uint32_t holders;                /* what of it waits for its turn */
	bool posted;                     /* the next packets may come into it, when nothing holds it */
	struct nezha_ina_buffer *next;   /* of those that are free */
};

/* posted: how many packets may come into at a time; spare: how many may be held besides; bytes: of each.  Memory is taken as it is
 * first used.  NEZHA_ERR_NOMEM. */
int nezha_ina_buffers_create(uint32_t posted, uint32_t spare, size_t bytes, struct nezha_ina_buffers **out);

/* What is held is so no longer; whoever held it does not release it. */
void nezha_ina_buffers_destroy(struct nezha_ina_buffers *buffers);      /* NULL is allowed */

/* A buffer to be posted: `was`, if nothing holds it, or else another.  NULL, for the first time of each: a free one. */
struct nezha_ina_buffer *nezha_ina_buffers_post(struct nezha_ina_buffers *buffers, struct nezha_ina_buffer *was);

/* Something in the buffer, which is posted or held, waits.  false: as many buffers as may be are held, so it has to be copied. */
bool nezha_ina_buffer_hold(struct nezha_ina_buffer *buffer);
void nezha_ina_buffer_release(struct nezha_ina_buffer *buffer);

#endif
