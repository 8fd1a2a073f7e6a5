/* SPDX-License-Identifier: BSD-3-Clause
 * What nezha-tune's arguments say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/bytes.h"
#include "tuning/grid.h"
#include "tuning/status.h"
#include "tuning/tune.h"

#define RANKS_MAX 100000
#define PPN_MAX 256
#define SIZE_LEAST UINT64_C(4)
#define SIZE_MOST (UINT64_C(1) << 30)
#define WORD_MAX 24

#define RANKS_ALLOWED "up to 32 numbers from 2 to 100000 separated by commas, such as 2,4,8"
#define SIZES_ALLOWED "up to 64 multiples of 4 from 4 to 1G separated by commas, or ranges, such as 64K-64M"

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static void sort(struct nezha_tune_list *list)
{
	size_t count = 0;

	qsort(list->value, list->count, sizeof *list->value, compare);
	for (size_t i = 0; i < list->count; i++)
		if (!count || list->value[i] != list->value[count - 1])
			list->value[count++] = list->value[i];
	list->count = count;
}

static bool add(struct nezha_tune_list *list, uint64_t value, size_t most)
{
	if (list->count == most)
		return false;
	list->value[list->count++] = value;
	return true;
}

/* A part of the text without the separator; false if it is too long for what it should be. */
static bool cut(const char **at, char separator, char word[WORD_MAX])
{
	const char *end = strchr(*at, separator);
	size_t len = end ? (size_t)(end - *at) : strlen(*at);

	if (len >= WORD_MAX)
		return false;
	memcpy(word, *at, len);
	word[len] = '\0';
	*at += len + (end != NULL);
	return true;
}

static bool read_number(const char *word, uint64_t *out)
{
	return strspn(word, "0123456789") == strlen(word) && nezha_bytes_parse(word, out) == NEZHA_OK;
}

int nezha_tune_read_ranks(const char *text, struct nezha_tune_list *out)
{
	const char *at = text;
	char word[WORD_MAX];
	uint64_t value;
	bool good = true, more;

	out->count = 0;
	do {
		good = cut(&at, ',', word) && read_number(word, &value) && value >= 2 && value <= RANKS_MAX &&
		       add(out, value, NEZHA_TUNE_SCALES);
		more = at > text && at[-1] == ',';
	} while (good && (*at || more));
	if (!good) {
		nezha_tune_problem("--ranks \"%.60s\": allowed are " RANKS_ALLOWED, text);
		return NEZHA_ERR_INVALID;
	}
	sort(out);
	return NEZHA_OK;
}

static bool read_size(const char *word, uint64_t *out)
{
	return nezha_bytes_parse(word, out) == NEZHA_OK && *out >= SIZE_LEAST && *out <= SIZE_MOST && *out % 4 == 0;
}

/* "64K" or "64K-1M" */
static bool add_sizes(struct nezha_tune_list *list, const char *word)
{
	const char *at = word;
	char low_word[WORD_MAX];
	uint64_t low, high;

	if (!cut(&at, '-', low_word) || !read_size(low_word, &low))
		return false;
	if (!strchr(word, '-'))
		return add(list, low, NEZHA_MEASURED_SIZES);
	if (!read_size(at, &high) || high < low)
		return false;
	for (uint64_t bytes = low; bytes <= high; bytes *= 2)
		if (!add(list, bytes, NEZHA_MEASURED_SIZES))
			return false;
	return true;
}

int nezha_tune_read_ppn(const char *text, int *out)
{
	const char *at = text;
	char word[WORD_MAX];
	uint64_t value;

	if (!cut(&at, '\0', word) || !read_number(word, &value) || value < 1 || value > PPN_MAX) {
		nezha_tune_problem("--ppn \"%.60s\": allowed is a whole number from 1 to %d", text, PPN_MAX);
		return NEZHA_ERR_INVALID;
	}
	*out = (int)value;
	return NEZHA_OK;
}

int nezha_tune_read_sizes(const char *text, struct nezha_tune_list *out)
{
	const char *at = text;
	char word[WORD_MAX];
	bool good = true, more;

	out->count = 0;
	do {
		good = cut(&at, ',', word) && add_sizes(out, word);
		more = at > text && at[-1] == ',';
	} while (good && (*at || more));
	if (!good) {
		nezha_tune_problem("--sizes \"%.60s\": allowed are " SIZES_ALLOWED, text);
		return NEZHA_ERR_INVALID;
	}
	sort(out);
	return NEZHA_OK;
}

/* Blocks larger than the vector all cut it alike: into one. */
static void add_block(struct nezha_sweep_blocks *out, uint64_t block, uint64_t bytes)
{
	if (!nezha_block_fits(block) || out->count == NEZHA_SWEEP_BLOCKS)
		return;
	if (out->count && block > out->bytes[0] && out->bytes[0] >= bytes)
		return;
	out->bytes[out->count++] = (uint32_t)block;
}

void nezha_tune_blocks(const struct nezha_table *builtin, int ppn, uint64_t bytes, struct nezha_sweep_blocks *out)
{
	const struct nezha_scale scale = { .ranks = 2 * ppn, .nodes = 2, .ppn = ppn };
	uint64_t from = nezha_plan_native_below(builtin, &scale);
	struct nezha_plan plan;
	uint32_t block;

	/* What is native there is tried as the smallest that is not. */
	nezha_plan_make(builtin, &scale, bytes > from ? bytes : from, &plan);
	block = plan.alg == NEZHA_ALG_RING ? plan.block : NEZHA_BLOCK_DEFAULT;
	while (block > NEZHA_BLOCK_MIN && block >= 2 * bytes)
		block /= 2;
	out->count = 0;
	add_block(out, block, bytes);
	add_block(out, block / 2 / NEZHA_BLOCK_MIN * NEZHA_BLOCK_MIN, bytes);
	add_block(out, 2 * (uint64_t)block, bytes);
}

/* Copies the next word without its quotation marks to `out`; false: a mark lacks its other. */
static bool copy_word(const char **at, char **out)
{
	char quote = '\0';

	for (; **at && (quote || !strchr(" \t\n", **at)); ++*at) {
		char c = **at;

		if (quote ? c == quote : c == '\'' || c == '"') {
			quote = quote ? '\0' : c;
			continue;
		}
		if (c == '\\' && quote != '\'' && (*at)[1])
			c = *++*at;
		*(*out)++ = c;
	}
	*(*out)++ = '\0';
	return !quote;
}

int nezha_tune_split(const char *command, char ***out, size_t *count)
{
	/* At most every other character begins a word. */
	size_t most = strlen(command) / 2 + 2;
	char **words = malloc(most * sizeof *words + strlen(command) + most);
	char *text = (char *)(words + most);
	const char *at = command + strspn(command, " \t\n");
	bool good = *at != '\0';

	if (!words) {
		nezha_tune_problem("no memory");
		return NEZHA_ERR_NOMEM;
	}
	for (*count = 0; *at && good; at += strspn(at, " \t\n")) {
		words[(*count)++] = text;
		good = copy_word(&at, &text);
	}
	words[*count] = NULL;
	if (!good) {
		nezha_tune_problem("--mpirun \"%.60s\": allowed is a command such as \"mpirun -host a,b\", with each "
		                   "quotation mark closed", command);
		free(words);
		return NEZHA_ERR_INVALID;
	}
	*out = words;
	return NEZHA_OK;
}
