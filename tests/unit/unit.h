/* SPDX-License-Identifier: BSD-3-Clause
 * What every unit test includes: cmocka wants these four headers before its own. */
#ifndef NEZHA_TESTS_UNIT_H
#define NEZHA_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
