/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/model.h"

#include <string.h>

#include "tuning/bytes.h"

#define SAMPLES_FIRST 8         /* calls of a class and way that are all measured; */
#define SAMPLES_EVERY 16        /* then one of so many */
#define TIE_PERCENT 2           /* a difference that is none, when there is no decision yet */
#define SWITCH_PERCENT 5        /* a difference that changes a decision */
#define CLOSE_PERCENT 20        /* a difference that one sample does not show */
#define FAR 2                   /* times as slow: no doubt; the library is not even tried in the classes above, */
#define FAR_RAILS 4             /* nor, if they are so many times as slow, the rails */
#define FAR_LEAST 18            /* ... where the class's vectors (256 KiB) are beyond what latency decides, */
#define FAR_CLASSES 6           /* and not further than so many classes away */
#define MIX_LEAST 20            /* the class from which on both are used at once (1 MiB): below, starting both costs more */
#define MIX_PERCENT 7           /* what a mix must promise to save, */
#define MIX_TRIES 4             /* and how many calls it gets to keep it */
#define LOOKS 2                 /* times of the library that are learnt with a look at the rails, which takes some 100 us */
#define PAUSE_LEAST 64          /* calls between two tries of the other way, */
#define PAUSE_MOST 8192         /* doubled each time up to this */
#define PAUSE_FACTOR 200        /* a try that costs x calls more is followed by so many times x calls without */

static uint32_t class_of(uint64_t bytes)
{
	uint32_t k = nezha_bytes_class(bytes);

	return k < NEZHA_MODEL_CLASSES ? k : NEZHA_MODEL_CLASSES - 1;
}

static uint64_t middle_of_three(const uint64_t *s)
{
	uint64_t low = s[0] < s[1] ? s[0] : s[1], high = s[0] < s[1] ? s[1] : s[0];

	return s[2] < low ? low : s[2] > high ? high : s[2];
}

/* Picoseconds per byte; 0: not known.  Of two the smaller: the first one is often a cold one. */
static uint64_t value(const struct nezha_model_cost *c)
{
	switch (c->count) {
	case 0: return 0;
	case 1: return c->samples[0];
	case 2: return c->samples[0] < c->samples[1] ? c->samples[0] : c->samples[1];
	}
	return middle_of_three(c->samples);
}

/* Both at once, if they end together. */
static uint64_t balanced(uint64_t native, uint64_t rails)
{
	return native && rails ? (uint64_t)((double)native * (double)rails / ((double)native + (double)rails)) : 0;
}

/* A mix that ended unevenly costs what it will with the shares that follow from it. */
static uint64_t cost(const struct nezha_model_class *class, enum nezha_algorithm alg)
{
	if (alg == NEZHA_ALG_MIX)
		return balanced(value(&class->part[NEZHA_ALG_NATIVE]), value(&class->part[NEZHA_ALG_RING]));
	return value(&class->cost[alg]);
}

static bool is_cheaper(uint64_t a, uint64_t b, unsigned percent)
{
	return a < b - b * percent / 100;
}

/* The next class below in which the library and the rails are known; NULL: none is near. */
static const struct nezha_model_class *known_below(const struct nezha_model *model, uint32_t k)
{
	for (uint32_t i = k; i-- > FAR_LEAST && k - i <= FAR_CLASSES;)
		if (cost(&model->classes[i], NEZHA_ALG_RING) && cost(&model->classes[i], NEZHA_ALG_NATIVE))
			return &model->classes[i];
	return NULL;
}

/* Which of the two a class a little below has shown to be no match for the other; MIX: neither. */
static enum nezha_algorithm far_slower(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *below = known_below(model, k);

	if (below && cost(below, NEZHA_ALG_NATIVE) > FAR * cost(below, NEZHA_ALG_RING))
		return NEZHA_ALG_NATIVE;
	if (below && k >= MIX_LEAST && cost(below, NEZHA_ALG_RING) > FAR_RAILS * cost(below, NEZHA_ALG_NATIVE))
		return NEZHA_ALG_RING;
	return NEZHA_ALG_MIX;
}

