/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <string.h>

#include "rails/past.h"

#define ROOM 512u
#define GUARD 64u

/* From any place to any place, any length: all of it, and nothing beside it. */
static void copies_as_memcpy(void **state)
{
	static unsigned char from[ROOM], to[ROOM], wanted[ROOM];

	(void)state;
	for (size_t i = 0; i < ROOM; i++)
		from[i] = (unsigned char)(i * 7 + 1);
	for (size_t place = 0; place < GUARD; place++)
		for (size_t bytes = 0; bytes <= ROOM - 2 * GUARD; bytes += bytes < 200 ? 1 : 31) {
			const unsigned char *source = from + (place * 5 + bytes) % GUARD;

			memset(to, 0, sizeof to);
			memset(wanted, 0, sizeof wanted);
			memcpy(wanted + GUARD / 2 + place, source, bytes);
			nezha_past_copy(to + GUARD / 2 + place, source, bytes);
			assert_memory_equal(to, wanted, sizeof to);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(copies_as_memcpy) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
