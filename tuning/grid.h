/* SPDX-License-Identifier: BSD-3-Clause
 * The grid: how a vector is cut into blocks.  A pure function of (bytes, block size), and the
 * block size comes from the plan, so all ranks cut alike and the fold order of an element never
 * depends on rails or load.  Block b is the bytes [b*block, min((b+1)*block, bytes)). */
#ifndef NEZHA_TUNING_GRID_H
#define NEZHA_TUNING_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEZHA_BLOCK_MIN (4u << 10)   /* bytes; all block sizes are multiples of this */
#define NEZHA_BLOCK_MAX (4u << 20)

/* Whether blocks may be of `block` bytes. */
static inline bool nezha_block_fits(uint64_t block)
{
	return block >= NEZHA_BLOCK_MIN && block <= NEZHA_BLOCK_MAX && block % NEZHA_BLOCK_MIN == 0;
}

struct nezha_grid {
	uint64_t bytes;   /* the vector's length */
	uint32_t block;   /* bytes of every block but the last; a multiple of NEZHA_BLOCK_MIN */
	uint32_t blocks;  /* how many blocks */
};

/* Cuts `bytes` (>= 1) into blocks of `block` bytes.  nezha_block_fits(block) must hold
 * and the number of blocks must fit 31 bits, else NEZHA_ERR_INVALID. */
int nezha_grid_make(uint64_t bytes, uint32_t block, struct nezha_grid *out);

/* Where block `b` (< grid->blocks) begins, in bytes. */
static inline uint64_t nezha_grid_offset(const struct nezha_grid *grid, uint32_t b)
{
	return (uint64_t)b * grid->block;
}

/* Bytes of block `b` (< grid->blocks). */
static inline uint32_t nezha_grid_length(const struct nezha_grid *grid, uint32_t b)
{
	uint64_t left = grid->bytes - nezha_grid_offset(grid, b);
	return left < grid->block ? (uint32_t)left : grid->block;
}

#endif
