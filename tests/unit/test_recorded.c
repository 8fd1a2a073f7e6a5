/* SPDX-License-Identifier: BSD-3-Clause
 * The estimator, fed with what paths of real jobs said (recorded/; each file tells its form).  In all of these an estimator
 * that believes single windows, or stops at late acknowledgements, is off by 25 to 40 % for many calls. */
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rails/estimator.h"

#define MBIT 125000.0
#define OFF 0.15

enum { NARROW = 1, RECOVERING = 2, SHUT = 4 };

static FILE *open_recording(const char *name)
{
	const char *top = getenv("abs_top_srcdir");
	char path[4096];
	FILE *file;

	snprintf(path, sizeof path, "%s/tests/unit/recorded/%s.samples", top ? top : ".", name);
	file = fopen(path, "r");
	if (!file)
		fail_msg("cannot open %s (abs_top_srcdir tells where the sources are)", path);
	return file;
}

/* The next line that is no comment; false: there is none. */
static bool next_line(FILE *file, char *line, int size)
{
	do
		if (!fgets(line, size, file))
			return false;
	while (line[0] == '#');
	return true;
}

static void add(struct nezha_path_sample *sample, const char *line)
{
	uint64_t time, written, unsent, acked;
	uint32_t rtt, flags;

	assert_int_equal(sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu32,
	                        &time, &written, &unsent, &acked, &rtt, &flags), 6);
	sample->time += time * 1000;
	sample->written += written;
	sample->sent = sample->written - unsent;
	sample->acked += acked;
	sample->rtt = rtt;
	sample->narrow = flags & NARROW;
	sample->recovering = flags & RECOVERING;
	sample->shut += flags & SHUT ? 100 : 0;
	sample->in_flight = sample->written != sample->acked;
}

/* How often the path was idle after its opening; each time the estimate has to be right. */
static int replay(FILE *file)
{
	struct nezha_path_sample sample = { .time = 1000000000 };
	struct nezha_estimator estimator;
	double truth, seed;
	char line[256];
	int idle = 0;

	assert_true(next_line(file, line, sizeof line));
	assert_int_equal(sscanf(line, "%lf %lf", &truth, &seed), 2);
	nezha_estimator_init(&estimator, seed * MBIT);
	nezha_estimator_sample(&estimator, &sample);
	while (next_line(file, line, sizeof line)) {
		add(&sample, line);
		nezha_estimator_sample(&estimator, &sample);
		if (sample.in_flight || nezha_estimator_is_new(&estimator))
			continue;
		idle++;
		if (fabs(estimator.rate / MBIT / truth - 1) > OFF)
			fail_msg("after %" PRIu64 " bytes the estimate is %.1f Mbit, the truth %.1f", sample.acked,
			         estimator.rate / MBIT, truth);
	}
	return idle;
}

static void check(const char *name)
{
	FILE *file = open_recording(name);
	int idle = replay(file);

	fclose(file);
	assert_in_range(idle, 20, 1000);
}

static void test_high_first_window(void **state)
{
	(void)state;
	check("high-first-window");
}

static void test_late_acknowledgements(void **state)
{
	(void)state;
	check("late-acknowledgements");
}

static void test_slow_first_windows(void **state)
{
	(void)state;
	check("slow-first-windows");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_high_first_window),
		cmocka_unit_test(test_late_acknowledgements),
		cmocka_unit_test(test_slow_first_windows),
	};

	return cmocka_run_group_tests_name("estimator, recorded", tests, NULL, NULL);
}
