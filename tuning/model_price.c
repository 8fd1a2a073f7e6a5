/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/model_price.h"

#include "tuning/bytes.h"

#define FAR_RAILS 4             /* times as slow: the rails are not tried in the classes above, */
#define FAR_CLASSES 6           /* nor is the library; not further than so many classes away */
#define MIX_PERCENT 7           /* what a mix must promise to save */

uint32_t nezha_price_class(uint64_t bytes)
{
	uint32_t k = nezha_bytes_class(bytes);

	return k < NEZHA_MODEL_CLASSES ? k : NEZHA_MODEL_CLASSES - 1;
}

static uint64_t middle_of_three(const uint64_t *s)
{
	uint64_t low = s[0] < s[1] ? s[0] : s[1], high = s[0] < s[1] ? s[1] : s[0];

	return s[2] < low ? low : s[2] > high ? high : s[2];
}

uint64_t nezha_price_value(const struct nezha_model_cost *c)
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

/* Its only try may have been held up, and now there is something to compare it with. */
static bool deserves_another(const struct nezha_model_cost *way, const struct nezha_model_cost *other)
{
	return way->count == 1 && other->count > 1;
}

bool nezha_price_is_nonblocking(const struct nezha_model_class *class)
{
	const struct nezha_model_cost *pieces = &class->nonblocking, *whole = &class->part[NEZHA_ALG_NATIVE];

	if (!pieces->count || deserves_another(pieces, whole))
		return true;
	if (!whole->count)
		whole = &class->cost[NEZHA_ALG_NATIVE];
	else if (deserves_another(whole, pieces))
		return false;
	return nezha_price_value(pieces) <= nezha_price_value(whole);
}

static uint64_t least_known(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* The library's bytes in a mix, by the cheaper one of the ways that were seen there; 0: there was no mix yet. */
static uint64_t library_part(const struct nezha_model_class *class)
{
	return least_known(nezha_price_value(&class->nonblocking), nezha_price_value(&class->part[NEZHA_ALG_NATIVE]));
}

uint64_t nezha_price_of(const struct nezha_model_class *class, enum nezha_algorithm alg)
{
	if (alg == NEZHA_ALG_MIX)
		return balanced(library_part(class), nezha_price_value(&class->part[NEZHA_ALG_RING]));
	return nezha_price_value(&class->cost[alg]);
}

bool nezha_price_is_cheaper(uint64_t a, uint64_t b, unsigned percent)
{
	return a < b - b * percent / 100;
}

const struct nezha_model_class *nezha_price_known_below(const struct nezha_model *model, uint32_t k)
{
	for (uint32_t i = k; i-- > NEZHA_PRICE_FAR_LEAST && k - i <= FAR_CLASSES;)
		if (nezha_price_of(&model->classes[i], NEZHA_ALG_RING) && nezha_price_of(&model->classes[i], NEZHA_ALG_NATIVE))
			return &model->classes[i];
	return NULL;
}

enum nezha_algorithm nezha_price_far_slower(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *below = nezha_price_known_below(model, k);

	if (below && nezha_price_of(below, NEZHA_ALG_NATIVE) > NEZHA_PRICE_FAR * nezha_price_of(below, NEZHA_ALG_RING))
		return NEZHA_ALG_NATIVE;
	if (below && k >= NEZHA_PRICE_MIX_LEAST &&
	    nezha_price_of(below, NEZHA_ALG_RING) > FAR_RAILS * nezha_price_of(below, NEZHA_ALG_NATIVE))
		return NEZHA_ALG_RING;
	return NEZHA_ALG_MIX;
}

uint64_t nezha_price_part(const struct nezha_model *model, uint32_t k, enum nezha_algorithm alg)
{
	const struct nezha_model_class *class = &model->classes[k], *below;

	if (class->part[alg].count)
		return nezha_price_value(&class->part[alg]);
	if (class->cost[alg].count)
		return nezha_price_of(class, alg);
	below = nezha_price_known_below(model, k);
	return below ? nezha_price_of(below, alg) : 0;
}

/* As library_part, but of a blocking call that was not seen in a mix what it costs alone is taken for granted. */
static uint64_t promised_part(const struct nezha_model *model, uint32_t k)
{
	return least_known(nezha_price_value(&model->classes[k].nonblocking), nezha_price_part(model, k, NEZHA_ALG_NATIVE));
}

/* The cheapest that is known without a mix; 0: nothing is. */
static uint64_t least_alone(const struct nezha_model_class *class)
{
	return least_known(nezha_price_of(class, NEZHA_ALG_NATIVE), nezha_price_of(class, NEZHA_ALG_RING));
}

/* Whether the library seems to have a network of its own. */
static bool is_apart(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k], *below;

	if (class->cost[NEZHA_ALG_NATIVE].count)
		return class->apart;
	below = nezha_price_known_below(model, k);
	return below && below->apart;
}

bool nezha_price_mix_pays(const struct nezha_model *model, uint32_t k)
{
	uint64_t both;

	if (k < NEZHA_PRICE_MIX_LEAST || !is_apart(model, k))
		return false;
	both = balanced(promised_part(model, k), nezha_price_part(model, k, NEZHA_ALG_RING));
	return both && nezha_price_is_cheaper(both, least_alone(&model->classes[k]), MIX_PERCENT);
}

/* What a mix takes of which the library has `share` of `bytes`: both end when the later one does. */
static double mix_time(double native, double rails, uint64_t share, uint64_t bytes)
{
	double library = native * (double)share, others = rails * (double)(bytes - share);

	return library > others ? library : others;
}

/* Both are of mixes, if there was one: beside the other, either takes longer than alone. */
static void prices_in_mix(const struct nezha_model *model, uint32_t k, double *native, double *rails)
{
	const struct nezha_model_class *class = &model->classes[k];
	uint64_t way = nezha_price_value(nezha_price_is_nonblocking(class) ? &class->nonblocking : &class->part[NEZHA_ALG_NATIVE]);
	uint64_t seen = way ? way : library_part(class);

	*native = (double)(seen ? seen : nezha_price_part(model, k, NEZHA_ALG_NATIVE));
	*rails = (double)nezha_price_part(model, k, NEZHA_ALG_RING);
}

/* Of few blocks one too many for the slower of the two weighs: that with which both together are sooner done goes to the other. */
uint64_t nezha_price_native_share(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	double native, rails;
	uint64_t share;

	prices_in_mix(model, nezha_price_class(bytes), &native, &rails);
	share = (uint64_t)((double)bytes * rails / (native + rails)) / block * block;
	if (share + block < bytes && mix_time(native, rails, share + block, bytes) < mix_time(native, rails, share, bytes))
		share += block;
	if (share < block)
		share = block;
	return share < bytes ? share : bytes - block;
}

uint16_t nezha_price_native_part(const struct nezha_model *model, uint32_t k)
{
	double native, rails;
	uint16_t part;

	prices_in_mix(model, k, &native, &rails);
	part = (uint16_t)(NEZHA_SHARE_WHOLE * rails / (native + rails) + 0.5);
	if (part < 1)
		return 1;
	return part < NEZHA_SHARE_WHOLE ? part : NEZHA_SHARE_WHOLE - 1;
}

enum nezha_algorithm nezha_price_best_alone(const struct nezha_model_class *class)
{
	return least_alone(class) == nezha_price_of(class, NEZHA_ALG_NATIVE) ? NEZHA_ALG_NATIVE : NEZHA_ALG_RING;
}