/* Whether there is enough for a decision: the rails' first call of a class may be a cold one, and is not held against them
 * unless they were far slower. */
static bool is_settled(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];
	uint64_t native = cost(class, NEZHA_ALG_NATIVE), rails = cost(class, NEZHA_ALG_RING);

	if (!class->cost[NEZHA_ALG_RING].tried && far_slower(model, k) == NEZHA_ALG_RING)
		return native;
	return native && rails && (class->cost[NEZHA_ALG_RING].count > 1 || rails > FAR * native ||
	                           is_cheaper(rails, native, TIE_PERCENT));
}

/* ---- both at once ---- */

/* What the bytes of one of the two cost in a mix, as far as it is known. */
static uint64_t part_cost(const struct nezha_model *model, uint32_t k, enum nezha_algorithm alg)
{
	const struct nezha_model_class *class = &model->classes[k], *below;

	if (class->part[alg].count)
		return value(&class->part[alg]);
	if (class->cost[alg].count)
		return cost(class, alg);
	below = known_below(model, k);
	return below ? cost(below, alg) : 0;
}

/* The cheapest that is known without a mix; 0: nothing is. */
static uint64_t least_alone(const struct nezha_model_class *class)
{
	uint64_t native = cost(class, NEZHA_ALG_NATIVE), rails = cost(class, NEZHA_ALG_RING);

	return !native || (rails && rails < native) ? rails : native;
}

/* Whether the library seems to have a network of its own. */
static bool is_apart(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k], *below;

	if (class->cost[NEZHA_ALG_NATIVE].count)
		return class->apart;
	below = known_below(model, k);
	return below && below->apart;
}

/* Whether the two at once, ending together, would save enough. */
static bool promises(const struct nezha_model *model, uint32_t k)
{
	uint64_t both = balanced(part_cost(model, k, NEZHA_ALG_NATIVE), part_cost(model, k, NEZHA_ALG_RING));

	return k >= MIX_LEAST && is_apart(model, k) && both &&
	       is_cheaper(both, least_alone(&model->classes[k]), MIX_PERCENT);
}

/* The library's share, so that both end together. */
static uint64_t native_share(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	uint32_t k = class_of(bytes);
	double native = (double)part_cost(model, k, NEZHA_ALG_NATIVE), rails = (double)part_cost(model, k, NEZHA_ALG_RING);
	uint64_t share = (uint64_t)((double)bytes * rails / (native + rails)) / block * block;

	if (share < block)
		share = block;
	return share < bytes ? share : bytes - block;
}

/* ---- deciding ---- */

/* The library was found faster, hardly so, by one or two samples: either may have been a lucky one. */
static bool is_close(const struct nezha_model_class *class)
{
	return class->cost[NEZHA_ALG_NATIVE].count < NEZHA_MODEL_SAMPLES &&
	       !is_cheaper(cost(class, NEZHA_ALG_NATIVE), cost(class, NEZHA_ALG_RING), CLOSE_PERCENT);
}

/* Whether there is something of the class that is worth a call to carry it: where that is no mix, only what the rails
 * were tried for, or what makes a close decision a safe one. */
static bool is_pending(const struct nezha_model *model, uint32_t k)
{
	bool all = k >= MIX_LEAST || is_close(&model->classes[k]);

	for (uint32_t i = 0; i < model->pending_count; i++)
		if (class_of(model->pending[i].bytes) == k && (all || model->pending[i].choice.alg != NEZHA_ALG_NATIVE))
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
	if (class_of(bytes) < MIX_LEAST || bytes < 2 * (uint64_t)block)
		return choice_of(NEZHA_ALG_RING, bytes);
	return (struct nezha_choice){ .alg = NEZHA_ALG_MIX, .native = (bytes - block) / block * block, .carrier = true };
}

