/* SPDX-License-Identifier: BSD-3-Clause
 * A world (world.h) over the provider of fake_verbs.h, and what tests of its failures share. */
#ifndef NEZHA_TESTS_VERBS_WORLD_H
#define NEZHA_TESTS_VERBS_WORLD_H

#include "tests/conformance/world.h"

/* As world_run; `rails` is NEZHA_TEST_VERBS.  What the provider has made and nobody destroyed counts as a failure, too. */
int verbs_world_run(const char *rails, int ranks, int count, enum nezha_policy_kind policy,
                    void (*body)(struct member *member, void *argument), void *argument);

/* A call of float64 SUM, checked. */
void verbs_world_call(struct member *member, uint64_t count, uint32_t block, bool in_place);

/* Makes calls until none of the ranks says any more that it is `pending`, for some time at most; false: one still does.
 * Collective. */
bool verbs_world_calls_until(struct member *member, bool (*pending)(struct member *member, void *argument), void *argument);

/* Paths lost and regained so far, over all rails. */
void verbs_world_events(const struct member *member, uint64_t *losses, uint64_t *returns);

/* For verbs_world_calls_until: not all paths are (back) up; ..., or none was lost so far.  `argument` is ignored. */
bool verbs_world_is_down(struct member *member, void *argument);
bool verbs_world_is_down_or_unhurt(struct member *member, void *argument);

#endif
