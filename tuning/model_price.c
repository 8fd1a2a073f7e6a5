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

bool nezha_price_in_pieces(const struct nezha_model_class *class)
{
	const struct nezha_model_cost *whole = &class->part[NEZHA_ALG_NATIVE];

	/* The only one may have been held up. */
	if (!class->pieces.count || (class->pieces.count == 1 && whole->count > 1))
		return true;
	if (!whole->count)
		whole = &class->cost[NEZHA_ALG_NATIVE];
	return !whole->count || nezha_price_value(&class->pieces) <= nezha_price_value(whole);
}

/* The library's bytes in a mix, as they were seen to be cheapest; 0: there was none yet. */
static uint64_t library_part(const struct nezha_model_class *class)
{
	const struct nezha_model_cost *whole = &class->part[NEZHA_ALG_NATIVE];

	return nezha_price_value(whole->count && !nezha_price_in_pieces(class) ? whole : &class->pieces);
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

/* What the library's bytes may cost in the next mix: of the way that was not seen in one, what it costs alone. */
static uint64_t promised_part(const struct nezha_model *model, uint32_t k)
{
	const struct nezha_model_class *class = &model->classes[k];

	return class->pieces.count && nezha_price_in_pieces(class) ? nezha_price_value(&class->pieces)
	       : nezha_price_part(model, k, NEZHA_ALG_NATIVE);
}

/* The cheapest that is known without a mix; 0: nothing is. */
static uint64_t least_alone(const struct nezha_model_class *class)
{
	uint64_t native = nezha_price_of(class, NEZHA_ALG_NATIVE), rails = nezha_price_of(class, NEZHA_ALG_RING);

	return !native || (rails && rails < native) ? rails : native;
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
	uint64_t both = balanced(promised_part(model, k), nezha_price_part(model, k, NEZHA_ALG_RING));

	return k >= NEZHA_PRICE_MIX_LEAST && is_apart(model, k) && both &&
	       nezha_price_is_cheaper(both, least_alone(&model->classes[k]), MIX_PERCENT);
}

uint64_t nezha_price_native_share(const struct nezha_model *model, uint64_t bytes, uint32_t block)
{
	uint32_t k = nezha_price_class(bytes);
	uint64_t seen = library_part(&model->classes[k]);
	/* The rails' part was seen beside that. */
	double native = (double)(seen ? seen : nezha_price_part(model, k, NEZHA_ALG_NATIVE));
	double rails = (double)nezha_price_part(model, k, NEZHA_ALG_RING);
	uint64_t share = (uint64_t)((double)bytes * rails / (native + rails)) / block * block;

	if (share < block)
		share = block;
	return share < bytes ? share : bytes - block;
}

enum nezha_algorithm nezha_price_best_alone(const struct nezha_model_class *class)
{
	return least_alone(class) == nezha_price_of(class, NEZHA_ALG_NATIVE) ? NEZHA_ALG_NATIVE : NEZHA_ALG_RING;
}
