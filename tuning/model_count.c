/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/model_known.h"
#include "tuning/model_plan.h"
#include "tuning/model_price.h"

#define SAMPLES_FIRST 8         /* calls of a class and way that are all measured; */
#define SAMPLES_EVERY 16        /* then one of so many */
#define QUIET_MOST 256          /* calls that are looked ahead */
#define RUN_EVERY 32            /* calls of the rails in a small class, of which a run is measured; */
#define RUN_SELDOM 256          /* ... after so many calls one of so many: a note makes such a call a fifth longer */

/* Where in a run the call of a small class with a decision is that comes after `ahead` others; NEZHA_RUN_CALLS or more: in none.  The chosen way gets one just
 * before another is tried, one RUN_EVERY calls before that and, if it is the rails, from time to time: of the library's only a call
 * of the rails can tell.  The rails' is over a call earlier, which tells of it. */
static uint32_t run_place(const struct nezha_model_class *class, enum nezha_algorithm alg, uint32_t ahead)
{
	uint32_t until = class->retry_at - class->calls - ahead;

	if (alg != class->best)
		return class->tries - NEZHA_MODEL_SETTLE;
	until -= alg == NEZHA_ALG_RING;
	if (until > RUN_EVERY)
		until -= RUN_EVERY;
	if (until > 0 && until <= NEZHA_RUN_CALLS)
		return NEZHA_RUN_CALLS - until;
	if (alg == NEZHA_ALG_NATIVE)
		return NEZHA_RUN_CALLS;
	return (class->calls + ahead) % (class->calls + ahead < RUN_SELDOM ? RUN_EVERY : RUN_SELDOM);
}

/* Whether a call that goes the best way is measured: always where that costs nothing, as a carried note does in a
 * large vector. */
static bool is_due(uint32_t k, enum nezha_algorithm alg, const struct nezha_model_cost *c)
{
	return (k >= NEZHA_PRICE_MIX_LEAST && alg != NEZHA_ALG_NATIVE) || c->tried < SAMPLES_FIRST ||
	       c->tried % SAMPLES_EVERY == 0;
}

/* Whether this call's times will be pending by themselves. */
static bool is_sample(const struct nezha_model *model, uint32_t k, const struct nezha_choice *choice)
{
	const struct nezha_model_class *class = &model->classes[k];
	const struct nezha_model_cost *c = &class->cost[choice->carrier ? NEZHA_ALG_NATIVE : choice->alg];
	bool trial = choice->alg == NEZHA_ALG_MIX && !choice->carrier && c->tried < NEZHA_MODEL_MIX_TRIES;

	if (class->extra && choice->alg != NEZHA_ALG_RING)
		return false;
	if (!nezha_model_is_settled(model, k) || nezha_model_is_retry(model, k) || trial || class->extra)
		return model->pending_count < NEZHA_MODEL_PENDING;
	/* What goes as always must leave room for what is new. */
	return choice->alg == class->best && is_due(k, choice->alg, c) && model->pending_count < NEZHA_MODEL_PENDING / 2;
}

/* Of a small class with a decision nothing else counts, but an extra call of the rails. */
static bool is_in_runs(const struct nezha_model *model, uint32_t k)
{
	return nezha_model_is_small(k) && nezha_model_is_settled(model, k) && !model->classes[k].extra;
}

bool nezha_model_measures(const struct nezha_model *model, uint64_t bytes, const struct nezha_choice *choice)
{
	uint32_t k = nezha_price_class(bytes);

	if (model->classes[k].quiet)
		return false;
	return is_in_runs(model, k) ? run_place(&model->classes[k], choice->alg, 0) < NEZHA_RUN_CALLS : is_sample(model, k, choice);
}

/* A call of a run; the last one leaves the median pending, if there is room. */
static void count_in_run(struct nezha_model *model, uint64_t bytes, const struct nezha_choice *choice,
                         const struct nezha_model_times *times)
{
	uint32_t k = nezha_price_class(bytes);
	struct nezha_model_run *run = &model->under_way[k];
	uint64_t ns = choice->alg == NEZHA_ALG_RING ? times->rails : times->native;

	if (!nezha_run_add(run, run_place(&model->classes[k], choice->alg, 0), ns, bytes) ||
	    model->pending_count == NEZHA_MODEL_PENDING)
		return;
	ns = nezha_run_time(run, bytes);
	model->pending[model->pending_count++] = (struct nezha_model_call){
		.bytes = bytes,
		.choice = *choice,
		.times = { ns, ns, false },
		.run = true,
		.trial = choice->alg != model->classes[k].best,
	};
}

/* After a call that was not quiet.  Most are: of these nothing has to be found out, which would cost a small call up to a
 * hundredth, its caches being full of other things. */
static void look_ahead(const struct nezha_model *model, struct nezha_model_class *class, uint32_t k)
{
	if (!is_in_runs(model, k) || (class->best == NEZHA_ALG_NATIVE && nezha_model_is_pending(model, k)))
		return;
	while (class->quiet < QUIET_MOST && (int32_t)(class->calls + class->quiet - class->retry_at) < 0 &&
	       run_place(class, class->best, class->quiet) >= NEZHA_RUN_CALLS)
		class->quiet++;
}

/* A call that was none of the quiet ones. */
static void count_one(struct nezha_model *model, uint64_t bytes, const struct nezha_choice *choice,
                      const struct nezha_model_times *times)
{
	uint32_t k = nezha_price_class(bytes);
	struct nezha_model_class *class = &model->classes[k];
	bool full = model->pending_count == NEZHA_MODEL_PENDING, runs = is_in_runs(model, k);
	/* That the rails are whole again may have been heard in this very call. */
	bool samples = !runs && is_sample(model, k, choice), was_retry = nezha_model_is_retry(model, k) && choice->alg != class->best;
	bool extra = class->extra;

	class->extra = false;
	if (runs)
		count_in_run(model, bytes, choice, times);
	class->calls++;
	model->calls++;
	if (!was_retry)
		class->tries = 0;       /* a rail that was lost in a try ends it */
	else if (nezha_model_is_settled(model, k) && ++class->tries >= nezha_model_try_calls(k))
		nezha_model_plan_next(model, class);
	/* What should be measured, and finds no room, does not count as tried. */
	if (samples || !full)
		nezha_model_cost_of(class, choice)->tried++;
	if (samples)
		model->pending[model->pending_count++] =
			(struct nezha_model_call){ .bytes = bytes, .choice = *choice, .times = *times, .extra = extra };
	look_ahead(model, class, k);
}

static void count_quiet(struct nezha_model *model, struct nezha_model_class *class)
{
	class->quiet--;
	class->calls++;
	model->calls++;
}

bool nezha_model_passes(struct nezha_model *model, uint64_t bytes)
{
	struct nezha_model_class *class = &model->classes[nezha_price_class(bytes)];

	if (!class->quiet || class->best != NEZHA_ALG_NATIVE)
		return false;
	count_quiet(model, class);
	return true;
}

void nezha_model_count(struct nezha_model *model, uint64_t bytes, const struct nezha_choice *choice,
                       const struct nezha_model_times *times)
{
	struct nezha_model_class *class = &model->classes[nezha_price_class(bytes)];

	if (class->quiet)
		count_quiet(model, class);
	else
		count_one(model, bytes, choice, times);
}
