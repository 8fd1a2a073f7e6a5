/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/grid.h"

#include "tuning/status.h"

int nezha_grid_make(uint64_t bytes, uint32_t block, struct nezha_grid *out)
{
	uint64_t blocks;

	if (bytes == 0 || !nezha_block_fits(block))
		return NEZHA_ERR_INVALID;
	blocks = (bytes - 1) / block + 1;
	if (blocks > INT32_MAX)
		return NEZHA_ERR_INVALID;
	*out = (struct nezha_grid){ .bytes = bytes, .block = block, .blocks = (uint32_t)blocks };
	return NEZHA_OK;
}
