/* SPDX-License-Identifier: BSD-3-Clause
 * Whether all ranks of a communicator hold the same model and plan: what each rank states before a call, and what
 * follows when the statements of all ranks are folded with MIN (NEZHA_CHECK=plan).  Pure. */
#ifndef NEZHA_TUNING_AGREE_H
#define NEZHA_TUNING_AGREE_H

#include <stdint.h>

#include "tuning/model.h"
#include "tuning/plan.h"

/* X(field, text): what a rank states; an earlier difference explains later ones. */
#define NEZHA_STATEMENT(X) \
	X(call, "call number") \
	X(bytes, "size") \
	X(model, "model") \
	X(plan, "plan")

struct nezha_statement {
#define X(field, text) uint64_t field;
	NEZHA_STATEMENT(X)
#undef X
};

#define NEZHA_STATEMENT_WORDS 8       /* two for each field */
#define NEZHA_STATEMENT_TEXT 64       /* bytes that nezha_statement_differs fits into */

/* A hash of all that decides what the model does next: the classes, and of the pending list the sizes and the ways, not
 * the times, which differ on all ranks until a note has folded them.  NULL: 0.  The same on all machines. */
uint64_t nezha_model_digest(const struct nezha_model *model);

/* A hash of what nezha_plan_equal compares. */
uint64_t nezha_plan_digest(const struct nezha_plan *plan);

/* The words that are folded with MIN over all ranks: each field and its complement. */
void nezha_statement_spread(const struct nezha_statement *mine, uint64_t words[NEZHA_STATEMENT_WORDS]);

/* Whether the folded words come from statements that were all the same. */
bool nezha_statement_agreed(const uint64_t words[NEZHA_STATEMENT_WORDS]);

/* Prints the fields in which two statements differ, "size and plan", into buf, cut to len; "" if there are none. */
void nezha_statement_differs(const struct nezha_statement *a, const struct nezha_statement *b, char *buf, size_t len);

#endif
