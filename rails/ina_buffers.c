/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina_buffers.h"

#include <stdlib.h>

#include "tuning/status.h"

struct nezha_ina_buffers {
	uint32_t held, spare;            /* of the buffers that are held at most `spare`: so there is one free for each to be posted */
	struct nezha_ina_buffer *free;   /* the one that was used last first: it is in the processor's cache */
	char *memory;
	struct nezha_ina_buffer all[];
};

static void give_back(struct nezha_ina_buffer *buffer)
{
	buffer->next = buffer->of->free;
	buffer->of->free = buffer;
}

int nezha_ina_buffers_create(uint32_t posted, uint32_t spare, size_t bytes, struct nezha_ina_buffers **out)
{
	size_t count = (size_t)posted + spare;
	struct nezha_ina_buffers *buffers = calloc(1, sizeof *buffers + count * sizeof buffers->all[0]);

	if (!buffers)
		return NEZHA_ERR_NOMEM;
	buffers->memory = malloc(count * bytes);
	if (!buffers->memory) {
		free(buffers);
		return NEZHA_ERR_NOMEM;
	}
	buffers->spare = spare;
	for (size_t i = count; i-- > 0;) {
		buffers->all[i].of = buffers;
		buffers->all[i].data = buffers->memory + i * bytes;
		give_back(&buffers->all[i]);
	}
	*out = buffers;
	return NEZHA_OK;
}

void nezha_ina_buffers_destroy(struct nezha_ina_buffers *buffers)
{
	if (buffers)
		free(buffers->memory);
	free(buffers);
}

struct nezha_ina_buffer *nezha_ina_buffers_post(struct nezha_ina_buffers *buffers, struct nezha_ina_buffer *was)
{
	struct nezha_ina_buffer *buffer;

	if (was && !was->holders)
		return was;
	if (was)
		was->posted = false;
	buffer = buffers->free;
	buffers->free = buffer->next;
	buffer->posted = true;
	return buffer;
}

bool nezha_ina_buffer_hold(struct nezha_ina_buffer *buffer)
{
	if (!buffer->holders && buffer->of->held == buffer->of->spare)
		return false;
	if (!buffer->holders++)
		buffer->of->held++;
	return true;
}

void nezha_ina_buffer_release(struct nezha_ina_buffer *buffer)
{
	if (--buffer->holders)
		return;
	buffer->of->held--;
	if (!buffer->posted)
		give_back(buffer);
}
