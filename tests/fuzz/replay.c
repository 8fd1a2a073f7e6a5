/* SPDX-License-Identifier: BSD-3-Clause
 * Drives a fuzz target without libFuzzer: every file of its corpus, then mutations of them from a fixed seed.
 *   replay_NAME                   corpus of NAME below $abs_top_srcdir, 20000 mutations
 *   replay_NAME FILE...           these files only, for instance one that libFuzzer found */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define MUTATIONS 20000
#define INPUT_MAX 4096
#define FILES_MAX 256
#define FOLDER_MAX 4096

struct input {
	size_t size;
	uint8_t *data;
};

static struct input corpus[FILES_MAX];
static size_t corpus_count;

static uint32_t next_random(void)
{
	static uint64_t x = 0x6e657a6861;

	x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(x >> 33);
}

static size_t below(size_t n)
{
	return n ? next_random() % n : 0;
}

/* Runs the target on a copy of exactly this size, so that a sanitizer sees a byte read too far. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);

	fuzz_assert(exact);
	memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(INPUT_MAX);
	size_t size;

	if (!f || !data) {
		perror(path);
		return -1;
	}
	size = fread(data, 1, INPUT_MAX, f);
	fclose(f);
	run(data, size);
	if (corpus_count < FILES_MAX)
		corpus[corpus_count++] = (struct input){ size, data };
	else
		free(data);
	return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int run_folder(const char *folder)
{
	struct dirent **entries;
	char path[FOLDER_MAX + 1 + NAME_MAX + 1];
	int count = scandir(folder, &entries, is_input, by_name), status = 0;

	if (count <= 0) {
		fprintf(stderr, "%s: no inputs (abs_top_srcdir tells where the sources are)\n", folder);
		return -1;
	}
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
		if (status == 0)
			status = run_file(path);
		free(entries[i]);
	}
	free(entries);
	return status;
}

/* Puts bytes of another input, or of the same, over or into data[0..size) (room: INPUT_MAX). */
static size_t splice(uint8_t *data, size_t size)
{
	const struct input *other = &corpus[below(corpus_count)];
	size_t from = below(other->size), n = below(other->size - from) + 1, to = below(size + 1);

	if (other->size == 0)
		return size;
	if (n > 64)
		n = 1 + below(64);
	if (size + n > INPUT_MAX)
		return size;
	memmove(data + to + n, data + to, size - to);
	memcpy(data + to, other->data + from, n);
	return size + n;
}

static size_t mutate(uint8_t *data, size_t size)
{
	static const char liked[] = "\"{}[],:=\n\\0-9KMGe.";
	size_t at = below(size), n;

	switch (next_random() % 6) {
	case 0:
		if (size)
			data[at] ^= (uint8_t)(1u << below(8));
		return size;
	case 1:
		if (size)
			data[at] = (uint8_t)liked[below(sizeof liked)];   /* NUL too */
		return size;
	case 2:
		n = below(size - at < 32 ? size - at : 32);
		memmove(data + at, data + at + n, size - at - n);
		return size - n;
	case 3:
		if (size && data[at] >= '0' && data[at] <= '9')
			data[at] = (uint8_t)('0' + below(10));
		return size;
	case 4:
		return at;
	default:
		return splice(data, size);
	}
}

int main(int argc, char **argv)
{
	const char *top = getenv("abs_top_srcdir"), *name = strstr(argv[0], "replay_");
	static uint8_t data[INPUT_MAX];
	char folder[FOLDER_MAX];
	int status = 0;

	for (int i = 1; i < argc && status == 0; i++)
		status = run_file(argv[i]);
	if (argc > 1)
		return status ? 1 : 0;
	/* libtool runs programs as .libs/lt-replay_NAME. */
	snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s", top ? top : ".",
	         name ? name + strlen("replay_") : "");
	if (run_folder(folder))
		return 1;
	for (int i = 0; i < MUTATIONS; i++) {
		const struct input *seed = &corpus[below(corpus_count)];
		size_t size = seed->size;

		memcpy(data, seed->data, size);
		for (size_t m = below(6) + 1; m > 0; m--)
			size = mutate(data, size);
		run(data, size);
	}
	printf("%zu files, %d mutations\n", corpus_count, MUTATIONS);
	while (corpus_count > 0)
		free(corpus[--corpus_count].data);
	return 0;
}
