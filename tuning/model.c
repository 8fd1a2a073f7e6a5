/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/model.h"

#include <string.h>

#define SAMPLES_FIRST 8         /* calls of a class and way that are all measured; */
#define SAMPLES_EVERY 16        /* then one of so many */
#define TIE_PERCENT 2           /* a difference that is none, when there is no decision yet */
#define SWITCH_PERCENT 5        /* a difference that changes a decision */
#define FAR 2                   /* times as slow: no doubt; the library is not even tried in the classes above */
#define FAR_LEAST 18            /* ... where the class's vectors (256 KiB) are beyond what latency decides, */
#define FAR_CLASSES 6           /* and not further than so many classes away */
#define PAUSE_LEAST 64          /* calls between two tries of the other way, */
#define PAUSE_MOST 8192         /* doubled each time up to this */
#define PAUSE_FACTOR 200        /* a try that costs x calls more is followed by so many times x calls without */

static uint32_t class_of(uint64_t bytes)
{
	uint32_t k = bytes ? 63 - (uint32_t)__builtin_clzll(bytes) : 0;

	return k < NEZHA_MODEL_CLASSES ? k : NEZHA_MODEL_CLASSES - 1;
}

static uint64_t middle_of_three(const uint64_t *s)
{
	uint64_t low = s[0] < s[1] ? s[0] : s[1], high = s[0] < s[1] ? s[1] : s[0];

	return s[2] < low ? low : s[2] > high ? high : s[2];
}

/* Picoseconds per byte; 0: not known.  Of two the smaller: the first one is often a cold one. */
static uint64_t cost(const struct nezha_model_class *class, enum nezha_algorithm alg)
{
	const struct nezha_model_cost *c = &class->cost[alg];

	switch (c->count) {
	case 0: return 0;
	case 1: return c->samples[0];
	case 2: return c->samples[0] < c->samples[1] ? c->samples[0] : c->samples[1];
	}
	return middle_of_three(c->samples);
}

uint64_t nezha_model_expect(const struct nezha_model *model, uint64_t bytes, enum nezha_algorithm alg)
{
	return (uint64_t)((double)cost(&model->classes[class_of(bytes)], alg) * (double)bytes / 1000);
}

/* Whether a class a little below has shown that the library is no match. */
static bool is_far(const struct nezha_model *model, uint32_t k)
{
	for (uint32_t i = k; i-- > FAR_LEAST && k - i <= FAR_CLASSES;) {
		uint64_t rails = cost(&model->classes[i], NEZHA_ALG_RING);
		uint64_t native = cost(&model->classes[i], NEZHA_ALG_NATIVE);

		if (rails && native)
			return native > FAR * rails;
	}
	return false;
}

static bool is_cheaper(uint64_t a, uint64_t b, unsigned percent)
{
	return a < b - b * percent / 100;
}

/* Whether there is enough for a decision: the rails' first call of a class may be a cold one, and is not held against them
 * unless they were far slower. */
static bool is_settled(const struct nezha_model_class *class)
{
	uint64_t native = cost(class, NEZHA_ALG_NATIVE), rails = cost(class, NEZHA_ALG_RING);

	return native && rails && (class->cost[NEZHA_ALG_RING].count > 1 || rails > FAR * native ||
	                           is_cheaper(rails, native, TIE_PERCENT));
}

static bool is_pending(const struct nezha_model *model, uint32_t k, enum nezha_algorithm alg)
{
	for (uint32_t i = 0; i < model->pending_count; i++)
		if (model->pending[i].alg == alg && class_of(model->pending[i].bytes) == k)
			return true;
	return false;
}

enum nezha_algorithm nezha_model_choose(const struct nezha_model *model, uint64_t bytes)
{
	uint32_t k = class_of(bytes);
	const struct nezha_model_class *class = &model->classes[k];

