/* SPDX-License-Identifier: BSD-3-Clause
 * What a model knows well enough to act on.  For the model's own files (tuning/model*.c); k is a size class.  Pure. */
#ifndef NEZHA_TUNING_MODEL_KNOWN_H
#define NEZHA_TUNING_MODEL_KNOWN_H

#include "tuning/model.h"

#define NEZHA_MODEL_TIE_PERCENT 2  /* a difference that is none, when there is no decision yet */
#define NEZHA_MODEL_MIX_TRIES 4    /* calls that a mix gets to keep what it promises */
#define NEZHA_MODEL_SETTLE 1       /* calls of a try in a small class before those that are measured */

static inline bool nezha_model_is_small(uint32_t k)
{
	return k < NEZHA_MODEL_SMALL;
}

/* The calls of a try of another way than the chosen one. */
static inline uint32_t nezha_model_try_calls(uint32_t k)
{
	return nezha_model_is_small(k) ? NEZHA_MODEL_SETTLE + NEZHA_RUN_CALLS : 1;
}

/* What a call of `choice` brings news of. */
static inline struct nezha_model_cost *nezha_model_cost_of(struct nezha_model_class *class, const struct nezha_choice *choice)
{
	return &class->cost[choice->carrier ? NEZHA_ALG_NATIVE : choice->alg];
}

/* Whether the library was seen to use another network, in whichever class: in small ones it cannot be seen. */
bool nezha_model_is_apart(const struct nezha_model *model);

/* Whether the library may be waiting for a rail that is lost. */
bool nezha_model_is_shy(const struct nezha_model *model);

/* Whether the library's only sample of a small class may be a call that opened its connections: slower than the rails, but not far,
 * it gets a second one. */
bool nezha_model_is_cold_library(const struct nezha_model *model, uint32_t k);

/* Whether there is enough for a decision. */
bool nezha_model_is_settled(const struct nezha_model *model, uint32_t k);

/* Whether the next call is one of a try. */
bool nezha_model_is_retry(const struct nezha_model *model, uint32_t k);

/* Whether something of the class, for which the library was chosen, is worth a call to carry it. */
bool nezha_model_is_pending(const struct nezha_model *model, uint32_t k);

/* What is tried in place of the chosen way. */
enum nezha_algorithm nezha_model_alternative(const struct nezha_model *model, uint32_t k);

#endif
