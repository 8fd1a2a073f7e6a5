/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/model.h"

#include <string.h>

#include "tuning/model_price.h"
#include "tuning/pause.h"

#define SAMPLES_FIRST 8         /* calls of a class and way that are all measured; */
#define SAMPLES_EVERY 16        /* then one of so many */
#define TIE_PERCENT 2           /* a difference that is none, when there is no decision yet */
#define SWITCH_PERCENT 5        /* a difference that changes a decision */
#define CLOSE_PERCENT 20        /* a difference that one sample does not show */
#define MIX_TRIES 4             /* calls that a mix gets to keep what it promises */
#define LOOKS 2                 /* times of the library that are learnt with a look at the rails (some 100 us), */
#define LOOK_MOST 30            /* up to this class: the interfaces' counters have 32 bits */
#define PAUSE_FIRST 16          /* calls after which a first decision is looked at again, in a small class or where it rests on one
                                 * call of the library, if the other way is not ... */
#define COLD_CLASSES 17         /* classes (of less than 128 KiB) in which opening a connection weighs; */
#define COLD 4                  /* a first call of the library that is so many times slower is believed */
#define NEAR 2                  /* ... that many times slower: the library's first calls may open connections, or pass in
                                 * a shaper's burst, and only calls of the rails bring news */
#define TRY_CALLS 8             /* calls of a small class that a try of the other way takes; the last ones are measured: the first
                                 * pay for what the chosen way's have left behind (shapers' debts, cold caches) */
#define PAUSE_LEAST 64          /* calls between two tries of the other way, */
#define PAUSE_MOST 8192         /* doubled each time up to this */
#define PAUSE_FACTOR 200        /* a try that costs x calls more is followed by so many times x calls without */

/* Whether the library was seen to use another network, in whichever class: in small ones it cannot be seen. */
static bool is_apart(const struct nezha_model *model)
{
	for (uint32_t k = 0; k < NEZHA_MODEL_CLASSES; k++)
		if (model->classes[k].apart)
			return true;
	return false;
}

/* Whether the library may be waiting for a rail that is lost. */
static bool is_shy(const struct nezha_model *model)
{
	return model->lost && !is_apart(model);
}

/* The library's first call of a very small class may have opened its connections: slower than the rails, but not far, it gets
 * a second one. */
static bool is_cold_library(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];
	uint64_t native = nezha_price_of(class, NEZHA_ALG_NATIVE), rails = nezha_price_of(class, NEZHA_ALG_RING);

	return k < COLD_CLASSES && class->cost[NEZHA_ALG_NATIVE].count == 1 && rails && native > rails &&
	       native < COLD * rails && nezha_price_far_slower(model, k) != NEZHA_ALG_NATIVE;
}

/* Whether there is enough for a decision: the rails' first call of a class may be cold, and is not held against them
 * unless they were far slower. */
static bool is_settled(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];
	uint64_t native = nezha_price_of(class, NEZHA_ALG_NATIVE), rails = nezha_price_of(class, NEZHA_ALG_RING);

	if (!class->cost[NEZHA_ALG_RING].tried && nezha_price_far_slower(model, k) == NEZHA_ALG_RING)
		return native;
	if (is_cold_library(model, k))
		return false;
	return native && rails && (class->cost[NEZHA_ALG_RING].count > 1 || rails > NEZHA_PRICE_FAR * native ||
	                           nezha_price_is_cheaper(rails, native, TIE_PERCENT));
}

/* ---- deciding ---- */

/* The library was found faster, hardly so, by one or two samples: either may have been a lucky one. */
static bool is_close(const struct nezha_model_class *class)
{
	return class->cost[NEZHA_ALG_NATIVE].count < NEZHA_MODEL_SAMPLES &&
	       !nezha_price_is_cheaper(nezha_price_of(class, NEZHA_ALG_NATIVE), nezha_price_of(class, NEZHA_ALG_RING),
	                               CLOSE_PERCENT);
}

/* Whether there is something of the class that is worth a call to carry it: where that is no mix, only what the rails
 * were tried for, or what makes a close decision a safe one. */
