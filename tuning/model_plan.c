/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/model_plan.h"

#include "tuning/model_known.h"
#include "tuning/model_price.h"
#include "tuning/pause.h"

#define SWITCH_PERCENT 5        /* a difference that changes a decision, */
#define SWITCH_FIRST_PERCENT 15 /* ... from the library to the rails in a small class's first ... */
#define SWITCH_FIRST 64         /* ... calls: tries of the rails are so near each other then that the library's calls between them are slower for it */
#define PAUSE_FIRST 16          /* calls after which a new decision is looked at again, below 1 MiB or where it rests on one
                                 * call of the library, if the other way is not ... */
#define NEAR 2                  /* ... that many times slower: the library's first calls may open connections, or pass in
                                 * a shaper's burst, and only calls of the rails bring news; */
#define NEAR_SMALL_PERCENT 275  /* ... so slow in a small class, */
#define NEAR_FIRST_PERCENT 600  /* ... or so slow where the library was chosen by its first call, which may have passed in a burst: the first call of
                                 * that try tells how slow the library's next ones were, and ends it if it would be dear, */
#define SOON (NEZHA_MODEL_SETTLE + NEZHA_RUN_CALLS + 1) /* where that is when a run of the chosen way is over, like that of the try, and
                                 * all ranks know of it; */
#define SOON_AFTER_SWITCH 32    /* when a try has changed the decision, in calls that do not live on the other way's any more */
#define HELD_UP_PERCENT 25      /* what the next one saves if the rails' single calls before it were */
#define EXTRAS 2                /* that the rails' single calls are given, if they are not ... */
#define EXTRA_FAR 8             /* ... so many times as slow: then one more would cost too much */
#define SHUNNED_MOST 512        /* calls for which a way is shunned that was chosen in vain */
#define DOUBT_MOST 512          /* calls that a slow run of the chosen way waits for a try of the other, at most */
#define YOUNG 96                /* calls of a small class ... */
#define NEAR_YOUNG_PERCENT 130  /* ... in which a way that is not slower than this is tried again without regard to the cost, ... */
#define PAUSE_LEAST 64          /* calls between two tries of the other way, but for such early ones, */
#define PAUSE_MOST 8192         /* doubled each time up to this */
#define CLAIM 3                 /* calls of the library that must bear out its claim */
#define FAR_WAY 4               /* times as slow: the library's other way in a mix is not looked at again */
#define PAUSE_FACTOR 200        /* a try of which a call costs x calls more is followed by so many times x calls without; */
#define PAUSE_SMALL 1600        /* ... by so many in a small class, where it has several */

/* The rails were chosen, and the library is known by its first call, which the host may have held up. */
static bool is_one_call(const struct nezha_model_class *class)
{
	return class->best == NEZHA_ALG_RING && class->cost[NEZHA_ALG_NATIVE].count == 1;
}

/* After how many calls a new decision is looked at again whatever that costs; 0: it rests on enough. */
static uint32_t soon(const struct nezha_model_class *class, uint32_t k, bool first, uint64_t least, uint64_t most)
{
	uint32_t near = first && class->best == NEZHA_ALG_NATIVE ? NEAR_FIRST_PERCENT : NEAR_SMALL_PERCENT;

	if (nezha_model_is_small(k))
		return 100 * most >= near * least ? 0 : first ? SOON : SOON_AFTER_SWITCH;
	return most < NEAR * least && (k < NEZHA_PRICE_MIX_LEAST || is_one_call(class)) ? PAUSE_FIRST : 0;
}

/* What the chosen way costs, and what is tried next in its place, as far as is known. */
struct rivals {
	uint64_t least, most;
};

static struct rivals rivals_of(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];
	enum nezha_algorithm other = nezha_model_alternative(model, k);
	uint64_t least = nezha_price_of(class, class->best), known = nezha_price_of(class, other);

	if (other == NEZHA_ALG_MIX)
		known = least;
	return (struct rivals){ least, known ? known : nezha_price_part(model, k, other) };
}

/* In a class's first calls the library's become slower and the rails' faster for a while. */
static bool is_young(const struct nezha_model_class *class, uint32_t k, struct rivals costs)
{
	return nezha_model_is_small(k) && class->calls < YOUNG && 100 * costs.most < NEAR_YOUNG_PERCENT * costs.least;
}

/* The next try is after so many calls, or later if the other way is shunned. */
static void wait_for(const struct nezha_model *model, struct nezha_model_class *class, uint32_t calls)
{
	uint32_t k = (uint32_t)(class - model->classes);
	enum nezha_algorithm other = nezha_model_alternative(model, k);
	uint32_t least = nezha_model_is_small(k) ? class->shunned[other] : 0;

	class->retry_at = class->calls + (calls > least ? calls : least);
}

