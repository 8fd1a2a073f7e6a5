/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/pieces.h"

#include "tuning/grid.h"

#define ALIGN NEZHA_BLOCK_MIN       /* of pieces, which cells and batches are multiples of, too */
#define FIRST (128u << 10)          /* bytes that the rails wait for at the beginning of a piece, or a block for each owner: not long */
#define WHOLE_MOST (6 * FIRST)      /* a shorter piece is one batch */
#define GROWTH 2                    /* a batch is so many times what went before it: it is folded in the meantime */
#define MOST_PART 4                 /* ... but at most 1/4 of a piece */
#define MOST_LEAST (1u << 20)       /* ... if that is not less than this */
#define BLOCKS_MANY 8               /* of a piece, for each owner: shorter ones come around sooner, and the end is shorter, */
#define HALF_LEAST (64u << 10)      /* bytes: ... but not those that come in a few packets anyway */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Each ring shall have a block for each of its owners. */
static int count_pieces(uint64_t bytes, int carriers, int nodes, uint32_t block)
{
	uint64_t most = bytes / ((uint64_t)nodes * block);

	return most < 1 ? 1 : (int)least(most, (uint64_t)carriers);
}

/* Half of the plan's, and a little less: a record and 64 KiB are more than a packet that the kernel hands to a network card (a multiple of
 * the segments, up to 64 KiB), and so would be one and a small one. */
static uint32_t shorter(uint32_t block)
{
	uint32_t half = block / 2;

	return half >= HALF_LEAST && half % NEZHA_BLOCK_MIN == 0 ? half - NEZHA_BLOCK_MIN : block;
}

void nezha_pieces_make(uint64_t bytes, int carriers, int nodes, uint32_t block, uint32_t cell, bool gradual,
                       struct nezha_pieces *out)
{
	struct nezha_pieces p = { .bytes = bytes, .block = block, .cell = cell, .gradual = gradual };

	p.count = count_pieces(bytes, carriers, nodes, block);
	p.piece = round_up((bytes + (uint64_t)p.count - 1) / (uint64_t)p.count, ALIGN);
	p.cells = (uint32_t)((p.piece + cell - 1) / cell);
	if (p.piece / block >= BLOCKS_MANY * (uint64_t)nodes)
		p.block = shorter(block);
	p.unit = (uint64_t)nodes * p.block;
	p.batch = p.piece / MOST_PART;
	if (p.batch < MOST_LEAST)
		p.batch = MOST_LEAST;
	p.batch = round_up(p.batch, p.unit);
	*out = p;
}

struct nezha_range nezha_pieces_piece(const struct nezha_pieces *pieces, int c)
{
	uint64_t begin = least((uint64_t)c * pieces->piece, pieces->bytes);

	return (struct nezha_range){ begin, least(pieces->piece, pieces->bytes - begin) };
}

static struct nezha_range part(struct nezha_range whole, uint64_t from, uint64_t length)
{
	from = least(from, whole.length);
	return (struct nezha_range){ whole.begin + from, least(length, whole.length - from) };
}

struct nezha_range nezha_pieces_cell(const struct nezha_pieces *pieces, int c, uint32_t j)
{
	return part(nezha_pieces_piece(pieces, c), (uint64_t)j * pieces->cell, pieces->cell);
}

struct nezha_range nezha_pieces_batch(const struct nezha_pieces *pieces, int c, uint64_t done)
{
	struct nezha_range piece = nezha_pieces_piece(pieces, c);
	uint64_t length = done ? least(GROWTH * done, pieces->batch) : round_up(FIRST, pieces->unit);

	/* What would be left is too little for a call of its own. */
	if (pieces->gradual || piece.length <= WHOLE_MOST || 3 * length >= 2 * (piece.length - done))
		length = piece.length - done;
	return part(piece, done, length);
}

uint64_t nezha_pieces_first(const struct nezha_pieces *pieces, struct nezha_range batch)
{
	return pieces->gradual ? least(batch.length, FIRST) : batch.length;
}
