/* SPDX-License-Identifier: BSD-3-Clause
 * How a vector is cut where several ranks share a node: into a piece for each carrier, a piece into batches, each of
 * which is one call over the rails, and into cells, in which it passes through the node's shared memory.  Where the calls may be
 * gradual (rails/team.h) each piece is one batch.  A pure function of what is the same on all ranks, so that all cut alike; the order
 * of folding does not depend on the batches. */
#ifndef NEZHA_RAILS_PIECES_H
#define NEZHA_RAILS_PIECES_H

#include <stdbool.h>
#include <stdint.h>

struct nezha_pieces {
	uint64_t bytes;      /* of the vector */
	uint64_t piece;      /* bytes of a piece; the last ones are shorter, or empty */
	uint64_t unit;       /* bytes: a block for each owner.  Batches but the last one are multiples of it, so that the order of folding is
	                      * that of the whole piece in one call */
	uint64_t batch;      /* bytes of the longest batch but the last one */
	int count;           /* of pieces: carriers that take part */
	uint32_t block;      /* bytes: what the ring cuts a batch into (tuning/grid.h); the plan's, or somewhat less than half of that */
	uint32_t cell;       /* bytes of a cell */
	bool gradual;        /* a piece is one batch, which is folded while it is on the rails */
	uint32_t cells;      /* of a piece; in short pieces the last ones are shorter, or empty */
};

/* Cuts `bytes` (>= 1).  `block` is the plan's; `cell` the node's, on which nothing depends that other nodes
 * have to know. */
void nezha_pieces_make(uint64_t bytes, int carriers, int nodes, uint32_t block, uint32_t cell, bool gradual,
                       struct nezha_pieces *out);

/* A range of the vector, in bytes; it may be empty. */
struct nezha_range {
	uint64_t begin, length;
};

/* Piece c (< count), its cell j (< cells), and what of it follows its first `done` bytes as one batch. */
struct nezha_range nezha_pieces_piece(const struct nezha_pieces *pieces, int c);
struct nezha_range nezha_pieces_cell(const struct nezha_pieces *pieces, int c, uint32_t j);
struct nezha_range nezha_pieces_batch(const struct nezha_pieces *pieces, int c, uint64_t done);

/* How many bytes of a batch have to be folded before its call begins. */
uint64_t nezha_pieces_first(const struct nezha_pieces *pieces, struct nezha_range batch);

#endif