	if (!class->cost[NEZHA_ALG_NATIVE].tried)
		return !class->cost[NEZHA_ALG_RING].tried || is_far(model, k) ? NEZHA_ALG_RING : NEZHA_ALG_NATIVE;
	/* A call over the rails brings what is pending. */
	if (!is_settled(class) || (class->best == NEZHA_ALG_NATIVE && is_pending(model, k, NEZHA_ALG_RING)))
		return NEZHA_ALG_RING;
	if (class->calls < class->retry_at)
		return class->best;
	return class->best == NEZHA_ALG_NATIVE ? NEZHA_ALG_RING : NEZHA_ALG_NATIVE;
}

/* `first`: there was no decision yet. */
static void decide(struct nezha_model_class *class, bool first)
{
	uint64_t native = cost(class, NEZHA_ALG_NATIVE), rails = cost(class, NEZHA_ALG_RING);

	if (first)
		class->best = is_cheaper(rails, native, TIE_PERCENT) ? NEZHA_ALG_RING : NEZHA_ALG_NATIVE;
	else if (class->best == NEZHA_ALG_NATIVE && is_cheaper(rails, native, SWITCH_PERCENT))
		class->best = NEZHA_ALG_RING;
	else if (class->best == NEZHA_ALG_RING && is_cheaper(native, rails, SWITCH_PERCENT))
		class->best = NEZHA_ALG_NATIVE;
}

/* When the way that was not chosen is tried next. */
static void plan_retry(struct nezha_model_class *class, bool again)
{
	uint64_t native = cost(class, NEZHA_ALG_NATIVE), rails = cost(class, NEZHA_ALG_RING);
	uint64_t most = native > rails ? native : rails, least = native > rails ? rails : native;
	uint64_t dear = least ? PAUSE_FACTOR * (most - least) / least : 0;

	class->pause = again && class->pause < PAUSE_MOST ? 2 * class->pause : again ? PAUSE_MOST : PAUSE_LEAST;
	class->retry_at = class->calls + class->pause + (uint32_t)(dear < UINT32_MAX / 4 ? dear : UINT32_MAX / 4);
}

bool nezha_model_note(const struct nezha_model *model, uint64_t note[NEZHA_NOTE_VALUES])
{
	memset(note, 0, NEZHA_NOTE_VALUES * sizeof *note);
	for (uint32_t i = 0; i < model->pending_count; i++)
		note[i] = model->pending[i].ns;
	return model->pending_count > 0;
}

static void learn_one(struct nezha_model *model, const struct nezha_model_time *time, uint64_t ns)
{
	struct nezha_model_class *class = &model->classes[class_of(time->bytes)];
	struct nezha_model_cost *c = &class->cost[time->alg];
	bool settled = is_settled(class);
	double ps = (double)ns * 1000 / (double)time->bytes;

	c->samples[c->count++ % NEZHA_MODEL_SAMPLES] = ps < 1 ? 1 : (uint64_t)ps;
	if (!is_settled(class))
		return;
	decide(class, !settled);
	if (!settled)
		plan_retry(class, false);
}

void nezha_model_learn(struct nezha_model *model, const uint64_t note[NEZHA_NOTE_VALUES])
{
	uint32_t count = model->pending_count;

	model->pending_count = 0;
	for (uint32_t i = 0; i < count; i++)
		learn_one(model, &model->pending[i], note[i]);
}

void nezha_model_count(struct nezha_model *model, uint64_t bytes, enum nezha_algorithm alg, uint64_t ns)
{
	struct nezha_model_class *class = &model->classes[class_of(bytes)];
	struct nezha_model_cost *c = &class->cost[alg];
	bool settled = is_settled(class), retry = settled && class->calls >= class->retry_at;
	bool due = c->tried < SAMPLES_FIRST || c->tried % SAMPLES_EVERY == 0;

	class->calls++;
	if (retry)
		plan_retry(class, true);
	if (settled && !retry && (alg != class->best || !due)) {
		c->tried++;
		return;
	}
	/* Where there is no room it does not count as tried. */
	if (model->pending_count == NEZHA_NOTE_VALUES)
		return;
	c->tried++;
	model->pending[model->pending_count++] = (struct nezha_model_time){ .bytes = bytes, .ns = ns, .alg = alg };
}
