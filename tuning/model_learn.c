/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "tuning/model_known.h"
#include "tuning/model_plan.h"
#include "tuning/model_price.h"

#define NOTE_WHOLE (NEZHA_NOTE_VALUES - 1)

/* Of a small vector some ways let some ranks go long before others, which the least time would hold in their favour: what counts is
 * half way between the first rank and the last.  (Where the program's ranks come at different times that adds to all ways alike.) */
static bool is_uneven(const struct nezha_model_call *call)
{
	return nezha_price_class(call->bytes) < NEZHA_PRICE_FAR_LEAST;
}

/* Folding takes the least of either value. */
static void tell_uneven(const struct nezha_model_call *call, uint64_t values[2])
{
	values[0] = call->choice.alg == NEZHA_ALG_RING ? call->times.rails : call->times.native;
	values[1] = ~values[0];
}

/* Of a run's medians: what a program waits for is the last rank, and one call that was held up is not in them. */
static uint64_t greatest(const uint64_t values[2])
{
	return ~values[1];
}

static uint64_t half_way(const uint64_t values[2])
{
	return values[0] + (~values[1] - values[0]) / 2;
}

bool nezha_model_has_note(const struct nezha_model *model)
{
	return model->pending_count > 0 || model->lost || !model->calls;
}

void nezha_model_note(const struct nezha_model *model, bool whole, uint64_t note[NEZHA_NOTE_VALUES])
{
	memset(note, 0, NEZHA_NOTE_VALUES * sizeof *note);
	note[NOTE_WHOLE] = whole;
	for (uint32_t i = 0; i < model->pending_count; i++) {
		const struct nezha_model_call *call = &model->pending[i];

		if (is_uneven(call)) {
			tell_uneven(call, &note[2 * i]);
			continue;
		}
		note[2 * i] = call->times.native;
		note[2 * i + 1] = call->choice.looks ? call->times.idle : call->times.rails;
	}
}

static void forget_try(struct nezha_model_cost *c)
{
	c->tried -= c->tried > 0;
}

static void add_sample(struct nezha_model_cost *c, uint64_t ns, uint64_t bytes)
{
	double ps = (double)ns * 1000 / (double)bytes;

	c->samples[c->count++ % NEZHA_MODEL_SAMPLES] = ps < 1 ? 1 : (uint64_t)ps;
}

/* Of a small class's first calls, all of which may be held up by what else a job does at its beginning, the quickest counts.  (If that was a lucky
 * one, the first runs show it.) */
static void keep_quickest(struct nezha_model_cost *c)
{
	uint64_t least = c->samples[0];

	if (c->count < NEZHA_MODEL_SAMPLES)
		return;
	for (int i = 1; i < NEZHA_MODEL_SAMPLES; i++)
		if (c->samples[i] < least)
			least = c->samples[i];
	for (int i = 0; i < NEZHA_MODEL_SAMPLES; i++)
		c->samples[i] = least;
}

/* A run stands alone: single calls tell less, and the run before may be long ago. */
static void begin_run(struct nezha_model_cost *c, bool trial)
{
	c->before = c->by_run && !c->of_try && !trial ? c->samples[0] : 0;
	c->of_try = trial;
	c->count = 0;
	c->by_run = true;
}

/* A call with shares by a guess tells nothing as soon as there is a later one. */
static void forget_guess(struct nezha_model *model, struct nezha_model_class *class)
{
	if (!model->guesses || nezha_model_is_small((uint32_t)(class - model->classes)))
		return;
	model->guesses--;
	class->cost[NEZHA_ALG_RING].count = 0;
}

static void add_call(struct nezha_model *model, const struct nezha_model_call *call, uint64_t native, uint64_t rails)
{
	struct nezha_model_class *class = &model->classes[nezha_price_class(call->bytes)];
	const struct nezha_choice *choice = &call->choice;
	bool is_early = !call->run && nezha_model_is_small((uint32_t)(class - model->classes));

	if (call->run)
		begin_run(nezha_model_cost_of(class, choice), call->trial);
	if (choice->alg == NEZHA_ALG_RING) {
		forget_guess(model, class);
		add_sample(&class->cost[NEZHA_ALG_RING], rails, call->bytes);
		if (is_early)
			keep_quickest(&class->cost[NEZHA_ALG_RING]);
		return;
	}
	if (choice->alg == NEZHA_ALG_NATIVE || choice->carrier) {
		if (nezha_model_is_settled(model, nezha_price_class(call->bytes)))
			nezha_model_heed_claim(class, nezha_price_class(call->bytes));
		add_sample(&class->cost[NEZHA_ALG_NATIVE], native, choice->native);
		if (is_early)
			keep_quickest(&class->cost[NEZHA_ALG_NATIVE]);
		return;
	}
	add_sample(choice->nonblocking ? &class->nonblocking : &class->part[NEZHA_ALG_NATIVE], native, choice->native);
	add_sample(&class->part[NEZHA_ALG_RING], rails, call->bytes - choice->native);
	class->cost[NEZHA_ALG_MIX].count++;
}

/* What follows from a run.  The chosen way's changes nothing by itself, since what is known of the others may be long ago: two of them may
 * bring their next try forward, and one put off the first one.  (Of the library's is told when that is due.)  That of a try is compared with the latest
 * one of the chosen way, as a rule the one just before. */
static void take_run(struct nezha_model *model, const struct nezha_model_call *call)
{
	struct nezha_model_class *class = &model->classes[nezha_price_class(call->bytes)];

	if (!call->trial) {
		nezha_model_plan_by_run(model, class);
		return;
	}
	nezha_model_decide(model, class, false);
	/* The price of the next try was planned by what was known before this one. */
	if (call->choice.alg != class->best)
		nezha_model_plan_again(model, class);
}

void nezha_model_learn(struct nezha_model *model, const uint64_t note[NEZHA_NOTE_VALUES])
{
	uint32_t count = model->pending_count;
	bool lost = model->lost || !note[NOTE_WHOLE];

	for (uint32_t k = 0; k < NEZHA_MODEL_SMALL; k++)
		model->classes[k].quiet = 0;
	model->pending_count = 0;
	model->lost = !note[NOTE_WHOLE];
	for (uint32_t i = 0; i < count; i++) {
		const struct nezha_model_call *call = &model->pending[i];
		uint32_t k = nezha_price_class(call->bytes);
		uint64_t native = call->run ? greatest(&note[2 * i]) : is_uneven(call) ? half_way(&note[2 * i]) : note[2 * i];
		uint64_t rails = nezha_price_of(&model->classes[k], NEZHA_ALG_RING);
		bool settled = nezha_model_is_settled(model, k);

		if (call->choice.looks && note[2 * i + 1])      /* once is enough: others use the interfaces, too */
			model->classes[k].apart = true;
		if (lost && !nezha_model_is_apart(model)) {
			forget_try(nezha_model_cost_of(&model->classes[k], &call->choice));
			model->classes[k].claim = 0;
			continue;
		}
		add_call(model, call, native, is_uneven(call) ? native : note[2 * i + 1]);
		if (call->run)
			take_run(model, call);
		else if (call->extra)
			nezha_model_plan_after_extra(model, &model->classes[k], rails);
		else if (nezha_model_is_settled(model, k))
			nezha_model_decide(model, &model->classes[k], !settled);
	}
}
