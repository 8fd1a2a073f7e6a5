/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tuning/status.h"
#include "tuning/trace.h"

static const char *host = "n3";

static json_t *print(struct nezha_trace *trace, int64_t shift, uint64_t *lost)
{
	struct nezha_trace_process process = { .rank = 3, .host = host, .shift = shift, .error = 250 };
	json_error_t error;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	json_t *json;

	assert_int_equal(nezha_trace_print(trace, &process, out, lost), NEZHA_OK);
	fclose(out);
	json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!json)
		fail_msg("%s in line %d: %s", error.text, error.line, text);
	free(text);
	return json;
}

/* The i-th event that has this category; NULL. */
static json_t *event(json_t *json, const char *category, size_t i)
{
	json_t *each;
	size_t at;

	json_array_foreach(json_object_get(json, "traceEvents"), at, each) {
		const char *has = json_string_value(json_object_get(each, "cat"));

		if (has && !strcmp(has, category) && i-- == 0)
			return each;
	}
	return NULL;
}

static const char *text_of(json_t *event, const char *key)
{
	return json_string_value(json_object_get(event, key));
}

static double number_of(json_t *event, const char *key)
{
	assert_true(json_is_number(json_object_get(event, key)));
	return json_number_value(json_object_get(event, key));
}

/* The name of the lane that the event is in. */
static const char *lane_of(json_t *json, json_t *event)
{
	json_t *each;
	size_t at;

	json_array_foreach(json_object_get(json, "traceEvents"), at, each)
		if (!strcmp(text_of(each, "name"), "thread_name") &&
		    json_equal(json_object_get(each, "tid"), json_object_get(event, "tid")))
			return text_of(json_object_get(each, "args"), "name");
	return NULL;
}

