/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/model.h"

#include "tuning/model_known.h"
#include "tuning/model_plan.h"
#include "tuning/model_price.h"

#define LOOKS 2                 /* times of the library that are learnt with a look at the rails (some 100 us), */
#define LOOK_MOST 30            /* up to this class: the interfaces' counters have 32 bits */

static struct nezha_choice choice_of(enum nezha_algorithm alg, uint64_t bytes)
{
	return (struct nezha_choice){ .alg = alg, .native = alg == NEZHA_ALG_NATIVE ? bytes : 0 };
}

/* A call that mostly is the library's, and brings what is pending. */
static struct nezha_choice carrier(uint64_t bytes, uint32_t block)
{
	if (nezha_price_class(bytes) < NEZHA_PRICE_MIX_LEAST || bytes < 2 * (uint64_t)block)
		return choice_of(NEZHA_ALG_RING, bytes);
	return (struct nezha_choice){ .alg = NEZHA_ALG_MIX, .native = (bytes - block) / block * block, .carrier = true };
}

/* There is not enough for a decision yet. */
static struct nezha_choice choose_early(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	uint32_t k = nezha_price_class(bytes);
	const struct nezha_model_class *class = &model->classes[k];
	enum nezha_algorithm slower = nezha_price_far_slower(model, k);

	if (nezha_model_is_shy(model))
		return choice_of(NEZHA_ALG_RING, bytes);
	/* Only a call over the rails makes room for what the library's would tell. */
	if (model->pending_count == NEZHA_MODEL_PENDING)
		return slower == NEZHA_ALG_RING ? carrier(bytes, block) : choice_of(NEZHA_ALG_RING, bytes);
	if (class->cost[NEZHA_ALG_NATIVE].tried > nezha_model_is_cold_library(model, k))
		return slower == NEZHA_ALG_RING && !class->cost[NEZHA_ALG_RING].count ? carrier(bytes, block)
		       : choice_of(NEZHA_ALG_RING, bytes);
	if ((slower == NEZHA_ALG_NATIVE && !nezha_model_is_due_after_all(model, k)) ||
	    (slower == NEZHA_ALG_MIX && !class->cost[NEZHA_ALG_RING].tried))
		return choice_of(NEZHA_ALG_RING, bytes);
	return choice_of(NEZHA_ALG_NATIVE, bytes);
}

static struct nezha_choice choose_settled(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	uint32_t k = nezha_price_class(bytes);
	const struct nezha_model_class *class = &model->classes[k];
	enum nezha_algorithm alg = class->best;

	if (bytes > block && class->cost[NEZHA_ALG_MIX].tried < NEZHA_MODEL_MIX_TRIES && nezha_price_mix_pays(model, k) &&
	    !nezha_model_is_shy(model))
		alg = NEZHA_ALG_MIX;
	else if (nezha_model_is_retry(model, k))
		alg = nezha_model_alternative(model, k);
	else if (alg == NEZHA_ALG_NATIVE && nezha_model_is_pending(model, k))
		return carrier(bytes, block);
	else if (class->extra)
		alg = NEZHA_ALG_RING;
	if (alg != NEZHA_ALG_MIX)
		return choice_of(alg, bytes);
	return (struct nezha_choice){ .alg = alg, .native = nezha_price_native_share(model, bytes, block),
	                              .nonblocking = nezha_price_is_nonblocking(class) };
}

static struct nezha_choice choose(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	uint32_t k = nezha_price_class(bytes);
	struct nezha_choice choice = nezha_model_is_settled(model, k) ? choose_settled(model, bytes, block)
	                             : choose_early(model, bytes, block);

	choice.looks = choice.alg == NEZHA_ALG_NATIVE && k >= NEZHA_PRICE_FAR_LEAST && k <= LOOK_MOST &&
	               model->classes[k].cost[choice.alg].count < LOOKS;
	return choice;
}

struct nezha_choice nezha_model_choose(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	const struct nezha_model_class *class = &model->classes[nezha_price_class(bytes)];

	return class->quiet ? choice_of(class->best, bytes) : choose(model, bytes, block);
}

bool nezha_model_decided(const struct nezha_model *model, uint64_t bytes, struct nezha_decision *out)
{
	uint32_t k = nezha_price_class(bytes);
	const struct nezha_model_class *class = &model->classes[k];

	*out = (struct nezha_decision){ .alg = NEZHA_ALG_RING };
	if (!nezha_model_is_settled(model, k))
		return class->cost[NEZHA_ALG_RING].tried && !class->cost[NEZHA_ALG_NATIVE].tried &&
		       nezha_price_far_slower(model, k) == NEZHA_ALG_NATIVE;
	out->alg = class->best;
	out->trying = class->cost[NEZHA_ALG_MIX].tried < NEZHA_MODEL_MIX_TRIES && nezha_price_mix_pays(model, k);
	if (out->alg == NEZHA_ALG_MIX) {
		out->share = nezha_price_native_part(model, k);
		out->blocking = !nezha_price_is_nonblocking(class);
	}
	return true;
}
