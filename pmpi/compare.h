/* SPDX-License-Identifier: BSD-3-Clause
 * Whether two results of one reduction, made in different orders, can both be right (NEZHA_CHECK=native).  No MPI in here.
 *
 * Integers, and MIN and MAX, must be the same.  A floating SUM of n numbers may be off by (n-1) eps sum|x| in any order (Higham,
 * Accuracy and Stability of Numerical Algorithms, 4.2), so two differ by twice that; a PROD by (n-1) eps |prod x|, and
 * where partial products are too small for the type by what that is times the factors that follow. */
#ifndef NEZHA_PMPI_COMPARE_H
#define NEZHA_PMPI_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuning/types.h"

/* Whether a comparison needs the weights, and how they are folded over the ranks. */
bool nezha_compare_weighs(enum nezha_type type);
enum nezha_op nezha_compare_fold(enum nezha_op op);

/* out[i] = the weight of in[i], of the same type: |x|; for PROD max(|x|, 1). */
void nezha_compare_weight(enum nezha_type type, enum nezha_op op, const void *in, void *out, size_t n);

/* What is compared. */
struct nezha_results {
	enum nezha_type type;
	enum nezha_op op;
	int ranks;
	const void *mine, *other;    /* n elements each */
	const void *weight;          /* of all ranks, folded; NULL unless nezha_compare_weighs */
};

/* How many of elements [0, n) cannot both be right; *first: the first of them.  Where some input is no number, or sums leave the
 * type's range in some order, anything is right. */
size_t nezha_compare(const struct nezha_results *results, size_t n, size_t *first);

/* Element i of `values` for people. */
void nezha_compare_print(enum nezha_type type, const void *values, size_t i, char *out, size_t len);

#endif
