/* SPDX-License-Identifier: BSD-3-Clause
 * The policy `share`: how the Nezha paper divides an allreduce among networks, so that it can be compared (E. Yu,
 * D. Dong, X. Liao, "Nezha: Breaking Multi-Rail Network Barriers for Distributed DNN Training", arXiv:2405.17870).
 * In our words:
 *
 * - A rail i alone takes T_i(S) for S bytes.  Small calls are cold: all their blocks go over the one rail with the
 *   least T_i(S).
 * - Large ones are hot: each rail gets the part alpha_i of the call, alpha_i proportional to 1 / T_i(S).  (The formula
 *   that the paper prints for alpha_0 is that only where there are two rails, so it is not used.)
 * - The switch-over is at the size at which both take the same time: T_hot = max T_i(alpha_i S), T_cold = min T_i(S).
 * - A rail is combined with others only if its efficiency, S / T_i(S), is not less than that of the best by more than
 *   a factor tau = 5.
 * - What is known of the rails is kept by size, and renewed by the mean of every ten calls of a size (ten as in the
 *   conference version, a hundred in the later one).
 * - With each renewal the parts are refined by a step down the gradient of T_hot.  T_hot being a maximum, only the rail that ends
 *   last has one: it gives to the one that ends first, half of what would make the two end together.
 *
 * What differs from the paper: T_i(S) is start + S * byte of the link's paths as rails/estimator.c measures them, not
 * the time of an allreduce of its own on each network; sizes are classes of the link's bytes, [2^k, 2^(k+1)). */
#ifndef NEZHA_RAILS_SHARE_H
#define NEZHA_RAILS_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rails/nic.h"

#define NEZHA_SHARE_CLASSES 48       /* the last one: all above, too */
#define NEZHA_SHARE_CALLS 10
#define NEZHA_SHARE_TAU 5

/* What a rail takes for S bytes: start + S * byte seconds. */
struct nezha_share_time {
	double start;                /* >= 0 */
	double byte;                 /* > 0 */
};

/* What a link remembers, all zero at its beginning: for each class the mean of the last ten calls that are complete,
 * the sum of those that are not, and by how much the parts have been refined. */
struct nezha_share {
	struct nezha_share_class {
		struct nezha_share_time mean[NEZHA_RAILS_MAX], sum[NEZHA_RAILS_MAX];
		double refined[NEZHA_RAILS_MAX];   /* added to the parts, which then are made to be 1 together */
		uint32_t summed;
		bool known;          /* there is a mean */
	} classes[NEZHA_SHARE_CLASSES];
};

/* The parts of a call of `bytes`: part[i] >= 0, all together 1; `usable`: bit i for rail i that may be used.  All 0 if
 * none may. */
void nezha_share_split(const struct nezha_share_time *rails, size_t count, uint32_t usable, uint64_t bytes,
                       double *part);

/* The same for the next call of a link, by what it remembers; `now`: what its rails (at most NEZHA_RAILS_MAX) take by
 * the latest measurement, which counts as the call's. */
void nezha_share_call(struct nezha_share *share, const struct nezha_share_time *now, size_t count, uint32_t usable,
                      uint64_t bytes, double *part);

#endif