/* After class->pause calls, and as many more as pay for the try. */
void nezha_model_plan_again(const struct nezha_model *model, struct nezha_model_class *class)
{
	uint32_t k = (uint32_t)(class - model->classes);
	struct rivals costs = rivals_of(model, k);
	uint64_t dear = costs.least && costs.most > costs.least && !is_young(class, k, costs)
	                ? (nezha_model_is_small(k) ? PAUSE_SMALL : PAUSE_FACTOR) * (costs.most - costs.least) / costs.least : 0;

	wait_for(model, class, class->pause + (uint32_t)(dear < UINT32_MAX / 4 ? dear : UINT32_MAX / 4));
}

/* All that is known of the rails are single calls, and the first ones of a job may all be held up.  What goes over them just now is past that. */
static void ask_for_extra(struct nezha_model_class *class, struct rivals costs, uint32_t most)
{
	class->extra = class->best == NEZHA_ALG_NATIVE && !class->cost[NEZHA_ALG_RING].by_run && class->extras < most &&
	                 costs.most < EXTRA_FAR * costs.least;
	class->extras += class->extra;
}

/* There is a new decision. */
static void plan_first(const struct nezha_model *model, struct nezha_model_class *class, bool first)
{
	uint32_t k = (uint32_t)(class - model->classes);
	struct rivals costs = rivals_of(model, k);
	uint32_t calls = soon(class, k, first, costs.least, costs.most);

	class->tries = 0;
	class->doubtful = false;
	class->pause = calls ? calls : PAUSE_LEAST;
	if (calls) {
		wait_for(model, class, calls);
		return;
	}
	nezha_model_plan_again(model, class);
	if (first && nezha_model_is_small(k))
		ask_for_extra(class, costs, 1);
}

void nezha_model_plan_after_extra(const struct nezha_model *model, struct nezha_model_class *class, uint64_t before)
{
	if (class->best == NEZHA_ALG_NATIVE && nezha_price_is_cheaper(nezha_price_of(class, NEZHA_ALG_RING), before, HELD_UP_PERCENT))
		plan_first(model, class, true);
}

/* What is known may be long ago. */
static void look_again(struct nezha_model_cost *c)
{
	c->samples[0] = nezha_price_value(c);
	c->count = c->count > 0;
	c->tried = 0;
}

/* The way of the library's part that mixes do not go may have been held up, or have become the better one: the next two go it. */
static void look_at_other_way(struct nezha_model_class *class)
{
	struct nezha_model_cost *pieces = &class->nonblocking, *whole = &class->part[NEZHA_ALG_NATIVE];
	struct nezha_model_cost *other = nezha_price_is_nonblocking(class) ? whole : pieces;
	uint64_t least = nezha_price_value(other == whole ? pieces : whole);

	if (other->count && nezha_price_value(other) < FAR_WAY * least)
		look_again(other);
}

void nezha_model_plan_next(const struct nezha_model *model, struct nezha_model_class *class)
{
	class->tries = 0;
	class->doubtful = false;
	if (class->best == NEZHA_ALG_MIX)
		look_at_other_way(class);
	/* One that was made because of a claim is none of those that come ever more rarely. */
	if (!class->claim)
		class->pause = (uint32_t)nezha_pause_longer(class->pause, PAUSE_LEAST, PAUSE_MOST);
	nezha_model_plan_again(model, class);
}

/* What the calls without it have cost is what a later try would. */
bool nezha_model_is_due_after_all(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *below = nezha_price_known_below(model, k);
	uint64_t rails = nezha_price_of(below, NEZHA_ALG_RING), native = nezha_price_of(below, NEZHA_ALG_NATIVE);

	return model->classes[k].calls >= PAUSE_LEAST + PAUSE_FACTOR * (native - rails) / rails;
}

/* The run before the first try, which is due at once, shows how slow the library was in its first calls.  The try is as long as many a
 * program's whole loop: if it is dear it waits as long as others do. */
static void plan_first_by_run(const struct nezha_model *model, struct nezha_model_class *class, struct rivals costs)
{
	if (100 * costs.most < NEAR_YOUNG_PERCENT * costs.least)
		return;
	class->pause = (uint32_t)nezha_pause_longer(class->pause, PAUSE_LEAST, PAUSE_MOST);
	if (100 * costs.most < NEAR_SMALL_PERCENT * costs.least)
		wait_for(model, class, PAUSE_LEAST);
	else
		nezha_model_plan_again(model, class);
}

/* The library's first run is told of in the first call of the first try, which ends there if that shows that it would be dear. */
static void end_first_by_run(const struct nezha_model *model, struct nezha_model_class *class, struct rivals costs)
{
	if (class->best != NEZHA_ALG_NATIVE || class->pause != SOON || 100 * costs.most < NEAR_SMALL_PERCENT * costs.least)
		return;
	plan_first_by_run(model, class, costs);
	ask_for_extra(class, costs, EXTRAS);
}

