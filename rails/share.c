/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/share.h"

#include "tuning/bytes.h"

#define LEAST_LEFT 8            /* of a part by 1 / T_i(S): refined, a rail has one by so much smaller at least, by which it is measured */

static double alone(const struct nezha_share_time *rail, double bytes)
{
	return rail->start + rail->byte * bytes;
}

/* The usable rail with the least T(S); -1: there is none. */
static int find_best(const struct nezha_share_time *rails, size_t count, uint32_t usable, double bytes)
{
	int best = -1;

	for (size_t i = 0; i < count; i++)
		if (usable >> i & 1 && (best < 0 || alone(&rails[i], bytes) < alone(&rails[best], bytes)))
			best = (int)i;
	return best;
}

/* The hot parts, of those that are efficient enough; returns T_hot. */
static double combine(const struct nezha_share_time *rails, size_t count, uint32_t usable, double bytes, double least,
                      double *part)
{
	double sum = 0, longest = 0;

	for (size_t i = 0; i < count; i++) {
		double time = alone(&rails[i], bytes);

		part[i] = usable >> i & 1 && time <= NEZHA_SHARE_TAU * least ? 1 / time : 0;
		sum += part[i];
	}
	for (size_t i = 0; i < count; i++) {
		part[i] /= sum;
		if (part[i] > 0 && alone(&rails[i], part[i] * bytes) > longest)
			longest = alone(&rails[i], part[i] * bytes);
	}
	return longest;
}

void nezha_share_split(const struct nezha_share_time *rails, size_t count, uint32_t usable, uint64_t bytes,
                       double *part)
{
	double size = bytes ? (double)bytes : 1;
	int best = find_best(rails, count, usable, size);
	double least = best < 0 ? 0 : alone(&rails[best], size);

	if (best >= 0 && combine(rails, count, usable, size, least, part) < least)
		return;
	for (size_t i = 0; i < count; i++)
		part[i] = (int)i == best;
}

/* Adds what is measured now; with the tenth, the mean is what counts: true. */
static bool remember(struct nezha_share_class *class, const struct nezha_share_time *now, size_t count)
{
	bool complete = ++class->summed == NEZHA_SHARE_CALLS;

	for (size_t i = 0; i < count; i++) {
		struct nezha_share_time *sum = &class->sum[i];

		sum->start += now[i].start;
		sum->byte += now[i].byte;
		if (!complete)
			continue;
		class->mean[i] = (struct nezha_share_time){
			sum->start / NEZHA_SHARE_CALLS, sum->byte / NEZHA_SHARE_CALLS,
		};
		*sum = (struct nezha_share_time){ 0, 0 };
	}
	if (complete) {
		class->known = true;
		class->summed = 0;
	}
	return complete;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* Hot parts, with what they have been refined by, which is no more than they can be. */
static void add_refined(struct nezha_share_class *class, size_t count, double *part)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		if (part[i] > 0) {
			class->refined[i] = larger(class->refined[i], part[i] / LEAST_LEFT - part[i]);
			part[i] += class->refined[i];
		}
		sum += part[i];
	}
	for (size_t i = 0; i < count; i++)
		part[i] /= sum;
}

/* From the rail that ends last to the one that ends first, of those with a part; half of what would make them end together. */
static void refine(struct nezha_share_class *class, size_t count, double bytes, const double *part)
{
	int last = -1, first = -1;
	double step;

	for (size_t i = 0; i < count; i++) {
		double end = alone(&class->mean[i], part[i] * bytes);

		if (part[i] > 0 && (last < 0 || end > alone(&class->mean[last], part[last] * bytes)))
			last = (int)i;
		if (part[i] > 0 && (first < 0 || end < alone(&class->mean[first], part[first] * bytes)))
			first = (int)i;
	}
	step = (alone(&class->mean[last], part[last] * bytes) - alone(&class->mean[first], part[first] * bytes)) / 2 /
	       (bytes * (class->mean[last].byte + class->mean[first].byte));
	class->refined[last] -= step;
	class->refined[first] += step;
}

static bool is_hot(const double *part, size_t count)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		used += part[i] > 0;
	return used > 1;
}

void nezha_share_call(struct nezha_share *share, const struct nezha_share_time *now, size_t count, uint32_t usable,
                      uint64_t bytes, double *part)
{
	unsigned k = nezha_bytes_class(bytes);
	struct nezha_share_class *class = &share->classes[k < NEZHA_SHARE_CLASSES ? k : NEZHA_SHARE_CLASSES - 1];

	bool renewed = remember(class, now, count);

	nezha_share_split(class->known ? class->mean : now, count, usable, bytes, part);
	if (!is_hot(part, count))
		return;
	add_refined(class, count, part);
	if (renewed)
		refine(class, count, larger((double)bytes, 1), part);
}
