/* SPDX-License-Identifier: BSD-3-Clause
 * Cases that cannot be run where this runs.  cmocka's skip() alone says nothing, and leaves a program that has shown nothing passed. */
#ifndef NEZHA_TESTS_SKIP_H
#define NEZHA_TESTS_SKIP_H

#include "tests/unit/unit.h"

#include <stdbool.h>
#include <stdio.h>

/* Of a program that shows enough without it, which stays passed. */
#define SKIP_DETAIL(why) (fputs("skipped: " why "\n", stderr), skip())

/* What the program is for: it counts as skipped, if its main returns skip_status(what cmocka has returned). */
#define SKIP_POINT(why) (skip_point = true, SKIP_DETAIL(why))

static bool skip_point;

static inline int skip_status(int failed)
{
	return failed ? failed : skip_point ? 77 : 0;
}

#endif
