/* SPDX-License-Identifier: BSD-3-Clause
 * What the ways of a call cost by a model, in picoseconds per byte; 0: not known.  Pure. */
#ifndef NEZHA_TUNING_MODEL_PRICE_H
#define NEZHA_TUNING_MODEL_PRICE_H

#include "tuning/model.h"

#define NEZHA_PRICE_FAR 2         /* times as slow: no doubt */
#define NEZHA_PRICE_FAR_LEAST 18  /* the class from which on (256 KiB) latency is not what decides */
#define NEZHA_PRICE_MIX_LEAST 20  /* the class from which on both are used at once (1 MiB): below, starting both costs more */

/* The class of a vector. */
uint32_t nezha_price_class(uint64_t bytes);

/* The median of the samples; of two the smaller, since the first one is often a cold one. */
uint64_t nezha_price_value(const struct nezha_model_cost *c);

/* What a way costs.  A mix that ended unevenly costs what it will with the shares that follow from it. */
uint64_t nezha_price_of(const struct nezha_model_class *class, enum nezha_algorithm alg);

/* Whether a is less than b by more than so many per cent. */
bool nezha_price_is_cheaper(uint64_t a, uint64_t b, unsigned percent);

/* The next class below k in which the library and the rails are known; NULL: none is near. */
const struct nezha_model_class *nezha_price_known_below(const struct nezha_model *model, uint32_t k);

/* Which of the two such a class has shown to be no match for the other; MIX: neither. */
enum nezha_algorithm nezha_price_far_slower(const struct nezha_model *model, uint32_t k);

/* Whether the library does its part of the next mix in nonblocking pieces: at first; then not if they were dearer than its blocking call, as
 * far as that was not seen in a mix alone.  A way that was seen in one mix only gets another when the other one has had two. */
bool nezha_price_is_nonblocking(const struct nezha_model_class *class);

/* What the bytes of the library's blocking call or of the rails cost in a mix, or else alone, or in a class below; 0: not known. */
uint64_t nezha_price_part(const struct nezha_model *model, uint32_t k, enum nezha_algorithm alg);

/* The cheaper of the library and the rails without the other; what is not known is not it. */
enum nezha_algorithm nezha_price_best_alone(const struct nezha_model_class *class);

/* Whether the two at once, ending together, would save enough. */
bool nezha_price_mix_pays(const struct nezha_model *model, uint32_t k);

/* The library's share of the next mix, so that both end together: whole blocks. */
uint64_t nezha_price_native_share(const struct nezha_model *model, uint64_t bytes, uint32_t block);

/* Of what a large vector of its class has, the library's part: of NEZHA_SHARE_WHOLE (plan.h), from 1 to one less than all. */
uint16_t nezha_price_native_part(const struct nezha_model *model, uint32_t k);

#endif