/* There is not enough for a decision yet. */
static struct nezha_choice choose_early(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	uint32_t k = class_of(bytes);
	const struct nezha_model_class *class = &model->classes[k];
	enum nezha_algorithm slower = far_slower(model, k);

	if (class->cost[NEZHA_ALG_NATIVE].tried)
		return slower == NEZHA_ALG_RING ? carrier(bytes, block) : choice_of(NEZHA_ALG_RING, bytes);
	if (slower == NEZHA_ALG_NATIVE || (slower == NEZHA_ALG_MIX && !class->cost[NEZHA_ALG_RING].tried))
		return choice_of(NEZHA_ALG_RING, bytes);
	return choice_of(NEZHA_ALG_NATIVE, bytes);
}

static enum nezha_algorithm best_alone(const struct nezha_model_class *class)
{
	return least_alone(class) == cost(class, NEZHA_ALG_NATIVE) ? NEZHA_ALG_NATIVE : NEZHA_ALG_RING;
}

/* What is tried in place of the best one. */
static enum nezha_algorithm alternative(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];

	if (class->best == NEZHA_ALG_MIX)
		return best_alone(class);
	if (promises(model, k))
		return NEZHA_ALG_MIX;
	return class->best == NEZHA_ALG_NATIVE ? NEZHA_ALG_RING : NEZHA_ALG_NATIVE;
}

bool nezha_model_decided(const struct nezha_model *model, uint64_t bytes, enum nezha_algorithm *out)
{
	uint32_t k = class_of(bytes);
	const struct nezha_model_class *class = &model->classes[k];

	if (is_settled(model, k))
		*out = class->best != NEZHA_ALG_MIX ? class->best : best_alone(class);
	else if (class->cost[NEZHA_ALG_RING].tried && !class->cost[NEZHA_ALG_NATIVE].tried &&
	         far_slower(model, k) == NEZHA_ALG_NATIVE)
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

static struct nezha_choice choose_settled(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	uint32_t k = class_of(bytes);
	const struct nezha_model_class *class = &model->classes[k];
	enum nezha_algorithm alg = class->best;

	if (bytes > block && class->cost[NEZHA_ALG_MIX].tried < MIX_TRIES && promises(model, k))
		alg = NEZHA_ALG_MIX;
	else if (alg == NEZHA_ALG_NATIVE && is_pending(model, k))
		return carrier(bytes, block);
	else if (class->calls >= class->retry_at)
		alg = alternative(model, k);
	if (alg != NEZHA_ALG_MIX)
		return choice_of(alg, bytes);
	return (struct nezha_choice){ .alg = alg, .native = native_share(model, bytes, block) };
}

struct nezha_choice nezha_model_choose(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	uint32_t k = class_of(bytes);
	struct nezha_choice choice = is_settled(model, k) ? choose_settled(model, bytes, block)
	                             : choose_early(model, bytes, block);

	choice.looks = choice.alg == NEZHA_ALG_NATIVE && k >= FAR_LEAST && model->classes[k].cost[choice.alg].count < LOOKS;
	return choice;
}

/* When another way than the chosen one is tried next. */
static void plan_retry(const struct nezha_model *model, struct nezha_model_class *class, bool again)
{
	uint32_t k = (uint32_t)(class - model->classes);
	enum nezha_algorithm other = alternative(model, k);
	uint64_t least = cost(class, class->best);
	uint64_t most = other == NEZHA_ALG_MIX ? least : part_cost(model, k, other);
	uint64_t dear = least && most > least ? PAUSE_FACTOR * (most - least) / least : 0;

	class->pause = again && class->pause < PAUSE_MOST ? 2 * class->pause : again ? PAUSE_MOST : PAUSE_LEAST;
	class->retry_at = class->calls + class->pause + (uint32_t)(dear < UINT32_MAX / 4 ? dear : UINT32_MAX / 4);
}

/* The cheapest that is known; `first`: there was no decision yet.  What was chosen newly is looked at closely. */
static void decide(const struct nezha_model *model, struct nezha_model_class *class, bool first)
{
	enum nezha_algorithm before = class->best;

	for (enum nezha_algorithm alg = 0; alg < NEZHA_ALG_COUNT; alg++) {
		uint64_t now = cost(class, class->best), other = cost(class, alg);

		if (other && class->cost[alg].count >= (alg == NEZHA_ALG_MIX ? 2 : 1) &&
		    (!now || is_cheaper(other, now, first ? TIE_PERCENT : SWITCH_PERCENT)))
			class->best = alg;
	}
	if (class->best != before && !first)
		class->cost[class->best].tried = 0;
	if (class->best != before || first)
		plan_retry(model, class, false);
}

/* ---- learning ---- */

bool nezha_model_note(const struct nezha_model *model, uint64_t note[NEZHA_NOTE_VALUES])
{
	memset(note, 0, NEZHA_NOTE_VALUES * sizeof *note);
	for (uint32_t i = 0; i < model->pending_count; i++) {
		const struct nezha_model_call *call = &model->pending[i];

		note[2 * i] = call->times.native;
		note[2 * i + 1] = call->choice.looks ? call->times.idle : call->times.rails;
	}
	return model->pending_count > 0;
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
		if (choice->looks)
			class->apart = rails;
		return;
	}
	add_sample(&class->part[NEZHA_ALG_NATIVE], native, choice->native);
	add_sample(&class->part[NEZHA_ALG_RING], rails, call->bytes - choice->native);
	class->cost[NEZHA_ALG_MIX].count++;
}