static bool is_pending(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];
	bool few = class->cost[NEZHA_ALG_NATIVE].count < NEZHA_MODEL_SAMPLES;
	bool all = (k >= NEZHA_PRICE_MIX_LEAST && few) || is_close(class);

	for (uint32_t i = 0; i < model->pending_count; i++)
		if (nezha_price_class(model->pending[i].bytes) == k && (all || model->pending[i].choice.alg != NEZHA_ALG_NATIVE))
			return true;
	return false;
}

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

/* Whether the library, far slower in a class below, is tried here after all: that cost what a later try would. */
static bool is_due_after_all(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *below = nezha_price_known_below(model, k);
	uint64_t rails = nezha_price_of(below, NEZHA_ALG_RING), native = nezha_price_of(below, NEZHA_ALG_NATIVE);

	return model->classes[k].calls >= PAUSE_LEAST + PAUSE_FACTOR * (native - rails) / rails;
}

/* There is not enough for a decision yet. */
static struct nezha_choice choose_early(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	uint32_t k = nezha_price_class(bytes);
	const struct nezha_model_class *class = &model->classes[k];
	enum nezha_algorithm slower = nezha_price_far_slower(model, k);

	if (is_shy(model))
		return choice_of(NEZHA_ALG_RING, bytes);
	if (class->cost[NEZHA_ALG_NATIVE].tried > is_cold_library(model, k))
		return slower == NEZHA_ALG_RING && !class->cost[NEZHA_ALG_RING].count ? carrier(bytes, block)
		       : choice_of(NEZHA_ALG_RING, bytes);
	if ((slower == NEZHA_ALG_NATIVE && !is_due_after_all(model, k)) ||
	    (slower == NEZHA_ALG_MIX && !class->cost[NEZHA_ALG_RING].tried))
		return choice_of(NEZHA_ALG_RING, bytes);
	return choice_of(NEZHA_ALG_NATIVE, bytes);
}

/* What is tried in place of the best one. */
static enum nezha_algorithm alternative(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];

	if (class->best == NEZHA_ALG_MIX)
		return nezha_price_best_alone(class);
	if (nezha_price_mix_pays(model, k))
		return NEZHA_ALG_MIX;
	return class->best == NEZHA_ALG_NATIVE ? NEZHA_ALG_RING : NEZHA_ALG_NATIVE;
}

bool nezha_model_decided(const struct nezha_model *model, uint64_t bytes, enum nezha_algorithm *out)
{
	uint32_t k = nezha_price_class(bytes);
	const struct nezha_model_class *class = &model->classes[k];

	if (is_settled(model, k))
		*out = class->best != NEZHA_ALG_MIX ? class->best : nezha_price_best_alone(class);
	else if (class->cost[NEZHA_ALG_RING].tried && !class->cost[NEZHA_ALG_NATIVE].tried &&
	         nezha_price_far_slower(model, k) == NEZHA_ALG_NATIVE)
		*out = NEZHA_ALG_RING;
	else
		return false;
	return true;
}

uint64_t nezha_model_calls(const struct nezha_model *model)
{
	uint64_t calls = 0;

	for (uint32_t k = 0; k < NEZHA_MODEL_CLASSES; k++)
		calls += model->classes[k].calls;
	return calls;
}

/* The counters may wrap. */
static bool is_retry(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];

	/* Where the library is the chosen one, it is the rails that are tried, and only their calls tell that a lost one is back. */
	return (int32_t)(class->calls - class->retry_at) >= 0 && (class->best == NEZHA_ALG_NATIVE || !is_shy(model));
}

static struct nezha_choice choose_settled(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	uint32_t k = nezha_price_class(bytes);
	const struct nezha_model_class *class = &model->classes[k];
	enum nezha_algorithm alg = class->best;

	if (bytes > block && class->cost[NEZHA_ALG_MIX].tried < MIX_TRIES && nezha_price_mix_pays(model, k) && !is_shy(model))
		alg = NEZHA_ALG_MIX;
	else if (is_retry(model, k))
		alg = alternative(model, k);
	else if (alg == NEZHA_ALG_NATIVE && is_pending(model, k))
		return carrier(bytes, block);
	if (alg != NEZHA_ALG_MIX)
		return choice_of(alg, bytes);
	return (struct nezha_choice){ .alg = alg, .native = nezha_price_native_share(model, bytes, block) };
}