static void every_kind_is_printed(void **state)
{
	struct nezha_trace *trace;
	struct nezha_trace_event lost = { .begin = 5000, .end = 5000, .kind = NEZHA_TRACE_LOST, .rail = 1, .peer = 2, .count = 4,
	                                  .bytes = 65536, .text = "no \"carrier\"" };
	uint64_t overwritten;
	json_t *json, *each;

	(void)state;
	assert_int_equal(nezha_trace_create(100, &trace), NEZHA_OK);
	nezha_trace_name(trace, 0, "e0");
	nezha_trace_name(trace, 1, "e1\n");
	nezha_trace_name(trace, NEZHA_TRACE_RAILS, "out of range");
	nezha_trace_record(trace, &(struct nezha_trace_event){ .begin = 1000, .end = 9000, .bytes = 4 << 20, .kind = NEZHA_TRACE_CALL,
	                   .alg = NEZHA_ALG_RING, .reason = NEZHA_REASON_RULE, .peer = 1 });
	nezha_trace_record(trace, &(struct nezha_trace_event){ .begin = 1000, .end = 9000, .bytes = 4 << 20,
	                   .kind = NEZHA_TRACE_LIBRARY, .peer = 1 });
	nezha_trace_record(trace, &(struct nezha_trace_event){ .begin = 2000, .end = 3500, .bytes = 4096, .kind = NEZHA_TRACE_SENT,
	                   .peer = 2, .op = 7, .block = 12 });
	nezha_trace_record(trace, &(struct nezha_trace_event){ .begin = 2000, .end = 3500, .bytes = 4096,
	                   .kind = NEZHA_TRACE_RECEIVED, .incoming = 1, .final = 1, .peer = 0, .op = 7, .block = 13 });
	nezha_trace_record(trace, &(struct nezha_trace_event){ .begin = 2000, .end = 3500, .kind = NEZHA_TRACE_REDUCED,
	                   .block = 2, .count = 3 });
	nezha_trace_record(trace, &lost);
	lost.kind = NEZHA_TRACE_DOWN;
	lost.end = 8000;
	nezha_trace_record(trace, &lost);
	nezha_trace_record(trace, &(struct nezha_trace_event){ .begin = 4000, .end = 4000, .kind = NEZHA_TRACE_WRONG, .incoming = 1,
	                   .peer = 0, .block = 5 });
	json = print(trace, -1000, &overwritten);
	assert_int_equal(overwritten, 0);

	each = event(json, "call", 0);
	assert_string_equal(text_of(each, "name"), "ring 4M");
	assert_string_equal(text_of(each, "ph"), "X");
	assert_true(number_of(each, "ts") == 0 && number_of(each, "dur") == 8 && number_of(each, "pid") == 3);
	assert_string_equal(text_of(json_object_get(each, "args"), "why"), "rule");
	assert_string_equal(lane_of(json, each), "calls of thread 1");
	assert_string_equal(text_of(event(json, "library", 0), "name"), "MPI library 4M");
	each = event(json, "sent", 0);
	assert_string_equal(text_of(each, "name"), "partial 12");
	assert_true(number_of(each, "ts") == 1 && number_of(each, "dur") == 1.5);
	assert_true(number_of(json_object_get(each, "args"), "call") == 7);
	assert_string_equal(lane_of(json, each), "e0 to rank 2");
	each = event(json, "received", 0);
	assert_string_equal(text_of(each, "name"), "final 13");
	assert_string_equal(lane_of(json, each), "e0 from rank 0");
	assert_string_equal(text_of(event(json, "reduced", 0), "name"), "blocks 2 to 4");
	each = event(json, "lost", 0);
	assert_string_equal(text_of(each, "name"), "lost: no \"carrier\"");
	assert_string_equal(text_of(each, "ph"), "i");
	assert_true(number_of(json_object_get(each, "args"), "blocks again") == 4);
	assert_string_equal(lane_of(json, each), "e1  to rank 2");
	each = event(json, "down", 0);
	assert_true(number_of(each, "ts") == 4 && number_of(each, "dur") == 3);
	assert_string_equal(text_of(event(json, "wrong", 0), "name"), "block 5 came wrong");
	assert_true(number_of(json_object_get(json, "otherData"), "clocks_differ_by_ns") == 250);
	json_decref(json);
	nezha_trace_free(trace);
}

/* Memory is bounded: the last ones are kept, and what is missing is told. */
static void the_last_ones_are_kept(void **state)
{
	struct nezha_trace *trace;
	uint64_t overwritten;
	json_t *json;

	(void)state;
	assert_int_equal(nezha_trace_create(10, &trace), NEZHA_OK);
	for (uint32_t i = 0; i < 25; i++)
		nezha_trace_record(trace, &(struct nezha_trace_event){ .begin = 1000 * i, .end = 1000 * i + 1, .block = i,
		                   .kind = NEZHA_TRACE_SENT });
	json = print(trace, 0, &overwritten);
	assert_int_equal(overwritten, 15);
	assert_string_equal(text_of(event(json, "sent", 0), "name"), "partial 15");
	assert_string_equal(text_of(event(json, "sent", 9), "name"), "partial 24");
	assert_null(event(json, "sent", 10));
	assert_string_equal(text_of(event(json, "trace", 0), "name"), "15 events before this were overwritten");
	assert_true(number_of(json_object_get(json, "otherData"), "overwritten") == 15);
	json_decref(json);
	json = print(trace, 0, &overwritten);      /* it stays as it is */
	assert_non_null(event(json, "sent", 9));
	json_decref(json);
	nezha_trace_free(trace);
}

static void an_empty_one_is_whole(void **state)
{
	struct nezha_trace *trace;
	uint64_t overwritten;

	(void)state;
	assert_int_equal(nezha_trace_create(10, &trace), NEZHA_OK);
	json_decref(print(trace, 0, &overwritten));
	nezha_trace_free(trace);
	nezha_trace_free(NULL);
}

