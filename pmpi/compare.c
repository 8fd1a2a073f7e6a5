/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/compare.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool nezha_compare_weighs(enum nezha_type type)
{
	return type >= NEZHA_FLOAT32;
}

enum nezha_op nezha_compare_fold(enum nezha_op op)
{
	return op == NEZHA_PROD ? NEZHA_PROD : NEZHA_SUM;
}

static double get(enum nezha_type type, const void *values, size_t i)
{
	return type == NEZHA_FLOAT32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

/* What is no number stays none. */
static double weight(enum nezha_op op, double x)
{
	x = fabs(x);
	return op == NEZHA_PROD && x < 1 ? 1 : x;
}

void nezha_compare_weight(enum nezha_type type, enum nezha_op op, const void *in, void *out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double w = weight(op, get(type, in, i));

		if (type == NEZHA_FLOAT32)
			((float *)out)[i] = (float)w;
		else
			((double *)out)[i] = w;
	}
}

/* By how much they may differ. */
static double bound(const struct nezha_results *results, double other, double w)
{
	bool single = results->type == NEZHA_FLOAT32;
	double eps = single ? FLT_EPSILON : DBL_EPSILON, least = single ? FLT_TRUE_MIN : DBL_TRUE_MIN;
	double roundings = 2.0 * results->ranks;

	switch (results->op) {
	case NEZHA_SUM: return roundings * eps * w;
	case NEZHA_PROD: return roundings * (eps * fabs(other) + least * w);
	default: return 0;
	}
}

static bool floats_agree(const struct nezha_results *results, size_t i)
{
	double mine = get(results->type, results->mine, i), other = get(results->type, results->other, i);
	double w = get(results->type, results->weight, i);

	if (mine == other || (isnan(mine) && isnan(other)) || isnan(w))
		return true;
	if (results->op <= NEZHA_PROD && isinf(w))
		return true;
	return fabs(mine - other) <= bound(results, other, w);      /* false if one is no number */
}

static bool agree(const struct nezha_results *results, size_t i)
{
	size_t size = nezha_type_size(results->type);

	if (nezha_compare_weighs(results->type))
		return floats_agree(results, i);
	return !memcmp((const char *)results->mine + i * size, (const char *)results->other + i * size, size);
}

size_t nezha_compare(const struct nezha_results *results, size_t n, size_t *first)
{
	size_t wrong = 0;

	if (!memcmp(results->mine, results->other, n * nezha_type_size(results->type)))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (!agree(results, i) && !wrong++)
			*first = i;
	return wrong;
}

void nezha_compare_print(enum nezha_type type, const void *values, size_t i, char *out, size_t len)
{
	switch (type) {
	case NEZHA_INT8: snprintf(out, len, "%" PRId8, ((const int8_t *)values)[i]); break;
	case NEZHA_UINT8: snprintf(out, len, "%" PRIu8, ((const uint8_t *)values)[i]); break;
	case NEZHA_INT16: snprintf(out, len, "%" PRId16, ((const int16_t *)values)[i]); break;
	case NEZHA_UINT16: snprintf(out, len, "%" PRIu16, ((const uint16_t *)values)[i]); break;
	case NEZHA_INT32: snprintf(out, len, "%" PRId32, ((const int32_t *)values)[i]); break;
	case NEZHA_UINT32: snprintf(out, len, "%" PRIu32, ((const uint32_t *)values)[i]); break;
	case NEZHA_INT64: snprintf(out, len, "%" PRId64, ((const int64_t *)values)[i]); break;
	case NEZHA_UINT64: snprintf(out, len, "%" PRIu64, ((const uint64_t *)values)[i]); break;
	case NEZHA_FLOAT32: snprintf(out, len, "%.9g", get(type, values, i)); break;
	default: snprintf(out, len, "%.17g", get(type, values, i)); break;
	}
}
