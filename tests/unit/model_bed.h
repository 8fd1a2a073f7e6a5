/* SPDX-License-Identifier: BSD-3-Clause
 * A communicator that learns, for the tests of the model (tuning/model.h). */
#ifndef NEZHA_TESTS_MODEL_BED_H
#define NEZHA_TESTS_MODEL_BED_H

#include "tuning/model.h"

#define K UINT64_C(1024)
#define M (K * K)
#define S (512 * K)                 /* too small for a mix */
#define BLOCK (64 * K)

/* A communicator of one rank, for which folding a note changes nothing. */
struct bed {
	struct nezha_model model;
	bool one_network;                 /* library and rails use the same: at once they hold each other up */
	bool busy;                        /* and that can be seen */
	unsigned nonblocking;             /* the library's bytes in pieces take so many per cent of its blocking call; 0: as long */
	unsigned held_up;                 /* the library's part of a mix takes so many times as long; 0: it is not held up */
	uint64_t start;                   /* ns that the rails need for any size */
	uint64_t spent, least;            /* ns, and what the cheaper way would have taken each time */
	bool lost;                        /* a rail is */
	int calls[NEZHA_ALG_COUNT], carriers, notes;
	struct nezha_choice last;
};

static inline uint64_t share_of(uint64_t ns, uint64_t part, uint64_t bytes)
{
	return (uint64_t)((double)ns * (double)part / (double)bytes);
}

static inline enum nezha_algorithm call(struct bed *bed, uint64_t bytes, uint64_t native, uint64_t rails)
{
	struct nezha_choice choice = nezha_model_choose(&bed->model, bytes, BLOCK);
	struct nezha_model_times times = {
		.native = share_of(native, choice.native, bytes),
		.rails = choice.native < bytes ? bed->start + share_of(rails, bytes - choice.native, bytes) : 0,
		.idle = !bed->busy,
	};
	uint64_t note[NEZHA_NOTE_VALUES];

	if (choice.nonblocking && bed->nonblocking)
		times.native = times.native * bed->nonblocking / 100;
	if (choice.alg == NEZHA_ALG_MIX && bed->held_up)
		times.native *= bed->held_up;
	if (bed->one_network && choice.alg == NEZHA_ALG_MIX)
		times.native = times.rails = times.native + times.rails;
	if (choice.alg != NEZHA_ALG_NATIVE && nezha_model_has_note(&bed->model)) {
		nezha_model_note(&bed->model, !bed->lost, note);
		nezha_model_learn(&bed->model, note);
		bed->notes++;
	}
	nezha_model_count(&bed->model, bytes, &choice, &times);
	bed->spent += times.native > times.rails ? times.native : times.rails;
	bed->least += native < rails ? native : rails;
	bed->calls[choice.alg]++;
	bed->carriers += choice.carrier;
	bed->last = choice;
	return choice.alg;
}

/* A call of a communicator of two ranks, of which each has its own times; both hold the same model after it. */
static inline struct nezha_choice call_of_two(struct nezha_model models[2], uint64_t bytes, const uint64_t native[2],
                                              const uint64_t rails[2])
{
	struct nezha_choice choice = nezha_model_choose(&models[0], bytes, BLOCK);
	uint64_t notes[2][NEZHA_NOTE_VALUES];
	bool noted = choice.alg != NEZHA_ALG_NATIVE && nezha_model_has_note(&models[0]);

	for (int r = 0; r < 2 && noted; r++)
		nezha_model_note(&models[r], true, notes[r]);
	for (int v = 0; noted && v < NEZHA_NOTE_VALUES; v++)
		notes[0][v] = notes[1][v] < notes[0][v] ? notes[1][v] : notes[0][v];
	for (int r = 0; r < 2; r++) {
		struct nezha_model_times times = { .native = choice.native ? native[r] : 0,
		                                   .rails = choice.native < bytes ? rails[r] : 0 };

		if (noted)
			nezha_model_learn(&models[r], notes[0]);
		nezha_model_count(&models[r], bytes, &choice, &times);
	}
	return choice;
}

#endif