struct nezha_choice nezha_model_choose(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	uint32_t k = nezha_price_class(bytes);
	struct nezha_choice choice = is_settled(model, k) ? choose_settled(model, bytes, block)
	                             : choose_early(model, bytes, block);

	choice.looks = choice.alg == NEZHA_ALG_NATIVE && k >= NEZHA_PRICE_FAR_LEAST && k <= LOOK_MOST &&
	               model->classes[k].cost[choice.alg].count < LOOKS;
	return choice;
}

/* A single call of a small class says little: its time varies by a half. */
static uint32_t try_calls(uint32_t k)
{
	return k < COLD_CLASSES ? TRY_CALLS : 1;
}

/* The rails were chosen, and the library is known by its first call, which the host may have held up. */
static bool is_one_call(const struct nezha_model_class *class)
{
	return class->best == NEZHA_ALG_RING && class->cost[NEZHA_ALG_NATIVE].count == 1;
}

/* When another way than the chosen one is tried next. */
static void plan_retry(const struct nezha_model *model, struct nezha_model_class *class, bool again)
{
	uint32_t k = (uint32_t)(class - model->classes);
	enum nezha_algorithm other = alternative(model, k);
	uint64_t least = nezha_price_of(class, class->best);
	uint64_t most = other == NEZHA_ALG_MIX ? least : nezha_price_part(model, k, other);
	uint64_t dear = least && most > least ? PAUSE_FACTOR * try_calls(k) * (most - least) / least : 0;

	class->tries = 0;
	class->pause = again ? (uint32_t)nezha_pause_longer(class->pause, PAUSE_LEAST, PAUSE_MOST) : PAUSE_LEAST;
	if (!again && most < NEAR * least && (k < NEZHA_PRICE_MIX_LEAST || is_one_call(class))) {
		class->pause = PAUSE_FIRST;
		dear = 0;
	}
	class->retry_at = class->calls + class->pause + (uint32_t)(dear < UINT32_MAX / 4 ? dear : UINT32_MAX / 4);
}

/* What is known may be long ago. */
static void look_again(struct nezha_model_cost *c)
{
	c->samples[0] = nezha_price_value(c);
	c->count = c->count > 0;
	c->tried = 0;
}

/* The cheapest that is known; `first`: there was no decision yet.  What was chosen newly is looked at closely. */
static void decide(const struct nezha_model *model, struct nezha_model_class *class, bool first)
{
	enum nezha_algorithm before = class->best;

	for (enum nezha_algorithm alg = 0; alg < NEZHA_ALG_COUNT; alg++) {
		uint64_t now = nezha_price_of(class, class->best), other = nezha_price_of(class, alg);

		if (other && class->cost[alg].count >= (alg == NEZHA_ALG_MIX ? 2 : 1) &&
		    (!now || nezha_price_is_cheaper(other, now, first ? TIE_PERCENT : SWITCH_PERCENT)))
			class->best = alg;
	}
	if (class->best != before && !first)
		look_again(&class->cost[class->best]);
	if (class->best != before || first)
		plan_retry(model, class, false);
}

/* ---- learning ---- */

#define NOTE_WHOLE (NEZHA_NOTE_VALUES - 1)

static struct nezha_model_cost *cost_of(struct nezha_model_class *class, const struct nezha_choice *choice)
{
	return &class->cost[choice->carrier ? NEZHA_ALG_NATIVE : choice->alg];
}

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

static uint64_t half_way(const uint64_t values[2])
{
	return values[0] + (~values[1] - values[0]) / 2;
}

bool nezha_model_note(const struct nezha_model *model, bool whole, uint64_t note[NEZHA_NOTE_VALUES])
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
	return model->pending_count > 0 || model->lost || !nezha_model_calls(model);
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

