/* SPDX-License-Identifier: BSD-3-Clause
 * Registered memory of the provider of fake_verbs.h.  A region is the pages that lay at its addresses when it was registered, as
 * for a device: if others are mapped there later, work that names it still goes to the old ones.  That holds for shared
 * mappings; of private pages a second mapping cannot be had, so for these the addresses count. */
#ifndef NEZHA_TESTS_FAKE_REGION_H
#define NEZHA_TESTS_FAKE_REGION_H

#include "rails/verbs_api.h"

/* Registers, and the contrary. */
struct ibv_mr *fake_region_make(struct ibv_pd *pd, void *at, size_t length);
void fake_region_unmake(struct ibv_mr *mr);

/* Where a device finds the bytes of `piece`.  Ends the program if they do not lie in the region that it names. */
char *fake_region_place(const struct ibv_sge *piece);

/* Regions that there are, and that were ever made. */
int fake_region_count(void);
long fake_region_ever(void);

#endif
