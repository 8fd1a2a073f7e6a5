/* SPDX-License-Identifier: BSD-3-Clause
 * The part of a table that was measured: one group of rules for each number of ranks with so many of them on a node,
 * found again by nezha_rule_group->measured and ->measured_ppn.  nezha-tune and jobs that write down what they have
 * learnt (learned.h) share it.
 *
 * Measured groups come first.  Those with one rank a node hold for one rank a node; the others share out all numbers of
 * ranks a node from two on; and those with as many share out all numbers of ranks: each gets what is nearest (in ratio)
 * to what was measured.  Other groups stay behind them. */
#ifndef NEZHA_TUNING_SCALES_H
#define NEZHA_TUNING_SCALES_H

#include "tuning/fingerprint.h"
#include "tuning/rules.h"

/* A table in which nothing is measured: the built-in rules, which hold until something is.  NEZHA_ERR_NOMEM. */
int nezha_scales_none(struct nezha_table **out);

/* Puts the rules of a scale into the table, in place of those that were measured with as many ranks, on a node and in
 * all; group->rules is the table's then, if it succeeds.  NEZHA_ERR_NOMEM; NEZHA_ERR_INVALID: no room for one more group. */
int nezha_scales_put(struct nezha_table *table, const struct nezha_rule_group *group);

/* The rules measured with so many ranks, `ppn` of them on a node; NULL: the table has none. */
const struct nezha_rule_group *nezha_scales_find(const struct nezha_table *table, int ranks, int ppn);

/* Makes the table's header say that it was measured today, where and, if it has no comment yet, by whom.
 * NEZHA_ERR_NOMEM. */
int nezha_scales_sign(struct nezha_table *table, const struct nezha_fingerprint *where, const char *comment);

#endif
