/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/unit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/report.h"
#include "tuning/status.h"

static struct nezha_report *make(void)
{
	struct nezha_report *report;
	struct nezha_report_job job = {
		.version = "1.2.3", .mpi = "An MPI", .rails = "auto", .table = "built-in", .tune = "",
		.host = "node0", .ranks = 8, .nodes = 4,
	};

	assert_int_equal(nezha_report_create(&report), NEZHA_OK);
	nezha_report_job(report, &job);
	return report;
}

static void count(struct nezha_report *report, struct nezha_report_comm *comm, uint64_t bytes, uint64_t ns,
                  enum nezha_algorithm alg, enum nezha_reason reason)
{
	struct nezha_report_call call = { .bytes = bytes, .alg = alg, .reason = reason, .ns = ns };

	nezha_report_count(report, comm, &call);
}

/* What the report prints as JSON, parsed by jansson itself. */
static json_t *read_json(struct nezha_report *report)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	json_t *json;

	assert_non_null(out);
	assert_int_equal(nezha_report_json(report, out), NEZHA_OK);
	fclose(out);
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	free(text);
	return json;
}

/* Not inlined: gcc then takes the stream's knowledge of `text` for a dangling pointer. */
__attribute__((noinline)) static char *read_text(struct nezha_report *report)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	nezha_report_text(report, out);
	fclose(out);
	return text;
}

static json_int_t integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