/* The name in the arguments of the i-th event of that name: of lanes and processes. */
static const char *name_in(json_t *json, const char *name, size_t i)
{
	json_t *each;
	size_t at;

	json_array_foreach(json_object_get(json, "traceEvents"), at, each)
		if (!strcmp(text_of(each, "name"), name) && i-- == 0)
			return text_of(json_object_get(each, "args"), "name");
	return NULL;
}

/* UTF-8 stays; what is not costs no more than its own bytes. */
static void names_may_be_anything(void **state)
{
	struct nezha_trace_event of_rail = { .kind = NEZHA_TRACE_LOST, .rail = 1, .peer = 2, .text = "cut \xc3" };
	struct nezha_trace *trace;
	uint64_t overwritten;
	json_t *json;

	(void)state;
	assert_int_equal(nezha_trace_create(10, &trace), NEZHA_OK);
	nezha_trace_name(trace, 0, "\xc3\xa4thernet");
	nezha_trace_name(trace, 1, "\xe4thernet");
	nezha_trace_record(trace, &of_rail);
	of_rail.rail = 0;
	nezha_trace_record(trace, &of_rail);
	host = "kn\xf6tchen";
	json = print(trace, 0, &overwritten);
	host = "n3";
	assert_string_equal(name_in(json, "process_name", 0), "rank 3 on kn?tchen");
	assert_string_equal(name_in(json, "thread_name", 0), "?thernet to rank 2");
	assert_string_equal(name_in(json, "thread_name", 1), "\xc3\xa4thernet to rank 2");
	assert_string_equal(text_of(event(json, "lost", 0), "name"), "lost: cut ?");
	json_decref(json);
	nezha_trace_free(trace);
}

static void *record_many(void *trace)
{
	for (uint32_t i = 0; i < 20000; i++)
		nezha_trace_record(trace, &(struct nezha_trace_event){ .begin = i, .end = i, .kind = NEZHA_TRACE_SENT, .block = i });
	return NULL;
}

static void threads_record_together(void **state)
{
	struct nezha_trace *trace;
	pthread_t threads[4];
	uint64_t overwritten;

	(void)state;
	assert_int_equal(nezha_trace_create(100, &trace), NEZHA_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, record_many, trace), 0);
	json_decref(print(trace, 0, &overwritten));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	json_decref(print(trace, 0, &overwritten));
	assert_int_equal(overwritten, 79900);
	nezha_trace_free(trace);
}

struct slow {
	struct nezha_trace *trace;
	FILE *out;
};

static void *print_slowly(void *argument)
{
	struct nezha_trace_process process = { .host = host };
	struct slow *slow = argument;
	uint64_t overwritten;

	nezha_trace_print(slow->trace, &process, slow->out, &overwritten);
	fclose(slow->out);
	return NULL;
}

/* While it is printed to a pipe that nobody empties. */
static void recording_waits_for_no_file(void **state)
{
	struct slow slow;
	pthread_t printer;
	char bytes[4096];
	int ends[2];

	(void)state;
	assert_int_equal(nezha_trace_create(10000, &slow.trace), NEZHA_OK);
	record_many(slow.trace);
	assert_int_equal(pipe(ends), 0);
	slow.out = fdopen(ends[1], "w");
	assert_int_equal(pthread_create(&printer, NULL, print_slowly, &slow), 0);
	assert_true(read(ends[0], bytes, sizeof bytes) > 0);
	alarm(60);
	record_many(slow.trace);
	alarm(0);
	while (read(ends[0], bytes, sizeof bytes) > 0)
		;
	pthread_join(printer, NULL);
	close(ends[0]);
	nezha_trace_free(slow.trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_printed),
		cmocka_unit_test(the_last_ones_are_kept),
		cmocka_unit_test(an_empty_one_is_whole),
		cmocka_unit_test(names_may_be_anything),
		cmocka_unit_test(threads_record_together),
		cmocka_unit_test(recording_waits_for_no_file),
	};

	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