void nezha_model_plan_by_run(const struct nezha_model *model, struct nezha_model_class *class)
{
	uint32_t k = (uint32_t)(class - model->classes), planned = class->retry_at;
	struct rivals costs = rivals_of(model, k);
	bool sooner;

	if (class->tries)
		return;
	if (nezha_model_is_retry(model, k)) {
		end_first_by_run(model, class, costs);
		return;
	}
	if (class->pause == SOON) {
		plan_first_by_run(model, class, costs);
		return;
	}
	if (nezha_price_is_cheaper(costs.most, costs.least, SWITCH_PERCENT))
		wait_for(model, class, class->pause < DOUBT_MOST ? class->pause : DOUBT_MOST);
	else
		nezha_model_plan_again(model, class);
	sooner = (int32_t)(planned - class->retry_at) > 0;
	/* One slow run may be chance, and the slowest of many between two tries would decide. */
	if (!sooner || !class->doubtful)
		class->retry_at = planned;
	class->doubtful = sooner;
}

/* What costs more than when it was chosen may have lived on what the other way's calls had left: it is not tried again at once. */
static void give_up(struct nezha_model_class *class, enum nezha_algorithm way)
{
	bool kept = !nezha_price_is_cheaper(class->promise, nezha_price_of(class, way), SWITCH_PERCENT);

	class->shunned[way] = kept ? 0 : (uint32_t)nezha_pause_longer(class->shunned[way], PAUSE_LEAST, SHUNNED_MOST);
}

void nezha_model_heed_claim(struct nezha_model_class *class, uint32_t k)
{
	if (nezha_model_is_small(k) || class->best == NEZHA_ALG_NATIVE)
		return;
	if (class->claim <= 1) {
		look_again(&class->cost[NEZHA_ALG_NATIVE]);
		class->claim = 1;
	}
	class->claim++;
}

/* A call that does not bear out the claim ends it, and is what is known of the library from then on; but it may have been held up, so it
 * counts for half as much again as the one before at most. */
static void weigh_claim(const struct nezha_model *model, struct nezha_model_class *class)
{
	struct nezha_model_cost *native = &class->cost[NEZHA_ALG_NATIVE];
	uint64_t latest, most, best = nezha_price_of(class, class->best);

	if (class->claim <= 1)
		return;
	latest = native->samples[(native->count - 1) % NEZHA_MODEL_SAMPLES];
	if (nezha_price_is_cheaper(latest, best, SWITCH_PERCENT))
		return;
	most = native->samples[(native->count - 2) % NEZHA_MODEL_SAMPLES] * 3 / 2;
	if (most < best)        /* or the claim would stand */
		most = best;
	native->samples[0] = native->samples[1] = latest < most ? latest : most;
	native->count = 2;
	class->claim = 0;
	nezha_model_plan_again(model, class);
}

/* Whether what seems cheaper than the chosen way may take its place.  The library is asked first, in the next calls. */
static bool is_borne_out(struct nezha_model_class *class, uint32_t k, enum nezha_algorithm alg)
{
	if (alg != NEZHA_ALG_NATIVE || nezha_model_is_small(k) || class->claim > CLAIM)
		return true;
	if (!class->claim)
		class->claim = 1;
	class->retry_at = class->calls;
	return false;
}

/* The run just before a try may have been held up: there is one some 32 calls before it, too.  (But while the class is young the library may have
 * become slower since then.) */
static uint64_t price_to_beat(const struct nezha_model_class *class)
{
	uint64_t latest = nezha_price_of(class, class->best), before;

	if (class->best == NEZHA_ALG_MIX || (class->best == NEZHA_ALG_NATIVE && class->calls < YOUNG))
		return latest;
	before = class->cost[class->best].before;
	return before && before < latest ? before : latest;
}

/* How much cheaper than `now` the class's other way has to be. */
static uint32_t margin(const struct nezha_model_class *class, uint32_t k, bool first)
{
	if (first)
		return NEZHA_MODEL_TIE_PERCENT;
	return nezha_model_is_small(k) && class->best == NEZHA_ALG_NATIVE && class->calls < SWITCH_FIRST ? SWITCH_FIRST_PERCENT : SWITCH_PERCENT;
}

/* What was chosen newly is looked at closely. */
void nezha_model_decide(const struct nezha_model *model, struct nezha_model_class *class, bool first)
{
	enum nezha_algorithm before = class->best;
	uint32_t k = (uint32_t)(class - model->classes);
	bool borne_out;

	weigh_claim(model, class);
	for (enum nezha_algorithm alg = 0; alg < NEZHA_ALG_COUNT; alg++) {
		uint64_t now = price_to_beat(class), other = nezha_price_of(class, alg);

		if (other && class->cost[alg].count >= (alg == NEZHA_ALG_MIX ? 2 : 1) &&
		    (!now || nezha_price_is_cheaper(other, now, margin(class, k, first))) &&
		    (first || is_borne_out(class, k, alg)))
			class->best = alg;
	}
	if (class->best == before && !first)
		return;
	borne_out = class->best == NEZHA_ALG_NATIVE && class->claim > CLAIM;
	class->claim = 0;
	if (!first && !borne_out)
		look_again(&class->cost[class->best]);
	if (!first && before != NEZHA_ALG_MIX)
		give_up(class, before);
	class->promise = nezha_price_of(class, class->best);
	plan_first(model, class, first);
}