void nezha_model_learn(struct nezha_model *model, const uint64_t note[NEZHA_NOTE_VALUES])
{
	uint32_t count = model->pending_count;

	model->pending_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = class_of(model->pending[i].bytes);
		bool settled = is_settled(model, k);

		add_call(&model->classes[k], &model->pending[i], note[2 * i], note[2 * i + 1]);
		if (is_settled(model, k))
			decide(model, &model->classes[k], !settled);
	}
}

/* Whether a call that goes the best way is measured: always where that costs nothing, as a carried note does in a
 * large vector. */
static bool is_due(uint32_t k, enum nezha_algorithm alg, const struct nezha_model_cost *c)
{
	return (k >= MIX_LEAST && alg != NEZHA_ALG_NATIVE) || c->tried < SAMPLES_FIRST || c->tried % SAMPLES_EVERY == 0;
}

bool nezha_model_measures(const struct nezha_model *model, uint64_t bytes, const struct nezha_choice *choice)
{
	uint32_t k = class_of(bytes);
	const struct nezha_model_class *class = &model->classes[k];
	const struct nezha_model_cost *c = &class->cost[choice->carrier ? NEZHA_ALG_NATIVE : choice->alg];
	bool trial = choice->alg == NEZHA_ALG_MIX && !choice->carrier && c->tried < MIX_TRIES;

	if (is_settled(model, k) && class->calls < class->retry_at && !trial &&
	    (choice->alg != class->best || !is_due(k, choice->alg, c)))
		return false;
	return model->pending_count < NEZHA_MODEL_PENDING;
}

void nezha_model_count(struct nezha_model *model, uint64_t bytes, const struct nezha_choice *choice,
                       const struct nezha_model_times *times)
{
	uint32_t k = class_of(bytes);
	struct nezha_model_class *class = &model->classes[k];
	bool full = model->pending_count == NEZHA_MODEL_PENDING;
	bool measures = nezha_model_measures(model, bytes, choice);

	class->calls++;
	if (is_settled(model, k) && class->calls > class->retry_at)
		plan_retry(model, class, true);
	/* What should be measured, and finds no room, does not count as tried. */
	if (measures || !full)
		class->cost[choice->carrier ? NEZHA_ALG_NATIVE : choice->alg].tried++;
	if (measures)
		model->pending[model->pending_count++] =
			(struct nezha_model_call){ .bytes = bytes, .choice = *choice, .times = *times };
}
