/* SPDX-License-Identifier: BSD-3-Clause
 * The decision of a class, and when another way is tried again.  For the model's own files; `class` is one of the model's.  Pure. */
#ifndef NEZHA_TUNING_MODEL_PLAN_H
#define NEZHA_TUNING_MODEL_PLAN_H

#include "tuning/model.h"

/* Chooses the cheapest way that is known; `first`: there was no decision yet. */
void nezha_model_decide(const struct nezha_model *model, struct nezha_model_class *class, bool first);

/* There is a new time of the library, not yet added to those that are known: where another way was chosen, these are long ago. */
void nezha_model_heed_claim(struct nezha_model_class *class, uint32_t k);

/* Whether the library, far slower in a class below, is tried in class k after all. */
bool nezha_model_is_due_after_all(const struct nezha_model *model, uint32_t k);

/* There is one more of the rails' single calls, see `extra`: if they cost less than `before` by far, plans their first try anew. */
void nezha_model_plan_after_extra(const struct nezha_model *model, struct nezha_model_class *class, uint64_t before);

/* A try is over: plans the next one. */
void nezha_model_plan_next(const struct nezha_model *model, struct nezha_model_class *class);

/* There is a new run of a small class's chosen way: plans the next try anew if two in a row would have it earlier; the first one
 * also if it turns out to be too dear to be so early, and may then ask for an extra call of the rails. */
void nezha_model_plan_by_run(const struct nezha_model *model, struct nezha_model_class *class);

/* Plans that one anew, by what has been learnt since. */
void nezha_model_plan_again(const struct nezha_model *model, struct nezha_model_class *class);

#endif
