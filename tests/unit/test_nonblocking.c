/* SPDX-License-Identifier: BSD-3-Clause
 * A vector in nonblocking pieces, with an MPI library that only notes which it was given.  Built twice: as for Open MPI (OPEN_MPI), with
 * which a vector in place is copied, and else. */
#include "tests/unit/unit.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>

#include "pmpi/failure.h"
#include "pmpi/nonblocking.h"
#include "tuning/status.h"

#define TYPE 3
#define OP 4
#define COMM 5
#define FAILS_TO_BEGIN 21
#define FAILS_TO_END 22
#define NO_MEMORY 23

/* What is given has no memory behind it: nothing may touch it. */
static char *const in = (char *)0x100000000000, *const out = (char *)0x200000000000;

static struct {
	bool in_place, unreadable;
	char *real;                     /* the vector in place, of which a copy shall be sent; NULL: it has no memory behind it */
	uint64_t size;                  /* of an element */
	uint64_t bytes;                 /* of the pieces so far, which follow each other without a gap */
	int begun, least_elements, under_way, most_under_way;
	int begin_fails_at, end_fails_at;       /* the piece that does, from 1 on */
} seen;

int nezha_failure(int status)
{
	assert_int_equal(status, NEZHA_ERR_NOMEM);
	return NO_MEMORY;
}

int PMPI_Iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
	if (seen.unreadable) {
		assert_true(from != MPI_IN_PLACE && from != to && to != out + seen.bytes);
		memcpy(to, from, (size_t)count * seen.size);
	} else if (seen.real) {
		assert_true(from != to && from != MPI_IN_PLACE);
		assert_memory_equal(from, seen.real + seen.bytes, (size_t)count * seen.size);
	} else {
		assert_ptr_equal(from, seen.in_place ? MPI_IN_PLACE : in + seen.bytes);
	}
	if (!seen.unreadable)
		assert_ptr_equal(to, (seen.real ? seen.real : out) + seen.bytes);
	assert_true(count > 0 && type == TYPE && op == OP && comm == COMM);
	if (++seen.begun == seen.begin_fails_at)
		return FAILS_TO_BEGIN;
	if (seen.begun == 1)
		seen.least_elements = count;
	seen.bytes += (uint64_t)count * seen.size;
	seen.under_way++;
	if (seen.under_way > seen.most_under_way)
		seen.most_under_way = seen.under_way;
	*request = seen.begun;
	return MPI_SUCCESS;
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
	int piece = *request;

	assert_ptr_equal(status, MPI_STATUS_IGNORE);
	assert_true(piece > 0 && piece <= seen.begun);
	*request = 0;
	seen.under_way--;
	return piece == seen.end_fails_at ? FAILS_TO_END : MPI_SUCCESS;
}

static int reduce(int64_t count, uint64_t size)
{
	seen.size = size;
	return nezha_nonblocking_allreduce(seen.in_place ? MPI_IN_PLACE : in, out, count, TYPE, size, OP, COMM, !seen.unreadable);
}

static void check_whole(int64_t count, uint64_t size, bool in_place)
{
	memset(&seen, 0, sizeof seen);
	seen.in_place = in_place;
	assert_int_equal(reduce(count, size), MPI_SUCCESS);
	assert_true(seen.bytes == (uint64_t)count * size);
	assert_int_equal(seen.under_way, 0);
	assert_true(seen.begun <= 8);
}

/* Every element once, in order, and all done at the end. */
static void test_whole(void **state)
{
	static const int64_t counts[] = { 1, 1000, 131071, 131072, 131073, 262145, 1000000, 1048576, 16777217, INT_MAX };
	static const uint64_t sizes[] = { 1, 2, 4, 8, 16 };

	(void)state;
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
			check_whole(counts[i], sizes[k], false);
#ifndef OPEN_MPI
			check_whole(counts[i], sizes[k], true);
#endif
		}
}

#ifdef OPEN_MPI

#define LENGTH 1000001

static size_t most_memory = SIZE_MAX;   /* bytes that are to be had at once */

/* The linker takes it for malloc (--wrap). */
void *__real_malloc(size_t size), *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return size > most_memory ? NULL : __real_malloc(size);
}

