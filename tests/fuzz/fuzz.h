/* SPDX-License-Identifier: BSD-3-Clause
 * What a fuzz target shares with those that drive it. */
#ifndef NEZHA_TESTS_FUZZ_H
#define NEZHA_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* One input.  Aborts if something that must hold does not; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Holds in every build, with NDEBUG too. */
#define fuzz_assert(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

#endif