static const char *string(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* Row `index` of communicator `comm`. */
static const json_t *row(const json_t *json, size_t comm, size_t index)
{
	const json_t *one = json_array_get(json_object_get(json, "communicators"), comm);

	return json_array_get(json_object_get(one, "sizes"), index);
}

static void test_counts_by_class_and_fate(void **state)
{
	struct nezha_report *report = make();
	struct nezha_report_comm *comm = nezha_report_open(report, "MPI_COMM_WORLD", 8, 4);
	json_t *json;

	(void)state;
	count(report, comm, 1 << 20, 3000000, NEZHA_ALG_RING, NEZHA_REASON_RULE);
	count(report, comm, (1 << 21) - 1, 1000000, NEZHA_ALG_RING, NEZHA_REASON_RULE);
	count(report, comm, 1 << 21, 7, NEZHA_ALG_RING, NEZHA_REASON_RULE);
	count(report, comm, 8, 50, NEZHA_ALG_NATIVE, NEZHA_REASON_SMALL);
	count(report, comm, 1 << 20, 5, NEZHA_ALG_NATIVE, NEZHA_REASON_OP);
	count(report, comm, 0, 6, NEZHA_ALG_NATIVE, NEZHA_REASON_COUNT);
	json = read_json(report);
	assert_non_null(row(json, 0, 4));
	assert_null(row(json, 0, 5));
	assert_int_equal(integer(row(json, 0, 0), "bytes_max"), 0);
	assert_string_equal(string(row(json, 0, 0), "why"), "count");
	assert_int_equal(integer(row(json, 0, 1), "bytes_min"), 8);
	assert_int_equal(integer(row(json, 0, 1), "bytes_max"), 15);
	assert_string_equal(string(row(json, 0, 2), "path"), "native");
	assert_string_equal(string(row(json, 0, 2), "why"), "op");
	assert_string_equal(string(row(json, 0, 3), "path"), "ring");
	assert_int_equal(integer(row(json, 0, 3), "calls"), 2);
	assert_int_equal(integer(row(json, 0, 3), "bytes"), (1 << 20) + (1 << 21) - 1);
	assert_float_equal(json_real_value(json_object_get(row(json, 0, 3), "seconds")), 0.004, 1e-12);
	assert_float_equal(json_real_value(json_object_get(row(json, 0, 3), "seconds_min")), 0.001, 1e-12);
	assert_float_equal(json_real_value(json_object_get(row(json, 0, 3), "seconds_max")), 0.003, 1e-12);
	assert_int_equal(integer(row(json, 0, 4), "calls"), 1);
	json_decref(json);
	nezha_report_free(report);
}

static void test_largest_vector_has_a_class(void **state)
{
	struct nezha_report *report = make();
	struct nezha_report_comm *comm = nezha_report_open(report, "w", 2, 2);
	char *text;

	(void)state;
	count(report, comm, UINT64_MAX, 1, NEZHA_ALG_NATIVE, NEZHA_REASON_COUNT);
	count(report, comm, UINT64_C(1) << 62, 1, NEZHA_ALG_NATIVE, NEZHA_REASON_COUNT);
	text = read_text(report);
	assert_non_null(strstr(text, "8589934592G..."));
	free(text);
	nezha_report_free(report);
}

static void test_rails_and_bytes(void **state)
{
	struct nezha_report *report = make();
	struct nezha_report_comm *comm = nezha_report_open(report, "w", 8, 4);
	struct nezha_report_rail rail = {
		.device = "eth1", .subnet = "10.1.0.0/24", .bytes = 700,
		.resent = 5, .failures = 2, .returns = 1,
	};
	uint64_t bytes[NEZHA_REPORT_RAILS] = { [3] = 700 };
	struct nezha_report_call call = {
		.bytes = 1000, .alg = NEZHA_ALG_RING, .reason = NEZHA_REASON_RULE, .ns = 9,
		.rail_bytes = bytes,
	};
	const json_t *told;
	json_t *json;

	(void)state;
	nezha_report_count(report, comm, &call);
	nezha_report_count(report, comm, &call);
	nezha_report_rail(report, 3, &rail);
	nezha_report_rail(report, NEZHA_REPORT_RAILS, &rail);   /* beyond the last: ignored */
	json = read_json(report);
	told = json_array_get(json_object_get(json, "rails"), 0);
	assert_int_equal(json_array_size(json_object_get(json, "rails")), 1);
	assert_string_equal(string(told, "device"), "eth1");
	assert_string_equal(string(told, "subnet"), "10.1.0.0/24");
	assert_int_equal(integer(told, "bytes"), 700);
	assert_int_equal(integer(told, "bytes_resent"), 5);
	assert_int_equal(integer(told, "failures"), 2);
	assert_int_equal(integer(told, "returns"), 1);
	assert_int_equal(integer(json_object_get(row(json, 0, 0), "rails"), "eth1"), 1400);
	json_decref(json);
	nezha_report_free(report);
}

/* Two ports of an adapter, or two subnets on one interface. */
static void test_rails_of_one_device(void **state)
{
	struct nezha_report *report = make();
	struct nezha_report_comm *comm = nezha_report_open(report, "w", 8, 4);
	struct nezha_report_rail rail = { .device = "mlx5_0", .subnet = "10.1.0.0/24", .bytes = 700 };
	uint64_t bytes[NEZHA_REPORT_RAILS] = { [0] = 700, [1] = 50 };
	struct nezha_report_call call = {
		.bytes = 1000, .alg = NEZHA_ALG_RING, .reason = NEZHA_REASON_RULE, .ns = 9, .rail_bytes = bytes,
	};
	json_t *json;

	(void)state;
	nezha_report_count(report, comm, &call);
	nezha_report_rail(report, 0, &rail);
	nezha_report_rail(report, 1, &rail);
	json = read_json(report);
	assert_int_equal(json_array_size(json_object_get(json, "rails")), 2);
	assert_int_equal(integer(json_object_get(row(json, 0, 0), "rails"), "mlx5_0"), 750);
	json_decref(json);
	nezha_report_free(report);
}

static void test_registered_memory(void **state)
{
	struct nezha_report *report = make();
	struct nezha_report_registered registered = { .now = 3 << 20, .most = 4 << 20, .limit = 256 << 20 };
	const json_t *told;
	json_t *json;
	char *text;

	(void)state;
	text = read_text(report);
	assert_null(strstr(text, "registered"));        /* no RDMA device was used */
	free(text);
	json = read_json(report);
	assert_int_equal(integer(json_object_get(json, "registered"), "bytes_most"), 0);
	json_decref(json);
	nezha_report_registered(report, &registered);
	text = read_text(report);
	assert_non_null(strstr(text, "registered for RDMA: 3.00 MiB at the end, 4.00 MiB at most, 256 MiB allowed\n"));
	free(text);
	json = read_json(report);
	told = json_object_get(json, "registered");
	assert_int_equal(integer(told, "bytes"), 3 << 20);
	assert_int_equal(integer(told, "bytes_most"), 4 << 20);
	assert_int_equal(integer(told, "bytes_allowed"), 256 << 20);
	json_decref(json);
	nezha_report_free(report);
}

static void test_closed_ones_are_folded(void **state)
{
	struct nezha_report *report = make();
	const json_t *closed;
	json_t *json;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		struct nezha_report_comm *comm = nezha_report_open(report, "short-lived", 4, 4);

		count(report, comm, 100, (uint64_t)i + 1, NEZHA_ALG_NATIVE, NEZHA_REASON_SMALL);
		nezha_report_close(report, comm);
	}
	json = read_json(report);
	closed = json_object_get(json, "closed");
	assert_int_equal(json_array_size(json_object_get(json, "communicators")), 0);
	assert_int_equal(integer(closed, "count"), 10000);
	assert_int_equal(json_array_size(json_object_get(closed, "sizes")), 1);
	assert_int_equal(integer(json_array_get(json_object_get(closed, "sizes"), 0), "calls"), 10000);
	json_decref(json);
	nezha_report_free(report);
}