static void check_copied(int most_under_way)
{
	memset(&seen, 0, sizeof seen);
	seen.real = calloc(LENGTH, 4);
	assert_non_null(seen.real);
	for (size_t i = 0; i < (size_t)LENGTH * 4; i++)
		seen.real[i] = (char)(i * 7 % 251);
	seen.size = 4;
	assert_int_equal(nezha_nonblocking_allreduce(MPI_IN_PLACE, seen.real, LENGTH, TYPE, 4, OP, COMM, true), MPI_SUCCESS);
	assert_true(seen.bytes == (uint64_t)LENGTH * 4);
	assert_int_equal(seen.begun, 8);
	assert_int_equal(seen.most_under_way, most_under_way);
	free(seen.real);
}

/* Of a vector in place a copy is sent. */
static void test_copied(void **state)
{
	(void)state;
	check_copied(8);
}

/* The same pieces, which the other ranks wait for. */
static void test_little_memory(void **state)
{
	(void)state;
	most_memory = (LENGTH + 7) / 8 * 4;
	check_copied(1);
	most_memory = SIZE_MAX;
}

static void test_no_memory(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof seen);
	seen.in_place = true;
	most_memory = 0;
	assert_int_equal(reduce(1 << 20, 8), NO_MEMORY);
	most_memory = SIZE_MAX;
	assert_int_equal(seen.begun, 0);
}

/* What only a device can read is neither read nor written, nor given as in place, which would be reduced in another way than the others'
 * copies; the pieces are those that they wait for. */
static void test_unreadable(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof seen);
	seen.in_place = seen.unreadable = true;
	most_memory = 2 << 20;
	assert_int_equal(reduce(1 << 20, 8), MPI_SUCCESS);
	most_memory = SIZE_MAX;
	assert_int_equal(seen.begun, 8);
	assert_int_equal(seen.most_under_way, 1);
	assert_true(seen.bytes == UINT64_C(8) << 20);
}

#endif

/* A piece is not so small that its start weighs, and there are not more than a few. */
static void test_lengths(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof seen);
	assert_int_equal(reduce(200000, 4), MPI_SUCCESS);
	assert_int_equal(seen.least_elements, 32768);
	assert_int_equal(seen.begun, 7);
	memset(&seen, 0, sizeof seen);
	assert_int_equal(reduce(1 << 24, 4), MPI_SUCCESS);
	assert_int_equal(seen.begun, 8);
	assert_int_equal(seen.most_under_way, 8);
}

/* More elements than eight calls can have: several times eight pieces. */
static void test_huge(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof seen);
	assert_int_equal(reduce((INT64_C(20) << 30) + 5, 1), MPI_SUCCESS);
	assert_true(seen.bytes == (UINT64_C(20) << 30) + 5);
	assert_int_equal(seen.begun, 21);
	assert_int_equal(seen.most_under_way, 8);
	assert_int_equal(seen.under_way, 0);
}

/* What fails is told, after all that was begun has ended; of two errors the first. */
static void test_errors(void **state)
{
	(void)state;
	for (int piece = 1; piece <= 8; piece++) {
		memset(&seen, 0, sizeof seen);
		seen.begin_fails_at = piece;
		assert_int_equal(reduce(1 << 20, 8), FAILS_TO_BEGIN);
		assert_int_equal(seen.begun, piece);
		assert_int_equal(seen.under_way, 0);
		memset(&seen, 0, sizeof seen);
		seen.end_fails_at = piece;
		assert_int_equal(reduce(1 << 20, 8), FAILS_TO_END);
		assert_int_equal(seen.under_way, 0);
	}
	memset(&seen, 0, sizeof seen);
	seen.begin_fails_at = 5;
	seen.end_fails_at = 2;
	assert_int_equal(reduce(1 << 20, 8), FAILS_TO_BEGIN);
	assert_int_equal(seen.under_way, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
#ifdef OPEN_MPI
		cmocka_unit_test(test_copied),
		cmocka_unit_test(test_little_memory),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_unreadable),
#endif
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_huge),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
