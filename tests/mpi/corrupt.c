/* SPDX-License-Identifier: BSD-3-Clause
 * A fault to preload: on rank 1 the memory for a communicator's model is not all zero.  The changed value decides
 * nothing for vectors of less than 128 TiB, so nothing is seen of it but by those who compare. */
#include <stdlib.h>
#include <string.h>

#include "tuning/model.h"

void *__libc_calloc(size_t count, size_t size);

static int is_rank_1(void)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *rank = getenv(names[i]);

		if (rank)
			return !strcmp(rank, "1");
	}
	return 0;
}

void *calloc(size_t count, size_t size)
{
	struct nezha_model *model = __libc_calloc(count, size);

	if (model && count == 1 && size == sizeof(*model) && is_rank_1())
		model->classes[NEZHA_MODEL_CLASSES - 1].calls = 1;
	return model;
}
