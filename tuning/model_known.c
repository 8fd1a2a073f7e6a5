/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/model_known.h"

#include "tuning/model_price.h"

#define CLOSE_PERCENT 20        /* a difference that one sample does not show */
#define FAR_SMALL 20            /* times as slow: in a small class one call is no doubt only then, for a job's first ones may be held up; */
#define FAR_GUESSED 4           /* ... nor in a larger one while the rails share by a guess */

bool nezha_model_is_apart(const struct nezha_model *model)
{
	for (uint32_t k = 0; k < NEZHA_MODEL_CLASSES; k++)
		if (model->classes[k].apart)
			return true;
	return false;
}

bool nezha_model_is_shy(const struct nezha_model *model)
{
	return model->lost && !nezha_model_is_apart(model);
}

bool nezha_model_is_cold_library(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];
	uint64_t native = nezha_price_of(class, NEZHA_ALG_NATIVE), rails = nezha_price_of(class, NEZHA_ALG_RING);

	return nezha_model_is_small(k) && class->cost[NEZHA_ALG_NATIVE].count == 1 && rails && native > rails && native < FAR_SMALL * rails;
}

/* Samples of the rails for a decision against them.  Where the library's first call was held up theirs may have been, too. */
static uint32_t least_of_rails(const struct nezha_model_class *class, uint32_t k)
{
	return nezha_model_is_small(k) && class->cost[NEZHA_ALG_NATIVE].count > 1 ? 3 : 2;
}

/* The rails' first call of a class may be cold, and is not held against them
 * unless they were far slower. */
bool nezha_model_is_settled(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];
	uint64_t native = nezha_price_of(class, NEZHA_ALG_NATIVE), rails = nezha_price_of(class, NEZHA_ALG_RING);
	uint64_t far = nezha_model_is_small(k) ? FAR_SMALL : model->guesses ? FAR_GUESSED : NEZHA_PRICE_FAR;

	if (!class->cost[NEZHA_ALG_RING].tried && nezha_price_far_slower(model, k) == NEZHA_ALG_RING)
		return native;
	if (class->cost[NEZHA_ALG_NATIVE].by_run || class->cost[NEZHA_ALG_RING].by_run)     /* there was enough before them */
		return true;
	if (nezha_model_is_cold_library(model, k))
		return false;
	return native && rails && (class->cost[NEZHA_ALG_RING].count >= least_of_rails(class, k) || rails > far * native ||
	                           nezha_price_is_cheaper(rails, native, NEZHA_MODEL_TIE_PERCENT));
}

enum nezha_algorithm nezha_model_alternative(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];

	if (class->claim)
		return NEZHA_ALG_NATIVE;
	if (class->best == NEZHA_ALG_MIX)
		return nezha_price_best_alone(class);
	if (nezha_price_mix_pays(model, k))
		return NEZHA_ALG_MIX;
	return class->best == NEZHA_ALG_NATIVE ? NEZHA_ALG_RING : NEZHA_ALG_NATIVE;
}

/* The counters may wrap. */
bool nezha_model_is_retry(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];

	/* Where the library is the chosen one, it is the rails that are tried, and only their calls tell that a lost one is back. */
	return (int32_t)(class->calls - class->retry_at) >= 0 && (class->best == NEZHA_ALG_NATIVE || !nezha_model_is_shy(model));
}

/* The library was found faster, hardly so, by one or two samples: either may have been a lucky one.  (In a small class a run follows.) */
static bool is_close(const struct nezha_model_class *class, uint32_t k)
{
	return !nezha_model_is_small(k) && class->cost[NEZHA_ALG_NATIVE].count < NEZHA_MODEL_SAMPLES &&
	       !nezha_price_is_cheaper(nezha_price_of(class, NEZHA_ALG_NATIVE), nezha_price_of(class, NEZHA_ALG_RING),
	                               CLOSE_PERCENT);
}

/* Where the carrier is no mix, only what the rails were tried for, or what makes a close decision a safe one. */
bool nezha_model_is_pending(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];
	bool few = class->cost[NEZHA_ALG_NATIVE].count < NEZHA_MODEL_SAMPLES;
	bool all = (k >= NEZHA_PRICE_MIX_LEAST && few) || is_close(class, k);

	for (uint32_t i = 0; i < model->pending_count; i++)
		if (nezha_price_class(model->pending[i].bytes) == k && (all || model->pending[i].choice.alg != NEZHA_ALG_NATIVE))
			return true;
	return false;
}