static void test_reset_forgets_calls(void **state)
{
	struct nezha_report *report = make();
	struct nezha_report_comm *kept = nezha_report_open(report, "kept", 4, 4);
	struct nezha_report_comm *gone = nezha_report_open(report, "gone", 4, 4);
	json_t *json;

	(void)state;
	count(report, kept, 100, 1, NEZHA_ALG_NATIVE, NEZHA_REASON_SMALL);
	count(report, gone, 100, 1, NEZHA_ALG_NATIVE, NEZHA_REASON_SMALL);
	count(report, NULL, 100, 1, NEZHA_ALG_NATIVE, NEZHA_REASON_COMM);
	nezha_report_close(report, gone);
	nezha_report_reset(report);
	count(report, kept, 5000, 1, NEZHA_ALG_RING, NEZHA_REASON_RULE);
	json = read_json(report);
	assert_int_equal(json_array_size(json_object_get(json, "communicators")), 1);
	assert_int_equal(integer(row(json, 0, 0), "bytes_min"), 4096);
	assert_null(row(json, 0, 1));
	assert_int_equal(integer(json_object_get(json, "closed"), "count"), 0);
	assert_int_equal(json_array_size(json_object_get(json, "other")), 0);
	json_decref(json);
	nezha_report_free(report);
}

static void test_text_tells_what_and_why(void **state)
{
	struct nezha_report *report = make();
	struct nezha_report_comm *comm = nezha_report_open(report, "MPI_COMM_WORLD", 8, 4);
	struct nezha_report_rail rail = {
		.device = "eth0", .subnet = "255.255.255.255/32", .bytes = UINT64_MAX,
	};
	char *text, *line;

	(void)state;
	for (int i = 0; i <= NEZHA_REASON_STATE; i++)
		count(report, comm, UINT64_C(1) << (i + 3), UINT64_C(999999) << i,
		      i % 2 ? NEZHA_ALG_NATIVE : NEZHA_ALG_RING, (enum nezha_reason)i);
	nezha_report_rail(report, 0, &rail);
	text = read_text(report);
	assert_non_null(strstr(text, "MPI_COMM_WORLD: 8 ranks on 4 nodes\n"));
	assert_non_null(strstr(text, "8 ranks on 4 nodes, rails: auto, table: built-in\n"));
	assert_non_null(strstr(text, "64K-128K"));
	assert_non_null(strstr(text, "16.0 EiB"));
	assert_non_null(strstr(text, "\n  small        too small for the rails to pay\n"));
	for (int i = 0; i <= NEZHA_REASON_STATE; i++)
		assert_non_null(strstr(strstr(text, "\nwhy:\n"), nezha_reason_name((enum nezha_reason)i)));
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strlen(line) > 80)
			fail_msg("%zu columns: %s", strlen(line), line);
	free(text);
	nezha_report_free(report);
}

static void test_names_cannot_spoil_the_report(void **state)
{
	struct nezha_report *report = make();
	char name[300], *text;
	struct nezha_report_comm *comm;
	json_t *json;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	comm = nezha_report_open(report, name, 2, 2);
	count(report, comm, 1, 1, NEZHA_ALG_NATIVE, NEZHA_REASON_SMALL);
	comm = nezha_report_open(report, "a\n\033[31mb", 2, 2);
	count(report, comm, 1, 1, NEZHA_ALG_NATIVE, NEZHA_REASON_SMALL);
	comm = nezha_report_open(report, "\xff\xfe", 2, 2);
	count(report, comm, 1, 1, NEZHA_ALG_NATIVE, NEZHA_REASON_SMALL);
	text = read_text(report);
	assert_non_null(strstr(text, "a ?[31mb: 2 ranks"));
	free(text);
	json = read_json(report);
	assert_int_equal(json_array_size(json_object_get(json, "communicators")), 3);
	json_decref(json);
	nezha_report_free(report);
}

static void test_nothing_is_allowed(void **state)
{
	struct nezha_report *report = make();
	char *text;

	(void)state;
	count(NULL, NULL, 1, 1, NEZHA_ALG_NATIVE, NEZHA_REASON_SMALL);
	assert_null(nezha_report_open(NULL, "x", 1, 1));
	nezha_report_close(NULL, NULL);
	nezha_report_close(report, NULL);
	nezha_report_reset(NULL);
	nezha_report_free(NULL);
	count(report, NULL, 1, 1, NEZHA_ALG_NATIVE, NEZHA_REASON_COMM);
	text = read_text(report);
	assert_non_null(strstr(text, "\nother calls\n"));
	assert_non_null(strstr(text, "No rail was used."));
	free(text);
	nezha_report_free(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts_by_class_and_fate),
		cmocka_unit_test(test_largest_vector_has_a_class),
		cmocka_unit_test(test_rails_and_bytes),
		cmocka_unit_test(test_rails_of_one_device),
		cmocka_unit_test(test_registered_memory),
		cmocka_unit_test(test_closed_ones_are_folded),
		cmocka_unit_test(test_reset_forgets_calls),
		cmocka_unit_test(test_text_tells_what_and_why),
		cmocka_unit_test(test_names_cannot_spoil_the_report),
		cmocka_unit_test(test_nothing_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