static void add_call(struct nezha_model_class *class, const struct nezha_model_call *call, uint64_t native,
                     uint64_t rails)
{
	const struct nezha_choice *choice = &call->choice;

	if (choice->alg == NEZHA_ALG_RING) {
		add_sample(&class->cost[NEZHA_ALG_RING], rails, call->bytes);
		return;
	}
	if (choice->alg == NEZHA_ALG_NATIVE || choice->carrier) {
		add_sample(&class->cost[NEZHA_ALG_NATIVE], native, choice->native);
		return;
	}
	add_sample(&class->part[NEZHA_ALG_NATIVE], native, choice->native);
	add_sample(&class->part[NEZHA_ALG_RING], rails, call->bytes - choice->native);
	class->cost[NEZHA_ALG_MIX].count++;
}

void nezha_model_learn(struct nezha_model *model, const uint64_t note[NEZHA_NOTE_VALUES])
{
	uint32_t count = model->pending_count;
	bool lost = model->lost || !note[NOTE_WHOLE];

	model->pending_count = 0;
	model->lost = !note[NOTE_WHOLE];
	for (uint32_t i = 0; i < count; i++) {
		const struct nezha_model_call *call = &model->pending[i];
		uint32_t k = nezha_price_class(call->bytes);
		uint64_t native = is_uneven(call) ? half_way(&note[2 * i]) : note[2 * i];
		bool settled = is_settled(model, k);

		if (call->choice.looks && note[2 * i + 1])      /* once is enough: others use the interfaces, too */
			model->classes[k].apart = true;
		if (lost && !is_apart(model)) {
			forget_try(cost_of(&model->classes[k], &call->choice));
			continue;
		}
		add_call(&model->classes[k], call, native, is_uneven(call) ? native : note[2 * i + 1]);
		if (is_settled(model, k))
			decide(model, &model->classes[k], !settled);
	}
}

/* Whether a call that goes the best way is measured: always where that costs nothing, as a carried note does in a
 * large vector. */
static bool is_due(uint32_t k, enum nezha_algorithm alg, const struct nezha_model_cost *c)
{
	return (k >= NEZHA_PRICE_MIX_LEAST && alg != NEZHA_ALG_NATIVE) || c->tried < SAMPLES_FIRST ||
	       c->tried % SAMPLES_EVERY == 0;
}

bool nezha_model_measures(const struct nezha_model *model, uint64_t bytes, const struct nezha_choice *choice)
{
	uint32_t k = nezha_price_class(bytes);
	const struct nezha_model_class *class = &model->classes[k];
	const struct nezha_model_cost *c = &class->cost[choice->carrier ? NEZHA_ALG_NATIVE : choice->alg];
	bool trial = choice->alg == NEZHA_ALG_MIX && !choice->carrier && c->tried < MIX_TRIES;

	if (is_settled(model, k) && is_retry(model, k) && class->tries + NEZHA_MODEL_SAMPLES < try_calls(k))
		return false;
	if (!is_settled(model, k) || is_retry(model, k) || trial)
		return model->pending_count < NEZHA_MODEL_PENDING;
	/* What goes as always must leave room for what is new. */
	return choice->alg == class->best && is_due(k, choice->alg, c) && model->pending_count < NEZHA_MODEL_PENDING / 2;
}

void nezha_model_count(struct nezha_model *model, uint64_t bytes, const struct nezha_choice *choice,
                       const struct nezha_model_times *times)
{
	uint32_t k = nezha_price_class(bytes);
	struct nezha_model_class *class = &model->classes[k];
	bool full = model->pending_count == NEZHA_MODEL_PENDING;
	/* That the rails are whole again may have been heard in this very call. */
	bool measures = nezha_model_measures(model, bytes, choice), was_retry = is_retry(model, k) && choice->alg != class->best;

	class->calls++;
	if (is_settled(model, k) && was_retry && ++class->tries >= try_calls(k))
		plan_retry(model, class, true);
	/* What should be measured, and finds no room, does not count as tried. */
	if (measures || !full)
		cost_of(class, choice)->tried++;
	if (measures)
		model->pending[model->pending_count++] =
			(struct nezha_model_call){ .bytes = bytes, .choice = *choice, .times = *times };
}
