/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/pmi.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tuning/status.h"

#define LINE 4096
#define PATIENCE 2000      /* ms */

/* Places the ranks of one block of the mapping. */
static int place_block(const char *block, int *node, int ranks, int *placed)
{
	int first, nodes, each;

	if (sscanf(block, "(%d,%d,%d)", &first, &nodes, &each) != 3 || first < 0 || first > INT_MAX / 2 || nodes < 1 ||
	    nodes > INT_MAX / 2 || each < 1)
		return NEZHA_ERR_INVALID;
	for (int i = 0; i < nodes && *placed < ranks; i++)
		for (int k = 0; k < each && *placed < ranks; k++)
			node[(*placed)++] = first + i;
	return NEZHA_OK;
}

static const char *next_block(const char *block)
{
	const char *comma = strstr(block, ",(");

	return comma ? comma + 1 : NULL;
}

int nezha_pmi_parse(const char *mapping, int *node, int ranks)
{
	int placed = 0;

	if (strncmp(mapping, "(vector,(", 9))
		return NEZHA_ERR_INVALID;
	while (placed < ranks) {
		for (const char *block = mapping + 8; block; block = next_block(block))
			if (place_block(block, node, ranks, &placed) != NEZHA_OK)
				return NEZHA_ERR_INVALID;
	}
	return NEZHA_OK;
}

/* Sends one line and takes the answer, without its end. */
static int ask(int fd, const char *question, char answer[LINE])
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	size_t have = 0, len = strlen(question);

	if (write(fd, question, len) != (ssize_t)len)
		return NEZHA_ERR_UNSUPPORTED;
	while (have + 1 < LINE && poll(&ready, 1, PATIENCE) == 1) {
		ssize_t got = read(fd, answer + have, 1);

		if (got != 1)
			break;
		if (answer[have] == '\n') {
			answer[have] = 0;
			return NEZHA_OK;
		}
		have++;
	}
	return NEZHA_ERR_UNSUPPORTED;
}

/* What follows KEY= in the answer. */
static const char *find_value(const char *answer, const char *key)
{
	const char *at = strstr(answer, key);

	return at ? at + strlen(key) : NULL;
}

int nezha_pmi_nodes(int *node, int ranks)
{
	const char *text = getenv("PMI_FD"), *value;
	char answer[LINE], question[LINE + 64];
	int fd = text ? atoi(text) : -1;

	if (fd < 0 || ask(fd, "cmd=get_my_kvsname\n", answer) != NEZHA_OK)
		return NEZHA_ERR_UNSUPPORTED;
	value = find_value(answer, "kvsname=");
	if (!value)
		return NEZHA_ERR_UNSUPPORTED;
	snprintf(question, sizeof(question), "cmd=get kvsname=%s key=PMI_process_mapping\n", value);
	if (ask(fd, question, answer) != NEZHA_OK)
		return NEZHA_ERR_UNSUPPORTED;
	value = find_value(answer, "value=");
	return value && nezha_pmi_parse(value, node, ranks) == NEZHA_OK ? NEZHA_OK : NEZHA_ERR_UNSUPPORTED;
}
